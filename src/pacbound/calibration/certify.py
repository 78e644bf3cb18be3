"""Calibration: an interval for the true confidence of every prediction."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Unpack

from pacbound.certificate.about import about_texts
from pacbound.certificate.calibration import CalibrationCertificate
from pacbound.certificate.samples import sample_name
from pacbound.errors import InvalidValueError
from pacbound.procedures.calibration import Correction, Side, check_options
from pacbound.sources import Engine, Progress
from pacbound.stats.arguments import claimed_delta
from pacbound.tally.draws import DrawOptions
from pacbound.tally.intake import recorded_columns, tally_of
from pacbound.tally.questions.calibration import DEFAULT_BINS, bins_for
from pacbound.tally.tally import Tally


def calibrate(  # noqa: PLR0913
    confidence: Any,
    correct: Any = None,
    *,
    delta: float,
    n_bins: int | None = None,
    edges: Any = None,
    groups: Any = None,
    correction: Correction = "sidak",
    side: Side = "both",
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
) -> CalibrationCertificate:
    """An interval for the true confidence of every bin, all of them right together with probability
    at least 1 - `delta`.

    The rows must be independent draws from the distribution of use, untouched by training, model
    choice or temperature fitting, and their number, the bins and the groups fixed before any label
    was seen. An interval speaks of the average over its bin, not of one input. The failure
    probability is over the draw of these rows, once.

    Parameters
    ----------
    confidence
        One score in [0, 1] per row, usually the probability of the predicted class; or a `Tally` in
        place of all arrays; or, with `columns`, a frame (pandas, Polars, PyArrow, DuckDB, PySpark)
        or the paths of files.
    correct
        Whether each prediction was right: booleans, or numbers that are 0 or 1.
    delta
        The chance that any interval is wrong.
    n_bins
        The number of bins, 20 if left out.
    edges
        None for bins of equal width; numbers from 0.0 to 1.0 that were fixed beforehand (see
        `equal_mass_edges`); or "equal-mass" for the quantiles of these very scores, each of which
        is then a cell of its own. Edges are never chosen by looking at `correct`: intervals from
        such edges are wrong far more often than `delta`.
    groups
        One group per row, for a table each; or a mapping from names to boolean columns, for groups
        that overlap.
    correction
        "sidak" over the bins that hold rows; "bonferroni" is the paper's delta / K over all bins.
    side
        "both"; or "lower" or "upper", which leaves the other end open and is a little tighter.
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
    clusters, cluster_bound, weights, weight_bound, row_ids, seed, strata
        For rows that are not independent draws from the distribution of use, see the documentation
        of data. `clusters`, the patient or the video of each row: one row of each is drawn, and the
        claim is about a random row of a random cluster; with `cluster_bound`, the most rows that
        any cluster can have, about a random row. `weights`, proportional to the density of the
        distribution of use over that of the rows, at most `weight_bound` wherever rows can be: a
        row is kept with that chance. `row_ids`, a name for each row, where rows have no order.
        `seed`, the key of the draw, 0 if left out: to try several voids the guarantee. `strata`,
        the `n_bins` or `edges` that rows were chosen by with `stratify`.
    columns
        The names of the table's columns, by the names of the arrays: `confidence`; `correct`, or
        `prediction` and `labels`; and `groups` for a table each.
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
    CalibrationCertificate
        The intervals, with the counts that they follow from. It is always certified: where rows say
        little, an interval is wide, and it is [0, 1] where there are none.

    Raises
    ------
    InvalidValueError, InvalidTypeError
        If scores, outcomes or classes cannot be what they should be; the message names the value,
        its row and the remedy.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> confidence = rng.uniform(0.5, 1.0, size=5000)
    >>> correct = rng.random(5000) < confidence - 0.05
    >>> certificate = calibrate(confidence, correct, delta=0.01, n_bins=10)
    >>> certificate.interval([0.55, 0.95]).round(2)
    array([[0.44, 0.53],
           [0.87, 0.93]])

    A frame is counted inside its own engine, and only counts leave it:

    >>> import polars
    >>> frame = polars.LazyFrame({"score": confidence, "right": correct})
    >>> named = {"confidence": "score", "correct": "right"}
    >>> same = calibrate(frame, delta=0.01, n_bins=10, columns=named)
    >>> bool((same.bins.lower == certificate.bins.lower).all())
    True
    """
    level = claimed_delta(delta)
    check_options(correction, side)
    if isinstance(confidence, Tally):
        _require_same_bins(confidence, n_bins, edges)
        n_bins = edges = None
    texts, name = about_texts(about), sample_name(sample)
    tally = tally_of(
        "calibration",
        ("confidence", confidence),
        arrays={"correct": correct, "prediction": prediction, "labels": labels, "groups": groups},
        columns=columns,
        options={
            "n_bins": n_bins,
            "edges": edges,
            "classes": classes,
            "missing": missing,
            "unseen_labels": unseen_labels,
        },
        reading={
            "engine": engine,
            "master": master,
            "memory_limit": memory_limit,
            "progress": progress,
        },
        draw=draw,
    )
    return CalibrationCertificate.from_tally(
        tally, delta=level, correction=correction, side=side, columns=recorded_columns(columns)
    ).with_about(texts, sample=name)


def _require_same_bins(tally: Tally, n_bins: int | None, edges: Any) -> None:
    """Refuse bins that are not those of the tally."""
    if n_bins is not None and n_bins != tally.grid.n_cells:
        raise InvalidValueError(
            f"n_bins={n_bins}, but the tally was counted in {tally.grid.n_cells}: leave it out or "
            "count again."
        )
    if edges is not None and bins_for(n_bins=DEFAULT_BINS, edges=edges) != tally.grid:
        raise InvalidValueError(
            "edges differ from those the tally was counted with: leave them out or count again."
        )
