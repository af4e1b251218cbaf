"""Pictures of the pages, phone in the dark and wide in the light (make screenshots); PNG files in docs/screenshots."""

from __future__ import annotations

import sys
import tempfile
from decimal import Decimal
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from browser.chromium import chromium, sign_in
from browser.site import Site, running
from playwright.sync_api import Browser, Page

from hubbub.curator.service import Price
from hubbub.queries.questions import Asked

FOLDER = Path(__file__).resolve().parent.parent.parent / "docs" / "screenshots"
VIEWS = {"phone-dark": (390, 844, "dark"), "wide-light": (1280, 900, "light")}
WARDS = ("North bank", "South bank", "The hill")
SHARES = ((150, 50, 100), (40, 260))
QUESTIONS = (
    ("bob", "SELECT ward, count(*) AS n, avg(age) AS age FROM village GROUP BY ward", 0.2),
    ("ada", "SELECT ward, vote, count(*) AS n FROM village GROUP BY ward, vote", 0.7),
    ("bob", "SELECT median(age) AS middle, mode(ward) AS largest FROM village", 0.1),
    ("ada", "SELECT vote, count(*) AS n FROM village WHERE age >= 65 GROUP BY vote", 0.4),
    ("bob", "SELECT count(*) AS n FROM village WHERE age < 18", 0.05),
)


def village(site: Site) -> str:
    """Five questions asked, and a survey with three hundred answers, as the villagers' devices would have sent them."""
    accounts = {"bob": site.curator.accounts.of_token(site.analyst), "ada": site.curator.accounts.of_token(site.owner)}
    for who, sql, epsilon in QUESTIONS:
        site.curator.ask(accounts[who], "village", Asked(sql=sql), Price(epsilon))
    asked = [("Which part of the village do you live in?", WARDS), ("Did you vote for the dam?", ())]
    survey = site.curator.surveys.create(
        "ada",
        "The dam, one year on",
        asked,
        epsilon=Decimal(3),
        invited=True,
        introduction="The council asks what people think of the dam, and does not want to know who thinks what.",
    )
    answers = [[k for k, n in enumerate(counts) for _ in range(n)] for counts in SHARES]
    noisy = [q.mechanism.release(a) for q, a in zip(survey.questions, answers, strict=True)]
    codes = site.curator.surveys.invite(survey.id, 400)
    for n, reports in enumerate(zip(*noisy, strict=True)):
        site.curator.surveys.submit(survey.id, f"{n:032x}", list(reports), codes[n])
    return survey.id


def pages(survey: str) -> dict[str, tuple[str, str]]:
    """Name: (path, who is signed in)."""
    return {
        "start": ("/", "nobody"),
        "meaning": ("/meaning", "nobody"),
        "attack": ("/attack?count=1000", "nobody"),
        "sign-in": ("/sign-in", "nobody"),
        "respond": (f"/s/{survey}", "nobody"),
        "datasets": ("/datasets", "analyst"),
        "dataset": ("/datasets/village", "analyst"),
        "ask": ("/datasets/village/ask", "analyst"),
        "ask-sql": ("/datasets/village/ask?way=sql&example=2", "analyst"),
        "answer": ("/datasets/village/receipts/1", "analyst"),
        "chosen": ("/datasets/village/receipts/3", "analyst"),
        "history": ("/datasets/village/history", "owner"),
        "owner": ("/owner", "owner"),
        "account": ("/owner/accounts/bob", "owner"),
        "revoke": ("/owner/accounts/bob/revoke", "owner"),
        "surveys": ("/surveys", "owner"),
        "survey": (f"/surveys/{survey}", "owner"),
    }


def take(browser: Browser, site: Site, folder: Path) -> None:
    """Every page, in both views."""
    survey = village(site)
    for view, (width, height, scheme) in VIEWS.items():
        for who, token in (("nobody", ""), ("analyst", site.analyst), ("owner", site.owner)):
            context = browser.new_context(
                viewport={"width": width, "height": height}, color_scheme=scheme, base_url=site.address
            )
            page = context.new_page()
            if token:
                sign_in(page, token)
            for name, (path, whose) in pages(survey).items():
                if whose == who:
                    page.goto(path)
                    page.screenshot(path=folder / f"{name}-{view}.png", full_page=name in ("attack", "answer"))
            if who == "analyst":
                refused(page, folder / f"refused-{view}.png")
            if who == "owner":
                plan(page, folder / f"plan-{view}.png")
            context.close()


def refused(page: Page, path: Path) -> None:
    """A question that the budget does not allow."""
    page.goto("/datasets/village/ask?way=sql&example=1")
    page.get_by_label("ε", exact=True).fill("5")
    page.get_by_role("button", name="Ask and pay ε 5").click()
    page.get_by_role("alert").wait_for()
    page.screenshot(path=path)


def plan(page: Page, path: Path) -> None:
    """A survey being planned."""
    page.goto("/surveys/new")
    page.get_by_label("Title").fill("Health in the village")
    page.get_by_label("Question", exact=True).first.fill("Have you ever lied to a doctor?")
    page.get_by_role("button", name="Add a question").click()
    page.locator("#question-2").fill("How often do you drink?")
    page.locator("#options-2").fill("Never\nSometimes\nEvery day")
    page.get_by_role("button", name="Show the plan").click()
    page.locator("#plan").wait_for()
    page.screenshot(path=path)


if __name__ == "__main__":
    FOLDER.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder, running(Path(folder), odd="") as site, chromium() as browser:
        take(browser, site, FOLDER)
