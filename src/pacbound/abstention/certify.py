"""Abstention: the confidence at which to answer, so that few answers are wrong."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Unpack

import numpy as np
from numpy.typing import NDArray

from pacbound.certificate.about import about_texts
from pacbound.certificate.abstention import AbstentionCertificate
from pacbound.certificate.samples import sample_name
from pacbound.errors import InvalidTypeError, InvalidValueError
from pacbound.sources import Engine, Notation, Progress
from pacbound.sources.fingerprints import file_fingerprint
from pacbound.sources.notation import OPTIONS as NOTATION
from pacbound.sources.paths import are_paths, expanded
from pacbound.stats.arguments import claimed_delta, tolerated_rate
from pacbound.tally.count import scores_in_files, scores_in_frame
from pacbound.tally.draws import DrawOptions
from pacbound.tally.frame_errors import reading_frame
from pacbound.tally.intake import recorded_columns, tally_of
from pacbound.tally.questions.question import Slot
from pacbound.tally.tally import Tally


def certify_abstention(  # noqa: PLR0913
    confidence: Any,
    correct: Any = None,
    *,
    xi: float,
    delta: float,
    pool: Any = None,
    groups: Any = None,
    first_threshold: float | None = None,
    prediction: Any = None,
    labels: Any = None,
    classes: Any = None,
    missing: Any = None,
    unseen_labels: float | None = None,
    columns: Mapping[str, str | None] | None = None,
    engine: Engine | None = None,
    master: str | None = None,
    memory_limit: str | None = None,
    progress: Progress | None = None,
    about: Mapping[str, Any] | None = None,
    sample: str | None = None,
    **draw: Unpack[DrawOptions],
) -> AbstentionCertificate:
    """The lowest confidence at which to answer, so that at most a share `xi` of the answers is
    wrong, with probability at least 1 - `delta`.

    The rows must be independent draws from the distribution of use, untouched by training, model
    choice or temperature fitting, and `xi`, `delta`, the number of rows and the groups fixed before
    any label was seen. What is certified is `xi`, among all answers; the share of rows that is
    answered, and the error seen in these rows, are descriptive. Nothing is assumed about the model
    or its scores: they may be badly calibrated, tied, or less reliable at the top.

    Parameters
    ----------
    confidence
        One score in [0, 1] per row, usually the probability of the predicted class; or a `Tally` in
        place of all arrays; or, with `columns`, a frame (pandas, Polars, PyArrow, DuckDB, PySpark)
        or the paths of files.
    correct
        Whether each prediction was right: booleans, or numbers that are 0 or 1.
    xi
        The share of the answers that may be wrong. 0 cannot be certified.
    delta
        The chance that more are wrong.
    pool
        Scores in [0, 1] of other rows, without labels, drawn as in use: they fix where the search
        may start, which then costs nothing of `delta`. They must not be scores of the rows that
        certify. Beside a table, a frame or the paths of files, with a column of the same name as
        `columns` has for `confidence`. Without it, the starts are ranks of the rows themselves.
    groups
        One group per row, for a threshold each, at `delta` divided by the number of groups that
        have rows. The claim then holds in every group.
    first_threshold
        The highest threshold to be looked at, 65535/65536 if left out. Declare a lower one, before
        any label is seen, if many rows share one score that is the highest: where more rows come at
        once than the largest start asks for, nothing can be certified from above.
    prediction, labels
        The predicted and the true class of each row, in place of `correct`: numbers or names,
        compared by the one rule of equality (see the documentation of classes).
    classes
        All classes that there are. A prediction or label that is not listed raises; one that looks
        like a missing value, such as "NA", is then a class.
    missing
        What stands for a missing class, such as "NA" or -1. Usual codes raise unless they are named
        here or in `classes`.
    unseen_labels
        The share of the rows whose label may be a class that is never predicted, 0 if left out.
        More of them raise: they are mostly misspelt.
    clusters, cluster_bound, weights, weight_bound, row_ids, seed
        For rows that are not independent draws from the distribution of use, see the documentation
        of data. `clusters`, the patient or the video of each row: one row of each is drawn, and the
        claim is about a random row of a random cluster; with `cluster_bound`, the most rows that
        any cluster can have, about a random row. `weights`, proportional to the density of the
        distribution of use over that of the rows, at most `weight_bound` wherever rows can be: a
        row is kept with that chance. `row_ids`, a name for each row, where rows have no order.
        `seed`, the key of the draw, 0 if left out: to try several voids the guarantee.
    columns
        The names of the table's columns, by the names of the arrays: `confidence`; `correct`, or
        `prediction` and `labels`; and `groups` for a threshold each.
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
    AbstentionCertificate
        The threshold, with the counts that it follows from. A refusal has `certified` False and the
        threshold +inf (never answer); `refusal` says why, and about how many rows it would take.

    Raises
    ------
    InvalidValueError, InvalidTypeError
        If scores, outcomes or classes cannot be what they should be; the message names the value,
        its row and the remedy.

    Examples
    --------
    >>> from pacbound.data import fashion_mnist
    >>> table = fashion_mnist()
    >>> correct = table.prediction_slow == table.label
    >>> certificate = certify_abstention(table.confidence_slow, correct, xi=0.01, delta=0.001)
    >>> threshold, share = certificate.threshold, certificate.coverage
    >>> print(f"answer at {threshold:.4f} and above: {share:.1%} of the rows, 1 % wrong at most")
    answer at 0.9957 and above: 71.2% of the rows, 1 % wrong at most

    From a frame, which is counted inside its own engine:

    >>> import polars
    >>> frame = polars.DataFrame({"score": table.confidence_slow, "right": correct})
    >>> named = {"confidence": "score", "correct": "right"}
    >>> same = certify_abstention(frame, xi=0.01, delta=0.001, columns=named)
    >>> same.threshold == certificate.threshold
    True
    """
    rate, level = tolerated_rate(xi), claimed_delta(delta)
    texts, name = about_texts(about), sample_name(sample)
    reading = {"engine": engine, "master": master, "memory_limit": memory_limit}
    tally = tally_of(
        "abstention",
        ("confidence", confidence),
        arrays={"correct": correct, "prediction": prediction, "labels": labels, "groups": groups},
        columns=columns,
        options={"classes": classes, "missing": missing, "unseen_labels": unseen_labels},
        reading={**reading, "progress": progress},
        draw=draw,
    )
    if are_paths(pool) or hasattr(pool, "columns"):
        pool = _pool_scores(pool, tally, columns, draw, reading)
    return AbstentionCertificate.from_tally(
        tally,
        xi=rate,
        delta=level,
        pool=pool,
        first_threshold=first_threshold,
        columns=recorded_columns(columns),
    ).with_about(texts, sample=name)


def _pool_scores(
    pool: Any,
    tally: Tally,
    columns: Mapping[str, str | None] | None,
    written: Mapping[str, Any],
    reading: Mapping[str, Any],
) -> NDArray[np.float64]:
    """The scores of a table of other rows, which is written and read as that of the rows is."""
    column = None if columns is None else columns.get("confidence")
    if column is None:
        raise InvalidTypeError(
            "pool is a table, and no column of it is named: pass its column of scores as an array."
        )
    notation = Notation.of(**{name: written.get(name) for name in NOTATION})
    slot = Slot("number", column, notation.scale)
    if not are_paths(pool):
        with reading_frame():
            return scores_in_frame(slot, pool)
    same = next((file for file in expanded(pool) if file_fingerprint(file) in tally.sources), None)
    if same is not None:
        raise InvalidValueError(
            f"{same} is counted, too: starts chosen from the scores that certify void the "
            "guarantee. Pass scores of other rows, or leave pool out."
        )
    return scores_in_files(
        slot,
        pool,
        notation=notation,
        engine=reading["engine"] or "duckdb",
        master=reading["master"],
        memory_limit=reading["memory_limit"],
    )
