"""Exact tails of counts in a sample that is drawn without replacement, and what they allow.

A population of N records of which K are marked; n of them are drawn at random, and X of these are
marked. Integers in, floats out; nothing here knows what a mark means. Every tail is rounded up and
every level down, so that nothing is ever allowed that exact arithmetic would not allow.

Tails are summed term by term. With the mode as the unit, each weight follows from its neighbour by
w(x + 1) / w(x) = (K - x)(n - x) / ((x + 1)(N - K - n + x + 1)), and the weights are divided by
their own sum, so that no logarithm of a factorial is needed. A weight that lies d places from the
mode is off by at most 5 d roundings. By Hoeffding's inequality, which holds without replacement
too, a part of less than e^-720 lies more than sqrt(360 min(n, K)) places from the mean, and is
left out: for a million records drawn from two million that leaves 20,000 places on each side, and
an error of 2e-11 where `ROUNDING` allows 1e-9.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from math import isqrt
from typing import Final

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from pacbound.errors import InvalidValueError
from pacbound.stats.arguments import failure_probability
from pacbound.stats.planning import largest_passing

Floats = NDArray[np.float64]
Step = Callable[[int], tuple[int, Floats, float]]

# Tails are compared with a level that is lower by this share of it.
ROUNDING: Final = 1e-9

# More than all that lies outside the places that are summed, and more than what underflows.
_LEFT_OUT: Final = 1e-300

# What a chain of looks may leave out at each end of each distribution; it is added back at the end.
_TRIMMED: Final = 1e-22

# The constant of the rule for the size of a sample. The cost is flat around it: 3.5 and 5.5 differ
# by at most 0.011 of the records from 4,000 records on.
_RULE: Final = 4.5

# The largest share of the records that the rule for the size of a sample starts from.
_MOST_DRAWN: Final = 0.6


def hypergeometric_tail(successes: int, *, population: int, marked: int, drawn: int) -> float:
    """P(X <= `successes`), rounded up: `drawn` of `population` records are taken at random, and X
    of these are among the `marked` ones.

    Parameters
    ----------
    successes
        Any whole number; below 0 the tail is 0.
    population, marked, drawn
        Whole numbers, of which the second and third are at most the first.

    Returns
    -------
    float
        The probability, never below its exact value by more than one part in 10^9.

    Raises
    ------
    InvalidValueError
        If a number is negative, or more are marked or drawn than there are.

    Examples
    --------
    None of the two aces among five cards of ten: 8/10 * 7/9 * 6/8 * 5/7 * 4/6.

    >>> round(hypergeometric_tail(0, population=10, marked=2, drawn=5), 6)
    0.222222
    """
    if not (0 <= marked <= population and 0 <= drawn <= population):
        raise InvalidValueError(
            f"{marked} marked and {drawn} drawn of {population} cannot be: expected at least 0, "
            "and at most as many as there are."
        )
    if successes < max(0, drawn + marked - population):
        return 0.0
    if successes >= min(drawn, marked):
        return 1.0
    start, weights = _weights(population, marked, drawn)
    if successes < start:
        return _LEFT_OUT
    below = float(weights[: successes - start + 1].sum())
    return min(1.0, below / float(weights.sum()) + _LEFT_OUT)


def largest_count(*, population: int, tolerated: int, drawn: int, delta: float) -> int:
    """The largest k in -1, 0, .., `drawn` with P(Hyp(population, tolerated + 1 + k, drawn) <= k) <=
    `delta`.

    Where more than `population` records would be marked the probability is 0: so many cannot be. -1
    says that even 0 is too many. Kup(k) - k, where Kup(k) is the largest number of marks that k
    marked draws do not exclude, is nondecreasing in k, because one more mark raises the count of
    marked draws by at most one: so every k up to the largest qualifies, and it is found by
    bisection.

    Parameters
    ----------
    population, tolerated, drawn
        Whole numbers; `drawn` is at most `population`.
    delta
        The level, 0 < delta < 1.

    Returns
    -------
    int
        k, from -1 to `drawn`.

    Examples
    --------
    >>> largest_count(population=1000, tolerated=50, drawn=118, delta=0.1)
    3
    """
    return largest_passing(
        lambda count: passes(
            count, population=population, tolerated=tolerated, drawn=drawn, delta=delta
        ),
        drawn,
    )


def least_drawn(count: int, *, population: int, tolerated: int, delta: float) -> int:
    """The least number of draws from which on `count` marked ones pass at `delta`.

    The tail falls as more are drawn, and is 0 when all are.

    Parameters
    ----------
    count
        How many of the draws may be marked.
    population, tolerated
        Whole numbers.
    delta
        The level.

    Returns
    -------
    int
        The number of draws, from `count` to `population`.

    Examples
    --------
    >>> least_drawn(3, population=1000, tolerated=50, delta=0.1)
    118
    """
    low, high = count - 1, population
    while high - low > 1:
        middle = (low + high) // 2
        if passes(count, population=population, tolerated=tolerated, drawn=middle, delta=delta):
            high = middle
        else:
            low = middle
    return high


def passes(count: int, *, population: int, tolerated: int, drawn: int, delta: float) -> bool:
    """Whether `count` marked draws exclude, at level `delta`, that `tolerated` + 1 marked records
    were left before one more of them was drawn.
    """
    marked = tolerated + 1 + count
    if count < 0 or marked > population:
        return True
    tail = hypergeometric_tail(count, population=population, marked=marked, drawn=drawn)
    return tail <= delta * (1.0 - ROUNDING)


def planned_sample(
    *, population: int, tolerated: int, rate: float, delta: float
) -> tuple[int, int]:
    """How many records to draw, and how many of them may be marked: (n, k).

    The rule starts from n0 = (N z / 4.5)^(2/3) rate^(-1/3), z = max(1/2, normal quantile of 1 -
    delta), at most 0.6 N. Of k = k*(n0) and k + 1, those that are at least 0, it takes the one
    whose least number of draws is nearest to n0 in logarithms, and draws that many, so that no
    level is wasted on rounding. Any function of what is known before the draw is valid.

    Parameters
    ----------
    population
        The number of records, at least 1.
    tolerated
        How many marked ones may be left among those not drawn, at least 1.
    rate
        `tolerated` as a share of the population, before it was rounded down.
    delta
        The level.

    Returns
    -------
    tuple of int
        The number of draws and the largest count of marked ones that passes.

    Examples
    --------
    >>> planned_sample(population=10_000, tolerated=200, rate=0.02, delta=0.01)
    (1094, 13)
    """
    score = max(0.5, float(-ndtri(delta)))
    start = (population * score / _RULE) ** (2 / 3) * rate ** (-1 / 3)
    start = max(1, min(round(start), int(_MOST_DRAWN * population)))
    first = largest_count(population=population, tolerated=tolerated, drawn=start, delta=delta)
    options = [
        (least_drawn(count, population=population, tolerated=tolerated, delta=delta), count)
        for count in (first, first + 1)
        if count >= 0
    ]
    # By ratios instead of logarithms, which would be rounded.
    drawn, count = min(options, key=lambda option: max(option[0] / start, start / option[0]))
    return drawn, count


def chance_that_a_look_errs(
    *, population: int, tolerated: int, looks: Sequence[int], counts: Sequence[int]
) -> float:
    """P(some look l has at most c_l of the first m + 1 + c_l marked records among its n_l draws),
    rounded up.

    The looks n_1 < n_2 < .. are the beginnings of one random permutation, and the marked records
    stand in a fixed order. With J_l = m + 1 + c_l and x the number of the first J_l among the first
    n_l of the permutation, x begins as Hyp(N, J_1, n_1); at each look the states with x <= c_l are
    added to the total and removed; then y = x + Hyp(N - n_l, J_l - x, n_{l+1} - n_l) of the first
    J_l are among the first n_{l+1}, and x' = y + Hyp(N - J_l, J_{l+1} - J_l, n_{l+1} - y).

    Parameters
    ----------
    population, tolerated
        N and m.
    looks
        Numbers of draws, rising.
    counts
        How many marked draws each look allows, never falling; -1 for a look that never errs.

    Returns
    -------
    float
        The chance, including all that was left out of the sums.

    Examples
    --------
    >>> chance = chance_that_a_look_errs(
    ...     population=10_000, tolerated=500, looks=[400, 800, 1600], counts=[13, 32, 77]
    ... )
    >>> round(chance, 4)
    0.0955
    """
    # A look without a count, or whose marks are more than there are records, cannot err.
    considered = [
        (drawn, count)
        for drawn, count in zip(looks, counts, strict=True)
        if count >= 0 and tolerated + 1 + count <= population
    ]
    if not considered:
        return 0.0
    drawn, count = considered[0]
    marked = tolerated + 1 + count
    start, chances, left_out = _trimmed(population, marked, drawn)
    erred = 0.0
    for place, (drawn, count) in enumerate(considered):
        marked = tolerated + 1 + count
        cut = max(0, min(len(chances), count + 1 - start))
        erred += float(chances[:cut].sum())
        start, chances = start + cut, chances[cut:]
        if place + 1 == len(considered) or not len(chances):
            break
        next_drawn, next_count = considered[place + 1]
        for step in (
            partial(_drawn_later, population - drawn, marked, next_drawn - drawn),
            partial(_marked_later, population - marked, next_count - count, next_drawn),
        ):
            start, chances, lost = _spread(start, chances, step)
            left_out += lost
    return erred * (1.0 + ROUNDING) + left_out


def staged_counts(
    *,
    population: int,
    tolerated: int,
    looks: Sequence[int],
    delta: float,
    weights: Sequence[float] | None = None,
) -> tuple[int, ...]:
    """The largest counts c_l at which the looks together err with probability at most `delta`.

    c_l = k*(n_l, a w_l) for one nominal level a, which is bisected: the exact chance that some look
    errs rises with a. Counts are lowered where needed so that they never fall from one look to the
    next.

    Parameters
    ----------
    population, tolerated
        N and m.
    looks
        Numbers of draws, rising.
    delta
        The level for all looks together.
    weights
        How a look shares in the nominal level; equal if left out.

    Returns
    -------
    tuple of int
        A count for each look.

    Examples
    --------
    Single looks would allow 14, 34 and 81.

    >>> staged_counts(population=10_000, tolerated=500, looks=[400, 800, 1600], delta=0.1)
    (13, 32, 77)
    """
    level = failure_probability(delta)
    shares = np.ones(len(looks)) if weights is None else np.asarray(weights, dtype=np.float64)
    shares = shares / shares.max()

    def at(nominal: float) -> tuple[int, ...]:
        counts = [
            largest_count(
                population=population, tolerated=tolerated, drawn=drawn, delta=nominal * share
            )
            for drawn, share in zip(looks, shares.tolist(), strict=True)
        ]
        return tuple(np.minimum.accumulate(counts[::-1])[::-1].tolist())

    def holds(counts: tuple[int, ...]) -> bool:
        chance = chance_that_a_look_errs(
            population=population, tolerated=tolerated, looks=looks, counts=counts
        )
        return chance <= level * (1.0 - ROUNDING)

    # Bonferroni's levels hold without looking; the full level for each is the most there can be.
    low, high = level / float(shares.sum()), level
    best, most = at(low), at(high)
    if holds(most):
        return most
    while best != most and high - low > 1e-6 * level:
        middle = (low + high) / 2
        counts = at(middle)
        if counts == best or (counts != most and holds(counts)):
            low, best = middle, counts
        else:
            high, most = middle, counts
    return best


def _weights(population: int, marked: int, drawn: int) -> tuple[int, Floats]:
    """The first place that has a weight to speak of, and the weights from there on, the mode's
    being 1.
    """
    least, most = max(0, drawn + marked - population), min(drawn, marked)
    mode = (drawn + 1) * (marked + 1) // (population + 2)
    reach = isqrt(360 * min(drawn, marked)) + 2
    low, high = max(least, mode - reach), min(most, mode + reach)
    up = np.arange(mode, high, dtype=np.float64)
    down = np.arange(mode, low, -1, dtype=np.float64)
    rest = float(population - marked - drawn)
    above = (marked - up) * (drawn - up) / ((up + 1.0) * (rest + up + 1.0))
    below = down * (rest + down) / ((marked - down + 1.0) * (drawn - down + 1.0))
    return low, np.concatenate([np.cumprod(below)[::-1], [1.0], np.cumprod(above)])


def _trimmed(population: int, marked: int, drawn: int) -> tuple[int, Floats, float]:
    """The first place, the probabilities from there on, and what was left out at both ends."""
    if not marked or not drawn:
        return 0, np.ones(1), 0.0
    start, weights = _weights(population, marked, drawn)
    chances = weights / weights.sum()
    low = int(np.searchsorted(np.cumsum(chances), _TRIMMED))
    high = len(chances) - int(np.searchsorted(np.cumsum(chances[::-1]), _TRIMMED))
    return start + low, chances[low:high], 2 * _TRIMMED + _LEFT_OUT


def _drawn_later(population: int, marked: int, drawn: int, x: int) -> tuple[int, Floats, float]:
    """How many of the marked records that were not drawn yet are among the next draws."""
    return _trimmed(population, marked - x, drawn)


def _marked_later(population: int, marked: int, drawn: int, y: int) -> tuple[int, Floats, float]:
    """How many of the records that are marked next were drawn already."""
    return _trimmed(population, marked, drawn - y)


def _spread(start: int, chances: Floats, step: Step) -> tuple[int, Floats, float]:
    """The distribution after a step from each state, and the most that any step left out."""
    steps = [step(start + place) for place in range(len(chances))]
    first = min(start + place + low for place, (low, _, _) in enumerate(steps))
    last = max(start + place + low + len(added) for place, (low, added, _) in enumerate(steps))
    after = np.zeros(last - first)
    for place, (low, added, _) in enumerate(steps):
        begin = start + place + low - first
        after[begin : begin + len(added)] += chances[place] * added
    return first, after, max(lost for _, _, lost in steps)
