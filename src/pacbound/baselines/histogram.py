"""Histogram binning: the confidence is the share of right predictions seen in its bin.

It has no guarantee.
"""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from pacbound.errors import InvalidValueError, NotFittedError
from pacbound.tally.columns import as_score_column, checked_scores
from pacbound.tally.grids import EqualWidthBins
from pacbound.tally.probabilities import count_probabilities
from pacbound.tally.questions import CalibrationQuestion
from pacbound.tally.tally import Tally
from pacbound.tally.toplabel import top_label

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

_ROWS = 16384


class HistogramBinning:
    """Histogram binning of the top-label confidence (Zadrozny and Elkan, 2001). No guarantee.

    A confidence is replaced by the share of right predictions in its bin. This is the estimate that
    certified intervals surround, without the intervals. Bins are (edge, next edge], counted as in
    every tally. A bin that saw no row has no estimate: its confidence is NaN, never a midpoint.

    Parameters
    ----------
    n_bins
        The number of bins of equal width.

    Attributes
    ----------
    trials_, successes_
        How many rows each bin saw, and how many of them were right.
    confidence_
        The confidence of each bin; NaN where it saw no row.
    tally_
        The same counts as a `Tally`.

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
        """Count the top labels of probabilities against the true classes.

        Parameters
        ----------
        probabilities
            (rows, classes) probabilities.
        labels
            The column of each row's true class.

        Returns
        -------
        HistogramBinning
            This object, fitted.

        Raises
        ------
        InvalidValueError
            If there are no rows, lengths differ, a probability is not in [0, 1], or a label is not
            a column.
        """
        return self._from_tally(
            count_probabilities(probabilities, labels, grid=EqualWidthBins(self.n_bins))
        )

    def fit_confidence(self, confidence: Any, correct: Any) -> Self:
        """Count confidences against whether each prediction was right.

        Parameters
        ----------
        confidence
            The confidence of each row, in [0, 1].
        correct
            Whether each prediction was right: bool, or 0 and 1.

        Returns
        -------
        HistogramBinning
            This object, fitted.

        Raises
        ------
        InvalidValueError
            If there are no rows, lengths differ, or a confidence is not in [0, 1].
        """
        return self._from_tally(
            Tally.count(
                CalibrationQuestion, confidence=confidence, correct=correct, n_bins=self.n_bins
            )
        )

    def predict_confidence(self, probabilities: Any) -> Floats:
        """The confidence of each row's top label.

        Parameters
        ----------
        probabilities
            (rows, classes) probabilities.

        Returns
        -------
        ndarray of float
            One confidence for each row; NaN where its bin saw no row.

        Raises
        ------
        NotFittedError
            If neither `fit` nor `fit_confidence` was called.
        InvalidValueError
            If a probability is not in [0, 1].
        """
        self._fitted()
        return self.recalibrate(top_label(probabilities)[0])

    def recalibrate(self, confidence: Any) -> Floats:
        """The confidence to say in place of each given one.

        Parameters
        ----------
        confidence
            The confidence of each row, in [0, 1].

        Returns
        -------
        ndarray of float
            One confidence for each row; NaN where its bin saw no row.

        Raises
        ------
        NotFittedError
            If neither `fit` nor `fit_confidence` was called.
        InvalidValueError
            If a confidence is not in [0, 1].
        """
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
