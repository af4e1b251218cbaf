"""Tables with small counts withheld: what the totals say about them."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from hubbub.attacks.demands import numbers, whole
from hubbub.attacks.questions import Integers
from hubbub.errors import ParameterError


def withheld_cells(
    table: ArrayLike, *, below: int, row_totals: ArrayLike | None = None, column_totals: ArrayLike | None = None
) -> tuple[Integers, Integers]:
    """The least and the most every cell of a table can be, nan cells being withheld for being below a threshold.

    Whole numbers from 0 to below - 1 that add up to the totals; where both ends agree, the cell was not hidden at all.

    >>> nan = float("nan")
    >>> low, high = withheld_cells([[nan, 12], [9, 7]], below=5, row_totals=[15, 16])
    >>> low.tolist(), high.tolist()
    ([[3, 12], [9, 7]], [[3, 12], [9, 7]])
    """
    from scipy.optimize import Bounds, LinearConstraint, milp

    cells = numbers("table", table, "must be counts, nan where withheld")
    whole("below", below, 1)
    if cells.ndim != 2 or not cells.size:
        raise ParameterError("table", cells.shape, "must have rows and columns")
    if np.isinf(cells).any() or (cells < 0).any():
        raise ParameterError("table", cells.shape, "must be counts, nan where withheld")
    hidden = np.isnan(cells)
    places = np.argwhere(hidden)
    rows, sums = [], []
    for axis, totals in ((0, row_totals), (1, column_totals)):
        if totals is None:
            continue
        told = numbers("totals", totals, "must be counts")
        if told.shape != (cells.shape[axis],):
            raise ParameterError("totals", told.shape, f"must have the shape ({cells.shape[axis]},)")
        rows.append(places[:, axis][None, :] == np.arange(cells.shape[axis])[:, None])
        sums.append(told - np.nansum(cells, axis=1 - axis))
    ends = np.where(hidden, 0, cells), np.where(hidden, below - 1, cells)
    if rows and len(places):
        fits = LinearConstraint(np.concatenate(rows).astype(np.float64), np.concatenate(sums), np.concatenate(sums))
        for number, place in enumerate(map(tuple, places)):
            for end, sign in zip(ends, (1.0, -1.0), strict=True):
                costs = np.zeros(len(places))
                costs[number] = sign
                found = milp(
                    costs, constraints=fits, integrality=np.ones(len(places), np.int64), bounds=Bounds(0, below - 1)
                )
                if found.x is None:
                    raise ParameterError("totals", "those given", "fit no counts below the threshold")
                end[place] = found.x[number]
    return np.rint(ends[0]).astype(np.int64), np.rint(ends[1]).astype(np.int64)
