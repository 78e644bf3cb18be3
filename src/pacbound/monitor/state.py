"""The state of a monitor: exact numbers that say all about the labels so far, and how they change.

A state is never changed. Each update makes a new one, so that whatever goes wrong on the way leaves
the old one in place. Evidence after each label is compared with the limit; the label at which it is
reached is the last that the state takes in before the alarm is dealt with. On the first clock the
alarm stays rung: what comes later is counted, and changes the evidence no more. On the second the
sums start again from 0.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from pacbound.monitor.history import History
from pacbound.monitor.promise import Promise
from pacbound.stats.betting import Restarts, RunningSums
from pacbound.watch import Counts, Seen, Watch

Floats = NDArray[np.float64]
Wealth = Restarts | RunningSums

_FIRST_ROWS: Final = 512
_MOST_ROWS: Final = 2**16
_TABLE: Final = 2**17
"""Numbers in a table of the evidence of each place after each row: it stays in the cache."""


@dataclass(frozen=True)
class Rung:
    """When an alarm rang: at which label, at which evidence, and which place had most of it."""

    label: int
    evidence: float
    place: int


@dataclass(frozen=True)
class State:
    """All about the labels so far.

    `rows` were given, `labels` of them are what the claim is about, and `seen` counts their
    outcomes.
    """

    rows: int
    labels: int
    seen: tuple[int, ...]
    wealth: tuple[Wealth, ...]
    history: History
    rung: tuple[Rung, ...]

    @classmethod
    def fresh(cls, watch: Watch, promise: Promise) -> State:
        """Before the first label."""
        wealth = tuple(promise.fresh(bets) for bets in watch.bets)
        return cls(0, 0, (0,) * len(watch.outcomes), wealth, History.fresh(), ())


@dataclass(frozen=True)
class Clock:
    """How states change: the bets against a claim, and the promise about false alarms."""

    watch: Watch
    promise: Promise

    def evidence(self, state: State) -> float:
        """The evidence against the claim."""
        return float(np.add.accumulate(self._values(state.wealth))[-1])

    def is_over(self, state: State) -> bool:
        """Whether the alarm has rung and stays so."""
        return bool(state.rung) and self.promise.every is None

    def after(self, state: State, seen: Seen, rows: int) -> State:
        """The state after rows in order, `seen` being those that the claim is about."""
        now, done, size = state, 0, _FIRST_ROWS
        while done < len(seen.outcomes) and not self.is_over(now):
            part = seen.part(done, size)
            before = now
            now, taken = self._part(now, part)
            done += taken
            # Labels before an alarm are taken in again, so few are tried after one.
            alarm = len(now.rung) > len(before.rung)
            size = _FIRST_ROWS if alarm else min(2 * size, _MOST_ROWS)
        if done < len(seen.outcomes):
            now = _counted(now, seen.outcomes[done:])
        return replace(now, rows=state.rows + rows)

    def after_counts(self, state: State, counts: Counts) -> State:
        """The state after a batch of counts, whose evidence is looked at after all of them."""
        labels = sum(sum(times) for _, times in counts)
        totals = np.array([state.seen, *(times for _, times in counts)], dtype=object).sum(axis=0)
        counted = replace(
            state,
            rows=state.rows + labels,
            labels=state.labels + labels,
            seen=tuple(map(int, totals)),
        )
        if self.is_over(state) or not labels:
            return counted
        wealth = list(state.wealth)
        for place, times in counts:
            if place >= 0:
                wealth[place] = wealth[place].after_counts(self.watch.bets[place], times)
        now = replace(counted, wealth=tuple(wealth))
        reached = self.evidence(now)
        now = replace(now, history=state.history.after_batch(reached, labels))
        return self._rung(now, reached) if reached >= self.promise.limit else now

    def _part(self, state: State, seen: Seen) -> tuple[State, int]:
        """The state after some labels, up to the alarm if it rings among them, and their number."""
        # Asked for only where it is needed: there may be thousands of places.
        before = 0.0 if seen.closes is None else self.evidence(state)
        wealth, evidence = self._paths(state.wealth, seen)
        evidence = seen.looked_at(evidence, before)
        over = np.flatnonzero(evidence >= self.promise.limit)
        if not over.size:
            now = replace(state, wealth=wealth, history=state.history.after(evidence))
            return _counted(now, seen.outcomes), len(seen.outcomes)
        taken = int(over[0]) + 1
        # The evidence before a row is below the limit, so what rings is the last label of a row.
        part = seen.part(0, taken)
        wealth, evidence = self._paths(state.wealth, part)
        evidence = part.looked_at(evidence, before)
        now = replace(state, wealth=wealth, history=state.history.after(evidence))
        return self._rung(_counted(now, part.outcomes), float(evidence[-1])), taken

    def _rung(self, state: State, evidence: float) -> State:
        place = int(np.argmax(self._values(state.wealth)))
        rung = (*state.rung, Rung(state.labels, evidence, place))
        if self.promise.every is None:
            return replace(state, rung=rung)
        fresh = tuple(self.promise.fresh(bets) for bets in self.watch.bets)
        return replace(state, rung=rung, wealth=fresh)

    def _values(self, wealth: Sequence[Wealth]) -> Floats:
        """The evidence of each place, by its share."""
        own = [one.evidence(bets) for one, bets in zip(wealth, self.watch.bets, strict=True)]
        shared: Floats = np.array(own) * self.promise.shares(self.watch.shares)
        return shared

    def _paths(self, wealth: tuple[Wealth, ...], seen: Seen) -> tuple[tuple[Wealth, ...], Floats]:
        """The wealth after all rows, and the evidence after each of them."""
        shares = self.promise.shares(self.watch.shares)
        after, steps = list(wealth), {}
        for place, rows in _rows_by_place(seen.places):
            after[place], own = wealth[place].after(self.watch.bets[place], seen.outcomes[rows])
            steps[place] = rows, own * shares[place]
        evidence, values = np.empty(len(seen.outcomes)), self._values(wealth)
        size = max(1, _TABLE // len(wealth))
        for start in range(0, len(evidence), size):
            stop = min(start + size, len(evidence))
            evidence[start:stop], values = _totals(values, steps, start, stop)
        return tuple(after), evidence


def _rows_by_place(places: NDArray[np.int64]) -> Iterator[tuple[int, NDArray[np.int64]]]:
    """The rows of each place in order; those of none are left out."""
    order = np.argsort(places, kind="stable")
    starts = np.flatnonzero(np.diff(places[order], prepend=-1))
    # Before the first of them are the rows without bets, whose place is -1.
    for rows in np.split(order, starts)[1:]:
        yield int(places[rows[0]]), rows


def _totals(
    values: Floats, steps: dict[int, tuple[NDArray[np.int64], Floats]], start: int, stop: int
) -> tuple[Floats, Floats]:
    """The sum over all places after each row from `start` to `stop`, in one order, and the values
    of all places after the last.
    """
    table: Any = np.broadcast_to(values, (stop - start, values.size)).copy()
    for place, (rows, own) in steps.items():
        first, last = np.searchsorted(rows, [start, stop])
        if first < last:
            held = np.zeros(stop - start, dtype=np.int64)
            held[rows[first:last] - start] = 1
            known = np.concatenate([values[place : place + 1], own[first:last]])
            table[:, place] = known[np.cumsum(held)]
    return np.add.accumulate(table, axis=1)[:, -1], table[-1].copy()


def _counted(state: State, outcomes: NDArray[np.int64]) -> State:
    more = np.bincount(outcomes, minlength=len(state.seen)).tolist()
    seen = tuple(old + new for old, new in zip(state.seen, more, strict=True))
    return replace(state, labels=state.labels + len(outcomes), seen=seen)
