"""The questions one can put to a table, by methods: the same for a table here and for one behind a curator's server."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Self

from hubbub.numeric import rational as exact
from hubbub.queries import aggregates as ask
from hubbub.queries.questions import Asked, Grouped, Question, binned

if TYPE_CHECKING:
    from hubbub.privacy.budget import Budget
    from hubbub.queries.answers import Answer
    from hubbub.queries.explanation import Explanation


class Asking(ABC):
    """Something that answers questions privately."""

    @abstractmethod
    def explain(
        self,
        question: str | Question[Any],
        *,
        epsilon: exact.Number | None = None,
        delta: exact.Number = 0.0,
        **goal: Any,
    ) -> Explanation:
        """What a question would cost and how large its error would be. Spends nothing and reads no row."""

    @abstractmethod
    def _check(self, asked: Asked) -> None:
        """Refuses at once what can be refused without being put."""

    @abstractmethod
    def _release(
        self,
        asked: Asked,
        epsilon: exact.Number | None,
        delta: exact.Number,
        budget: Budget | None,
        note: str,
        **goal: Any,
    ) -> Answer:
        """The private answer."""

    def sql(self, text: str, **price: Any) -> Answer:
        """The private answer to a SELECT statement; see ``Question.release`` for the price."""
        return Question(self, Asked(sql=text)).release(**price)

    def group_by(self, *keys: str | tuple[str, str]) -> Grouped[Self]:
        """Questions by group: names of columns or expressions."""
        return Grouped(self, keys, None)

    def where(self, condition: str) -> Grouped[Self]:
        """Questions of the rows for which a condition (in SQL) is true."""
        return Grouped(self, (), condition)

    def agg(self, **asks: ask.Ask) -> Question[Self]:
        """Several aggregates of the whole table."""
        return Grouped(self, (), None).agg(**asks)

    def count(self, expression: str | None = None, **price: Any) -> Answer:
        """How many rows."""
        return self.agg(count=ask.count(expression)).release(**price)

    def count_distinct(self, expression: str | None = None, **price: Any) -> Answer:
        """How many people, or how many different values."""
        return self.agg(count=ask.count_distinct(expression)).release(**price)

    def sum(self, expression: str, max_total: exact.Number | None = None, **price: Any) -> Answer:
        """The total of a column or expression; one person's is held within ``max_total``, if given."""
        return self.agg(sum=ask.sum(expression, max_total)).release(**price)

    def mean(self, expression: str, **price: Any) -> Answer:
        """The average of a column or expression."""
        return self.agg(mean=ask.mean(expression)).release(**price)

    def variance(self, expression: str, **price: Any) -> Answer:
        """The variance of a column or expression."""
        return self.agg(variance=ask.variance(expression)).release(**price)

    def stddev(self, expression: str, **price: Any) -> Answer:
        """The standard deviation of a column or expression."""
        return self.agg(stddev=ask.stddev(expression)).release(**price)

    def quantile(self, expression: str, q: exact.Number | Sequence[exact.Number] = 0.5, **price: Any) -> Answer:
        """The value below which a share q lies; of several shares, one column each."""
        shares = list(q) if isinstance(q, Sequence) else [q]
        names = ["quantile"] if len(shares) == 1 else [f"q{s}" for s in shares]
        asks = {n: ask.quantile(expression, s) for n, s in zip(names, shares, strict=True)}
        return self.agg(**asks).release(**price)

    def median(self, expression: str, **price: Any) -> Answer:
        """The middle value of a column or expression."""
        return self.agg(median=ask.median(expression)).release(**price)

    def mode(self, expression: str, **price: Any) -> Answer:
        """The most frequent of a column's public values."""
        return self.agg(mode=ask.mode(expression)).release(**price)

    def top(self, expression: str, k: int, **price: Any) -> Answer:
        """The k most frequent of a column's public values."""
        return self.agg(top=ask.top(expression, k)).release(**price)

    def best_price(self, expression: str, prices: Sequence[exact.Number], **price: Any) -> Answer:
        """The price with the largest takings, if rows say what each person would pay."""
        return self.agg(price=ask.best_price(expression, prices)).release(**price)

    def histogram(self, expression: str, bins: Sequence[exact.Number] | None = None, **price: Any) -> Answer:
        """How many rows have each category, or lie in each bin between the given edges."""
        return self.group_by(*binned(expression, bins)).agg(count=ask.count()).release(**price)
