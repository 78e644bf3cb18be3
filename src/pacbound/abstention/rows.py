"""An abstention certificate applied to every row of a table, streaming, in order."""

from __future__ import annotations

import os
from collections import Counter
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pacbound.certificate.abstention import AbstentionCertificate
from pacbound.errors import InvalidTypeError, InvalidValueError
from pacbound.sources import Batch, Paths, Progress
from pacbound.sources.rewriting import rewrite
from pacbound.tally.columns import as_names, checked_scores, numeric

ADDED = ("pac_answer",)
"""The column that `apply_to_file` adds: 1 where the model may answer, 0 where it must abstain."""


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
    progress: Progress | None = None,
) -> Applied:
    """Write the rows of `source` to `target` with the decision to answer added.

    All columns go out as they came in. `target` appears when it is complete, or not at all. A
    certificate that does not follow from its own counts raises `CertificateError`; a refused one
    answers nothing.
    """
    certificate.require_verified()
    if bool(certificate.groups) != (group is not None):
        remedy = (
            "name the column with the group of each row"
            if certificate.groups
            else "leave the group out"
        )
        raise InvalidTypeError(f"The certificate has {len(certificate.groups)} groups: {remedy}.")
    strange, answered = Counter[str](), Counter[bool]()

    def with_decision(batch: Batch) -> tuple[Batch, dict[str, NDArray[np.int64]]]:
        scores = checked_scores(
            numeric(batch.numbers(confidence), confidence), confidence, start=batch.start
        )
        groups = None
        if group is not None:
            groups = as_names(batch.names(group), group, start=batch.start).astype(np.str_)
            known = np.isin(groups, certificate.groups)
            strange.update(groups[~known].tolist())
            if strict and strange:
                row = batch.start + int(np.flatnonzero(~known)[0])
                raise InvalidValueError(
                    f"{group}[{row}] is {str(groups[~known][0])!r}, a group that was not "
                    "certified: nothing is known about it. Without --strict (strict=True) such "
                    "rows are not answered."
                )
        decisions = certificate.answers(scores, groups)
        answered[True] += int(decisions.sum())
        return batch, {ADDED[0]: decisions.astype(np.int64)}

    rows, _ = rewrite(
        source,
        target,
        with_decision,
        needed=[confidence] if group is None else [confidence, group],
        added=ADDED,
        may_be_empty=True,
        progress=progress,
    )
    return Applied(rows, answered[True], strange.total(), tuple(sorted(strange)))
