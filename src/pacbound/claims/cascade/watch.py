"""A cascade in use: what each row of traffic loses against the slow model, which runs beside it on
a random share of the rows.

A row brings D = 1{cascade wrong} - 1{slow model wrong}. It is 0 where the row does not exit early,
and where the answering model agrees with the slow one; so a label is needed only elsewhere. Rows
that do not exit belong to the traffic. To leave them out would test the loss among exits, which is
larger.

A cascade of which it is claimed that few answers differ from the slow model's brings D = 1 where
the answer does, and 0 elsewhere. It is watched without labels. Where the loss is claimed labels are
needed, also if there were none when it was certified. Graded answers bring the difference of their
qualities.

A group that was refused with thresholds of its own never exits early: it loses nothing, and is left
out.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from pacbound.claims.assumptions import as_graded
from pacbound.errors import InvalidTypeError, InvalidValueError
from pacbound.procedures.joint_walk import top_of
from pacbound.says import Sentence, Value, share
from pacbound.sources.values import MISSING
from pacbound.stats.betting import difference_bets
from pacbound.tally.classes import ALL_PREDICT, Evidence, Vocabulary
from pacbound.tally.columns import Rows
from pacbound.tally.questions.cascade import CASCADE, CascadeQuestion, outcomes_of
from pacbound.tally.questions.question import Judged
from pacbound.watch import LOST_OR_GAINED, Integers, Watch

if TYPE_CHECKING:
    from pacbound.claims.cascade.certificate import CascadeCertificate

# What an exit loses; 2 where a label would tell.
_LOST = {"agree": 0, "only_fast": -1, "only_slow": 1, "neither": 0, "unlabelled": 2}


def watch_of_cascade(certificate: CascadeCertificate) -> Watch:
    """The cascade loses at most xi accuracy against its slow model, or at most xi of its answers
    differ from the slow model's; in every group, if there are groups.
    """
    labelled, graded = certificate.bounded == "loss", certificate.graded
    every = " in each group" if certificate.groups else ""
    text = (
        f"at most {{xi}} accuracy is lost against the slow model alone{every}"
        if labelled
        else f"at most {{xi}} of the answers{every} differ from the slow model's"
    )
    if graded is not None:
        text = f"at most {{xi}} quality is lost against the slow model alone{every}, {{judged}}"
    filled: dict[str, Value] = {"xi": share(certificate.xi, "up"), "judged": as_graded(graded)}
    question = replace(CASCADE, graded=graded)
    if not labelled:
        question = replace(CASCADE, columns=CASCADE.columns[:2], may_be_graded=False)
    return Watch.of_tables(
        certificate,
        difference_bets(certificate.xi),
        {name: group.certified for name, group in certificate.groups.items()} or {None: True},
        outcomes=LOST_OR_GAINED,
        claimed=str(Sentence(text, filled)),
        question=question,
        judge=None if graded is None else _by_quality,
        outcome=_outcome(certificate, labelled=labelled),
        column="loss",
        read=partial(_checked, labelled=labelled, graded=graded is not None),
        gains=labelled,
    )


def _outcome(certificate: CascadeCertificate, *, labelled: bool) -> Any:
    """What is lost by the exit at which each row leaves: 0 of 2 if it gains, 2 if it loses."""
    exits, thresholds = certificate.exits, certificate.thresholds
    by_table = [
        thresholds[name] if isinstance(thresholds, dict) else thresholds
        for name in certificate.groups or (None,)
    ]
    limits = np.array(by_table) * top_of(exits)
    lost = np.array(
        [
            [*(_LOST[part] if labelled else part != "agree" for part in name.split("|")), 0]
            for name in outcomes_of(exits)
        ]
    )

    def outcome(judged: Judged, rows: Integers, tables: Integers) -> NDArray[Any]:
        cells = judged.cells[rows]
        if cells.shape[1] != exits:
            raise InvalidTypeError(
                f"{cells.shape[1]} confidences were given: the certificate has {exits} exits."
            )
        found = judged.outcomes[rows]
        leaves = np.column_stack([cells >= limits[tables], np.ones(len(rows), dtype=bool)])
        of_exits = found if found.ndim == 2 else lost[found]
        return np.asarray(1 + of_exits[np.arange(len(rows)), leaves.argmax(axis=1)])

    return outcome


def _by_quality(
    question: CascadeQuestion, rows: Rows, vocabulary: Vocabulary, _: Evidence
) -> Judged:
    """What each exit of each row loses, from -1 to 1, by the quality of its answer and of the slow
    model's; 2 where one is missing and answers differ.
    """
    *fast, slow = question.qualities(rows)
    lost = np.column_stack([*(slow - quality for quality in fast), np.zeros(len(rows))])
    slots = [slot for slot in rows.slots if slot.startswith("prediction ")]
    answers = [rows.classes(slot, vocabulary) for slot in slots]
    for m, (slot, codes) in enumerate(zip(slots, answers, strict=True)):
        rows.refuse_missing(slot, codes == MISSING, ALL_PREDICT)
        lost[codes == answers[-1], m] = 0.0
    scores = [rows.scores(f"confidence {m}") for m in range(len(fast))]
    cells = np.column_stack([question.grid.cells(column) for column in scores])
    return Judged(len(rows), cells, np.where(np.isnan(lost), 2.0, lost))


def _checked(rows: Rows, *, labelled: bool, graded: bool) -> NDArray[Any]:
    """The outcomes by a column of losses, -1, 0 or 1 in each row, or between where answers are
    graded; 0 or 1 where answers that differ are counted, without labels.
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
    return 1 + (numbers if graded else numbers.astype(np.int64))
