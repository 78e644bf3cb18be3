"""Confidences after temperature scaling, from whole logits and from the five likeliest classes.

Each function here returns a function of rows: it fits the temperature to these rows, and gives the
scaled confidence of all rows. No guarantee: a baseline.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq

from pacbound.baselines import TemperatureScaling

Array = NDArray[Any]
Rescaled = Callable[[Array], Array]

RESOLUTION = 2.0**-24
"""Half a unit in the last place of a float32 just below 1. Five float32 that add up to 1 may have
left that much to the other classes, and no less can be told."""


def of_logits(logits: Array, labels: Array) -> Rescaled:
    """Temperature scaling as it is meant, over all classes."""

    def rescaled(known: Array) -> Array:
        scaling = TemperatureScaling().fit(logits[known], labels[known])
        return np.asarray(scaling.predict_confidence(logits))

    return rescaled


def of_top_five(classes: Array, probabilities: Array, labels: Array, n_classes: int) -> Rescaled:
    """Temperature scaling where only the likeliest classes are known.

    What is left of the probability is spread evenly over the classes that are not listed. The
    logarithms of probabilities are logits, so this is exact but for that.
    """
    listed = probabilities.shape[1]
    top = np.log(np.maximum(probabilities.astype(np.float64), np.finfo(np.float32).tiny))
    rest = np.maximum(1 - np.exp(top).sum(axis=1), RESOLUTION) / (n_classes - listed)
    logits = np.column_stack([top, np.log(rest)])
    copies = np.append(np.ones(listed), n_classes - listed)
    found = classes == labels[:, None]
    column = np.where(found.any(axis=1), found.argmax(axis=1), listed)

    def rescaled(known: Array) -> Array:
        beta = _fitted(logits[known], column[known], copies)
        shares = copies * np.exp(beta * (logits - logits.max(axis=1, keepdims=True)))
        return np.asarray(shares[:, :listed].max(axis=1) / shares.sum(axis=1))

    return rescaled


def _fitted(logits: Array, column: Array, copies: Array) -> float:
    """One over the temperature: the root of the derivative of the convex log-likelihood."""
    said = logits[np.arange(len(logits)), column].mean()
    shifted = logits - logits.max(axis=1, keepdims=True)

    def slope(log_beta: float) -> float:
        weights = copies * np.exp(np.exp(log_beta) * shifted)
        expected = (weights * logits).sum(axis=1) / weights.sum(axis=1)
        return float(expected.mean() - said)

    return float(np.exp(brentq(slope, np.log(1e-3), np.log(1e3), xtol=1e-10)))
