"""Whether predictions are right: what the questions share that ask about one answer per row.

A row says it as a truth value, `correct`, or as the predicted and the true class, `prediction` and
`label`. Which it is, and how the two are compared, is stated here once.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from pacbound.errors import InvalidTypeError, InvalidValueError
from pacbound.sources.values import MISSING
from pacbound.tally.classes import Evidence, Vocabulary
from pacbound.tally.questions.question import Integers, RowColumn, Slot
from pacbound.tally.rows import Rows

if TYPE_CHECKING:
    import narwhals as nw

    from pacbound.tally.frames.counting import KeyCounts
    from pacbound.tally.frames.engine_rows import EngineRows

OUTCOMES = ("wrong", "right")
COLUMNS = (
    RowColumn("confidence", "The confidence of each prediction, from 0 to 1.", "number"),
    RowColumn("correct", "Whether each prediction was right.", "flag", needed=False),
    RowColumn(
        "prediction",
        "The predicted class of each row; with label, in place of correct.",
        "class",
        needed=False,
    ),
    RowColumn("label", "The true class of each row.", "class", needed=False),
)
KINDS: Mapping[str, Any] = {
    "confidence": "number",
    "correct": "flag",
    "prediction": "class",
    "label": "class",
    "groups": "name",
}
"""What each column holds, by what it is for."""


def slots_of(named: Mapping[str, str]) -> dict[str, Slot]:
    """The slots of the columns that were named, by what they are for."""
    return {role: Slot(kind, named[role]) for role, kind in KINDS.items() if role in named}


def require_outcome(named: Mapping[str, Any]) -> None:
    """Raise unless there is exactly one way to tell whether a prediction was right."""
    outcome = [role for role in ("correct", "prediction", "label") if role in named]
    if outcome not in (["correct"], ["prediction", "label"]):
        raise InvalidTypeError(
            "Pass either correct, or both prediction and label: what says whether a prediction "
            f"was right is {', '.join(outcome) or 'missing'}."
        )


def require_two_columns(named: Mapping[str, Any]) -> None:
    """Raise if the predictions of a table would be compared with themselves."""
    if "label" in named and named["label"] == named["prediction"]:
        raise InvalidValueError(
            f"label and prediction are both {named['label']!r}, so that every row would be "
            "right: name the column of the true classes."
        )


def right_rows(rows: Rows, vocabulary: Vocabulary, evidence: Evidence) -> Integers:
    """1 for each row whose prediction was right, 0 for the others."""
    if "correct" in rows.slots:
        return rows.flags("correct").astype(np.int64)
    said, truth = (rows.classes(slot, vocabulary) for slot in ("prediction", "label"))
    for slot, codes in (("prediction", said), ("label", truth)):
        missing = np.flatnonzero(codes == MISSING)
        if missing.size:
            raise InvalidValueError(
                f"{rows.name(slot)}[{rows.start + missing[0]}] is missing ({missing.size} such "
                "rows): every row needs a prediction and a label. Label them; to drop rows "
                "because their label is missing voids the guarantee unless that has nothing "
                "to do with being right."
            )
    right = said == truth
    wrong = np.bincount(truth[~right], minlength=len(vocabulary))
    evidence.saw(rows.name("prediction"), vocabulary.classes(np.unique(said).tolist()))
    evidence.labelled |= vocabulary.classes(np.unique(truth).tolist())
    evidence.unmatched += vocabulary.counted(wrong)
    return np.asarray(right, dtype=np.int64)


def count_right(
    rows: EngineRows, slots: Mapping[str, Slot], keys: Mapping[str, nw.Expr], evidence: Evidence
) -> tuple[KeyCounts, Integers]:
    """The same inside an engine: how many rows have each combination of the `keys` and of being
    right, and which of the combinations are right.
    """
    if "correct" in slots:
        flag = rows.flag("correct")
        counts = rows.count({**keys, "right": flag.key})
        return counts, flag.checked(counts, "right")
    answers = rows.answers(["prediction"], "label", evidence)
    counts = rows.count({**keys, "right": answers.coded(answers.right_as_number(0))})
    right = answers.checked(counts, "right")
    answers.witness()
    return counts, right
