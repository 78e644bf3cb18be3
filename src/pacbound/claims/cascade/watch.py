"""A cascade in use: what each row of traffic loses against the slow model, which runs beside it on
a random share of the rows.

A row brings D = 1{cascade wrong} - 1{slow model wrong}. It is 0 where the row does not exit early,
and where the answering model agrees with the slow one; so a label is needed only elsewhere. Rows
that do not exit belong to the traffic. To leave them out would test the loss among exits, which is
larger.

A cascade of which it is claimed that few answers differ from the slow model's brings D = 1 where
the answer does, and 0 elsewhere. It is watched without labels. Where the loss is claimed labels are
needed, also if there were none when it was certified.

With groups, each has a claim of its own, that its rows lose at most xi on average, and so bets of
its own, which only its rows change. The evidence is the average of the groups' evidence; on the
second clock it is their sum.

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
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from pacbound.claims.assumptions import as_graded
from pacbound.errors import InvalidTypeError, InvalidValueError
from pacbound.says import Sentence, share
from pacbound.sources.values import MISSING
from pacbound.stats.betting import difference_bets
from pacbound.tally.classes import Evidence, Vocabulary
from pacbound.tally.columns import QUALITY, Rows, Slot, as_column, only_known
from pacbound.tally.questions.cascade import ALL_ROWS, CASCADE, CascadeQuestion
from pacbound.tally.questions.question import member_slots, members_of
from pacbound.watch import (
    Counts,
    Flags,
    Integers,
    RowReading,
    Seen,
    counts_by_group,
    differences_of_labels,
    one_place,
    require_certified,
)

if TYPE_CHECKING:
    from pacbound.claims.cascade.certificate import CascadeCertificate

_COUNTS = {"losses": True, "gains": True, "labels": True}
_ANSWERS = ("confidence", "prediction", "label")


class CascadeWatch:
    """The cascade loses at most xi accuracy against its slow model, or at most xi of its answers
    differ from the slow model's; in every group, if there are groups.
    """

    outcomes = ("gained", "equal", "lost")

    def __init__(self, certificate: CascadeCertificate) -> None:
        self._names = list(certificate.groups)
        self._watched = [name for name, group in certificate.groups.items() if group.certified]
        places = max(len(self._watched), 1)
        self.bets = (difference_bets(certificate.xi),) * places
        self.shares = np.full(places, 1 / places)
        self._overlapping = certificate.scope == "overlapping-groups"
        self._labelled = certificate.bounded == "loss"
        self._thresholds = certificate.thresholds
        self._exits = certificate.exits
        self._question = replace(CASCADE, graded=certificate.graded)
        self._what = "A monitored cascade in groups" if self._names else "A monitored cascade"
        every = " in each group" if self._names else ""
        text = (
            f"at most {{xi}} accuracy is lost against the slow model alone{every}"
            if self._labelled
            else f"at most {{xi}} of the answers{every} differ from the slow model's"
        )
        if certificate.graded is not None:
            text = f"at most {{xi}} quality is lost against the slow model alone{every}, {{judged}}"
        judged = as_graded(certificate.graded)
        self.claimed = str(Sentence(text, {"xi": share(certificate.xi, "up"), "judged": judged}))

    @property
    def roles(self) -> Mapping[str, bool]:
        """The columns that a row may bring; the group must be there where there are groups."""
        groups = {"groups": True} if self._names else {}
        return {"loss": False, **dict.fromkeys((*_ANSWERS, *self._grades), False), **groups}

    @property
    def _grades(self) -> tuple[str, ...]:
        """What says how good answers are, if they were graded."""
        return () if self._question.graded is None else (QUALITY, "preferred")

    @property
    def single(self) -> str | None:
        """A bare array holds losses, unless rows have groups."""
        return None if self._names else "loss"

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that a row usually brings."""
        return (*_ANSWERS, "groups") if self._names else _ANSWERS

    def place_name(self, place: int) -> str | None:
        """The group; None if all rows are alike."""
        return f"group {self._watched[place]!r}" if self._names else None

    def of_columns(self, named: Mapping[str, Any]) -> RowReading:
        """`loss`, or `confidence`, `prediction` and `label`; and `groups`."""
        known = self._known(named)
        if self._overlapping:
            raise InvalidTypeError(
                "The groups of this certificate overlap, and a table has one group in each row: "
                "pass arrays to Monitor.update, with groups as a mapping from each group to flags."
            )
        if "loss" not in known:
            return self._of_answers(self._question.of_columns(**known))
        slots = {"loss": Slot("number", known["loss"])}
        if self._names:
            slots["groups"] = Slot("name", known["groups"])
        return RowReading(slots, partial(self._judged, None))

    def of_arrays(self, given: Mapping[str, Any]) -> tuple[RowReading, Mapping[str, Any]]:
        """The same of arrays; groups that overlap are a mapping from each of them to flags."""
        known = self._known(given)
        if self._names and isinstance(known["groups"], Mapping) != self._overlapping:
            raise InvalidTypeError(
                "The groups of this certificate overlap: pass groups as a mapping from each of "
                f"them but {ALL_ROWS!r} to whether a row is in it."
                if self._overlapping
                else "groups is a mapping, and the groups of this certificate do not overlap: pass "
                "the group of each row."
            )
        if "loss" not in known:
            question, arrays = self._question.of_arrays(**known)
            return self._of_answers(question), arrays
        columns = {"loss": as_losses(known["loss"], "loss")}
        slots = {"loss": Slot("number", "loss")}
        if self._overlapping:
            members = members_of(known["groups"])
            inside = member_slots(tuple(members))
            slots |= inside
            columns |= dict(zip(inside, members.values(), strict=True))
        elif self._names:
            slots["groups"] = Slot("name", "groups")
            columns["groups"] = known["groups"]
        return RowReading(slots, partial(self._judged, None)), columns

    def counted(self, given: Mapping[str, Any]) -> Counts:
        """`losses` and `gains` among `labels` rows of traffic; with groups, each a mapping from
        groups.
        """
        if not self._names:
            return [(0, self._differences(given))]
        counts = counts_by_group(given, _COUNTS, self._what)
        require_certified(counts, self._names)
        return [
            (self._watched.index(name), self._differences(part))
            for name, part in counts.items()
            if name in self._watched
        ]

    def _differences(self, given: Mapping[str, Any]) -> tuple[int, int, int]:
        """How many labels were gained, equal and lost, from `losses`, `gains` and `labels`."""
        gains, equal, losses = differences_of_labels(given, self._what)
        if gains and not self._labelled:
            raise InvalidValueError(
                f"{gains} gains were passed, and the claim is that few answers differ, which "
                "nothing makes good: count every answer that differs as a loss, and pass gains=0."
            )
        return gains, equal, losses

    def _known(self, given: Mapping[str, Any]) -> dict[str, Any]:
        known = only_known(given, self.roles, self._what)
        if "loss" in known and known.keys() - {"loss", "groups"}:
            raise InvalidTypeError(
                "loss was passed beside other columns: pass either loss, or confidence, prediction "
                "and label."
            )
        if self._grades:
            if not known.keys() & {"loss", *self._grades}:
                raise InvalidTypeError(
                    "quality is missing: it says what is lost where the answer is not the slow "
                    "model's. Pass it, or preferred, or loss."
                )
            return known
        if "loss" not in known and ("label" in known) != self._labelled:
            raise InvalidTypeError(
                "label is missing: it says what is lost where the answer differs from the slow "
                "model's. Pass it, or loss."
                if self._labelled
                else "The claim about this cascade is that few answers differ from the slow "
                "model's, and labels have no part in it: leave label out. Each answer that differs "
                "is a loss."
            )
        return known

    def _of_answers(self, question: CascadeQuestion) -> RowReading:
        if question.exits != self._exits:
            raise InvalidTypeError(
                f"{question.exits} confidences were given: the certificate has {self._exits} exits."
            )
        labels = question.slots["label"].name if "label" in question.slots else None
        return RowReading(question.slots, partial(self._judged, question), labels)

    def _judged(
        self,
        question: CascadeQuestion | None,
        rows: Rows,
        vocabulary: Vocabulary,
        evidence: Evidence,
    ) -> Seen:
        inside, limits = self._memberships(rows)
        lost: NDArray[Any]
        if question is None:
            lost = _checked(rows, labelled=self._labelled, graded=bool(self._grades))
        elif question.takes_quality:
            lost = _losses_of_quality(question, rows, limits, vocabulary)
        else:
            lost = _losses_of_answers(rows, limits, vocabulary, evidence, labelled=self._labelled)
        if inside is None:
            return one_place(1 + lost)
        watched = inside[:, [self._names.index(name) for name in self._watched]]
        # Row by row, and the groups of a row in order.
        row, place = np.nonzero(watched)
        closes = np.append(row[1:] != row[:-1], True) if self._overlapping and row.size else None
        return Seen(place.astype(np.int64), 1 + lost[row], closes, row)

    def _memberships(self, rows: Rows) -> tuple[Flags | None, NDArray[np.float64]]:
        """Which groups each row is in, (rows, groups), None without groups; and the thresholds of
        each row.
        """
        count = len(rows)
        if not self._names:
            return None, np.broadcast_to(self._thresholds, (count, self._exits))
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
            require_certified(names, self._names)
            found = np.array([self._names.index(name) for name in names], dtype=np.int64)
            inside[np.arange(count), found[places]] = True
        if not isinstance(self._thresholds, dict):
            return inside, np.broadcast_to(self._thresholds, (count, self._exits))
        own = np.array([self._thresholds[name] for name in self._names]).reshape(-1, self._exits)
        return inside, own[inside.argmax(axis=1)]


def _require_members(rows: Rows, slots: Mapping[str, Slot]) -> None:
    named = {slot.name for slot in rows.slots.values() if slot.kind == "flag"}
    wanted = {slot.name for slot in slots.values()}
    if named != wanted:
        raise InvalidValueError(
            f"{min(named ^ wanted)} is among the groups that were passed or among those of the "
            "certificate, but not in both: pass those that were certified."
        )


def _losses_of_answers(
    rows: Rows,
    limits: NDArray[np.float64],
    vocabulary: Vocabulary,
    evidence: Evidence,
    *,
    labelled: bool,
) -> Integers:
    """What each row loses, -1, 0 or 1, by the answers of the model that answers and of the slow
    one; `limits` are the thresholds of each row, (rows, exits).
    """
    exits = limits.shape[1]
    names = [f"prediction {m}" for m in range(exits + 1)]
    answers = [_present(rows, name, vocabulary) for name in names]
    answer, slow = answers[-1].copy(), answers[-1]
    for m in reversed(range(exits)):
        leaves = rows.scores(f"confidence {m}") >= limits[:, m]
        answer[leaves] = answers[m][leaves]
    differ = answer != slow
    if not labelled:
        return np.asarray(differ, dtype=np.int64)
    truth = rows.classes("label", vocabulary)
    _require_labels(rows, truth, differ)
    for name, codes in zip(names, answers, strict=True):
        evidence.slow = rows.name(name)
        evidence.saw(evidence.slow, vocabulary.classes(np.unique(codes).tolist()))
    _witness(answer, slow, truth, vocabulary, evidence)
    lost, gained = differ & (slow == truth), differ & (answer == truth)
    return np.asarray(lost.astype(np.int64) - gained)


def _losses_of_quality(
    question: CascadeQuestion, rows: Rows, limits: NDArray[np.float64], vocabulary: Vocabulary
) -> NDArray[np.float64]:
    """What each row loses, from -1 to 1, by the quality of the answer and of the slow model's."""
    *fast, slow = question.qualities(rows)
    answered = any(slot.startswith("prediction ") for slot in rows.slots)
    names = [f"prediction {m}" for m in range(len(fast) + 1)] if answered else []
    answers = [_present(rows, name, vocabulary) for name in names]
    lost = np.zeros(len(rows))
    for m in reversed(range(len(fast))):
        leaves = rows.scores(f"confidence {m}") >= limits[:, m]
        differs = answers[m] != answers[-1] if answered else np.ones(len(rows), dtype=bool)
        lost[leaves] = np.where(differs, slow - fast[m], 0.0)[leaves]
    missing = np.flatnonzero(np.isnan(lost))
    if missing.size:
        raise InvalidValueError(
            f"A quality is missing in row {rows.start + missing[0]} ({missing.size} such rows) "
            "although the model that answers is not the slow one: grade it. To leave out rows that "
            "are hard to grade would void the promise."
        )
    return lost


def _present(rows: Rows, slot: str, vocabulary: Vocabulary) -> Integers:
    codes = rows.classes(slot, vocabulary)
    rows.refuse_missing(
        slot,
        codes == MISSING,
        "on the rows that are looked at every model must predict. Leave out rows by their key "
        "alone, before anything is known of them",
    )
    return codes


def _require_labels(rows: Rows, truth: Integers, differ: Flags) -> None:
    unlabelled = np.flatnonzero((truth == MISSING) & differ)
    if unlabelled.size:
        raise InvalidValueError(
            f"{rows.name('label')}[{rows.start + unlabelled[0]}] is missing ({unlabelled.size} "
            "such rows) although the model that answers differs from the slow one: label it. To "
            "leave out rows that are hard to label would void the promise."
        )


def _witness(
    answer: Integers, slow: Integers, truth: Integers, vocabulary: Vocabulary, evidence: Evidence
) -> None:
    """Take in what these rows show of their classes, so that misspelt labels are noticed."""
    size, known, differ = len(vocabulary), truth != MISSING, answer != slow
    evidence.labelled |= vocabulary.classes(np.unique(truth[known]).tolist())
    unmatched = truth[differ & known & (answer != truth) & (slow != truth)]
    gained = truth[differ & known & (answer == truth)]
    evidence.unmatched += vocabulary.counted(np.bincount(unmatched, minlength=size))
    evidence.gained += vocabulary.counted(np.bincount(gained, minlength=size))


def as_losses(values: Any, name: str) -> NDArray[Any]:
    """An array of losses."""
    array = as_column(values, name)
    if array.dtype.kind not in "iuf":
        raise InvalidTypeError(
            f"{name} has dtype {array.dtype}, which does not hold losses of a cascade: expected 1 "
            "where it is wrong and the slow model right, -1 where it is the other way round, and "
            "0 elsewhere."
        )
    return array


def _checked(rows: Rows, *, labelled: bool, graded: bool) -> NDArray[Any]:
    """The column of losses, -1, 0 or 1 in each row, or between where answers are graded; 0 or 1
    where answers that differ are counted, without labels.
    """
    array, name = rows.numbers("loss"), rows.name("loss")
    numbers = array.astype(np.float64)
    legal = (numbers == 0) | (numbers == 1) | ((numbers == -1) & labelled)
    if graded:
        legal = (numbers >= -1) & (numbers <= 1)
    if not legal.all():
        row = int(np.flatnonzero(~legal)[0])
        expected = (
            "1 where the cascade is wrong and the slow model right, -1 where it is the other way "
            "round, and 0 elsewhere"
            if labelled
            else "1 where the answer differs from the slow model's, and 0 elsewhere"
        )
        raise InvalidValueError(
            f"{name}[{rows.start + row}] is {array[row]} ({int((~legal).sum())} such values): "
            f"expected {expected}{' or numbers between' * graded}."
        )
    return numbers if graded else numbers.astype(np.int64)
