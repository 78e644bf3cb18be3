"""Temperature scaling: one number, fitted to held-out labels, that all logits are divided by.

It has no guarantee. The mean negative log-likelihood is convex in beta = 1 / temperature, so the
fit is one root of its derivative, found by Newton steps inside a bracket, to a relative accuracy
far below 1e-6.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Literal, Self

import numpy as np

from pacbound.baselines.softmax import (
    Floats,
    as_logits,
    scaled_confidence,
    scaled_softmax,
    shifted_blocks,
)
from pacbound.errors import InvalidValueError, NotFittedError
from pacbound.tally.columns import Array, as_classes, checked_scores, same_length, same_rows
from pacbound.tally.toplabel import as_probabilities

LOWEST_TEMPERATURE = 1e-6
HIGHEST_TEMPERATURE = 1e6
PROBABILITY_FLOOR = 2.0**-126
"""The least normal float32, about 1.2e-38: lower probabilities are raised to it before the log."""

_TOLERANCE = 1e-9
_MOST_STEPS = 500

Inputs = Literal["logits", "probabilities"]
Slope = Callable[[float], tuple[float, float]]


class TemperatureScaling:
    """Softmax confidences at the temperature that makes the labels most likely. No guarantee.

    The method of Guo et al. (2017). Top labels stay as they are. Certify on other rows than it was
    fitted to: on the same ones no guarantee is proven.

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
        if self.inputs == "logits":
            return as_logits(scores, "logits")
        if self.inputs == "probabilities":
            return _log_probabilities(scores)
        raise InvalidValueError(
            f"inputs={self.inputs!r} is not known: expected 'logits' or 'probabilities'."
        )

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
