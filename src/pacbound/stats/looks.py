"""Looking at a growing sample at planned sizes, and claiming at whichever look passes.

The looks n_1 < .. < n_L and `xi` are fixed before any outcome is seen. At look l the claim "the
rate is at most xi" passes iff at most c_l errors were seen among the first n_l trials. Let A be the
event that some look passes. Fewer errors keep a pass, so P_p(A) falls in the true rate p (couple
the trials), and for every p above xi it is at most P_xi(A), which is at most `delta`. So any look
may be chosen, also after seeing all of them, and all claims hold together; stopping at the first
pass is not required. A look that is left out only makes A smaller; one that is added would not.

The same event serves every claim of this form about a threshold whose count of errors only grows
along the thresholds: a claim at any look about a threshold that is not good implies A at the first
such threshold.

c_l is the largest k with P_xi(errors <= k of n_l) <= a, and a is the largest level, common to all
looks, at which P_xi(A) <= delta (1 - 1e-6). P_xi(A) is computed by recursion over the looks: take
the states that pass out, convolve the rest with the errors of the trials up to the next look. All
terms are positive, so that the sum errs by less than 1e-8 of itself, and what lies outside the
windows that are summed, less than 1e-6 of `delta`, is counted as if it passed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import ceil, floor

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pacbound.errors import InvalidValueError
from pacbound.stats.arguments import (
    LARGEST_COUNT,
    claimed_delta,
    failure_probability,
    real_number,
    tolerated_rate,
    whole_number,
    whole_numbers,
)
from pacbound.stats.binomial import binomial_cdf
from pacbound.stats.paired import NEGLECTED_SHARE, labels_needed_by_walk, window_reach

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

# The share of delta that is never spent: it covers the rounding of the sums.
SAFETY = 1e-6

# What the sums may be short of, relative: a thousand looks of ten thousand terms each stay below a
# tenth of it.
ROUNDING = 1e-8

# Below this the terms of the sums leave the range of float64.
SMALLEST_DELTA = 1e-200

# Multiplications that a plan may take, about a quarter of a minute.
MOST_WORK = 1e10

# What a look costs besides its multiplications, in multiplications.
_LOOK_WORK = 2e4


@dataclass(frozen=True)
class PlannedLooks:
    """How many errors may be seen at each planned look for "the rate is at most xi" to hold.

    If the true rate is above `xi`, then any look passes with probability at most `delta`, whichever
    is chosen and however. Looks may be skipped, never added. `planned_looks` makes it.

    Attributes
    ----------
    xi : float
        The rate that is claimed.
    delta : float
        The chance that any look passes although the rate is higher.
    looks : tuple of int
        The planned sizes: trials since the start, not since the last look.
    levels : tuple of float
        The chance that each look alone passes at a rate of `xi`; 0 where it cannot.
    largest_errors : tuple of int
        The most errors with which each look passes; -1 where even none are too many.
    spent : float
        The chance that some look passes at a rate of `xi`, rounded up: at most `delta`.

    Examples
    --------
    >>> plan = planned_looks(0.02, delta=0.01, looks=[500, 1000, 1500, 2000])
    >>> plan.largest_errors
    (2, 8, 16, 24)
    >>> plan.verdict(9, 1000), plan.verdict(16, 1500)
    (False, True)
    """

    xi: float
    delta: float
    looks: tuple[int, ...]
    levels: tuple[float, ...]
    largest_errors: tuple[int, ...]
    spent: float

    def allowed(self, trials: int) -> int:
        """The most errors with which the look at `trials` passes.

        Parameters
        ----------
        trials
            One of `looks`.

        Returns
        -------
        int
            The number; -1 if even none are too many.

        Raises
        ------
        InvalidValueError
            If no look was planned there.

        Examples
        --------
        >>> planned_looks(0.02, delta=0.01, looks=[500, 1000]).allowed(1000)
        9
        """
        return self.largest_errors[self.position(trials)]

    def position(self, trials: int) -> int:
        """The position of the look at `trials` among the planned ones, from 0.

        Parameters
        ----------
        trials
            One of `looks`.

        Returns
        -------
        int
            The position.

        Raises
        ------
        InvalidValueError
            If no look was planned there.

        Examples
        --------
        >>> planned_looks(0.02, delta=0.01, looks=[500, 1000]).position(1000)
        1
        """
        size = whole_number(trials, "trials")
        if size not in self.looks:
            raise InvalidValueError(
                f"{size} is not a planned look: expected one of {listed(self.looks)}. Looks may be "
                "skipped, never added: go on to the next one, or use the first so many rows."
            )
        return self.looks.index(size)

    def verdict(self, errors: int, trials: int) -> bool:
        """Whether `errors` in the first `trials` trials show that the rate is at most `xi`.

        Parameters
        ----------
        errors
            The errors among all trials up to this look.
        trials
            One of `looks`.

        Returns
        -------
        bool
            True holds with probability at least 1 - `delta`, together with every other look's.
            False shows nothing.

        Raises
        ------
        InvalidValueError
            If no look was planned there, or there are more errors than trials.

        Examples
        --------
        >>> planned_looks(0.02, delta=0.01, looks=[500, 1000]).verdict(9, 1000)
        True
        """
        allowed, wrong = self.allowed(trials), whole_number(errors, "errors")
        if wrong > trials:
            raise InvalidValueError(
                f"{wrong} errors of {trials} trials cannot be: expected errors <= trials. Check "
                "the order of the arguments."
            )
        return wrong <= allowed

    def passing(self, rate: float) -> tuple[float, ...]:
        """The chance that each look is the first to pass, if the true rate is `rate`; descriptive.

        Parameters
        ----------
        rate
            The true rate of errors, from 0 to 1.

        Returns
        -------
        tuple of float
            A probability for each look. What is missing to 1 is the chance that none passes.

        Raises
        ------
        InvalidValueError
            If `rate` is not a rate.

        Examples
        --------
        >>> plan = planned_looks(0.02, delta=0.01, looks=[500, 1000])
        >>> [round(chance, 3) for chance in plan.passing(0.005)]
        [0.543, 0.426]
        """
        truth = real_number(rate, "rate", "a rate")
        if not 0.0 <= truth <= 1.0:
            raise InvalidValueError(f"rate={rate} is not a rate: expected 0 <= rate <= 1.")
        chances = _first_passes(self.looks, self.largest_errors, truth, self.delta)
        return tuple(chances.tolist())

    def expected_labels(self, rate: float) -> float:
        """How many labels it takes on average to stop at the first look that passes, or else at the
        last, if the true rate is `rate`; descriptive.

        Parameters
        ----------
        rate
            The true rate of errors, from 0 to 1.

        Returns
        -------
        float
            The average number of labels.

        Raises
        ------
        InvalidValueError
            If `rate` is not a rate.

        Examples
        --------
        >>> plan = planned_looks(0.02, delta=0.01, looks=range(240, 2401, 240))
        >>> round(plan.expected_labels(0.01))
        1413
        """
        chances = np.array(self.passing(rate))
        last = self.looks[-1]
        return float(last - chances @ (last - np.array(self.looks)))


def planned_looks(xi: float, *, delta: float, looks: ArrayLike) -> PlannedLooks:
    """How many errors each of several planned looks at a growing sample may show.

    If the true rate is above `xi`, then the chance that any of the looks passes is at most `delta`,
    so any look may be claimed, also the best of all. The trials must be independent draws of one
    law, and `xi`, `delta` and the looks fixed before the first outcome was seen; each look counts
    all trials up to it. Looks may be skipped, never added. One rate at all looks costs less than
    giving each look `delta` divided by their number.

    It fits a single rate, the misses of a shield and of a recall, where trials are rollouts and
    positives. Cascades with labels and abstention are not of this form: certify those at each look
    with `delta` divided by the number of looks.

    Parameters
    ----------
    xi
        The rate that is to be shown, 0 < xi < 1.
    delta
        The chance that any look passes although the rate is higher, 1e-200 <= delta <= 0.5.
    looks
        The planned sizes, rising: trials since the start, not since the last look.

    Returns
    -------
    PlannedLooks
        The largest number of errors that passes at each look; `verdict` and `allowed` look them up.

    Raises
    ------
    InvalidValueError
        If `xi` or `delta` is out of its range; if the looks do not rise, or even the last has too
        few trials to pass; if they would take more than about a quarter of a minute to compute.
    InvalidTypeError
        If a look is not a whole number.

    Examples
    --------
    A look after every 240 labels, ten in all, to show that a rate is at most 2 %. If it is 1 %,
    that takes 1,413 labels on average, where a fixed sample takes 1,959 for as good a chance.

    >>> plan = planned_looks(0.02, delta=0.01, looks=range(240, 2401, 240))
    >>> plan.largest_errors
    (-1, 1, 4, 8, 11, 14, 18, 22, 26, 29)
    >>> round(plan.expected_labels(0.01)), round(sum(plan.passing(0.01)), 3)
    (1413, 0.904)
    """
    return plan_at(xi, delta=claimed_delta(delta), looks=looks)


def plan_at(xi: float, *, delta: float, looks: ArrayLike) -> PlannedLooks:
    """The same at any level, for a document that was made elsewhere."""
    rate, level = tolerated_rate(xi), failure_probability(delta)
    if rate == 0.0:
        raise InvalidValueError(
            "xi=0 is shown by no number of trials: expected 0 < xi < 1. To plan looks for a small "
            "rate pass, for example, xi=0.001."
        )
    sizes = whole_numbers(looks, "looks", least=1)
    if sizes.ndim != 1 or not sizes.size or (np.diff(sizes) <= 0).any():
        raise InvalidValueError(
            f"looks={looks!r} is not a plan: expected rising numbers of trials, such as [500, "
            "1000]."
        )
    if level < SMALLEST_DELTA:
        raise InvalidValueError(
            f"delta={level} is too small to plan looks with: expected at least {SMALLEST_DELTA}."
        )
    fixed = tuple(sizes.tolist())
    work = looks_work(fixed, xi=rate, delta=level)
    if work > MOST_WORK:
        raise InvalidValueError(
            f"{len(fixed):,} looks up to {fixed[-1]:,} trials take too long to compute exactly "
            f"({work / MOST_WORK:.0f} times what is tried): plan fewer, or pass delta divided by "
            "their number at each."
        )
    return _cached_plan(rate, level, fixed)


def looks_work(looks: Sequence[int], *, xi: float, delta: float) -> float:
    """About how many multiplications `planned_looks` takes; `MOST_WORK` of them are tried.

    Examples
    --------
    >>> looks_work([500, 1000], xi=0.02, delta=0.01) < 1e7
    True

    """
    sizes = np.array(looks, dtype=np.float64)
    added = np.diff(sizes, prepend=0.0)
    level = max(delta, SMALLEST_DELTA)
    widths = np.minimum(2.0 * _reach(added, xi, level, sizes.size) + 1.0, added + 1.0)
    # Between the looks live the states from 0 to what may pass at the end.
    states = np.minimum(np.cumsum(widths), sizes[-1] * xi + 1.0)
    steps = np.log2(2.0 + sizes.size * np.sqrt(sizes[-1] * xi))
    return float(steps * (widths * states + _LOOK_WORK).sum())


def listed(looks: Sequence[int]) -> str:
    """Some of the looks for a message: all if they are few."""
    shown = [f"{n:,}" for n in looks]
    return ", ".join(shown if len(shown) <= 12 else [*shown[:6], "…", *shown[-3:]])


@lru_cache(maxsize=64)
def _cached_plan(xi: float, delta: float, looks: tuple[int, ...]) -> PlannedLooks:
    sizes = np.array(looks)
    # At this level the looks together spend at most delta, by their number alone.
    shared = delta * (1.0 - 4.0 * SAFETY) / sizes.size
    least, most = _largest(sizes, xi, shared), _largest(sizes, xi, delta)
    if most[-1] < 0:
        needed = min(labels_needed_by_walk(xi, delta=delta), LARGEST_COUNT)
        raise InvalidValueError(
            f"No look passes: even {looks[-1]:,} trials without an error do not show a rate of at "
            f"most {xi} at delta={delta}. The last look needs {needed:,} trials or more."
        )
    # Between there and delta, what passes changes only at the tails themselves.
    owner = np.repeat(np.arange(sizes.size), most - least)
    within = np.arange(owner.size) - np.repeat(
        np.cumsum(most - least) - (most - least), most - least
    )
    tails = np.atleast_1d(binomial_cdf(least[owner] + 1 + within, sizes[owner], xi))

    def passing(level: float) -> tuple[int, ...]:
        added = np.bincount(owner[tails <= level], minlength=sizes.size)
        return tuple((least + added).tolist())

    levels = np.unique(np.append(tails, shared))
    low, high = 0, levels.size
    while high - low > 1:
        middle = (low + high) // 2
        if _spent(looks, passing(levels[middle]), xi, delta) <= delta * (1.0 - SAFETY):
            low = middle
        else:
            high = middle
    largest = passing(levels[low])
    return PlannedLooks(
        xi=xi,
        delta=delta,
        looks=looks,
        levels=tuple(np.atleast_1d(binomial_cdf(np.array(largest), sizes, xi)).tolist()),
        largest_errors=largest,
        spent=_spent(looks, largest, xi, delta),
    )


def _largest(looks: Integers, xi: float, level: float) -> Integers:
    """The most errors at each look with P_xi(so few) <= level; -1 where even none are too many."""
    low, high = np.full_like(looks, -1), looks.copy()
    while (high - low > 1).any():
        middle = (low + high) // 2
        passes = binomial_cdf(middle, looks, xi) <= level
        low, high = np.where(passes, middle, low), np.where(passes, high, middle)
    return low


def _spent(looks: Sequence[int], largest: Sequence[int], xi: float, delta: float) -> float:
    """P_xi(some look passes), from above."""
    total = float(_first_passes(looks, largest, xi, delta).sum())
    return total * (1.0 + ROUNDING) + NEGLECTED_SHARE * delta


def _first_passes(
    looks: Sequence[int], largest: Sequence[int], rate: float, delta: float
) -> Floats:
    """The chance that each look is the first to pass, at the true `rate`.

    Of the errors at look l, `states[i]` has the chance that they are `least` + i and no look has
    passed. More errors than may pass at the last look pass at none, and are dropped.
    """
    passed = np.zeros(len(looks))
    states, least, before = np.ones(1), 0, 0
    reach = _reach(np.diff(np.array(looks, dtype=np.float64), prepend=0.0), rate, delta, len(looks))
    for look, (trials, most) in enumerate(zip(looks, largest, strict=True)):
        first, added = _pmf(trials - before, rate, float(reach[look]))
        states, least = np.convolve(states, added), least + first
        states = states[: max(largest[-1] - least + 1, 0)]
        gone = min(max(most - least + 1, 0), states.size)
        passed[look] = states[:gone].sum()
        states, least, before = states[gone:], least + gone, trials
        if not states.size:
            break
    return passed


def _reach(trials: Floats, rate: float, delta: float, looks: int) -> Floats:
    """How far from their mean the errors of so many `trials` are summed. What lies outside, over
    all looks, is below 1e-6 of `delta`.
    """
    return window_reach(trials, np.asarray(rate), delta / looks)


def _pmf(trials: int, rate: float, reach: float) -> tuple[int, Floats]:
    """The binomial law within `reach` of its mean: the first count, and the chance of it and of
    each that follows.

    The ratios of neighbours are multiplied up from the mean and divided by their sum, which loses
    no digits to logarithms of large factorials.
    """
    mean = trials * rate
    first, last = max(floor(mean - reach), 0), min(ceil(mean + reach), trials)
    if rate in (0.0, 1.0) or first == last:
        return (trials if rate == 1.0 else first), np.ones(1)
    counts = np.arange(first, last)
    ratios = (trials - counts) / (counts + 1.0) * (rate / (1.0 - rate))
    peak = min(max(floor(mean), first), last) - first
    falling = np.cumprod(ratios[peak:])
    rising = np.cumprod(1.0 / ratios[:peak][::-1])[::-1]
    law: Floats = np.concatenate([rising, [1.0], falling])
    return first, law / law.sum()
