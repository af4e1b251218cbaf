"""The pages of data sets, questions and receipts without a browser: who sees what, and what is charged when."""

import csv
import html
import io
import json
import re
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from browser.site import HARM, application
from fastapi import FastAPI
from fastapi.testclient import TestClient

import hubbub as hb
from hubbub.curator.guarding import UNAVAILABLE, is_page
from hubbub.curator.service import Curator
from hubbub.curator.web import ROUTERS, building, telling
from hubbub.curator.web.layout import close_sessions
from hubbub.errors import ParameterError

FAR = "https://curator.example"
COUNT = "SELECT ward, count(*) AS n FROM village GROUP BY ward"


@pytest.fixture
def app(tmp_path: Path) -> Iterator[FastAPI]:
    made = application(tmp_path)
    yield made
    made.state.curator.close()
    close_sessions(made)


@pytest.fixture
def curator(app: FastAPI) -> Curator:
    return app.state.curator


class Visitor:
    """Somebody with a browser, reduced to what it sends."""

    def __init__(self, app: FastAPI, token: str) -> None:
        self.client = TestClient(app, base_url=FAR, follow_redirects=False)
        assert self.post("/sign-in", at="/sign-in", token=token).status_code == 303

    def get(self, path: str):
        return self.client.get(path)

    def token(self, at: str) -> str:
        return re.search(r'name="form-token" value="([0-9a-f]{64})"', self.get(at).text)[1]

    def post(self, path: str, *, at: str = "/", **fields: str):
        return self.client.post(path, data={"form-token": self.token(at), **fields})

    def ask(self, sql: str = COUNT, dataset: str = "village", **fields: str):
        """Explains, then pays what was shown."""
        fields = {"way": "sql", "sql": sql, "epsilon": "0.5", "form": "a" * 32, **fields}
        shown = self.post(f"/datasets/{dataset}/ask", step="explain", **fields)
        seen = re.search(r'name="seen" value="([^"]*)"', shown.text)
        return self.post(f"/datasets/{dataset}/ask", step="pay", **{"seen": seen[1] if seen else "", **fields})


@pytest.fixture
def bob(app: FastAPI, curator: Curator) -> Visitor:
    token = curator.accounts.add("bob", "analyst")
    for name in curator.datasets:
        curator.grant("bob", name)
    return Visitor(app, token)


@pytest.fixture
def ada(app: FastAPI, curator: Curator) -> Visitor:
    return Visitor(app, curator.accounts.add("ada", "owner"))


def addresses(method: str) -> list[str]:
    """Every address of a page that takes this method, with something in its places."""
    places = {"name": "village", "dataset": "village", "number": "1", "kind": "csv", "survey": "x"}
    routes = [route for router in ROUTERS for route in router.routes if method in route.methods]
    return sorted(re.sub(r"\{(\w+)\}", lambda m: places[m[1]], r.path) for r in routes if is_page(r.path))


def test_no_form_is_taken_without_its_token(ada: Visitor, curator: Curator) -> None:
    found = addresses("POST")
    assert len(found) >= 12
    good = ada.token("/")
    for path in found:
        for data, headers in (
            ({}, {}),
            ({"form-token": "0" * 64}, {}),
            ({"form-token": good}, {"sec-fetch-site": "cross-site"}),
        ):
            answer = ada.client.post(path, data=data, headers=headers)
            assert answer.status_code == 403, path
            assert answer.headers["content-type"].startswith("text/html")
    assert curator.ledger.length("village") == 0
    assert len(curator.accounts.everybody()) == 1


def test_visitors_see_only_what_is_public(app: FastAPI) -> None:
    client = TestClient(app, base_url=FAR, follow_redirects=False)
    open_to_all = {path for path in addresses("GET") if client.get(path).status_code == 200}
    assert open_to_all == {"/", "/attack", "/meaning", "/sign-in"}
    assert client.get("/datasets/village/ask").headers["location"] == "/sign-in?to=/datasets/village/ask"


def test_absent_and_forbidden_pages_are_the_same(app: FastAPI, curator: Curator, bob: Visitor) -> None:
    assert bob.ask().status_code == 303
    eve = Visitor(app, curator.accounts.add("eve", "analyst"))
    token = eve.token("/")
    for tail in ("", "/ask", "/history", "/receipts/2", "/receipts/2/answer.csv"):
        there, absent = (eve.get(f"/datasets/{name}{tail}") for name in ("village", "nowhere"))
        assert there.status_code == absent.status_code == 404
        assert there.text == absent.text
    for tail in ("/ask", "/download"):
        there, absent = (
            eve.client.post(f"/datasets/{n}{tail}", data={"form-token": token}) for n in ("village", "nowhere")
        )
        assert (there.status_code, there.text) == (absent.status_code, absent.text) == (404, there.text)
    curator.grant("eve", "village")
    for path in ("/datasets/village/receipts/2", "/datasets/village/receipts/2/answer.json"):
        assert eve.get(path).text == eve.get(path.replace("/1", "/7")).text == eve.get("/datasets/none").text
    assert "Receipt 1" not in eve.get("/datasets/village/history").text
    for path in ("/owner", "/owner/accounts/bob", "/owner/accounts/bob/revoke"):
        assert eve.get(path).status_code == 404


def test_a_question_is_charged_once(bob: Visitor, curator: Curator) -> None:
    asked = bob.ask()
    assert (asked.status_code, asked.headers["location"]) == (303, "/datasets/village/receipts/2")
    assert bob.ask().headers["location"] == "/datasets/village/receipts/2"  # the same form again
    assert bob.ask(form="d" * 32).status_code == 200  # another: explained as free, and told
    fields = {"way": "sql", "sql": "SELECT count(*) AS n FROM village", "epsilon": "0.1", "form": "b" * 32}
    again = [bob.post("/datasets/village/ask", step="pay", seen="0.1 0", **fields) for _ in range(3)]
    assert [a.headers["location"] for a in again] == ["/datasets/village/receipts/3"] * 3  # the same form, sent thrice
    assert curator.ledger.length("village") == 2
    free = bob.post("/datasets/village/ask", step="pay", seen="0.1 0", **{**fields, "form": "c" * 32})
    assert free.status_code == 200
    assert "This cost nothing" in free.text
    other = bob.post("/datasets/village/ask", step="pay", seen="0.2 0", **{**fields, "epsilon": "0.2"})
    assert other.headers["location"] == "/datasets/village/receipts/4"  # another question from the same form
    assert curator.ledger.length("village") == 3


def test_nothing_is_charged_at_a_price_that_was_not_seen(bob: Visitor, curator: Curator) -> None:
    for seen in ("", "0.2 0", "free", "x"):
        page = bob.ask(epsilon="0.5", seen=seen)
        assert page.status_code == 200
        assert "The price has changed" in page.text
        assert 'name="seen" value="0.5 0"' in page.text
    for step in ("explain", "edit", "", "PAY"):
        fields = {"way": "sql", "sql": COUNT, "epsilon": "0.5", "seen": "0.5 0"}
        assert bob.post("/datasets/village/ask", step=step, **fields).status_code == 200
    assert curator.ledger.length("village") == 0


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        ({"sql": "SELECT * FROM village"}, "not supported"),
        ({"sql": "SELECT nonsense"}, "not supported"),
        ({"sql": ""}, "must have 1 to"),
        ({"sql": f"SELECT count(*) AS n FROM village WHERE {HARM} = 1"}, "not supported"),
        ({"epsilon": "-1"}, "epsilon='-1' must be more than 0"),
        ({"epsilon": "nan"}, "must be more than 0"),
        ({"epsilon": "1e999"}, "must be more than 0"),
        ({"epsilon": "a lot"}, "must be a number"),
        ({"pay": "error", "error": ""}, "error='' must be a number"),
        ({"pay": "error", "error": "1e-300"}, "error"),
        ({"delta": "2"}, "at most 0.5"),
        ({"sql": "SELECT shop, count(*) AS n FROM village GROUP BY shop"}, "delta"),
    ],
)
def test_refusals_are_polite_and_free(bob: Visitor, curator: Curator, fields: dict[str, str], sentence: str) -> None:
    for step in ("explain", "pay"):
        given = {"way": "sql", "sql": COUNT, "epsilon": "0.5", "seen": "0.5 0", **fields}
        page = bob.post("/datasets/village/ask", step=step, **given)
        assert page.status_code in (200, 422)
        assert sentence in html.unescape(page.text)
        assert HARM not in page.text
    assert curator.ledger.length("village") == 0


def test_running_out_is_told_politely_and_a_raised_share_helps(bob: Visitor, ada: Visitor, curator: Curator) -> None:
    assert bob.ask(epsilon="0.9").status_code == 303
    refused = bob.ask("SELECT count(*) AS n FROM village", epsilon="0.3")
    assert refused.status_code == 402
    assert "ε = 0.1 now: that is what is left of your own share" in refused.text
    assert curator.ledger.length("village") == 1
    assert bob.ask(epsilon="0.9", form="b" * 32).status_code == 200  # asked before: free, though nothing else would fit
    fields = {"step": "cap", "epsilon": "2", "delta": "1e-6"}
    changed = ada.post("/owner/accounts/bob/datasets/village", at="/owner/accounts/bob", **fields)
    assert changed.status_code == 303
    assert bob.ask("SELECT count(*) AS n FROM village", epsilon="0.3").status_code == 303
    assert "1.2" in bob.get("/datasets/village").text


def test_a_failed_question_is_resumed_not_charged_again(
    bob: Visitor, curator: Curator, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = curator.tables["village"]._engine
    with monkeypatch.context() as broken:
        broken.setattr(type(engine), "compute", lambda *_: 1 / 0)
        failed = bob.ask()
    assert failed.status_code == 503
    assert "not charged a second time" in failed.text
    assert "ZeroDivision" not in failed.text
    assert "no answer was stored" in bob.get("/datasets/village/receipts/2").text
    assert bob.get("/datasets/village/receipts/2/answer.csv").status_code == 404
    assert bob.ask().headers["location"] == "/datasets/village/receipts/2"
    assert curator.ledger.length("village") == 1
    assert "Estimate" in bob.get("/datasets/village/receipts/2").text


def test_fresh_answers_leave_on_the_mark(tmp_path: Path) -> None:
    app = application(tmp_path, "answer_every = 1.0")
    curator: Curator = app.state.curator
    token = curator.accounts.add("bob", "analyst")
    curator.grant("bob", "village")
    bob = Visitor(app, token)
    fields = {"way": "sql", "sql": COUNT, "epsilon": "0.5", "form": "a" * 32, "seen": "0.5 0", "step": "pay"}
    data = {"form-token": bob.token("/"), **fields}
    began = time.monotonic()
    assert bob.client.post("/datasets/village/ask", data=data).status_code == 303
    assert time.monotonic() - began >= 1
    began = time.monotonic()
    assert bob.client.post("/datasets/village/ask", data=data).status_code == 303  # told again: nothing to hide
    quick = time.monotonic() - began
    curator.close()
    close_sessions(app)
    assert quick < 1


def test_receipts_and_files(bob: Visitor, ada: Visitor, curator: Curator) -> None:
    bob.ask("SELECT ward, count(*) AS n, avg(age) AS age FROM village GROUP BY ward")
    page = bob.get("/datasets/village/receipts/2").text
    entry = curator.ledger.receipt("village", 2, "bob")[0]
    for words in (entry.digest, entry.key, "ε = 0.5", "add-remove", "one person", "e<sup>ε</sup> = 1.65"):
        assert words in page
    answer = bob.get("/datasets/village/receipts/2/answer.csv")
    assert answer.headers["content-disposition"] == 'attachment; filename="village-2.csv"'
    rows = list(csv.DictReader(io.StringIO(answer.text)))
    assert [r["ward"] for r in rows] == ["north", "south", "west"]
    assert all(float(r["n_low"]) <= float(r["n"]) <= float(r["n_high"]) for r in rows)
    stored = bob.get("/datasets/village/receipts/2/answer.json")
    assert stored.json()["receipt"]["epsilon"] == 0.5
    assert bob.get("/datasets/village/receipts/2/answer.html").status_code == 404
    assert bob.get("/datasets/village/receipts/0").status_code == 404
    assert bob.get("/datasets/village/receipts/x").status_code == 404
    asked = {"way": "sql", "sql": "SELECT ward, count(*) AS n, avg(age) AS age FROM village GROUP BY ward"}
    again = bob.post("/datasets/village/download", epsilon="0.5", kind="csv", **asked)
    assert again.text == answer.text
    assert bob.post("/datasets/village/download", epsilon="0.4", kind="csv", **asked).status_code == 404
    assert curator.ledger.length("village") == 1
    assert "bob" in ada.get("/datasets/village/history").text
    ada.ask("SELECT count(*) AS n FROM village", epsilon="0.3")
    assert "Receipt 3" not in bob.get("/datasets/village/history").text
    assert "0.8" in bob.get("/datasets/village").text  # the total, though not whose


def test_history_is_paged(bob: Visitor, curator: Curator) -> None:
    for k in range(27):
        loss, question = hb.PureDP(0.01), json.dumps({"sql": f"SELECT {k}"})
        curator.ledger.charge("village", "bob", key=f"number-{k}", question=question, loss=loss)
    newest = bob.get("/datasets/village/history").text
    assert re.findall(r"Receipt (\d+)<", newest) == [str(n) for n in range(28, 3, -1)]
    older = re.search(r'href="([^"]*before=\d+)"', newest)[1]
    assert re.findall(r"Receipt (\d+)<", bob.get(older).text) == ["3", "2"]
    assert bob.get("/datasets/village/history?before=x").status_code == 404


def test_the_builder_writes_sql(curator: Curator, bob: Visitor) -> None:
    village = curator.datasets["village"]
    choices = {"want-1": "count", "want-2": "avg age", "group-1": "ward", "group-2": "vote"}
    condition = {"where-1": "age", "is-1": ">=", "value-1": "18", "where-2": "ward", "is-2": "<>", "value-2": "NORTH"}
    assert building.built(village, {**choices, **condition}) == (
        "SELECT ward, vote, count(*) AS n, avg(age) AS avg_age\nFROM village\n"
        "WHERE age >= 18 AND ward <> 'north'\nGROUP BY ward, vote"
    )
    odd = curator.datasets["odd"]
    quoted = {"want-1": "count", "where-1": "ward", "value-1": HARM}
    assert building.built(odd, quoted).endswith(f"WHERE ward = '{HARM}'")
    for wrong in (
        {},
        {"want-1": "count(*); DROP TABLE x"},
        {**choices, "where-1": "age", "is-1": "OR 1=1", "value-1": "1"},
        {**choices, "where-1": "age", "value-1": "1 OR 1=1"},
        {**choices, "where-1": "ward", "value-1": "x' OR 'a'='a"},
    ):
        with pytest.raises(ParameterError):
            building.built(village, wrong)
    key = {**choices, "where-1": "shop", "value-1": "x' OR 'a'='a"}
    assert "WHERE shop = 'x'' OR ''a''=''a'" in building.built(village, key)
    for option in building.wanted(village):
        page = bob.post("/datasets/village/ask", step="explain", epsilon="0.1", **{"want-1": option.value})
        assert page.status_code == 200, option
    edited = bob.post("/datasets/village/ask", step="edit", epsilon="0.1", **choices)
    assert "SELECT ward, vote, count(*) AS n, avg(age) AS avg_age" in edited.text
    assert '<textarea id="sql"' in edited.text


def test_examples_can_be_asked(curator: Curator, bob: Visitor) -> None:
    for name, dataset in curator.datasets.items():
        for n, (_, sql) in enumerate(building.examples(dataset)):
            page = bob.get(f"/datasets/{name}/ask?way=sql&example={n}")
            assert page.status_code == 200
            assert html.escape(sql.splitlines()[0]) in page.text.replace("&#34;", "&quot;")


def test_a_wanted_error_finds_its_price(bob: Visitor) -> None:
    fields = {"way": "sql", "sql": "SELECT count(*) AS n FROM village", "pay": "error", "error": "10", "epsilon": ""}
    page = bob.post("/datasets/village/ask", step="explain", **fields)
    price = float(re.search(r'name="seen" value="([0-9.]+) 0"', page.text)[1])
    assert 0.25 < price < 0.4
    assert bob.ask(**fields).status_code == 303


def test_hostile_names_are_only_text(bob: Visitor, ada: Visitor, curator: Curator) -> None:
    answer = bob.ask("SELECT ward, count(*) AS n FROM odd GROUP BY ward", "odd")
    pages = [bob.get(p) for p in ("/", "/datasets/odd", "/datasets/odd/ask", "/datasets/odd/history")]
    pages += [bob.get(answer.headers["location"]), ada.get("/owner"), ada.get("/owner/accounts/bob")]
    pages.append(bob.post("/datasets/odd/ask", step="explain", way="sql", sql=f"SELECT {HARM}", epsilon=HARM))
    pages.append(ada.post("/owner/accounts", name=HARM, role="analyst"))
    for page in pages:
        assert "<img" not in page.text
        assert "<script>" not in page.text
        assert "alert(1)" in page.text
    assert len(curator.accounts.everybody()) == 2
    cells = telling.table(curator.ledger.receipt("odd", 1, "bob")[1])
    assert HARM.replace('"', '""') in cells


def test_failures_are_pages_without_a_word_of_why(bob: Visitor, curator: Curator, monkeypatch) -> None:
    def broken(*_: object) -> None:
        raise RuntimeError("a secret")

    monkeypatch.setattr(curator, "visible", broken)
    failed = bob.get("/datasets")
    assert failed.status_code == 503
    assert failed.headers["content-type"] == "text/html; charset=utf-8"
    assert UNAVAILABLE[1:] in failed.text
    assert "secret" not in failed.text
    for path, status in (("/nowhere", 404), ("/v1/nowhere", 404), ("/datasets/village/download", 405)):
        answer = bob.get(path)
        assert answer.status_code == status
        assert ("<h1>" in answer.text) is not path.startswith("/v1")
