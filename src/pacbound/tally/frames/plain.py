"""Counting bins of equal width where all is plain: scores in [0, 1] and truth values, none missing.

By arithmetic alone, which takes less time than the conditions that tell what is wrong with a score.
Whatever is not plain is left to those.
"""

from __future__ import annotations

from typing import Any

import narwhals as nw
import numpy as np

from pacbound.tally.arrays import CORRECT
from pacbound.tally.frames.columns import number, open_frame
from pacbound.tally.frames.counts import counted
from pacbound.tally.grids import EqualWidthBins
from pacbound.tally.sparse import tabulated
from pacbound.tally.tally import Tally

_MARGIN = 2.0**-50


def count_plain_bins(frame: Any, *, confidence: str, correct: str, n_bins: int) -> Tally | None:
    """Right and wrong predictions per bin; None unless all rows are plain."""
    grid, table = EqualWidthBins(n_bins), open_frame(frame, [confidence, correct], keep_nan=True)
    if table.collect_schema()[correct] != nw.Boolean:
        return None
    # With edges fl(k/K) and products each within a factor 1 ± 2^-53 of the real ones: where the two
    # floors meet, at k, a score p has fl(k/K) < p < fl((k+1)/K), or it is 0 and k is too. Elsewhere
    # it is within 16 floats of an edge, and kept as it is.
    score = number(table, confidence)
    least, most = ((score * (n_bins * factor)).floor() for factor in (1 - _MARGIN, 1 + _MARGIN))
    counts = counted(
        table, {"cell": least, "near": score * (most - least), "right": nw.col(correct)}
    )
    cells, near, right = (counts.numbers(key) for key in ("cell", "near", "right"))
    # A score below 0 has a floor below 0, one above 1 a floor of K or more, and null or NaN is
    # neither.
    if not ((cells >= 0) & (cells < n_bins) & (near <= 1) & (right >= 0)).all():
        return None
    exact = np.where(near > 0, grid.cells(near), cells).astype(np.int64)
    seen = tabulated(exact[:, None], right.astype(np.int64), counts.rows, len(CORRECT))
    return Tally("calibration", grid, CORRECT, int(counts.rows.sum()), *seen)
