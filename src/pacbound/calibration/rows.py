"""A calibration certificate applied to every row of a table, streaming, in order."""

from __future__ import annotations

import os
from collections import Counter
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pacbound.certificate.calibration import APPLIED, CalibrationCertificate
from pacbound.errors import InvalidTypeError, InvalidValueError
from pacbound.sources import PLAIN, Batch, Notation, Paths, Progress
from pacbound.sources.rewriting import rewrite
from pacbound.tally.columns import as_names
from pacbound.tally.rows import batch_scores

ADDED = APPLIED


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
    notation: Notation = PLAIN,
    progress: Progress | None = None,
) -> Applied:
    """Write the rows of `source` to `target` with their certified interval added.

    All columns go out as they came in. `target` appears when it is complete, or not at all. A
    certificate that does not follow from its own counts raises `CertificateError`.
    """
    rule = certificate.row_rule()
    if bool(certificate.groups) != (group is not None):
        remedy = (
            "name the column with the group of each row"
            if certificate.groups
            else "leave the group out"
        )
        raise InvalidTypeError(f"The certificate has {len(certificate.groups)} groups: {remedy}.")
    strange = Counter[str]()

    def with_interval(batch: Batch) -> tuple[Batch, dict[str, NDArray[np.float64]]]:
        scores = batch_scores(batch, confidence, notation.scale)
        if group is None:
            return batch, rule.of_arrays([scores])
        groups = as_names(batch.names(group), group).astype(np.str_)
        unknown = rule.strange(groups)
        strange.update(groups[unknown].tolist())
        if strict and strange:
            row = batch.start + int(np.flatnonzero(unknown)[0])
            raise InvalidValueError(
                f"{group}[{row}] is {str(groups[unknown][0])!r}, a group that was not certified: "
                "nothing is known about it. Without --strict (strict=True) such rows get [0, 1]."
            )
        return batch, rule.of_arrays([scores], groups)

    needed = [confidence] if group is None else [confidence, group]
    rows, _ = rewrite(
        source,
        target,
        with_interval,
        needed=needed,
        added=ADDED,
        may_be_empty=True,
        notation=notation,
        progress=progress,
    )
    return Applied(rows, strange.total(), tuple(sorted(strange)))
