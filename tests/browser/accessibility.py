"""A small accessibility checker: names, labels, headings, landmarks, references, contrast, targets, focus.

It finds what a program can find without guessing; it does not replace a person with a screen reader.
"""

from __future__ import annotations

from playwright.sync_api import Page

CHECK = r"""
() => {
  const found = [];
  const tell = (rule, element) => found.push(`${rule}: ${(element.outerHTML || "").slice(0, 90)}`);
  const all = (selector) => [...document.querySelectorAll(selector)];
  const shown = (e) => e.getClientRects().length > 0 && getComputedStyle(e).visibility !== "hidden";
  const text = (e) => (e ? e.textContent.trim() : "");
  const named = (e) =>
    e.getAttribute("aria-label")?.trim() ||
    (e.getAttribute("aria-labelledby") || "").split(/\s+/).map((id) => text(document.getElementById(id))).join("") ||
    [...(e.labels || [])].map(text).join("");

  if (!document.documentElement.lang) tell("html has no lang", document.documentElement);
  if (!document.title.trim()) tell("no title", document.head);
  if (!document.querySelector("meta[name=viewport]")) tell("no viewport", document.head);
  for (const landmark of ["main", "body > header", "nav", "body > footer"])
    if (all(landmark).length !== 1) tell(`${all(landmark).length} times ${landmark}`, document.body);
  all("nav").forEach((e) => named(e) || tell("nav without name", e));

  const headings = all("h1, h2, h3, h4, h5, h6").filter(shown);
  if (headings.filter((h) => h.tagName === "H1").length !== 1) tell("not one h1", document.body);
  headings.reduce((level, h) => {
    const here = Number(h.tagName[1]);
    if (here > level + 1) tell("heading level skipped", h);
    if (!text(h)) tell("empty heading", h);
    return here;
  }, 0);

  const ids = all("[id]").map((e) => e.id);
  ids.filter((id, i) => ids.indexOf(id) !== i).forEach((id) => tell("id twice", document.getElementById(id)));
  for (const name of ["aria-labelledby", "aria-describedby", "aria-controls", "for"])
    all(`[${name}]`).forEach((e) =>
      e.getAttribute(name).split(/\s+/).forEach((id) => ids.includes(id) || tell(`${name} leads nowhere`, e)));

  all("input:not([type=hidden]), select, textarea").filter(shown)
    .forEach((e) => named(e) || tell("control without label", e));
  all("button, a[href], summary").filter(shown).forEach((e) => named(e) || text(e) || tell("nothing to read", e));
  all("[role=meter], [role=region], [role=img]").forEach((e) => named(e) || tell("role without name", e));
  all("img:not([alt])").forEach((e) => tell("img without alt", e));
  all("svg:not([role=img]):not([aria-hidden=true])").forEach((e) => tell("svg neither named nor hidden", e));
  all("fieldset").forEach((e) => text(e.querySelector("legend")) || tell("fieldset without legend", e));
  all("table").filter(shown).forEach((e) => {
    if (!text(e.querySelector("caption"))) tell("table without caption", e);
    e.querySelectorAll("th").forEach((th) => th.scope || tell("th without scope", th));
  });
  all("[tabindex]").forEach((e) => e.tabIndex > 0 && tell("positive tabindex", e));
  all("[onclick], [style]").forEach((e) => tell("inline script or style", e));

  const skip = document.querySelector("a[href]");
  const target = skip && document.querySelector(skip.getAttribute("href"));
  if (!target) tell("first link does not skip", skip || document.body);

  const rgba = (css) => {
    const [r, g, b, a = 1] = css.match(/[\d.]+/g).map(Number);
    return [r, g, b, a];
  };
  const over = (top, under) => top.slice(0, 3).map((c, i) => c * top[3] + under[i] * (1 - top[3]));
  const background = (e) => {
    const layers = [];
    for (let at = e; at; at = at.parentElement) {
      const colour = rgba(getComputedStyle(at).backgroundColor);
      layers.push(colour);
      if (colour[3] === 1) break;
    }
    return layers.reverse().reduce((under, top) => over(top, under), [255, 255, 255]);
  };
  const light = (c) => c.map((v) => v / 255).map((v) => (v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4))
    .reduce((sum, v, i) => sum + v * [0.2126, 0.7152, 0.0722][i], 0);
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  for (let node = walker.nextNode(); node; node = walker.nextNode()) {
    const e = node.parentElement;
    if (!node.textContent.trim() || !shown(e) || e.closest("title, desc, .visually-hidden, :disabled")) continue;
    const style = getComputedStyle(e);
    const under = background(e.closest("svg") ? e.closest("svg").parentElement : e);
    const ink = over(rgba(e.closest("svg") ? style.fill : style.color), under);
    const [high, low] = [light(ink), light(under)].sort((a, b) => b - a);
    const ratio = (high + 0.05) / (low + 0.05);
    const size = parseFloat(style.fontSize);
    const large = size >= 24 || (size >= 18.66 && Number(style.fontWeight) >= 700);
    if (ratio < (large ? 3 : 4.5)) tell(`contrast ${ratio.toFixed(2)}`, e);
  }

  all("button, input:not([type=hidden]), select, summary, nav a").filter(shown).forEach((e) => {
    const box = (e.closest("label") || e).getBoundingClientRect();
    if (Math.min(box.width, box.height) < 20) tell(`target ${box.width} x ${box.height}`, e);
  });
  if (document.documentElement.scrollWidth > innerWidth) tell(`scrolls sideways at ${innerWidth}`, document.body);
  return found;
}
"""

FOCUS = """
() => {
  const e = document.activeElement, style = getComputedStyle(e);
  return [e.outerHTML.slice(0, 90), style.outlineStyle !== "none" && parseFloat(style.outlineWidth) >= 2];
}
"""


def problems(page: Page) -> list[str]:
    """What is wrong with the page as it is shown now."""
    found: list[str] = page.evaluate(CHECK)
    return found


def unseen_focus(page: Page, steps: int) -> list[str]:
    """What the keyboard reaches in so many steps without it showing."""
    page.evaluate("document.activeElement.blur()")
    wrong = []
    for _ in range(steps):
        page.keyboard.press("Tab")
        where, seen = page.evaluate(FOCUS)
        if not seen and not where.startswith("<body"):
            wrong.append(where)
    return wrong
