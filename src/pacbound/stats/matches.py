"""How surprising it is that two columns of classes agree so often, if they had nothing to do with
each other.

Integers in, the logarithm of a chance out; nothing here knows what the columns are. Both margins
are fixed: each column keeps its values, and one is put into a random order.
"""

from __future__ import annotations

from math import inf, log
from typing import Final

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import gammaln

Integers = NDArray[np.int64]
Floats = NDArray[np.float64]

_ORDERS: Final = 400
"""Of how many moments the best is taken."""


def log_chance_of_matches(one: ArrayLike, other: ArrayLike, both: ArrayLike) -> float:
    """The logarithm of a bound on the chance of so many matches between unrelated columns.

    `one[c]` and `other[c]` say how often class c stands in each of two columns of equal length N,
    and `both[c]` in how many rows it stands in both. If one column is put into a uniformly random
    order, the chance that the value returned is at most log(a) is at most a, for every a.

    Two bounds are taken, each at half the level. Let a, b and m stand for `one`, `other` and
    `both`.

    *Class by class.* The matches X of one class are hypergeometric: a of the N rows, drawn by the b
    rows of the other column. The ratio of the chances of j + 1 and j matches,
    (a - j)(b - j) / ((j + 1)(N - a - b + j + 1)), falls as j rises. So with r, that ratio at m,
    below 1, P(X >= m) <= P(X = m) (1 + r + r^2 + ...) = P(X = m) / (1 - r). The least of these over
    the classes that are in both columns holds at the level times their number (union bound).

    *All classes together.* Let X be all matches, and S the sum of a b: the pairs of places in the
    two columns that hold the same class. For any k, the mean of C(X, k), the number of sets of k
    matches, is the sum over sets of k such pairs, no two of which share a place, of the chance that
    the order makes all of them meet, which is (N - k)! / N!. There are at most S^k / k! such sets.
    So by Markov's inequality P(X >= m) <= S^k (N - k)! / (N! k! C(m, k)), and the least over k is a
    bound, too.

    Parameters
    ----------
    one, other, both
        Counts for each class, with both <= one and both <= other; `one` and `other` have the same
        sum.

    Returns
    -------
    float
        At most 0; 0 says nothing.

    Examples
    --------
    Ten rows of each of two classes, all of which match, would do so by chance in one of C(20, 10)
    orders; four bounds of which the least is taken make that four in 184,756:

    >>> round(float(np.exp(log_chance_of_matches([10, 10], [10, 10], [10, 10]))) * 184_756, 6)
    4.0
    """
    a, b, m = (np.asarray(column, dtype=np.float64) for column in (one, other, both))
    common = (a > 0) & (b > 0)
    if not common.any():
        return 0.0
    rows = float(a.sum())
    a, b, m = a[common], b[common], m[common]
    by_class = log(len(a)) + float(_of_each_class(a, b, m, rows).min())
    return min(0.0, log(2) + min(by_class, _of_all(a, b, float(m.sum()), rows)))


def most_matches(one: ArrayLike, other: ArrayLike) -> Integers:
    """The matches of each class, if there are as many as the margins allow."""
    return np.minimum(np.asarray(one, np.int64), np.asarray(other, np.int64))


def _of_each_class(a: Floats, b: Floats, m: Floats, rows: float) -> Floats:
    rest = rows - a - b + m
    ratio = (a - m) * (b - m) / ((m + 1) * (rest + 1))
    chance = (
        _log_choose(a, m) + _log_choose(rows - a, b - m) - _log_choose(np.full_like(a, rows), b)
    )
    tail = np.zeros_like(a)
    falls = ratio < 1
    tail[falls] = chance[falls] - np.log1p(-ratio[falls])
    return np.minimum(tail, 0.0)


def _of_all(a: Floats, b: Floats, matches: float, rows: float) -> float:
    if matches < 1:
        return 0.0
    k = np.unique(np.linspace(1, matches, _ORDERS).round())
    pairs = float(a @ b)
    sets = k * log(pairs) - gammaln(k + 1)
    met = gammaln(rows - k + 1) - gammaln(rows + 1)
    found = sets + met - _log_choose(np.full_like(k, matches), k)
    return float(found.min(initial=inf))


def _log_choose(n: Floats, k: Floats) -> Floats:
    return np.asarray(gammaln(n + 1) - gammaln(k + 1) - gammaln(n - k + 1))
