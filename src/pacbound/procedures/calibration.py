"""Intervals for the true confidence of every cell, simultaneously (the paper's Theorem 1).

Cells are fixed without the rows, which are i.i.d. Given how many rows fell into each
cell, the right predictions are independent binomials with the cells' true confidences, so each cell
gets a Clopper-Pearson interval at a level that makes them all hold together with probability at
least 1 - delta.

**Whether a number is the bound of a count, whoever computed it.** Bounds that were computed
elsewhere, by another SciPy, may differ in their last digits. So a bound is judged by its tail: an
upper bound u of k successes in n trials is accepted if P(S <= k) at the rate u is at most the
level, and two floats further in at least (1 - 2e-3) of it. Lower bounds are their mirror image.
Where `pacbound.stats.binomial` uses Chernoff's bound, exp(-n D) stands in place of the tail, D
being the divergence of k/n from u.

Tails are summed in decimal arithmetic, so that nobody has to trust a special function here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from decimal import MAX_EMAX, MIN_EMIN, Context, Decimal, localcontext
from functools import lru_cache
from math import nextafter
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from pacbound.errors import InvalidValueError
from pacbound.stats.arguments import is_one_of
from pacbound.stats.binomial import (
    LEAST_LEVEL,
    MOST_TRIALS,
    SMOOTH_COUNT,
    SMOOTH_TRIALS,
    binomial_interval,
    binomial_lower,
    binomial_upper,
    bonferroni_level,
    sidak_level,
)
from pacbound.stats.graded_bets import mean_lower, mean_upper

Correction = Literal["sidak", "bonferroni"]
Side = Literal["both", "lower", "upper"]
Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

# The share of its level that a bound may leave unused.
WIDE = Decimal("2e-3")

# Terms of tails that are summed for one call, some minutes. Bounds that are left are refused.
MOST_TERMS = 10**8

_CONTEXT = Context(prec=45, Emax=MAX_EMAX, Emin=MIN_EMIN)
# More than the share of itself that a tail below can be off by.
_ROUNDING = Decimal("1e-25")
_PI = Decimal("3.14159265358979323846264338327950288419716939937510582097")


def dense_counts(
    tables: Sequence[Mapping[str, Any]], n_cells: int
) -> tuple[Integers, NDArray[Any]]:
    """The trials and the successes of all cells, of shape (tables, cells), from the `counts` of
    those that hold rows; of grades, the sum of the qualities.
    """
    shape = len(tables), n_cells
    trials = np.zeros(shape, dtype=np.int64)
    successes: NDArray[Any] = np.zeros(shape, dtype=np.int64)
    for place, table in enumerate(tables):
        seen = table["counts"]
        successes = successes.astype(seen["right"].dtype)
        trials[place, seen["cells"]] = rows_in(seen)
        successes[place, seen["cells"]] = seen["right"]
    return trials, successes


def rows_in(counts: Mapping[str, Any]) -> Integers:
    """The rows of each cell."""
    return np.asarray(counts["wrong"] + counts["right"], dtype=np.int64)


def mean_intervals(
    tables: Sequence[Mapping[str, Any]],
    trials: Integers,
    *,
    delta: float,
    correction: Correction,
    side: Side,
    overlapping: bool,
    declared: bool,
) -> tuple[Floats, Floats]:
    """The same for the mean quality of each cell, by bets (`pacbound.stats.graded_bets`). Grades
    that are not `declared` lie between the level that they count on and the next one.
    """
    check_options(correction, side)
    lower, upper = np.zeros(trials.shape), np.ones(trials.shape)
    levels = _levels(trials > 0, delta, correction, overlapping=overlapping)
    levels = levels / 2.0 if side == "both" else levels
    for place, table in enumerate(tables):
        cells = table["counts"]["cells"].tolist()
        for cell, grades in zip(cells, table["counts"]["grades"], strict=True):
            level = float(levels[place, cell])
            if side != "upper":
                lower[place, cell] = mean_lower(grades, delta=level)
            if side != "lower":
                highest = grades if declared else _raised(grades)
                upper[place, cell] = mean_upper(highest, delta=level)
    return lower, upper


def _raised(grades: Integers) -> Integers:
    """The counts if every grade were on the next level."""
    return np.concatenate([[0], grades[:-2], [grades[-2] + grades[-1]]])


def cell_intervals(
    trials: Integers,
    successes: Integers,
    *,
    delta: float,
    correction: Correction,
    side: Side,
    overlapping: bool,
    stored: tuple[Floats, Floats] | None = None,
) -> tuple[Floats, Floats]:
    """Lower and upper bounds for (tables, cells) of counts; all hold together with probability at
    least 1 - `delta`.

    Tables over disjoint rows share one budget over all their non-empty cells. `overlapping` tables,
    in which a row may be counted more than once, are not independent: each gets an equal share of
    delta (Bonferroni) and spends it within. An empty cell has the interval [0, 1].

    Another SciPy computes other last digits. So a `stored` bound stays where its tail shows that it
    is a bound of these counts; what is accepted is said at the top of this file.
    """
    check_options(correction, side)
    lower, upper = np.zeros(trials.shape), np.ones(trials.shape)
    seen = trials > 0
    levels = _levels(seen, delta, correction, overlapping=overlapping)
    hits, attempts, level = successes[seen], trials[seen], levels[seen]
    if side == "both":
        lower[seen], upper[seen] = binomial_interval(hits, attempts, delta=level)
    elif side == "lower":
        lower[seen] = binomial_lower(hits, attempts, delta=level)
    else:
        upper[seen] = binomial_upper(hits, attempts, delta=level)
    if stored is not None:
        levels = levels / 2.0 if side == "both" else levels
        for own, found, is_upper in zip(stored, (lower, upper), (False, True), strict=True):
            moved = seen & (own != found) & (side != ("lower" if is_upper else "upper"))
            counts = own[moved], successes[moved], trials[moved], levels[moved]
            found[moved] = np.where(are_bounds(*counts, upper=is_upper), own[moved], found[moved])
    return lower, upper


def check_options(correction: object, side: object) -> None:
    """Refuse a correction or a side that does not exist."""
    if not is_one_of(correction, ("sidak", "bonferroni")):
        raise InvalidValueError(
            f"correction={correction!r} is not known: expected 'sidak' or 'bonferroni' (the "
            "paper's delta/K)."
        )
    if not is_one_of(side, ("both", "lower", "upper")):
        raise InvalidValueError(f"side={side!r} is not known: expected 'both', 'lower' or 'upper'.")


def _levels(
    seen: NDArray[np.bool_], delta: float, correction: Correction, *, overlapping: bool
) -> Floats:
    """The failure probability that each cell may spend."""
    shares = [seen[table : table + 1] for table in range(len(seen))] if overlapping else [seen]
    budget = bonferroni_level(delta, len(shares))
    return np.concatenate(
        [np.full(share.shape, _cell_level(share, budget, correction)) for share in shares]
    )


def _cell_level(seen: NDArray[np.bool_], budget: float, correction: Correction) -> float:
    if correction == "bonferroni":
        return bonferroni_level(budget, seen.size)
    return sidak_level(budget, max(1, int(seen.sum())))


def are_bounds(
    bounds: Floats, successes: Integers, trials: Integers, level: Floats, *, upper: bool
) -> NDArray[np.bool_]:
    """Which `bounds` are upper bounds at their level, or lower ones, as the module says.

    Parameters
    ----------
    bounds, successes, trials, level
        One of each for every bound; 0 <= bounds <= 1.
    upper
        Whether they are upper bounds; lower ones are their mirror image.

    Returns
    -------
    ndarray of bool
        True where the bound is one.

    Examples
    --------
    >>> bound = binomial_upper(3, 40, delta=0.01)
    >>> moved = np.array([bound, bound * (1 - 1e-7), bound * 1.001])
    >>> counts = np.full(3, 3), np.full(3, 40), np.full(3, 0.01)
    >>> are_bounds(moved, *counts, upper=True).tolist()
    [True, False, False]

    """
    judge, found = _Judge(), []
    columns = (column.tolist() for column in (bounds, successes, trials, level))
    with localcontext(_CONTEXT):
        for bound, hits, attempts, chance in zip(*columns, strict=True):
            towards = 0.0 if upper else 1.0
            inner = nextafter(nextafter(bound, towards), towards)
            rates = [(Decimal(rate), 1 - Decimal(rate)) for rate in (bound, inner)]
            if not upper:
                rates = [(rest, rate) for rate, rest in rates]
            rarer = hits if upper else attempts - hits
            found.append(judge.accepts(rarer, attempts, Decimal(chance), *rates))
    return np.array(found, dtype=np.bool_)


class _Judge:
    """Judges bounds as long as there are terms left to sum."""

    def __init__(self) -> None:
        self.terms = MOST_TERMS

    def accepts(
        self,
        k: int,
        n: int,
        level: Decimal,
        outer: tuple[Decimal, Decimal],
        inner: tuple[Decimal, Decimal],
    ) -> bool:
        """Whether so few as `k` of `n` have a chance of at most `level` at the rate `outer`, and of
        at least (1 - WIDE) times that at the rate `inner`; each is a rate and its complement.
        """
        if k == n:
            return outer[0] == 1
        chernoff = n > MOST_TRIALS or level < Decimal(LEAST_LEVEL) * (1 + Decimal("1e-12"))
        if n <= MOST_TRIALS and level >= Decimal(LEAST_LEVEL):
            jumps = n > SMOOTH_TRIALS and min(k, n - k) > SMOOTH_COUNT
            used = min(level, Decimal("0.5")) if jumps else level
            chance = self._so_few(k, n, *outer)
            if chance <= used * (1 - _ROUNDING):
                near = used * (1 - WIDE)
                # Beyond a level of one half bounds may lie below what was seen, and need not.
                seen = inner[0] * n <= k * (1 + Decimal("1e-14"))
                if seen or chance > near or self._so_few(k, n, *inner) > near:
                    return True
        if not chernoff or outer[0] * n <= k:
            return False
        enough, near = -level.ln(), -(1 - WIDE).ln()
        inside = inner[0] * n <= k or _divergence(k, n, *inner) <= enough + near
        return _divergence(k, n, *outer) >= enough and inside

    def _so_few(self, k: int, n: int, rate: Decimal, rest: Decimal) -> Decimal:
        """P(S <= k) of n trials: the chance of k, times a sum that begins with 1."""
        if rest <= 0:
            return Decimal(0)
        if rate <= 0:
            return Decimal(1)
        if k > n * rate:
            # The rest of the law falls from k + 1 on.
            return 1 - self._so_few(n - k - 1, n, rest, rate)
        odds, total, term = rest / rate, Decimal(1), Decimal(1)
        for i in range(k, 0, -1):
            ratio = odds * i / (n - i + 1)
            term *= ratio
            total += term
            self.terms -= 1
            if term * ratio < total * (1 - ratio) * Decimal("1e-30"):
                break
            if self.terms < 0:
                return Decimal(1)
        ways = _log_factorial(n) - _log_factorial(k) - _log_factorial(n - k)
        return total * (ways + k * rate.ln() + (n - k) * rest.ln()).exp()


def _divergence(k: int, n: int, rate: Decimal, rest: Decimal) -> Decimal:
    """N D(k/n, rate), for k below n."""
    if rest <= 0 or (rate <= 0 and k):
        return Decimal("inf")
    seen = k * (k / (n * rate)).ln() if k else Decimal(0)
    return seen + (n - k) * ((n - k) / (n * rest)).ln()


@lru_cache(maxsize=1024)
def _log_factorial(n: int) -> Decimal:
    """Ln n!, by Stirling's series from a number on that makes its first missing term vanish."""
    if n < 2:
        return Decimal(0)
    x, product = Decimal(n), Decimal(1)
    while x < 2000:
        x += 1
        product *= x
    terms = ((12, 1), (-360, 3), (1260, 5), (-1680, 7), (1188, 9))
    series = sum((1 / (divisor * x**power) for divisor, power in terms), Decimal(0))
    return (x + Decimal("0.5")) * x.ln() - x + (2 * _PI).ln() / 2 + series - product.ln()
