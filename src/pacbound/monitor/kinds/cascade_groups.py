"""A cascade whose loss is bounded in every group, in use: what each row loses, in each of its
groups.

Each group has a claim of its own, that its rows lose at most xi on average, and so bets of its own,
which only its rows change. The evidence is the average of the groups' evidence; on the second clock
it is their sum.

Promise. Let A_g be the evidence of group g, and let the claim about g hold at every step: whatever
came before, a row of g loses at most xi on average. Then the expectation of A_g after a row, given
all rows before it, is at most A_g: a row of g multiplies its bets by factors with a mean of at most
1, and any other row leaves it alone. So the average of all A_g is a supermartingale over *rows*
that starts at 1, and reaches 1 / delta with probability at most delta (Ville), however groups
overlap. It rings no later than the monitors of all groups with delta / G each would: if one of
them reaches G / delta the average has reached 1 / delta. A row in several groups changes several
A_g at once, and their factors depend on each other; so the evidence is looked at after the whole
row (`Seen.closes`). On the second clock each label adds at most 1 to the sum of its own group, so
that the total less the number of labels, a label being a row in a group, is a supermartingale.

A group that was refused with thresholds of its own never exits early: it loses nothing, and is left
out. Rows of groups that were not certified must not be passed: nothing is claimed about them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from pacbound.certificate.cascade_groups import GroupedCascadeCertificate
from pacbound.certificate.document import exact
from pacbound.errors import InvalidTypeError, InvalidValueError
from pacbound.monitor.kinds.cascade import (
    as_losses,
    checked_losses,
    differences_of_labels,
    losses_of_answers,
    require_labels_or_loss,
)
from pacbound.stats.betting import difference_bets
from pacbound.tally.classes import Evidence, Vocabulary
from pacbound.tally.questions.cascade import ALL_ROWS, CascadeQuestion
from pacbound.tally.questions.members import member_slots, members_of
from pacbound.tally.questions.question import Slot
from pacbound.tally.rows import Rows, only_known
from pacbound.watch import Counts, RowReading, Seen

Flags = NDArray[np.bool_]

_WHAT = "A monitored cascade in groups"


class GroupedCascadeWatch:
    """The cascade loses at most xi accuracy against its slow model in every group, or at most xi of
    the answers in every group differ from the slow model's.
    """

    roles: ClassVar[Mapping[str, bool]] = {
        "loss": False,
        "confidences": False,
        "predictions": False,
        "labels": False,
        "groups": True,
    }
    outcomes = ("gained", "equal", "lost")
    single = None
    columns = ("confidences", "predictions", "labels", "groups")

    def __init__(self, certificate: GroupedCascadeCertificate) -> None:
        self._certificate = certificate
        self._watched = [name for name, group in certificate.groups.items() if group.certified]
        self.bets = (difference_bets(certificate.xi),) * len(self._watched)
        self.shares = np.full(len(self._watched), 1 / len(self._watched))
        self._overlapping = certificate.scope == "overlapping-groups"
        self._labelled = certificate.bounded == "loss"
        self.claimed = (
            f"at most {exact(certificate.xi)} accuracy is lost against the slow model alone in "
            "each group"
            if self._labelled
            else f"at most {exact(certificate.xi)} of the answers in each group differ from the "
            "slow model's"
        )

    def place_name(self, place: int) -> str | None:
        """The group."""
        return f"group {self._watched[place]!r}"

    def of_columns(self, named: Mapping[str, Any]) -> RowReading:
        """`groups`, and `loss`, or `confidences`, `predictions` and `labels`."""
        known = self._known(named)
        if self._overlapping:
            raise InvalidTypeError(
                "The groups of this certificate overlap, and a table has one group in each row: "
                "pass arrays to Monitor.update, with groups as a mapping from each group to flags."
            )
        if "loss" in known:
            slots = {"loss": Slot("number", known["loss"]), "groups": Slot("name", known["groups"])}
            return RowReading(slots, self._judged)
        return self._of_answers(CascadeQuestion.of_columns(**known))

    def of_arrays(self, given: Mapping[str, Any]) -> tuple[RowReading, Mapping[str, Any]]:
        """The same of arrays; groups that overlap are a mapping from each of them to flags."""
        known = self._known(given)
        if isinstance(known["groups"], Mapping) != self._overlapping:
            raise InvalidTypeError(
                "The groups of this certificate overlap: pass groups as a mapping from each of "
                f"them but {ALL_ROWS!r} to whether a row is in it."
                if self._overlapping
                else "groups is a mapping, and the groups of this certificate do not overlap: pass "
                "the group of each row."
            )
        if "loss" not in known:
            question, arrays = CascadeQuestion.of_arrays(**known)
            return self._of_answers(question), arrays
        losses, groups = as_losses(known["loss"], "loss"), known["groups"]
        slots = {"loss": Slot("number", "loss")}
        if not self._overlapping:
            slots["groups"] = Slot("name", "groups")
            return RowReading(slots, self._judged), {"loss": losses, "groups": groups}
        members = members_of(groups)
        inside = member_slots(tuple(members))
        columns = dict(zip(inside, members.values(), strict=True))
        return RowReading({**slots, **inside}, self._judged), {"loss": losses, **columns}

    def counted(self, given: Mapping[str, Any]) -> Counts:
        """`losses` and `gains` of `labels`, each a mapping from groups."""
        roles = {"losses": True, "gains": True, "labels": True}
        known = only_known(given, roles, _WHAT)
        if not all(isinstance(part, Mapping) for part in known.values()) or (
            len({frozenset(part) for part in known.values()}) != 1
        ):
            raise InvalidTypeError(
                "This certificate is per group: pass losses, gains and labels as mappings from the "
                "same groups to counts."
            )
        self._require_known(map(str, known["labels"]))
        return [
            (
                self._place(str(name)),
                differences_of_labels(
                    {role: known[role][name] for role in roles}, _WHAT, labelled=self._labelled
                ),
            )
            for name in known["labels"]
            if self._place(str(name)) >= 0
        ]

    def _known(self, given: Mapping[str, Any]) -> dict[str, Any]:
        known = only_known(given, self.roles, _WHAT)
        require_labels_or_loss(known, labelled=self._labelled)
        return known

    def _of_answers(self, question: CascadeQuestion) -> RowReading:
        exits = self._certificate.exits
        if question.exits != exits:
            raise InvalidTypeError(
                f"{question.exits} confidences were given: the certificate has {exits} exits."
            )
        labels = question.slots["labels"].name if self._labelled else None
        return RowReading(question.slots, self._judged, labels)

    def _judged(self, rows: Rows, vocabulary: Vocabulary, evidence: Evidence) -> Seen:
        inside, limits = self._memberships(rows)
        if "loss" in rows.slots:
            lost = checked_losses(rows, labelled=self._labelled)
        else:
            lost = losses_of_answers(rows, limits, vocabulary, evidence, labelled=self._labelled)
        watched = inside[:, [self._names.index(name) for name in self._watched]]
        # Row by row, and the groups of a row in order.
        row, place = np.nonzero(watched)
        closes = np.append(row[1:] != row[:-1], True) if self._overlapping and row.size else None
        return Seen(place.astype(np.int64), 1 + lost[row], closes)

    def _memberships(self, rows: Rows) -> tuple[Flags, NDArray[np.float64]]:
        """Which groups each row is in, (rows, groups), and the thresholds of each row."""
        count, exits = len(rows), self._certificate.exits
        inside = np.zeros((count, len(self._names)), dtype=bool)
        if self._overlapping:
            members = [name for name in self._names if name != ALL_ROWS]
            slots = member_slots(tuple(members))
            _require_members(rows, slots)
            inside[:, self._names.index(ALL_ROWS)] = True
            for slot, name in zip(slots, members, strict=True):
                inside[:, self._names.index(name)] = rows.flags(slot)
        else:
            names, places = rows.groups("groups")
            self._require_known(names)
            found = np.array([self._names.index(name) for name in names], dtype=np.int64)
            inside[np.arange(count), found[places]] = True
        thresholds = self._certificate.thresholds
        if not isinstance(thresholds, dict):
            return inside, np.broadcast_to(thresholds, (count, exits))
        own = np.array([thresholds[name] for name in self._names]).reshape(-1, exits)
        return inside, own[inside.argmax(axis=1)]

    @property
    def _names(self) -> list[str]:
        return list(self._certificate.groups)

    def _place(self, name: str) -> int:
        return self._watched.index(name) if name in self._watched else -1

    def _require_known(self, names: Any) -> None:
        strange = [name for name in names if name not in self._certificate.groups]
        if strange:
            raise InvalidValueError(
                f"Group {strange[0]!r} was not certified ({len(strange)} such): nothing is claimed "
                "about it. Leave its rows out."
            )


def _require_members(rows: Rows, slots: Mapping[str, Slot]) -> None:
    named = {slot.name for slot in rows.slots.values() if slot.kind == "flag"}
    wanted = {slot.name for slot in slots.values()}
    if named != wanted:
        raise InvalidValueError(
            f"{min(named ^ wanted)} is among the groups that were passed or among those of the "
            "certificate, but not in both: pass those that were certified."
        )
