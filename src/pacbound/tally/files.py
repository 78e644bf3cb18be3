"""Counting tables in files, out of core: what for, and from which columns.

The counts are those that the arrays would give. The fingerprint is that of each file's bytes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pacbound.errors import InvalidTypeError, InvalidValueError
from pacbound.sources import Batch, Paths, Progress, Wanted
from pacbound.tally.arrays import count_abstention, count_calibration, count_shield
from pacbound.tally.exits import count_cascade
from pacbound.tally.file_counts import Use, count_tables
from pacbound.tally.tally import Tally
from pacbound.tally.uses import models_columns, outcome_columns, use_of

_TEXT = "UT"


def count(paths: Paths, *, kind: str | None = None, **columns: Any) -> Tally:
    """Count files for the use that the named columns belong to."""
    uses: dict[str, Callable[..., Tally]] = {
        "calibration": count_files,
        "abstention": count_abstention_files,
        "cascade": count_cascade_files,
        "shield": count_shield_files,
    }
    return uses[use_of(columns, kind)](paths, **columns)


def count_files(  # noqa: PLR0913, RUF100
    paths: Paths,
    *,
    confidence: str,
    correct: str | None = None,
    prediction: str | None = None,
    label: str | None = None,
    group: str | None = None,
    n_bins: int = 20,
    edges: Any = None,
    memory_limit: str | None = None,
    progress: Progress | None = None,
) -> Tally:
    """Right and wrong predictions per bin of confidence over all rows of all files."""
    if isinstance(edges, str):
        raise InvalidValueError(
            f"edges={edges!r} needs all rows at once: load them, or take edges from other data."
        )
    outcome = outcome_columns(correct, prediction, label)

    def count_batch(batch: Batch) -> Tally:
        return count_calibration(
            batch.numbers(confidence),
            _right(batch, outcome),
            n_bins=n_bins,
            edges=edges,
            groups=None if group is None else batch.names(group),
            first_row=batch.start,
        )

    def count_relation(relation: Any) -> Tally:
        # Narwhals is optional.
        from pacbound.tally.frames import count_calibration_frame  # noqa: PLC0415
        from pacbound.tally.frames.plain import count_plain_bins  # noqa: PLC0415

        if wanted.keys() == {"confidence", "correct"} and edges is None:
            plain = count_plain_bins(
                relation, confidence="confidence", correct="correct", n_bins=n_bins
            )
            if plain is not None:
                return plain
        return count_calibration_frame(
            relation, n_bins=n_bins, edges=edges, **{role: role for role in wanted}
        )

    wanted = _confidence_columns(confidence, outcome, group)
    nothing = count_calibration(
        [], [], n_bins=n_bins, edges=edges, groups=None if group is None else []
    )
    use = Use(wanted, count_batch, count_relation, nothing, _names_of_roles(confidence, group))
    return count_tables(paths, use, memory_limit=memory_limit, progress=progress)


def count_abstention_files(
    paths: Paths,
    *,
    confidence: str,
    correct: str | None = None,
    prediction: str | None = None,
    label: str | None = None,
    group: str | None = None,
    memory_limit: str | None = None,
    progress: Progress | None = None,
) -> Tally:
    """Right and wrong predictions per fine cell of confidence over all rows of all files."""
    outcome = outcome_columns(correct, prediction, label)

    def count_batch(batch: Batch) -> Tally:
        groups = None if group is None else batch.names(group)
        return count_abstention(batch.numbers(confidence), _right(batch, outcome), groups=groups)

    def count_relation(relation: Any) -> Tally:
        # Narwhals is optional.
        from pacbound.tally.frames import count_abstention_frame  # noqa: PLC0415

        return count_abstention_frame(relation, **{role: role for role in wanted})

    wanted = _confidence_columns(confidence, outcome, group)
    nothing = count_abstention([], [], groups=None if group is None else [])
    use = Use(wanted, count_batch, count_relation, nothing, _names_of_roles(confidence, group))
    return count_tables(paths, use, memory_limit=memory_limit, progress=progress)


def count_cascade_files(
    paths: Paths,
    *,
    confidences: Sequence[str],
    predictions: Sequence[str],
    label: str,
    memory_limit: str | None = None,
    progress: Progress | None = None,
) -> Tally:
    """What early exits' answers do against the slow model's, over all rows of all files; columns in
    the order of the models.
    """
    exits, answers = models_columns(confidences, predictions)

    def count_batch(batch: Batch) -> Tally:
        return count_cascade(
            np.column_stack([batch.numbers(name) for name in exits]),
            np.column_stack(predicted(batch, answers)),
            batch.classes(label),
            first_row=batch.start,
        )

    def count_relation(relation: Any) -> Tally:
        # Narwhals is optional.
        from pacbound.tally.frames import count_cascade_frame  # noqa: PLC0415

        return count_cascade_frame(
            relation, confidences=list(scores), predictions=list(classes), label="label"
        )

    scores = {f"confidence {m}": Wanted(name, "number") for m, name in enumerate(exits)}
    classes = {f"prediction {m}": Wanted(name, "class") for m, name in enumerate(answers)}
    nothing = count_cascade(
        np.zeros((0, len(exits))), np.zeros((0, len(answers)), dtype=np.int64), np.zeros(0)
    )
    named = {f"confidences[:, {m}]": name for m, name in enumerate(exits)}
    use = Use(
        {**scores, **classes, "label": Wanted(label, "class")},
        count_batch,
        count_relation,
        nothing,
        named,
    )
    return count_tables(paths, use, memory_limit=memory_limit, progress=progress)


def count_shield_files(
    paths: Paths,
    *,
    score: str,
    unsafe: str,
    final_score: str | None = None,
    memory_limit: str | None = None,
    progress: Progress | None = None,
) -> Tally:
    """Safe and unsafe rollouts by the running maximum of the danger, over all rows of all files;
    -inf is one lost at its start.

    With `final_score`, unsafe rollouts are counted by that column instead; it may be empty for safe
    ones.
    """

    def count_batch(batch: Batch) -> Tally:
        final = None if final_score is None else batch.numbers(final_score, missing=True)
        return count_shield(
            batch.numbers(score), batch.flags(unsafe), final_scores=final, first_row=batch.start
        )

    def count_relation(relation: Any) -> Tally:
        # Narwhals is optional.
        from pacbound.tally.frames import count_shield_frame  # noqa: PLC0415

        return count_shield_frame(relation, **{role: role for role in wanted})

    wanted = {"score": Wanted(score, "number"), "unsafe": Wanted(unsafe, "flag")}
    named = {"scores": score, "unsafe": unsafe}
    if final_score is not None:
        wanted["final_score"] = Wanted(final_score, "number or nothing")
        named["final_scores"] = final_score
    use = Use(wanted, count_batch, count_relation, count_shield([], []), named)
    return count_tables(paths, use, memory_limit=memory_limit, progress=progress)


def predicted(batch: Batch, names: Sequence[str]) -> list[NDArray[Any]]:
    """What each model predicts, all in numbers or all in text: NumPy would write numbers beside
    text as text, 3.0 as '3.0'.
    """
    columns = [present(batch.classes(name), name, batch.start) for name in names]
    if len({column.dtype.kind in _TEXT for column in columns}) > 1:
        listed = ", ".join(
            f"{name} holds {column.dtype}" for name, column in zip(names, columns, strict=True)
        )
        raise InvalidTypeError(f"{listed}, which are never equal: name classes one way.")
    return columns


def present(classes: NDArray[Any], name: str, start: int) -> NDArray[Any]:
    """`classes`, if none is missing."""
    missing = np.ma.getmaskarray(classes)
    if missing.any():
        row = start + int(np.flatnonzero(missing)[0])
        raise InvalidValueError(
            f"{name}[{row}] is empty ({int(missing.sum())} such values): every model must predict "
            "every row."
        )
    return np.ma.getdata(classes)


def _confidence_columns(
    confidence: str, outcome: Sequence[str], group: str | None
) -> dict[str, Wanted]:
    wanted = {"confidence": Wanted(confidence, "number")}
    if len(outcome) == 1:
        wanted["correct"] = Wanted(outcome[0], "flag")
    else:
        wanted |= {"prediction": Wanted(outcome[0], "class"), "label": Wanted(outcome[1], "class")}
    return wanted if group is None else wanted | {"group": Wanted(group, "name")}


def _names_of_roles(confidence: str, group: str | None) -> dict[str, str]:
    return (
        {"confidence": confidence} if group is None else {"confidence": confidence, "groups": group}
    )


def _right(batch: Batch, outcome: Sequence[str]) -> NDArray[Any]:
    return batch.flags(outcome[0]) if len(outcome) == 1 else batch.equal(outcome[0], outcome[1])
