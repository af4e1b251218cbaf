"""One server and one browser for all browser tests; a fresh context for each."""

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from browser.chromium import chromium
from browser.site import Site, running
from playwright.sync_api import Browser, Page


@pytest.fixture(scope="session")
def site() -> Iterator[Site]:
    with tempfile.TemporaryDirectory() as folder, running(Path(folder)) as found:
        yield found


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    with chromium() as found:
        yield found


@pytest.fixture
def page(browser: Browser, site: Site) -> Iterator[Page]:
    """A page whose errors fail the test: script errors, breaches of the content policy, missing files, dialogs."""
    context = browser.new_context(base_url=site.address)
    context.set_default_timeout(10_000)
    found = context.new_page()
    wrong: list[str] = []
    found.on("pageerror", lambda error: wrong.append(str(error)))
    found.on("console", lambda message: wrong.append(message.text) if message.type == "error" else None)
    found.on("dialog", lambda dialog: (wrong.append(f"dialog: {dialog.message}"), dialog.dismiss()))
    found.add_init_script("addEventListener('securitypolicyviolation', (e) => console.error('policy', e.blockedURI))")
    yield found
    context.close()
    assert [w for w in wrong if "status of 4" not in w] == []
