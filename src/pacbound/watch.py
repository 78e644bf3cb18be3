"""What a certificate claims, as bets against it, and what a row in use brings: a number from -1 to
1 for a place, which is a table that is claimed, or a bin of one.

The question of the claim judges a row, and the claim turns what it found into one of its outcomes.
A row that the claim says nothing about, such as one that was not answered, is left out.

Promise. Each place has a claim and so bets of its own, which only its rows change; their average is
the evidence, or their sum on the second clock. Let A_g be the evidence of place g, and let its
claim hold at every step: whatever came before, a row of g loses at most xi on average. Then the
expectation of A_g after a row, given all rows before it, is at most A_g: a row of g multiplies its
bets by factors with a mean of at most 1, and any other row leaves it alone. So the average of all
A_g is a supermartingale over *rows* that starts at 1, and reaches 1 / delta with probability at
most delta (Ville), however groups overlap. It rings no later than the monitors of all groups with
delta / G each would: if one of them reaches G / delta the average has reached 1 / delta. A row in
several groups changes several A_g at once, and their factors depend on each other; so the evidence
is looked at after the whole row (`Seen.closes`). On the second clock each label adds at most 1 to
the sum of its own place, so that the total less the number of labels, a label being a row in a
group, is a supermartingale.

A group that was refused has no bets, and its rows are left out. Rows of groups that were not
certified must not be passed: nothing is claimed about them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from pacbound.errors import InvalidTypeError, InvalidValueError
from pacbound.stats.arguments import whole_number
from pacbound.stats.betting import Bets, loss_bets
from pacbound.tally.classes import ClassRule, Evidence, Vocabulary, by_class
from pacbound.tally.columns import QUALITY, Rows, Slot, as_column, only_known, scaled
from pacbound.tally.questions.question import Judged, member_slots, members_of

Flags = NDArray[np.bool_]
Integers = NDArray[np.int64]
# A batch of counts: for some places, how often each outcome came.
Counts = Sequence[tuple[int, tuple[int, ...]]]
# What a claim makes of judged rows: an outcome for each label, whose row and table are passed.
Outcome = Callable[[Judged, Integers, Integers], NDArray[Any]]
LOST_OR_GAINED: Final = ("gained", "equal", "lost")

# The place of rows whose table is not claimed, and of those that have no bets.
_UNCLAIMED, _GROUPS = -2, "groups"
# The columns that say how a row turned out: what is right, or how good it is.
_RIGHT: Final = ("correct", "label")
_GRADES: Final = (QUALITY, "preferred")
_TELLING: Final = (*_RIGHT, *_GRADES)


@dataclass(frozen=True)
class Seen:
    """Labels that the claim is about: the place of each, and its outcome.

    A row that belongs to several places brings a label for each, one after the other. What its
    labels say depends on each other, so the evidence may be looked at after the last of them only.
    `rows` are the rows of the labels, or their clusters; None if each row brings one. An outcome
    that is graded lies between two, as a fraction.
    """

    places: Integers
    outcomes: NDArray[Any]
    rows: Integers | None = None

    @cached_property
    def closes(self) -> Flags | None:
        """Which labels are the last of their row; None if every label is."""
        if self.rows is None or (self.rows[1:] != self.rows[:-1]).all():
            return None
        return np.append(self.rows[1:] != self.rows[:-1], True)

    def by_cluster(self, clusters: Integers) -> Seen:
        """The same labels, those of a cluster side by side: several of one cluster depend on each
        other, as those of one row do. `clusters` has the number of each row's.
        """
        own = clusters if self.rows is None else clusters[self.rows]
        _, first, places = np.unique(own, return_index=True, return_inverse=True)
        order = np.argsort(first[places], kind="stable")
        return Seen(self.places[order], self.outcomes[order], own[order])

    @classmethod
    def joined(cls, parts: Sequence[Seen], sizes: Sequence[int]) -> Seen:
        """The labels of several parts of so many rows each."""
        starts = np.cumsum([0, *sizes[:-1]])
        rows = [
            start + (np.arange(len(part.outcomes)) if part.rows is None else part.rows)
            for start, part in zip(starts, parts, strict=True)
        ]
        places, outcomes = (
            np.concatenate([getattr(part, name) for part in parts])
            for name in ("places", "outcomes")
        )
        return cls(places, outcomes, np.concatenate(rows))

    def part(self, start: int, size: int) -> Seen:
        """About `size` labels from `start` on, up to the end of a row."""
        stop = min(start + size, len(self.outcomes))
        if self.closes is not None:
            stop += int(np.argmax(self.closes[stop - 1 :]))
        rows = None if self.closes is None or self.rows is None else self.rows[start:stop]
        return Seen(self.places[start:stop], self.outcomes[start:stop], rows)

    def looked_at(self, evidence: NDArray[np.float64], before: float) -> NDArray[np.float64]:
        """The evidence as it is looked at: within a row it is that before the row."""
        if self.closes is None:
            return evidence
        known = np.concatenate([[before], evidence[self.closes]])
        return np.asarray(known[np.cumsum(self.closes)])


@dataclass(frozen=True)
class RowReading:
    """The columns that rows bring, and how a row is judged from them; `labels` names the column of
    true classes, if there is one.
    """

    slots: Mapping[str, Slot]
    judge: Callable[[Rows, Vocabulary, Evidence], Seen]
    labels: str | None = None

    def without(self, column: str) -> RowReading:
        """The same, where a column is not read."""
        kept = {key: slot for key, slot in self.slots.items() if key != column}
        return replace(self, slots=kept)

    @property
    def has_scores(self) -> bool:
        """Whether a column of scores is read."""
        return any(slot.kind == "number" and key != "loss" for key, slot in self.slots.items())

    def require_scores(self, scale: float | None) -> None:
        """Raise if a scale was passed and no column of scores is read."""
        if scale is not None and not self.has_scores:
            raise InvalidTypeError(
                "scale is about scores, and no column of scores is read here: leave it out."
            )

    def by_class(self, positive: Any) -> RowReading:
        """The same where truth values are written as classes, of which `positive` counts."""
        if positive is None:
            return self
        flags = [key for key, slot in self.slots.items() if slot.kind == "flag"]
        return replace(self, slots=by_class(self.slots, flags, positive, ClassRule()))

    def written(self, scale: float | None) -> RowReading:
        """The same where a score of 1 is written as `scale`."""
        if scale is None or not self.has_scores:
            return self
        return replace(self, slots=scaled(self.slots, scale))


@dataclass(frozen=True, kw_only=True)
class Watch:
    """What a certificate claims, as bets against it.

    Attributes
    ----------
    what : str
        What is monitored, for messages.
    claimed : str
        What holds while the certificate does, in words.
    outcomes : tuple of str
        The names of the outcomes of a label.
    bets : tuple of Bets
        The bets of each place.
    shares : ndarray
        The share of the evidence that each place starts with, where restarts are mixed; they add up
        to 1.
    places : ndarray of int
        The place of each table, or of each bin of each table; -1 where there are no bets.
    place_name : callable
        What a place is called; None if there is only one.
    groups : tuple of str
        The group of each table; empty if there is one table for all rows.
    overlapping : bool
        Whether a row may be in several groups.
    question : Question or None
        What judges a row; None if every row brings its outcome.
    counting : mapping
        How rows were counted beside their columns, such as bins.
    judge : callable or None
        What judges rows of the question in its place.
    outcome : callable
        The outcome of each label, given judged rows, the row of each label and its table: -1 if it
        is none, and beyond the last where something is missing that would tell.
    column : str or None
        The column that may bring the outcome itself, as a column of truth values or, if `read` says
        how, of numbers.
    read : callable or None
        The outcomes that such numbers stand for, of rows.
    batch : callable or None
        What reads counts that are not losses, gains and labels.
    gains : bool
        Whether anything can make good a loss.
    """

    what: str
    claimed: str
    outcomes: tuple[str, ...]
    bets: tuple[Bets, ...]
    shares: NDArray[np.float64]
    places: Integers
    place_name: Callable[[int], str | None]
    groups: tuple[str, ...] = ()
    overlapping: bool = False
    question: Any = None
    counting: Mapping[str, Any] = field(default_factory=dict)
    judge: Callable[[Any, Rows, Vocabulary, Evidence], Judged] | None = None
    outcome: Outcome = lambda judged, rows, _: judged.outcomes[rows]
    column: str | None = None
    read: Callable[[Rows], NDArray[Any]] | None = None
    batch: Callable[[Mapping[str, Any]], Counts] | None = None
    gains: bool = True

    @classmethod
    def of_tables(
        cls, certificate: Any, bets: Bets, held: Mapping[str | None, bool], **more: Any
    ) -> Watch:
        """Bets for each table that is claimed, by its group."""
        names = [name for name, claimed in held.items() if claimed]
        numbers = np.cumsum([*held.values()]) - 1
        return cls(
            what=f"A monitored {certificate.kind}",
            bets=(bets,) * len(names),
            shares=np.full(len(names), 1 / len(names)),
            places=np.where([*held.values()], numbers, _UNCLAIMED),
            place_name=lambda place: None if None in names else f"group {names[place]!r}",
            groups=tuple(name for name in held if name is not None),
            overlapping=certificate.values["scope"] == "overlapping-groups",
            **more,
        )

    @property
    def single(self) -> str | None:
        """The name of the column that stands for all others where a bare array is given."""
        return None if self.groups else self.column

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that a row usually brings."""
        groups = (_GROUPS,) * bool(self.groups)
        if self.question is None:
            return (str(self.column), *groups)
        asked = [*self._asked]
        telling = next((place for place, name in enumerate(asked) if name in _TELLING), 1)
        return (*asked[: telling + 1], *groups)

    @property
    def roles(self) -> dict[str, bool]:
        """The columns that a row may bring, by what they are for; True for what must be there."""
        own = {} if self.column is None else {self.column: self.question is None}
        return {**own, **self._asked, _GROUPS: False}

    @property
    def _asked(self) -> dict[str, bool]:
        """The columns that the question asks for, where what says how a row turned out is what it
        was certified by.
        """
        columns = () if self.question is None else self.question.columns
        if self.question is not None and self.question.may_be_graded:
            other = _RIGHT if self.question.graded else _GRADES
            columns = tuple(column for column in columns if column.name not in other)
        return {column.name: column.needed and self.column is None for column in columns}

    def _known(self, given: Mapping[str, Any]) -> tuple[dict[str, Any], Any]:
        """What was given, if it fits together, and the groups."""
        known = only_known(given, self.roles, self.what)
        groups = known.pop(_GROUPS, None)
        if (groups is not None) != bool(self.groups):
            raise InvalidTypeError(
                "This certificate is per group: name groups, the group of each row."
                if self.groups
                else "This certificate has no groups: leave them out."
            )
        if self.column in known:
            if len(known) > 1:
                raise InvalidTypeError(
                    f"{self.column} was passed beside other columns: pass either {self.column}, or "
                    f"{', '.join(self._asked)}."
                )
            return known, groups
        telling = [name for name in self._asked if name in _TELLING]
        if self.question.compares_models and telling and not known.keys() & {*telling}:
            others = [*telling[1:], *([] if self.column is None else [self.column])]
            raise InvalidTypeError(
                f"{telling[0]} is missing: it says what is lost where answers differ. Pass it"
                f"{''.join(f', or {name}' for name in others)}."
            )
        return known, groups

    def of_columns(self, named: Mapping[str, Any]) -> RowReading:
        """How rows of a table are judged whose columns are named."""
        known, groups = self._known(named)
        if self.overlapping:
            raise InvalidTypeError(
                "The groups of this certificate overlap, and a table has one group in each row: "
                "pass arrays to Monitor.update, with groups as a mapping from each group to flags."
            )
        slots = {} if groups is None else {_GROUPS: Slot("name", groups)}
        if self.column in known:
            return self._reading(None, {**self._own_slot(known[self.column]), **slots})
        question = self.question.of_columns(**known, **self.counting)
        return self._reading(question, {**question.slots, **slots})

    def of_arrays(self, given: Mapping[str, Any]) -> tuple[RowReading, Mapping[str, Any]]:
        """How rows of arrays are judged, and the arrays by slot; groups that overlap are a mapping
        from each of them to flags.
        """
        known, groups = self._known(given)
        slots, arrays = self._membership(groups)
        if self.column in known:
            own = as_column(known[self.column], self.column)
            if self.read is not None and own.dtype.kind not in "iuf":
                raise InvalidTypeError(
                    f"{self.column} has dtype {own.dtype}, which does not hold losses: expected "
                    "numbers from -1 to 1."
                )
            reading = self._reading(None, {**self._own_slot(self.column), **slots})
            return reading, {**known, **arrays}
        question, columns = self.question.of_arrays(**known, **self.counting)
        return self._reading(question, {**question.slots, **slots}), {**columns, **arrays}

    def _own_slot(self, name: Any) -> dict[str, Slot]:
        return {str(self.column): Slot("flag" if self.read is None else "number", name)}

    def _membership(self, groups: Any) -> tuple[dict[str, Slot], dict[str, Any]]:
        """The columns that say which groups a row is in."""
        if groups is None:
            return {}, {}
        if isinstance(groups, Mapping) != self.overlapping:
            raise InvalidTypeError(
                "The groups of this certificate overlap: pass groups as a mapping from each of "
                f"them{' but ' * bool(self._everyone)}{', '.join(map(repr, self._everyone))} to "
                "whether a row is in it."
                if self.overlapping
                else "groups is a mapping, and the groups of this certificate do not overlap: pass "
                "the group of each row."
            )
        if not self.overlapping:
            return {_GROUPS: Slot("name", _GROUPS)}, {_GROUPS: groups}
        members = members_of(groups)
        strange = members.keys() ^ {*self._members}
        if strange:
            raise InvalidValueError(
                f"groups[{min(strange)!r}] is among the groups that were passed or among those of "
                "the certificate, but not in both: pass those that were certified."
            )
        slots = member_slots(tuple(members))
        return slots, dict(zip(slots, members.values(), strict=True))

    @property
    def _everyone(self) -> tuple[str, ...]:
        """The group that all rows are in, which nobody passes."""
        return () if self.question is None else tuple(self.question.everyone)

    @property
    def _members(self) -> tuple[str, ...]:
        return tuple(name for name in self.groups if name not in self._everyone)

    def _reading(self, question: Any, slots: Mapping[str, Slot]) -> RowReading:
        compared = "label" in slots and any(key.startswith("prediction") for key in slots)
        judge = partial(self._seen, question)
        return RowReading(slots, judge, slots["label"].name if compared else None)

    def _seen(self, question: Any, rows: Rows, vocabulary: Vocabulary, evidence: Evidence) -> Seen:
        row, table = self._tables(rows)
        width = len(self.places) // max(1, len(self.groups))
        places = self.places[table * width]
        if question is None:
            found = rows.flags(str(self.column)) if self.read is None else self.read(rows)
            outcomes = found[row]
        else:
            judge = type(question).judge if self.judge is None else self.judge
            judged = judge(question, rows, vocabulary, evidence)
            question.require_possible(Evidence(labelled={*vocabulary.names()}))
            outcomes = self.outcome(judged, row, table)
            if width > 1:
                places = self.places[table * width + judged.cells[row, 0]]
        kept = (outcomes >= 0) & (places > _UNCLAIMED)
        unknown = np.unique(row[kept & (outcomes > len(self.outcomes) - 1)])
        if unknown.size:
            name, it = ("label", "label") if question.graded is None else (QUALITY, "grade")
            raise InvalidValueError(
                f"A {name} is missing in row {rows.start + unknown[0]} ({unknown.size} such rows) "
                f"although answers differ there: {it} it. To leave out rows that are hard to {it} "
                "would void the promise."
            )
        graded = outcomes.dtype.kind == "f"
        outcomes = outcomes[kept] if graded else outcomes[kept].astype(np.int64)
        return Seen(places[kept], outcomes, row[kept])

    def _tables(self, rows: Rows) -> tuple[Integers, Integers]:
        """The row and the table of each label: all tables of a row, one row after the other."""
        every = np.arange(len(rows))
        if not self.groups:
            return every, np.zeros(len(rows), dtype=np.int64)
        if not self.overlapping:
            names, places = rows.groups(_GROUPS)
            require_certified(names, self.groups)
            tables = np.array([self.groups.index(name) for name in names], dtype=np.int64)
            return every, tables[places]
        inside = np.ones((len(rows), len(self.groups)), dtype=bool)
        for name, slot in zip(self._members, member_slots(self._members), strict=True):
            inside[:, self.groups.index(name)] = rows.flags(slot)
        row, table = np.nonzero(inside)
        return row, table

    def counted(self, given: Mapping[str, Any]) -> Counts:
        """A batch of counts, checked: `losses`, and `gains` where there are any, among `labels`;
        mappings from groups where there are groups.
        """
        if self.batch is not None:
            return self.batch(given)
        roles = ("losses", *(("gains",) if len(self.outcomes) > 2 else ()), "labels")
        counts = only_known(given, dict.fromkeys(roles, True), self.what)
        if not self.groups:
            return [(0, self._outcomes_of(*(counts[role] for role in roles)))]
        parts = [counts[role] for role in roles]
        if not all(isinstance(part, Mapping) for part in parts) or (
            len({frozenset(part) for part in parts}) != 1
        ):
            raise InvalidTypeError(
                f"This certificate is per group: pass {', '.join(roles)} as mappings from the same "
                "groups to counts."
            )
        require_certified(map(str, parts[0]), self.groups)
        places = {name: int(self.places[self.groups.index(str(name))]) for name in parts[0]}
        return [
            (place, self._outcomes_of(*(part[name] for part in parts)))
            for name, place in places.items()
            if place >= 0
        ]

    def _outcomes_of(self, *given: Any) -> tuple[int, ...]:
        """How often each outcome came, from the losses, the gains if there are any, and the
        labels.
        """
        names = ("losses", "gains")[: len(given) - 1]
        *counts, labels = (
            whole_number(count, name) for count, name in zip(given, (*names, "labels"), strict=True)
        )
        if sum(counts) > labels:
            came = " and ".join(f"{n} {name}" for n, name in zip(counts, names, strict=True))
            raise InvalidValueError(
                f"{came} of {labels} labels cannot be: expected {' + '.join(names)} <= labels. "
                "Check the order of the counts."
            )
        losses, *gains = counts
        if any(gains) and not self.gains:
            raise InvalidValueError(
                f"{gains[0]} gains were passed, and the claim is that few answers differ, which "
                "nothing makes good: count every answer that differs as a loss, and pass gains=0."
            )
        return (*gains, labels - sum(counts), losses)


def bets_on_losses(xi: float) -> Bets:
    """The bets of a claim that one rate is at most `xi`."""
    bets = loss_bets(xi)
    if bets is None:
        raise InvalidValueError(
            f"xi={xi} is too near 1 to be monitored: no rate above it is left to bet on."
        )
    return bets


def require_certified(names: Iterable[str], known: Sequence[str]) -> None:
    """Raise if one of the groups is not known: nothing is claimed about its rows."""
    strange = [name for name in names if name not in known]
    if strange:
        raise InvalidValueError(
            f"Group {strange[0]!r} was not certified ({len(strange)} such): nothing is claimed "
            "about it. Leave its rows out."
        )
