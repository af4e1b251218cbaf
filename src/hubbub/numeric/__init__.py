"""Exact rationals, certified enclosures of exp, erf and the normal law, and rounding with a direction."""
