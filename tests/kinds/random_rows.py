"""Levels, rates and scores at random, with those near the ends of their ranges among them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from pacbound import Tally

Rng = np.random.Generator


def level(rng: Rng) -> float:
    """Usual deltas, and some near the ends of their range."""
    return float(rng.choice([0.001, 0.01, 0.05, 0.1, 0.3, 0.5, 1e-12, rng.random() / 2]))


def rate(rng: Rng, *, zero: float = 0.05) -> float:
    """Usual rates, and 0 with probability `zero`."""
    if rng.random() < zero:
        return 0.0
    return float(rng.choice([0.02, 0.05, 0.1, 0.2, 0.4, 0.5, 0.01 + 0.8 * rng.random()]))


def scores(rng: Rng, *shape: int) -> Any:
    """Few values, so that there are ties, with some at the ends."""
    digits = int(rng.integers(1, 4))
    return np.minimum(rng.beta(4, 1, size=shape) * rng.choice([1.0, 1.1]), 1.0).round(digits)


def names(rng: Rng, rows: int) -> Any:
    """Groups of unequal size."""
    return rng.choice(["day", "night", "dawn"], size=rows, p=[0.6, 0.3, 0.1])


def many(tally: Tally, times: int) -> Tally:
    """As if each row had been drawn so often."""
    return replace(tally, rows=tally.rows * times, counts=tally.counts * times)
