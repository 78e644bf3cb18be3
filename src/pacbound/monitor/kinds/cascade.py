"""A cascade in use: what each row of traffic loses against the slow model, which runs beside it on
a random share of the rows.

A row brings D = 1{cascade wrong} - 1{slow model wrong}. It is 0 where the row does not exit early,
and where the answering model agrees with the slow one; so a label is needed only elsewhere. Rows
that do not exit belong to the traffic. To leave them out would test the loss among exits, which is
larger.

A cascade of which it is claimed that few answers differ from the slow model's brings D = 1 where
the answer does, and 0 elsewhere. It is watched without labels. Where the loss is claimed labels are
needed, also if there were none when it was certified.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from pacbound.certificate.cascade import CascadeCertificate
from pacbound.certificate.document import exact
from pacbound.errors import InvalidTypeError, InvalidValueError
from pacbound.sources.values import MISSING
from pacbound.stats.arguments import whole_number
from pacbound.stats.betting import difference_bets
from pacbound.tally.classes import Evidence, Vocabulary
from pacbound.tally.columns import as_column
from pacbound.tally.questions.cascade import CascadeQuestion
from pacbound.tally.questions.question import Slot
from pacbound.tally.rows import Rows, only_known
from pacbound.watch import Counts, Integers, RowReading, Seen, one_place

_WHAT = "A monitored cascade"


class CascadeWatch:
    """The cascade loses at most xi accuracy against its slow model, or at most xi of its answers
    differ from the slow model's.
    """

    roles: ClassVar[Mapping[str, bool]] = {
        "loss": False,
        "confidences": False,
        "predictions": False,
        "labels": False,
    }
    outcomes = ("gained", "equal", "lost")
    single = "loss"
    columns = ("confidences", "predictions", "labels")
    shares = np.ones(1)

    def __init__(self, certificate: CascadeCertificate) -> None:
        self.bets = (difference_bets(certificate.xi),)
        self._labelled = certificate.bounded == "loss"
        self.claimed = (
            f"at most {exact(certificate.xi)} accuracy is lost against the slow model alone"
            if self._labelled
            else f"at most {exact(certificate.xi)} of the answers differ from the slow model's"
        )
        self._thresholds = certificate.thresholds

    def place_name(self, place: int) -> str | None:  # noqa: ARG002
        """None: all rows are alike."""
        return None

    def of_columns(self, named: Mapping[str, Any]) -> RowReading:
        """`loss`, or `confidences`, `predictions` and `labels`."""
        known = self._known(named)
        if "loss" in known:
            return self._of_losses(known["loss"])
        return self._of_answers(CascadeQuestion.of_columns(**known))

    def of_arrays(self, given: Mapping[str, Any]) -> tuple[RowReading, Mapping[str, Any]]:
        """The same of arrays."""
        known = self._known(given)
        if "loss" in known:
            return self._of_losses("loss"), {"loss": as_losses(known["loss"], "loss")}
        question, arrays = CascadeQuestion.of_arrays(**known)
        return self._of_answers(question), arrays

    def counted(self, given: Mapping[str, Any]) -> Counts:
        """`losses` and `gains` among `labels` rows of traffic."""
        return [(0, differences_of_labels(given, _WHAT, labelled=self._labelled))]

    def _known(self, given: Mapping[str, Any]) -> dict[str, Any]:
        known = only_known(given, self.roles, _WHAT)
        require_labels_or_loss(known, labelled=self._labelled)
        return known

    def _of_answers(self, question: CascadeQuestion) -> RowReading:
        if question.exits != len(self._thresholds):
            raise InvalidTypeError(
                f"{question.exits} confidences were given: the certificate has "
                f"{len(self._thresholds)} exits."
            )
        labels = question.slots["labels"].name if self._labelled else None
        return RowReading(question.slots, self._judged, labels)

    def _of_losses(self, name: str) -> RowReading:
        labelled = self._labelled
        return RowReading(
            {"loss": Slot("number", name)},
            lambda rows, *_: one_place(1 + checked_losses(rows, labelled=labelled)),
        )

    def _judged(self, rows: Rows, vocabulary: Vocabulary, evidence: Evidence) -> Seen:
        limits = np.broadcast_to(self._thresholds, (len(rows), len(self._thresholds)))
        lost = losses_of_answers(rows, limits, vocabulary, evidence, labelled=self._labelled)
        return one_place(1 + lost)


def differences_of_labels(
    given: Mapping[str, Any], what: str, *, labelled: bool
) -> tuple[int, int, int]:
    """How many labels were gained, equal and lost, from `losses`, `gains` and `labels`."""
    counts = only_known(given, {"losses": True, "gains": True, "labels": True}, what)
    losses, gains, labels = (
        whole_number(counts[name], name) for name in ("losses", "gains", "labels")
    )
    if losses + gains > labels:
        raise InvalidValueError(
            f"{losses} losses and {gains} gains of {labels} labels cannot be: expected losses + "
            "gains <= labels, which are all rows of traffic that were looked at."
        )
    if gains and not labelled:
        raise InvalidValueError(
            f"{gains} gains were passed, and the claim is that few answers differ, which nothing "
            "makes good: count every answer that differs as a loss, and pass gains=0."
        )
    return gains, labels - losses - gains, losses


def require_labels_or_loss(known: Mapping[str, Any], *, labelled: bool) -> None:
    """Raise unless the columns say what each row loses: `loss`, or answers, with labels where the
    certificate is about them.
    """
    if "loss" in known and known.keys() - {"loss", "groups"}:
        raise InvalidTypeError(
            "loss stands beside other columns: pass either loss, or confidences, predictions and "
            "labels."
        )
    if "loss" not in known and ("labels" in known) != labelled:
        raise InvalidTypeError(
            "labels are missing: they say what is lost where the answer differs from the slow "
            "model's. Pass them, or loss."
            if labelled
            else "The claim about this cascade is that few answers differ from the slow model's, "
            "and labels have no part in it: leave them out. Each answer that differs is a loss."
        )


def losses_of_answers(
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
    truth = rows.classes("labels", vocabulary)
    _require_labels(rows, truth, differ)
    for name, codes in zip(names, answers, strict=True):
        evidence.slow = rows.name(name)
        evidence.saw(evidence.slow, vocabulary.classes(np.unique(codes).tolist()))
    _witness(answer, slow, truth, vocabulary, evidence)
    lost, gained = differ & (slow == truth), differ & (answer == truth)
    return np.asarray(lost.astype(np.int64) - gained)


def _present(rows: Rows, slot: str, vocabulary: Vocabulary) -> Integers:
    codes = rows.classes(slot, vocabulary)
    missing = np.flatnonzero(codes == MISSING)
    if missing.size:
        raise InvalidValueError(
            f"{rows.name(slot)}[{rows.start + missing[0]}] is missing ({missing.size} such rows): "
            "on the rows that are looked at every model must predict. Leave out rows by their key "
            "alone, before anything is known of them."
        )
    return codes


def _require_labels(rows: Rows, truth: Integers, differ: NDArray[np.bool_]) -> None:
    unlabelled = np.flatnonzero((truth == MISSING) & differ)
    if unlabelled.size:
        raise InvalidValueError(
            f"{rows.name('labels')}[{rows.start + unlabelled[0]}] is missing ({unlabelled.size} "
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


def checked_losses(rows: Rows, *, labelled: bool) -> Integers:
    """The column of losses, -1, 0 or 1 in each row; 0 or 1 where answers that differ are counted,
    without labels.
    """
    return _checked(rows.numbers("loss"), rows.name("loss"), rows.start, labelled=labelled)


def as_losses(values: Any, name: str) -> NDArray[Any]:
    """An array of losses, as `checked_losses` reads it."""
    array = as_column(values, name)
    if array.dtype.kind not in "iuf":
        raise InvalidTypeError(
            f"{name} has dtype {array.dtype}, which does not hold losses of a cascade: expected 1 "
            "where it is wrong and the slow model right, -1 where it is the other way round, and "
            "0 elsewhere."
        )
    return array


def _checked(array: NDArray[Any], name: str, start: int, *, labelled: bool) -> Integers:
    numbers = array.astype(np.float64)
    legal = (numbers == 0) | (numbers == 1) | ((numbers == -1) & labelled)
    if not legal.all():
        row = int(np.flatnonzero(~legal)[0])
        expected = (
            "1 where the cascade is wrong and the slow model right, -1 where it is the other way "
            "round, and 0 elsewhere"
            if labelled
            else "1 where the answer differs from the slow model's, and 0 elsewhere"
        )
        raise InvalidValueError(
            f"{name}[{start + row}] is {array[row]} ({int((~legal).sum())} such values): expected "
            f"{expected}."
        )
    return numbers.astype(np.int64)
