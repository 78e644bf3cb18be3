"""Confidences to compare with, the usual ones: temperature scaling and histogram binning. Neither
has a guarantee.

Results are float64 whatever the logits are: float32 rounds confidences near 1 together.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any, Literal, Self, get_args

import numpy as np
from numpy.typing import NDArray

from pacbound.errors import InvalidValueError, NotFittedError
from pacbound.stats.arguments import one_of
from pacbound.tally.columns import (
    Array,
    as_array,
    as_classes,
    as_score_column,
    checked_scores,
    numeric,
    same_length,
    same_rows,
)
from pacbound.tally.grids import EqualWidthBins
from pacbound.tally.probabilities import ONE_SCORE, as_probabilities, count_probabilities, top_label
from pacbound.tally.questions import CALIBRATION
from pacbound.tally.tally import Tally

__all__ = ["HistogramBinning", "TemperatureScaling"]

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

LOWEST_TEMPERATURE = 1e-6
HIGHEST_TEMPERATURE = 1e6
# The least normal float32, about 1.2e-38: lower probabilities are raised to it before the log.
PROBABILITY_FLOOR = 2.0**-126

_TOLERANCE = 1e-9
_MOST_STEPS = 500

Inputs = Literal["logits", "probabilities"]
Slope = Callable[[float], tuple[float, float]]

_ENTRIES = 2**16
_LOWEST = -1e290
_ROWS = 16384


def as_logits(values: Any, name: str) -> Array:
    """`values` as a (rows, classes) table of finite numbers."""
    table = numeric(as_array(values, name), name)
    if table.ndim != 2 or table.shape[1] == 0:
        raise InvalidValueError(f"{name} has shape {table.shape}: expected (rows, classes).")
    if table.shape[1] == 1:
        raise InvalidValueError(
            f"{name} has shape {table.shape}, {ONE_SCORE}, or the logits [0, z]."
        )
    finite = np.isfinite(table)
    if not finite.all():
        row, column = np.argwhere(~finite)[0]
        raise InvalidValueError(
            f"{name}[{row}, {column}] is {table[row, column]}: expected finite numbers. "
            "Rule a class out by a large negative logit, such as -1e4."
        )
    return table


def shifted_blocks(table: Array) -> Iterator[tuple[int, Floats]]:
    """Blocks of (first row, transposed logits), shifted so that each row's highest logit is 0."""
    rows = max(1, _ENTRIES // table.shape[1])
    for start in range(0, len(table), rows):
        block = np.array(table[start : start + rows].T, dtype=np.float64, order="C")
        with np.errstate(over="ignore"):
            block -= block.max(axis=0)
        # Finite, so that a product with a probability of zero is zero.
        yield start, np.maximum(block, _LOWEST, out=block)


def scaled_softmax(table: Array, temperature: float) -> Floats:
    """The softmax of the logits divided by the temperature."""
    result = np.empty(table.shape)
    for start, block in shifted_blocks(table):
        weights = np.exp(block / temperature)
        result[start : start + block.shape[1]] = (weights / weights.sum(axis=0)).T
    return result


def scaled_confidence(table: Array, temperature: float) -> Floats:
    """The highest entry of each row of `scaled_softmax`, to the last bit, without its table."""
    result = np.empty(len(table))
    for start, block in shifted_blocks(table):
        # The highest logit of a row was shifted to 0, and exp(0) is 1.
        result[start : start + block.shape[1]] = 1.0 / np.exp(block / temperature).sum(axis=0)
    return result


class TemperatureScaling:
    """Softmax confidences at the temperature that makes the labels most likely. No guarantee.

    The method of Guo et al. (2017). The mean negative log-likelihood is convex in beta = 1 /
    temperature, so the fit is one root of its derivative, found by Newton steps inside a bracket,
    to a relative accuracy far below 1e-6. Top labels stay as they are. Certify on other rows than
    it was fitted to: on the same ones no guarantee is proven.

    Parameters
    ----------
    inputs
        What the rows are: "logits", or "probabilities", whose logarithms then serve as logits, with
        probabilities below `PROBABILITY_FLOOR` raised to it.

    Attributes
    ----------
    temperature_
        The fitted temperature, as `optimal_temperature` finds it.

    Examples
    --------
    Logits that claim 88 % where two of three are right; the fitted temperature makes that 67 %:

    >>> scaling = TemperatureScaling().fit([[2.0, 0.0], [2.0, 0.0], [2.0, 0.0]], [0, 0, 1])
    >>> round(scaling.temperature_, 4)
    2.8854
    >>> scaling.predict_confidence([[2.0, 0.0]]).round(4)
    array([0.6667])
    """

    temperature_: float

    def __init__(self, *, inputs: Inputs = "logits") -> None:
        self.inputs = inputs

    def fit(self, scores: Any, labels: Any) -> Self:
        """Find the temperature.

        Parameters
        ----------
        scores
            (rows, classes) logits or probabilities, as `inputs` says.
        labels
            The column of each row's true class.

        Returns
        -------
        TemperatureScaling
            This object, fitted.

        Raises
        ------
        InvalidValueError
            If there are no rows, lengths differ, `scores` are not what `inputs` says, or a label is
            not a column.
        """
        same_rows(scores=scores, labels=labels)
        self.temperature_ = optimal_temperature(self._logits(scores), labels)
        return self

    def predict_proba(self, scores: Any) -> Floats:
        """The scaled probabilities of each row.

        Parameters
        ----------
        scores
            (rows, classes) logits or probabilities, as `inputs` says.

        Returns
        -------
        ndarray of float64
            (rows, classes) probabilities.

        Raises
        ------
        NotFittedError
            If `fit` was not called.
        InvalidValueError
            If `scores` are not what `inputs` says.
        """
        return scaled_softmax(self._logits(scores), self._fitted())

    def predict_confidence(self, scores: Any) -> Floats:
        """The highest scaled probability of each row.

        Parameters
        ----------
        scores
            (rows, classes) logits or probabilities, as `inputs` says.

        Returns
        -------
        ndarray of float64
            One confidence for each row.

        Raises
        ------
        NotFittedError
            If `fit` was not called.
        InvalidValueError
            If `scores` are not what `inputs` says.
        """
        return scaled_confidence(self._logits(scores), self._fitted())

    def _logits(self, scores: Any) -> Array:
        if one_of(self.inputs, get_args(Inputs), "inputs") == "logits":
            return as_logits(scores, "logits")
        return _log_probabilities(scores)

    def _fitted(self) -> float:
        if not hasattr(self, "temperature_"):
            raise NotFittedError("This TemperatureScaling has no temperature yet: call fit first.")
        return self.temperature_


def optimal_temperature(logits: Any, labels: Any) -> float:
    """The temperature with the least mean negative log-likelihood of the labels. No guarantee.

    The result is kept between `LOWEST_TEMPERATURE` (1e-6) and `HIGHEST_TEMPERATURE` (1e6). The
    lowest is also the result where every label has its row's highest logit: the likelihood then
    grows as the temperature falls to zero, and there is no minimum. The highest is also the result
    where the logits say nothing of the labels or mislead. Rows of equal logits fit any temperature:
    if there are no others, the result is 1.

    Parameters
    ----------
    logits
        (rows, classes) finite numbers.
    labels
        The column of each row's true class.

    Returns
    -------
    float
        The temperature, to a relative accuracy of 1e-6.

    Raises
    ------
    InvalidTypeError
        If an argument does not hold numbers of the expected kind.
    InvalidValueError
        If there are no rows, lengths differ, a logit is not finite, or a label is not a column.

    Examples
    --------
    >>> optimal_temperature([[3.0, 0.0], [0.0, 3.0]], [0, 1])
    1e-06
    >>> optimal_temperature([[3.0, 0.0], [0.0, 3.0]], [1, 0])
    1000000.0
    >>> optimal_temperature([[1.0, 1.0]], [0])
    1.0
    """
    same_rows(logits=logits, labels=labels)
    table = as_logits(logits, "logits")
    classes = as_classes(labels, table.shape[1], "labels")
    if same_length(logits=table, labels=classes) == 0:
        raise InvalidValueError("There are no rows to fit a temperature to: pass at least one.")
    if all(not block.any() for _, block in shifted_blocks(table)):
        return 1.0

    def slope(beta: float) -> tuple[float, float]:
        return _slope(beta, table, classes)

    lowest, highest = 1.0 / HIGHEST_TEMPERATURE, 1.0 / LOWEST_TEMPERATURE
    # First, for where all labels are on top the slope may underflow to zero at both ends.
    if slope(highest)[0] <= 0.0:
        return LOWEST_TEMPERATURE
    if slope(lowest)[0] >= 0.0:
        return HIGHEST_TEMPERATURE
    return 1.0 / _root(slope, lowest, highest)


def _log_probabilities(probabilities: Any) -> Floats:
    table = as_probabilities(probabilities, "probabilities")
    scores = checked_scores(table.ravel(), "probabilities.ravel()").reshape(table.shape)
    return np.log(np.maximum(scores, PROBABILITY_FLOOR, out=scores), out=scores)


def _slope(beta: float, table: Array, classes: Array) -> tuple[float, float]:
    """First and second derivative by `beta` of the mean loss of the logits times `beta`."""
    first = second = 0.0
    for start, block in shifted_blocks(table):
        rows = block.shape[1]
        weights = np.exp(beta * block)
        weights /= weights.sum(axis=0)
        weights *= block
        mean = weights.sum(axis=0)
        weights *= block
        first += float((mean - block[classes[start : start + rows], np.arange(rows)]).sum())
        second += float((weights.sum(axis=0) - mean**2).sum())
    return first / len(table), second / len(table)


def _root(slope: Slope, low: float, high: float) -> float:
    """Where the rising `slope`, negative at `low` and positive at `high`, is zero."""
    point, before = 1.0, math.inf
    for _ in range(_MOST_STEPS):
        value, rate = slope(point)
        if value == 0.0:
            break
        low, high = (point, high) if value < 0.0 else (low, point)
        following = point - value / rate if rate > 0.0 and 2.0 * abs(value) <= before else math.nan
        if not low < following < high:
            following = math.sqrt(low * high)
        before, moved, point = abs(value), abs(following - point), following
        if moved <= _TOLERANCE * point:
            break
    return point


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
            Tally.count(CALIBRATION, confidence=confidence, correct=correct, n_bins=self.n_bins)
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
