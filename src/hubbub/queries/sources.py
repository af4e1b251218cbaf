"""Where tables come from: files, data frames, arrow tables and Ibis tables, all seen as Ibis tables."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import Any

from hubbub.domains.columns import Category, Column, Key, Moment, Number
from hubbub.errors import ParameterError, ParameterTypeError
from hubbub.queries.expressions import Expression, from_column
from hubbub.queries.extras import ibis
from hubbub.queries.kinds import LARGEST
from hubbub.queries.textfiles import read_csv

MOST_CATEGORIES = 100_000
"""A public table's column with more different texts than this can only be compared."""


def as_ibis(source: Any, name: str, columns: Mapping[str, Column] | None = None) -> Any:
    """The source as an Ibis table. Files and frames are read by DuckDB, each in a connection of its own.

    A CSV file has no types of its own, and what one could guess depends on its rows: declared columns are read as what
    they are declared to be (texts that are not count as missing), the others as text.
    """
    i = ibis()
    if isinstance(source, i.Table):
        return source
    if isinstance(source, str | Path):
        return _file(Path(source), name, columns)
    module = type(source).__module__.split(".")[0]
    if module in ("pandas", "polars", "pyarrow"):
        connection = i.duckdb.connect()
        connection.con.register("source", _arrow(source))
        return connection.table("source")
    if hasattr(source, "sparkSession"):
        raise ParameterTypeError(
            name, type(source).__name__, "is a Spark frame", "give ibis.pyspark.connect(spark).table(name)"
        )
    raise ParameterTypeError(
        name,
        type(source).__name__,
        "is not a table",
        "give a .csv or .parquet path, a pandas, polars or arrow table, or an Ibis one",
    )


def _arrow(source: Any) -> Any:
    import pyarrow as pa

    if isinstance(source, pa.Table):
        return source
    if type(source).__module__.startswith("polars"):
        return (source.collect() if type(source).__name__ == "LazyFrame" else source).to_arrow()
    return pa.Table.from_pandas(source, preserve_index=False)


def _file(path: Path, name: str, columns: Mapping[str, Column] | None) -> Any:
    connection = ibis().duckdb.connect()
    kind = path.with_suffix("").suffix if path.suffix == ".gz" else path.suffix
    if not path.exists():
        raise ParameterError(name, str(path), "does not exist")
    if kind in (".csv", ".tsv"):
        if columns is None:  # public: what its rows say may be used
            return connection.read_csv(str(path), table_name="source")
        return read_csv(connection, path, columns)
    if kind in (".parquet", ".pq"):
        return connection.read_parquet(str(path), table_name="source")
    raise ParameterError(name, str(path), "is not a .csv or .parquet file", "name it so, or load it yourself")


def as_public(source: Any, name: str) -> Any:
    """A public table that any engine can join: Ibis tables as they are, others in memory, sent to the engine in use."""
    if isinstance(source, ibis().Table):
        return source
    return ibis().memtable(as_ibis(source, name).to_pyarrow())


@dataclass(frozen=True)
class PublicTable:
    """What is known of a public table: its columns, with bounds and categories, and those that hold no value twice."""

    columns: Mapping[str, Expression]
    unique: frozenset[str]


def described(name: str, table: Any) -> PublicTable:
    """A public table's columns, read from it, since it is public."""
    frame = table.to_pyarrow().to_pydict()
    known = table.schema()
    found: dict[str, Expression] = {}
    unique = set()
    for column, values in frame.items():
        present = [v for v in values if v is not None]
        read = from_column(f"{name}.{column}", _declared(present, known[column]), known[column])
        found[column] = replace(read, kind=replace(read.kind, nullable=len(present) < len(values)))
        if len(set(present)) == len(present):
            unique.add(column)
    return PublicTable(found, frozenset(unique))


def _declared(values: list[Any], kind: Any) -> Column:
    if not values:
        return Key()
    if kind.is_boolean():
        return Category((False, True))
    if kind.is_string():
        different = tuple(dict.fromkeys(values))
        return Category(different) if len(different) <= MOST_CATEGORIES else Key()
    if kind.is_numeric():
        finite = [Fraction(v) for v in values if v == v and abs(v) != float("inf")]
        low, high = min(finite, default=Fraction(0)), max(finite, default=Fraction(0))
        if kind.is_integer() and max(-low, high) > LARGEST:
            return Key()
        return Number(low, high)
    if kind.is_date() or kind.is_timestamp():
        return Moment(min(values), max(values))
    return Key()
