"""Recall: the score at which to flag, so that enough of the positives are found."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Unpack

from pacbound.certificate.about import about_texts
from pacbound.certificate.recall import RecallCertificate
from pacbound.certificate.samples import sample_name
from pacbound.sources import Engine, Progress
from pacbound.stats.arguments import claimed_delta, required_share
from pacbound.stats.looks import PlannedLooks
from pacbound.tally.draws import DrawOptions
from pacbound.tally.intake import recorded_columns, tally_of


def certify_recall(  # noqa: PLR0913
    score: Any,
    positive: Any = None,
    *,
    target: float,
    delta: float,
    looks: PlannedLooks | Sequence[int] | None = None,
    columns: Mapping[str, str | None] | None = None,
    engine: Engine | None = None,
    master: str | None = None,
    memory_limit: str | None = None,
    progress: Progress | None = None,
    about: Mapping[str, Any] | None = None,
    sample: str | None = None,
    **draw: Unpack[DrawOptions],
) -> RecallCertificate:
    """The highest score at which to flag, so that at least a share `target` of the positives is
    flagged, with probability at least 1 - `delta`.

    The rows must be independent draws from the distribution of use, untouched by training or model
    choice, and not selected for labelling by their score. `target` and `delta` are fixed
    beforehand. Rows may be labelled until there are enough positives: any stopping rule is allowed
    that sees only which rows are positive. What is certified is `target`; the share of rows that is
    flagged, and the recall seen in these rows, are descriptive.

    Parameters
    ----------
    score
        One score in [0, 1] per row, high = positive; or a `Tally` in place of both arrays; or, with
        `columns`, a frame (pandas, Polars, PyArrow, DuckDB, PySpark) or the paths of files.
    positive
        Whether each row is positive: booleans, or numbers that are 0 or 1.
    target
        The share of the positives that must be flagged, between 0 and 1.
    delta
        The chance that fewer are.
    looks
        The planned looks, if the threshold is wanted before all rows are labelled: numbers of
        positives, as `planned_looks` takes or gives them (for the rate 1 - `target`), fixed before
        the first row. All rows up to this look are passed, in any order, and the positives among
        them must be one of the looks. The thresholds of all looks hold together, so it is valid to
        stop at the first that is good enough, or to go on.
    clusters, cluster_bound, weights, weight_bound, row_ids, seed
        For rows that are not independent draws from the distribution of use, see the documentation
        of data. `clusters`, the patient or the video of each row: one row of each is drawn, and the
        claim is about a random row of a random cluster; with `cluster_bound`, the most rows that
        any cluster can have, about a random row. `weights`, proportional to the density of the
        distribution of use over that of the rows, at most `weight_bound` wherever rows can be: a
        row is kept with that chance. `row_ids`, a name for each row, where rows have no order.
        `seed`, the key of the draw, 0 if left out: to try several voids the guarantee.
    columns
        The names of the table's columns, by the names of the arrays: `score` and `positive`.
    engine, master, memory_limit
        For files: "duckdb" (if left out), "polars" or "spark"; Spark's master; what DuckDB may use,
        such as "500MB".
    delimiter, decimal, scale
        For tables: what stands between the values of text, such as ";"; what stands for its decimal
        point, "." or ","; and what a score of 1 is written as, such as 100 for percentages. Every
        score is divided by that once.
    answers
        For tables: labels that came back for the rows, in files or a frame, with a column `pac_row`
        that has the number of each row. A row's number is its place or, where the table has that
        column too, what stands there. Answers that cannot be to these rows raise.
    progress
        For files: called with the share that is counted, from 0 to 1.
    about
        What the certificate is about, for people: short texts by names such as "model", "dataset",
        "owner" and "note". A `pathlib.Path` stands for the name, the size and the SHA-256 of that
        file, or of all files of that folder. No part of the claim.
    sample
        What these rows are called, a short text such as "held-out, March". A `Budget` adds up the
        claims on rows of one name; claims that name no sample count for all of them. No part of the
        claim.

    Returns
    -------
    RecallCertificate
        The threshold, with the counts that it follows from. A refusal has `certified` False and the
        threshold -inf (flag everything); `refusal` says why, and how many positives it would take.

    Raises
    ------
    InvalidValueError, InvalidTypeError
        If scores or flags cannot be what they should be; the message names the value, its row and
        the remedy. If no look was planned at this number of positives.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> positive = rng.random(20_000) < 0.02
    >>> score = np.where(positive, rng.beta(6, 2, size=20_000), rng.beta(1, 6, size=20_000))
    >>> certificate = certify_recall(score, positive, target=0.95, delta=0.01)
    >>> print(f"flag from {certificate.threshold:.3f}: {certificate.flag_rate:.1%} of the rows")
    flag from 0.392: 6.9% of the rows

    A look at the first 100 of at most 300 positives:

    >>> first = int(np.flatnonzero(positive)[99]) + 1
    >>> early = certify_recall(
    ...     score[:first], positive[:first], target=0.95, delta=0.01, looks=[100, 200, 300]
    ... )
    >>> print(f"look {early.look}: flag from {early.threshold:.3f}")
    look 1: flag from 0.262
    """
    share, level = required_share(target), claimed_delta(delta)
    texts, name = about_texts(about), sample_name(sample)
    tally = tally_of(
        "recall",
        ("score", score),
        arrays={"positive": positive},
        columns=columns,
        options={},
        reading={
            "engine": engine,
            "master": master,
            "memory_limit": memory_limit,
            "progress": progress,
        },
        draw=draw,
    )
    return RecallCertificate.from_tally(
        tally, target=share, delta=level, looks=looks, columns=recorded_columns(columns)
    ).with_about(texts, sample=name)
