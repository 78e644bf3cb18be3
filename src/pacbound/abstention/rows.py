"""An abstention certificate applied to every row of a table, streaming, in order."""

from __future__ import annotations

import os
from collections import Counter
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pacbound.certificate.abstention import APPLIED, AbstentionCertificate
from pacbound.errors import InvalidTypeError, InvalidValueError
from pacbound.sources import PLAIN, Batch, Notation, Paths, Progress
from pacbound.sources.rewriting import rewrite
from pacbound.tally.columns import as_names
from pacbound.tally.rows import batch_scores

ADDED = (APPLIED,)


@dataclass(frozen=True)
class Applied:
    """How many rows went out, how many of them are answered, and how many of the others were of a
    group that was not certified.
    """

    rows: int
    answered: int
    uncertified_rows: int
    uncertified_groups: tuple[str, ...]


def apply_to_file(
    certificate: AbstentionCertificate,
    source: Paths,
    target: str | os.PathLike[str],
    *,
    confidence: str,
    group: str | None = None,
    strict: bool = False,
    notation: Notation = PLAIN,
    progress: Progress | None = None,
) -> Applied:
    """Write the rows of `source` to `target` with the decision to answer added.

    All columns go out as they came in. `target` appears when it is complete, or not at all. A
    certificate that does not follow from its own counts raises `CertificateError`; a refused one
    answers nothing.
    """
    rule = certificate.row_rule()
    if bool(certificate.groups) != (group is not None):
        remedy = (
            "name the column with the group of each row"
            if certificate.groups
            else "leave the group out"
        )
        raise InvalidTypeError(f"The certificate has {len(certificate.groups)} groups: {remedy}.")
    strange, answered = Counter[str](), Counter[bool]()

    def with_decision(batch: Batch) -> tuple[Batch, dict[str, NDArray[np.int64]]]:
        scores = batch_scores(batch, confidence, notation.scale)
        groups = None
        if group is not None:
            groups = as_names(batch.names(group), group, start=batch.start).astype(np.str_)
            unknown = rule.strange(groups)
            strange.update(groups[unknown].tolist())
            if strict and strange:
                row = batch.start + int(np.flatnonzero(unknown)[0])
                raise InvalidValueError(
                    f"{group}[{row}] is {str(groups[unknown][0])!r}, a group that was not "
                    "certified: nothing is known about it. Without --strict (strict=True) such "
                    "rows are not answered."
                )
        added = rule.of_arrays([scores], groups)
        answered[True] += int(added[APPLIED].sum())
        return batch, added

    rows, _ = rewrite(
        source,
        target,
        with_decision,
        needed=[confidence] if group is None else [confidence, group],
        added=ADDED,
        may_be_empty=True,
        notation=notation,
        progress=progress,
    )
    return Applied(rows, answered[True], strange.total(), tuple(sorted(strange)))
