"""The danger at the first un-recoverable state, in place of the running maximum, where a rollout is
unsafe.

This is what the paper's product is counted from. A safe rollout has no such state, so whatever
stands there for it is not looked at, and it keeps its running maximum.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from pacbound.errors import InvalidValueError
from pacbound.tally.columns import (
    Array,
    Floats,
    as_score_column,
    checked_scores,
    is_missing,
    same_length,
)


def at_first_unrecoverable(
    scores: Array, unsafe: NDArray[np.bool_], final_scores: Any, *, first_row: int = 0
) -> Floats:
    """The running maxima `scores`, with `final_scores` where the rollout is `unsafe`: -inf if it
    was lost at the start.
    """
    final = as_score_column(_with_nan(final_scores), "final_scores").astype(np.float64)
    same_length(scores=scores, unsafe=unsafe, final_scores=final)
    running = checked_scores(scores, "scores", start=first_row, lost=True)
    last = checked_scores(np.where(unsafe, final, 0.0), "final_scores", start=first_row, lost=True)
    above = np.flatnonzero(unsafe & (last > running))
    if above.size:
        row = int(above[0])
        raise InvalidValueError(
            f"final_scores[{first_row + row}] is {last[row]}, above its running maximum "
            f"{running[row]} ({above.size} such values): expected scores to be the maximum up to "
            "and including the first un-recoverable state. Were they swapped?"
        )
    return np.where(unsafe, last, running)


def _with_nan(values: Any) -> Any:
    """`values` with NaN where one is missing or masked, so that it counts as one only where it is
    needed.
    """
    if isinstance(values, np.ma.MaskedArray):
        return np.where(
            np.ma.getmaskarray(values), np.nan, np.ma.getdata(values).astype(np.float64)
        )
    if isinstance(values, (list, tuple)) or getattr(values, "dtype", None) == np.dtype(object):
        return [np.nan if is_missing(value) else value for value in values]
    return values
