"""A calibration certificate applied to every row of a table, streaming, in order."""

from __future__ import annotations

import os

import numpy as np
from numpy.typing import NDArray

from pacbound.certificate.calibration import CalibrationCertificate
from pacbound.errors import InvalidTypeError
from pacbound.sources import Batch, Paths, Progress
from pacbound.sources.rewriting import rewrite
from pacbound.tally.columns import checked_scores, numeric

ADDED = ("pac_lower", "pac_upper", "pac_estimate")
"""The columns that `apply_to_file` adds; the estimate is empty (NaN) where no calibration row fell
into the bin."""


def apply_to_file(
    certificate: CalibrationCertificate,
    source: Paths,
    target: str | os.PathLike[str],
    *,
    confidence: str,
    group: str | None = None,
    progress: Progress | None = None,
) -> int:
    """Write the rows of `source` to `target` with their certified interval added, and return how
    many there were.

    All columns go out as they came in. `target` appears when it is complete, or not at all. A
    certificate that does not follow from its own counts raises `CertificateError`.
    """
    certificate.require_verified()
    if bool(certificate.groups) != (group is not None):
        remedy = (
            "name the column with the group of each row"
            if certificate.groups
            else "leave the group out"
        )
        raise InvalidTypeError(f"The certificate has {len(certificate.groups)} groups: {remedy}.")

    def with_interval(batch: Batch) -> tuple[Batch, dict[str, NDArray[np.float64]]]:
        scores = checked_scores(
            numeric(batch.numbers(confidence), confidence), confidence, start=batch.start
        )
        groups = batch.names(group) if group is not None else None
        lower, upper = certificate.interval(scores, groups).T
        return batch, dict(
            zip(ADDED, (lower, upper, certificate.estimate(scores, groups)), strict=True)
        )

    needed = [confidence] if group is None else [confidence, group]
    rows, _ = rewrite(source, target, with_interval, needed=needed, added=ADDED, progress=progress)
    return rows
