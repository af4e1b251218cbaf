"""How a data set's budget stands: for all together, and for one person."""

from __future__ import annotations

from dataclasses import dataclass

from hubbub.curator.accounts import Account
from hubbub.curator.config import Dataset
from hubbub.curator.service import Curator
from hubbub.privacy.budget import Filter


@dataclass(frozen=True)
class Share:
    """A limit, and what of it still fits."""

    limit: float
    left: float

    @property
    def used(self) -> float:
        """What no longer fits."""
        return max(0.0, self.limit - self.left)


@dataclass(frozen=True)
class Standing:
    """A data set's budget as one person sees it."""

    dataset: Dataset
    everybody: Share
    cap: Share | None
    """Of this person alone, where they have one."""
    yours: float
    """The largest pure epsilon that still fits for this person."""


def standing(the: Curator, account: Account, dataset: Dataset) -> Standing:
    """How a data set stands for somebody who may see it."""
    own = the.accounts.caps(dataset.name).get(account.name)
    left = the.ledger.remaining(dataset.name)
    return Standing(
        dataset,
        Share(float(dataset.epsilon), left),
        None if own is None else share(own),
        min([left] if own is None else [left, own.left()]),
    )


def share(limits: Filter) -> Share:
    """What a filter has let through."""
    return Share(float(limits.epsilon), limits.left())
