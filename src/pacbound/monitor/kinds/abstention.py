"""An abstention in use: each answer is one label, and a loss if it is wrong.

Rows that are not answered say nothing about the answers and are left out. Each group has a
threshold and a claim of its own, so each has bets of its own, which only its answers change; their
average is the evidence, or their sum on the second clock, as for the bins of a calibration. A group
that was refused is never answered and has no bets.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from pacbound.certificate.abstention import AbstentionCertificate
from pacbound.certificate.document import exact
from pacbound.errors import InvalidTypeError, InvalidValueError
from pacbound.tally.classes import Evidence, Vocabulary
from pacbound.tally.questions.abstention import AbstentionQuestion
from pacbound.tally.rows import Rows, only_known
from pacbound.watch import Counts, RowReading, Seen, bets_on_losses, losses_of_labels

_WHAT = "A monitored abstention"


class AbstentionWatch:
    """At most a share xi of the answers is wrong, in each group where there are groups."""

    roles: ClassVar[Mapping[str, bool]] = AbstentionQuestion.roles
    outcomes = ("right", "wrong")
    single = None
    columns = ("confidence", "correct")

    def __init__(self, certificate: AbstentionCertificate) -> None:
        certificate.require_intact()
        answered = [table for table in certificate.tables if table.refusal is None]
        self.bets = bets_on_losses(certificate.xi) * len(answered)
        self.shares = np.full(len(answered), 1 / len(answered))
        self._names = [table.group for table in answered]
        self._groups = certificate.groups
        self._limits = np.array([table.limit for table in certificate.tables])
        self._places = np.array(
            [
                -1 if table.refusal else self._names.index(table.group)
                for table in certificate.tables
            ]
        )
        each = " of each group" if self._groups else ""
        self.claimed = f"at most {exact(certificate.xi)} of the answers{each} are wrong"

    def place_name(self, place: int) -> str | None:
        """The group, where there are groups."""
        return f"group {self._names[place]!r}" if self._groups else None

    def of_columns(self, named: Mapping[str, Any]) -> RowReading:
        """`confidence`; `correct`, or `prediction` and `labels`; `groups` where there are any."""
        return self._reading(AbstentionQuestion.of_columns(**self._known(named)))

    def of_arrays(self, given: Mapping[str, Any]) -> tuple[RowReading, Mapping[str, Any]]:
        """The same of arrays."""
        question, arrays = AbstentionQuestion.of_arrays(**self._known(given))
        return self._reading(question), arrays

    def counted(self, given: Mapping[str, Any]) -> Counts:
        """`losses` wrong answers of `labels` answers; mappings from groups where there are any."""
        if not self._groups:
            return [(0, losses_of_labels(given, _WHAT))]
        known = only_known(given, {"losses": True, "labels": True}, _WHAT)
        losses, labels = known["losses"], known["labels"]
        if not (isinstance(losses, Mapping) and isinstance(labels, Mapping)) or (
            losses.keys() != labels.keys()
        ):
            raise InvalidTypeError(
                "This certificate is per group: pass losses and labels as mappings from the same "
                "groups to counts."
            )
        strange = [name for name in labels if name not in self._names]
        if strange:
            raise InvalidValueError(
                f"Group {strange[0]!r} is never answered by this certificate: leave it out."
            )
        return [
            (
                self._names.index(name),
                losses_of_labels({"losses": losses[name], "labels": labels[name]}, _WHAT),
            )
            for name in labels
        ]

    def _known(self, given: Mapping[str, Any]) -> dict[str, Any]:
        known = only_known(given, self.roles, _WHAT)
        if ("groups" in known) != bool(self._groups):
            raise InvalidTypeError(
                "This certificate is per group: name groups, the group of each row."
                if self._groups
                else "This certificate has no groups: leave them out."
            )
        return known

    def _reading(self, question: AbstentionQuestion) -> RowReading:
        def judged(rows: Rows, vocabulary: Vocabulary, evidence: Evidence) -> Seen:
            found = question.judge(rows, vocabulary, evidence)
            tables = np.zeros(len(rows), dtype=np.int64)
            if found.places is not None:
                tables = self._tables(found.groups)[found.places]
            answered = rows.scores("confidence") >= self._limits[tables]
            return Seen(self._places[tables[answered]], 1 - found.outcomes[answered])

        labels = question.slots["labels"].name if "labels" in question.slots else None
        return RowReading(question.slots, judged, labels)

    def _tables(self, groups: tuple[str, ...]) -> NDArray[np.int64]:
        strange = [name for name in groups if name not in self._groups]
        if strange:
            raise InvalidValueError(
                f"Group {strange[0]!r} was not certified ({len(strange)} such): it is not "
                "answered, and nothing is claimed about it. Leave its rows out."
            )
        return np.array([self._groups.index(name) for name in groups], dtype=np.int64)
