"""The one door to Ibis and sqlglot, which are heavy and optional."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from hubbub.errors import MissingExtra


def ibis() -> Any:
    """The Ibis module."""
    return _load("ibis")


def sqlglot() -> Any:
    """The sqlglot module."""
    return _load("sqlglot")


def _load(name: str) -> Any:
    try:
        return import_module(name)
    except ImportError as missing:
        raise MissingExtra("queries") from missing
