"""Paired tests: do losses exceed gains by less than xi, from b losses and c gains in n independent
outcomes?

An outcome D is +1 (a loss), -1 (a gain) or 0. Integers in, a verdict out; nothing here knows what
is lost or gained, nor how the outcomes were collected. Each verdict is wrong with probability at
most `delta` for every sample size and all true rates, for one question that was fixed before the
data were seen; asking several is the business of whoever calls.

The exact test goes by a rejection region. The null hypothesis is P(loss) - P(gain) >= xi. The
region is {b <= bmax(c)}, cut out by the likelihood ratio, and its chance under every law of the
null is at most delta. The promise rests on the calibration alone: any nondecreasing bmax would
be as valid, the likelihood ratio only makes it powerful.

Why it holds: fewer losses and more gains keep a sample in the region, so its chance falls in
P(loss) and rises in P(gain). Hence the worst null has P(gain) = v and P(loss) = v + xi, and from
v_1 to v_2 the chance is at most that of the law (v_1 + xi, v_2). So the supremum is bounded cell by
cell: cells that exceed delta are split, and where the finest still exceed it the region shrinks. A
cell that has passed once passes for every smaller region, so that at the end every cell has passed.

The chance of a region is that of a staircase, {b <= bmax(c)} for a nondecreasing bmax, computed
from above (`staircase_chance`): its excess is below 2e-6 of the level it is compared with (1e-6 of
it neglected tails, the rest a wide allowance for rounding).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache
from math import ceil, floor, inf, log, log1p, sqrt
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import betainc, gammaln, ndtri, xlog1py

from pacbound.errors import InvalidValueError
from pacbound.stats.arguments import (
    LARGEST_COUNT,
    failure_probability,
    is_one_of,
    together,
    tolerated_rate,
    whole_number,
    whole_numbers,
)
from pacbound.stats.binomial import binomial_lower, binomial_upper

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

# The share of the level that the tails outside the summed window may have; it is added back to
# every sum.
NEGLECTED_SHARE = 1e-6

# Terms computed at once: about what a processor's cache holds.
LARGEST_BLOCK = 30_000

# Above this the pair of binomial bounds loses so little that the region is no longer worth its
# seconds.
LARGEST_SAMPLE = 199_999

# Up to so many outcomes a region with a seed has all columns.
LARGEST_WHOLE = 50_000

# Below this the terms of the sums leave the range of float64.
SMALLEST_DELTA = 1e-200

# The share of delta that is never spent: it covers the rounding of the sums, which is below 1e-8 of
# delta.
SAFETY = 1e-6

COARSE_CELLS = 2.0**-1
FINE_CELLS = 2.0**-5
# Widths of cells, in standard deviations of b - c over the normal quantile: a corner exceeds its
# cell by about e^width.
FINEST_CELLS = 2.0**-13

# Cells finer than FINE_CELLS are tried while no more than this many are left.
MOST_CELLS = 16_000

# The laws times columns of the longest usual region; see `region_work`.
USUAL_WORK = 4.2e6

# How closely the critical value is sought; the level lost is about this share of it.
STATISTIC_STEP = 1e-5


@dataclass(frozen=True, eq=False)
class PairedRegion:
    """The counts (b, c) of `n` outcomes that reject P(loss) - P(gain) >= `xi` at level `delta`.

    `bmax[c]` is the largest number of losses allowed beside c gains, -1 for none; the last entry
    stands for all larger c.
    """

    n: int
    xi: float
    delta: float
    bmax: Integers

    @property
    def empty(self) -> bool:
        """Whether no count of this many outcomes can certify `xi`."""
        return bool(self.bmax[-1] < 0)

    def accepts(self, b: Any, c: Any) -> NDArray[np.bool_]:
        """Whether `b` losses and `c` gains certify `xi`, element by element."""
        losses, gains, _ = paired_counts(b, c, self.n)
        return np.asarray(losses <= self.bmax[np.minimum(gains, self.bmax.size - 1)])

    def chance(self, plus: Any, minus: Any) -> Floats:
        """The chance of the region when losses have the rate `plus` and gains `minus`: exact from
        above, to 2e-6 of `delta`.
        """
        plus, minus = (
            np.atleast_1d(np.asarray(plus, float)),
            np.atleast_1d(np.asarray(minus, float)),
        )
        neither = np.maximum(1.0 - minus - plus, 0.0)
        return staircase_chance(self.bmax, self.n, minus, neither, level=self.delta)


def paired_region(n: Any, *, xi: float, delta: float) -> PairedRegion:
    """The counts that certify P(loss) - P(gain) < `xi` from `n` independent outcomes, wrongly with
    probability at most `delta`. If no loss and no gain cannot, then nothing does, and every entry
    is -1: a walk could not even start.

    Whatever the true rates of losses and gains, if they differ by `xi` or more then the counts fall
    into the region with probability at most `delta`. The region depends on these three numbers
    alone and is kept in memory once computed.

    Examples
    --------
    >>> region = paired_region(500, xi=0.02, delta=0.01)
    >>> region.bmax[:5].tolist()
    [3, 3, 4, 4, 5]
    >>> region.accepts([3, 4, 4], [0, 1, 2]).tolist()
    [True, False, True]

    """
    size = whole_number(n, "n")
    if size > LARGEST_SAMPLE:
        raise InvalidValueError(
            f"n={size} is too large for the exact region: expected n <= {LARGEST_SAMPLE}. Use "
            "bound='pair'."
        )
    rate, level = positive_rate(xi), failure_probability(delta)
    if level < SMALLEST_DELTA:
        raise InvalidValueError(
            f"delta={level} is too small for the exact region: expected 1e-200 or more. Use "
            "bound='pair'."
        )
    return _cached_region(size, rate, level)


def region_work(n: int, *, xi: float, delta: float) -> float:
    """About how much computing `paired_region(n, xi=xi, delta=delta)` takes, as a multiple of the
    longest that is usual: 199,999 outcomes at delta = 1e-3 and the worst xi, some ten seconds.

    It is the number of laws that the region is first held against times the counts that matter
    under each. Measured from 3,000 to 199,999 outcomes, xi from 0.001 to 0.5 and delta from 1e-3 to
    1e-100, the time is 0.3 to 6 microseconds for each of these. Nearer to xi = 1 they are few, and
    the time, ten seconds at most, goes into the outline of the region.
    """
    family = _Family(n, xi, delta)
    gain = family.gain(np.linspace(0.0, family.last_position, 64))
    columns = np.minimum(n, 2.0 * window_reach(n, gain, delta))
    return float(columns.mean()) * family.last_position / COARSE_CELLS / USUAL_WORK


def paired_counts(b: Any, c: Any, n: Any) -> tuple[Integers, Integers, int]:
    """Losses and gains as int64 of one shape, no more of them than outcomes."""
    size = whole_number(n, "n")
    losses, gains = together(b=whole_numbers(b, "b"), c=whole_numbers(c, "c"))
    if (losses + gains > size).any():
        where = np.flatnonzero((losses + gains > size).ravel())[0]
        raise InvalidValueError(
            f"b={losses.ravel()[where]} and c={gains.ravel()[where]} cannot be among n={size} "
            "outcomes: expected b + c <= n. n counts every outcome, those that are neither a "
            "loss nor a gain included."
        )
    return losses, gains, size


def positive_rate(xi: float) -> float:
    """`xi` as a float in (0, 1)."""
    rate = tolerated_rate(xi)
    if rate == 0.0:
        raise InvalidValueError(
            "xi=0 cannot be certified by this test: expected 0 < xi < 1. For xi = 0 use "
            "mcnemar_test."
        )
    return rate


@lru_cache(maxsize=32)
def _cached_region(n: int, xi: float, delta: float) -> PairedRegion:
    bmax = _calibrated(_Family(n, xi, delta))
    bmax.flags.writeable = False
    return PairedRegion(n=n, xi=xi, delta=delta, bmax=bmax)


def likelihood_ratio(b: Integers, c: Integers, n: int, xi: float) -> Floats:
    """How much better the best law explains `b` losses and `c` gains than the best law of the null:
    log likelihood ratio.
    """
    m = n - b - c
    slope = 2.0 * xi * (n - b) - (b + c) * (1.0 - xi)
    root = np.sqrt(slope**2 + 8.0 * n * c * xi * (1.0 - xi))
    # The two forms of the same root of a quadratic: each avoids the cancellation that the other
    # has.
    v = np.where(
        slope >= 0.0,
        2.0 * c * xi * (1.0 - xi) / np.maximum(slope + root, 1e-300),
        (root - slope) / (4.0 * n),
    )
    ratio: Floats = (
        _surprise(b, n * (v + xi)) + _surprise(c, n * v) + _surprise(m, n * (1.0 - xi - 2.0 * v))
    )
    return np.where(b - c >= n * xi, 0.0, ratio)


def _surprise(count: Integers, expected: Floats) -> Floats:
    """How much less likely the count is at the rate expected than at its own. What counts exceed
    is taken off, and adds up to nothing: so no large terms cancel, and equal ratios are equal to
    less than 2^-40.
    """
    expected = np.maximum(expected, 1e-300)
    result: Floats = xlog1py(count, (count - expected) / expected) - (count - expected)
    return result


class _Candidate(NamedTuple):
    """The region of counts whose likelihood ratio is at least `critical`; `most[c]` is the largest
    such b, at most n - c.
    """

    critical: float
    most: Integers


class _Laws(NamedTuple):
    """The rates of gains and of outcomes that are neither, one pair per law, in the order of the
    gains.
    """

    gain: Floats
    neither: Floats

    def pick(self, which: NDArray[Any]) -> _Laws:
        return _Laws(self.gain[which], self.neither[which])


@dataclass(frozen=True)
class _Family:
    """Every region that the likelihood ratio can cut out for one (n, xi, delta), joined with a
    `seed` that is a region for itself if there is one, and the nulls they are held against.
    """

    n: int
    xi: float
    delta: float
    seed: Integers | None = None

    @property
    def allowed(self) -> float:
        return self.delta * (1.0 - SAFETY)

    @cached_property
    def gains(self) -> Integers:
        """The columns 0 .. C; the cap costs power only, since a region may be any staircase."""
        cap = (
            self.n
            if self.n <= (3000 if self.seed is None else LARGEST_WHOLE)
            else min(self.n, ceil(max(0.08 * self.n, 8.0 * self.xi * self.n)))
        )
        return np.arange(cap + 1)

    @cached_property
    def loosest(self) -> _Candidate:
        """All counts that do not speak for the null by themselves."""
        return _Candidate(
            0.0,
            np.minimum(
                self.n - self.gains, np.ceil(self.gains + self.n * self.xi).astype(np.int64)
            ),
        )

    @cached_property
    def strictest(self) -> _Candidate:
        """The smallest region that still holds (0, 0)."""
        critical = float(likelihood_ratio(np.array(0), np.array(0), self.n, self.xi))
        return self.between(critical, self.loosest, _Candidate(inf, np.full(self.gains.size, -1)))

    def between(self, critical: float, looser: _Candidate, stricter: _Candidate) -> _Candidate:
        """The region at `critical`, by bisection over b between two known ones; always nested
        between them.
        """
        low, high = stricter.most.copy(), looser.most.copy()
        (open_columns,) = np.nonzero(low < high)
        while open_columns.size:
            middle = (low[open_columns] + high[open_columns] + 1) // 2
            inside = likelihood_ratio(middle, self.gains[open_columns], self.n, self.xi) >= critical
            low[open_columns[inside]] = middle[inside]
            high[open_columns[~inside]] = middle[~inside] - 1
            open_columns = open_columns[low[open_columns] < high[open_columns]]
        return _Candidate(critical, low)

    def bmax(self, candidate: _Candidate | None) -> Integers:
        """The staircase of a candidate, and of the seed."""
        most = np.full(self.gains.size, -1) if candidate is None else candidate.most
        if self.seed is not None:
            most = np.maximum(np.append(most, np.full(self.n + 1 - most.size, most[-1])), self.seed)
        return staircase(most, self.n)

    def chance(self, candidate: _Candidate, laws: _Laws) -> Floats:
        return staircase_chance(self.bmax(candidate), self.n, *laws, level=self.delta)

    def exceeding(self, candidate: _Candidate, laws: _Laws) -> _Laws:
        """Those of the laws under which `candidate` has too large a chance. The others pass for
        every region within it, too: they need not be tried again.
        """
        return laws.pick(self.chance(candidate, laws) > self.allowed)

    @cached_property
    def largest_gain(self) -> float:
        """Where v may stop: beyond it even the loosest region has a chance of at most delta/2."""
        most_losses = int(self.bmax(self.loosest)[-1])
        upper = float(binomial_upper(most_losses, self.n, delta=self.delta / 2.0))
        return max(0.0, min((1.0 - self.xi) / 2.0, upper - self.xi))

    @property
    def scale(self) -> float:
        # For delta below 1e-7 finer cells would cost minutes to save a part of delta that no longer
        # moves bmax.
        return min(max(1.0, -float(ndtri(self.delta))), 5.0) * sqrt(self.n)

    @property
    def last_position(self) -> float:
        return self.scale * (sqrt(2.0 * self.largest_gain + self.xi) - sqrt(self.xi))

    def gain(self, position: Floats) -> Floats:
        """The rate v at a `position` on the scale on which one standard deviation of b - c has the
        same length everywhere.
        """
        shift = position / self.scale
        return np.minimum(sqrt(self.xi) * shift + shift**2 / 2.0, self.largest_gain)

    def nulls(self, positions: Floats) -> _Laws:
        """The laws on the boundary of the null at these positions."""
        return self.corners(positions, 0.0)

    def corners(self, positions: Floats, width: float) -> _Laws:
        """For every cell of nulls a law whose chance is at least that of each of them: their least
        loss, their largest gain.
        """
        least, largest = self.gain(positions), self.gain(positions + width)
        remainder = 1.0 - self.xi
        # P(neither) = 1 - (least + xi) - largest; it is rounded up, since less loss only raises the
        # chance.
        return _Laws(largest, np.maximum(remainder - least - largest, 0.0) + 1e-15 * remainder)


def staircase(most: Integers, n: int) -> Integers:
    """The largest b of each column, made nondecreasing, and n where every possible b is in."""
    return np.maximum.accumulate(np.where(most >= n - np.arange(most.size), n, most))


def calibrated(n: int, *, xi: float, delta: float, seed: Integers) -> Integers:
    """The loosest staircase that the likelihood ratio cuts out and that passes together with
    `seed`; the seed alone if none with (0, 0) does.
    """
    return _calibrated(_Family(n, xi, delta, seed))


def _calibrated(family: _Family) -> Integers:
    """The loosest staircase that passes on every cell of nulls; all -1 if none with (0, 0) does."""
    if family.n * log1p(-family.xi) > log(family.allowed):
        return family.bmax(None)
    width = COARSE_CELLS
    cells = np.arange(ceil(family.last_position / width) + 1, dtype=np.float64) * width
    candidate = _tightened(family, family.loosest, family.nulls(cells[:: 1 + cells.size // 16]))
    candidate = _tightened(family, candidate, family.nulls(cells))
    while candidate is not None:
        cells = cells[family.chance(candidate, family.corners(cells, width)) > family.allowed]
        if cells.size == 0:
            break
        if width <= FINEST_CELLS or (width <= FINE_CELLS and 4 * cells.size > MOST_CELLS):
            candidate = _tightened(family, candidate, family.corners(cells, width))
            break
        width /= 4.0
        cells = (cells[:, None] + width * np.arange(4)).ravel()
        if width > FINE_CELLS:
            candidate = _tightened(family, candidate, family.nulls(cells))
    return family.bmax(candidate)


def _tightened(family: _Family, candidate: _Candidate | None, laws: _Laws) -> _Candidate | None:
    """The loosest region within `candidate` whose chance is allowed under each of the laws; None if
    none with (0, 0) is.
    """
    while candidate is not None:
        chances = family.chance(candidate, laws)
        if chances.max(initial=0.0) <= family.allowed:
            return candidate
        worst = np.sort(np.argsort(-chances, kind="stable")[:16])
        candidate = _bisected(
            family, candidate, laws.pick(worst), excess=log(chances.max() / family.allowed)
        )
        laws = laws.pick(chances > family.allowed)
    return None


def _bisected(
    family: _Family, failing: _Candidate, laws: _Laws, *, excess: float
) -> _Candidate | None:
    """The loosest region that passes under all of a few laws, one of which `failing` exceeds by the
    factor exp(`excess`).
    """
    looser, stricter = failing, family.strictest
    if family.exceeding(stricter, laws).gain.size:
        return None
    step = max(excess, STATISTIC_STEP)
    while looser.critical + step < stricter.critical:
        trial = family.between(looser.critical + step, looser, stricter)
        left = family.exceeding(trial, laws)
        if not left.gain.size:
            stricter = trial
            break
        looser, laws, step = trial, left, 2.0 * step
    while (
        stricter.critical - looser.critical > STATISTIC_STEP and (looser.most > stricter.most).any()
    ):
        trial = family.between((looser.critical + stricter.critical) / 2.0, looser, stricter)
        left = family.exceeding(trial, laws)
        if left.gain.size:
            looser, laws = trial, left
        else:
            stricter = trial
    return stricter


@lru_cache(maxsize=8)
def log_factorials(n: int) -> tuple[Floats, Floats]:
    """The logarithms of 0!, …, n!; and for each c the logarithm of n over c, c, and n - c. All
    staircases share them.
    """
    c, logs = np.arange(n + 1), gammaln(np.arange(n + 1) + 1.0)
    return logs, np.column_stack([logs[n] - logs - logs[::-1], c, n - c])


def staircase_chance(
    bmax: Integers, n: int, minus: Floats, neither: Floats, *, level: float
) -> Floats:
    """Upper bounds on P(b <= bmax(c)) for a nondecreasing `bmax`, -1 where no b will do, that goes
    on as it ends, one for each law, tight to within 2e-6 of `level`.

    A law is given by P(-) and P(neither), not by P(+): what is left over may be tiny, and a
    difference would lose its digits.
    """
    # More "-" and less "+" only raise the chance: rounding upwards keeps the logarithms finite and
    # the bound valid.
    minus = np.maximum(minus, 1e-300)
    failure = np.clip(neither / (1.0 - minus) * (1.0 + 1e-15), 1e-300, np.nextafter(1.0, 0.0))
    spread = window_reach(n, minus, level)
    starts, stops = np.maximum(n * minus - spread, 0.0), np.minimum(n * minus + spread, n)
    staircase = _Staircase.under(bmax, n, last=ceil(stops.max(initial=0.0)))
    # Laws lie side by side in memory, so that sums over c run over all of them at once.
    gains = np.stack([np.ones_like(minus), np.log(minus), np.log1p(-minus)])
    losses = np.stack([np.ones_like(failure), np.log1p(-failure), np.log(failure)])
    chances = np.empty(minus.size)
    for laws, start, stop in _blocks(starts.tolist(), stops.tolist()):
        chances[laws] = staircase.window_sum(
            gains[:, laws], losses[:, laws], failure[laws], start, stop
        )
    return chances + NEGLECTED_SHARE * level


def _blocks(starts: list[float], stops: list[float]) -> Iterator[tuple[slice, int, int]]:
    """Neighbouring laws that share a window of c."""
    first = 0
    while first < len(starts):
        low, high = starts[first], stops[first]
        widest = 1.25 * (high - low) + 8.0
        end = min(first + max(1, int(LARGEST_BLOCK / (2.0 * widest))), len(starts))
        last = first + 1
        # Blocks are few laws each, and Python is quicker with these than numpy.
        while last < end:
            least, most = min(low, starts[last]), max(high, stops[last])
            if most - least > widest:
                break
            low, high, last = least, most, last + 1
        yield slice(first, last), floor(low), ceil(high)
        first = last


@dataclass(frozen=True, eq=False)
class _Staircase:
    """The boundary of {b <= bmax(min(c, len(bmax) - 1))} as a path of lattice steps, with what
    every law's sum shares.

    Given c, b is binomial with N = n - c trials, and F(c) = P(b <= bmax(c) | c) grows along the
    path by positive terms only,

        F(c+1) = F(c) + q pmf(bmax(c); N-1) + sum of pmf(j; N-1) over bmax(c) < j <= bmax(c+1),

    so that one incomplete beta function at the start of the window and a sum of positive terms give
    every F without cancellation.
    """

    n: int
    bmax: Integers
    first_step: Integers
    step_column: Integers
    # A row of factors for each step and each column, which a law turns into a logarithm.
    steps: Floats
    columns: Floats

    @classmethod
    def under(cls, bmax: Integers, n: int, *, last: int) -> _Staircase:
        """The staircase of `bmax` up to the column `last`."""
        height = bmax[np.minimum(np.arange(last + 1), bmax.size - 1)]
        columns = np.arange(last)
        lengths = np.maximum(np.minimum(height[1:], n - 1 - columns) - height[:-1] + 1, 0)
        first_step = np.concatenate([[0], np.cumsum(lengths)])
        column = np.repeat(columns, lengths)
        offset = np.arange(column.size) - first_step[column]
        b = height[column] + offset
        rest = n - 1 - column - np.maximum(b, 0)
        logs, of_columns = log_factorials(n)
        coefficient = logs[n - 1 - column] - logs[b] - logs[rest]
        # No number of trials: e to this is 0, and unlike -inf it is never multiplied into a NaN.
        coefficient[b < 0] = -1e6
        steps = np.column_stack([coefficient, b + (offset == 0), rest])
        return cls(n, height, first_step, column + 1, steps, of_columns)

    def window_sum(
        self, gains: Floats, losses: Floats, failure: Floats, start: int, stop: int
    ) -> Floats:
        """The sum over start <= c <= stop; each term of the path counts for every c that lies
        beyond it. The logarithms of the rates of gains and of losses come one column a law.
        """
        weights = self.columns[start : stop + 1] @ gains
        beyond = np.cumsum(np.exp(weights, out=weights)[::-1], axis=0)[::-1]
        steps = slice(self.first_step[start], self.first_step[stop])
        terms = self.steps[steps] @ losses
        total: Floats = self._base(start, failure) * beyond[0] + np.einsum(
            "ij,ij->j", np.exp(terms, out=terms), beyond[self.step_column[steps] - start]
        )
        return total

    def _base(self, start: int, failure: Floats) -> Floats | float:
        """F(start): at most bmax of the n - start trials succeed, so the others fail. As
        `binomial_sf` has it, without checks: it is asked for thousands of times.
        """
        trials, most = self.n - start, int(self.bmax[start])
        if most >= trials:
            return 1.0
        if most < 0:
            return 0.0
        return np.asarray(betainc(float(trials - most), most + 1.0, failure))


def window_reach(n: int | Floats, minus: Floats, level: float) -> Floats:
    """How far from its mean, to both sides, c is summed under laws with P(-) = `minus`: outside n p
    +- (s sd + s^2/2) lies at most 2 exp(-s^2/2) (Bernstein), which is the neglected share of
    `level`.
    """
    reach = sqrt(2.0 * log(2.0 / (NEGLECTED_SHARE * level)))
    spread: Floats = reach * np.sqrt(n * minus * (1.0 - minus)) + reach**2 / 2.0
    return spread


PairedBound: TypeAlias = Literal["exact", "pair"]

LOSS_SHARE = 0.8
# How the pair divides delta: losses are usually the more common, and their bound the wider.
GAIN_SHARE = 0.2


def paired_test(
    b: ArrayLike, c: ArrayLike, n: int, *, xi: float, delta: float, bound: PairedBound = "exact"
) -> Any:
    """Whether `b` losses and `c` gains in `n` outcomes certify P(loss) - P(gain) < `xi`.

    If in truth P(loss) - P(gain) >= `xi`, the answer is True with probability at most `delta`, for
    independent outcomes of one law, `n` and 0 < `xi` < 1 fixed in advance. False does not show the
    contrary. Arrays give an array, each entry a test on its own; along a walk that stops at the
    first False all of them hold together (`pacbound.stats.binomial`).

    "exact" is the likelihood-ratio test of the trinomial law, calibrated over all nulls. From n =
    200,000 on (and for `delta` below 1e-200) it becomes "pair": an upper bound on losses minus a
    lower one on gains, which by then loses next to nothing.

    Examples
    --------
    >>> paired_test(30, 10, 2000, xi=0.02, delta=0.01)
    True
    >>> paired_test([30, 40], 10, 2000, xi=0.02, delta=0.01, bound="pair").tolist()
    [False, False]

    """
    losses, gains, size = paired_counts(b, c, n)
    rate, level = positive_rate(xi), failure_probability(delta)
    if is_pair(bound, size, level):
        verdict = np.asarray(paired_upper(losses, gains, size, delta=level) <= rate)
    else:
        verdict = paired_region(size, xi=rate, delta=level).accepts(losses, gains)
    return _like(losses, verdict)


def paired_test_work(n: int, *, xi: float, delta: float) -> float:
    """About how long the first exact `paired_test` with these numbers takes, as a multiple of the
    longest that is usual (`pacbound.stats.paired.region_work`).

    Examples
    --------
    >>> paired_test_work(2000, xi=0.02, delta=0.01) < 0.01
    True

    """
    rate, level = positive_rate(xi), failure_probability(delta)
    return 0.0 if is_pair("exact", n, level) else region_work(n, xi=rate, delta=level)


def paired_upper(b: ArrayLike, c: ArrayLike, n: int, *, delta: float) -> Any:
    """Upper confidence bound on P(loss) - P(gain) from `b` losses and `c` gains in `n` independent
    outcomes.

    The bound is at least the true difference with probability at least 1 - `delta`, for counts at a
    threshold that was fixed in advance: at a threshold chosen by its counts it does not hold. It is
    the difference of two binomial bounds that share `delta`.

    Examples
    --------
    >>> round(paired_upper(30, 10, 2000, delta=0.01), 5)
    0.02127

    """
    losses, gains, size = paired_counts(b, c, n)
    level = failure_probability(delta)
    upper = binomial_upper(losses, size, delta=LOSS_SHARE * level)
    lower = binomial_lower(gains, size, delta=GAIN_SHARE * level)
    bound = np.nextafter(upper - lower, np.inf)
    return float(bound) if losses.ndim == 0 else bound


def mcnemar_test(b: ArrayLike, c: ArrayLike, *, delta: float) -> Any:
    """Whether `b` losses and `c` gains certify that losses are no more probable than gains: the
    case xi = 0 (McNemar, exact).

    If in truth P(loss) >= P(gain), the answer is True with probability at most `delta`, since b is
    then at least binomial with b + c trials and rate 1/2. No losses and no gains never pass, so a
    walk cannot start from nothing: test a coarse grid of thresholds fixed in advance, and pass
    `delta` divided by their number.

    Examples
    --------
    >>> mcnemar_test(2, 15, delta=0.01)
    True
    >>> mcnemar_test([0, 0, 0], [0, 6, 7], delta=0.01).tolist()
    [False, False, True]

    """
    losses, gains = together(b=whole_numbers(b, "b"), c=whole_numbers(c, "c"))
    # So few losses have a chance of at most delta at a rate of 1/2 if they have at a lower one.
    # SciPy's chance at 1/2 would be off by more than 1e-9 of itself from some 1e7 on, in double
    # precision; the bound allows for it.
    upper = binomial_upper(losses, losses + gains, delta=failure_probability(delta))
    return _like(losses, np.asarray(upper <= 0.5))


def labels_needed_by_walk(xi: float, *, delta: float, bound: PairedBound = "exact") -> int:
    """The number of outcomes from which on even the best sample, no loss and no gain, certifies
    `xi`.

    That is where a walk from "never" begins: with fewer outcomes it stops at once. For "exact" it
    is the least n with (1 - xi)^n <= delta, that is ln(1/delta) / -ln(1 - xi), up to the 2e-6 of
    delta that are kept for rounding; for "pair", whose losses have 0.8 delta to spend, it is the
    least n with (1 - xi)^n <= 0.8 delta, and so for "exact" beyond 200,000.

    Examples
    --------
    >>> labels_needed_by_walk(0.02, delta=1e-3)
    342
    >>> labels_needed_by_walk(0.02, delta=1e-3, bound="pair")
    353

    """
    rate, level = positive_rate(xi), failure_probability(delta)
    enough = _least_for_pair(rate, level)
    if is_pair(bound, 0, level) or enough > LARGEST_SAMPLE + 1:
        return enough
    return _least_power(rate, level * (1.0 - SAFETY - NEGLECTED_SHARE))


def _least_power(xi: float, level: float) -> int:
    """The least n with (1 - xi)^n <= level."""
    # Rates below 1e-300 need more labels than a float can count.
    power = log1p(-max(xi, 1e-300))
    n = max(1, ceil(log(level) / power) - 1)
    return n if n * power <= log(level) else n + 1


def _least_for_pair(xi: float, delta: float) -> int:
    n = _least_power(xi, LOSS_SHARE * delta)
    while n < LARGEST_COUNT and binomial_upper(0, n, delta=LOSS_SHARE * delta) > xi:
        n += 1
    return n


def is_pair(bound: str, n: int, delta: float) -> bool:
    if not is_one_of(bound, ("exact", "pair")):
        raise InvalidValueError(
            f"bound={bound!r} is not a paired bound: expected 'exact' or 'pair'."
        )
    return bound == "pair" or n > LARGEST_SAMPLE or delta < SMALLEST_DELTA


def _like(counts: NDArray[np.int64], verdict: NDArray[np.bool_]) -> Any:
    return bool(verdict) if counts.ndim == 0 else verdict
