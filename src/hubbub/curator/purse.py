"""A data set of the ledger as a budget: for trainings, which are paid for as a whole before they begin."""

from __future__ import annotations

import os

from hubbub.curator.chain import Entry
from hubbub.curator.ledger import Ledger
from hubbub.numeric.rational import Number
from hubbub.privacy.loss import Loss


class LedgerBudget:
    """What has ``spend``, like a ``Budget``, and charges one analyst's share of a data set's durable budget.

    Claim: what was accepted is on disk when ``spend`` returns; with all that others charge, it fits the limits.
    Proof: every spend is a charge under a fresh key (``Ledger``).
    Assumes: what ``Ledger`` assumes.
    """

    def __init__(self, ledger: Ledger, dataset: str, analyst: str) -> None:
        self.ledger, self.dataset, self.analyst = ledger, dataset, analyst

    def spend(self, loss: Loss, note: str = "", delta: Number = 0.0) -> Entry:
        """Takes a loss out of the budget, durably, or raises BudgetExceeded with nothing spent."""
        key, question = os.urandom(16).hex(), note or "training"
        return self.ledger.charge(self.dataset, self.analyst, key=key, question=question, loss=loss, delta=delta).entry
