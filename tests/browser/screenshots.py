"""Pictures of the pages, phone and wide, light and dark (make screenshots); PNG files in docs/screenshots."""

from __future__ import annotations

import sys
import tempfile
from decimal import Decimal
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from browser.chromium import chromium, sign_in
from browser.site import Site, running
from playwright.sync_api import Browser, Page

FOLDER = Path(__file__).resolve().parent.parent.parent / "docs" / "screenshots"
SIZES = {"phone": (390, 844), "wide": (1280, 900)}
WARDS = ("North bank", "South bank", "The hill")
SHARES = ((150, 50, 100), (40, 260))


def village(site: Site) -> str:
    """A survey with three hundred answers, as the villagers' own devices would have randomised them."""
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


def pages(survey: str) -> dict[str, tuple[str, bool]]:
    """Name: (path, whether the owner is signed in)."""
    return {
        "start": ("/", False),
        "meaning": ("/meaning", False),
        "sign-in": ("/sign-in", False),
        "surveys": ("/surveys", True),
        "survey": (f"/surveys/{survey}", True),
        "respond": (f"/s/{survey}", False),
    }


def take(browser: Browser, site: Site, folder: Path) -> None:
    """Every page, in both sizes and both schemes."""
    survey = village(site)
    for size, (width, height) in SIZES.items():
        for scheme in ("light", "dark"):
            context = browser.new_context(
                viewport={"width": width, "height": height}, color_scheme=scheme, base_url=site.address
            )
            page = context.new_page()
            for owner in (False, True):
                if owner:
                    sign_in(page, site.owner)
                for name, (path, needs_owner) in pages(survey).items():
                    if needs_owner is owner:
                        page.goto(path)
                        page.screenshot(path=folder / f"{name}-{size}-{scheme}.png")
            plan(page, folder / f"plan-{size}-{scheme}.png")
            context.close()


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
    with tempfile.TemporaryDirectory() as folder, running(Path(folder)) as site, chromium() as browser:
        take(browser, site, FOLDER)
