"""The pages without a browser: headers, cookies, form tokens, sign-in, and what is nobody's to see."""

import re
from collections.abc import Iterator
from decimal import Decimal
from fractions import Fraction
from pathlib import Path

import pytest
from browser.site import application
from fastapi import FastAPI
from fastapi.testclient import TestClient

import hubbub as hb
from hubbub.curator.guarding import HEADERS
from hubbub.curator.service import Curator
from hubbub.curator.web.attempts import Attempts
from hubbub.curator.web.layout import HERE, close_sessions

ASKED = [("Did you vote for the dam?", ()), ("Which ward?", ("north", "south", "hill"))]
LOOPBACK, FAR = "http://127.0.0.1:8000", "https://curator.example"


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
def client(app: FastAPI) -> TestClient:
    return TestClient(app, base_url=FAR, follow_redirects=False)


def form_token(client: TestClient, path: str) -> str:
    found = re.search(r'name="form-token" value="([0-9a-f]{64})"', client.get(path).text)
    assert found
    return found[1]


def sign_in(client: TestClient, token: str, **fields: str) -> object:
    return client.post("/sign-in", data={"form-token": form_token(client, "/sign-in"), "token": token, **fields})


@pytest.fixture
def ada(client: TestClient, curator: Curator) -> TestClient:
    assert sign_in(client, curator.accounts.add("ada", "owner")).status_code == 303
    return client


@pytest.mark.parametrize(
    "path", ["/", "/meaning", "/sign-in", "/surveys", "/s/nothing", "/static/hubbub.css", "/v1/surveys/x", "/nowhere"]
)
def test_every_answer_has_the_headers(client: TestClient, path: str) -> None:
    answer = client.get(path)
    for name, value in HEADERS.items():
        kept = name == "cache-control" and path.startswith("/static/")
        assert answer.headers[name] == ("no-cache" if kept else value)
    policy = answer.headers["content-security-policy"]
    assert policy.startswith("default-src 'none'")
    assert "unsafe" not in policy
    assert "http" not in policy


def test_pages_hold_no_inline_script_or_style_and_name_no_other_host() -> None:
    for path in [*(HERE / "templates").iterdir(), *(HERE / "static").iterdir()]:
        text = path.read_text().replace('xmlns="http://www.w3.org/2000/svg"', "")
        assert "://" not in text, path
        if path.suffix == ".html":
            assert not re.search(
                r"<style|\sstyle=|\son\w+=|<script(?! type=\"module\" src=\"/static/)|\| ?safe(?! if)", text
            ), path
            for form in re.findall(r'<form method="post".*?</form>', text, re.DOTALL):
                assert "form-token" in form or "parts.token(form_token)" in form, path


def test_cookies(app: FastAPI, curator: Curator) -> None:
    token = curator.accounts.add("ada", "owner")
    for address, name, secure in ((FAR, "__Host-hubbub-session", True), (LOOPBACK, "hubbub-session", False)):
        client = TestClient(app, base_url=address, follow_redirects=False)
        said = sign_in(client, token).headers.get_list("set-cookie")
        [session] = [c for c in said if c.startswith(name)]
        parts = {part.strip().lower() for part in session.split(";")[1:]}
        assert {"httponly", "samesite=strict", "path=/"} <= parts
        assert ("secure" in parts) is secure
        assert not any(part.startswith(("domain", "expires", "max-age")) for part in parts)
        page = client.get("/surveys")
        assert page.status_code == 200
        assert page.headers["cache-control"] == "no-store"
    plain = TestClient(app, base_url="http://curator.example", follow_redirects=False)
    assert (
        "Secure" in plain.get("/sign-in").headers["set-cookie"]
    )  # plain http from afar: the cookie will not come back


def test_signing_in_is_generic_and_limited(app: FastAPI, client: TestClient, curator: Curator) -> None:
    token = curator.accounts.add("ada", "owner")
    revoked = curator.accounts.add("bob", "owner")
    curator.accounts.revoke("bob")
    bodies = {
        re.sub("[0-9a-f]{64}", "", sign_in(client, wrong).text) for wrong in ("", "hub_x", revoked, "\u00e9" * 300)
    }
    assert len(bodies) == 1
    assert "revoked" not in bodies.pop()
    app.state.attempts = Attempts(most=2)
    for _ in range(2):
        assert sign_in(client, "hub_x").status_code == 401
    assert sign_in(client, token).status_code == 429  # even with the right one


def test_attempts_are_forgotten_in_time_and_bounded() -> None:
    now = [0.0]
    attempts = Attempts(most=2, window=10, places=3, clock=lambda: now[0])
    attempts.failed("a")
    now[0] = 6
    attempts.failed("a")
    assert not attempts.allowed("a")
    now[0] = 11
    assert attempts.allowed("a")
    for place in "bcd":
        attempts.failed(place)
    assert len(attempts._failures) == 3


@pytest.mark.parametrize(
    "to", ["https://evil.example", "//evil.example", "/\\evil.example", "\\\\evil", "/a\nb", "evil", "/é"]
)
def test_signing_in_leads_nowhere_else(client: TestClient, curator: Curator, to: str) -> None:
    assert sign_in(client, curator.accounts.add("ada", "owner"), to=to).headers["location"] == "/"


def test_signing_in_leads_back(client: TestClient, curator: Curator) -> None:
    assert client.get("/surveys/new").headers["location"] == "/sign-in?to=/surveys/new"
    token = curator.accounts.add("ada", "owner")
    assert sign_in(client, token, to="/surveys/new").headers["location"] == "/surveys/new"
    assert client.get("/sign-in?to=/surveys").headers["location"] == "/surveys"


def test_forms_need_their_token(ada: TestClient, app: FastAPI, curator: Curator) -> None:
    survey = curator.surveys.create("ada", "Dam", ASKED, epsilon=Decimal(1))
    good = form_token(ada, f"/surveys/{survey.id}")
    other = TestClient(app, base_url=FAR, follow_redirects=False)
    foreign = form_token(other, "/sign-in")
    paths = [f"/surveys/{survey.id}/close", f"/surveys/{survey.id}/invitations", "/surveys/new", "/sign-out"]
    for path in paths:
        for wrong in ({}, {"form-token": ""}, {"form-token": foreign}, {"form-token": good[:-1]}, {"form-token": "é"}):
            assert ada.post(path, data=wrong).status_code == 403
        for site in ("cross-site", "same-site"):
            assert ada.post(path, data={"form-token": good}, headers={"sec-fetch-site": site}).status_code == 403
    assert curator.surveys.find(survey.id).open
    assert ada.post(paths[0], data={"form-token": good}).status_code == 303
    assert not curator.surveys.find(survey.id).open
    assert other.post("/sign-in", data={"token": "x"}).status_code == 403


def test_sign_out_rotation_and_revocation_end_the_session(ada: TestClient, curator: Curator) -> None:
    cookie = ada.cookies["__Host-hubbub-session"]
    assert ada.post("/sign-out", data={"form-token": form_token(ada, "/")}).status_code == 303
    assert "__Host-hubbub-session" not in ada.cookies
    ada.cookies.set("__Host-hubbub-session", cookie)
    assert ada.get("/surveys").status_code == 303
    ada.cookies.clear()
    token = curator.accounts.rotate("ada")
    sign_in(ada, token)
    assert ada.get("/surveys").status_code == 200
    curator.accounts.rotate("ada")
    assert ada.get("/surveys").status_code == 303


def test_what_is_somebody_elses_looks_like_nothing(ada: TestClient, curator: Curator) -> None:
    theirs = curator.surveys.create("eve", "Dam", ASKED, epsilon=Decimal(1), invited=True)
    token = form_token(ada, "/")
    for method, ending in (("get", ""), ("post", "/close"), ("post", "/invitations")):
        data = {"data": {"form-token": token, "people": "3"}} if method == "post" else {}
        pages = [getattr(ada, method)(f"/surveys/{name}{ending}", **data) for name in (theirs.id, "a" * 26, "x")]
        assert {(p.status_code, p.text) for p in pages} == {(404, pages[0].text)}
    assert curator.surveys.find(theirs.id).open
    bearer = {"authorization": f"Bearer {curator.accounts.rotate('ada')}"}
    answers = [ada.get(f"/v1/surveys/{name}/estimates", headers=bearer) for name in (theirs.id, "a" * 26, "x")]
    assert {(a.status_code, a.text) for a in answers} == {(404, answers[0].text)}


def test_an_owner_plans_and_opens_a_survey(ada: TestClient, curator: Curator) -> None:
    fields = {
        "form-token": form_token(ada, "/surveys/new"),
        "title": "<script>alert(1)</script>",
        "epsilon": "1.5",
        "error": "0.05",
        "invited": "yes",
        "question-1": "Yes or no?",
        "weight-1": "2",
        "question-3": "Which?",
        "options-3": "a\r\nb\r\n\r\nc",
        "weight-3": "1",
        "step": "plan",
    }
    planned = ada.post("/surveys/new", data=fields)
    assert planned.status_code == 200
    assert "<script>alert" not in planned.text
    assert (
        f"{hb.RandomizedResponse(epsilon=0.5, categories=3).sample_size(0.05, 0.05):,}".replace(",", "\u202f")
        in planned.text
    )
    assert curator.surveys.of_owner("ada") == []
    for name, wrong in (
        ("epsilon", "x"),
        ("epsilon", "-1"),
        ("epsilon", "1e999999999"),
        ("epsilon", "nan"),
        ("error", "1e-8"),
        ("error", "2"),
        ("weight-1", ""),
        ("title", ""),
        ("options-3", "a"),
        ("question-1", "x" * 400),
    ):
        refused = ada.post("/surveys/new", data=fields | {name: wrong})
        assert refused.status_code == 422, name
        assert 'role="alert"' in refused.text
    opened = ada.post("/surveys/new", data=fields | {"step": "open"})
    [survey] = curator.surveys.of_owner("ada")
    assert opened.headers["location"] == f"/surveys/{survey.id}"
    assert [q.epsilon for q in survey.questions] == [Decimal(1), Decimal("0.5")]
    assert survey.invited
    token = form_token(ada, f"/surveys/{survey.id}")
    codes = re.findall(
        "<li>([a-z2-7]{20})</li>",
        ada.post(f"/surveys/{survey.id}/invitations", data={"form-token": token, "people": "3"}).text,
    )
    assert len(set(codes)) == 3
    assert codes[0] not in ada.get(f"/surveys/{survey.id}").text
    for people in ("0", "-1", "x", "100000", "1e400", ""):
        page = ada.post(f"/surveys/{survey.id}/invitations", data={"form-token": token, "people": people})
        assert page.status_code == 422


def test_a_program_answers_as_a_browser_does(client: TestClient, curator: Curator) -> None:
    token = curator.accounts.add("ada", "owner")
    survey = curator.surveys.create("ada", "Dam", ASKED, epsilon=Decimal(6), introduction="Hello.")
    asked = client.get(f"/v1/surveys/{survey.id}").json()
    assert (asked["epsilon"], asked["neighbours"], asked["open"], asked["invited"]) == ("6", "replace", True, False)
    for n in range(30):
        mechanisms = [
            hb.RandomizedResponse(epsilon=Fraction(q["epsilon"]), categories=len(q["options"]))
            for q in asked["questions"]
        ]
        body = {"submission": f"{n:032x}", "reports": [m.release(1) for m in mechanisms]}
        assert client.post(f"/v1/surveys/{survey.id}/reports", json=body).json() == {"counted": True}
        assert client.post(f"/v1/surveys/{survey.id}/reports", json=body).json() == {"counted": False}
    bearer = {"authorization": f"Bearer {token}"}
    said = client.get(f"/v1/surveys/{survey.id}/estimates", headers=bearer).json()
    assert (said["epsilon"], said["neighbours"]) == (6.0, "replace")
    assert hb.Loss.from_json(said["loss"]) == survey.loss
    assert [q["reports"] for q in said["questions"]] == [30, 30]
    for question, result in zip(said["questions"], curator.surveys.results(survey.id), strict=True):
        assert [tuple(s.values()) for s in question["shares"]] == result.rows()
    assert client.get(f"/v1/surveys/{survey.id}/estimates").status_code == 404


def test_malformed_reports_are_refused(client: TestClient, curator: Curator) -> None:
    survey = curator.surveys.create("ada", "Dam", ASKED, epsilon=Decimal(6))
    invited = curator.surveys.create("ada", "Dam", ASKED, epsilon=Decimal(6), invited=True)
    path, good = f"/v1/surveys/{survey.id}/reports", {"submission": "0" * 32, "reports": [0, 0]}
    for change in (
        {"reports": [0]},
        {"reports": [0, 3]},
        {"reports": [0, -1]},
        {"reports": [0, 1.0]},
        {"reports": [0, True]},
        {"reports": [0, "1"]},
        {"reports": [0, None]},
        {"reports": [0, 10**400]},
        {"reports": "00"},
        {"submission": "0" * 31},
        {"submission": "0" * 32 + "\n"},
        {"submission": None},
        {"invitation": "x" * 101},
        {"answer": 1},
    ):
        assert client.post(path, json=good | change).status_code == 422, change
    for body in (b"", b"[]", b"{", b"\xff", b'{"submission": "\\ud800", "reports": [0, 0]}'):
        assert client.post(path, content=body, headers={"content-type": "application/json"}).status_code in (400, 422)
    assert curator.surveys.results(survey.id)[0].reports == 0
    for name in ("x", "a" * 26, "%00", "\u00e9"):
        assert client.post(f"/v1/surveys/{name}/reports", json=good).status_code == 404
    refused = client.post(f"/v1/surveys/{invited.id}/reports", json=good | {"invitation": "\u00e9"})
    assert refused.status_code == 403
    curator.surveys.close_survey(survey.id)
    assert client.post(path, json=good).status_code == 409


def test_links_are_seen_by_whom_they_are_for(client: TestClient, curator: Curator) -> None:
    def links() -> list[str]:
        return re.findall(r'<li><a href="([^"]+)"', client.get("/").text)

    assert links() == ["/attack", "/meaning"]
    sign_in(client, curator.accounts.add("bob", "analyst"))
    assert links() == ["/datasets", "/attack", "/meaning"]
    client.cookies.clear()
    sign_in(client, curator.accounts.add("ada", "owner"))
    assert links() == ["/datasets", "/owner", "/surveys", "/attack", "/meaning"]


@pytest.mark.parametrize(
    "query", ["?epsilon=nan&delta=inf&prior=x&people=", "?epsilon=1e999&prior=-3&people=0.5&delta=-1"]
)
def test_the_meaning_page_takes_anything(client: TestClient, query: str) -> None:
    assert client.get(f"/meaning{query}").status_code == 200
