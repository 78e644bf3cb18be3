"""A certificate of a recall, or of false alarms, applied to every row of a table, streaming, in
order.
"""

from __future__ import annotations

import os
from collections import Counter

import numpy as np
from numpy.typing import NDArray

from pacbound.certificate.false_alarms import FalseAlarmCertificate
from pacbound.certificate.recall import APPLIED, RecallCertificate
from pacbound.sources import PLAIN, Batch, Notation, Paths, Progress
from pacbound.sources.rewriting import rewrite
from pacbound.tally.rows import batch_scores

ADDED = (APPLIED,)


def apply_to_file(
    certificate: RecallCertificate | FalseAlarmCertificate,
    source: Paths,
    target: str | os.PathLike[str],
    *,
    score: str,
    notation: Notation = PLAIN,
    progress: Progress | None = None,
) -> tuple[int, int]:
    """Write the rows of `source` to `target` with the flag added, and return how many rows there
    are and how many of them are flagged.

    All columns go out as they came in. `target` appears when it is complete, or not at all. A
    certificate that does not follow from its own counts raises `CertificateError`; a refused recall
    flags everything, and refused false alarms nothing.
    """
    rule = certificate.row_rule()
    flagged = Counter[bool]()

    def with_flag(batch: Batch) -> tuple[Batch, dict[str, NDArray[np.int64]]]:
        added = rule.of_arrays([batch_scores(batch, score, notation.scale)])
        flagged[True] += int(added[APPLIED].sum())
        return batch, added

    rows, _ = rewrite(
        source,
        target,
        with_flag,
        needed=[score],
        added=ADDED,
        may_be_empty=True,
        notation=notation,
        progress=progress,
    )
    return rows, flagged[True]
