"""A survey in a real browser: what the respondent sees, what leaves the machine, what the owner learns."""

import json
import time
from decimal import Decimal

import pytest
from browser.chromium import sign_in
from browser.site import Site
from playwright.sync_api import Browser, Page, Request, expect

pytestmark = pytest.mark.xdist_group("browser")

ASKED = [("Did you vote for the dam?", ()), ("Which ward?", ("north", "south", "hill"))]

FIXED = """(() => {
    const values = %s;
    let at = 0;
    crypto.getRandomValues = (array) => {
        for (let i = array.length - 1; i >= 0; i -= 1) array[i] = BigInt(values[at++] ?? 7);
        return array;
    };
})()"""
"""Stands in for the generator: the script reads its pool from the end."""
KEEP, MOVE = "0", str(2**64 - 1)


def answer(page: Page, *options: str) -> None:
    for option in options:
        page.get_by_label(option, exact=True).check()
    page.get_by_role("button", name="Show what would be sent").click()


def respond(browser: Browser, site: Site, survey: str, words: list[str], options: tuple[str, str]) -> list[Request]:
    """One respondent with known coins; every request the browser made."""
    context = browser.new_context(base_url=site.address)
    requests: list[Request] = []
    context.on("request", lambda request: requests.append(request))
    page = context.new_page()
    page.add_init_script(FIXED % json.dumps(words))
    page.goto(f"/s/{survey}")
    answer(page, *options)
    before = len(requests)
    page.get_by_role("button", name="Send the last column").click()
    page.get_by_text("Thank you").wait_for()
    assert len(requests) == before + 1
    assert page.evaluate("[localStorage.length, sessionStorage.length, document.cookie]") == [0, 0, ""]
    context.close()
    return requests


def test_what_is_sent_depends_on_the_reports_alone(browser: Browser, site: Site) -> None:
    """Two people with different answers and coins that make the same reports: all traffic is byte for byte the same."""
    survey = site.curator.surveys.create("ada", "Dam", ASKED, epsilon=Decimal(2))
    # words: keep or move of the first; shift and keep or move of the second; then two for the submission's number
    keeps = respond(browser, site, survey.id, [KEEP, "0", KEEP, "1", "2"], ("Yes", "hill"))
    moves = respond(browser, site, survey.id, [MOVE, "0", MOVE, "1", "2"], ("No", "south"))

    def traffic(requests: list[Request]) -> list[tuple[str, str, str | None, dict]]:
        return [(r.method, r.url, r.post_data, r.headers) for r in requests]

    assert traffic(keeps) == traffic(moves)
    posts = [r for r in keeps if r.method == "POST"]
    assert len(posts) == 1
    assert json.loads(posts[0].post_data) == {"submission": f"{1:016x}{2:016x}", "reports": [1, 2]}
    assert "cookie" not in posts[0].headers
    assert site.curator.surveys.results(survey.id)[0].reports == 1  # the second was a replay of the first


def test_the_respondent_sees_what_is_sent_and_may_change_it(page: Page, site: Site) -> None:
    survey = site.curator.surveys.create("ada", "Dam", ASKED, epsilon=Decimal(2), introduction="Hello.", invited=True)
    [code] = site.curator.surveys.invite(survey.id, 1)
    page.add_init_script(FIXED % json.dumps([MOVE, "0", KEEP]))
    sent: list[Request] = []
    page.on("request", lambda request: sent.append(request) if request.method == "POST" else None)
    page.goto(f"/s/{survey.id}")
    page.get_by_role("button", name="Show what would be sent").click()
    assert page.get_by_text("Please answer every question").is_visible()
    assert not page.locator("#preview").is_visible()
    answer(page, "Yes", "hill")

    def cells() -> list[list[str]]:
        return [row.locator("th, td").all_text_contents() for row in page.locator("#preview-rows tr").all()]

    assert cells() == [[ASKED[0][0], "Yes", "No"], [ASKED[1][0], "hill", "hill"]]
    page.get_by_role("button", name="Change my answers").click()
    answer(page, "Yes", "north")
    assert cells() == [[ASKED[0][0], "Yes", "No"], [ASKED[1][0], "north", "north"]]  # the same coins as before
    page.get_by_role("button", name="Send the last column").click()
    page.get_by_text("needs an invitation code").wait_for()
    assert not page.get_by_role("button", name="Change my answers").is_visible()  # two answers on one set of coins
    page.get_by_label("Invitation code").fill(code.upper())
    page.get_by_role("button", name="Send the last column").click()
    page.get_by_text("Thank you").wait_for()
    assert [json.loads(r.post_data)["reports"] for r in sent] == [[0, 0], [0, 0]]
    assert site.curator.surveys.invitations(survey.id) == (1, 1)
    assert [r.reports for r in site.curator.surveys.results(survey.id)] == [1, 1]


def test_without_script_nothing_can_be_sent(browser: Browser, site: Site) -> None:
    survey = site.curator.surveys.create("ada", "Dam", ASKED, epsilon=Decimal(2))
    context = browser.new_context(base_url=site.address, java_script_enabled=False)
    page = context.new_page()
    page.goto(f"/s/{survey.id}")
    assert page.get_by_text("This page needs script").is_visible()
    assert not page.locator("#survey").is_visible()
    assert page.locator("main form").count() == 0
    site.curator.surveys.close_survey(survey.id)
    page.goto(f"/s/{survey.id}")
    assert page.get_by_text("This survey is closed").is_visible()
    context.close()


def test_the_owners_whole_story(page: Page, browser: Browser, site: Site) -> None:
    """Plan, see the sample size, open, share the link, watch an answer come in, close."""
    sign_in(page, site.owner, "/surveys")
    page.get_by_role("link", name="Plan a survey").click()
    page.get_by_label("Title").fill("Health")
    page.get_by_label("ε per person").fill("2")
    page.locator("#question-1").fill("Have you ever lied to a doctor?")
    page.get_by_role("button", name="Add a question").click()
    page.locator("#question-2").fill("How often do you drink?")
    page.locator("#options-2").fill("Never\nSometimes\nEvery day")
    page.locator("#weight-2").fill("three")
    page.get_by_role("button", name="Show the plan").click()
    assert "weight='three' must be a number" in page.get_by_role("alert").text_content()
    page.locator("#weight-2").fill("3")
    page.get_by_role("button", name="Show the plan").click()
    rows = page.locator("section.card tbody tr").all_text_contents()
    assert "0.5" in rows[0]
    assert "1.5" in rows[1]
    page.get_by_role("button", name="Open the survey").click()
    page.get_by_text("Answers so far").wait_for()
    assert page.locator("#answers").text_content() == "0"
    link = page.locator("p.code a").text_content()
    assert link.startswith(site.address)

    context = browser.new_context()
    respondent = context.new_page()
    respondent.goto(link)
    answer(respondent, "No", "Sometimes")
    respondent.get_by_role("button", name="Send the last column").click()
    respondent.get_by_text("Thank you").wait_for()
    context.close()
    started = time.monotonic()
    expect(page.locator("#answers")).to_have_text("1", timeout=10_000)  # without reloading
    assert time.monotonic() - started < 9
    expect(page.locator("#news")).to_have_text("1 answers so far")
    assert page.locator("table.estimates").count() == 2
    page.get_by_role("button", name="Close the survey").click()
    page.get_by_text("closed", exact=True).wait_for()
    page.get_by_role("link", name="Surveys").click()
    assert page.locator("tbody tr").first.text_content().startswith("Health")
