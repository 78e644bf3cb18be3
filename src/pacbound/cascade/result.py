"""What a cascade answered, and what it has answered so far."""

from __future__ import annotations

from dataclasses import dataclass
from threading import Lock
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pacbound.stats.arguments import whole_number

Array = NDArray[Any]
Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class CascadeResult:
    """The answers of a cascade, in the order of the rows.

    Attributes
    ----------
    predictions : ndarray of shape (n,)
        Class indices, or names where the cascade or its models have them.
    exits : ndarray of shape (n,)
        The place of the model that answered: 0 for the fastest.
    confidences : ndarray of shape (n,)
        The score of that model; NaN where the last model gave none.
    seconds : ndarray of shape (models,)
        The time spent in the calls of each model, which overlap in an `AsyncCascade`.
    failed : ndarray of shape (models,)
        How many items each model failed on that went to the slow model instead.

    Examples
    --------
    >>> from pacbound import Cascade
    >>> cascade = Cascade([lambda X: X, lambda X: X[:, ::-1]], [0.9])
    >>> result = cascade.run(np.array([[0.95, 0.05], [0.3, 0.7]]))
    >>> result.predictions, result.exits, result.answered
    (array([0, 0]), array([0, 1]), array([1, 1]))
    """

    predictions: Array
    exits: NDArray[np.intp]
    confidences: Floats
    seconds: Floats
    failed: Integers

    @property
    def answered(self) -> Integers:
        """How many rows each model answered."""
        return np.bincount(self.exits, minlength=len(self.seconds))

    def __len__(self) -> int:
        return len(self.exits)


@dataclass(frozen=True, eq=False)
class Routed:
    """The answer for one item of a stream, and the model that gave it.

    Attributes
    ----------
    index, item
        The place of the item in the stream, and the item itself.
    prediction
        Its label.
    exit : int
        The place of the model that answered: 0 for the fastest.
    confidence : float
        The score of that model; NaN where the last model gave none.
    seconds : tuple of float
        The time spent waiting for each model.
    failed : tuple of int
        The places of the models that failed on this item.

    Examples
    --------
    >>> import asyncio
    >>> from pacbound.cascade import AsyncCascade
    >>> async def fast(item):
    ...     return [0.95, 0.05] if item == "clear" else [0.6, 0.4]
    >>> async def slow(item):
    ...     return [0.2, 0.8]
    >>> async def main():
    ...     cascade = AsyncCascade([fast, slow], [0.9], classes=["yes", "no"])
    ...     return [routed async for routed in cascade.stream(["clear", "blurred"])]
    >>> for routed in asyncio.run(main()):
    ...     print(routed.index, routed.item, routed.prediction, routed.exit)
    0 clear yes 0
    1 blurred no 1
    """

    index: int
    item: Any
    prediction: Any
    exit: int
    confidence: float
    seconds: tuple[float, ...]
    failed: tuple[int, ...] = ()


class CascadeStatistics:
    """What a cascade has answered since it was made or `reset`; safe to read and add to from
    several threads.

    A call that raised is not in it. Exit rates far from those of the certificate hint that the data
    have drifted.

    Parameters
    ----------
    n_models : int
        The number of models.

    Examples
    --------
    >>> statistics = CascadeStatistics(2)
    >>> statistics.add(np.array([8, 2]), np.array([0.5, 1.25]), np.array([1, 0]))
    >>> statistics
    CascadeStatistics(rows=10, answered=[8, 2], failed=[1, 0], seconds=[0.5, 1.25])
    >>> statistics.exit_rates
    array([0.8, 0.2])
    """

    def __init__(self, n_models: int) -> None:
        n_models = whole_number(n_models, "n_models", least=1)
        self._lock = Lock()
        self._answered = np.zeros(n_models, dtype=np.int64)
        self._failed = np.zeros(n_models, dtype=np.int64)
        self._seconds = np.zeros(n_models)

    @property
    def rows(self) -> int:
        """How many rows were answered."""
        return int(self.answered.sum())

    @property
    def answered(self) -> Integers:
        """How many rows each model answered."""
        with self._lock:
            return self._answered.copy()

    @property
    def failed(self) -> Integers:
        """How many items each model failed on that went to the slow model instead."""
        with self._lock:
            return self._failed.copy()

    @property
    def seconds(self) -> Floats:
        """The time spent in the calls of each model; calls under way at once each count in full."""
        with self._lock:
            return self._seconds.copy()

    @property
    def exit_rates(self) -> Floats:
        """The share of the rows that each model answered; NaN before the first."""
        answered = self.answered
        return answered / answered.sum() if answered.any() else np.full(len(answered), np.nan)

    def add(self, answered: Integers, seconds: Floats, failed: Integers) -> None:
        """Count the rows of one call.

        Parameters
        ----------
        answered, seconds, failed
            For each model: the rows that it answered, the seconds spent in it, and the items that
            it failed on.
        """
        with self._lock:
            self._answered += answered
            self._seconds += seconds
            self._failed += failed

    def reset(self) -> None:
        """Start from nothing."""
        with self._lock:
            for total in (self._answered, self._seconds, self._failed):
                total.fill(0)

    def __repr__(self) -> str:
        return (
            f"CascadeStatistics(rows={self.rows}, answered={self.answered.tolist()}, "
            f"failed={self.failed.tolist()}, seconds={self.seconds.round(3).tolist()})"
        )

    def __getstate__(self) -> dict[str, Any]:
        with self._lock:
            return {key: value.copy() for key, value in vars(self).items() if key != "_lock"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state, _lock=Lock())
