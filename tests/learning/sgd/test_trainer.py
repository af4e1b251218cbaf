"""fit and predict: paid once, before anything is read."""

import pytest
import torch
from torch import nn

from hubbub.errors import BudgetExceeded, ParameterError
from hubbub.learning.sgd import Trainer
from hubbub.privacy.budget import Budget

SETTINGS = {"epsilon": 3, "delta": 1e-5, "rows": 200, "batch": 50, "epochs": 2}


def test_a_fit_is_paid_for_once_and_within_the_price() -> None:
    torch.manual_seed(0)
    x = torch.randn(200, 3)
    budget = Budget(4, 1e-5)
    trainer = Trainer(nn.Linear(3, 2), **SETTINGS, budget=budget).fit(x, (x[:, 0] > 0).long())
    assert trainer.loss_ == trainer.plan_.loss
    assert trainer.loss_.epsilon(1e-5) <= 3
    assert budget.spent == trainer.loss_
    assert trainer.predict(x).shape == (200,)
    with pytest.raises(ParameterError, match="once"):
        trainer.fit(x, x[:, 0].long())


def test_nothing_runs_where_the_budget_or_the_model_will_not_do() -> None:
    x, y = torch.ones(200, 3), torch.zeros(200, dtype=torch.long)
    model = nn.Linear(3, 2)
    before = model.weight.clone()
    with pytest.raises(BudgetExceeded):
        Trainer(model, **SETTINGS, budget=Budget(1, 1e-5)).fit(x, y)
    assert torch.equal(model.weight, before)
    budget = Budget(4, 1e-5)
    with pytest.raises(ParameterError, match="suited"):
        Trainer(nn.Sequential(nn.Linear(3, 2), nn.BatchNorm1d(2)), **SETTINGS, budget=budget).fit(x, y)
    assert budget.spent.epsilon(1e-5) == 0
