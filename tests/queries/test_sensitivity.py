"""Derived sensitivities against every small table: never too small, and no larger than needed where that is
promised."""

import random
from collections.abc import Callable
from itertools import combinations_with_replacement
from typing import Any

import ibis
import pyarrow as pa
import pytest

import hubbub as hb
from hubbub.queries import engine
from hubbub.queries.engine import UNIT
from hubbub.queries.plan import Plan, make_plan

Row = tuple[int | None, str | None]
UNIVERSE: list[Row] = [(-2, "a"), (3, "a"), (3, "b"), (None, "b")]
COLUMNS: dict[str, Any] = {"x": (-2, 3), "g": ["a", "b"]}
Asked = str | Callable[[Any], Any]
"""SQL, or a function of a table that makes a question by methods."""
QUESTIONS: dict[str, Asked] = {
    "count": "SELECT count(*) FROM t",
    "count of a column": "SELECT count(x) FROM t",
    "histogram": "SELECT g, count(*) FROM t GROUP BY g",
    "sum": "SELECT sum(x) FROM t",
    "sums": "SELECT g, sum(x) FROM t GROUP BY g",
    "mean": "SELECT g, avg(x) FROM t GROUP BY g",
    "count and sum": "SELECT g, count(*), sum(x) FROM t GROUP BY g",
    "count and mean": "SELECT count(*), avg(x) FROM t",
    "variance": "SELECT g, variance(x), count(*) FROM t GROUP BY g",
    "people": "SELECT g, count(DISTINCT person) FROM t GROUP BY g",
    "different values": "SELECT g, count(DISTINCT x) FROM t GROUP BY g",
    "filtered": "SELECT g, sum(abs(x)) FROM t WHERE x <> 3 OR g = 'b' GROUP BY g",
    "capped sum": lambda t: t.agg(s=hb.sum("x", max_total=4)),
    "capped sums": lambda t: t.group_by("g").agg(s=hb.sum("x", max_total=4), n=hb.count(), m=hb.mean("x")),
    "capped sums of one sign": lambda t: t.group_by("g").agg(
        s=hb.sum("abs(x)", max_total=1), u=hb.sum("abs(x)", max_total=5)
    ),
    "sums capped below a row": lambda t: t.group_by("g").agg(s=hb.sum("x * 2", max_total=2)),
}
CAPS: dict[str, dict[str, Any]] = {
    "one": {"max_groups": 1, "max_rows": 1},
    "rows": {"max_groups": 1, "max_rows": 2},
    "groups": {"max_groups": 2, "max_rows": 1},
    "total": {"max_groups": None, "max_rows": None, "max_total_rows": 2},
}
PERSONS = [rows for n in range(3) for rows in combinations_with_replacement(UNIVERSE, n)]


World = tuple[tuple[Row, ...], ...]
"""A table as its people, each a tuple of rows."""


def table(worlds: list[World], neighbours: str, caps: dict[str, Any]) -> Any:
    """Many tables in one: the people of each are apart from those of the others, so each is bounded by itself."""
    rows = [(f"{w}|p{i}", *row) for w, people in enumerate(worlds) for i, person in enumerate(people) for row in person]
    source = pa.table(
        {
            "person": pa.array([r[0] for r in rows], pa.string()),
            "x": pa.array([r[1] for r in rows], pa.int64()),
            "g": pa.array([r[2] for r in rows], pa.string()),
        }
    )
    return hb.protect(source, unit="person", columns=COLUMNS, neighbours=neighbours, **caps)


def planned(question: Asked, neighbours: str, caps: dict[str, Any]) -> Plan:
    empty = table([], neighbours, caps)
    query = empty._query(question if isinstance(question, str) else question(empty))
    return make_plan(empty.schema, query, 1, 1e-6)


def hash_within_a_world(found: Any, columns: list[str]) -> Any:
    """The engine's hash, blind to the world in a person's name: a person is the same one in two neighbouring tables."""
    text = ibis.literal("hubbub")
    for name in columns:
        value = found[name].split("|")[1] if name == UNIT else found[name].cast("string")
        text = text + ibis.literal("|") + value.fill_null("~")
    return text.hash()


def exact(worlds: list[World], question: Asked, caps: str) -> list[list[dict[Any, list[int]]]]:
    """For each world and measure, the engine's sums in every group that has some."""
    plan = planned(question, "add-remove", CAPS[caps])
    names = engine.key_names(plan)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(engine, "_hash", hash_within_a_world)
        kept = table(worlds, "add-remove", CAPS[caps])._engine.kept(plan)
    kept = kept.mutate(world=kept[UNIT].split("|")[0].cast("int64"))
    found: list[list[dict[Any, list[int]]]] = [[{} for _ in plan.noisy] for _ in worlds]
    for i, noisy in enumerate(plan.noisy):
        rows = kept
        if noisy.measure.cap is not None:
            rows = noisy.measure.by_person(kept, [UNIT, "world", *names], f"hb_x{i}")
        parts = {f"s{j}": part for j, part in enumerate(noisy.measure.sums(rows, UNIT, f"hb_x{i}"))}
        grouped = rows.group_by(["world", *names]).agg(**parts).to_pyarrow().to_pylist()
        for line in grouped:
            sums = [int(line[f"s{j}"] or 0) for j in range(len(parts))]
            found[line["world"]][i][tuple(line[n] for n in names)] = sums
    return found


def change(one: dict[Any, list[int]], other: dict[Any, list[int]], parts: int) -> list[int]:
    """How far each sum of each group moves."""
    none = [0] * parts
    pairs = [(one.get(k, none), other.get(k, none)) for k in {**one, **other}]
    return [abs(a - b) for x, y in pairs for a, b in zip(x, y, strict=True)]


def check(plan: Plan, neighbours: str, pairs: list[tuple[Any, Any]]) -> list[tuple[int, int]]:
    """The largest 1-norm and squared 2-norm of each measure's change, none above what is derived and paid for."""
    alone = plan.group_count == 1
    largest = []
    for i, noisy in enumerate(plan.noisy):
        moves = [change(a[i], b[i], noisy.measure.parts) for a, b in pairs]
        one, square = max(sum(m) for m in moves), max(sum(n * n for n in m) for m in moves)
        assert one <= noisy.measure.l1(plan.contribution, neighbours, alone)
        assert square <= noisy.measure.squared_l2(plan.contribution, neighbours, alone)
        assert noisy.mechanism is not None
        paid = noisy.mechanism.sensitivity / noisy.fineness
        assert (one if noisy.mechanism.norm == 1 else square**0.5) <= float(paid) + 1e-9
        largest.append((one, square))
    return largest


@pytest.mark.parametrize("caps", CAPS)
@pytest.mark.parametrize("question", QUESTIONS)
def test_no_small_table_moves_more_than_derived(question: str, caps: str) -> None:
    """Every person of at most two rows, joining (or taking the place of another in) three tables."""
    rests: list[World] = [(), (((3, "a"),),), ((UNIVERSE[0], UNIVERSE[2]),)]
    worlds = [(*rest, p) for rest in rests for p in PERSONS]
    found = exact(worlds, QUESTIONS[question], caps)
    count = len(PERSONS)
    assert PERSONS[0] == ()
    joining = [(found[r * count], found[r * count + p]) for r in range(3) for p in range(count)]
    plan = planned(QUESTIONS[question], "add-remove", CAPS[caps])
    alone = plan.group_count == 1
    largest = check(plan, "add-remove", joining)
    if question in ("count", "histogram", "sum", "sums", "people", "sums capped below a row"):
        for noisy, (one, square) in zip(plan.noisy, largest, strict=True):
            assert one == noisy.measure.l1(plan.contribution, "add-remove", alone)
            assert square == noisy.measure.squared_l2(plan.contribution, "add-remove", alone)
    places = [(found[r * count + p], found[r * count + q]) for r in range(3) for p in range(count) for q in range(p)]
    check(planned(QUESTIONS[question], "replace", CAPS[caps]), "replace", places)


@pytest.mark.parametrize("caps", CAPS)
@pytest.mark.parametrize("question", QUESTIONS)
def test_larger_tables(question: str, caps: str) -> None:
    """More rows than the caps allow, so that which rows are kept matters: 200 random tables, with and without
    someone."""
    generator = random.Random(7)

    def person() -> tuple[Row, ...]:
        return tuple(generator.choices(UNIVERSE, k=generator.randrange(6)))

    worlds: list[World] = []
    for _ in range(200):
        people = tuple(person() for _ in range(generator.randrange(4)))
        worlds += [people, (*people, person()), (*people, person())]
    found = exact(worlds, QUESTIONS[question], caps)
    plan = planned(QUESTIONS[question], "add-remove", CAPS[caps])
    check(plan, "add-remove", [(found[i], found[i + 1]) for i in range(0, 600, 3)])
    check(
        planned(QUESTIONS[question], "replace", CAPS[caps]),
        "replace",
        [(found[i + 1], found[i + 2]) for i in range(0, 600, 3)],
    )


@pytest.mark.parametrize("always", [True, False])
def test_rows_as_people_under_replace(always: bool) -> None:
    """With every row a person and none filtered, the number of rows is public and a sum moves by the width only."""
    where = "" if always else " WHERE x > -2"
    empty = hb.protect(
        pa.table({"x": pa.array([], pa.int64())}),
        columns={"x": hb.Number(-2, 3, nullable=False)},
        neighbours="replace",
    )
    assert empty.sensitivity(f"SELECT count(*) FROM t{where}") == (0 if always else 1)
    assert empty.sensitivity(f"SELECT sum(x) FROM t{where}") == 5
    assert empty.sensitivity(f"SELECT x > 9 AS g, count(*) FROM t{where} GROUP BY g") == 2


def test_the_only_group_may_lose_a_row() -> None:
    """Under replace, a row may leave the only listed category: its count is not public."""
    source = pa.table({"g": pa.array(["a", "b"])})
    table = hb.protect(source, columns={"g": ["a"]}, neighbours="replace", budget=hb.Budget(1, neighbours="replace"))
    question = "SELECT g, count(*) AS n FROM t GROUP BY g"
    assert table.sensitivity(question) == 1
    assert table.explain(question, epsilon=1).plan.noisy[0].mechanism is not None
