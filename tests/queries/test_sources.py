"""Files and frames of every kind: the same rows, the same integers; what a CSV file's rows hold cannot change its
types."""

from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from queries.tables import COLUMNS, SURE, visits

import hubbub as hb
from hubbub.errors import HubbubError

ASKED = "SELECT ward, count(*) AS n, sum(age) AS a, avg(price) AS p FROM t WHERE member GROUP BY ward"


def answers(source: Any, **options: Any) -> list[list[float]]:
    table = hb.protect(
        source, unit="person", columns=COLUMNS, max_groups=3, max_rows=9, budget=hb.Budget(epsilon=1e9), **options
    )
    found = table.sql(ASKED, epsilon=SURE)
    return [[round(float(v), 1) for v in found[n]] for n in ("n", "a")] + [[round(float(v), 1) for v in found["p"][:2]]]


def near(want: list[list[float]]) -> list[Any]:
    return [pytest.approx(column, abs=0.11) for column in want]


def test_every_source_gives_the_same(tmp_path: Path) -> None:
    frame = visits()
    arrow = pa.Table.from_pandas(frame)
    frame.to_csv(tmp_path / "visits.csv", index=False)
    frame.to_csv(tmp_path / "visits.csv.gz", index=False)
    frame.to_csv(tmp_path / "visits.of.2020.csv.gz", index=False)
    frame.to_csv(tmp_path / "visits.tsv", index=False, sep="\t")
    pq.write_table(arrow, tmp_path / "visits.parquet")
    want = answers(frame)
    for source in (arrow, pl.from_arrow(arrow), pl.from_arrow(arrow).lazy()):
        assert answers(source) == near(want)
    for name in ("visits.csv", "visits.csv.gz", "visits.of.2020.csv.gz", "visits.tsv", "visits.parquet"):
        assert answers(tmp_path / name) == near(want), name
        assert answers(str(tmp_path / name)) == near(want), name


@pytest.mark.parametrize(
    "line",
    [
        "p1,abc,xyz,north,never,s1,perhaps",
        'p1,"12',
        "p1",
        "p1,1,2,3,4,5,6,7,8,9",
        "p1,1e999,nan,north,2020-13-45,s1,1",
        "\x00",
        ",,,,,,",
    ],
)
def test_no_line_of_a_csv_file_changes_what_can_be_asked(tmp_path: Path, line: str) -> None:
    """A line that parses badly is one person's: it may move the answer by that person, and must not refuse anybody."""
    frame = visits()
    text = frame.to_csv(index=False)
    want = answers(frame)
    first = [] if '"' in line else [text.replace("\n", f"\n{line}\n", 1)]  # an open quote is the file's, not a row's
    for odd in (text + line + "\n", *first):
        (tmp_path / "odd.csv").write_text(odd)
        got = answers(tmp_path / "odd.csv")
        assert len(got[0]) == 3
        assert abs(got[0][0] - want[0][0]) <= 1.1
        assert abs(got[0][1] - want[0][1]) <= 9.1


def test_files_that_are_none(tmp_path: Path) -> None:
    (tmp_path / "x.txt").write_text("a\n1\n")
    for path in (tmp_path / "x.txt", tmp_path / "none.csv"):
        with pytest.raises(HubbubError):
            hb.protect(path, columns={})
