"""What a session comes to if further labels are like those so far: a forecast, which no delta
covers.

The session is played on: rows are asked for as it would, and their labels lose, gain and are
declined in the shares seen so far, spread evenly. One loss is added to those seen, so that the
first few labels do not forecast too much. Where answers are graded, every row may lose, and those
with lower scores lose more: the trend of those seen goes on, as far as it is sure.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from pacbound.sources.values import MISSING

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

# Fewer labels say too little about the rest.
FEWEST_LABELS = 10

# A class that no model predicts.
_OTHER = MISSING - 1

_GOLDEN_RATIO = (5**0.5 - 1) / 2


@dataclass(frozen=True, eq=False)
class LabelForecast:
    """What a `LabelSession` comes to if further labels are like those so far. Nothing of it is
    certified.

    Attributes
    ----------
    labels : int
        After how many more labels, declined rows included.
    exit_rates : ndarray of shape (M-1,)
        The share of the rows that would then leave at each exit.
    expected_cost : float or None
        What a row would then cost on average; None if the session has no costs.
    done : bool
        Whether no further label would then change the thresholds.
    what : str
        What is told: "labels" or "grades".

    Examples
    --------
    >>> print(LabelForecast(40, np.array([0.9]), None, done=False))
    forecast: at this rate about 90% exit early after about 40 more labels
    """

    labels: int
    exit_rates: Floats
    expected_cost: float | None
    done: bool
    what: str = "labels"

    def __str__(self) -> str:
        cost = "" if self.expected_cost is None else f" (cost {self.expected_cost:.4g} a row)"
        then = f"; no further {self.what[:-1]} would matter then" if self.done else ""
        return (
            f"forecast: at this rate about {self.exit_rates.sum():.0%} exit early{cost} after "
            f"about {self.labels:,} more {self.what}{then}"
        )


@dataclass(frozen=True)
class LabelRates:
    """Of the rows that were labelled or declined, the shares in which the slow model is right, in
    which an exit is, in which neither is, and which were declined.
    """

    shares: tuple[float, ...]

    @classmethod
    def seen(cls, answers: Sequence[Integers], codes: Integers, declined: int) -> Self:
        """Those of rows with the `answers` of the models, the slow one last, and labels."""
        lost = codes == answers[-1]
        gained = ~lost & np.any([column == codes for column in answers[:-1]], axis=0)
        neither = len(codes) - lost.sum() - gained.sum()
        counts = np.array([lost.sum() + 1, gained.sum(), neither, declined], dtype=np.float64)
        return cls(tuple((counts / counts.sum()).tolist()))

    def labels(self, answers: Sequence[Integers], first: int) -> Integers:
        """Labels in these shares for further rows, numbered from `first` on; those of declined
        rows are missing.
        """
        slow, differing = answers[-1], answers[0]
        for column in answers[1:-1]:
            differing = np.where(differing == slow, column, differing)
        spread = _spread(first, len(slow))
        outcome = np.searchsorted(np.cumsum(self.shares)[:-1], spread, side="right")
        other = np.full_like(slow, _OTHER)
        return np.choose(outcome, [slow, differing, other, np.full_like(slow, MISSING)])


@dataclass(frozen=True, eq=False)
class GradeRates:
    """The qualities of the rows that were graded or declined, of each model in a column, and one
    row in which all is lost; and how much more an exit loses for each cell that its score is lower.
    """

    qualities: Floats
    slopes: Floats
    means: Floats

    @classmethod
    def seen(cls, told: Floats, cells: Integers, declined: int) -> Self:
        """Those of rows with the qualities `told`, in the cells of their scores; of the declined
        ones none is known.
        """
        lost = np.append(np.zeros(told.shape[1] - 1), 1.0)
        unknown = np.full((declined, told.shape[1]), np.nan)
        slopes = [
            _slope(column.astype(np.float64), told[:, -1] - told[:, m])
            for m, column in enumerate(cells.T)
        ]
        means = cells.mean(axis=0) if len(cells) else np.zeros(len(slopes))
        return cls(np.concatenate([told, lost[None], unknown]), np.array(slopes), means)

    def of_rows(self, first: int, cells: Integers) -> Floats:
        """Qualities like these for further rows in these cells, the `first` of them being the
        first-th. Rows are asked for from the top down, where exits lose least.
        """
        chosen = (_spread(first, len(cells)) * len(self.qualities)).astype(np.int64)
        found = self.qualities[chosen].copy()
        found[:, :-1] = np.clip(found[:, :-1] - self.slopes * (cells - self.means), 0.0, 1.0)
        return found


def _slope(cells: Floats, lost: Floats) -> float:
    """How the loss changes with the cell, by least squares, and nearer to 0 the less sure it is."""
    known = ~np.isnan(lost)
    x, y = cells[known] - cells[known].mean() if known.any() else cells[known], lost[known]
    spread = float(x @ x)
    if len(x) < FEWEST_LABELS or not spread:
        return 0.0
    slope = float(x @ y) / spread
    rest = y - y.mean() - slope * x
    error = float(rest @ rest) / (len(x) - 2) / spread
    return slope * max(0.0, 1.0 - error / slope**2) if slope else 0.0


def _spread(first: int, count: int) -> Floats:
    """Numbers from 0 to 1 that are spread evenly: multiples of the golden ratio, less their whole
    part.
    """
    return np.asarray((first + 1 + np.arange(count)) * _GOLDEN_RATIO % 1)
