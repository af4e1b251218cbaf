"""Declarations, contribution bounds, and sensitivity by enumeration."""

import datetime as dt
from itertools import product

import pytest

from hubbub.domains import Category, Contribution, Key, Moment, Number, Schema, brute_force_sensitivity, column
from hubbub.errors import HubbubError


def test_short_declarations() -> None:
    assert column("a", (0, 10)) == Number(0, 10)
    assert column("a", ["x", "y"]) == Category(("x", "y"))
    assert column("a", [True, False]) == Category((True, False))
    assert column("a", "key") == Key()
    assert column("a", (dt.date(2020, 1, 1), dt.date(2021, 1, 1))) == Moment(dt.date(2020, 1, 1), dt.date(2021, 1, 1))


@pytest.mark.parametrize(
    "spec",
    ["text", (1,), (2, 1), ["a", "a"], [], ["a", 1], 7, None, ("a", "b"), (float("nan"), 1), (0, float("inf")), {1}],
)
def test_bad_declarations_are_refused(spec: object) -> None:
    with pytest.raises(HubbubError):
        column("a", spec)


@pytest.mark.parametrize(
    ("low", "high", "step", "steps"),
    [(0, 10, None, (0, 10)), (0, 10, 0.25, (0, 40)), (0.1, 0.9, 1, (1, 1)), (-3, 3, 2, (-1, 1)), (5, 5, None, (5, 5))],
)
def test_grid_points_lie_within_the_bounds(low: float, high: float, step: float | None, steps: tuple[int, int]) -> None:
    assert Number(low, high, step).steps(whole=True) == steps


@pytest.mark.parametrize(("groups", "rows", "total"), list(product((1, 2, 3), (1, 2), (None, 1, 3))))
def test_contribution_norms_are_those_of_the_worst_person(groups: int, rows: int, total: int | None) -> None:
    """Every way one person's rows can lie in three groups, tried."""
    allowed = [
        c
        for c in product(range(rows + 1), repeat=3)
        if sum(n > 0 for n in c) <= groups and (total is None or sum(c) <= total)
    ]
    bounds = Contribution(groups, rows, total)
    assert bounds.l1(1) == max(sum(c) for c in allowed)
    assert bounds.squared_l2(1) == max(sum(n * n for n in c) for c in allowed)
    pairs = list(product(allowed, allowed))
    assert bounds.l1(1, "replace") >= max(sum(abs(a - b) for a, b in zip(c, d, strict=True)) for c, d in pairs)
    assert bounds.squared_l2(1, "replace") >= max(
        sum((a - b) ** 2 for a, b in zip(c, d, strict=True)) for c, d in pairs
    )
    signed = [[s * n for s, n in zip(signs, c, strict=True)] for c in allowed for signs in product((-1, 1), repeat=3)]
    worst = max(sum((a - b) ** 2 for a, b in zip(c, d, strict=True)) for c, d in product(signed, signed))
    assert bounds.squared_l2(1, "replace", signed=True) >= worst


def test_a_person_must_be_bounded() -> None:
    for caps in ({"max_groups": 0}, {"max_rows": -1}, {"max_total_rows": 0}):
        with pytest.raises(HubbubError):
            Schema.declare("t", "person", {}, **caps)
    assert Schema.declare("t", "p", {}).contribution == Contribution(1, 1)
    assert Schema.declare("t", "p", {}, max_groups=3, max_rows=None).contribution == Contribution(3, 1)
    assert Schema.declare("t", "p", {}, max_total_rows=7).contribution.most_rows == 7
    assert Schema.declare("t", "p", {}, max_groups=3, max_total_rows=7).contribution == Contribution(3, 7, 7)
    with pytest.raises(HubbubError, match="every row a person"):
        Schema.declare("t", None, {}, max_rows=2)


def test_brute_force_knows_the_notes_exercise() -> None:
    """Exercise 3.1 of note 002: readers, genders, both, all four, books owned, and their average."""
    people = list(product((0, 1), (0, 7), ("m", "f")))

    def by_gender(rows: tuple[tuple[int, int, str], ...]) -> list[int]:
        return [sum(r[2] == g for r in rows) for g in "mf"]

    def readers(rows: tuple[tuple[int, int, str], ...]) -> int:
        return sum(r[0] for r in rows)

    assert brute_force_sensitivity(readers, people, 3) == 1
    assert brute_force_sensitivity(by_gender, people, 3) == 1
    assert brute_force_sensitivity(lambda rows: [readers(rows), *by_gender(rows)], people, 3) == 2
    four = [(a, g) for a in (0, 1) for g in "mf"]
    assert brute_force_sensitivity(lambda rows: [sum((r[0], r[2]) == k for r in rows) for k in four], people, 3) == 1
    assert brute_force_sensitivity(lambda rows: sum(r[1] for r in rows), people, 3) == 7

    def mean(rows: tuple[tuple[int, int, str], ...]) -> float | None:
        return sum(r[1] for r in rows) / len(rows) if rows else None

    assert brute_force_sensitivity(lambda rows: mean(rows) or 0.0, people, 4) == 7
    assert brute_force_sensitivity(mean, people, 4) == 3.5
