"""A calibration certificate applied to every row of a table, streaming, in order."""

from __future__ import annotations

import os
from collections import Counter
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pacbound.certificate.calibration import CalibrationCertificate
from pacbound.errors import InvalidTypeError, InvalidValueError
from pacbound.sources import Batch, Paths, Progress
from pacbound.sources.rewriting import rewrite
from pacbound.tally.columns import as_names, checked_scores, numeric

ADDED = ("pac_lower", "pac_upper", "pac_estimate")
"""The columns that `apply_to_file` adds; the estimate is empty (NaN) where no calibration row fell
into the bin."""

UNKNOWN = (0.0, 1.0, float("nan"))
"""What is added to a row of a group that was not certified."""


@dataclass(frozen=True)
class Applied:
    """How many rows went out, and how many of them were of a group that was not certified."""

    rows: int
    uncertified_rows: int
    uncertified_groups: tuple[str, ...]


def apply_to_file(
    certificate: CalibrationCertificate,
    source: Paths,
    target: str | os.PathLike[str],
    *,
    confidence: str,
    group: str | None = None,
    strict: bool = False,
    progress: Progress | None = None,
) -> Applied:
    """Write the rows of `source` to `target` with their certified interval added.

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
    strange = Counter[str]()

    def with_interval(batch: Batch) -> tuple[Batch, dict[str, NDArray[np.float64]]]:
        scores = checked_scores(
            numeric(batch.numbers(confidence), confidence), confidence, start=batch.start
        )
        if group is None:
            return batch, _added(certificate, scores, None)
        groups = as_names(batch.names(group), group).astype(np.str_)
        known = np.isin(groups, certificate.groups)
        strange.update(groups[~known].tolist())
        if strict and strange:
            row = batch.start + int(np.flatnonzero(~known)[0])
            raise InvalidValueError(
                f"{group}[{row}] is {str(groups[~known][0])!r}, a group that was not certified: "
                "nothing is known about it. Without --strict (strict=True) such rows get [0, 1]."
            )
        added = {
            name: np.full(batch.rows, value) for name, value in zip(ADDED, UNKNOWN, strict=True)
        }
        for name, values in _added(certificate, scores[known], groups[known]).items():
            added[name][known] = values
        return batch, added

    needed = [confidence] if group is None else [confidence, group]
    rows, _ = rewrite(
        source,
        target,
        with_interval,
        needed=needed,
        added=ADDED,
        may_be_empty=True,
        progress=progress,
    )
    return Applied(rows, strange.total(), tuple(sorted(strange)))


def _added(
    certificate: CalibrationCertificate,
    scores: NDArray[np.float64],
    groups: NDArray[np.str_] | None,
) -> dict[str, NDArray[np.float64]]:
    lower, upper = certificate.interval(scores, groups).T
    return dict(zip(ADDED, (lower, upper, certificate.estimate(scores, groups)), strict=True))
