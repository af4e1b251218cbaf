"""The whole story in a real browser: price first, then the answer, until nothing is left and an owner gives more."""

import csv
import io
import os

import pytest
from browser.chromium import sign_in
from browser.site import HARM, Site
from playwright.sync_api import Browser, Page, expect

from hubbub.curator.service import Curator

pytestmark = pytest.mark.xdist_group("browser")


@pytest.fixture
def analyst(site: Site) -> tuple[str, str]:
    """A new analyst's name and token, with a share of epsilon 1 of the village."""
    name = f"ann-{os.urandom(3).hex()}"
    token = site.curator.accounts.add(name, "analyst")
    for dataset in site.curator.datasets:
        site.curator.grant(name, dataset)
    return name, token


def charges(curator: Curator, name: str) -> int:
    return len(curator.ledger.entries("village", name))


def own(name: str, what: str) -> str:
    """A question nobody else has asked."""
    return f"SELECT {what} AS {name.replace('-', '_')} FROM village"


def test_the_whole_story(page: Page, browser: Browser, site: Site, analyst: tuple[str, str]) -> None:
    name, token = analyst
    sign_in(page, token, "/datasets")
    card = page.locator("li.card", has_text="Village survey")
    assert card.get_by_role("meter", name="Your share").get_attribute("aria-valuetext") == "0 of 1 ε spent, 1 left"
    card.get_by_role("link", name="Ask").click()
    page.get_by_role("link", name="Write SQL").click()

    sql, price = page.get_by_label("Your question in SQL"), page.locator("#price")
    sql.fill("SELECT age FROM")
    expect(price.get_by_role("heading")).to_have_text("Not yet")  # said in place, without a reload
    expect(page.locator("#news")).to_have_text("It cannot be asked yet.")
    sql.fill(f"SELECT ward, count(*) AS n, avg(age) AS {name.replace('-', '_')} FROM village GROUP BY ward")
    expect(price.get_by_role("button")).to_have_text("Ask and pay ε 0.1")
    page.get_by_label("ε", exact=True).fill("0.6")
    expect(price.get_by_role("button")).to_have_text("Ask and pay ε 0.6")
    expect(price).to_contain_text("60.0\u202f%")
    before = price.locator("tbody tr").first
    foretold = float(before.locator("td.figure").text_content().removeprefix("± "))
    assert 5 < foretold < 15
    assert before.locator("svg.bar .whisker").count() == 3
    assert charges(site.curator, name) == 0

    price.get_by_role("button").click()
    page.wait_for_url("**/datasets/village/receipts/*")
    receipt = page.url
    row = page.locator("table.estimates tbody tr").first
    assert "north" in row.text_content()
    assert abs(float(row.locator(".error").text_content().removeprefix("± ")) - foretold) < 3  # as foretold
    assert row.locator("svg.bar .whisker").count() == 3
    page.reload()
    assert charges(site.curator, name) == 1

    page.get_by_role("link", name="Ask another").click()
    page.get_by_role("link", name="Write SQL").click()
    sql.fill(f"select ward, count(*) as n, avg(age) as {name.replace('-', '_')} from village group by ward -- again")
    page.get_by_label("ε", exact=True).fill("0.6")
    expect(price.get_by_role("button")).to_have_text("Show the answer")
    price.get_by_role("button").click()
    expect(page.get_by_role("status").first).to_contain_text("This cost nothing")
    with page.expect_download() as download:
        page.get_by_role("button", name="Download CSV").click()
    told = list(csv.DictReader(io.StringIO(open(download.value.path()).read())))  # noqa: PTH123, SIM115
    assert [r["ward"] for r in told] == ["north", "south", "west"]
    assert charges(site.curator, name) == 1

    page.goto("/datasets/village/ask?way=sql")
    sql.fill(own(name, "sum(age)"))
    page.get_by_label("ε", exact=True).fill("0.7")
    expect(price).to_contain_text("It will hardly fit")
    price.get_by_role("button", name="Ask and pay ε 0.7").click()
    expect(page.get_by_role("alert")).to_contain_text("Nothing was charged. One question may cost you up to ε = 0.4")
    expect(page.get_by_role("alert")).to_contain_text("Ask the owner of the data to raise your share")
    assert charges(site.curator, name) == 1

    context = browser.new_context(base_url=site.address)
    owner = context.new_page()
    sign_in(owner, site.owner, "/owner")
    owner.get_by_role("region", name="Accounts").get_by_role("link", name=name).click()
    owner.locator("#epsilon-village").fill("2")
    owner.get_by_role("button", name="Set the share of Village survey").click()
    expect(owner.get_by_role("meter", name="Their share")).to_have_attribute("aria-valuemax", "2")
    context.close()

    price.get_by_role("button", name="Ask and pay ε 0.7").click()  # the same form as before
    page.wait_for_url("**/datasets/village/receipts/*")
    assert charges(site.curator, name) == 2
    page.get_by_role("link", name="History").click()
    assert page.locator("tbody tr").count() == 2
    page.locator("tbody tr").last.get_by_role("link").click()
    assert page.url == receipt
    page.get_by_text("For the record").click()
    number = int(receipt.rsplit("/", 1)[1])
    assert page.get_by_text(site.curator.ledger.receipt("village", number, name)[0].digest).is_visible()
    page.get_by_role("link", name="Village survey").click()
    expect(page.locator("#over-time desc")).to_contain_text("1.3 of it by you")
    page.get_by_role("button", name="Sign out").click()
    page.goto(receipt)
    assert "/sign-in" in page.url


def test_a_double_click_pays_once(page: Page, site: Site, analyst: tuple[str, str]) -> None:
    name, token = analyst
    sign_in(page, token)
    page.goto("/datasets/village/ask?way=sql")
    page.get_by_label("Your question in SQL").fill(own(name, "count(*)"))
    page.get_by_label("ε", exact=True).fill("0.05")
    page.get_by_role("button", name="Ask and pay ε 0.05").dblclick()
    page.wait_for_url("**/receipts/*")
    page.get_by_role("link", name="Ask it differently").click()
    expect(page.get_by_label("Your question in SQL")).to_have_value(own(name, "COUNT(*)"))
    expect(page.locator("#pay")).to_have_text("Ask and pay ε 0.1")
    sent = """async () => {
        const form = document.getElementById("ask"), body = new URLSearchParams(new FormData(form));
        body.set("step", "pay");
        const all = await Promise.all(Array.from({length: 5}, () => fetch(form.action, {method: "POST", body})));
        return all.map((answer) => answer.url);
    }"""
    page.goto("/datasets/village/ask?way=sql")
    page.get_by_label("Your question in SQL").fill(own(name, "sum(age)"))
    page.get_by_label("ε", exact=True).fill("0.06")
    expect(page.locator("#pay")).to_have_text("Ask and pay ε 0.06")
    assert len(set(page.evaluate(sent))) == 1
    assert charges(site.curator, name) == 2


def test_everything_works_without_script(browser: Browser, site: Site, analyst: tuple[str, str]) -> None:
    name, token = analyst
    context = browser.new_context(base_url=site.address, java_script_enabled=False)
    context.set_default_timeout(10_000)
    page = context.new_page()
    sign_in(page, token, "/datasets/village/ask")
    page.get_by_label("First number").select_option("average of age")
    page.get_by_label("For each").select_option("vote")
    page.get_by_label("Only where").select_option("age")
    page.get_by_label("compared how").first.select_option("is at least")
    page.get_by_label("with which value").first.fill("eighteen")
    page.get_by_role("button", name="Explain").click()
    assert "age='eighteen' must be a number" in page.locator("#price").text_content()
    page.get_by_label("with which value").first.fill("18")
    page.get_by_label("ε", exact=True).fill("0.2")
    page.get_by_role("button", name="Explain").click()
    assert page.get_by_label("First number").input_value() == "avg age"
    assert "WHERE age >= 18" in page.locator("#price").text_content()
    page.get_by_label("ε", exact=True).fill("0.3")
    page.get_by_role("button", name="Ask and pay ε 0.2").click()
    assert page.get_by_text("The price has changed").is_visible()  # what the button said is not what the form says
    assert charges(site.curator, name) == 0
    page.get_by_role("button", name="Ask and pay ε 0.3").click()
    page.wait_for_url("**/receipts/*")
    assert page.locator("table.estimates tbody tr").count() == 2
    assert charges(site.curator, name) == 1
    page.goto("/attack")
    page.get_by_label("ε of all private answers together").select_option("100")
    page.get_by_role("button", name="Attack").click()
    assert "epsilon=100" in page.url
    assert page.get_by_role("img", name="exact counts: 100 of 100 residents found out").is_visible()
    context.close()


def test_the_owner_makes_and_withdraws_a_token(page: Page, browser: Browser, site: Site) -> None:
    name = f"eve-{os.urandom(3).hex()}"
    sign_in(page, site.owner, "/owner")
    page.get_by_label("Name").fill(HARM)
    page.get_by_role("button", name="Make a token").click()
    expect(page.get_by_role("alert")).to_contain_text(HARM)
    page.get_by_label("Name").fill(name)
    page.get_by_role("button", name="Make a token").click()
    token = page.locator("#token").text_content()
    page.get_by_role("button", name="Open Village survey to them").click()
    assert page.locator("#token").count() == 0
    context = browser.new_context(base_url=site.address)
    eve = context.new_page()
    sign_in(eve, token, "/datasets/village")
    page.get_by_role("link", name="Withdraw the token…").click()
    page.get_by_role("button", name="Withdraw it").click()
    expect(page.locator("dl.figures")).to_contain_text("withdrawn")
    eve.reload()
    assert "/sign-in" in eve.url
    context.close()
    page.goto("/owner")
    page.get_by_role("button", name="Check the ledger of Village survey").click()
    expect(page.get_by_role("status")).to_contain_text("The ledger adds up")


def test_names_that_mean_harm_do_none(page: Page, site: Site) -> None:
    sign_in(page, site.owner, "/datasets")
    expect(page.get_by_role("link", name=HARM, exact=True)).to_be_visible()
    page.goto("/datasets/odd/ask")
    page.get_by_label("Only where").select_option("ward")
    page.get_by_label("with which value").first.fill(HARM)
    expect(page.locator("#price")).to_contain_text("Ask and pay")
    page.get_by_role("button", name="Edit as SQL").click()
    page.get_by_role("button", name="Ask and pay").click()
    page.wait_for_url("**/datasets/odd/receipts/*")
    expect(page.locator("p.code")).to_contain_text(HARM)
    expect(page.locator("table.estimates th[scope=row]").last).to_have_text(HARM)
    page.goto("/datasets/odd/history")
    page.goto("/datasets/odd/ask?way=sql")
    page.get_by_label("Your question in SQL").fill(f"SELECT {HARM}")
    expect(page.locator("#price")).to_contain_text("Not yet")
    assert page.locator("main img, main script").count() == 0
