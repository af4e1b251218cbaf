"""What the data may be: columns with public bounds or categories, the privacy unit, and what follows for
sensitivity."""

from hubbub.domains.columns import Category, Column, Key, Moment, Number, column
from hubbub.domains.contribution import Contribution
from hubbub.domains.enumeration import brute_force_sensitivity, neighbouring
from hubbub.domains.schema import Schema

__all__ = [
    "Category",
    "Column",
    "Contribution",
    "Key",
    "Moment",
    "Number",
    "Schema",
    "brute_force_sensitivity",
    "column",
    "neighbouring",
]
