"""A training is paid from the ledger, as from a budget."""

from pathlib import Path

import pytest

from hubbub.curator.ledger import Ledger
from hubbub.curator.purse import LedgerBudget
from hubbub.errors import BudgetExceeded
from hubbub.privacy import GaussianDP


def test_every_spend_is_a_charge_of_its_own(tmp_path: Path) -> None:
    ledger = Ledger(f"sqlite:///{tmp_path / 'ledger'}")
    ledger.open_dataset("phones", epsilon=3, delta=1e-5)
    purse = LedgerBudget(ledger, "phones", "ada")
    loss = GaussianDP(0.2) * 4
    assert purse.spend(loss, note="a").loss == loss
    purse.spend(loss, note="a")
    assert ledger.spent("phones") == loss * 2
    with pytest.raises(BudgetExceeded):
        purse.spend(GaussianDP(3.0))
    assert ledger.length("phones", "ada") == 2
    ledger.close()
