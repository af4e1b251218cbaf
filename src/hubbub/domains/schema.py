"""A table's public description: its columns, whose rows they are, and how much of one person counts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from hubbub.domains.columns import Column, column
from hubbub.domains.contribution import Contribution
from hubbub.errors import ParameterError, ParameterTypeError
from hubbub.privacy.loss import Neighbours, check_neighbours


@dataclass(frozen=True)
class Schema:
    """What the owner of a table declares. Truth is theirs to ensure; nothing of it is read from the data."""

    name: str
    unit: str | None
    columns: Mapping[str, Column]
    contribution: Contribution
    neighbours: Neighbours = "add-remove"

    @classmethod
    def declare(
        cls,
        name: str,
        unit: str | None,
        columns: Mapping[str, Any],
        *,
        max_groups: int | None = None,
        max_rows: int | None = None,
        max_total_rows: int | None = None,
        neighbours: Neighbours = "add-remove",
    ) -> Schema:
        """A schema from the short forms ``protect`` takes.

        >>> Schema.declare("t", "person", {"age": (0, 120)}).columns["age"]
        Number(low=0, high=120, step=None, nullable=True)
        """
        if not isinstance(name, str) or not name.isidentifier():
            raise ParameterError("name", name, "must be a plain word", "letters, digits and _ only")
        if not isinstance(columns, Mapping):
            raise ParameterTypeError("columns", columns, "must be a dict of column name to declaration")
        if unit is not None and not isinstance(unit, str):
            raise ParameterTypeError("unit", unit, "must name the column that says whose row it is, or be None")
        if unit is None and (max_groups or 1, max_rows or 1, max_total_rows or 1) != (1, 1, 1):
            raise ParameterError(
                "unit",
                None,
                "makes every row a person of its own",
                "leave out max_groups, max_rows and max_total_rows, or name the unit",
            )
        declared = {str(n): column(str(n), spec) for n, spec in columns.items()}
        folded: dict[str, str] = {}
        for n in declared:
            if folded.setdefault(n.lower(), n) != n:
                raise ParameterError("columns", n, "differs from another column only in upper and lower case")
        return cls(
            name,
            unit,
            MappingProxyType(declared),
            Contribution.of(max_groups, max_rows, max_total_rows),
            check_neighbours(neighbours),
        )
