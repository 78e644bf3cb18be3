"""Counting tables in files, batch by batch.

The counts are those that the arrays would give. The fingerprint is that of the file's bytes.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from pacbound.errors import InvalidTypeError, InvalidValueError
from pacbound.sources import Batch, Progress, file_fingerprint, open_table
from pacbound.tally.arrays import count_calibration, count_shield
from pacbound.tally.exits import count_cascade
from pacbound.tally.tally import Tally

Paths: TypeAlias = str | os.PathLike[str] | Iterable[str | os.PathLike[str]]


def count_files(  # noqa: PLR0913 - the columns of a file are named one by one
    paths: Paths,
    *,
    confidence: str,
    correct: str | None = None,
    prediction: str | None = None,
    label: str | None = None,
    group: str | None = None,
    n_bins: int = 20,
    edges: Any = None,
    progress: Progress | None = None,
) -> Tally:
    """Right and wrong predictions per bin of confidence over all rows of all files."""
    outcome = _outcome_columns(correct, prediction, label)

    def count(batch: Batch) -> Tally:
        return count_calibration(
            batch.numbers(confidence),
            batch.flags(outcome[0]) if len(outcome) == 1 else batch.equal(outcome[0], outcome[1]),
            n_bins=n_bins,
            edges=edges,
            groups=batch.names(group) if group else None,
            first_row=batch.start,
        )

    if isinstance(edges, str):
        raise InvalidValueError(f"edges={edges!r} needs all rows at once: load them, or take edges from other data.")
    nothing = count_calibration([], [], n_bins=n_bins, edges=edges, groups=[] if group else None)
    columns = [confidence, *outcome, *([group] if group else [])]
    return _count_all(paths, columns, count, nothing, {"confidence": confidence}, progress)


def count_cascade_files(
    paths: Paths, *, confidences: Sequence[str], predictions: Sequence[str], label: str, progress: Progress | None = None
) -> Tally:
    """What early exits' answers do against the slow model's, over all rows of all files; columns in the order of the models."""
    if not confidences or len(predictions) != len(confidences) + 1:
        raise InvalidTypeError(
            f"{len(confidences)} confidences and {len(predictions)} predictions are no cascade: name a confidence for each model "
            "but the last, and a prediction for each model."
        )

    def count(batch: Batch) -> Tally:
        return count_cascade(
            np.column_stack([batch.numbers(name) for name in confidences]),
            np.column_stack([present(batch.classes(name), name, batch.start) for name in predictions]),
            batch.classes(label),
            first_row=batch.start,
        )

    nothing = count_cascade(np.zeros((0, len(confidences))), np.zeros((0, len(predictions)), dtype=np.int64), np.zeros(0))
    named = {f"confidences[:, {m}]": name for m, name in enumerate(confidences)}
    return _count_all(paths, [*confidences, *predictions, label], count, nothing, named, progress)


def count_shield_files(
    paths: Paths, *, score: str, unsafe: str, final_score: str | None = None, progress: Progress | None = None
) -> Tally:
    """Safe and unsafe rollouts by the running maximum of the danger, over all rows of all files; -inf is one lost at its start.

    With `final_score`, unsafe rollouts are counted by that column instead; it may be empty for safe ones.
    """

    def count(batch: Batch) -> Tally:
        final = None if final_score is None else batch.numbers(final_score, missing=True)
        return count_shield(batch.numbers(score), batch.flags(unsafe), final_scores=final, first_row=batch.start)

    columns = [score, unsafe, *([] if final_score is None else [final_score])]
    named = {"scores": score, "unsafe": unsafe, **({} if final_score is None else {"final_scores": final_score})}
    return _count_all(paths, columns, count, count_shield([], []), named, progress)


def present(classes: NDArray[Any], name: str, start: int) -> NDArray[Any]:
    """`classes`, if none is missing."""
    missing = np.ma.getmaskarray(classes)
    if missing.any():
        row = start + int(np.flatnonzero(missing)[0])
        raise InvalidValueError(f"{name}[{row}] is empty ({int(missing.sum())} such values): every model must predict every row.")
    return np.ma.getdata(classes)


def _count_all(
    paths: Paths,
    columns: Sequence[str],
    count: Callable[[Batch], Tally],
    nothing: Tally,
    named: Mapping[str, str],
    progress: Progress | None,
) -> Tally:
    files = [Path(paths)] if isinstance(paths, (str, os.PathLike)) else [Path(path) for path in paths]
    if not files:
        raise InvalidValueError("No files were named: pass at least one.")
    needed, total = list(dict.fromkeys(columns)), nothing
    for place, path in enumerate(files):
        part = nothing
        for batch in open_table(path).batches(needed, progress=_share_of(progress, place, len(files))):
            # A batch has no name of its own: the file has.
            part += replace(_located(count, batch, path, named), sources=frozenset())
        total += replace(part, sources=frozenset([file_fingerprint(path)]))
    return total


def _located(count: Callable[[Batch], Tally], batch: Batch, path: Path, named: Mapping[str, str]) -> Tally:
    """Count, and if that fails say in which file, by the columns' own names: inside they go by what they are for."""
    try:
        return count(batch)
    except (InvalidValueError, InvalidTypeError) as error:
        roles = "|".join(map(re.escape, named))
        message = re.sub(rf"(?<!\w)({roles})\[", lambda found: f"{named[found[1]]}[", str(error))
        raise type(error)(f"{path}: {message}") from None


def _outcome_columns(correct: str | None, prediction: str | None, label: str | None) -> list[str]:
    if correct is not None and prediction is None and label is None:
        return [correct]
    if correct is None and prediction is not None and label is not None:
        return [prediction, label]
    raise InvalidTypeError("Name either the column correct, or both prediction and label.")


def _share_of(progress: Progress | None, place: int, files: int) -> Progress | None:
    return None if progress is None else lambda share: progress((place + share) / files)
