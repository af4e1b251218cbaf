"""Signing in, and every page through the accessibility checker: phone and wide, light and dark."""

import pytest
from browser.accessibility import problems, unseen_focus
from browser.chromium import sign_in
from browser.screenshots import pages, village
from browser.site import Site
from playwright.sync_api import Browser, Page

pytestmark = pytest.mark.xdist_group("browser")


@pytest.fixture(scope="module")
def survey(site: Site) -> str:
    return village(site)


def test_signing_in_and_out(page: Page, site: Site) -> None:
    page.goto("/surveys")
    assert page.url.endswith("/sign-in?to=/surveys")
    page.get_by_label("Your token").fill("hub_nonsense")
    page.get_by_role("button", name="Sign in").click()
    assert "opens no account" in page.get_by_role("alert").text_content()
    page.get_by_label("Your token").fill(site.owner)
    page.get_by_role("button", name="Sign in").click()
    page.wait_for_url("**/surveys")
    [cookie] = page.context.cookies()
    assert (cookie["name"], cookie["httpOnly"], cookie["sameSite"], cookie["path"]) == (
        "hubbub-session",
        True,
        "Strict",
        "/",
    )
    assert page.evaluate("document.cookie") == ""
    page.get_by_role("button", name="Sign out").click()
    page.wait_for_url(site.address + "/")
    assert page.context.cookies() == []
    page.context.add_cookies([{"name": cookie["name"], "value": cookie["value"], "url": site.address}])
    page.goto("/surveys")
    assert "/sign-in" in page.url  # the old cookie opens nothing


def test_an_analyst_has_no_surveys(page: Page, site: Site) -> None:
    sign_in(page, site.analyst)
    assert page.get_by_role("link", name="Surveys").count() == 0
    page.goto("/surveys")
    assert page.get_by_role("alert").is_visible()


@pytest.mark.parametrize(("width", "scheme"), [(320, "dark"), (390, "light"), (1280, "light")])
@pytest.mark.parametrize("who", ["nobody", "analyst", "owner"])
def test_every_page_is_accessible(browser: Browser, site: Site, survey: str, width: int, scheme: str, who: str) -> None:
    context = browser.new_context(
        viewport={"width": width, "height": 800}, color_scheme=scheme, base_url=site.address, reduced_motion="reduce"
    )
    page = context.new_page()
    found: dict[str, list[str]] = {}
    keyboard = width == 1280
    if who != "nobody":
        sign_in(page, getattr(site, who))
    for name, (path, whose) in pages(survey).items():
        if whose == who:
            page.goto(path)
            found[name] = problems(page) + unseen_focus(page, 14 * keyboard)
    if who == "analyst":
        page.goto("/datasets/village/ask?way=sql")
        page.get_by_label("Your question in SQL").fill("SELECT * FROM village")
        page.get_by_role("heading", name="Not yet").wait_for()
        found["refused while typing"] = problems(page)
        page.goto("/datasets/village/ask?way=sql")
        page.get_by_label("ε", exact=True).fill("7")
        page.get_by_role("button", name="Ask and pay ε 7").click()
        page.get_by_role("alert").wait_for()
        page.get_by_text("More", exact=True).click()
        page.get_by_text("How it is made").click()
        found["out of budget"] = problems(page)
        page.goto("/datasets/odd")
        found["odd"] = problems(page)
    if who == "owner":
        page.goto("/surveys/new")
        found["plan"] = problems(page) + unseen_focus(page, 16 * keyboard)
        page.get_by_role("button", name="Show the plan").click()
        found["plan with an error"] = problems(page)
        page.goto("/surveys/" + "a" * 26)
        found["refused"] = problems(page)
    if who == "nobody":
        page.goto(f"/s/{survey}")
        page.get_by_label("The hill").check()
        page.get_by_label("Yes").check()
        page.get_by_role("button", name="Show what would be sent").click()
        found["preview"] = problems(page) + unseen_focus(page, 10 * keyboard)
    context.close()
    assert {name: wrong for name, wrong in found.items() if wrong} == {}


BAD = """<!doctype html><title></title><header>x</header><nav>y</nav>
<h2 style="color:#999;background:#fff">pale</h2><h4>deep</h4><p style="width:3000px">wide</p>
<input id="a"><input id="a" aria-describedby="gone"><button style="outline:none"></button><img src="/static/icon.svg">
<svg width="9" height="9"><text fill="#eee">x</text></svg><table><tr><th>no</th></tr></table><fieldset></fieldset>
<a href="#no">skip</a><i tabindex="3">x</i><div role="meter"></div>"""


def test_the_checker_finds_what_is_wrong(browser: Browser) -> None:
    context = browser.new_context(viewport={"width": 400, "height": 800})
    page = context.new_page()
    page.set_content(BAD)
    found = "\n".join(problems(page))
    for rule in (
        "html has no lang",
        "no title",
        "no viewport",
        "0 times main",
        "nav without name",
        "not one h1",
        "heading level skipped",
        "id twice",
        "leads nowhere",
        "control without label",
        "nothing to read",
        "role without name",
        "img without alt",
        "svg neither",
        "without legend",
        "without caption",
        "without scope",
        "positive tabindex",
        "inline script or style",
        "does not skip",
        "contrast",
        "target",
        "scrolls sideways",
    ):
        assert rule in found, rule
    page.set_content("<button style='outline:none'>x</button>")
    assert unseen_focus(page, 1) != []
    context.close()
