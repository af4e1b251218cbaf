"""Two villages that differ in one person look the same from outside: status, headers, shape, order, charge."""

import io
import math
from pathlib import Path
from typing import Any

import httpx
import pandas as pd
import pytest
from curator.village import Served, configured, residents, served

from hubbub.curator.guarding import Log

HOSTILE: dict[str, dict[str, Any]] = {
    "plain": {"age": 30.0, "ward": "north", "vote": "yes", "shop": "baker"},
    "nan": {"age": math.nan, "ward": "north", "vote": "yes", "shop": "baker"},
    "infinite": {"age": math.inf, "ward": "north", "vote": "yes", "shop": "baker"},
    "huge": {"age": 1e308, "ward": "north", "vote": "yes", "shop": "baker"},
    "missing": {"age": None, "ward": None, "vote": None, "shop": None},
    "unheard of": {"age": -1e9, "ward": "the moon", "vote": "maybe", "shop": "x" * 10_000},
    "odd text": {"age": 42.0, "ward": "north\x00", "vote": "'; DROP TABLE village; --", "shop": "é\u0301\u202e"},
    "divides by zero": {"age": 42.0, "ward": "south", "vote": "no", "shop": ""},
}
QUESTIONS = [
    "SELECT count(*) AS n FROM village",
    "SELECT ward, vote, count(*) AS n, avg(age) AS a, sum(age) AS s FROM village GROUP BY ward, vote",
    "SELECT sum(1 / (age - 42)) AS s, variance(age) AS v FROM village",
    "SELECT sum(CAST(vote AS INTEGER)) AS s, count(DISTINCT person) AS p FROM village",
    "SELECT median(age) AS m, mode(ward) AS w FROM village WHERE shop = 'baker'",
    "SELECT ward, count(*) AS n FROM village WHERE age > 1000 GROUP BY ward",
    "SELECT sum(age * age * age) AS s FROM village WHERE vote = 'maybe'",
    "SELECT sqrt(age) AS s FROM village",
    "SELECT nonsense",
]


def seen(village: Served) -> list[tuple[Any, ...]]:
    """All that an analyst sees of a series of questions, but for released digits and their number."""
    found = []
    with httpx.Client(base_url=village.address, headers={"Authorization": f"Bearer {village.analyst}"}) as client:
        for i, sql in enumerate(QUESTIONS * 2):
            key = {"Idempotency-Key": f"question-{i}"}
            body = {"sql": sql, "epsilon": 0.5 if i < len(QUESTIONS) else 40}
            got = client.post("/v1/datasets/village/query", json=body, headers=key)
            headers = [n for n, _ in got.headers.multi_items()]
            left = client.get("/v1/datasets/village/budget").text
            told = got.json()
            if got.status_code == 200:  # a chosen category is released, as a digit is
                columns = told["answer"]["columns"]
                columns |= {name: [0.0] for name in columns if name == "w"}
                told["answer"]["errors"] = list(told["answer"]["errors"])  # the law around released values
            found.append((got.status_code, headers, shape(told), left))
        found.append((client.get("/v1/datasets/village").text,))
    return found


def shape(told: Any) -> Any:
    """A JSON value with its numbers masked (null is one that is not finite); keys in their order."""
    if told is None:
        return "number"
    if isinstance(told, dict):
        return [(key, shape(value)) for key, value in told.items()]
    if isinstance(told, list):
        return [shape(value) for value in told]
    return "number" if isinstance(told, float | int) and not isinstance(told, bool) else told


@pytest.fixture(scope="module")
def without(tmp_path_factory: pytest.TempPathFactory) -> list[tuple[Any, ...]]:
    folder = tmp_path_factory.mktemp("without")
    with served(configured(folder, _with_floats(residents(200))), Log(io.StringIO())) as village:
        return seen(village)


def _with_floats(frame: pd.DataFrame) -> pd.DataFrame:
    return frame.assign(age=frame["age"].astype(float))


@pytest.mark.parametrize("name", HOSTILE)
@pytest.mark.parametrize("times", [1, 500])
def test_a_person_more_changes_nothing_but_released_digits(
    name: str, times: int, tmp_path: Path, without: list[tuple[Any, ...]]
) -> None:
    row = {"person": 10**6, **HOSTILE[name]}
    frame = pd.concat([_with_floats(residents(200)), pd.DataFrame([row] * times)], ignore_index=True)
    with served(configured(tmp_path, frame), Log(io.StringIO())) as village:
        found = seen(village)
    for sql, one, other in zip([*QUESTIONS * 2, "schema"], found, without, strict=True):
        assert one == other, sql
    statuses = [f[0] for f in found[:-1]]
    assert statuses.count(200) >= 5
    assert 402 in statuses
    assert 422 in statuses


def test_an_empty_village_looks_like_a_full_one(tmp_path: Path, without: list[tuple[Any, ...]]) -> None:
    empty = _with_floats(residents(200)).iloc[:0]
    with served(configured(tmp_path, empty), Log(io.StringIO())) as village:
        found = seen(village)
    assert found == without
