"""Opens the data sets of a configuration: files and DuckDB databases here, PostgreSQL and Spark where they are."""

from __future__ import annotations

from typing import Any

from hubbub.curator.config import Dataset
from hubbub.errors import ConfigError, HubbubError
from hubbub.queries import Table
from hubbub.queries.extras import ibis
from hubbub.queries.sources import as_ibis, as_public


def table(dataset: Dataset, config: str) -> Table:
    """The data set as a protected table without a budget of its own: the ledger keeps that."""
    try:
        source = _source(dataset)
        public = {name: as_public(str(path), f"public.{name}") for name, path in dataset.public.items()}
        return Table(dataset.schema, source, None, public)
    except HubbubError as problem:
        raise ConfigError(config, 0, f"datasets.{dataset.name}: {str(problem).rstrip('.')}", "") from None
    except Exception:  # what an engine says may hold rows or passwords
        what = f"datasets.{dataset.name}: its {dataset.origin['engine']} table cannot be opened"
        raise ConfigError(config, 0, what, "check the address, the name and the rights") from None


def _source(dataset: Dataset) -> Any:
    origin = dataset.origin
    match origin["engine"]:
        case "source":
            return as_ibis(origin["place"], "source", dataset.schema.columns)
        case "duckdb":
            return ibis().duckdb.connect(origin["place"], read_only=True).table(origin["table"])
        case "postgres":
            schema, _, name = origin["table"].rpartition(".")
            return ibis().connect(origin["place"]).table(name, database=schema or None)
        case _:
            return _spark(origin)


def _spark(origin: Any) -> Any:
    from pyspark.sql import SparkSession

    place = origin["place"]
    builder = SparkSession.builder
    session = (builder.remote(place) if place.startswith("sc://") else builder.master(place)).getOrCreate()
    connection = ibis().pyspark.connect(session)
    if "table" in origin:
        return connection.table(origin["table"])
    return connection.read_parquet(origin["path"])
