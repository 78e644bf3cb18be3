"""A batch: the disagreements that its sample found."""

from __future__ import annotations

from typing import Any

import numpy as np

from pacbound.figure import Axis, Column, Figure, Level, Mark, Panel, Steps, Upright


def sampled_disagreements(
    places: Any,
    *,
    records: int,
    allowed: int,
    kept: int,
    title: str = "Disagreements in the sample",
) -> Figure:
    """Disagreements found in a sample, in the order of the scores, and how far the claim reaches.

    Parameters
    ----------
    places
        The place of each sampled disagreement among the records, the highest score first; rising.
    records
        How many records were scored.
    allowed
        How many disagreements pass; below 0 if not even none does.
    kept
        How many records may keep the fast answer; 0 for a refusal.
    title
        A few words.

    Returns
    -------
    Figure
        The count as steps, and the place of each disagreement.

    Examples
    --------
    >>> sampled_disagreements([40, 90], records=100, allowed=1, kept=89).table().rows
    [['1', '40'], ['2', '90']]
    """
    ranks = np.asarray(places, dtype=np.float64)
    found = np.arange(1, ranks.size + 1, dtype=np.float64)
    end = max(records, 1)
    line = Steps(
        np.concatenate([[0.0], ranks, [max([end, *ranks[-1:]])]]),
        np.concatenate([[0.0], found, [ranks.size]]),
        "seen",
        "found in the sample up to there",
        "from",
    )
    marks: list[Mark] = [line]
    if allowed >= 0:
        marks.append(Level(allowed, "certified", f"{allowed:,} allowed"))
    if kept:
        name = f"the first {kept:,} records may keep the fast answer"
        marks.append(Upright(kept, "certified", name))
    x = Axis("Records, the highest score first", 0.0, 1.02 * end, whole=True)
    high = max(ranks.size, allowed, 1)
    y = Axis("Sampled disagreements", 0.0, 1.08 * high, whole=True)
    columns = [
        Column("Disagreement", found, "count"),
        Column("Place of the record", ranks, "count"),
    ]
    return Figure(
        title,
        "Records stand in the order of their scores. Those before the disagreement that is one too "
        "many keep the fast answer, unless they were sampled.",
        x,
        [Panel(y, marks)],
        columns,
        [allowed] if allowed >= 0 else [],
    )
