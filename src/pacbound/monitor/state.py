"""What is watched, what is promised, and the state: exact numbers that say all about the labels so
far, and how they change.

A state is never changed. Each update makes a new one, so that whatever goes wrong on the way leaves
the old one in place. Evidence after each label is compared with the limit; the label at which it is
reached is the last that the state takes in before the alarm is dealt with. On the first clock the
alarm stays rung: what comes later is counted, and changes the evidence no more. On the second the
sums start again from 0.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from pacbound.claims.certificate import Certificate
from pacbound.errors import InvalidTypeError, InvalidValueError
from pacbound.says import share
from pacbound.stats.arguments import LARGEST_COUNT, failure_probability, real_number
from pacbound.stats.betting import Bets, Restarts, RunningSums
from pacbound.tally.classes import ClassRule, Evidence
from pacbound.tally.draws import Numbers
from pacbound.tally.questions import with_article
from pacbound.watch import Counts, Seen, Watch

Floats = NDArray[np.float64]
Wealth = Restarts | RunningSums

LEAST_DELTA: Final = 1e-300
_RATE: Final = re.compile(
    r"\s*one\s+(?:per|in)\s+([0-9][0-9_,.]*(?:e\+?[0-9]+)?)(?:\s+labels?)?\s*"
)
_ROUNDED: Final = 1.0 + 2.0**-40
_EXPECTED: Final = (
    "expected 'ever' (with probability at least 1 - delta never a false alarm) or, for the second "
    "clock, 'one per 1e6 labels' or the number 1e6"
)

# Rows from which on labels are judged.
ENOUGH_TO_JUDGE_LABELS: Final = 200
MOST_STRETCHES: Final = 512
_FIRST_ROWS: Final = 512
_MOST_ROWS: Final = 2**16
# Numbers in a table of the evidence of each place after each row: it stays in the cache.
_TABLE: Final = 2**17


def watch_of(certificate: Certificate) -> Watch:
    """The bets against what a certificate claims, once it is verified."""
    if not isinstance(certificate, Certificate):
        raise InvalidTypeError.of(
            "certificate", certificate, "a Certificate. load_certificate reads one from its file"
        )
    certificate.require_verified()
    if not certificate.certified and not certificate.inside:
        raise InvalidValueError(
            "This certificate is a refusal: it claims nothing, so there is nothing to monitor. "
            "Certify first; summary() says what it would take."
        )
    watch = certificate.by.watch(certificate)
    if isinstance(watch, str):
        kind = with_article(certificate.kind).capitalize()
        raise InvalidValueError(f"{kind} certificate is not monitored: {watch}.")
    found: Watch = watch
    return found


@dataclass(frozen=True)
class Promise:
    """Which promise was made; `every` is None for the first, else the labels for one false alarm.

    Under either, labels may not be selected or delayed by their outcome.
    """

    delta: float
    every: float | None = None

    @classmethod
    def of(cls, delta: Any, false_alarms: Any) -> Promise:
        """The promise that the arguments of a monitor ask for."""
        level = failure_probability(delta)
        if level < LEAST_DELTA:
            raise InvalidValueError(
                f"delta={delta} is too small to monitor with: expected at least {LEAST_DELTA}."
            )
        return cls(level, _labels(false_alarms))

    @property
    def text(self) -> str:
        """As `false_alarms` takes it."""
        return "ever" if self.every is None else f"one per {_number(self.every)} labels"

    def words(self, *, several: bool = False) -> str:
        """What is promised, in a sentence, of one claim or of several."""
        holds, alarm = ("all claims hold", "any") if several else ("the claim holds", "the")
        rarely = f"at most {share(self.delta, 'up').text}"
        if self.every is None:
            return (
                f"While {holds} at every step, the chance of any false alarm, however long you "
                f"watch, is {rarely}."
            )
        labels = _number(self.every)
        return (
            f"While {holds} at every step, the mean time to a false alarm is at least {labels} "
            f"labels, and {alarm} alarm rings within the first t labels with probability at most "
            f"t / {labels}: {rarely} within {int(self.delta * self.every):,} labels. A row counts "
            "as a label once for each claim and each group that it belongs to. This is a weaker "
            "promise than 'ever'."
        )

    @property
    def limit(self) -> float:
        """The evidence at which the alarm rings, rounded up."""
        return (1.0 / self.delta if self.every is None else self.every) * _ROUNDED

    def fresh(self, bets: Bets) -> Restarts | RunningSums:
        """The wealth of bets before the first label."""
        return Restarts.fresh(bets) if self.every is None else RunningSums.fresh(bets)

    def shares(self, shares: np.ndarray[Any, np.dtype[np.float64]]) -> Any:
        """How the evidence of several places adds up: averaged, or the sums of their own labels."""
        return shares if self.every is None else np.ones_like(shares)


def _number(every: float) -> str:
    """In digits that read back as the same number."""
    return f"{every:,.0f}" if every == int(every) else repr(every)


def _labels(false_alarms: Any) -> float | None:
    if isinstance(false_alarms, str):
        if false_alarms.strip().lower() == "ever":
            return None
        found = _RATE.fullmatch(false_alarms.lower())
        try:
            every = float((found[1] if found else false_alarms).replace(",", ""))
        except ValueError:
            raise InvalidValueError(
                f"false_alarms={false_alarms!r} is not a promise: {_EXPECTED}."
            ) from None
    else:
        every = real_number(false_alarms, "false_alarms", "a promise about false alarms")
    if not 1.0 < every <= LARGEST_COUNT:
        raise InvalidValueError(
            f"false_alarms={false_alarms!r} is not a promise: {_EXPECTED}, above 1 and at most "
            "2**53."
        )
    return every


@dataclass(frozen=True)
class History:
    """The evidence over the labels, in little room: the highest in each stretch of `stride` labels;
    the last may not be full.

    Stretches begin with single labels, and are joined in pairs whenever there are too many. It is a
    function of the labels alone: in whatever parts they came, it is the same.
    """

    labels: int = 0
    stride: int = 1
    peaks: Floats = field(default_factory=lambda: np.empty(0))

    def after(self, evidence: Floats) -> History:
        """With the evidence after each of some more labels."""
        if not evidence.size:
            return self
        kept = self._coarser(self.labels + evidence.size)
        places = (self.labels + np.arange(evidence.size)) // kept.stride
        starts = np.flatnonzero(np.diff(places, prepend=-1))
        return kept._with(int(places[0]), np.maximum.reduceat(evidence, starts), evidence.size)

    def after_batch(self, evidence: float, labels: int) -> History:
        """With the evidence after a batch of labels that came at once, which stands for all of
        them.
        """
        kept = self._coarser(self.labels + labels)
        first, last = (place // kept.stride for place in (self.labels, self.labels + labels - 1))
        return kept._with(first, np.full(last - first + 1, evidence), labels)

    @property
    def ends(self) -> NDArray[np.int64]:
        """The label with which each stretch ends."""
        return np.minimum(self.stride * (1 + np.arange(self.peaks.size)), self.labels)

    def _with(self, first: int, peaks: Floats, labels: int) -> History:
        whole = np.concatenate([self.peaks, np.zeros(first + peaks.size - self.peaks.size)])
        whole[first:] = np.maximum(whole[first:], peaks)
        return History(self.labels + labels, self.stride, whole)

    def _coarser(self, labels: int) -> History:
        """The same in stretches so long that there are not too many at `labels`."""
        stride, peaks = self.stride, self.peaks
        while -(-labels // stride) > MOST_STRETCHES:
            stride *= 2
            even = np.concatenate([peaks, np.zeros(peaks.size % 2)])
            peaks = even.reshape(-1, 2).max(axis=1)
        return History(self.labels, stride, peaks)


@dataclass(frozen=True)
class ClassesSeen:
    """What `rows` rows have shown of their classes, so that labels which cannot be right are
    refused.

    A misspelt label makes every model wrong, so that nothing is lost, and the alarm would never
    ring. In few rows a label that no model predicts is mostly a rare class. So labels are judged
    once there are enough rows, by all rows since the monitor was begun.
    """

    rows: int = 0
    evidence: Evidence = field(default_factory=Evidence)

    def after(self, fresh: Evidence, rows: int, rule: ClassRule, labels: str) -> ClassesSeen:
        """With what more rows have shown, if their labels can be right."""
        together = Evidence()
        together.add(self.evidence)
        together.add(fresh)
        if self.rows + rows >= ENOUGH_TO_JUDGE_LABELS:
            together.check(rule, self.rows + rows, labels)
        return ClassesSeen(self.rows + rows, together)


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
    outcomes. `sources` are the fingerprints of the files that were taken in. `used` has a hash of
    the name of each cluster that a row was drawn from, in order. `seed` draws one row of each
    cluster: the operating system drew it when the monitor was begun, and it is kept; None where the
    certificate's rows were not drawn by clusters.
    """

    rows: int
    labels: int
    seen: tuple[int, ...]
    wealth: tuple[Wealth, ...]
    history: History = field(default_factory=History)
    rung: tuple[Rung, ...] = ()
    sources: tuple[str, ...] = ()
    classes: ClassesSeen = field(default_factory=ClassesSeen)
    used: Numbers = field(default_factory=lambda: np.zeros(0, dtype=np.uint64))
    seed: int | None = None


@dataclass(frozen=True)
class Clock:
    """How states change: the bets against a claim, and the promise about false alarms."""

    watch: Watch
    promise: Promise
    seed: int | None = None

    def begun(self) -> State:
        """The state before the first label."""
        return State(0, 0, (0,) * len(self.watch.outcomes), self._fresh(), seed=self.seed)

    def _fresh(self) -> tuple[Wealth, ...]:
        return tuple(self.promise.fresh(bets) for bets in self.watch.bets)

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
        return replace(state, rung=rung, wealth=self._fresh())

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


def _counted(state: State, outcomes: NDArray[Any]) -> State:
    """The state with the outcomes counted; one that is graded counts as the nearest."""
    whole = np.rint(outcomes).astype(np.int64)
    more = np.bincount(whole, minlength=len(state.seen)).tolist()
    seen = tuple(old + new for old, new in zip(state.seen, more, strict=True))
    return replace(state, labels=state.labels + len(outcomes), seen=seen)
