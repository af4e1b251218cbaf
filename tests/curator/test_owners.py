"""The owner's pages and the attack page without a browser."""

import re
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import sqlalchemy as sa
from browser.site import application
from curator.test_asking import Visitor
from fastapi import FastAPI
from fastapi.testclient import TestClient

from hubbub.curator.service import Curator
from hubbub.curator.web import attack, attacking
from hubbub.curator.web.layout import close_sessions


@pytest.fixture
def app(tmp_path: Path) -> Iterator[FastAPI]:
    made = application(tmp_path)
    yield made
    made.state.curator.close()
    close_sessions(made)


@pytest.fixture
def curator(app: FastAPI) -> Curator:
    return app.state.curator


@pytest.fixture
def ada(app: FastAPI, curator: Curator) -> Visitor:
    return Visitor(app, curator.accounts.add("ada", "owner"))


def shown_token(page) -> str:
    return re.search(r'id="token">(hub_[\w-]{43})<', page.text)[1]


def test_accounts_are_made_renewed_and_withdrawn(app: FastAPI, ada: Visitor, curator: Curator) -> None:
    made = ada.post("/owner/accounts", name="bob", role="analyst", days="30")
    first = shown_token(made)
    assert first not in ada.get("/owner/accounts/bob").text
    assert curator.accounts.of_token(first).name == "bob"
    assert "valid until" in ada.get("/owner").text
    bob = Visitor(app, first)
    second = shown_token(ada.post("/owner/accounts/bob/token", days=""))
    assert curator.accounts.of_token(first) is None
    assert bob.get("/datasets").status_code == 303  # the session went with its token
    bob = Visitor(app, second)
    assert ada.post("/owner/accounts/bob/revoke").status_code == 400  # it was not said that it is meant
    assert curator.accounts.of_token(second) is not None
    assert "Withdraw the token of bob?" in ada.get("/owner/accounts/bob/revoke").text
    assert ada.post("/owner/accounts/bob/revoke", sure="yes").status_code == 303
    assert curator.accounts.of_token(second) is None
    assert bob.get("/datasets").status_code == 303
    assert "withdrawn" in ada.get("/owner/accounts/bob").text
    assert ada.post("/owner/accounts/ada/revoke", sure="yes").status_code == 400  # would lock the owner out
    assert ada.get("/owner").status_code == 200


@pytest.mark.parametrize(
    "fields",
    [
        {"name": "ada"},
        {"name": ""},
        {"name": "no spaces"},
        {"name": "x", "role": "king"},
        {"name": "x", "days": "0"},
        {"name": "x", "days": "1.5"},
        {"name": "x", "days": "99999999999999"},
        {"name": "x", "days": "soon"},
    ],
)
def test_wrong_accounts_are_refused(ada: Visitor, curator: Curator, fields: dict[str, str]) -> None:
    page = ada.post("/owner/accounts", **{"role": "analyst", "days": "", **fields})
    assert page.status_code == 422
    assert 'role="alert"' in page.text
    assert [a.name for a in curator.accounts.everybody()] == ["ada"]


def test_grants_and_shares(app: FastAPI, ada: Visitor, curator: Curator) -> None:
    bob = Visitor(app, shown_token(ada.post("/owner/accounts", name="bob", role="analyst")))
    assert bob.get("/datasets/village").status_code == 404
    path = "/owner/accounts/bob/datasets/village"
    assert ada.post(path, step="grant").status_code == 303
    assert bob.get("/datasets/village").status_code == 200
    assert float(curator.accounts.caps("village")["bob"].epsilon) == 1  # the configuration's
    assert ada.post(path, step="cap", epsilon="2.5", delta="1e-6").status_code == 303
    assert float(curator.accounts.caps("village")["bob"].epsilon) == 2.5
    for wrong in ({"epsilon": "-1"}, {"epsilon": "x"}, {"epsilon": "1", "delta": "3"}, {"epsilon": "inf"}):
        assert ada.post(path, step="cap", **wrong).status_code == 422
    assert ada.post(path, step="nonsense").status_code == 400
    assert bob.ask().status_code == 303
    page = ada.get("/owner/accounts/bob").text
    assert re.search(r"0\.5 <span class=\"of\">of 2\.5 ε", page)
    assert ada.post(path, step="withdraw").status_code == 303
    assert bob.get("/datasets/village").status_code == 404
    for absent in ("/owner/accounts/nobody", "/owner/accounts/nobody/revoke"):
        assert ada.get(absent).status_code == 404
    assert ada.post("/owner/accounts/bob/datasets/nowhere", step="grant").status_code == 404
    assert ada.post("/owner/accounts/nobody/datasets/village", step="grant").status_code == 404


def test_the_ledger_is_checked(ada: Visitor, curator: Curator) -> None:
    ada.ask()
    assert "all 1 entries are there" in ada.post("/owner/datasets/village/verify").text
    engine = sa.create_engine(curator.url)
    with engine.begin() as connection:
        connection.execute(sa.text("UPDATE entries SET analyst = 'eve'"))
    engine.dispose()
    page = ada.post("/owner/datasets/village/verify")
    assert page.status_code == 503
    assert "does not add up near entry 1" in page.text


def test_owners_pages_are_the_owners(app: FastAPI, curator: Curator) -> None:
    bob = Visitor(app, curator.accounts.add("bob", "analyst"))
    for path, fields in (
        ("/owner/accounts", {"name": "eve", "role": "owner"}),
        ("/owner/accounts/bob/token", {}),
        ("/owner/accounts/bob/datasets/village", {"step": "grant"}),
        ("/owner/datasets/village/verify", {}),
        ("/owner/accounts/ada/revoke", {"sure": "yes"}),
    ):
        assert bob.post(path, **fields).status_code == 404
    assert [a.name for a in curator.accounts.everybody()] == ["bob"]


def test_the_attack_page_takes_anything_and_is_quick(app: FastAPI) -> None:
    client = TestClient(app, base_url="https://curator.example")
    for query in (
        "",
        "?epsilon=1e9&count=1e9&person=-1",
        "?epsilon=<script>&count=&person=nan",
        "?epsilon=100&count=2000",
    ):
        began = time.monotonic()
        page = client.get(f"/attack{query}")
        assert page.status_code == 200
        assert "<script>" not in page.text
        assert time.monotonic() - began < 5  # measured: 0.1 s, and 0.5 s for the first of its kind


def test_attacks_succeed_where_they_should() -> None:
    exact, suppressed, rounded, private = attacking.rebuilt(500, 0.1)
    assert exact.share == suppressed.share == rounded.share == 1
    assert private.share < 0.85
    assert attacking.rebuilt(2000, 1e4)[-1].share > 0.95
    for person in range(0, 100, 9):
        *certain, noisy = attacking.singled(person, 0.5)
        assert all(s.certain and s.belief == attacking.SECRET[person] for s in certain)
        assert not noisy.certain
        assert 1 - 0.6225 < noisy.belief < 0.6225  # what epsilon 0.5 allows a toss-up to become
    assert attack.read({"epsilon": "10", "count": "200", "person": "100"}) == attack.Setting(10.0, 200, 100)
