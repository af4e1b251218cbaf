"""The server over real HTTP: who sees what, what is charged, what is refused and in which words."""

import io
import json
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from curator.village import Served, configured, served

import hubbub as hb
from hubbub.curator.chain import LONGEST
from hubbub.curator.guarding import Log
from hubbub.curator.service import Curator
from hubbub.errors import EngineFailure, NotOwner, NotSignedIn, QueryRefused, UnknownDataset

COUNT = "SELECT ward, count(*) AS n FROM village GROUP BY ward"


@pytest.fixture
def village(tmp_path: Path) -> Iterator[Served]:
    with served(configured(tmp_path), Log(io.StringIO())) as found:
        yield found


def call(village: Served, method: str, path: str, token: str | None = "", **options: Any) -> httpx.Response:
    key = village.analyst if token == "" else token
    headers = {**options.pop("headers", {}), **({"Authorization": f"Bearer {key}".encode()} if key else {})}
    return httpx.request(method, village.address + path, headers=headers, timeout=30, **options)


def ask(village: Served, body: dict[str, Any], key: str | None = None, token: str = "") -> httpx.Response:
    headers = {"Idempotency-Key": key} if key else {}
    return call(village, "POST", "/v1/datasets/village/query", token, json=body, headers=headers)


def test_a_question_is_charged_once_and_told_to_all_for_nothing(village: Served) -> None:
    first = ask(village, {"sql": COUNT, "epsilon": 0.5}, "first-key")
    assert first.status_code == 200, first.text
    told = first.json()
    assert told["entry"] == 1
    assert told["answer"]["columns"]["ward"] == ["north", "south", "west"]
    again = ask(village, {"sql": COUNT, "epsilon": 0.5}, "first-key")
    assert again.json() == told
    other = ask(village, {"sql": "select ward,count(*) as n from village group by ward", "epsilon": 0.5}, "other-key")
    assert (other.json()["answer"], other.json()["entry"]) == (told["answer"], None)
    bob = village.curator.accounts.add("bob", "analyst")
    village.curator.grant("bob", "village")
    assert ask(village, {"sql": COUNT, "epsilon": 0.5}, token=bob).json()["answer"] == told["answer"]
    assert ask(village, {"sql": COUNT, "epsilon": 0.25}, "first-key").status_code == 409
    left = call(village, "GET", "/v1/datasets/village/budget").json()
    assert (left["entries"], left["remaining"]) == (1, 3.5)


def test_the_budget_ends_politely_and_an_owner_sets_caps(village: Served) -> None:
    refused = ask(village, {"sql": COUNT, "epsilon": 5})
    assert refused.status_code == 402
    assert refused.json()["fields"]["remaining"] == 4
    path = "/v1/accounts/ann/datasets/village/cap"
    assert call(village, "PUT", path, json={"epsilon": 1}).status_code == 403
    assert call(village, "PUT", path, village.owner, json={"epsilon": 1}).status_code == 200
    assert ask(village, {"sql": COUNT, "epsilon": 2}).status_code == 402
    assert call(village, "PUT", path, village.owner, json={"epsilon": 3}).status_code == 200
    assert ask(village, {"sql": COUNT, "epsilon": 2}).status_code == 200
    assert call(village, "GET", "/v1/datasets/village/budget").json()["yours"] == pytest.approx(1)
    assert call(village, "PUT", path.replace("ann", "nobody"), village.owner, json={"epsilon": 1}).status_code == 422


def test_what_is_absent_and_what_is_forbidden_look_the_same(village: Served) -> None:
    stranger = village.curator.accounts.add("eve", "analyst")
    ask(village, {"sql": COUNT, "epsilon": 0.5})
    for method, tail, body in [
        ("GET", "", None),
        ("GET", "/budget", None),
        ("GET", "/history", None),
        ("GET", "/receipts/1", None),
        ("POST", "/explain", {"sql": COUNT, "epsilon": 1}),
        ("POST", "/query", {"sql": COUNT, "epsilon": 1}),
    ]:
        there = call(village, method, f"/v1/datasets/village{tail}", stranger, json=body)
        absent = call(village, method, f"/v1/datasets/nowhere{tail}", stranger, json=body)
        assert there.status_code == absent.status_code == 404
        assert there.text.replace("village", "nowhere") == absent.text
        assert _names(there) == _names(absent)
    village.curator.grant("eve", "village")
    mine, none = (call(village, "GET", f"/v1/datasets/village/receipts/{n}", stranger) for n in (1, 9))
    assert mine.status_code == none.status_code == 404
    assert mine.text.replace("entry 1", "entry 9") == none.text
    assert call(village, "GET", "/v1/datasets/village/history", stranger).json() == []
    assert len(call(village, "GET", "/v1/datasets/village/history", village.owner).json()) == 1


def _names(response: httpx.Response) -> list[str]:
    return [name for name, _ in response.headers.multi_items()]


@pytest.mark.parametrize("token", [None, "hub_nobody", "x" * 300, "é"])
def test_no_valid_token_no_word(village: Served, token: str | None) -> None:
    for path in ("/v1/me", "/v1/datasets/village", "/v1/datasets/nowhere", "/v1/accounts", "/metrics"):
        response = call(village, "GET", path, token)
        assert response.status_code == 401
        assert response.headers["WWW-Authenticate"] == "Bearer"
        assert response.json()["error"] == "not_signed_in"


def test_analysts_cannot_say_what_is_the_owners_to_say(village: Served) -> None:
    for extra in ("sensitivity", "spent", "user", "n", "rate", "unit", "max_rows", "budget", "neighbours"):
        refused = ask(village, {"sql": COUNT, "epsilon": 0.5, extra: 1})
        assert refused.status_code == 422
        assert extra in refused.json()["message"]
    for path, body in [
        ("/v1/accounts", {"name": "x"}),
        ("/v1/accounts/ann/token", {}),
        ("/v1/datasets/village/verify", None),
    ]:
        assert call(village, "POST", path, json=body).status_code == 403
    assert call(village, "PUT", "/v1/accounts/ann/datasets/village").status_code == 403
    assert call(village, "DELETE", "/v1/accounts/olga/token").status_code == 403
    assert call(village, "GET", "/v1/datasets/village/budget").json()["entries"] == 0


def test_bad_requests_get_a_sentence_and_cost_nothing(village: Served) -> None:
    bodies: list[Any] = [
        {},
        {"sql": COUNT},
        {"sql": COUNT, "epsilon": -1},
        {"sql": COUNT, "epsilon": 1e300},
        {"sql": COUNT, "epsilon": "a lot"},
        {"sql": COUNT, "epsilon": 0.5, "aggregates": {"n": {"function": "count"}}},
        {"aggregates": {"n": {"function": "drop"}}, "epsilon": 0.5},
        {"aggregates": {"n": {"function": "mean", "of": "salary"}}, "epsilon": 0.5},
        {"sql": "DROP TABLE village", "epsilon": 0.5},
        {"sql": "SELECT shop, count(*) FROM village GROUP BY shop", "epsilon": 0.5},
        {"sql": "x" * 30_000, "epsilon": 0.5},
        [],
        "SELECT",
    ]
    for body in bodies:
        response = ask(village, body)
        assert response.status_code == 422, (body, response.text)
        assert response.json()["message"].endswith(".")
    raw = {"Content-Type": "application/json"}
    for content, status in [(b"{", 400), (b'{"sql": "\xff"}', 400), (b"[" * 60_000, 400), (b"x" * 70_000, 413)]:
        found = call(village, "POST", "/v1/datasets/village/query", content=content, headers=raw)
        assert found.status_code == status, (content[:10], found.text)
    for key in ("short", "é" * 10, "x" * 200):
        headers = {"Idempotency-Key": key.encode()}
        assert (
            call(village, "POST", "/v1/datasets/village/query", json={"sql": COUNT, "epsilon": 0.5}, headers=headers)
        ).status_code == 422
    assert call(village, "GET", "/v1/datasets/village/budget").json()["entries"] == 0


def test_a_failure_after_the_charge_is_one_sentence_and_resumes(village: Served, monkeypatch: Any) -> None:
    table = village.curator.tables["village"]
    compute = table._engine.compute

    def broken(*_: Any) -> Any:
        raise RuntimeError("row 17: Ada, 42")

    monkeypatch.setattr(table._engine, "compute", broken)
    failed = ask(village, {"sql": COUNT, "epsilon": 0.5}, "one-key-for-it")
    assert (failed.status_code, failed.json()["error"]) == (503, "engine_failure")
    assert "Ada" not in failed.text
    monkeypatch.setattr(table._engine, "compute", compute)
    resumed = ask(village, {"sql": COUNT, "epsilon": 0.5}, "one-key-for-it")
    assert resumed.json()["entry"] == 1
    assert call(village, "GET", "/v1/datasets/village/budget").json()["entries"] == 1
    kept = call(village, "GET", "/v1/datasets/village/receipts/1").json()
    assert kept["answer"] == resumed.json()["answer"]


@pytest.mark.parametrize("fault", ["shown", "written", "large"])
def test_an_answer_that_cannot_be_shown_is_drawn_once(village: Served, monkeypatch: Any, fault: str) -> None:
    """After noise was drawn, a failure is final: a retry that drew again would tell of the first draw for nothing."""
    drawn = []
    table = village.curator.tables["village"]
    compute = table._engine.compute
    monkeypatch.setattr(table._engine, "compute", lambda *a: drawn.append(1) or compute(*a))
    if fault == "shown":
        monkeypatch.setattr("hubbub.queries.table.release", lambda *_: 1 / 0)
    elif fault == "written":
        monkeypatch.setattr("hubbub.queries.wire.to_json", lambda *_: 1 / 0)
    else:
        monkeypatch.setitem(LONGEST, "body", 100)
    monkeypatch.setattr("hubbub.curator.service._small", lambda _: None)
    replies = [ask(village, {"sql": COUNT, "epsilon": 0.5}, "one-key-for-it") for _ in range(3)]
    assert {(r.status_code, r.text) for r in replies} == {(503, replies[0].text)}
    assert replies[0].json()["error"] == "engine_failure"
    assert len(drawn) == 1
    receipt = call(village, "GET", "/v1/datasets/village/receipts/1").json()
    assert receipt["answer"] is None
    monkeypatch.undo()
    assert ask(village, {"sql": COUNT, "epsilon": 0.5}, "one-key-for-it").status_code == 503
    assert ask(village, {"sql": COUNT, "epsilon": 0.5}, "another-key").json()["entry"] == 2


def test_answers_too_large_to_write_down_are_refused_before_the_charge(village: Served) -> None:
    wide = ", ".join(f"k AS k{i}" for i in range(8))
    case = f"CASE WHEN age < 50 THEN '{'a' * 9000}' ELSE '{'b' * 9000}' END"
    sql = f"SELECT count(*) AS n, {case} AS k, {wide}, age, ward, vote FROM village GROUP BY k, age, ward, vote"
    refused = ask(village, {"sql": sql, "epsilon": 0.01})
    assert (refused.status_code, refused.json()["error"]) == (422, "query_refused")
    assert call(village, "GET", "/v1/datasets/village/budget").json()["entries"] == 0


def test_a_question_that_waits_does_not_stop_the_one_it_waits_for(tmp_path: Path, monkeypatch: Any) -> None:
    with served(configured(tmp_path, server="timeout = 0.5"), Log(io.StringIO())) as village:
        table, stopped = village.curator.tables["village"], []
        monkeypatch.setattr(table._engine, "interrupt", lambda: stopped.append(1))
        with village.curator._busy["village"]:
            waited = ask(village, {"sql": COUNT, "epsilon": 0.5})
        assert waited.status_code == 503
        assert not stopped


def test_too_long_is_stopped_and_stays_charged(tmp_path: Path, monkeypatch: Any) -> None:
    with served(configured(tmp_path, server="timeout = 0.2"), Log(io.StringIO())) as village:
        release = threading.Event()
        table = village.curator.tables["village"]
        stopped = []
        monkeypatch.setattr(table._engine, "compute", lambda *_: release.wait(10))
        monkeypatch.setattr(table._engine, "interrupt", lambda: stopped.append(release.set()))
        late = ask(village, {"sql": COUNT, "epsilon": 0.5})
        assert (late.status_code, late.json()["error"]) == (503, "engine_failure")
        assert stopped
        assert call(village, "GET", "/v1/datasets/village/budget").json()["entries"] == 1


def test_rates_are_limited_for_each_caller(tmp_path: Path) -> None:
    path = configured(tmp_path)
    path.write_text(path.read_text().replace("requests_per_minute = 1000000", "requests_per_minute = 5"))
    with served(path, Log(io.StringIO())) as village:
        found = [call(village, "GET", "/v1/me").status_code for _ in range(7)]
        assert found == [200] * 5 + [429] * 2
        assert call(village, "GET", "/v1/me", village.owner).status_code == 200
        assert httpx.get(village.address + "/health").json() == {"status": "ok"}
        twice = [("Authorization", f"Bearer {village.owner}"), ("Authorization", "Bearer hub_x")]
        assert httpx.get(village.address + "/v1/me", headers=twice).status_code == 400
        odd = [call(village, "GET", "/v1/me", f"hub_{i}").status_code for i in range(60)]
        assert 429 in odd


def test_logs_and_metrics_hold_no_canary(tmp_path: Path) -> None:
    """Rows, tokens, SQL and keys are planted with words that must appear nowhere but where they belong."""
    from curator.village import residents

    frame = residents()
    frame["shop"] = "canary-in-a-row"
    log = io.StringIO()
    with served(configured(tmp_path, frame), Log(log)) as village:
        seen = []
        for body in (
            {"sql": "SELECT count(*) AS n FROM village WHERE ward = 'canary-in-sql'", "epsilon": 0.5},
            {"sql": "SELECT nonsense('canary-in-sql')", "epsilon": 0.5},
            {"sql": "SELECT shop, count(*) FROM village WHERE shop = 'canary-in-sql' GROUP BY shop", "epsilon": 0.5},
            {"sql": "SELECT count(*) FROM canary_in_sql", "epsilon": 9},
        ):
            seen.append(ask(village, body, "canary-in-a-key"))
        seen.append(call(village, "GET", "/v1/canary-in-a-path?canary-in-a-query=1"))
        metrics = call(village, "GET", "/metrics", village.owner).text
        bodies = "".join(r.text for r in seen)
        assert "canary-in-a-row" not in bodies
        for secret in ("canary", village.analyst, village.owner):
            assert secret not in log.getvalue()
            assert secret not in metrics
        assert village.analyst not in bodies
        for line in log.getvalue().splitlines():
            assert set(json.loads(line)) <= {"at", "event", "request", "method", "route", "status", "account", "kind"}


def test_answers_carry_strict_headers(village: Served) -> None:
    for path in ("/v1/me", "/nowhere", "/health"):
        headers = call(village, "GET", path).headers
        assert headers["cache-control"] == "no-store"
        assert headers["x-content-type-options"] == "nosniff"
        assert "frame-ancestors 'none'" in headers["content-security-policy"]
        assert "server" not in headers
        assert "access-control-allow-origin" not in headers
    assert call(village, "OPTIONS", "/v1/me", headers={"Origin": "https://evil.example"}).status_code == 405


def test_the_client_behaves_as_a_local_table(village: Served) -> None:
    client = hb.connect(village.address, village.analyst)
    assert client.tables() == ["village"]
    assert client.me()["name"] == "ann"
    table = client.table("village")
    assert "village" in repr(table)
    assert table.explain(COUNT, epsilon=0.1).epsilon == pytest.approx(0.1)
    assert table.explain(COUNT, epsilon=0.1).error("n") > table.explain(COUNT, epsilon=1).error("n")
    answer = table.sql(COUNT, epsilon=0.5)
    assert answer.to_pandas()["n"].sum() == pytest.approx(600, abs=120)
    low, high = answer.intervals()["n"]
    assert (low < high).all()
    assert answer.receipt.epsilon == 0.5
    grouped = table.where("age >= 18").group_by("ward").agg(n=hb.count(), a=hb.mean("age"))
    assert len(grouped.release(epsilon=0.5)) == 3
    assert grouped.explain(epsilon=0.5).loss.epsilon() == pytest.approx(0.5)
    keyed = table.sql("SELECT shop, count(*) AS n FROM village GROUP BY shop", epsilon=1, delta=1e-6)
    assert set(keyed["shop"]) <= {"baker", "smith"}
    for name in ("count", "mean", "sum", "variance", "median"):
        method = getattr(table, name)
        assert len(method(*([] if name == "count" else ["age"]), epsilon=0.1)) == 1
    assert table.histogram("age", [18, 65], epsilon=0.1)["bin"].tolist() == ["below 18", "18 to 65", "65 up"]
    assert table.count(error=30).value == pytest.approx(600, abs=200)
    assert len(table.history()) == table.budget["entries"]
    assert table.receipt(1)["answer"]["columns"]["ward"] == ["north", "south", "west"]


def test_the_client_raises_what_a_local_table_raises(village: Served) -> None:
    table = hb.connect(village.address, village.analyst).table("village")
    with pytest.raises(hb.BudgetExceeded) as refusal:
        table.count(epsilon=100)
    assert refusal.value.remaining == 4
    with pytest.raises(QueryRefused, match="protected table"):
        table.sql("SELECT count(*) FROM other", epsilon=0.1)
    with pytest.raises(hb.errors.ParameterError, match="delta"):
        table.sql("SELECT shop, count(*) FROM village GROUP BY shop", epsilon=0.1)
    with pytest.raises(hb.errors.ParameterError, match="epsilon"):
        table.count()
    with pytest.raises(hb.errors.ParameterError, match="curator's to keep"):
        table.count(epsilon=0.1, budget=hb.Budget(epsilon=1))
    with pytest.raises(UnknownDataset):
        hb.connect(village.address, village.analyst).table("other/../village")
    with pytest.raises(NotSignedIn):
        hb.connect(village.address, "hub_wrong").tables()
    with pytest.raises(NotOwner):
        hb.connect(village.address, village.analyst)._call("GET", "/v1/accounts")
    with pytest.raises(hb.errors.ParameterError):
        hb.connect("ftp://x", "t")


def test_lost_connections_are_retried_and_charged_once(village: Served, monkeypatch: Any) -> None:
    """The answer is lost on its way three times; the fourth time it arrives, and there is one charge."""
    lost = 0

    class Losing(httpx.HTTPTransport):
        def handle_request(self, request: httpx.Request) -> httpx.Response:
            nonlocal lost
            response = super().handle_request(request)
            if request.method == "POST" and lost < 3:
                response.read()
                lost += 1
                raise httpx.ReadError("gone")
            return response

    monkeypatch.setattr("hubbub.curator.client.time.sleep", lambda _: None)
    client = hb.curator.Client(village.address, village.analyst, transport=Losing())
    assert client.table("village").count(epsilon=0.5).value == pytest.approx(600, abs=60)
    assert lost == 3
    assert client.table("village").budget["entries"] == 1
    with pytest.raises(hb.errors.Unavailable):
        hb.connect("http://127.0.0.1:9", "x").tables()


def test_an_engine_failure_reaches_the_client(village: Served, monkeypatch: Any) -> None:
    monkeypatch.setattr("hubbub.curator.client.time.sleep", lambda _: None)
    monkeypatch.setattr(village.curator.tables["village"]._engine, "compute", lambda *_: 1 / 0)
    with pytest.raises(EngineFailure):
        hb.connect(village.address, village.analyst).table("village").count(epsilon=0.5)
    assert isinstance(village.curator, Curator)
