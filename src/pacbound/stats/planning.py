"""How many labels it takes, before any is bought.

Computes with exact binomial tails; knows a target, a rate that is hoped for and a level, nothing
else. The answer is a plan, not a guarantee: if the true rate is worse than `expected`, the sample
will fail to show the target more often than planned.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.special import betainc, betaincc

from pacbound.errors import InvalidValueError
from pacbound.stats.arguments import LARGEST_COUNT, claimed_delta, real_number, tolerated_rate

# Larger plans are refused: nobody labels so many, and the search would take minutes.
MOST_TRIALS = 10**9

_LEAST_DELTA = 1e-200
# `binomial_upper` is rounded outwards, by up to 1e-8 of its tail, so that meeting a target takes a
# tail lower by as much.
_UNDER = 1.0 - 2e-8


def trials_needed(
    target: float, expected: float, *, delta: float, power: float = 0.9
) -> tuple[int, int]:
    """How many trials let `binomial_upper` stay at or below `target`, with probability `power`,
    when the true rate is `expected`.

    It is computed from exact binomial probabilities, without a normal approximation.

    Parameters
    ----------
    target
        The rate that the bound is to show, 0 <= target < 1.
    expected
        The true rate as far as you can tell, below `target`.
    delta
        The chance that the bound is wrong, 1e-200 <= delta <= 0.5.
    power
        The chance that the bound reaches the target, 0 < power < 1.

    Returns
    -------
    tuple of int
        (first, always): `first` is the smallest number of trials that will do, and from `always` on
        every number does. In between some do and some do not, because counts are whole.

    Raises
    ------
    InvalidValueError
        If `expected` is not below `target`, if a rate, `delta` or `power` is out of its range, or
        if it would take more than 10**9 trials.

    Examples
    --------
    To show an error of at most 5 % at delta = 0.01 with a model whose error is 2.5 %:

    >>> trials_needed(0.05, 0.025, delta=0.01)
    (755, 828)

    """
    goal, hoped = tolerated_rate(target, "target"), tolerated_rate(expected, "expected")
    level, chance = claimed_delta(delta), real_number(power, "power", "the chance of success")
    _refuse_hopeless(goal, hoped, level, chance)
    search = _Search(goal, hoped, level * _UNDER, chance)
    return search.first(), search.always()


def least_passing(passes: Callable[[int], bool]) -> int | None:
    """A number of rows that passes, within one per cent of where passing begins; None if it is more
    than can be counted.
    """
    high = 1
    while not passes(high):
        high *= 2
        if high > LARGEST_COUNT:
            return None
    low = high // 2
    while high - low > max(1, low // 100):
        middle = (low + high) // 2
        low, high = (low, middle) if passes(middle) else (middle, high)
    return high


def largest_passing(passes: Callable[[int], bool], most: int, near: int | None = None) -> int:
    """The largest count up to `most` that passes, where every smaller one does too; -1 if not even
    0 does. It is found with fewer tests if it is `near` a guess.
    """
    low, high, step = -1, most, 1
    while near is not None and low < near <= high:
        # Away from the guess in steps that double, until the answer lies between two of them.
        if passes(near):
            low, near = near, near + step
        else:
            high, near = near - 1, near - step
        step *= 2
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if passes(middle) else (low, middle - 1)
    return low


def _refuse_hopeless(target: float, expected: float, delta: float, power: float) -> None:
    if expected >= target:
        raise InvalidValueError(
            f"expected={expected} is not below target={target}: no number of trials shows a rate "
            "to be lower than it is. Raise the target, or improve what is measured first."
        )
    if not 0.0 < power < 1.0:
        raise InvalidValueError(
            f"power={power} is not the chance of success: expected 0 < power < 1. To succeed nine "
            "times in ten pass power=0.9."
        )
    if delta < _LEAST_DELTA:
        raise InvalidValueError(
            f"delta={delta} is too small to plan with: expected at least {_LEAST_DELTA}."
        )


class _Search:
    """The numbers of trials n that work, found by jumps over those that all do or all do not.

    The bound meets the target iff S <= K(n), with K(n) the largest k such that P_target(S <= k) <=
    delta. So n works iff K(n) >= Q(n), with Q(n) the least k such that P_expected(S <= k) >= power;
    that is, iff f(n) <= n, where f(n) = n_Q(n) and n_k is the least n with P_target(S <= k) <=
    delta. More trials only move the counts up: K, Q and n_k never fall, nor does f. Hence if f(n) >
    n, then every m with n <= m < f(n) has f(m) >= f(n) > m and fails, and `first` may jump to f(n).
    And if f(n) <= n, then every m with f(n) <= m <= n has f(m) <= f(n) <= m and works, and `always`
    may jump to below f(n).
    """

    def __init__(self, target: float, expected: float, delta: float, power: float) -> None:
        self.target, self.expected, self.delta, self.power = target, expected, delta, power
        self.surplus, self.delay = 0.0, 0.0

    def first(self) -> int:
        """The least n that works."""
        n = self._fewest()
        while (needed := self._needed(n)) > n:
            n = _affordable(needed, self.target, self.expected)
        return n

    def always(self) -> int:
        """The least n such that it and all larger ones work."""
        n = self._plenty()
        while (needed := self._needed(n)) <= n:
            n = needed - 1
        return n + 1

    def _needed(self, n: int) -> int:
        """f(n): the trials that it takes to allow as many successes as n trials will have, with
        probability `power`.
        """
        # Surplus and delay hardly change from one call to the next; with them as guesses each
        # search ends in a few steps.
        start = round(n * self.expected + self.surplus)
        successes = _least(lambda k: _cdf(k, n, self.expected) >= self.power, 0, start)
        start = round(successes / self.target + self.delay)
        trials = _least(
            lambda m: _cdf(successes, m, self.target) <= self.delta, successes + 1, start
        )
        self.surplus, self.delay = successes - n * self.expected, trials - successes / self.target
        return trials

    def _fewest(self) -> int:
        """A number of trials below which none works.

        By the data-processing inequality n KL(expected, target) >= KL(power, delta) wherever the
        power is reached at this level.
        """
        if self.power <= self.delta:
            return 1
        trials = _divergence(self.power, self.delta) / max(
            _divergence(self.expected, self.target), 1e-300
        )
        return max(1, _affordable(trials * (1.0 - 1e-6), self.target, self.expected))

    def _plenty(self) -> int:
        """A number of trials from which all work: Chernoff's bound for both errors, at the best of
        some rates in between.

        If n KL(rate, target) >= log(1/delta) then K(n) >= floor(n rate), and S exceeds that with
        probability at most exp(-n KL(rate, expected)).
        """
        rates = np.linspace(self.expected, self.target, 101)[:-1]
        return min(self._plenty_through(float(rate)) for rate in rates)

    def _plenty_through(self, rate: float) -> int:
        if rate == self.expected > 0.0:
            return 2**62
        shown = -math.log(self.delta) / _divergence(rate, self.target)
        reached = (
            -math.log1p(-self.power) / _divergence(rate, self.expected)
            if self.expected > 0.0
            else 0.0
        )
        return math.ceil(max(shown, reached) * (1.0 + 1e-6)) + 1


def _affordable(trials: float, target: float, expected: float) -> int:
    if not trials <= MOST_TRIALS:
        raise InvalidValueError(
            f"target={target} and expected={expected} take more than {MOST_TRIALS:,} trials to "
            "tell apart. Raise the target."
        )
    return int(trials)


def _least(holds: Callable[[int], bool], least: int, guess: int) -> int:
    """The least integer from `least` on that `holds`, given that all larger ones do; a good `guess`
    saves time.
    """
    low, high, step = least - 1, max(guess, least), 1
    while not holds(high):
        low, high, step = high, high + step, 2 * step
    while low < high - 1:
        middle = max((low + high) // 2, high - step)
        if holds(middle):
            high, step = middle, 2 * step
        else:
            low = middle
    return high


def _cdf(k: int, n: int, rate: float) -> Any:
    """P(S <= k). The faster betainc sees 1 - rate, whose rounding matters only for small rates."""
    if k >= n:
        return 1.0
    return betaincc(k + 1, n - k, rate) if rate < 1e-3 else betainc(n - k, k + 1, 1.0 - rate)


def _divergence(q: float, p: float) -> float:
    """Kullback-Leibler divergence of a coin of rate q < 1 from one of rate 0 < p < 1, accurate for
    q near p.
    """
    rest = (1.0 - q) * math.log1p((p - q) / (1.0 - p))
    return (
        q * (math.log1p((q - p) / p) if 2.0 * q > p else math.log(q / p)) + rest
        if q > 0.0
        else rest
    )
