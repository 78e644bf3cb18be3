"""A calibration certificate applied to every row of a file, streaming, in order."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from pacbound.certificate.calibration import CalibrationCertificate
from pacbound.errors import InvalidTypeError, InvalidValueError
from pacbound.sources import Batch, Progress, open_table
from pacbound.sources.files import require_columns
from pacbound.tally.columns import checked_scores, numeric

Floats = NDArray[np.float64]

ADDED = ("pac_lower", "pac_upper", "pac_estimate")
"""The columns that `apply_to_file` adds; the estimate is empty (NaN) where no calibration row fell into the bin."""


def apply_to_file(
    certificate: CalibrationCertificate,
    source: str | os.PathLike[str],
    target: str | os.PathLike[str],
    *,
    confidence: str,
    group: str | None = None,
    progress: Progress | None = None,
) -> int:
    """Write the rows of `source` to `target` with their certified interval added, and return how many there were.

    All columns go out as they came in. `target` appears when it is complete, or not at all.
    """
    table = open_table(source)
    certificate.require_intact()
    needed = [confidence, *([group] if group else [])]
    require_columns(table, needed)
    taken = [name for name in ADDED if name in table.columns]
    if taken:
        raise InvalidValueError(f"{source} already has a column {taken[0]!r}: rename or drop it.")
    if bool(certificate.groups) != (group is not None):
        remedy = "name the column with the group of each row" if certificate.groups else "leave the group out"
        raise InvalidTypeError(f"The certificate has {len(certificate.groups)} groups: {remedy}.")
    rows = 0
    with table.writer(Path(target), ADDED) as writer:
        for batch in table.batches(progress=progress):
            lower_upper, estimate = _look_up(certificate, batch, Path(source), confidence, group)
            writer.write(batch, dict(zip(ADDED, (lower_upper[:, 0], lower_upper[:, 1], estimate), strict=True)))
            rows += batch.rows
    return rows


def _look_up(
    certificate: CalibrationCertificate, batch: Batch, source: Path, confidence: str, group: str | None
) -> tuple[Floats, Floats]:
    try:
        scores = checked_scores(numeric(batch.numbers(confidence), confidence), confidence, start=batch.start)
        groups = batch.names(group) if group else None
        return certificate.interval(scores, groups), certificate.estimate(scores, groups)
    except (InvalidValueError, InvalidTypeError) as error:
        raise type(error)(f"{source}: {error}") from None
