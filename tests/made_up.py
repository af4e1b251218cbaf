"""Made-up tables for the pages of the site."""

import numpy as np
import pandas as pd


def visits(people: int = 2000) -> pd.DataFrame:
    """Two visits a person to a clinic: age, ward, day, cost and shop."""
    draw = np.random.default_rng(3)
    person = np.repeat(np.arange(people), 2)
    return pd.DataFrame(
        {
            "person": person,
            "age": 20 + (person * 7) % 60,
            "ward": np.where(person % 4 == 0, "north", "south"),
            "cost": draw.integers(0, 200, len(person)),
            "day": pd.Timestamp("2026-01-01") + pd.to_timedelta(draw.integers(0, 300, len(person)), unit="D"),
            "clinic": np.where(person % 3 == 0, "hill", "mill"),
        }
    )
