"""The threshold farthest from the refusal at which few enough trials are events.

A trial is an event where its score lies below the threshold ("below": a positive that is not
flagged, an unsafe rollout that is not stopped, a label that is not in its set), or at or above it
("from": a negative that raises an alarm). Events are monotone in the threshold. At a fixed
threshold they are binomial among the trials, since given which rows are trials their scores are
independent draws. Call a threshold bad if its true rate of events is above what is allowed, and let
g be the most cautious bad one. A search that returns a bad threshold returns g or one with at least
as many events as g, so g passes, too, and the chance of that is at most delta. One test, no
correction.

It holds for a fixed number of rows, for a fixed number of trials, and for every stopping rule that
sees only which rows are trials. By a plan of looks it holds at all looks together
(`pacbound.stats.looks`).

Groups have trials of their own. One common threshold at which *every* group keeps its rate is the
most cautious of the groups' own thresholds, each searched at the full delta: let h be the group
whose most cautious bad threshold g is the most cautious of all groups'. If the common threshold is
bad for any group, it is g or beyond it, so the search of h, which ended there or beyond, returned a
bad threshold. That is one group, fixed beforehand. Own thresholds of all groups share delta.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from math import ceil, inf, log, log1p, sqrt
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from pacbound.stats.arguments import LARGEST_COUNT
from pacbound.stats.binomial import binomial_upper
from pacbound.stats.looks import PlannedLooks
from pacbound.stats.planning import largest_passing, least_passing

Integers = NDArray[np.int64]
Side = Literal["below", "from"]
# Whether so many events among so many trials pass.
Passes = Callable[[int, int], bool]

# The highest cell, unless a claim says otherwise: thresholds are j / 2^16. Another grid would need
# procedures of other names.
TOP = 2**16
# The code of a refusal that the counts do not lead to: a file was changed.
UNEXPLAINED = "unexplained"
# The code of a refusal whose reason would take long to compute.
SLOW = "slow"
# The cell of a rollout that no threshold can save.
LOST = -1


@dataclass(frozen=True)
class NoThreshold:
    """Why there is no threshold.

    `code` is "zero" (nothing may be an event), "none" (there are no trials), "too-few" (not even
    zero events would pass), "unavoidable" (too many trials are events at every threshold) or
    "hopeless" (these, however many trials there are). `unavoidable` counts those. `needed` is about
    how many trials it would take, None if no number helps.
    """

    code: str
    unavoidable: int
    needed: int | None


@dataclass(frozen=True)
class Decision:
    """A threshold, or why there is none; and how many trials may be events, -1 if not even none."""

    threshold: float
    allowed: int
    refusal: NoThreshold | None


@dataclass(frozen=True)
class Search:
    """What is searched: occupied `cells`, which rise, with the `events` in each; the number of all
    `trials`; how many of them are events at every threshold because they were `lost`; and the
    highest cell.
    """

    cells: Integers
    events: Integers
    trials: int
    side: Side
    lost: int = 0
    top: int = TOP

    def threshold(self, allowed: int) -> float:
        """The threshold farthest from the refusal with at most so many events; the refusal's own,
        -inf or +inf, if there is none.
        """
        refused = -inf if self.side == "below" else inf
        if allowed < self.lost:
            return refused
        order = slice(None) if self.side == "below" else slice(None, None, -1)
        cells, events = self.cells[order], self.events[order]
        over = np.flatnonzero(self.lost + np.cumsum(events) > allowed)
        if not over.size:
            return inf if self.side == "below" else 0.0
        broken = int(cells[over[0]])
        if self.side == "below":
            # Every threshold up to and including the cell that breaks the budget still keeps it.
            return refused if broken == LOST else broken / self.top
        return refused if broken == self.top else (broken + 1) / self.top

    def events_at(self, threshold: float) -> int:
        """How many trials are events at a threshold."""
        below = self.side == "below"
        limit = threshold * self.top
        hit = self.cells < limit if below else self.cells >= limit
        lost = int(self.events[self.cells == LOST].sum()) if below and threshold == -inf else 0
        # What grades lose is no whole number.
        found: int = self.events[hit].sum().item()
        return self.lost + lost + found

    def events_in(self, cells: Integers) -> Integers:
        """How many trials are events at the lower ends of cells on the grid."""
        sums = np.append(0, np.cumsum(self.events))
        below = sums[np.searchsorted(self.cells, cells)]
        return np.asarray(self.lost + (below if self.side == "below" else sums[-1] - below))

    @property
    def unavoidable(self) -> int:
        """The trials that are events at every threshold."""
        edge = LOST if self.side == "below" else self.top
        return self.lost + int(self.events[self.cells == edge].sum())


def decide(
    search: Search,
    *,
    rate: float,
    delta: float,
    passes: Passes | None = None,
    unavoidable_first: bool = False,
) -> Decision:
    """The decision of a sample of fixed size.

    With probability at least 1 - `delta` at most a share `rate` of the trials are events at the
    threshold, and at every more cautious one. `passes` is the test, Clopper-Pearson's upper bound
    if left out. `unavoidable_first` names the unavoidable events as the reason of a refusal also
    where not even none would pass.
    """
    test = partial(_within, rate=rate, delta=delta) if passes is None else passes
    near = _usual(search.trials, rate, delta)
    allowed = largest_passing(lambda events: test(events, search.trials), search.trials, near)
    threshold = search.threshold(allowed)
    if not _is_refusal(threshold, search.side):
        return Decision(threshold, allowed, None)
    stuck, trials = search.unavoidable, search.trials
    if rate == 0:
        return Decision(threshold, allowed, NoThreshold("zero", stuck, None))
    if not trials:
        return Decision(
            threshold, allowed, NoThreshold("none", stuck, least_without_event(rate, delta))
        )
    hopeless = stuck >= rate * trials
    named = unavoidable_first and stuck and (passes is None or hopeless)
    scaled = partial(_as_common, test, stuck, trials)
    if allowed < 0 and not named:
        needed = least_without_event(rate, delta) if passes is None else least_passing(scaled)
        return Decision(threshold, allowed, NoThreshold("too-few", stuck, needed))
    needed = None if hopeless else least_passing(scaled)
    code = "hopeless" if needed is None else "unavoidable"
    return Decision(threshold, allowed, NoThreshold(code, stuck, needed))


def decide_at_look(search: Search, plan: PlannedLooks) -> Decision:
    """The decision at a look of the plan, whose number of trials is that of the search.

    With probability at least 1 - `plan.delta` at most a share `plan.xi` of the trials are events at
    this threshold, and at that of any other look.
    """
    allowed = plan.allowed(search.trials)
    threshold = search.threshold(allowed)
    if not _is_refusal(threshold, search.side):
        return Decision(threshold, allowed, None)
    stuck, trials = search.unavoidable, search.trials
    later = (look for look in plan.looks if look > trials)
    # As many as now, rounded up, stay unavoidable among the later ones.
    needed = next(
        (look for look in later if -(-stuck * look // trials) <= plan.allowed(look)), None
    )
    code = "too-few" if allowed < 0 else "hopeless" if needed is None else "unavoidable"
    return Decision(threshold, allowed, NoThreshold(code, stuck, needed))


def allowed_events(trials: int, *, rate: float, delta: float) -> int:
    """The largest number of events among `trials` that still passes; -1 if not even zero do."""
    passes = partial(_within, trials=trials, rate=rate, delta=delta)
    return largest_passing(passes, trials, _usual(trials, rate, delta))


def least_without_event(rate: float, delta: float) -> int | None:
    """How many trials certify `rate` if none is an event; None if more than can be counted."""
    least = log(delta) / log1p(-rate)
    if least > 0.99 * LARGEST_COUNT:
        return None
    needed = max(1, ceil(least))
    while binomial_upper(0, needed, delta=delta) > rate:
        needed += 1
    return needed


def _usual(trials: int, rate: float, delta: float) -> int:
    """About how many events pass, by the normal approximation: where a search begins."""
    # The level of a group may be so small that it is 0.
    deviations = ndtri(max(delta, 1e-300))
    return max(0, int(trials * rate + deviations * sqrt(trials * rate * (1 - rate))))


def _within(events: int, trials: int, *, rate: float, delta: float) -> bool:
    return bool(binomial_upper(events, trials, delta=delta) <= rate)


def _as_common(passes: Passes, events: int, trials: int, many: int) -> bool:
    """Whether `many` trials pass if events stay as common as they were seen, rounded up."""
    return passes(-(-events * many // trials), many)


def _is_refusal(threshold: float, side: Side) -> bool:
    return threshold == (-inf if side == "below" else inf)
