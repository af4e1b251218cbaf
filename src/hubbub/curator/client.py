"""A curator's tables from afar: the same questions as of a table here, charged once however often they are sent."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from hubbub.errors import (
    BudgetExceeded,
    EngineFailure,
    HubbubError,
    KeyReused,
    MissingExtra,
    NotOwner,
    NotSignedIn,
    ParameterError,
    ParameterTypeError,
    QueryRefused,
    Unavailable,
    UnknownDataset,
)
from hubbub.privacy.families import NoLoss
from hubbub.privacy.loss import Loss
from hubbub.queries.answers import Answer
from hubbub.queries.asking import Asking
from hubbub.queries.questions import Asked, Question

if TYPE_CHECKING:
    import httpx

TRIES = 6
"""How often a request is sent before giving up; waits double from a fifth of a second."""
PATIENCE = 120.0
"""Seconds to wait for an answer."""


def connect(url: str, token: str) -> Client:
    """A client of the curator at a URL, with the token its owner gave you."""
    return Client(url, token)


class Client:
    """Speaks to a curator. Every request may be repeated: questions carry a key, and a key is charged once."""

    def __init__(self, url: str, token: str, *, transport: Any = None) -> None:
        try:
            import httpx
        except ImportError as missing:
            raise MissingExtra("server") from missing
        if not isinstance(url, str) or not url.startswith(("http://", "https://")):
            raise ParameterError("url", url, "must begin with http:// or https://")
        if not isinstance(token, str) or not token.isascii() or not token:
            raise ParameterTypeError("token", "…", "must be a token as the owner gave it")
        headers = {"Authorization": f"Bearer {token}"}
        self._http: httpx.Client = httpx.Client(
            base_url=url, headers=headers, timeout=PATIENCE, transport=transport, trust_env=False
        )

    def tables(self) -> list[str]:
        """The names of the tables you may ask."""
        return [d["name"] for d in self._call("GET", "/v1/datasets")]

    def table(self, name: str) -> RemoteTable:
        """One of them."""
        return RemoteTable(self, self._call("GET", f"/v1/datasets/{quote(name, safe='')}"))

    def me(self) -> dict[str, Any]:
        """Whose token it is."""
        found: dict[str, Any] = self._call("GET", "/v1/me")
        return found

    def close(self) -> None:
        """Ends the connection."""
        self._http.close()

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _call(self, method: str, path: str, body: Any = None, key: str | None = None) -> Any:
        """Sends a request until it is answered; what may be sent again is sent again as it was."""
        import httpx

        headers = {} if key is None else {"Idempotency-Key": key}
        for attempt in range(TRIES):
            if attempt:
                time.sleep(0.1 * 2**attempt)
            try:
                response = self._http.request(method, path, json=body, headers=headers)
            except httpx.TransportError:
                continue
            if response.status_code in (429, 502, 503, 504) and attempt < TRIES - 1:
                continue
            return _read(response)
        raise Unavailable


class RemoteTable(Asking):
    """A table behind a curator. Answers behave as a local table's do; the budget is kept by the curator."""

    def __init__(self, client: Client, public: Mapping[str, Any]) -> None:
        self._client, self.public = client, public
        self.name: str = public["name"]
        self._path = f"/v1/datasets/{quote(self.name, safe='')}"

    def __repr__(self) -> str:
        whose = f"unit {self.public['unit']}" if self.public["unit"] else "every row a person"
        return f"<remote table {self.name} ({whose}; {', '.join(self.public['columns'])})>"

    @property
    def budget(self) -> dict[str, float]:
        """Limits, what is spent, and what is left for all and for you."""
        found: dict[str, float] = self._client._call("GET", f"{self._path}/budget")
        return found

    def history(self, limit: int = 100, before: int | None = None) -> list[dict[str, Any]]:
        """Your charges, newest first."""
        page = f"limit={limit}" + (f"&before={before}" if before is not None else "")
        found: list[dict[str, Any]] = self._client._call("GET", f"{self._path}/history?{page}")
        return found

    def receipt(self, number: int) -> dict[str, Any]:
        """One of your charges, with its answer."""
        found: dict[str, Any] = self._client._call("GET", f"{self._path}/receipts/{int(number)}")
        return found

    def explain(  # type: ignore[override]
        self, question: str | Question[Any], *, epsilon: Any = None, delta: Any = 0.0, **goal: Any
    ) -> Foretold:
        """What a question would cost and how large its errors would be. Costs nothing."""
        asked = Asked(sql=question) if isinstance(question, str) else question.asked
        told = self._client._call("POST", f"{self._path}/explain", _body(asked, epsilon, delta, goal))
        return Foretold(told)

    def _check(self, asked: Asked) -> None:
        """The curator checks, before it charges."""

    def _release(self, asked: Asked, epsilon: Any, delta: Any, budget: Any, note: str, **goal: Any) -> Answer:
        if budget is not None:
            raise ParameterError("budget", "…", "is the curator's to keep", "leave it out")
        key = os.urandom(16).hex()
        told = self._client._call("POST", f"{self._path}/query", _body(asked, epsilon, delta, goal), key)
        answer = Answer.from_json(json.dumps(told["answer"]))
        return replace(answer, receipt=replace(answer.receipt, note=note))


@dataclass(frozen=True)
class Foretold:
    """What a curator says a question would cost, and how good its answer would be."""

    told: Mapping[str, Any]

    @property
    def epsilon(self) -> float:
        """The cost at the question's delta."""
        return float(self.told["epsilon"])

    @property
    def loss(self) -> Loss:
        """The loss that would be charged."""
        return Loss.from_json(json.dumps(self.told["loss"]))

    def error(self, name: str, size: int = 10_000) -> float:
        """The expected half-width of an output's 95 % interval in a group of about this many rows."""
        sizes = self.told["errors"].get(name)
        if not sizes:
            return float("nan")
        nearest = min(sizes, key=lambda s: abs(int(s) - size))
        return float(sizes[nearest])

    def __repr__(self) -> str:
        return str(self.told["text"])


def _body(asked: Asked, epsilon: Any, delta: Any, goal: Mapping[str, Any]) -> dict[str, Any]:
    price = {"epsilon": None if epsilon is None else float(epsilon), "delta": float(delta), **goal}
    return {**asked.to_json(), **price}


def _read(response: httpx.Response) -> Any:
    """What came back, or the error the curator told."""
    try:
        told = response.json()
    except ValueError:
        raise Unavailable from None
    if response.is_success:
        return told
    raise _error(told if isinstance(told, dict) else {})


def _error(told: Mapping[str, Any]) -> HubbubError:
    fields: dict[str, Any] = told.get("fields") or {}
    match told.get("error"):
        case "not_signed_in":
            return NotSignedIn()
        case "not_owner":
            return NotOwner()
        case "budget_exceeded":
            limit = (float(fields["epsilon"]), float(fields["delta"]))
            return BudgetExceeded("the question's", NoLoss("add-remove"), limit, float(fields["remaining"]))
        case "unknown":
            return UnknownDataset(str(told.get("message")))
        case "key_reused":
            return KeyReused("…")
        case "query_refused":
            return QueryRefused(str(fields["what"]), str(fields["remedy"]))
        case "parameter":
            return ParameterError(
                str(fields["name"]), fields["value"], str(fields["requirement"]), str(fields["remedy"])
            )
        case "engine_failure":
            return EngineFailure()
        case "malformed":
            return ParameterError("request", "…", str(told.get("message")))
        case _:
            return Unavailable()
