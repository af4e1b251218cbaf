"""What is not on the allow-list is refused with a sentence that helps, before anything is charged or read."""

from typing import Any

import pytest
from queries.refused import REFUSED
from queries.tables import protected

from hubbub.errors import QueryRefused
from hubbub.queries.engine import Engine


@pytest.fixture(scope="module")
def table() -> Any:
    return protected()


def test_there_are_many() -> None:
    assert len(set(REFUSED)) > 350


@pytest.mark.parametrize("sql", REFUSED)
def test_refused(sql: str, table: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Engine, "compute", lambda *_: pytest.fail("reached the engine"))
    with pytest.raises(QueryRefused) as refusal:
        table.sql(sql, epsilon=1.0, delta=1e-6)
    assert not table.budget.receipts
    assert refusal.value.remedy
    assert len(str(refusal.value)) < 400
    with pytest.raises(QueryRefused):
        table.explain(sql, epsilon=1.0, delta=1e-6)


def test_a_very_long_or_deep_text_is_refused(table: Any) -> None:
    for text in (
        "SELECT count(*) FROM t WHERE " + " OR ".join(["age = 1"] * 3000),
        "SELECT sum(" + "(" * 3000 + "age" + ")" * 3000 + ") FROM t",
        "SELECT sum(" + "-" * 500 + "age) FROM t",
        "SELECT sum(" + "abs(" * 200 + "age" + ")" * 200 + ") FROM t",
        "SELECT sum(" + " + ".join(["age"] * 500) + ") FROM t",
    ):
        with pytest.raises(QueryRefused):
            table.sql(text, epsilon=1.0)
