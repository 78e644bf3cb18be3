"""A recall certificate applied to every row of a table, streaming, in order."""

from __future__ import annotations

import os
from collections import Counter

import numpy as np
from numpy.typing import NDArray

from pacbound.certificate.recall import RecallCertificate
from pacbound.sources import Batch, Paths, Progress
from pacbound.sources.rewriting import rewrite
from pacbound.tally.columns import checked_scores, numeric

ADDED = ("pac_flag",)
"""The column that `apply_to_file` adds: 1 where the row is flagged, 0 where it is not."""


def apply_to_file(
    certificate: RecallCertificate,
    source: Paths,
    target: str | os.PathLike[str],
    *,
    score: str,
    progress: Progress | None = None,
) -> tuple[int, int]:
    """Write the rows of `source` to `target` with the flag added, and return how many rows there
    are and how many of them are flagged.

    All columns go out as they came in. `target` appears when it is complete, or not at all. A
    certificate that does not follow from its own counts raises `CertificateError`; a refused one
    flags everything.
    """
    certificate.require_verified()
    flagged = Counter[bool]()

    def with_flag(batch: Batch) -> tuple[Batch, dict[str, NDArray[np.int64]]]:
        scores = checked_scores(numeric(batch.numbers(score), score), score, start=batch.start)
        flags = certificate.flags(scores)
        flagged[True] += int(flags.sum())
        return batch, {ADDED[0]: flags.astype(np.int64)}

    rows, _ = rewrite(
        source,
        target,
        with_flag,
        needed=[score],
        added=ADDED,
        may_be_empty=True,
        progress=progress,
    )
    return rows, flagged[True]
