"""False alarms: the score from which alarms may be raised, so that few of them are false."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Unpack

from pacbound.certificate.about import about_texts
from pacbound.certificate.false_alarms import FalseAlarmCertificate
from pacbound.certificate.samples import sample_name
from pacbound.errors import InvalidTypeError
from pacbound.sources import Engine, Progress
from pacbound.stats.arguments import claimed_delta, tolerated_rate
from pacbound.tally.draws import DrawOptions
from pacbound.tally.intake import recorded_columns, require_mapping, tally_of
from pacbound.tally.tally import Tally


def certify_false_alarms(  # noqa: PLR0913
    score: Any,
    positive: Any = None,
    *,
    unsafe: Any = None,
    xi: float,
    delta: float,
    columns: Mapping[str, str | None] | None = None,
    engine: Engine | None = None,
    master: str | None = None,
    memory_limit: str | None = None,
    progress: Progress | None = None,
    about: Mapping[str, Any] | None = None,
    sample: str | None = None,
    **draw: Unpack[DrawOptions],
) -> FalseAlarmCertificate:
    """The lowest score from which to raise alarms, so that at most a share `xi` of the negatives
    raises one, with probability at least 1 - `delta`.

    The claim holds for this threshold and all higher ones at once. The rows must be independent
    draws from the distribution of use, untouched by training or model choice, and not selected for
    labelling by their score. `xi` and `delta` are fixed beforehand. Any rule for when to stop
    labelling is allowed that sees only which rows are negative. What is certified is `xi`; the
    share of positives that is found is descriptive. This does not claim safety: nothing is said
    about positives that raise no alarm, and `Shield` does not take the certificate.
    `certify_alarm_range` certifies both at once.

    With `unsafe` in place of `positive`, rows are rollouts of a policy without its shield: at most
    a share `xi` of the rollouts that are safe without it is stopped by a shield with this
    threshold. A rollout with the score -inf, which was lost, counts as a safe one that raises an
    alarm. A failed reading of the danger fires a shield, so a safe rollout with one must have the
    score 1: `Rollouts.alarm_score` has it so.

    Parameters
    ----------
    score
        One score in [0, 1] per row, high = positive; or a `Tally` of a recall or a shield in place
        of the arrays; or, with `columns`, a frame (pandas, Polars, PyArrow, DuckDB, PySpark) or the
        paths of files. For rollouts, the maximum of the danger over the whole of a safe one.
    positive
        Whether each row is positive: booleans, or numbers that are 0 or 1.
    unsafe
        In place of `positive`, for rollouts: whether each has an un-recoverable state.
    xi
        The share of the negatives, or of the safe rollouts, that may raise an alarm.
    delta
        The chance that more do.
    clusters, cluster_bound, weights, weight_bound, row_ids, seed
        For rows that are not independent draws from the distribution of use, see the documentation
        of data. `clusters`, the patient or the video of each row: one row of each is drawn, and the
        claim is about a random row of a random cluster; with `cluster_bound`, the most rows that
        any cluster can have, about a random row. `weights`, proportional to the density of the
        distribution of use over that of the rows, at most `weight_bound` wherever rows can be: a
        row is kept with that chance. `row_ids`, a name for each row, where rows have no order.
        `seed`, the key of the draw, 0 if left out: to try several voids the guarantee.
    columns
        The names of the table's columns, by the names of the arrays: `score`, and `positive` or
        `unsafe`.
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
    FalseAlarmCertificate
        The threshold, with the counts that it follows from. A refusal has `certified` False and the
        threshold +inf (no alarms); `refusal` says why, and how many negatives it would take.

    Raises
    ------
    InvalidValueError, InvalidTypeError
        If scores or flags cannot be what they should be; the message names the value, its row and
        the remedy. If both `positive` and `unsafe` are passed.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> positive = rng.random(20_000) < 0.02
    >>> score = np.where(positive, rng.beta(6, 2, size=20_000), rng.beta(1, 6, size=20_000))
    >>> certificate = certify_false_alarms(score, positive, xi=0.05, delta=0.01)
    >>> print(f"alarm from {certificate.threshold:.3f}: {certificate.observed_recall:.1%} found")
    alarm from 0.402: 97.2% found

    A shield that stops at most 1 % of the rollouts that would have been safe:

    >>> unsafe = rng.random(2000) < 0.05
    >>> danger = np.where(unsafe, rng.beta(8, 2, size=2000), rng.beta(1, 8, size=2000))
    >>> certify_false_alarms(danger, unsafe=unsafe, xi=0.01, delta=0.01).certified
    True
    """
    share, level = tolerated_rate(xi), claimed_delta(delta)
    texts, name = about_texts(about), sample_name(sample)
    tally = alarm_tally(
        score,
        positive,
        unsafe,
        columns=columns,
        reading={
            "engine": engine,
            "master": master,
            "memory_limit": memory_limit,
            "progress": progress,
        },
        draw=draw,
    )
    return FalseAlarmCertificate.from_tally(
        tally, xi=share, delta=level, columns=recorded_columns(columns)
    ).with_about(texts, sample=name)


def alarm_tally(
    score: Any,
    positive: Any,
    unsafe: Any,
    *,
    columns: Mapping[str, str | None] | None,
    reading: Mapping[str, Any],
    draw: Mapping[str, Any],
) -> Tally:
    """The tally of a recall, or, where rows are rollouts, of a shield."""
    require_mapping(columns)
    named = {role for role, name in (columns or {}).items() if name is not None}
    if (positive is not None or "positive" in named) and (unsafe is not None or "unsafe" in named):
        raise InvalidTypeError(
            "positive and unsafe stand beside each other: pass positive for rows, or unsafe for "
            "rollouts."
        )
    rollouts = unsafe is not None or "unsafe" in named
    if isinstance(score, Tally) and score.kind == "shield":
        rollouts = True
    if not rollouts:
        return tally_of(
            "recall",
            ("score", score),
            arrays={"positive": positive, "unsafe": unsafe},
            columns=columns,
            options={},
            reading=reading,
            draw=draw,
        )
    return tally_of(
        "shield",
        ("scores", score),
        arrays={"unsafe": unsafe, "positive": positive},
        columns=None
        if columns is None
        else {"scores" if role == "score" else role: name for role, name in columns.items()},
        options={},
        reading=reading,
        draw=draw,
    )
