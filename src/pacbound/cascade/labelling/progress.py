"""How far a session has come: what is certified, what is still possible, what is left to ask."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pacbound.claims.cascade.group import BestPossible

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class LabelProgress:
    """How far a `LabelSession` has come. Certified is `xi` alone; all else is descriptive.

    Attributes
    ----------
    labels, declined : int
        How many rows in which predictions differ have a label, and how many were declined.
    open : int
        How many others have a label that could still matter. It falls as labels come, faster than
        by one each.
    differ, rows : int
        In how many rows predictions differ, and how many rows there are.
    certified : bool
        Whether anything is certified so far.
    thresholds, exit_rates : ndarray of shape (M-1,)
        The certified thresholds, +inf where nothing is, and the share of the rows that leaves at
        each exit.
    expected_cost : float or None
        What a row costs on average; None if the session has no costs.
    best_possible : BestPossible
        What more labels could lead to at best, if each were one that exiting early gains.
    done : bool
        Whether no further label can change the thresholds.

    Examples
    --------
    >>> from pacbound.cascade import LabelSession
    >>> session = LabelSession([0.9] * 400, [[1, 1]] * 400, xi=0.02, delta=0.05)
    >>> print(session.progress)
    0 labels of 0 differing rows: 100.0% exit early, at best 100.0%; done
    """

    labels: int
    declined: int
    open: int
    differ: int
    rows: int
    certified: bool
    thresholds: Floats
    exit_rates: Floats
    expected_cost: float | None
    best_possible: BestPossible
    done: bool

    def __str__(self) -> str:
        best = self.best_possible
        declined = f" ({self.declined:,} declined)" if self.declined else ""
        now = f"{self.exit_rates.sum():.1%} exit early" if self.certified else "not certified"
        cost = "" if self.expected_cost is None else f" (cost {self.expected_cost:.4g} a row)"
        left = "done" if self.done else f"{self.open:,} more may matter"
        return (
            f"{self.labels:,} labels of {self.differ:,} differing rows{declined}: {now}{cost}, at "
            f"best {best.exit_rates.sum():.1%}{_costing(best.expected_cost)}; {left}"
        )


def _costing(cost: float | None) -> str:
    return "" if cost is None else f" (cost {cost:.4g})"
