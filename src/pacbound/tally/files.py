"""Counting tables in files, batch by batch, for calibration.

The counts are those that the arrays would give. The fingerprint is that of the file's bytes.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

from pacbound.errors import InvalidTypeError, InvalidValueError
from pacbound.sources import Batch, Progress, file_fingerprint, open_table
from pacbound.tally.arrays import bins_for, count_calibration
from pacbound.tally.tally import Tally


def count_files(  # noqa: PLR0913 - the columns of a file are named one by one
    paths: str | os.PathLike[str] | Iterable[str | os.PathLike[str]],
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
    needed = list(dict.fromkeys([confidence, *outcome, *([group] if group else [])]))
    grid = bins_for(n_bins=n_bins, edges=edges, scores=None)
    files = [Path(paths)] if isinstance(paths, (str, os.PathLike)) else [Path(path) for path in paths]
    if not files:
        raise InvalidValueError("No files were named: pass at least one.")
    total = count_calibration([], [], n_bins=n_bins, edges=edges, groups=[] if group else None)
    for place, path in enumerate(files):
        part = total.zero()
        for batch in open_table(path).batches(needed, progress=_share_of(progress, place, len(files))):
            part += _count_batch(batch, path, confidence, outcome, group, edges=edges, n_bins=n_bins)
        total += replace(part, grid=grid, sources=frozenset([file_fingerprint(path)]))
    return total


def _count_batch(
    batch: Batch, path: Path, confidence: str, outcome: list[str], group: str | None, *, edges: Any, n_bins: int
) -> Tally:
    try:
        counted = count_calibration(
            batch.numbers(confidence),
            batch.flags(outcome[0]) if len(outcome) == 1 else batch.equal(outcome[0], outcome[1]),
            n_bins=n_bins,
            edges=edges,
            groups=batch.names(group) if group else None,
            first_row=batch.start,
        )
    except (InvalidValueError, InvalidTypeError) as error:
        # Inside the library the columns go by what they are for; the user knows them by their names.
        raise type(error)(f"{path}: {str(error).replace('confidence[', f'{confidence}[')}") from None
    return replace(counted, sources=frozenset())


def _outcome_columns(correct: str | None, prediction: str | None, label: str | None) -> list[str]:
    if correct is not None and prediction is None and label is None:
        return [correct]
    if correct is None and prediction is not None and label is not None:
        return [prediction, label]
    raise InvalidTypeError("Name either the column correct, or both prediction and label.")


def _share_of(progress: Progress | None, place: int, files: int) -> Progress | None:
    return None if progress is None else lambda share: progress((place + share) / files)
