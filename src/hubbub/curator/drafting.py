"""A first configuration, written from a file's column names and types; rows are never looked at for it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

from hubbub.errors import ParameterError
from hubbub.queries.extras import ibis

Answerer = Callable[[str, str], str]
"""Asks a person: a question and what is taken if they say nothing."""


def columns_of(path: Path) -> dict[str, str]:
    """The names of a file's columns and what kind they are: number, day or text. A CSV file has only names."""
    if not path.exists():
        raise ParameterError("source", str(path), "does not exist")
    if path.suffix in (".parquet", ".pq"):
        schema = ibis().duckdb.connect().read_parquet(str(path)).schema()
        return {name: _kind(kind) for name, kind in schema.items()}
    if path.suffix in (".csv", ".tsv"):
        with path.open(newline="") as file:
            import csv

            names = next(csv.reader(file, delimiter="\t" if path.suffix == ".tsv" else ","), [])
        return dict.fromkeys(names, "unknown")
    raise ParameterError("source", str(path), "is not a .csv or .parquet file")


def _kind(kind: object) -> str:
    if kind.is_numeric() and not kind.is_boolean():  # type: ignore[attr-defined]
        return "number"
    return "day" if kind.is_temporal() else "text"  # type: ignore[attr-defined]


FORMS = {
    "number": "low, high (such as 0, 120)",
    "day": "first, last (such as 2020-01-01, 2024-12-31)",
    "text": "categories (north, south, …), key for private keys",
    "unknown": "low, high, or categories, or key",
}


def draft(source: Path, *, name: str, ask: Answerer | None = None) -> str:
    """The text of a configuration; columns nobody has answered for are left out of use, as comments.

    ``ask`` puts questions to a person; without one, everything that only a person knows is left to be filled in.
    """
    known = columns_of(source)
    told = ask or (lambda _question, default: default)
    unit = told(f"Which column says whose row it is? (none: every row is a person; of {', '.join(known)})", "")
    if unit and unit not in known:
        raise ParameterError("unit", unit, "is not a column", f"there are: {', '.join(known)}")
    epsilon = told("What may all analysts together learn: epsilon?", "1.0")
    delta = told("And delta? (0 for none; well below one over the number of people)", "1e-6")
    lines = [
        "# hubbub serve reads this file. Analysts are told what is in it, except places and passwords.",
        "[server]",
        'ledger = "sqlite:///ledger.db"   # several servers: "$LEDGER_URL" with postgresql+psycopg://…',
        '# high_water_mark = "/elsewhere/mark.json"   # on another disk: shows that an old ledger was put back',
        'host = "127.0.0.1"',
        "port = 8800",
        "answer_every = 0.5   # seconds: answers leave at multiples of this, so that time tells little",
        "",
        f"[datasets.{name}]",
        f"source = {json.dumps(str(source))}",
        'version = "1"   # change it when the data change',
    ]
    lines += [f"unit = {json.dumps(unit)}   # whose row it is"] if unit else ["# unit: every row is a person"]
    lines += [
        "# max_groups = 1   # of one person count at most so many groups,",
        "# max_rows = 1   # so many rows in each",
    ]
    lines += [f"epsilon = {_number('epsilon', epsilon)}   # for all analysts together, for good"]
    lines += [f"delta = {_number('delta', delta)}", "", f"[datasets.{name}.columns]"]
    for column, kind in known.items():
        if column == unit:
            continue
        answer = told(f"{column}: {FORMS[kind]}; nothing to leave it out", "")
        written = f"{_quoted(column)} = {_spec(column, answer)}" if answer else f"# {_quoted(column)} = {_hint(kind)}"
        lines.append(written)
    return "\n".join(lines) + "\n"


def _number(name: str, text: str) -> str:
    try:
        return repr(float(text))
    except ValueError:
        raise ParameterError(name, text, "must be a number") from None


def _quoted(name: str) -> str:
    return name if name.isidentifier() and name.isascii() else json.dumps(name)


def _hint(kind: str) -> str:
    return {"number": "[0, 100]", "day": "[2020-01-01, 2024-12-31]"}.get(kind, '["one", "another"]   # or "key"')


def _spec(column: str, answer: str) -> str:
    parts = [part.strip() for part in answer.split(",")]
    if parts == ["key"]:
        return '"key"'
    if all(_is_day(p) for p in parts) or (len(parts) == 2 and all(_is_number(p) for p in parts)):
        if len(parts) != 2:
            raise ParameterError(column, answer, "must be two bounds", "low, high")
        return f"[{', '.join(parts)}]"
    return json.dumps(parts)


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _is_day(text: str) -> bool:
    return len(text) == 10 and text[4] == text[7] == "-" and (text[:4] + text[5:7] + text[8:]).isdigit()
