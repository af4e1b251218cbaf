"""Small tables the query tests ask."""

import datetime as dt
from typing import Any

import pandas as pd

import hubbub as hb

COLUMNS: dict[str, Any] = {
    "age": (0, 120),
    "price": (0.0, 100.0),
    "ward": ["north", "south", "west"],
    "day": (dt.date(2020, 1, 1), dt.date(2021, 12, 31)),
    "shop": "key",
    "member": [True, False],
}


def visits() -> pd.DataFrame:
    """Sixty visits of twelve people; nothing hostile in it."""
    rows = []
    for i in range(60):
        rows.append(
            {
                "person": f"p{i % 12}",
                "age": 20 + (i % 12) * 5,
                "price": round(1.25 * (i % 17), 2),
                "ward": ["north", "south"][i % 2],
                "day": dt.date(2020, 1, 1) + dt.timedelta(days=10 * i),
                "shop": f"s{i % 5}",
                "member": i % 3 == 0,
            }
        )
    return pd.DataFrame(rows)


def protected(frame: pd.DataFrame | None = None, **options: Any) -> Any:
    """The visits behind a large budget."""
    settings: dict[str, Any] = {"unit": "person", "max_groups": 5, "max_rows": 5, "columns": COLUMNS}
    budget = hb.Budget(epsilon=1e9, delta=0.5, neighbours=options.get("neighbours", "add-remove"))
    return hb.protect(visits() if frame is None else frame, budget=budget, **(settings | options))


SURE = 1e6
"""An epsilon at which the noise is far below one row."""
