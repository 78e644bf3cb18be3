"""A claim about the rows that reach a threshold, in use: each such row is one label, and a loss if
it is an event.

Rows below the threshold say nothing about the claim and are left out. Each group has a threshold
and a claim of its own, so each has bets of its own, which only its rows change; their average is
the evidence, or their sum on the second clock. A group that was refused has no bets.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pacbound.errors import InvalidTypeError, InvalidValueError
from pacbound.procedures.threshold import TOP
from pacbound.tally.classes import Evidence, Vocabulary
from pacbound.tally.rows import Rows, only_known
from pacbound.watch import Counts, RowReading, Seen, bets_on_losses, losses_of_labels


class WalkWatch:
    """At most a share `rate` of the rows that reach the threshold are events, in each group where
    there are groups.
    """

    single = None

    def __init__(self, certificate: Any, rate: float, claimed: str) -> None:
        tables = certificate.values["tables"]
        held = [table for table in tables if table["claimed"]]
        self._question = certificate.by.question
        self._event = self._question.outcomes.index(certificate.by.event)
        self._what = f"A monitored {certificate.kind}"
        self._names = [table["group"] for table in held]
        self._groups = certificate.groups
        self._limits = np.array([table["threshold"] for table in tables]) * TOP
        self._places = np.array(
            [self._names.index(table["group"]) if table["claimed"] else -1 for table in tables]
        )
        self.bets = bets_on_losses(rate) * len(held)
        self.shares = np.full(len(held), 1 / len(held))
        self.claimed = claimed

    @property
    def roles(self) -> Mapping[str, bool]:
        """The columns that a row may bring."""
        found: Mapping[str, bool] = self._question.roles
        return found

    @property
    def outcomes(self) -> tuple[str, ...]:
        """What is as it should be, and what is an event."""
        names: tuple[str, ...] = self._question.outcomes
        return names[1 - self._event], names[self._event]

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that a row usually brings."""
        return tuple(column.name for column in self._question.columns[:2])

    def place_name(self, place: int) -> str | None:
        """The group, where there are groups."""
        return f"group {self._names[place]!r}" if self._groups else None

    def of_columns(self, named: Mapping[str, Any]) -> RowReading:
        """How rows of a table are judged whose columns are named."""
        return self._reading(self._question.of_columns(**self._known(named)))

    def of_arrays(self, given: Mapping[str, Any]) -> tuple[RowReading, Mapping[str, Any]]:
        """How rows of arrays are judged, and the arrays by slot."""
        question, arrays = self._question.of_arrays(**self._known(given))
        return self._reading(question), arrays

    def counted(self, given: Mapping[str, Any]) -> Counts:
        """`losses` events of `labels` rows; mappings from groups where there are any."""
        if not self._groups:
            return [(0, losses_of_labels(given, self._what))]
        known = only_known(given, {"losses": True, "labels": True}, self._what)
        losses, labels = known["losses"], known["labels"]
        if not (isinstance(losses, Mapping) and isinstance(labels, Mapping)) or (
            losses.keys() != labels.keys()
        ):
            raise InvalidTypeError(
                "This certificate is per group: pass losses and labels as mappings from the same "
                "groups to counts."
            )
        strange = next((name for name in labels if name not in self._names), None)
        if strange is not None:
            raise InvalidValueError(f"Group {strange!r} was not certified: leave it out.")
        return [
            (
                self._names.index(name),
                losses_of_labels({"losses": losses[name], "labels": labels[name]}, self._what),
            )
            for name in labels
        ]

    def _known(self, given: Mapping[str, Any]) -> dict[str, Any]:
        known = only_known(given, self.roles, self._what)
        if ("groups" in known) != bool(self._groups):
            raise InvalidTypeError(
                "This certificate is per group: name groups, the group of each row."
                if self._groups
                else "This certificate has no groups: leave them out."
            )
        return known

    def _reading(self, question: Any) -> RowReading:
        def judged(rows: Rows, vocabulary: Vocabulary, evidence: Evidence) -> Seen:
            found = question.judge(rows, vocabulary, evidence)
            tables = np.zeros(len(rows), dtype=np.int64)
            if found.places is not None:
                tables = self._tables(found.groups)[found.places]
            reached = found.cells[:, -1] >= self._limits[tables]
            events = (found.outcomes[reached] == self._event).astype(np.int64)
            return Seen(self._places[tables[reached]], events)

        labels = question.slots["label"].name if "label" in question.slots else None
        return RowReading(question.slots, judged, labels)

    def _tables(self, groups: tuple[str, ...]) -> NDArray[np.int64]:
        strange = [name for name in groups if name not in self._groups]
        if strange:
            raise InvalidValueError(
                f"Group {strange[0]!r} was not certified ({len(strange)} such): nothing is claimed "
                "about it. Leave its rows out."
            )
        return np.array([self._groups.index(name) for name in groups], dtype=np.int64)
