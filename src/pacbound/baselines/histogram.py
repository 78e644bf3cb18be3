"""Histogram binning: the share of right predictions seen in a bin is the confidence of whatever
falls into it. No guarantee.
"""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from pacbound.errors import InvalidValueError, NotFittedError
from pacbound.tally.columns import as_score_column, checked_scores
from pacbound.tally.grids import EqualWidthBins
from pacbound.tally.probabilities import count_probabilities
from pacbound.tally.tally import Tally
from pacbound.tally.toplabel import top_label

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

_ROWS = 16384


class HistogramBinning:
    """The top-label confidence, replaced by the share of right predictions in its bin (Zadrozny and
    Elkan, 2001). No guarantee.

    It is the estimate that the certified intervals surround, without the intervals. The bins are
    `n_bins` of equal width, (edge, next edge], counted as in every tally. A bin that saw no row has
    no estimate: its confidence is NaN, never a midpoint. Fitting sets `trials_`, `successes_` and
    `confidence_`, one entry per bin, and `tally_`, which holds the same counts.

    Examples
    --------
    From probabilities and the column of each true class:

    >>> binning = HistogramBinning(n_bins=2).fit([[0.9, 0.1], [0.2, 0.8], [0.7, 0.3]], [0, 1, 1])
    >>> binning.predict_confidence([[0.6, 0.4], [0.5, 0.5]]).round(3).tolist()
    [0.667, nan]

    From one confidence per row and whether it was right:

    >>> binning = HistogramBinning(n_bins=2).fit_confidence([0.9, 0.8, 0.7, 0.5], [1, 1, 0, 1])
    >>> binning.recalibrate([0.6, 0.5]).round(3).tolist()
    [0.667, 1.0]
    """

    tally_: Tally
    trials_: Integers
    successes_: Integers
    confidence_: Floats

    def __init__(self, *, n_bins: int = 20) -> None:
        self.n_bins = n_bins

    def fit(self, probabilities: Any, labels: Any) -> Self:
        """Count the top labels of (rows, classes) `probabilities` against `labels`, the column of
        each true class.
        """
        return self._from_tally(
            count_probabilities(probabilities, labels, grid=EqualWidthBins(self.n_bins))
        )

    def fit_confidence(self, confidence: Any, correct: Any) -> Self:
        """Count confidences, one per row, against whether each prediction was right."""
        return self._from_tally(
            Tally.from_arrays(confidence=confidence, correct=correct, n_bins=self.n_bins)
        )

    def predict_confidence(self, probabilities: Any) -> Floats:
        """The confidence of each row's top label; NaN where its bin saw no row."""
        self._fitted()
        return self.recalibrate(top_label(probabilities)[0])

    def recalibrate(self, confidence: Any) -> Floats:
        """The confidence to say in place of each given one; NaN where its bin saw no row."""
        table, grid = self._fitted()
        scores = as_score_column(confidence, "confidence")
        result = np.empty(len(scores))
        for start in range(0, len(scores), _ROWS):
            block = checked_scores(scores[start : start + _ROWS], "confidence", start=start)
            result[start : start + _ROWS] = table[grid.cells(block)]
        return result

    def _from_tally(self, tally: Tally) -> Self:
        if tally.rows == 0:
            raise InvalidValueError("There are no rows to fit bins to: pass at least one.")
        counts = tally.dense()[0]
        self.tally_, self.trials_, self.successes_ = tally, counts.sum(axis=1), counts[:, 1]
        empty = self.trials_ == 0
        self.confidence_ = np.where(
            empty, np.nan, self.successes_ / np.where(empty, 1, self.trials_)
        )
        return self

    def _fitted(self) -> tuple[Floats, EqualWidthBins]:
        if not hasattr(self, "tally_"):
            raise NotFittedError(
                "This HistogramBinning has no bins yet: call fit or fit_confidence first."
            )
        # The grid of the counts, in case n_bins was changed after fitting.
        return self.confidence_, EqualWidthBins(self.tally_.grid.n_cells)
