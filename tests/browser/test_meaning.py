"""The page on what epsilon means: its formulas are hubbub's, and it says the same with and without script."""

import json

import pytest
from browser.site import Site
from playwright.sync_api import Browser, Page, expect

import hubbub as hb
from hubbub.curator.web import formats

pytestmark = pytest.mark.xdist_group("browser")

ASK = """async ([epsilons, deltas, shares, people]) => {
    const l = await import('/static/laws.js');
    return {
        posterior: epsilons.map((e) => shares.map((p) => l.posterior(e, p))),
        tradeoff: epsilons.map((e) => deltas.map((d) => shares.map((a) => l.tradeoff(e, d, a)))),
        count: epsilons.map((e) => [0.5, 0.95, 0.99].map((c) => l.countError(e, c))),
        mean: epsilons.map((e) => people.map((n) => l.meanError(e, n))),
    };
}"""
SAID = "() => Object.fromEntries([...document.querySelectorAll('[id^=say-]')].map((e) => [e.id, e.textContent]))"


def test_the_scripts_figures_are_hubbubs(page: Page) -> None:
    epsilons, deltas, shares, people = (
        [0.01, 0.1, 0.5, 1.0, 2.3, 5.0, 10.0],
        [0.0, 1e-6, 0.05],
        [0.0, 0.01, 0.3, 0.5, 1.0],
        [10, 10**6],
    )
    page.goto("/meaning")
    found = page.evaluate(ASK, [epsilons, deltas, shares, people])
    for i, e in enumerate(epsilons):
        for j, d in enumerate(deltas):
            loss = hb.ApproxDP(e, d) if d else hb.PureDP(e)
            for k, p in enumerate(shares):
                assert found["posterior"][i][k] == pytest.approx(loss.posterior(p, d), rel=1e-9, abs=1e-12)
                assert found["tradeoff"][i][j][k] == pytest.approx(loss.tradeoff(p), abs=1e-9)
        for k, confidence in enumerate((0.5, 0.95, 0.99)):
            assert found["count"][i][k] == hb.Laplace(1, epsilon=e).error(confidence)
        for k, n in enumerate(people):
            assert found["mean"][i][k] == pytest.approx(hb.Laplace(1.0, epsilon=e).error() / n, rel=1e-3)


def test_numbers_read_the_same(page: Page) -> None:
    values = [0, 1, 2.5, -2, 0.012345, 12345.678, 999.96, 1e6, 123456789.0, 1e-6, 2.5e-9, 0.1, 31.0, 0.0003]
    page.goto("/meaning")
    ask = """async (values) => { const f = await import('/static/formats.js');
        return values.map((v) => [f.number(v), f.number(v, 2), f.number(v, 9), f.share(v)]); }"""
    for value, got in zip(values, page.evaluate(ask, values), strict=True):
        assert got == [formats.number(value), formats.number(value, 2), formats.number(value, 9), formats.share(value)]


@pytest.mark.parametrize("query", ["", "?epsilon=0.25&delta=1e-05&prior=0.5&people=20000", "?epsilon=4&prior=0.01"])
def test_the_page_says_the_same_without_script(browser: Browser, site: Site, page: Page, query: str) -> None:
    plain = browser.new_context(base_url=site.address, java_script_enabled=False)
    bare = plain.new_page()
    bare.goto(f"/meaning{query}")
    page.goto(f"/meaning{query}")
    expect(page.locator("#show")).to_be_hidden()
    said = page.evaluate(SAID)
    assert len(said) == 11
    assert {name: bare.locator(f"#{name}").text_content() for name in said} == said
    for path in (
        "posterior-band",
        "posterior-high",
        "tradeoff-area",
        "tradeoff-curve",
        "error-curve",
        "error-sampling",
    ):
        points = [_points(p.locator(f"#{path}").get_attribute("d")) for p in (bare, page)]
        assert len(points[0]) == len(points[1]) > 1
        assert (
            max(abs(a - b) for one, other in zip(*points, strict=True) for a, b in zip(one, other, strict=True)) < 0.1
        )
    assert bare.get_by_role("button", name="Show").is_visible()
    assert not page.get_by_role("button", name="Show").is_visible()
    plain.close()


def _points(path: str) -> list[tuple[float, ...]]:
    return [tuple(map(float, point.split())) for point in path.strip("MZ").split("L")]


def test_sliders_move_the_figures(page: Page) -> None:
    page.goto("/meaning")
    most = page.locator("#say-most")
    before, curve = most.text_content(), page.locator("#tradeoff-curve").get_attribute("d")
    slider = page.get_by_label("ε, slider")
    slider.focus()
    for _ in range(30):
        page.keyboard.press("ArrowLeft")
    assert float(page.locator("#epsilon").input_value()) == pytest.approx(0.5)
    assert most.text_content() == formats.share(hb.PureDP(0.5).posterior(0.1)[1])
    assert most.text_content() != before
    assert page.locator("#tradeoff-curve").get_attribute("d") != curve
    assert slider.get_attribute("aria-valuetext") == "0.5"
    expect(page.locator("#summary")).to_contain_text("ε 0.5")
    page.locator("#epsilon").fill("-3")  # what cannot be, changes nothing
    assert most.text_content() == formats.share(hb.PureDP(0.5).posterior(0.1)[1])
    page.locator("#epsilon").fill("0.5")
    page.locator("#delta").fill("0.01")
    assert page.locator("#about-delta").is_visible()
    assert json.loads(page.evaluate("JSON.stringify(location.search)")) == ""
