"""The lowest confidence at which to answer, so that at most xi of the answers are wrong: a walk
down the thresholds, at a level that grows where a start joins and falls to nothing where a test
fails.

A threshold j / 2^16 answers the rows whose score reaches it. Thresholds that answer the same rows
are a *run*: from an occupied cell down to just above the next one. A run is tested at its top and,
where starts join at its lowest threshold, once more there. What the first test passes is claimed
for the whole run, what only the second passes for the lowest threshold alone: the starts have not
joined above it. All claimed thresholds hold together. The starts are ranks of the same rows, or
thresholds that were fixed without these rows.

**Starts at ranks of the same rows.** The risk is conditional, P(wrong | answered), and a walk that
starts at the top fails there on a few rows. So there are several starts, placed where certain
*numbers* of rows are answered.

Thresholds t = 0, 1, … go down from the first declared one. N_t rows are answered, E_t of them
wrongly, and r_t is the true risk; a threshold is bad if r_t > xi. Start s has a count k_s that was
fixed in advance, and joins at t_s = max{t: N_t < k_s}, the lowest threshold that answers *fewer*
than k_s rows, or at t = 0 if that answers k_s already. The level a is 0 at first; at each t it
keeps its value if t - 1 passed, else it falls to 0, and grows by delta' / J for every start that
joins, delta' = delta / (1 + delta). t passes if N_t > 0 and Upper(E_t, N_t, a) <= xi.

**Theorem.** The probability that any bad threshold passes is at most delta, for every law of scores
and errors, atoms and risks that rise with the score included.

*Proof.* Let t be the first bad threshold that passes, and u the bad one before it, which failed. So
a <= delta' w, w the share of the starts with N_{u+1} < k_s <= N_{t+1} (of all with k_s <= N_{t+1}
if t is the first bad one). (i) If u = t - 1, or t is the first bad one, w is a function of
(N_t, N_{t+1}), given which E_t is binomial (N_t, r_t) with r_t > xi: the chance to pass is at most
delta' w. (ii) Else u + 1 is good. Given y = N_t and N_{t+1}, let x = N_{u+1}. An error lies at or
above u + 1 with a probability that is at most that of a correct row, since r_{u+1} <= xi < r_t. So
P(x < k | E_t) rises in E_t, and the law of E_t given x < k has a likelihood ratio to the binomial
(y, xi) that rises. The randomised p-value, uniform under that binomial and at most a whenever t
passes, then has a rising density, which is at most 1 / (1 - v) at v. Start s counts only if
x < k_s, so the chance to pass is at most the sum of P(x < k_s) (delta' / J) / (1 - delta') over s:
E[w] delta' / (1 - delta'). Every start belongs to one bad t, so in all it is at most
delta' / (1 - delta') = delta. QED

What is not valid: any other function of the same scores as a start. Given all scores, E_t is no
binomial with rate r_t (already 1.04 delta with three cells and twelve rows).

The starts have the counts ceil(2^s ln(1/delta) / -ln(1 - xi)), s = 1 … J, up to n. Between two
occupied cells nothing changes until the lowest threshold of the run, where starts join, so two
tests in a run are enough. In a run of one threshold they are a little stricter than the theorem
asks: the first is made without the starts that join there.

With groups that were fixed in advance, the rows of each are independent draws given the groups of
all rows, and each walk has delta divided by the number of groups that have rows.

**Starts at thresholds that were fixed without these rows.** Where to start may come from anywhere
but the rows that certify: from unlabelled scores of the same model, say. The walk then has the
whole delta.

Thresholds t = 0, 1, … go down from the first declared one; start s joins at its threshold and adds
delta / J to the level, a failure resets the level to 0, and t passes if some row is answered and
Upper(E_t, N_t, level) <= xi. **The probability that any threshold with a risk above xi passes is at
most delta** (a fallback procedure along the walk). *Proof.* Let t be the first bad threshold
that passes. The level there comes from starts after the bad threshold before it, which failed and
reset it. Given N_t, E_t is binomial with a rate above xi, so t passes with probability at most that
level. These stretches between bad thresholds share no start, so in all it is at most delta. QED
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal, localcontext
from fractions import Fraction
from functools import lru_cache, partial
from math import ceil, inf, log, log1p, nextafter

import numpy as np
from numpy.typing import NDArray

from pacbound.stats.arguments import LARGEST_COUNT
from pacbound.stats.binomial import binomial_cdf, binomial_upper_within
from pacbound.stats.planning import least_passing
from pacbound.tally.grids import FINE as GRID

Integers = NDArray[np.int64]

# The first declared threshold, 65535 / 65536, unless another is declared. It is not 1.0: a few
# saturated scores above a heavy cell would use up every start.
FIRST = GRID.n_cells - 2

# So many runs are enough to say about how many rows it would take.
_MOST_RUNS = 512


@dataclass(frozen=True)
class Runs:
    """The runs of thresholds from the first declared one down, and what each answers.

    `tops` are the highest thresholds of the runs, as cells; a run ends just above the next one, the
    last at 0. `answered` and `errors` count rows at and above the threshold.
    """

    tops: Integers
    answered: Integers
    errors: Integers

    @classmethod
    def of(cls, cells: Integers, wrong: Integers, right: Integers, first: int, *tops: int) -> Runs:
        """The runs of rows in rising `cells`; a run begins at the first declared threshold and at
        each of the `tops` whether there are rows or not.
        """
        places = np.minimum(cells, first)
        starts = np.unique(np.concatenate([places, [first, *tops]]))[::-1].astype(np.int64)
        where = np.searchsorted(-starts, -places)
        rows, errors = (np.zeros(starts.size, dtype=np.int64) for _ in range(2))
        np.add.at(rows, where, wrong + right)
        np.add.at(errors, where, wrong)
        return cls(starts, np.cumsum(rows), np.cumsum(errors))

    @property
    def lowest(self) -> Integers:
        """The lowest threshold of each run, as a cell."""
        return np.append(self.tops[1:] + 1, 0)

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
class Joining:
    """How many starts join at the top and at the lowest threshold of each run, and the level of so
    many of them: `levels[m - 1]` of m starts.
    """

    at_top: Sequence[int]
    at_lowest: Sequence[int]
    levels: NDArray[np.float64]


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
    rows, errors : int
        All rows, and how many of them are wrong.
    nearest : float
        The threshold that comes nearest to passing.
    answered, wrong : int
        How many rows reach it, and how many of these are wrong.
    heavy, heavy_at : int, float
        So many rows share the highest score, which is this one, and every start is lost above it;
        0 where some start is not.
    """

    code: str
    needed: int | None
    rows: int = 0
    errors: int = 0
    nearest: float = inf
    answered: int = 0
    wrong: int = 0
    heavy: int = 0
    heavy_at: float = inf


@dataclass(frozen=True)
class AbstentionDecision:
    """A threshold, or why there is none; and all thresholds that hold, as ranges of cells, both
    ends included, from the highest down.
    """

    threshold: float
    claimed: tuple[tuple[int, int], ...]
    refusal: NothingPassed | None


def walk(runs: Runs, joining: Joining, xi: float) -> tuple[tuple[int, int], ...]:
    """The thresholds that are claimed, as ranges (lowest, highest) of cells, the highest first."""
    levels = joining.levels
    # A level too small for a float can be passed by nothing.
    some = levels > 0
    passes = np.zeros((levels.size, runs.tops.size), dtype=np.bool_)
    passes[some] = binomial_upper_within(runs.errors, runs.answered, xi, delta=levels[some, None])
    # What passes at a level passes at every larger one, also where the two differ by rounding.
    verdicts = np.logical_or.accumulate(passes, axis=0).T.tolist()
    claimed: list[tuple[int, int]] = []
    carried = 0
    for i, (top, lowest) in enumerate(zip(runs.tops.tolist(), runs.lowest.tolist(), strict=True)):
        carried += joining.at_top[i]
        passed = carried > 0 and verdicts[i][carried - 1]
        if passed:
            _claim(claimed, lowest, top)
        else:
            carried = 0
        if joining.at_lowest[i]:
            carried += joining.at_lowest[i]
            if not verdicts[i][carried - 1]:
                carried = 0
            elif not passed:
                _claim(claimed, lowest, lowest)
    return tuple(claimed)


def _claim(claimed: list[tuple[int, int]], lowest: int, highest: int) -> None:
    if claimed and claimed[-1][0] == highest + 1:
        highest = claimed.pop()[1]
    claimed.append((lowest, highest))


@lru_cache(maxsize=1024)
def start_counts(n: int, *, xi: float, delta: float) -> tuple[int, ...]:
    """The numbers of answered rows at which starts are placed: ceil(2^s ln(1/delta) / -ln(1 - xi))
    for s = 1, 2, … up to `n`, and `n` itself if not even the first is.

    Logarithms are taken in decimal arithmetic, which is the same on every machine.
    """
    if xi == 0 or 2 * log(delta) / log1p(-xi) > 2 * n:
        return (n,)
    with localcontext() as context:
        context.prec = 60
        unit = Decimal(delta).ln() / (1 - Decimal(xi)).ln()
        counts: list[int] = []
        while (count := ceil(unit * 2 ** (len(counts) + 1))) <= n:
            counts.append(count)
    return tuple(counts) or (n,)


def levels_of(total: Fraction, starts: int) -> NDArray[np.float64]:
    """The level of m of the starts, m = 1 … `starts`, which share `total` equally: rounded down."""
    exact = [total * m / starts for m in range(1, starts + 1)]
    near = [float(level) for level in exact]
    return np.array(
        [
            level if Fraction(level) <= true else nextafter(level, 0.0)
            for level, true in zip(near, exact, strict=True)
        ]
    )


def decide(
    cells: Integers,
    wrong: Integers,
    right: Integers,
    starts: Sequence[int] | None = None,
    *,
    xi: float,
    delta: float,
    first: int = FIRST,
) -> AbstentionDecision:
    """The lowest threshold that is claimed for rows in rising `cells`, of which so many are `wrong`
    and `right`. There is a start at each of the cells `starts`, none above `first`; at ranks of the
    rows if these are left out.

    With probability at least 1 - `delta` at most a share `xi` of the rows answered at it is wrong,
    and at every other threshold that is claimed.
    """
    runs, joining_of = _search(cells, wrong, right, starts, xi, delta, first)
    found = walk(runs, joining_of(runs), xi)
    if found:
        return AbstentionDecision(GRID.threshold(found[-1][0]), found, None)
    level = _budget(delta) if starts is None else Fraction(delta)
    return AbstentionDecision(inf, (), _refused(runs, joining_of, xi, level))


def claimed(
    cells: Integers,
    wrong: Integers,
    right: Integers,
    starts: Sequence[int] | None = None,
    *,
    xi: float,
    delta: float,
    first: int = FIRST,
) -> tuple[tuple[int, int], ...]:
    """The thresholds that `decide` claims, without the reasons of a refusal, which take longer."""
    runs, joining_of = _search(cells, wrong, right, starts, xi, delta, first)
    return walk(runs, joining_of(runs), xi)


def starts_from(
    pool_cells: Integers, n: int, *, xi: float, delta: float, first: int = FIRST
) -> tuple[int, ...]:
    """The cells at which to start for `n` rows: where about as many of them are answered as there
    are starts at ranks, judging by the cells of a pool of other scores.
    """
    ranked = np.minimum(np.sort(pool_cells)[::-1], first)
    shares = [Fraction(count, n) for count in start_counts(n, xi=xi, delta=delta)]
    ranks = [max(1, -int(-share * ranked.size // 1)) for share in shares]
    return tuple(int(ranked[rank - 1]) for rank in ranks)


def _budget(delta: float) -> Fraction:
    return Fraction(delta) / (1 + Fraction(delta))


def _search(
    cells: Integers,
    wrong: Integers,
    right: Integers,
    starts: Sequence[int] | None,
    xi: float,
    delta: float,
    first: int,
) -> tuple[Runs, Callable[[Runs], Joining]]:
    if starts is None:
        return Runs.of(cells, wrong, right, first), partial(_at_ranks, xi=xi, delta=delta)
    joining_of = partial(_at_cells, starts=starts, delta=delta)
    return Runs.of(cells, wrong, right, first, *starts), joining_of


def _at_ranks(runs: Runs, *, xi: float, delta: float) -> Joining:
    counts = start_counts(runs.rows, xi=xi, delta=delta)
    # How many starts have joined when so many rows are answered; the last run has none after it,
    # and no count is above its rows.
    joined = np.searchsorted(counts, runs.answered, side="right")
    return Joining(
        [int(joined[0]), *[0] * (joined.size - 1)],
        [*np.diff(joined).tolist(), 0],
        levels_of(_budget(delta), len(counts)),
    )


def _at_cells(runs: Runs, *, starts: Sequence[int], delta: float) -> Joining:
    joined = [0] * runs.tops.size
    for cell in starts:
        # The first run at or below the start: where runs were left out, not its own.
        joined[min(int(np.searchsorted(-runs.tops, -cell)), runs.tops.size - 1)] += 1
    return Joining(joined, [0] * runs.tops.size, levels_of(Fraction(delta), len(starts)))


def _refused(
    runs: Runs, joining_of: Callable[[Runs], Joining], xi: float, level: Fraction
) -> NothingPassed:
    n, errors = runs.rows, int(runs.errors[-1])
    if xi == 0:
        return NothingPassed("zero", None, n, errors)
    least = _least_rows(xi, level)
    if least is None or n < least:
        return NothingPassed("too-few", least, n, errors)
    chances = np.where(runs.answered > 0, binomial_cdf(runs.errors, runs.answered, xi), inf)
    best = int(np.argmin(chances))
    hopeless = bool((runs.errors >= xi * runs.answered).all())
    thin = runs.thinned()

    def passes(rows: int) -> bool:
        more = thin.scaled(rows)
        return rows > n and bool(walk(more, joining_of(more), xi))

    heavy, heavy_at = _lost_starts(runs, joining_of)
    return NothingPassed(
        "no-pass",
        None if hopeless else least_passing(passes),
        n,
        errors,
        GRID.threshold(int(runs.tops[best])),
        int(runs.answered[best]),
        int(runs.errors[best]),
        heavy,
        heavy_at,
    )


def _least_rows(xi: float, level: Fraction) -> int | None:
    """The fewest rows, all of them right, that pass at the level of all starts together; None if
    they are more than can be counted.
    """
    budget = levels_of(level, 1)[0]
    if budget == 0 or log(budget) / log1p(-xi) > 0.99 * LARGEST_COUNT:
        return None
    needed = max(1, ceil(log(budget) / log1p(-xi)))
    while not binomial_upper_within(0, needed, xi, delta=budget):
        needed += 1
    return needed


def _lost_starts(runs: Runs, joining_of: Callable[[Runs], Joining]) -> tuple[int, float]:
    """How many rows share the highest score, and that score, if every start is lost above it."""
    joining = joining_of(runs)
    none = runs.answered == 0
    lost = sum(np.add(joining.at_top, joining.at_lowest)[none].tolist())
    if lost < joining.levels.size:
        return 0, inf
    heavy = int(np.flatnonzero(~none)[0])
    return int(runs.answered[heavy]), GRID.threshold(int(runs.tops[heavy]))
