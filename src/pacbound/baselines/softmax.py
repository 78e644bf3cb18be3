"""Logits to probabilities, and the baseline that believes them as they are. No guarantee.

Results are float64 whatever the logits are: float32 rounds confidences near 1 together.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from pacbound.errors import InvalidValueError
from pacbound.tally.columns import Array, as_array, numeric
from pacbound.tally.toplabel import ONE_SCORE

Floats = NDArray[np.float64]

_ENTRIES = 2**16
_LOWEST = -1e290


def softmax(logits: Any) -> Floats:
    """The probabilities exp(logit) / sum of exp(logits) of each row. No guarantee.

    They are what the network says. No logit is too large: rows are shifted by their maximum first.

    Parameters
    ----------
    logits
        (rows, classes) finite numbers.

    Returns
    -------
    ndarray of float64
        (rows, classes) probabilities.

    Raises
    ------
    InvalidTypeError
        If `logits` does not hold numbers.
    InvalidValueError
        If `logits` has another shape, or holds NaN or infinities.

    Examples
    --------
    >>> softmax([[0.0, 0.0], [1000.0, 0.0]])
    array([[0.5, 0.5],
           [1. , 0. ]])
    """
    return scaled_softmax(as_logits(logits, "logits"), 1.0)


class NaiveSoftmax:
    """The confidence of the softmax, unchanged. No guarantee.

    Networks are often far too sure of themselves. It has the methods of the other baselines, and
    nothing to fit.

    Examples
    --------
    >>> NaiveSoftmax().predict_confidence([[2.0, 2.0], [5.0, 5.0]])
    array([0.5, 0.5])
    """

    def fit(self, logits: Any, labels: Any) -> Self:  # noqa: ARG002, RUF100
        """Do nothing, and return this object.

        Parameters
        ----------
        logits, labels
            Not looked at.

        Returns
        -------
        NaiveSoftmax
            This object.
        """
        return self

    def predict_proba(self, logits: Any) -> Floats:
        """The softmax of each row.

        Parameters
        ----------
        logits
            (rows, classes) finite numbers.

        Returns
        -------
        ndarray of float64
            (rows, classes) probabilities.

        Raises
        ------
        InvalidValueError
            If `logits` does not have the shape (rows, classes) or holds numbers that are not
            finite.
        """
        return softmax(logits)

    def predict_confidence(self, logits: Any) -> Floats:
        """The highest probability of each row.

        Parameters
        ----------
        logits
            (rows, classes) finite numbers.

        Returns
        -------
        ndarray of float64
            One confidence for each row.

        Raises
        ------
        InvalidValueError
            If `logits` does not have the shape (rows, classes) or holds numbers that are not
            finite.
        """
        return scaled_confidence(as_logits(logits, "logits"), 1.0)


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
