"""Whether test rows show that a cascade loses more than xi: an exact test, valid whatever the rates
of losses and gains are."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from numpy.typing import NDArray
from scipy.special import betainc
from scipy.stats import binom

from pacbound import binomial_interval

Floats = NDArray[np.float64]

RESERVED = 1e-3
"""Of the level, the part spent on where the rate of gains lies (Berger and Boos, 1994)."""
_CELLS = 100


def shown_above(losses: int, gains: int, rows: int, *, xi: float, level: float) -> bool:
    """Whether the hypothesis P(lost) - P(gained) <= `xi` is rejected: true with probability at most
    `level` if it holds.

    As McNemar's test, of losses - gains, but for a difference that is not zero the rate of gains v
    matters. The p-value is the largest over an interval for v, at the rates (v + xi, v), plus the
    chance that v is not in it.
    """
    excess = losses - gains
    if excess <= xi * rows:
        return False
    low, high = binomial_interval(gains, rows, delta=RESERVED)
    edges = np.linspace(low, min(high, (1 - xi) / 2), _CELLS + 1)
    # The tail rises in the rate of losses and falls in that of gains: at this corner it is the most
    # that a cell can give.
    worst = max(
        excess_tail(excess, rows, v_high + xi, v_low) for v_low, v_high in pairwise(edges.tolist())
    )
    return worst + RESERVED <= level


def excess_tail(excess: int, rows: int, p_loss: float, p_gain: float) -> float:
    """P(losses - gains >= `excess`), `excess` above 0, for one of three outcomes in each of `rows`
    rows."""
    gains = np.arange(int(binom.isf(1e-12, rows, p_gain)) + 2)
    losses = gains + excess
    gains = gains[losses + gains <= rows]
    losses = losses[: len(gains)]
    tails = betainc(losses, rows - gains - losses + 1, min(1.0, p_loss / (1 - p_gain)))
    return float(binom.pmf(gains, rows, p_gain) @ tails) + 1e-12
