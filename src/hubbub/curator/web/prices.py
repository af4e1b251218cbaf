"""What a form offers for an answer, and what a question would cost: price and errors before anything is paid."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping
from dataclasses import dataclass

from hubbub.curator.accounts import Account
from hubbub.curator.service import Curator, Price
from hubbub.curator.web.formats import plain
from hubbub.curator.web.numbers import number, whole
from hubbub.curator.web.standings import Standing
from hubbub.queries.explanation import SIZES, Explanation
from hubbub.queries.questions import Asked

LONGEST_SQL = 20_000
DEAREST = 1e6


@dataclass(frozen=True)
class Wanted:
    """A question and its price, as a form put them."""

    sql: str
    price: Price

    @property
    def asked(self) -> Asked:
        """The question."""
        return Asked(sql=self.sql)

    def key(self, form: str) -> str:
        """The key of a charge: of one form and one question, so that sending it twice is charged once."""
        told = "\0".join([form, self.sql, *(str(v) for v in vars(self.price).values())])
        return "page-" + hashlib.sha256(told.encode("utf-8", "surrogatepass")).hexdigest()


@dataclass(frozen=True)
class Expected:
    """One output: its expected half-width by size of group, or words where it has none."""

    name: str
    errors: tuple[tuple[int, float], ...]

    @property
    def same(self) -> bool:
        """Whether the size of the group does not matter."""
        sizes = [e for _, e in self.errors]
        return max(sizes) - min(sizes) < 0.02 * max(sizes)


@dataclass(frozen=True)
class Foretold:
    """What is known of an answer before it is paid for."""

    sql: str
    epsilon: float
    delta: float
    groups: int | None
    unit: str
    neighbours: str
    outputs: tuple[Expected, ...]
    words: tuple[str, ...]
    """How each number is made, line by line."""
    free: bool
    """Whether it was asked before."""
    part: float
    """Of what is left for this person."""

    @property
    def seen(self) -> str:
        """The price, as a form repeats it to say that it was seen."""
        return "free" if self.free else f"{plain(self.epsilon)} {plain(self.delta)}"


def price(given: Mapping[str, str]) -> Price:
    """The price a form offers: an epsilon or a wanted error, and a delta."""
    delta = number("delta", given.get("delta", "").strip() or "0", least=0, most=0.5)
    if given.get("pay") != "error":
        return Price(number("epsilon", given.get("epsilon", ""), above=0, most=DEAREST), delta)
    rows = given.get("rows", "").strip()
    size = whole("rows", rows, least=1, most=10**15) if rows else None
    return Price(None, delta, number("error", given.get("error", ""), above=0, most=1e18), 0.95, size)


def foretold(the: Curator, account: Account, standing: Standing, wanted: Wanted) -> Foretold:
    """What a question would cost this person; spends nothing and reads no row."""
    name = standing.dataset.name
    explained = the.explain(account, name, wanted.asked, wanted.price)
    plan = explained.plan
    outputs = [o.name for o in plan.query.outputs if o.value.aggregate in plan.source]
    epsilon = explained.epsilon
    return Foretold(
        sql=wanted.sql,
        epsilon=epsilon,
        delta=plan.delta,
        groups=plan.group_count,
        unit=plan.schema.unit or "row",
        neighbours=plan.schema.neighbours,
        outputs=tuple(_expected(explained, output) for output in outputs),
        words=tuple(line.strip() for line in repr(explained).splitlines()[2:] if line.strip()),
        free=the.known(account, name, wanted.asked, wanted.price) is not None,
        part=epsilon / standing.yours if standing.yours else math.inf,
    )


def _expected(explained: Explanation, output: str) -> Expected:
    return Expected(output, tuple((size, explained.error(output, size)) for size in SIZES))
