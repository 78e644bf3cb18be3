"""Testing many hypotheses with one failure probability: in a declared order, or all at once.

Knows nothing of the tests but whether they pass. What it promises, it promises
only for a list of tests that was fixed before the data were seen: a grid, an order or a number of
tests chosen by looking at the data voids all of it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from fractions import Fraction
from itertools import takewhile
from typing import Any

import numpy as np

from pacbound.errors import InvalidTypeError, InvalidValueError
from pacbound.stats.arguments import failure_probability, whole_number


def fixed_sequence(passes: Iterable[bool]) -> int:
    """How many tests pass before the first failure, in the declared order: these may all be
    claimed.

    If each test on its own passes a false claim with probability at most delta, then any false
    claim is among the returned ones with probability at most delta: no correction is due, because
    the first false claim in the order must pass its own test before any other can. The order must
    be fixed in advance; nothing is required of how the tests depend on each other.

    A generator is not asked again after the first failure.

    Parameters
    ----------
    passes
        Booleans in the declared order.

    Returns
    -------
    int
        The number of tests before the first failure; 0 if the first one fails: nothing is claimed.

    Raises
    ------
    InvalidTypeError
        If an outcome is not True or False: a p-value, say.

    Examples
    --------
    >>> fixed_sequence([True, True, False, True])
    2

    """
    if not isinstance(passes, Iterable) or isinstance(passes, (str, bytes)):
        raise InvalidTypeError(
            f"passes={passes!r} is not a sequence of outcomes: expected booleans in the declared "
            "order."
        )
    return sum(1 for _ in takewhile(_truth, passes))


def bonferroni_level(delta: float, tests: int) -> float:
    """The level at which each of `tests` tests is run so that all hold together with probability at
    least 1 - `delta`.

    Valid however the tests depend on each other. Rounded down: `tests` times the level is at most
    `delta`.

    Parameters
    ----------
    delta
        The chance that any of the tests is wrong, 0 < delta < 1.
    tests
        How many tests there are, at least 1; fixed before the data were seen.

    Returns
    -------
    float
        The level of each test.

    Raises
    ------
    InvalidValueError
        If `delta` is not between 0 and 1, if `tests` is not a whole number of at least 1, or if
        the level is too small for a float.

    Examples
    --------
    >>> bonferroni_level(0.05, 20)
    0.0025

    """
    total, count = failure_probability(delta), whole_number(tests, "tests", least=1)
    level = total / count
    if Fraction(level) * count > Fraction(total):
        level = math.nextafter(level, 0.0)
    return _positive(level, total, count)


def sidak_level(delta: float, tests: int) -> float:
    """The level at which each of `tests` *independent* tests is run so that all hold together with
    probability >= 1 - `delta`.

    Valid for independent tests, such as those of disjoint bins given their counts; otherwise use
    `bonferroni_level`, which is never larger. Rounded down: (1 - level)^`tests` is at least 1 -
    `delta`.

    Parameters
    ----------
    delta
        The chance that any of the tests is wrong, 0 < delta < 1.
    tests
        How many tests there are, at least 1; fixed before the data were seen.

    Returns
    -------
    float
        The level of each test.

    Raises
    ------
    InvalidValueError
        If `delta` is not between 0 and 1, if `tests` is not a whole number of at least 1, or if
        the level is too small for a float.

    Examples
    --------
    >>> round(sidak_level(0.05, 20), 6)
    0.002561

    """
    total, count = failure_probability(delta), whole_number(tests, "tests", least=1)
    # Three roundings, each of two units in the last place at most; the step down covers them, also
    # among subnormal numbers.
    level = math.nextafter(-math.expm1(math.log1p(-total) / count) * (1.0 - 2e-15), 0.0)
    # (1 - delta/tests)^tests >= 1 - delta (Bernoulli), so the larger of the two is as valid.
    return max(level, bonferroni_level(total, count))


def _truth(outcome: Any) -> bool:
    # Numbers are refused because a p-value, or an index, would read as a pass.
    if isinstance(outcome, np.ndarray) and outcome.ndim == 0:
        outcome = outcome[()]
    if not isinstance(outcome, (bool, np.bool_)):
        raise InvalidTypeError(
            f"{outcome!r} is not the outcome of a test: expected True or False. Compare p-values "
            "with the level."
        )
    return bool(outcome)


def _positive(level: float, delta: float, tests: int) -> float:
    if level == 0.0:
        raise InvalidValueError(
            f"delta={delta} divided among {tests} tests is too small for a float. Pass a larger "
            "delta."
        )
    return level
