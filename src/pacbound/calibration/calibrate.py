"""Calibration: an interval for the true confidence of every prediction."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pacbound.certificate.calibration import CalibrationCertificate
from pacbound.errors import InvalidTypeError, InvalidValueError
from pacbound.procedures.calibration import Correction, Side, check_options
from pacbound.stats.arguments import failure_probability
from pacbound.tally.arrays import bins_for, count_calibration
from pacbound.tally.given import count_table, recorded_columns, refuse_arrays_beside_columns
from pacbound.tally.tally import Tally

DEFAULT_BINS = 20


def calibrate(  # noqa: PLR0913, RUF100
    confidence: Any,
    correct: Any = None,
    *,
    delta: float,
    n_bins: int | None = None,
    edges: Any = None,
    groups: Any = None,
    correction: Correction = "sidak",
    side: Side = "both",
    columns: Mapping[str, str] | None = None,
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
    columns
        The names of the table's columns: `confidence`; `correct`, or `prediction` and `label`; and
        `group` for a table each.

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
    >>> columns = {"confidence": "score", "correct": "right"}
    >>> same = calibrate(frame, delta=0.01, n_bins=10, columns=columns)
    >>> bool((same.bins.lower == certificate.bins.lower).all())
    True
    """
    level = failure_probability(delta)
    check_options(correction, side)
    bins = DEFAULT_BINS if n_bins is None else n_bins
    if columns is not None:
        refuse_arrays_beside_columns(correct=correct, groups=groups)
        tally = count_table(confidence, "calibration", columns, n_bins=bins, edges=edges)
    elif isinstance(confidence, Tally):
        tally = _agreeing(confidence, correct=correct, n_bins=n_bins, edges=edges, groups=groups)
    elif correct is None:
        raise InvalidTypeError(
            "correct is missing: pass whether each prediction was right; or a Tally in place of "
            "both; or a table and its columns."
        )
    else:
        tally = count_calibration(confidence, correct, n_bins=bins, edges=edges, groups=groups)
    return CalibrationCertificate.from_tally(
        tally, delta=level, correction=correction, side=side, columns=recorded_columns(columns)
    )


def _agreeing(tally: Tally, *, correct: Any, n_bins: int | None, edges: Any, groups: Any) -> Tally:
    """`tally`, if what else was passed does not contradict it."""
    if correct is not None or groups is not None:
        raise InvalidTypeError(
            "A tally already holds outcomes and groups: leave correct and groups out."
        )
    if n_bins is not None and n_bins != tally.grid.n_cells:
        raise InvalidValueError(
            f"n_bins={n_bins}, but the tally was counted in {tally.grid.n_cells}: leave it out or "
            "count again."
        )
    if edges is not None and bins_for(n_bins=DEFAULT_BINS, edges=edges, scores=None) != tally.grid:
        raise InvalidValueError(
            "edges differ from those the tally was counted with: leave them out or count again."
        )
    return tally
