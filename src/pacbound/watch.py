"""What a kind of certificate has to say to be monitored: its bets, and what a row brings.

Rows are judged into a place (the bets that the row belongs to) and an outcome of those bets. A row
that the claim says nothing about, such as one that was not answered, is left out.

Each group has a claim of its own, so each has bets of its own, which only its rows change; their
average is the evidence, or their sum on the second clock. A group that was refused has no bets.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from pacbound.errors import InvalidTypeError, InvalidValueError
from pacbound.stats.arguments import whole_number
from pacbound.stats.betting import Bets, difference_bets, loss_bets
from pacbound.tally.classes import ClassRule, Evidence, Vocabulary, by_class
from pacbound.tally.columns import QUALITY, Rows, Slot, only_known, scaled
from pacbound.tally.questions.question import Judged

Flags = NDArray[np.bool_]
Integers = NDArray[np.int64]
# A batch of counts: for some places, how often each outcome came.
Counts = Sequence[tuple[int, tuple[int, ...]]]
_LOSSES = {"losses": True, "labels": True}
_DIFFERENCES = {"losses": True, "gains": True, "labels": True}


@dataclass(frozen=True)
class Seen:
    """Labels that the claim is about: the place of each, and its outcome.

    A row that belongs to several places brings a label for each, one after the other. What its
    labels say depends on each other, so the evidence may be looked at after the last of them only:
    `closes` says which labels are the last of their row. None if every label is. An outcome that is
    graded lies between two, as a fraction. `rows` are the rows of the labels, where not each row
    brings one.
    """

    places: Integers
    outcomes: NDArray[Any]
    closes: NDArray[np.bool_] | None = None
    rows: Integers | None = None

    def by_cluster(self, clusters: Integers) -> Seen:
        """The same labels, those of a cluster side by side: several of one cluster depend on each
        other, as those of one row do. `clusters` has the number of each row's.
        """
        own = clusters if self.rows is None else clusters[self.rows]
        _, first, places = np.unique(own, return_index=True, return_inverse=True)
        order = np.argsort(first[places], kind="stable")
        own = own[order]
        closes = np.append(own[1:] != own[:-1], True) if own.size else None
        return Seen(self.places[order], self.outcomes[order], closes)

    @classmethod
    def joined(cls, parts: Sequence[Seen], sizes: Sequence[int]) -> Seen:
        """The labels of several parts of so many rows each, none of which closes any."""
        starts = np.cumsum([0, *sizes[:-1]])
        rows = [
            start + (np.arange(len(part.outcomes)) if part.rows is None else part.rows)
            for start, part in zip(starts, parts, strict=True)
        ]
        places, outcomes = (
            np.concatenate([getattr(part, name) for part in parts])
            for name in ("places", "outcomes")
        )
        return cls(places, outcomes, rows=np.concatenate(rows))

    def part(self, start: int, size: int) -> Seen:
        """About `size` labels from `start` on, up to the end of a row."""
        stop = start + size
        if self.closes is None:
            return Seen(self.places[start:stop], self.outcomes[start:stop])
        stop = min(stop, len(self.outcomes))
        stop += int(np.argmax(self.closes[stop - 1 :]))
        rows = slice(start, stop)
        return Seen(self.places[rows], self.outcomes[rows], self.closes[rows])

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


class Watch(Protocol):
    """What a certificate claims, as bets against it."""

    @property
    def roles(self) -> Mapping[str, bool]:
        """The columns that a row may bring, by what they are for; True for what must be there."""

    @property
    def bets(self) -> tuple[Bets, ...]:
        """The bets of each place."""

    @property
    def shares(self) -> NDArray[np.float64]:
        """The share of the evidence that each place starts with, where restarts are mixed; they add
        up to 1.
        """

    @property
    def outcomes(self) -> tuple[str, ...]:
        """The names of the outcomes."""

    @property
    def claimed(self) -> str:
        """What holds while the certificate does, in words."""

    @property
    def single(self) -> str | None:
        """The name of the column that stands for all others where a bare array is given."""

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that a row usually brings."""

    def place_name(self, place: int) -> str | None:
        """What a place is called; None if there is only one."""

    def of_columns(self, named: Mapping[str, Any]) -> RowReading:
        """How rows of a table are judged whose columns are named."""

    def of_arrays(self, given: Mapping[str, Any]) -> tuple[RowReading, Mapping[str, Any]]:
        """How rows of arrays are judged, and the arrays by slot."""

    def counted(self, given: Mapping[str, Any]) -> Counts:
        """A batch of counts, checked."""


def one_place(outcomes: NDArray[Any]) -> Seen:
    """Rows that all have the same bets."""
    return Seen(np.zeros(len(outcomes), dtype=np.int64), whole_or_graded(outcomes))


def whole_or_graded(outcomes: NDArray[Any]) -> NDArray[Any]:
    """Outcomes as whole numbers, unless they are graded."""
    return outcomes if outcomes.dtype.kind == "f" else outcomes.astype(np.int64)


def bets_on_losses(xi: float) -> tuple[Bets, ...]:
    """The bets of a claim that one rate is at most `xi`."""
    bets = loss_bets(xi)
    if bets is None:
        raise InvalidValueError(
            f"xi={xi} is too near 1 to be monitored: no rate above it is left to bet on."
        )
    return (bets,)


def losses_of_labels(given: Mapping[str, Any], what: str) -> tuple[int, int]:
    """How many labels were kept and lost, from `losses` and `labels`."""
    counts = only_known(given, _LOSSES, what)
    losses, labels = (whole_number(counts[name], name) for name in _LOSSES)
    if losses > labels:
        raise InvalidValueError(
            f"{losses} losses of {labels} labels cannot be: expected losses <= labels. Check the "
            "order of the counts."
        )
    return labels - losses, losses


def differences_of_labels(given: Mapping[str, Any], what: str) -> tuple[int, int, int]:
    """How many labels were gained, equal and lost, from `losses`, `gains` and `labels`."""
    counts = only_known(given, _DIFFERENCES, what)
    losses, gains, labels = (whole_number(counts[name], name) for name in _DIFFERENCES)
    if losses + gains > labels:
        raise InvalidValueError(
            f"{losses} losses and {gains} gains of {labels} labels cannot be: expected losses + "
            "gains <= labels, which are all rows of traffic that were looked at."
        )
    return gains, labels - losses - gains, losses


def require_certified(names: Iterable[str], known: Sequence[str]) -> None:
    """Raise if one of the groups is not known: nothing is claimed about its rows."""
    strange = [name for name in names if name not in known]
    if strange:
        raise InvalidValueError(
            f"Group {strange[0]!r} was not certified ({len(strange)} such): nothing is claimed "
            "about it. Leave its rows out."
        )


def counts_by_group(
    given: Mapping[str, Any], roles: Mapping[str, bool], what: str
) -> dict[str, dict[str, Any]]:
    """The counts of each group, from a mapping from groups for each of the roles."""
    known = only_known(given, roles, what)
    parts = list(known.values())
    if not all(isinstance(part, Mapping) for part in parts) or (
        len({frozenset(part) for part in parts}) != 1
    ):
        raise InvalidTypeError(
            f"This certificate is per group: pass {', '.join(roles)} as mappings from the same "
            "groups to counts."
        )
    return {str(name): {role: known[role][name] for role in roles} for name in parts[0]}


@dataclass(frozen=True)
class TableRows:
    """How rows in use are read: by the question of a claim, each row in the table of its group.

    Attributes
    ----------
    question
        What judges a row.
    groups : tuple of str
        The groups of the tables, in order; empty if there is one table for all rows.
    what : str
        What is monitored, for messages.
    seen : callable
        The labels that judged rows bring, given the table of each.
    counting : mapping
        How rows were counted beside their columns, such as bins.
    """

    question: Any
    groups: tuple[str, ...]
    what: str
    seen: Callable[[Judged, Integers], Seen]
    counting: Mapping[str, Any] = field(default_factory=dict)

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that a row usually brings."""
        usual = tuple(column.name for column in self.question.columns[:2])
        return (*usual, "groups") if self.groups else usual

    def of_columns(self, named: Mapping[str, Any]) -> RowReading:
        """How rows of a table are judged whose columns are named."""
        return self._reading(self.question.of_columns(**self._known(named), **self.counting))

    def of_arrays(self, given: Mapping[str, Any]) -> tuple[RowReading, Mapping[str, Any]]:
        """How rows of arrays are judged, and the arrays by slot."""
        known = self._known(given)
        if isinstance(known.get("groups"), Mapping):
            raise InvalidTypeError("groups is a mapping: pass the group of each row.")
        question, arrays = self.question.of_arrays(**known, **self.counting)
        return self._reading(question), arrays

    def _known(self, given: Mapping[str, Any]) -> dict[str, Any]:
        known = only_known(given, self.question.roles, self.what)
        if QUALITY in known and self.question.graded is None:
            raise InvalidTypeError(
                "quality was passed, and this certificate is about answers that are right or "
                "wrong: pass what it was made from."
            )
        if ("groups" in known) != bool(self.groups):
            raise InvalidTypeError(
                "This certificate is per group: name groups, the group of each row."
                if self.groups
                else "This certificate has no groups: leave them out."
            )
        return known

    def _reading(self, question: Any) -> RowReading:
        def judged(rows: Rows, vocabulary: Vocabulary, evidence: Evidence) -> Seen:
            found = question.judge(rows, vocabulary, evidence)
            question.require_possible(Evidence(labelled={*vocabulary.names()}))
            if found.places is None:
                return self.seen(found, np.zeros(len(rows), dtype=np.int64))
            require_certified(found.groups, self.groups)
            tables = np.array([self.groups.index(name) for name in found.groups], dtype=np.int64)
            return self.seen(found, tables[found.places])

        compared = any(key.startswith("prediction") for key in question.slots)
        return RowReading(
            question.slots, judged, question.slots["label"].name if compared else None
        )


class LossWatch:
    """At most a share `rate` of the trials are events, in each group where there are groups: each
    trial is a label, and a loss if it is an event.

    `held` says which tables are claimed. `trials_and_events` tells, from the cell, the outcome and
    the table of each row, which rows are trials, and which are events.
    """

    single = None

    def __init__(
        self,
        certificate: Any,
        question: Any,
        *,
        rate: float,
        claimed: str,
        outcomes: tuple[str, str],
        held: Sequence[bool],
        trials_and_events: Callable[[Integers, Integers, Integers], tuple[Flags, Flags]],
    ) -> None:
        self._judge = trials_and_events
        self.outcomes: tuple[str, ...] = outcomes
        self._watch_tables(certificate, question, bets_on_losses(rate), held, claimed)

    def _watch_tables(
        self,
        certificate: Any,
        question: Any,
        bets: tuple[Bets, ...],
        held: Sequence[bool],
        claimed: str,
    ) -> None:
        """Bets for each table that is claimed."""
        names = [table["group"] for table in certificate.values["tables"]]
        groups = tuple(name for name in names if name is not None)
        self._names = [name for name, kept in zip(names, held, strict=True) if kept]
        self._places = np.where(held, np.cumsum(held) - 1, -1)
        self._grouped = bool(groups)
        asked = replace(question, graded=certificate.graded)
        self._rows = TableRows(asked, groups, f"A monitored {certificate.kind}", self._seen)
        self.roles: Mapping[str, bool] = question.roles
        self.of_columns, self.of_arrays = self._rows.of_columns, self._rows.of_arrays
        self.columns, self.claimed = self._rows.columns, claimed
        self.bets = bets * len(self._names)
        self.shares = np.full(len(self._names), 1 / len(self._names))

    def place_name(self, place: int) -> str | None:
        """The group; None if there are no groups."""
        return f"group {self._names[place]!r}" if self._grouped else None

    def counted(self, given: Mapping[str, Any]) -> Counts:
        """`losses` events of `labels` trials; mappings from groups where there are any."""
        return self._counted(given, _LOSSES, losses_of_labels)

    def _counted(
        self,
        given: Mapping[str, Any],
        roles: Mapping[str, bool],
        read: Callable[[Mapping[str, Any], str], tuple[int, ...]],
    ) -> Counts:
        if not self._grouped:
            return [(0, read(given, self._rows.what))]
        counts = counts_by_group(given, roles, self._rows.what)
        require_certified(counts, self._names)
        return [
            (self._names.index(name), read(part, self._rows.what)) for name, part in counts.items()
        ]

    def _seen(self, found: Judged, tables: Integers) -> Seen:
        trials, events = self._judge(found.cells[:, -1], found.outcomes, tables)
        places = self._places[tables]
        kept = trials & (places >= 0)
        rows = np.flatnonzero(kept)
        return Seen(places[kept], whole_or_graded(events[kept]), rows=rows)


class DifferenceWatch(LossWatch):
    """What is lost less what is gained is at most `rate` of the rows, in each group where there are
    groups. `differences` gives what each row loses, from -1 to 1, and 2 where what is missing in
    the row would tell.
    """

    def __init__(
        self,
        certificate: Any,
        question: Any,
        *,
        rate: float,
        claimed: str,
        held: Sequence[bool],
        differences: Callable[[Judged], NDArray[Any]],
    ) -> None:
        self._differences, self.outcomes = differences, ("gained", "equal", "lost")
        self._watch_tables(certificate, question, (difference_bets(rate),), held, claimed)

    def counted(self, given: Mapping[str, Any]) -> Counts:
        """`losses` and `gains` among `labels` rows; mappings from groups where there are any."""
        return self._counted(given, _DIFFERENCES, differences_of_labels)

    def _seen(self, found: Judged, tables: Integers) -> Seen:
        lost = self._differences(found)
        unknown = np.flatnonzero(lost > 1)
        if unknown.size:
            raise InvalidValueError(
                f"Row {unknown[0]} has no label, or a quality is missing ({unknown.size} such "
                "rows), and answers differ there: add it. To leave out rows that are hard to label "
                "would void the promise."
            )
        places = self._places[tables]
        kept = places >= 0
        return Seen(places[kept], 1 + lost[kept], rows=np.flatnonzero(kept))


class ColumnWatch:
    """At most a share `rate` of what happens goes wrong, as a column of truth values says."""

    shares = np.ones(1)

    def __init__(
        self, what: str, column: str, *, rate: float, claimed: str, outcomes: tuple[str, str]
    ) -> None:
        self._what, self.claimed, self.outcomes = what, claimed, outcomes
        self.columns, self.single = (column,), column
        self.roles: Mapping[str, bool] = {column: True}
        self.bets = bets_on_losses(rate)

    def place_name(self, place: int) -> str | None:  # noqa: ARG002
        """None: there is only one place."""
        return None

    def of_columns(self, named: Mapping[str, Any]) -> RowReading:
        """How rows of a table are judged whose column is named."""
        (name,) = only_known(named, self.roles, self._what).values()
        slots = {self.single: Slot("flag", name)}
        return RowReading(slots, lambda rows, *_: one_place(rows.flags(self.single)))

    def of_arrays(self, given: Mapping[str, Any]) -> tuple[RowReading, Mapping[str, Any]]:
        """The same of an array."""
        passed = only_known(given, self.roles, self._what)
        return self.of_columns({name: name for name in passed}), passed

    def counted(self, given: Mapping[str, Any]) -> Counts:
        """`losses` that went wrong of `labels`."""
        return [(0, losses_of_labels(given, self._what))]
