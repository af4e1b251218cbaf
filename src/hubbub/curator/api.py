"""The HTTP interface: what may come in, what goes out, and one constant sentence for every class of error."""

from __future__ import annotations

import datetime as dt
import json
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Header, Path, Query, Request
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer

from hubbub.curator.accounts import Account
from hubbub.curator.bodies import (
    ACCOUNT,
    Answered,
    Cap,
    Checked,
    Done,
    Explained,
    Left,
    Line,
    Me,
    NewAccount,
    Problem,
    Public,
    Question,
    Raise,
    Receipt,
    Renewal,
    Summary,
    Token,
)
from hubbub.curator.service import Curator
from hubbub.curator.shown import described, line
from hubbub.curator.timing import on_time
from hubbub.errors import NotOwner, NotSignedIn, TooManyRequests

router = APIRouter(prefix="/v1", generate_unique_id_function=lambda route: route.name)
NAME = r"^[A-Za-z_][A-Za-z0-9_]{0,63}$"
KEY = r"^[A-Za-z0-9._~-]{8,128}$"

DatasetName = Annotated[str, Path(pattern=NAME, description="A data set.", examples=["village"])]
AccountName = Annotated[str, Path(pattern=ACCOUNT, description="An account.")]


_bearer = HTTPBearer(auto_error=False, description="A token from the owner of the data.")
REFUSALS: dict[int | str, dict[str, Any]] = {
    status: {"model": Problem, "description": words}
    for status, words in {
        400: "Not readable as a request.",
        401: "No valid token.",
        402: "The budget does not allow it; nothing was charged.",
        403: "Only an owner may do this.",
        404: "Not there, or not yours: the two look the same.",
        409: "The key was used for another question.",
        413: "Too large.",
        422: "Refused from public facts; nothing was charged.",
        429: "Too many requests.",
        503: "Not now. Ask again with the same key: it is never charged twice.",
    }.items()
}


def of(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """The refusals a route may answer with."""
    return {s: REFUSALS[s] for s in sorted({400, 401, 413, 429, 503, *statuses})}


def leads(status: int, operation: str, **parameters: str) -> dict[int | str, dict[str, Any]]:
    """A link from an answer to what can be asked of it next, for people and tools that read the schema."""
    links = {operation: {"operationId": operation, "parameters": parameters}}
    return {status: {"description": "Done.", "links": links}}


def curator(request: Request) -> Curator:
    """The curator behind the application."""
    found: Curator = request.app.state.curator
    return found


LEADS_ON = leads(200, "receipt", dataset="$request.path.dataset", number="$response.body#/entry")
The = Annotated[Curator, Depends(curator)]


def signed_in(
    request: Request, the: The, given: Annotated[HTTPAuthorizationCredentials | None, Depends(_bearer)]
) -> Account:
    """Whose request it is, or NotSignedIn."""
    account = the.accounts.of_token(given.credentials) if given is not None else None
    if account is None:
        raise NotSignedIn
    request.state.account = account
    if not request.app.state.rates.allows(account.name):
        raise TooManyRequests(the.config.server.requests_per_minute)
    return account


Someone = Annotated[Account, Depends(signed_in)]


def owner(account: Someone) -> Account:
    """The same, if they are an owner."""
    if account.role != "owner":
        raise NotOwner
    return account


Owner = Annotated[Account, Depends(owner)]


@router.get("/me", responses=of(), tags=["accounts"])
def me(account: Someone, the: The) -> Me:
    """Whose token this is, and which data sets they may ask."""
    expires = None if account.expires is None else account.expires.isoformat()
    names = [d.name for d in the.visible(account)]
    return Me(name=account.name, role=account.role, expires=expires, datasets=names)


@router.get(
    "/datasets", responses={**of(), **leads(200, "dataset", dataset="$response.body#/0/name")}, tags=["datasets"]
)
def datasets(account: Someone, the: The) -> list[Summary]:
    """The data sets you may see."""
    return [
        Summary(name=d.name, title=d.title, description=d.description, version=d.version) for d in the.visible(account)
    ]


@router.get("/datasets/{dataset}", responses=of(404, 422), tags=["datasets"])
def dataset(dataset: DatasetName, account: Someone, the: The) -> Public:
    """All that is publicly known of a data set."""
    d = the.dataset(account, dataset)
    c = d.schema.contribution
    return Public(
        name=d.name,
        title=d.title,
        description=d.description,
        version=d.version,
        unit=d.schema.unit,
        neighbours=d.schema.neighbours,
        columns={name: described(column) for name, column in d.schema.columns.items()},
        public_tables=sorted(d.public),
        contribution={"groups": c.groups, "rows": c.rows, "total": c.total},
        epsilon=float(d.epsilon),
        delta=float(d.delta),
    )


@router.post("/datasets/{dataset}/explain", responses=of(404, 422), tags=["questions"])
def explain(dataset: DatasetName, question: Question, account: Someone, the: The) -> Explained:
    """What a question would cost and how large its errors would be. Costs nothing and reads no row."""
    return Explained(**json.loads(the.explain(account, dataset, question.asked(), question.price()).to_json()))


@router.post("/datasets/{dataset}/query", responses={**of(402, 404, 409, 422), **LEADS_ON}, tags=["questions"])
async def query(
    dataset: DatasetName,
    question: Question,
    account: Someone,
    the: The,
    key: Annotated[
        str | None, Header(alias="Idempotency-Key", pattern=KEY, description="One for each question; kept on retries.")
    ] = None,
) -> Answered:
    """The private answer to a question, charged once for each key. The same question again costs nothing."""
    told = await on_time(the, account, dataset, question.asked(), question.price(), key)
    return Answered(answer=json.loads(told.answer), key=told.key, entry=told.number)


@router.get("/datasets/{dataset}/history", responses=of(404, 422), tags=["questions"])
def history(
    dataset: DatasetName,
    account: Someone,
    the: The,
    before: Annotated[int | None, Query(ge=1, le=2**31)] = None,
    limit: Annotated[int, Query(ge=1, le=1_000)] = 100,
) -> list[Line]:
    """Your charges, newest first (an owner's: everybody's); ``before`` an entry, for the next page."""
    the.dataset(account, dataset)
    whose = None if account.role == "owner" else account.name
    found = the.ledger.entries(dataset, whose, limit=limit, before=before)
    return [Line(**line(e)) for e in reversed(found)]


@router.get("/datasets/{dataset}/receipts/{number}", responses=of(404, 422), tags=["questions"])
def receipt(dataset: DatasetName, number: Annotated[int, Path(ge=1, le=2**31)], account: Someone, the: The) -> Receipt:
    """One of your charges with its answer."""
    the.dataset(account, dataset)
    entry, answer = the.ledger.receipt(dataset, number, None if account.role == "owner" else account.name)
    return Receipt(**line(entry), answer=None if answer is None else json.loads(answer))


@router.get("/datasets/{dataset}/budget", responses=of(404, 422), tags=["datasets"])
def budget(dataset: DatasetName, account: Someone, the: The) -> Left:
    """What all analysts together may spend, what is spent, and what is left for all and for you."""
    return Left(**the.budget(account, dataset))


@router.put("/datasets/{dataset}/limit", responses=of(403, 404, 422), tags=["datasets"])
def raise_limit(dataset: DatasetName, limit: Raise, me: Owner, the: The) -> Done:
    """Raises what all analysts together may spend. Decide it without looking at answers: then all stays private."""
    the.ledger.raise_limit(the.dataset(me, dataset).name, epsilon=limit.epsilon)
    return Done()


@router.get("/accounts", responses=of(403), tags=["accounts"])
def accounts(_: Owner, the: The) -> list[Me]:
    """Everybody, and the data sets granted to them."""
    return [
        Me(
            name=a.name,
            role=a.role,
            expires=None if a.expires is None else a.expires.isoformat(),
            datasets=the.accounts.granted(a),
        )
        for a in the.accounts.everybody()
    ]


@router.post(
    "/accounts",
    responses={**of(403, 422), **leads(201, "rotate", name="$response.body#/name")},
    status_code=201,
    tags=["accounts"],
)
def add_account(new: NewAccount, _: Owner, the: The) -> Token:
    """Makes an account; its token is shown this once."""
    return Token(name=new.name, token=the.accounts.add(new.name, new.role, valid_for=days(new.days)))


@router.post("/accounts/{name}/token", responses=of(403, 404, 422), status_code=201, tags=["accounts"])
def rotate(name: AccountName, new: Renewal, _: Owner, the: The) -> Token:
    """A new token; the old one is worth nothing from now on."""
    return Token(name=name, token=the.accounts.rotate(name, valid_for=days(new.days)))


@router.delete("/accounts/{name}/token", responses=of(403, 404, 422), tags=["accounts"])
def revoke(name: AccountName, _: Owner, the: The) -> Done:
    """Takes a token away. What was charged stays charged."""
    the.accounts.revoke(name)
    return Done()


@router.put("/accounts/{name}/datasets/{dataset}", responses=of(403, 404, 422), tags=["accounts"])
def grant(name: AccountName, dataset: DatasetName, me: Owner, the: The) -> Done:
    """Lets an analyst ask a data set."""
    the.grant(name, the.dataset(me, dataset).name)
    return Done()


@router.delete("/accounts/{name}/datasets/{dataset}", responses=of(403, 404, 422), tags=["accounts"])
def withdraw(name: AccountName, dataset: DatasetName, me: Owner, the: The) -> Done:
    """Ends a grant."""
    the.accounts.withdraw(name, the.dataset(me, dataset).name)
    return Done()


@router.put("/accounts/{name}/datasets/{dataset}/cap", responses=of(403, 404, 422), tags=["accounts"])
def cap(name: AccountName, dataset: DatasetName, cap: Cap, me: Owner, the: The) -> Done:
    """Sets what one analyst may spend of a data set, all in all, within the limit of all together."""
    the.accounts.known(name)
    the.ledger.cap(the.dataset(me, dataset).name, name, epsilon=cap.epsilon, delta=cap.delta)
    return Done()


@router.post("/datasets/{dataset}/verify", responses=of(403, 404, 422), tags=["datasets"])
def verify(dataset: DatasetName, me: Owner, the: The) -> Checked:
    """Reads the whole chain of charges and adds it up again."""
    return Checked(entries=the.ledger.verify(the.dataset(me, dataset).name))


def days(number: int | None) -> dt.timedelta | None:
    """So many days, or no end."""
    return None if number is None else dt.timedelta(days=number)
