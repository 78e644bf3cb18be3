"""The lowest confidence at which to answer, so that at most xi of the answers are wrong: walks down
the thresholds, each of which ends where a test fails.

A threshold j / 2^16 answers the rows whose score reaches it. Thresholds that answer the same rows
are a *run*: from an occupied cell down to just above the next one. They pass or fail together.

The risk is conditional, P(wrong | answered), and a walk that starts at the top fails there on a few
rows. So it starts where a certain *number* of rows is answered.

Thresholds t = 0, 1, … go down from the highest. N_t rows are answered, E_t of them wrongly, and r_t
is the true risk; a threshold is bad if r_t > xi. A walk at level a with the count k, fixed by n, xi
and delta alone, starts at the first t with N_t >= k and passes on as long as
Upper(E_t, N_t, a) <= xi.

**Theorem.** The probability that the walk passes any bad threshold is at most a, for every law of
scores and errors, atoms and risks that rise with the score included.

*Proof.* (0) Lower the error rates of cells until the last bad threshold has a risk of exactly xi
and each bad one still at least xi. Passes only become more likely. (1) At a bad threshold f add
correct rows of later cells until the risk is exactly xi, always in one order: from the cells up to
the next bad threshold first. Of the completed sample (N*, E*), E* is binomial (N*, xi) given N*.
Correct rows never unmake a pass, so f passes only if T_f rejects, the exact randomised test at
level a on (N*, E*). (2) From f to the next bad threshold g the completed sample grows by rows of
risk xi, so the chance that T_g rejects, given the completed sample at f, is a level-a test of E*.
Given (N*, E*) errors are real and correct rows only with some probability, so P(N_f >= k | E*)
rises in E*: given N_f >= k the law of E* has a rising likelihood ratio to the binomial. T_f rejects
for the smallest E*, so of all level-a tests it has the least power against such laws:
E[1{N_f >= k} T_f] <= E[1{N_f >= k} T_g]. (3) A walk that had started at f and failed there has
ended. So P(a bad threshold down to g passes) <= E[1{N_f >= k} T_f] + E[1{N_f < k <= N_g} T_g]
<= E[1{N_g >= k} T_g], and at the last bad threshold this is a P(N >= k). QED

Separate walks share delta by addition. One with 4/5 of delta starts at a small count, and walks
from twice, four times, … that count share the rest: where the risk at the top is flat or bad, they
start below it. The small count k allows j errors: it is the least m with P(Bin(m, xi) <= j) <= a,
and j is the largest for which k is at most n / 4 and four times the count of j = 0.

What is not valid: any other function of the same scores as a start. Given all scores, E_t is no
binomial with rate r_t (already 1.04 delta with three cells and twelve rows).

**A declared start.** The thresholds may begin at one that was fixed without these rows. There is
one walk then, with the whole of delta, from where the fewest rows are answered that can pass.

With groups that were fixed in advance, the rows of each are independent draws given the groups of
all rows, and each has delta divided by the number of groups that have rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from decimal import Decimal, localcontext
from fractions import Fraction
from functools import lru_cache
from math import inf, nextafter

import numpy as np
from numpy.typing import NDArray

from pacbound.stats.arguments import LARGEST_COUNT
from pacbound.stats.binomial import binomial_cdf, binomial_upper_within
from pacbound.stats.planning import least_passing
from pacbound.tally.grids import FINE as GRID

Integers = NDArray[np.int64]
Ranges = tuple[tuple[int, int], ...]

# The share of delta of the walk from the smallest count, where there are others.
_FIRST_SHARE = Fraction(4, 5)

# A walk starts at the latest where so many times the fewest rows that can pass are answered.
_MOST_UNITS = 4

# Logarithms and chances are decimal, so that counts are the same on every machine.
_DIGITS = 60

# What rounding may change, so that a chance that is the level itself is within it.
_HAIR = Decimal("1e-40")

# So many runs are enough to say about how many rows it would take.
_MOST_RUNS = 512


@dataclass(frozen=True)
class Runs:
    """The runs of thresholds from the highest down, and what each answers.

    `tops` are the highest thresholds of the runs, as cells; a run ends just above the next one, the
    last at 0. `answered` and `errors` count rows at and above the threshold.
    """

    tops: Integers
    answered: Integers
    errors: Integers

    @classmethod
    def of(cls, cells: Integers, wrong: Integers, right: Integers, declared: int | None) -> Runs:
        """The runs of rows in rising `cells`, of which a declared start, where there is one, is the
        first.
        """
        if declared is not None:
            cells = np.append(np.minimum(cells, declared), declared)
            wrong, right = np.append(wrong, 0), np.append(right, 0)
        tops, where = np.unique(-cells, return_inverse=True)
        rows, errors = (np.zeros(tops.size, dtype=np.int64) for _ in range(2))
        np.add.at(rows, where, wrong + right)
        np.add.at(errors, where, wrong)
        return cls(-tops, np.cumsum(rows), np.cumsum(errors))

    @property
    def rows(self) -> int:
        """All rows there are."""
        return int(self.answered[-1])

    def thinned(self) -> Runs:
        """At most about `_MOST_RUNS` of the runs, dense where few rows are answered."""
        size = self.tops.size
        kept = np.unique(np.geomspace(1, size, _MOST_RUNS).astype(np.int64)) - 1
        return Runs(self.tops[kept], self.answered[kept], self.errors[kept])

    def scaled(self, rows: int) -> Runs:
        """The counts scaled to `rows` rows: answers rounded down, errors up."""
        factor = rows / self.rows
        errors = np.ceil(self.errors * factor).astype(np.int64)
        answered = np.maximum(np.floor(self.answered * factor).astype(np.int64), errors)
        return Runs(self.tops, np.minimum(answered, rows), np.minimum(errors, rows))


@dataclass(frozen=True)
class Walk:
    """A walk at a level, from where `count` rows are answered on."""

    count: int
    level: float


@dataclass(frozen=True)
class NothingPassed:
    """Why no threshold is claimed, as numbers: the claim says it in words.

    Attributes
    ----------
    code : str
        "zero" where a rate of 0 was asked for; "too-few" where so few rows pass nowhere, however
        good they are; "no-pass" where no threshold passes; "unexplained" where a document claims a
        refusal that its counts do not lead to.
    needed : int or None
        About how many rows it would take; None if no number of them would help.
    rows, errors
        All rows, and how many of them are wrong; where they are graded, what they lose in all.
    nearest : float
        The threshold that comes nearest to passing.
    answered, wrong
        How many rows reach it, and how many of these are wrong.
    """

    code: str
    needed: int | None
    rows: int = 0
    errors: float = 0
    nearest: float = inf
    answered: int = 0
    wrong: float = 0


def claimed(
    cells: Integers,
    wrong: Integers,
    right: Integers,
    declared: int | None = None,
    *,
    xi: float,
    delta: float,
) -> Ranges:
    """The thresholds that are claimed, as ranges (lowest, highest) of cells, the highest first, for
    rows in rising `cells`, of which so many are `wrong` and `right`. `declared` is the cell at
    which to start, if it was fixed without these rows.

    With probability at least 1 - `delta` the share of wrong rows among those that are answered is
    at most `xi` at all of them.
    """
    runs = Runs.of(cells, wrong, right, declared)
    return passed(runs, _walks(runs.rows, xi, delta, declared), xi)


def refusal(
    cells: Integers,
    wrong: Integers,
    right: Integers,
    declared: int | None = None,
    *,
    xi: float,
    delta: float,
) -> NothingPassed:
    """Why `claimed` is empty for these rows, and about how many it would take."""
    runs = Runs.of(cells, wrong, right, declared)
    n, errors = runs.rows, int(runs.errors[-1])
    if xi == 0:
        return NothingPassed("zero", None, n, errors)
    least = least_rows(xi=xi, delta=delta)
    if least is None or n < least:
        return NothingPassed("too-few", least, n, errors)
    chances = np.where(runs.answered > 0, binomial_cdf(runs.errors, runs.answered, xi), inf)
    best = int(np.argmin(chances))
    hopeless = bool((runs.errors >= xi * runs.answered).all())
    thin = runs.thinned()

    def passes(rows: int) -> bool:
        walks = _walks(rows, xi, delta, declared)
        return rows > n and bool(passed(thin.scaled(rows), walks, xi))

    return NothingPassed(
        "no-pass",
        None if hopeless else least_passing(passes),
        n,
        errors,
        GRID.threshold(int(runs.tops[best])),
        int(runs.answered[best]),
        int(runs.errors[best]),
    )


def _walks(n: int, xi: float, delta: float, declared: int | None) -> tuple[Walk, ...]:
    if declared is None:
        return walks_of(n, xi=xi, delta=delta)
    least = least_rows(xi=xi, delta=delta) if xi > 0 else None
    return () if least is None else (Walk(least, delta),)


@lru_cache(maxsize=1024)
def walks_of(n: int, *, xi: float, delta: float) -> tuple[Walk, ...]:
    """The walks for `n` rows: one with the whole of `delta` where there is no room for two."""
    if xi == 0:
        return ()
    with localcontext() as context:
        context.prec = _DIGITS
        rate, level = Decimal(xi), Decimal(delta)
        first = _start_count(n, rate, level * 4 / 5)
        if 2 * first > n:
            return (Walk(_start_count(n, rate, level), delta),)
    later = [first * 2**s for s in range(1, (n // first).bit_length())]
    rest = (1 - _FIRST_SHARE) * Fraction(delta) / len(later)
    return (
        Walk(first, _rounded_down(_FIRST_SHARE * Fraction(delta))),
        *(Walk(count, _rounded_down(rest)) for count in later),
    )


def least_rows(*, xi: float, delta: float) -> int | None:
    """The fewest rows, all of them right, that certify `xi`; None if they are more than can be
    counted.
    """
    with localcontext() as context:
        context.prec = _DIGITS
        least = _start_count(1, Decimal(xi), Decimal(delta))
    return least if least <= LARGEST_COUNT else None


def _start_count(n: int, xi: Decimal, level: Decimal) -> int:
    """The least number of rows of which j may be wrong, for the largest j with which it is at most
    n / 4 and four times that of none.
    """
    # Where 1 - xi has no digit left for xi, the logarithm is -xi.
    unit = level.ln() / ((1 - xi).ln() or -xi)
    most = int(min(Decimal(n) / 4, _MOST_UNITS * unit))
    allowed = sum(1 for _ in _chances_within(most, xi, level)) - 1
    if allowed < 0:
        return int((unit * (1 - _HAIR)).to_integral_value("ROUND_CEILING"))
    low, high = allowed, most
    while high - low > 1:
        middle = (low + high) // 2
        passes = sum(1 for _ in _chances_within(middle, xi, level)) > allowed
        low, high = (low, middle) if passes else (middle, high)
    return high


def _chances_within(trials: int, xi: Decimal, level: Decimal) -> Iterator[Decimal]:
    """P(Bin(trials, xi) <= j) for j = 0, 1, … as long as it is at most the level."""
    term = total = (trials * (1 - xi).ln()).exp()
    errors = 0
    while total <= level * (1 + _HAIR) and errors <= trials:
        yield total
        term *= (trials - errors) * xi / ((errors + 1) * (1 - xi))
        errors += 1
        total += term


def passed(runs: Runs, walks: Iterable[Walk], xi: float) -> Ranges:
    """The thresholds that some walk passes, as ranges (lowest, highest) of cells, the highest
    first.
    """
    walks = tuple(walks)
    failing = {walk.level: _failing(runs, xi, walk.level) for walk in walks}
    holds = np.zeros(runs.tops.size, dtype=np.bool_)
    for walk in walks:
        start = int(np.searchsorted(runs.answered, min(walk.count, runs.rows + 1)))
        ends = failing[walk.level]
        holds[start : ends[np.searchsorted(ends, start)]] = True
    return ranges_of(runs.tops, holds)


def ranges_of(tops: Integers, holds: NDArray[np.bool_]) -> Ranges:
    """The runs that hold, from the highest down, as ranges (lowest, highest) of cells."""
    lowest = np.append(tops[1:] + 1, 0)
    found: list[tuple[int, int]] = []
    for place in np.flatnonzero(holds).tolist():
        low, high = int(lowest[place]), int(tops[place])
        if found and found[-1][0] == high + 1:
            high = found.pop()[1]
        found.append((low, high))
    return tuple(found)


def _failing(runs: Runs, xi: float, level: float) -> Integers:
    """The runs that fail at a level, and the place after the last."""
    # A level too small for a float can be passed by nothing.
    passes = level > 0 and binomial_upper_within(runs.errors, runs.answered, xi, delta=level)
    failed = np.append(~np.broadcast_to(passes, runs.tops.shape), True)
    return np.flatnonzero(failed)


def _rounded_down(level: Fraction) -> float:
    near = float(level)
    return near if Fraction(near) <= level else nextafter(near, 0.0)
