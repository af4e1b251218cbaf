"""What comes in and goes out over HTTP, as models the published schema is made of."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

from hubbub.curator.service import Price
from hubbub.queries.questions import Asked

ACCOUNT = r"^[A-Za-z0-9][A-Za-z0-9._@-]{0,63}$"
TEXT = 20_000
"""The longest SQL."""
Finite = Annotated[float, Field(allow_inf_nan=False)]


class Strict(BaseModel):
    """Nothing but what is declared is accepted: no analyst sends a sensitivity or a rate."""

    model_config = ConfigDict(extra="forbid")


class Aggregate(Strict):
    """One number wanted of every group."""

    function: str = Field(max_length=40)
    of: str | None = Field(None, max_length=2_000)
    parameters: list[int | Finite] = Field(default_factory=list, max_length=1_000)


class Question(Strict):
    """A question and its price: SQL, or keys, a condition and aggregates; an epsilon, or the error wanted."""

    model_config = ConfigDict(
        extra="forbid",
        json_schema_extra={
            "examples": [
                {"sql": "SELECT ward, count(*) AS n FROM village GROUP BY ward", "epsilon": 0.1},
                {"keys": {"ward": "ward"}, "aggregates": {"age": {"function": "mean", "of": "age"}}, "epsilon": 0.1},
            ]
        },
    )
    sql: str | None = Field(None, max_length=TEXT)
    keys: dict[str, str] = Field(default_factory=dict, max_length=16)
    where: str | None = Field(None, max_length=TEXT)
    aggregates: dict[str, Aggregate] = Field(default_factory=dict, max_length=64)
    epsilon: Annotated[Finite, Field(gt=0, le=1e6)] | None = None
    delta: Annotated[Finite, Field(ge=0, lt=1)] = 0.0
    error: Annotated[Finite, Field(gt=0)] | dict[str, Annotated[Finite, Field(gt=0)]] | None = None
    confidence: Annotated[Finite, Field(gt=0, lt=1)] = 0.95
    group_size: Annotated[int, Field(gt=0, le=10**15)] | None = None

    @model_validator(mode="after")
    def _one_form(self) -> Question:
        if (self.sql is None) == (not self.aggregates):
            raise ValueError("give either sql or aggregates")
        if self.sql is not None and (self.keys or self.where is not None):
            raise ValueError("keys and where belong to aggregates; sql has its own")
        return self

    def asked(self) -> Asked:
        """What it says."""
        if self.sql is not None:
            return Asked(sql=self.sql)
        return Asked.from_json(self.model_dump(include={"keys", "where", "aggregates"}))

    def price(self) -> Price:
        """What it offers."""
        return Price(self.epsilon, self.delta, self.error, self.confidence, self.group_size)


class Problem(BaseModel):
    """What went wrong, in one sentence, with the fields it is made of where there are any."""

    error: str
    message: str
    fields: dict[str, Any] = Field(default_factory=dict)


class Summary(BaseModel):
    """A data set in a list."""

    name: str
    title: str
    description: str
    version: str


class Public(Summary):
    """All that is publicly known of a data set."""

    unit: str | None
    neighbours: str
    columns: dict[str, dict[str, Any]]
    public_tables: list[str]
    contribution: dict[str, int | None]
    epsilon: float
    delta: float


class Explained(BaseModel):
    """What a question would cost, and the expected half-widths of its errors by size of group."""

    epsilon: float
    delta: float
    neighbours: str
    unit: str
    groups: int | None
    loss: dict[str, Any]
    errors: dict[str, dict[str, float]]
    confidence: float
    text: str


class Answered(BaseModel):
    """An answer, the key it can be fetched again with, and its entry in the ledger (none: it cost nothing)."""

    answer: dict[str, Any]
    key: str
    entry: int | None


class Line(BaseModel):
    """An entry of the ledger."""

    number: int
    analyst: str
    key: str
    at: str
    question: dict[str, Any]
    loss: dict[str, Any]
    delta: str
    digest: str


class Receipt(Line):
    """An entry with its answer, if it has been given."""

    answer: dict[str, Any] | None


class Left(BaseModel):
    """The state of a budget: its limit, the pure epsilon that still fits, and what that leaves spent."""

    epsilon: float
    delta: float
    spent: float
    remaining: float
    yours: float
    """What still fits for the account that asks."""
    entries: int


class Me(BaseModel):
    """Whose token this is."""

    name: str
    role: Literal["owner", "analyst"]
    expires: str | None
    datasets: list[str]


class NewAccount(Strict):
    """An account to be made."""

    name: str = Field(pattern=ACCOUNT)
    role: Literal["owner", "analyst"] = "analyst"
    days: Annotated[int, Field(gt=0, le=3_650)] | None = None


class Renewal(Strict):
    """How long a new token is valid."""

    days: Annotated[int, Field(gt=0, le=3_650)] | None = None


class Token(BaseModel):
    """A token. It is shown this once."""

    name: str
    token: str


class Cap(Strict):
    """What one analyst may spend of a data set."""

    epsilon: Annotated[Finite, Field(gt=0, le=1e6)]
    delta: Annotated[Finite, Field(ge=0, lt=1)] = 0.0


class Raise(Strict):
    """A higher limit for a data set."""

    epsilon: Annotated[Finite, Field(gt=0, le=1e6)]


class Done(BaseModel):
    """It is done."""

    done: Literal[True] = True


class Checked(BaseModel):
    """The ledger adds up: so many entries."""

    entries: int
