"""CSV files as tables, so that no line can raise an error or change how the others are read."""

from __future__ import annotations

import bz2
import csv
import datetime as dt
import gzip
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from hubbub.domains.columns import Category, Column, Moment, Number
from hubbub.errors import ParameterError
from hubbub.numeric.rational import is_whole
from hubbub.queries.expressions import clamped

LONGEST_HEADER = 1 << 20


def read_csv(connection: Any, path: Path, declared: Mapping[str, Column]) -> Any:
    """A CSV file as an Ibis table: names and separator from its header, types from the declarations, all else text.

    A file has no types of its own, and what one could guess depends on its rows. A field that cannot be read as what
    its column is declared to be is missing; a line with too many or too few fields, or not in UTF-8, is no row: each is
    judged by itself. Fields with quotes, separators or line ends must be quoted, as any writer of CSV files ensures.
    """
    names, separator = _header(path)
    text = connection.read_csv(
        str(path),
        table_name="source",
        columns=dict.fromkeys(names, "VARCHAR"),
        delim=separator,
        quote='"',
        escape='"',
        header=True,
        auto_detect=False,
        strict_mode=False,
        ignore_errors=True,
    )
    return text.select(**{n: _typed(text[n], declared[n]) if n in declared else text[n] for n in names})


def _typed(text: Any, declared: Column) -> Any:
    """A column of texts as what it is declared to be; whole bounds mean whole numbers."""
    match declared:
        case Number(low, high, step):
            value = text.try_cast("float64").nullif(float("nan"))
            if step is None and is_whole(low) and is_whole(high):
                return (clamped(value, low, high) + 0.5).floor().cast("int64")
            return value
        case Moment(low):
            return text.try_cast("timestamp" if isinstance(low, dt.datetime) else "date")
        case Category(values) if isinstance(values[0], bool):
            return text.try_cast("boolean")
        case Category(values) if isinstance(values[0], int):
            return text.try_cast("int64")
        case _:
            return text


def _header(path: Path) -> tuple[list[str], str]:
    openers: dict[str, Callable[..., Any]] = {".gz": gzip.open, ".bz2": bz2.open}
    opener = openers.get(path.suffix, open)
    with opener(path, "rb") as file:
        line = file.readline(LONGEST_HEADER).decode("utf-8-sig", errors="replace").rstrip("\r\n")
    separator = max(",\t;|", key=line.count)
    names = next(csv.reader([line], delimiter=separator), [])
    if not names or len({n.lower() for n in names}) < len(names) or "" in names:
        raise ParameterError("source", str(path), "has no header of different names", "write one as its first line")
    return names, separator
