"""The owner's pages: accounts and tokens, who may ask what and how much, and whether the ledger adds up."""

from __future__ import annotations

import datetime as dt
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Request
from starlette.datastructures import FormData
from starlette.responses import RedirectResponse, Response

from hubbub.curator.accounts import Account
from hubbub.curator.config import Dataset
from hubbub.curator.web.cookies import checked_form
from hubbub.curator.web.layout import curator, owner, page, trails
from hubbub.curator.web.numbers import number, whole
from hubbub.curator.web.refusals import Refused
from hubbub.curator.web.standings import share, standing
from hubbub.errors import LedgerBroken, ParameterError

router = APIRouter(prefix="/owner", include_in_schema=False)
MOST_DAYS = 3_650

Owner = Annotated[Account, Depends(owner)]
Form = Annotated[FormData, Depends(checked_form)]


@router.get("")
def overview(request: Request, account: Owner) -> Response:
    """Every data set and everybody."""
    return _overview(request, account)


@router.post("/accounts")
def add(request: Request, account: Owner, form: Form) -> Response:
    """Makes an account and shows its token, this once."""
    name = str(form.get("name", "")).strip()
    try:
        token = curator(request).accounts.add(name, str(form.get("role", "")), valid_for=_days(form))  # type: ignore[arg-type]
    except ParameterError as wrong:
        return _overview(request, account, 422, wrong=str(wrong), given=dict(form))
    return _one(request, name, token=token)


@router.post("/datasets/{dataset}/verify")
def verify(request: Request, account: Owner, dataset: str, _: Form) -> Response:
    """Reads the whole chain of a data set's charges and adds it up again."""
    the = curator(request)
    title = the.dataset(account, dataset).title
    try:
        entries = the.ledger.verify(dataset)
    except LedgerBroken as broken:
        return _overview(request, account, 503, broken=str(broken))
    return _overview(request, account, checked=(title, entries, the.ledger.odometer(dataset)))


@router.get("/accounts/{name}")
def one(request: Request, account: Owner, name: str) -> Response:  # noqa: ARG001
    """One account: its token, and what it may ask."""
    return _one(request, name)


@router.post("/accounts/{name}/token")
def rotate(request: Request, account: Owner, name: str, form: Form) -> Response:  # noqa: ARG001
    """A new token, shown this once; the old one opens nothing any more."""
    _known(request, name)
    try:
        token = curator(request).accounts.rotate(name, valid_for=_days(form))
    except ParameterError as wrong:
        return _one(request, name, 422, wrong=str(wrong))
    return _one(request, name, token=token)


@router.get("/accounts/{name}/revoke")
def revoke_page(request: Request, account: Owner, name: str) -> Response:
    """Asks whether it is meant."""
    return page(request, "owner_revoke.html", found=_known(request, name), own=name == account.name)


@router.post("/accounts/{name}/revoke")
def revoke(request: Request, account: Owner, name: str, form: Form) -> Response:
    """Takes a token away, where the owner has said so; never their own, which would lock them out."""
    _known(request, name)
    if form.get("sure") != "yes" or name == account.name:
        raise Refused(400)
    curator(request).accounts.revoke(name)
    return RedirectResponse(f"/owner/accounts/{name}", 303)


@router.post("/accounts/{name}/datasets/{dataset}")
def change(request: Request, account: Owner, name: str, dataset: str, form: Form) -> Response:
    """Opens a data set to somebody, closes it, or sets what they may spend of it all in all."""
    the = curator(request)
    _known(request, name)
    found = the.dataset(account, dataset)
    step = form.get("step")
    if step == "grant":
        the.grant(name, found.name)
    elif step == "withdraw":
        the.accounts.withdraw(name, found.name)
    elif step == "cap":
        try:
            epsilon = number("epsilon", str(form.get("epsilon", "")), above=0, most=1e6)
            delta = number("delta", str(form.get("delta", "")) or "0", least=0, most=0.5)
            the.ledger.cap(found.name, name, epsilon=epsilon, delta=delta)
        except ParameterError as wrong:
            return _one(request, name, 422, wrong=str(wrong))
    else:
        raise Refused(400)
    return RedirectResponse(f"/owner/accounts/{name}", 303)


def _overview(request: Request, account: Account, status: int = 200, **more: Any) -> Response:
    the = curator(request)
    standings = [standing(the, account, d) for d in the.datasets.values()]
    return page(
        request,
        "owner.html",
        status,
        standings=standings,
        lengths={name: the.ledger.length(name) for name in the.datasets},
        spent={d.name: _spent(request, d) for d in the.datasets.values()},
        everybody=[(a, _state(a), the.accounts.granted(a)) for a in the.accounts.everybody()],
        **{"wrong": "", "broken": "", "checked": None, "given": {}, **more},
    )


def _one(request: Request, name: str, status: int = 200, **more: Any) -> Response:
    the = curator(request)
    found = _known(request, name)
    granted = set(the.accounts.granted(found))
    rows = []
    for d in the.datasets.values():
        cap = the.accounts.caps(d.name).get(name)
        used = _spent(request, d).get(name, 0.0)
        rows.append((d, d.name in granted, None if cap is None else share(cap), used, cap))
    return page(
        request,
        "owner_account.html",
        status,
        found=found,
        state=_state(found),
        rows=rows,
        **{"wrong": "", "token": "", **more},
    )


def _spent(request: Request, dataset: Dataset) -> dict[str, float]:
    with trails(request).of(curator(request).ledger, dataset) as trail:
        return trail.spent()


def _known(request: Request, name: str) -> Account:
    for found in curator(request).accounts.everybody():
        if found.name == name:
            return found
    raise Refused(404)


def _state(account: Account) -> str:
    if account.withdrawn:
        return "withdrawn"
    if account.expires is None:
        return "valid"
    over = account.expires <= dt.datetime.now(dt.UTC)
    return f"{'expired' if over else 'valid until'} {account.expires.date().isoformat()}"


def _days(form: FormData) -> dt.timedelta | None:
    text = str(form.get("days", "")).strip()
    return dt.timedelta(days=whole("days", text, least=1, most=MOST_DAYS)) if text else None
