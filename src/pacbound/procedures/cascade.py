"""The thresholds at which fast models may answer for a slow one, losing at most xi accuracy, in
every group if there are groups.

The loss is P[cascade wrong] - P[slow wrong] = P(D = 1) - P(D = -1), where D is +1 on a row that
exits early and is then wrong where the slow model is right, -1 the other way round, and 0 on all
others. The loss is not monotone in the thresholds, so the paper's line search is not valid; a
fixed-sequence walk is: from "never exit" along a *path*, a list of vectors of thresholds that was
declared in advance, each step tested at the full level, up to the first failure. Two models have
one path, which visits every threshold of their grid. More have seven, which fall from "never exit"
to "always exit" and differ in how much earlier or later exits are favoured; each is walked at
delta / 7, and the cheapest of the seven ends is kept: failures add up, and choosing by cost is
free. For xi = 0, where a walk can never start, some declared steps of each path are tested alone,
and share delta.

A group is a set of rows that was fixed beforehand. Its loss is that of the cascade among its rows,
P[cascade wrong | group] - P[slow wrong | group]. A step is *bad* for a group if its loss there is
more than xi. A group has n_g of the n rows; given n_g they are independent draws of the group, so
the test of a step with the group's own counts and n_g passes with probability at most its level
where the step is bad for the group. Without rows no test passes.

Theorem (common thresholds). A step passes if *every* group passes its own test there, at the full
level; a walk stops at the first failure. Then with probability at least 1 - delta no step that was
passed is bad for any group, however many groups there are and however they overlap.
Proof. Which steps are bad for which groups is a matter of the law, not of the sample. Take the
first step of a path that is bad for some group, and a group for which it is bad. If a bad step was
passed, then so was this one, and with it this group's test there, which given n_g happens with
probability at most the level; the levels of all paths add up to delta. QED (Intersection-union
within a fixed sequence: no share of delta goes to the number of groups.) For xi = 0 the same holds
of each declared step by itself.

Since a group passes all steps before its own first failure, the walk of all groups together ends
where the first of them would stop alone; that is how it is computed. All rows are one group.

Theorem (own thresholds). Let the groups be disjoint, and decide each alone at the level
1 - (1 - delta)^(1/G), G being their number. Then with probability at least 1 - delta no group loses
more than xi at its own thresholds.
Proof. Given n_1, .., n_G the samples of disjoint groups are independent, so with probability at
least ((1 - delta)^(1/G))^G = 1 - delta none of the G decisions is wrong; this holds for all
n_1, .., n_G. QED A group that is too small is refused and never exits early, so it loses nothing;
nor does a group that was not among the rows, if its rows never exit. Where one row of a cluster
was drawn for each of its groups the samples are dependent, and each group is decided at delta / G.

Groups left out. Let the groups be disjoint, and leave out those whose n_g alone is too small: 0, or
such that not even zero losses of n_g would show xi at the level of a walk. Given n_1, .., n_G the
groups that are left are fixed, and the theorem of common thresholds holds for them; the rows of the
others never exit early. Nothing but n_g may decide this: a group that is left out because its walk
failed would get, with every other, a chance of its own. Of groups that overlap, the rows are not
independent draws given the others' numbers, so there none is left out; nor where clusters give a
row to each of their groups.

**Declared by other rows.** The path may be any list of threshold vectors that was chosen on a fold
of the rows, if the rows that are counted are all others; they need not fall together. Given the
fold, these are independent draws of the same law and the path is fixed, so that it is walked at the
full delta. xi = 0 is walked in the same way by McNemar's test: the sequence may begin where the
fold saw gains. Before the first step stands "never exit", which loses nothing and is not tested.

**Partial labels.** A row that exits early, whose answer differs from the slow model's and that has
no label counts as a loss, in each of its groups.

**Grades.** Where answers are graded, D is a difference of qualities, from -1 to 1, and a step is
tested by bets (`losses_below`) at its level: nothing else changes. One preference a row makes D
-1, 0 or 1, and is tested as losses and gains are.

Lemma (monotone tests). A step that passes with b losses and c gains passes with fewer losses and
with more gains.
Exact: the region is {b <= bmax(c)}, and bmax is made nondecreasing when it is computed.
Pair: Upper(b) rises in b and Lower(c) in c, and the bound is their difference.
xi = 0: P(Bin(b + c, 1/2) <= b) = P(Bin(b + c, 1/2) >= c) rises in b and falls in c.
Grades: the evidence of bets rises when any D falls.

Theorem. Let n rows be independent draws, n fixed, and let each row's label exist, and be what it
is, whether it is asked for or not. Ask for labels in any order, by any rule, also one that looks at
the scores, at all predictions and at the labels so far; stop at any time, look as often as you
like. Then with probability at least 1 - delta every threshold that passes at any of these looks
loses at most xi.
Proof. Let D be what a row does to the cascade at a step: +1 where it loses, -1 where it gains, 0
else. Let D' be D where the row has a label or its answering exit agrees with the slow model (then
D = 0), and +1 where neither is so. D' >= D in every row and step, so the losses that are counted
are at least those that there are, and the gains at most. By the lemma a step that passes as counted
passes with all labels, so what passes before the first failure is a part of what would pass with
all labels, whatever was asked. The theorems above hold for all labels, and the same event covers
all looks. QED

All looks claim the loss, the one before the first label too. There D' is 1 where the answer differs
from the slow model's and 0 else, and the same walk would show that at most xi of the answers
differ; but that claim fails on another event, which this theorem does not cover at the looks that
follow. It is made alone, and declared beforehand.

Stop rule. Of all labels that the unlabelled rows could still get, gains at all their exits let the
most steps pass, and losses, as counted, the fewest. A path's end under any labels lies between
these two, and the cost falls along a path. So if the decision with gains filled in is the present
one, no label can change it; if it is not, the labels that make them gains do. (What a tally knows
of a row without a label, that its exits differ, allows that all of them gain.) Void is only what
looks at an outcome and then changes what was fixed: relabelling a row because it lost, or another
xi.

**That few answers differ from the slow model's.** Theorem. Let n rows be independent draws, n
fixed. With probability at least 1 - delta, at most xi of all answers differ from the slow model's
at every threshold that passes, if every row that exits early with another answer than the slow
model's counts as a loss, and none as a gain.
Proof. Let what the slow model answers stand for the label. It is then never wrong, so the accuracy
that the cascade loses against it is the share of its answers that differ. The counts are those of a
sample in which every label is there, and the theorems above hold for every law of the label. QED

The decisions are therefore those above, with no label at all. The claims are not the
same. That at most xi of the answers differ fails on another event than that at most xi of the
accuracy is lost, and delta covers one of the two: whoever publishes the first if it is good, and
labels on and publishes the second otherwise, is wrong with a probability of up to the sum. With
n = 300, xi = 0.1 and delta = 0.05 it can be 0.0924
(`tests/guarantees/test_labels_bit_by_bit.py`). So this claim is declared before the models' answers
are compared, and takes no labels. What is claimed while labels may still come is the loss, also as
long as there is none.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import lru_cache, partial
from itertools import accumulate
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from pacbound.errors import InvalidValueError
from pacbound.procedures.joint_walk import JointWalk, Path, along, routed, top_of
from pacbound.stats.arguments import LARGEST_COUNT, real_numbers
from pacbound.stats.binomial import (
    binomial_upper,
    bonferroni_level,
    fixed_sequence,
    sidak_level,
)
from pacbound.stats.graded_bets import losses_below
from pacbound.stats.paired import PairedBound, labels_needed_by_walk, mcnemar_test, paired_test
from pacbound.stats.planning import least_passing
from pacbound.tally.questions.cascade import FINE

Integers = NDArray[np.int64]
Flags = NDArray[np.bool_]

# The names of procedures, and how groups have thresholds by them. Along paths that are declared in
# advance, for all rows, in groups with common thresholds or with own ones; or along a sequence that
# a fold declared.
PATHS: Final = "cascade/paths/1"
COMMON: Final = "cascade/paths-in-groups/common/1"
OWN: Final = "cascade/paths-in-groups/own/1"
DECLARED: Final = "cascade/declared/1"
SHARED: Final[Mapping[str, str]] = {COMMON: "common", OWN: "own"}

TILTS = (-2.0, -1.0, -0.5, 0.0, 0.5, 1.0, 2.0)
STEPS = 1024
# A declared sequence is no longer than the paths that are declared without a fold.
MOST_STEPS = STEPS
# What 2^53 rows of this cost add up to is still a float.
LARGEST_COST = 1e290

# The thresholds of two models that are tried for xi = 0, and the steps of each path of more.
_SHARES: Final = """
    1 0.9995 0.999 0.9975 0.995 0.99 0.985 0.98 0.97 0.96 0.95 0.925 0.9 0.85 0.8 0.7 0.6 0.5 0.3 0
"""
XI_ZERO_GRID = tuple(int(np.ceil(float(share) * top_of(1))) for share in _SHARES.split())
WITHOUT_LOSS = tuple(range(24, STEPS + 1, 50))


@dataclass(frozen=True)
class CascadeRefusal:
    """Why no thresholds hold.

    Attributes
    ----------
    code : str
        Which of the reasons it is; `pacbound.claims.cascade.words` has a sentence for each.
    numbers : mapping of str to float
        What the sentence says in numbers.
    needed : int or None
        About how many rows it would take; None if no number of them would help.
    group : str or None
        The group that it is about, where the claim is about groups.
    others : tuple of str
        Other groups that cannot be certified either.

    Examples
    --------
    >>> CascadeRefusal("no-proof").needed is None
    True
    """

    code: str
    numbers: Mapping[str, float] = field(default_factory=dict)
    needed: int | None = None
    group: str | None = None
    others: tuple[str, ...] = ()


@dataclass(frozen=True)
class CascadeDecision:
    """The thresholds in cells of the grid (None: refused), which walk they end, and all walks down
    to their first failure.
    """

    cells: tuple[int, ...] | None
    chosen: int
    walks: tuple[JointWalk, ...]
    refusal: CascadeRefusal | None


@dataclass(frozen=True)
class Declared:
    """What a fold of the rows declared for all others.

    Attributes
    ----------
    models : tuple of int
        The models in the order in which they are asked, the slow one last, by their places among
        all candidates.
    costs : tuple of float
        What each of them costs a row by itself.
    share : float
        The share of the rows that was asked for as the fold.
    seed : int
        What drew it.
    rows : int
        How many rows it has; none of them was counted.
    cells : ndarray of shape (exits, steps)
        The sequence of thresholds on the grid, in the order in which they are tested. A cell above
        the grid is an exit that is never taken.

    Examples
    --------
    >>> declared = Declared((4, 2), (1.0, 9.0), 0.2, 0, 500, np.array([[65537, 60000]]))
    >>> declared.running_costs, declared.costs_at((60000,)), declared.costs_at((65537,))
    ((1.0, 10.0), (1.0, 10.0), (0.0, 9.0))
    """

    models: tuple[int, ...]
    costs: tuple[float, ...]
    share: float
    seed: int
    rows: int
    cells: Integers

    @property
    def running_costs(self) -> tuple[float, ...]:
        """What a row costs that each model answers, those before it included."""
        return tuple(accumulate(self.costs))

    def costs_at(self, cells: tuple[int, ...]) -> tuple[float, ...]:
        """The same where models are left out whose exit is never taken."""
        asked = [cell <= top_of(len(cells)) for cell in cells] + [True]
        return tuple(
            accumulate(cost if used else 0.0 for cost, used in zip(self.costs, asked, strict=True))
        )


class GroupCounts(NamedTuple):
    """The rows of a group: how many, and their walk along each path."""

    n: int
    walks: tuple[JointWalk, ...]


@dataclass(frozen=True)
class Asked:
    """What a decision is asked for. `costs` are what a row costs that is answered at each exit and
    by the slow model; they choose among ends that hold. A plan asks by the "pair", which answers at
    once. A sequence that other rows `declared` is the one path.
    """

    xi: float
    delta: float
    costs: tuple[float, ...]
    bound: PairedBound = "exact"
    declared: Declared | None = None

    @property
    def in_turn(self) -> bool:
        """Whether steps are tested one after the other; else each alone."""
        return self.xi > 0 or self.declared is not None


# ---- paths


@lru_cache(maxsize=32)
def declared_path(tilt: float, exits: int) -> Path:
    """The threshold cells of a path, (exits, 1025): ceil(2^10 expit(t + kappa)) for falling t, then
    zeros.

    A positive tilt asks more of later exits, a negative one more of the first.
    """
    kappa = tilt * np.arange(exits) / (exits - 1)
    steps = expit(np.linspace(8.0, -8.0, STEPS) + kappa[:, None])
    grid = np.ceil(top_of(exits) * steps).astype(np.int64)
    path = np.concatenate([grid, np.zeros((exits, 1), dtype=np.int64)], axis=1)
    path.setflags(write=False)
    return Path(path)


@lru_cache(maxsize=1)
def every_threshold() -> Path:
    """The path of two models, from the top of their grid to 0."""
    return Path(np.arange(top_of(1), -1, -1)[None])


def paths_of(exits: int, declared: Declared | None = None) -> tuple[Path, ...]:
    """The paths that a cascade of so many exits is walked along."""
    if declared is not None:
        return (Path(declared.cells, falling=False),)
    return (
        (every_threshold(),) if exits == 1 else tuple(declared_path(tilt, exits) for tilt in TILTS)
    )


def walks_from_counts(
    cells: Integers, counts: Integers, declared: Declared | None = None
) -> tuple[JointWalk, ...]:
    """The walk along each path, from the occupied joint cells and the counts of their joint
    outcomes, or of what exits lose; of two models at the occupied cells alone.
    """
    exits = cells.shape[1]
    if declared is not None:
        walks = [routed(declared.cells, cells, counts)]
    elif exits == 1:
        walks = along([np.unique([*cells[:, 0], top_of(1)])[None, ::-1]], cells, counts)
    else:
        walks = along([path.cells for path in paths_of(exits)], cells, counts)
    return tuple(walk.as_judged() for walk in walks)


# ---- deciding


def step_passes(
    losses: Any, gains: Any, n: int, *, xi: float, level: float, bound: PairedBound = "exact"
) -> Flags:
    """Whether the losses of n rows exceed the gains by less than xi: the test of every step."""
    if xi == 0:
        return np.asarray(mcnemar_test(losses, gains, delta=level))
    return np.asarray(paired_test(losses, gains, n, xi=xi, delta=level, bound=bound))


Test = Callable[[JointWalk], Flags]


# What is kept of the walks of each group, how many steps each passed, (groups, paths), and the
# thresholds at which all pass, with their path.
Ends = list[tuple[int, tuple[int, ...]]]
Walked = tuple[list[tuple[JointWalk, ...]], Integers, Ends]


def decide(
    groups: Sequence[GroupCounts], asked: Asked, *, whole: int | None = None
) -> tuple[CascadeDecision, ...]:
    """The thresholds that all groups have in common, for each of them, in their order.

    With probability at least 1 - delta no group loses more than xi there. `whole` is the place of
    the group that holds all rows, where groups overlap. If one group cannot be certified then none
    is, and those that are to blame have a refusal.
    """
    exits = len(groups[0].walks[0].cells)
    paths, level = paths_of(exits, asked.declared), walk_level(asked, exits)
    tests = [_test(group.n, asked, level) for group in groups]
    walk = _walk_down if asked.in_turn else _try_each
    seen, passed, ends = walk(paths, groups, tests)
    if not ends:
        return _refused(groups, seen, passed, asked, level)
    counted = range(len(groups)) if whole is None else (whole,)
    rows = sum(groups[place].n for place in counted)

    def cost(end: tuple[int, tuple[int, ...]]) -> float:
        path, cells = end
        exits = sum(seen[place][path].counts_at(cells, "exits") for place in counted)
        return total_cost(np.asarray(exits), rows, asked.costs)

    chosen, cells = min(ends, key=cost)
    return tuple(CascadeDecision(cells, chosen, walks, None) for walks in seen)


def decide_apart(
    groups: Sequence[GroupCounts], asked: Asked, *, dependent: bool
) -> tuple[CascadeDecision, ...]:
    """The thresholds of each group alone, in their order. `dependent` says that rows of several
    groups may be of one cluster.
    """
    level = own_level(asked.delta, len(groups), dependent=dependent)
    return tuple(decide([group], replace(asked, delta=level))[0] for group in groups)


def own_level(delta: float, groups: int, *, dependent: bool) -> float:
    """The level of each group's own decision."""
    return (bonferroni_level if dependent else sidak_level)(delta, groups)


def walk_level(asked: Asked, exits: int) -> float:
    """The level of each step: paths, and for xi = 0 the steps that are tried, share delta."""
    steps = 1 if asked.in_turn else len(_tried(exits))
    return bonferroni_level(asked.delta, len(paths_of(exits, asked.declared)) * steps)


def too_small(n: int, exits: int, *, xi: float, delta: float) -> bool:
    """Whether a group of so many rows is too small to pass, by its number alone."""
    level = bonferroni_level(delta, len(paths_of(exits)))
    return n == 0 or bool(binomial_upper(0, n, delta=level) > xi)


def _tried(exits: int) -> Integers:
    """The places on each path that are tried for xi = 0."""
    return top_of(1) - np.array(XI_ZERO_GRID) if exits == 1 else np.array(WITHOUT_LOSS)


def _test(n: int, asked: Asked, level: float) -> Test:
    passes = partial(step_passes, n=n, xi=asked.xi, level=level, bound=asked.bound)

    def test(walk: JointWalk) -> Flags:
        if walk.grades is None:
            return passes(walk.losses, walk.gains)
        return losses_below(walk.grades, rows=n, xi=asked.xi, delta=level, steps=FINE)

    return test


def _walk_down(
    paths: Sequence[Path], groups: Sequence[GroupCounts], tests: Sequence[Test]
) -> Walked:
    """Each path, down to the first failure of any group."""

    def steps_passed(path: Path, walk: JointWalk, test: Test) -> int:
        places, step = path.places(walk), first_failure(walk, test)
        if places[0] > 0:
            raise InvalidValueError("A walk does not begin with the first step of its path.")
        return int(places[step]) if step < len(walk) else path.cells.shape[1]

    # Group by group: what a test computes once for a number of rows is kept for the next path.
    passed = np.array(
        [
            [steps_passed(path, walk, test) for path, walk in zip(paths, group.walks, strict=True)]
            for group, test in zip(groups, tests, strict=True)
        ]
    )
    last = (passed.min(axis=0) - 1).tolist()
    seen = [tuple(map(Path.kept, paths, group.walks, last)) for group in groups]
    ends = [(i, path.step(last[i])) for i, path in enumerate(paths) if last[i] >= 0]
    return seen, passed, ends


def _try_each(
    paths: Sequence[Path], groups: Sequence[GroupCounts], tests: Sequence[Test]
) -> Walked:
    """The declared steps of each path, each tested alone by every group."""
    tried = _tried(len(paths[0].cells))
    seen = [
        tuple(path.at(walk, tried) for path, walk in zip(paths, group.walks, strict=True))
        for group in groups
    ]
    passes = np.array([[*map(test, walks)] for walks, test in zip(seen, tests, strict=True)])
    ends = [(int(i), paths[i].step(tried[step])) for i, step in np.argwhere(passes.all(axis=0))]
    # Of two models the lowest threshold exits most.
    return seen, passes.sum(axis=2), ends[-1:] if len(paths) == 1 else ends


def first_failure(walk: JointWalk, test: Test) -> int:
    """The first step that fails, the number of steps if none does.

    With fewer losses and more gains a step keeps passing, so the test is asked only where losses
    rise or gains fall; and in growing blocks, as long as all before them pass.
    """
    worse = (np.diff(walk.losses) > 0) | (np.diff(walk.gains) < 0) | (walk.grades is not None)
    asked = np.append(0, np.flatnonzero(worse) + 1)
    start, block = 0, 64
    while start < len(asked):
        some = asked[start : start + block]
        passed = fixed_sequence(test(walk.take(some)))
        if passed < len(some):
            return int(some[passed])
        start, block = start + block, 4 * block
    return len(walk)


def checked_costs(costs: Any, models: int) -> tuple[float, ...]:
    """`costs` as numbers that rise, one for each model."""
    values = real_numbers(costs, "costs", "a cost")
    if len(values) != models:
        raise InvalidValueError(
            f"costs has {len(values)} values for {models} models: pass what a row costs that each "
            "answers."
        )
    if not (np.isfinite(values).all() and values[0] > 0 and (np.diff(values) > 0).all()):
        raise InvalidValueError(
            f"costs={values} do not rise: expected what a row costs in all that is answered by "
            "each model, those before it included."
        )
    if values[-1] > LARGEST_COST:
        raise InvalidValueError(
            f"costs={values} are too large to be added up: expected at most {LARGEST_COST}. Use "
            "another unit."
        )
    return values


def total_cost(exits: Integers, n: int, costs: tuple[float, ...]) -> float:
    """What n rows cost, of which `exits` were answered at each exit and the others by the slow
    model.
    """
    # Rounded once, so that walks of equal cost tie on every machine and the same one is chosen.
    answered = [*exits.tolist(), n - int(exits.sum())]
    return float(sum(rows * Fraction(cost) for rows, cost in zip(answered, costs, strict=True)))


def settled(now: CascadeDecision, best: CascadeDecision) -> bool:
    """Whether more labels cannot change the thresholds, by the present decision and the best
    possible one.
    """
    return now.cells == best.cells and (now.cells is None or now.chosen == best.chosen)


# ---- refusing


def _refused(
    groups: Sequence[GroupCounts],
    seen: Sequence[tuple[JointWalk, ...]],
    passed: Integers,
    asked: Asked,
    level: float,
) -> tuple[CascadeDecision, ...]:
    """Which groups are to blame, and why: those that fail at once, on the first of the paths on
    which the fewest do; without loss those that pass at the fewest of all declared steps. Paths
    begin at, or next to, the top of the grid; of one group the least loss there is to speak of.
    """
    chosen, steps = 0, passed.sum(axis=1)
    if asked.in_turn:
        fails = (passed == 0).sum(axis=0).tolist()
        net = [int(walk.losses[0] - walk.gains[0]) for walk in seen[0]]
        chosen = min(range(len(net)), key=lambda i: net[i] if len(groups) == 1 else fails[i])
        steps = passed[:, chosen]

    def refusal(group: int) -> CascadeRefusal:
        n, walk = groups[group].n, seen[group][chosen]
        if asked.in_turn:
            return (_after_a_fold if asked.declared else _at_first_step)(walk, n, asked, level)
        tried = {"tried": sum(len(walk) for walk in seen[group])}
        if len(groups) == 1:
            return CascadeRefusal("no-loss", {**tried, "n": n})
        numbers = {**tried, "passed": int(steps[group]), "n": n}
        return CascadeRefusal("no-loss-in-groups", numbers)

    return tuple(
        CascadeDecision(None, chosen, walks, refusal(i) if steps[i] == steps.min() else None)
        for i, walks in enumerate(seen)
    )


def _at_first_step(walk: JointWalk, n: int, asked: Asked, level: float) -> CascadeRefusal:
    """Why not even the highest thresholds, the first step of `walk`, pass, and what would help."""
    losses, gains, xi = int(walk.losses[0]), int(walk.gains[0]), asked.xi
    unlabelled, size = int(walk.unlabelled[:, 0].sum()), max(n, 1)
    if losses > 0 and losses - gains >= xi * n:
        needed = None
    else:
        least = labels_needed_by_walk(xi=xi, delta=level, bound=asked.bound)
        needed = least if least <= LARGEST_COUNT else None
        if losses or gains:
            needed = _rows_needed((losses,), (gains,), size, xi, level, least)
    if losses == 0:
        return CascadeRefusal("too-few", {"n": n, "xi": xi, "delta": level}, needed)
    numbers = {"losses": losses, "gains": gains, "n": n, "xi": xi, "unlabelled": unlabelled}
    code = "saturated" if needed is None else "nearly-saturated"
    return CascadeRefusal(f"{code}-unlabelled" if unlabelled else code, numbers, needed)


def _after_a_fold(walk: JointWalk, n: int, asked: Asked, level: float) -> CascadeRefusal:
    """Why the first step that a fold declared fails, and about how many rows would pass."""
    losses, gains, xi = int(walk.losses[0]), int(walk.gains[0]), asked.xi
    even, needed = xi == 0 and losses == gains, None
    if not even and losses - gains <= xi * n:
        lost, gained = (tuple(part[:, 0].tolist()) for part in (walk.lost, walk.only_fast))
        needed = _rows_needed(lost, gained, n, xi, level)
    if even:
        return CascadeRefusal("fold-even", {"losses": losses}, needed)
    if losses == gains == 0:
        return CascadeRefusal("fold-too-few", {"n": n, "xi": xi, "delta": level}, needed)
    numbers = {"losses": losses, "gains": gains, "n": n, "xi": xi}
    return CascadeRefusal("fold-loses" if needed is None else "fold-near", numbers, needed)


@lru_cache(maxsize=1024)
def _rows_needed(
    lost: tuple[int, ...], gained: tuple[int, ...], n: int, xi: float, level: float, least: int = 1
) -> int | None:
    """About how many rows, at `least` so many, would pass if the rates of each exit stayed as they
    were seen in `n` rows; None if more than can be counted.
    """

    # The pair stands in for the exact test here: it asks for a few more rows, but answers at once
    # for any number of them. Gains are rounded down and losses up, in Python's integers.
    def passes(rows: int) -> bool:
        losses = sum(-(-count * rows // n) for count in lost)
        gains = sum(count * rows // n for count in gained)
        # A few rows cannot hold what was rounded up at each exit.
        if rows < least or losses + gains > rows:
            return False
        return bool(step_passes(losses, gains, rows, xi=xi, level=level, bound="pair"))

    return least_passing(passes)


def refused(
    names: Sequence[str], groups: Sequence[GroupCounts], found: Sequence[CascadeDecision]
) -> CascadeRefusal | None:
    """Why no group is certified, by the one that is furthest from it; None if one is."""
    if any(decision.cells is not None for decision in found):
        return None
    blamed = [
        (name, group.n, decision.refusal)
        for name, group, decision in zip(names, groups, found, strict=True)
        if decision.refusal is not None
    ]

    def lacking(one: tuple[str, int, CascadeRefusal]) -> float:
        _, rows, refusal = one
        return np.inf if refusal.needed is None else refusal.needed - rows

    name, rows, refusal = max(blamed, key=lacking)
    others = tuple(other for other, *_ in blamed if other != name)
    numbers = {**refusal.numbers, "rows": rows}
    return replace(refusal, numbers=numbers, group=name, others=others)


def about_answers(decision: CascadeDecision, n: int, xi: float) -> CascadeDecision:
    """The decision with a refusal that is about answers that differ, not about losses."""
    if decision.refusal is None:
        return decision
    needed = decision.refusal.needed
    differ = int(decision.walks[decision.chosen].losses[0])
    numbers = {"n": n, "xi": xi, "differ": differ}
    if xi == 0:
        refusal = CascadeRefusal("no-difference")
    elif differ == 0:
        refusal = CascadeRefusal("too-few-to-differ", numbers, needed)
    else:
        code = "differing" if needed is None else "nearly-differing"
        refusal = CascadeRefusal(code, numbers, needed)
    return replace(decision, refusal=refusal)
