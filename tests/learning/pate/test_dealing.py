"""Every person has one teacher, chosen without regard to anybody else."""

import numpy as np
import pytest
from support import SeededBits, assert_fits

from hubbub.errors import DataTypeError, ParameterError, ParameterTypeError
from hubbub.learning.pate.dealing import deal

PEOPLE = [f"p{k % 40}" for k in range(120)]


@pytest.mark.parametrize("key", [None, "2026"])
def test_all_rows_of_a_person_go_to_one_teacher(key):
    part = deal(120, 7, units=PEOPLE, key=key)
    for person in set(PEOPLE):
        assert len({int(k) for k, name in zip(part, PEOPLE, strict=True) if name == person}) == 1
    assert 0 <= part.min() <= part.max() < 7


def test_with_a_key_nobody_else_moves_when_somebody_comes_or_goes():
    """A partition by position fails this: the rest of the table shifts."""
    whole = deal(120, 250, units=PEOPLE, key="k")
    rest = [name for name in PEOPLE if name != "p0"]
    kept = np.array([name != "p0" for name in PEOPLE])
    assert (deal(len(rest), 250, units=rest, key="k") == whole[kept]).all()
    assert (deal(120, 250, units=PEOPLE, key="other") != whole).any()


def test_at_random_everybody_is_dealt_alone():
    """All teachers alike, and pairs of neighbouring rows as well."""
    part = deal(200_000, 50, bits=SeededBits(2))
    assert_fits(part, np.arange(50), np.full(50, 0.02))
    assert_fits(50 * part[::2] + part[1::2], np.arange(2500), np.full(2500, 1 / 2500))
    names = [f"n{k}" for k in range(50_000)]
    assert_fits(deal(50_000, 50, units=names, key=b"bytes"), np.arange(50), np.full(50, 0.02))
    assert_fits(deal(50_000, 50, units=names, bits=SeededBits(3)), np.arange(50), np.full(50, 0.02))


def test_rows_of_nobody_in_particular_are_one_persons():
    part = deal(5, 1000, units=[None, float("nan"), np.float64("nan"), "", "x"], key="k")
    assert len(set(part[:4].tolist())) == 1
    same = deal(4, 1000, units=np.array([3, 3, 4, 3]), key="k")
    assert same[0] == same[1] == same[3]


def test_what_cannot_be_dealt_is_refused():
    with pytest.raises(ParameterError, match="replaces"):
        deal(2, 5, units=["a", "b"], key="k", neighbours="replace")
    with pytest.raises(ParameterError, match="needs units"):
        deal(2, 5, key="k")
    with pytest.raises(ParameterError, match="one entry for each row"):
        deal(2, 5, units=["a"])
    with pytest.raises(ParameterError, match="teachers"):
        deal(2, 1)
    with pytest.raises(ParameterTypeError, match="key"):
        deal(1, 5, units=["a"], key=7)
    with pytest.raises(DataTypeError, match="units"):
        deal(1, 5, units=[["secret"]])
