"""Temperature scaling: one number that all logits are divided by, fitted to held-out labels. No
guarantee.

The mean negative log-likelihood is convex in beta = 1 / temperature, so the fit is one root of its
derivative, found by Newton steps inside a bracket, to a relative accuracy far below 1e-6.
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
from pacbound.tally.columns import Array, as_classes, checked_scores, same_length
from pacbound.tally.toplabel import as_probabilities

LOWEST_TEMPERATURE = 1e-6
HIGHEST_TEMPERATURE = 1e6
PROBABILITY_FLOOR = 2.0**-126
"""The least normal float32, about 1.2e-38: a probability below it, zero included, is taken for it
before its logarithm."""

_TOLERANCE = 1e-9
_MOST_STEPS = 500

Inputs = Literal["logits", "probabilities"]
Slope = Callable[[float], tuple[float, float]]


class TemperatureScaling:
    """Softmax confidences at the temperature that makes the labels most likely (Guo et al., 2017).
    No guarantee.

    `inputs` says what the rows are: "logits", or "probabilities", whose logarithms then serve as
    logits, with probabilities below `PROBABILITY_FLOOR` raised to it. Fitting finds `temperature_`,
    with `optimal_temperature`; top labels stay as they are. Certify on other rows than it was
    fitted to: on the same ones no guarantee is proven.

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
        """Find the temperature for (rows, classes) `scores`, of the kind `inputs` says, and the
        column of each true class.
        """
        self.temperature_ = optimal_temperature(self._logits(scores), labels)
        return self

    def predict_proba(self, scores: Any) -> Floats:
        """The scaled probabilities of each row, in float64."""
        return scaled_softmax(self._logits(scores), self._fitted())

    def predict_confidence(self, scores: Any) -> Floats:
        """The highest scaled probability of each row."""
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
    """The temperature that minimises the mean negative log-likelihood of the labels, within 1e-6 of
    it. No guarantee.

    The result is kept between `LOWEST_TEMPERATURE` (1e-6) and `HIGHEST_TEMPERATURE` (1e6). The
    lowest is also the result where no minimum exists because every label has its row's highest
    logit: the likelihood then grows as the temperature falls to zero. The highest is also the
    result where the logits say nothing of the labels or mislead. Rows of equal logits fit any
    temperature: if there are no others, the result is 1.

    Examples
    --------
    >>> optimal_temperature([[3.0, 0.0], [0.0, 3.0]], [0, 1])
    1e-06
    >>> optimal_temperature([[3.0, 0.0], [0.0, 3.0]], [1, 0])
    1000000.0
    >>> optimal_temperature([[1.0, 1.0]], [0])
    1.0
    """
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
    """First and second derivative by `beta` of the mean negative log-likelihood of the logits times
    `beta`.
    """
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
