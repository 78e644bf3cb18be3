"""How tight the intervals are, against others that people use: valid ones that are wider, and
narrower ones that are wrong."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from scipy.stats import binom

from benchmarks import inputs
from benchmarks.peers import adapter, named
from benchmarks.row import Bar, Row
from benchmarks.sizes import Sizes
from pacbound import binomial_interval

_BINS, _ROWS, _TRIALS, _DELTA = 20, 10_000, 50, 0.01

Interval = Callable[[Any, Any, float], tuple[Any, Any]]


def rows(_: Sizes) -> Iterator[Row]:
    scipy, wilson = adapter("scipy"), f"{named('scipy')} Wilson's interval"
    work, own = (
        f"mean width of {_BINS} intervals from {_ROWS:,} rows, delta = {_DELTA} for all together",
        _mean_width(_own),
    )
    yield Row(
        work,
        own,
        "share",
        "Hoeffding's inequality",
        _mean_width(hoeffding),
        label="width of intervals: Hoeffding",
    )
    yield Row(work, own, "share", f"{wilson}, not valid", _mean_width(scipy.wilson))
    work = f"largest chance that an interval misses the rate, {_TRIALS} trials, delta = {_DELTA}"
    bar = Bar(_DELTA, "ours", f"at most delta, {_DELTA}")
    yield Row(work, _largest_miss(_own), "share", wilson, _largest_miss(scipy.wilson), bar)


def hoeffding(successes: Any, trials: Any, delta: float) -> tuple[Any, Any]:
    """The two-sided interval that follows from Hoeffding's inequality."""
    margin = np.sqrt(np.log(2 / delta) / (2 * trials))
    return np.maximum(successes / trials - margin, 0.0), np.minimum(
        successes / trials + margin, 1.0
    )


def _own(successes: Any, trials: Any, delta: float) -> tuple[Any, Any]:
    return binomial_interval(successes, trials, delta=delta)


def _mean_width(interval: Interval) -> float:
    """Over the rows, with Sidak's share of delta for each bin."""
    confidence, correct = inputs.confidences(_ROWS)
    bins = np.ceil(confidence * _BINS).astype(np.int64) - 1
    trials = np.bincount(bins, minlength=_BINS)
    successes = np.bincount(bins, weights=correct, minlength=_BINS).astype(np.int64)
    lower, upper = interval(successes, trials, 1 - (1 - _DELTA) ** (1 / _BINS))
    return float(np.average(upper - lower, weights=trials))


def _largest_miss(interval: Interval) -> float:
    """Over all rates, by adding up the exact chance of every count whose interval leaves the rate
    out.

    The chance jumps at the ends of the intervals, so it is taken on either side of each, and on a
    grid between them.
    """
    counts = np.arange(_TRIALS + 1)
    lower, upper = interval(counts, np.full(_TRIALS + 1, _TRIALS), _DELTA)
    ends = np.concatenate([lower, upper])
    rates = np.concatenate([ends * (1 - 1e-9), ends * (1 + 1e-9), np.linspace(0, 1, 2001)])
    rates = rates[(rates > 0) & (rates < 1)][:, None]
    missed = (rates < lower) | (rates > upper)
    return float((binom.pmf(counts, _TRIALS, rates) * missed).sum(axis=1).max())
