"""Calibration errors: how far what a classifier said is from what came true.

Both describe the rows they were given, with no guarantee about others. Lower is better. For a
guarantee about other rows use the intervals of a certificate.
"""

from __future__ import annotations

from typing import Any

from pacbound.calibration.reliability import induced_reliability, reliability


def expected_calibration_error(confidence: Any, correct: Any, *, n_bins: int = 20) -> float:
    """The mean distance between confidence and accuracy over bins of equal width (ECE).

    Descriptive: it comes with no guarantee.

    The sum over bins of |S_j| / |S| times |mean confidence - share right|, as in the paper. Bins
    are (edge, next edge], the first one closed on both sides, with edges k / n_bins compared
    exactly: every row is in one bin, values on an edge included.

    Parameters
    ----------
    confidence
        The confidence of each row, in [0, 1].
    correct
        Whether each prediction was right: bool, or 0 and 1.
    n_bins
        The number of bins of equal width.

    Returns
    -------
    float
        The error, from 0 to 1.

    Raises
    ------
    InvalidTypeError
        If an argument does not hold numbers of the expected kind.
    InvalidValueError
        If there are no rows, lengths differ, or a confidence is not in [0, 1]; if `n_bins` is not
        at least 1.

    Examples
    --------
    Four answers at 75 % of which three were right, and one sure one that was wrong:

    >>> expected_calibration_error([0.75, 0.75, 0.75, 0.75, 1.0], [True, True, True, False, False])
    0.2
    """
    bins = reliability(confidence, correct, n_bins=n_bins)
    return bins.averaged(bins.nearest)


def induced_calibration_error(
    intervals: Any, estimates: Any, correct: Any, *, n_bins: int = 20
) -> tuple[float, float]:
    """The calibration error of intervals, as an interval itself: the paper's induced ECE.

    Descriptive: that it contains zero with high probability is unproven, even where the intervals
    are certified. Rows are sorted into bins by their estimate. With Conf_j from the smallest lower
    to the largest upper end in bin j, the result is the sum over bins of |S_j| / |S| times the
    infimum, and the supremum, of |p - share right| over p in Conf_j. Rows whose estimate is NaN,
    those of a calibration bin without data, form a cell of their own.

    Parameters
    ----------
    intervals
        (n, 2) lower and upper ends, as `certificate.interval(confidence)` gives.
    estimates
        (n,) estimates that sort the rows into bins, as `certificate.estimate(confidence)` gives;
        NaN where there is none.
    correct
        Whether each prediction was right: bool, or 0 and 1.
    n_bins
        The number of bins of equal width.

    Returns
    -------
    tuple of float
        The lower and the upper end of the error.

    Raises
    ------
    InvalidTypeError
        If an argument does not hold numbers of the expected kind.
    InvalidValueError
        If there are no rows, lengths differ, or a number is not in [0, 1]; if a lower end is above
        its upper end; if `n_bins` is not at least 1.

    Examples
    --------
    For a calibration certificate pass `certificate.interval(confidence)` and
    `certificate.estimate(confidence)`:

    >>> induced_calibration_error([[0.5, 0.75], [0.5, 0.75]], [0.625, 0.625], [True, True])
    (0.25, 0.5)
    """
    bins = induced_reliability(intervals, estimates, correct, n_bins=n_bins)
    return bins.averaged(bins.nearest), bins.averaged(bins.farthest)
