"""Calibration errors and scores: how far what a classifier said is from what came true.

All of them describe the rows they were given, with no guarantee about others. Lower is better in
each. For a guarantee about other rows use the intervals of a certificate.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pacbound.calibration.reliability import induced_reliability, reliability, some_rows
from pacbound.errors import InvalidValueError
from pacbound.tally.columns import Array, as_classes, checked_scores, same_rows
from pacbound.tally.probabilities import as_probabilities

_ENTRIES = 2**17
# Half-precision softmax outputs add up to 1 within this; one-versus-rest scores and logits do not.
_SUM_TOLERANCE = 0.01


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


def maximum_calibration_error(confidence: Any, correct: Any, *, n_bins: int = 20) -> float:
    """The largest distance between confidence and accuracy in any bin that holds rows (MCE).

    Descriptive: it comes with no guarantee. The bins are those of `expected_calibration_error`. One
    bin with one row can decide the result.

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
    >>> maximum_calibration_error([0.75, 0.75, 0.75, 0.75, 1.0], [True, True, True, False, False])
    1.0
    """
    return float(np.nanmax(reliability(confidence, correct, n_bins=n_bins).nearest))


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


def brier_score(probabilities: Any, labels: Any) -> float:
    """The mean squared distance between the probabilities and the truth, summed over all classes.

    Descriptive: it comes with no guarantee. This is the definition for many classes. For two
    classes it is twice the Brier score of one class's probability.

    Parameters
    ----------
    probabilities
        (rows, classes) probabilities. Each row must sum to 1, within 0.01.
    labels
        The column of each row's true class.

    Returns
    -------
    float
        The score, from 0 to 2.

    Raises
    ------
    InvalidTypeError
        If an argument does not hold numbers of the expected kind.
    InvalidValueError
        If there are no rows, lengths differ, a row does not sum to 1, a probability is not in
        [0, 1], or a label is not a column.

    Examples
    --------
    >>> brier_score([[0.5, 0.5], [0.0, 1.0]], [0, 1])
    0.25
    """
    total, rows = 0.0, 0
    for block, classes in _labelled_blocks(probabilities, labels):
        block[np.arange(len(block)), classes] -= 1.0
        total += float(np.square(block).sum())
        rows += len(block)
    return total / rows


def negative_log_likelihood(probabilities: Any, labels: Any) -> float:
    """The mean of -ln(probability of the true class), in nats. Descriptive: no guarantee.

    A true class with probability zero gives infinity: nothing is clipped.

    Parameters
    ----------
    probabilities
        (rows, classes) probabilities. Each row must sum to 1, within 0.01.
    labels
        The column of each row's true class.

    Returns
    -------
    float
        The mean, from 0 to infinity.

    Raises
    ------
    InvalidTypeError
        If an argument does not hold numbers of the expected kind.
    InvalidValueError
        If there are no rows, lengths differ, a row does not sum to 1, a probability is not in
        [0, 1], or a label is not a column.

    Examples
    --------
    >>> round(negative_log_likelihood([[0.5, 0.5], [0.0, 1.0]], [0, 1]), 6)
    0.346574
    >>> negative_log_likelihood([[1.0, 0.0]], [1])
    inf
    """
    total, rows = 0.0, 0
    for block, classes in _labelled_blocks(probabilities, labels):
        with np.errstate(divide="ignore"):
            total += float(np.log(block[np.arange(len(block)), classes]).sum())
        rows += len(block)
    # Adding zero turns -0.0, the value for sure and right answers, into 0.0.
    return -total / rows + 0.0


def _labelled_blocks(
    probabilities: Any, labels: Any
) -> Iterator[tuple[NDArray[np.float64], Array]]:
    """Checked copies of the probabilities in blocks of rows, with the true classes."""
    same_rows(probabilities=probabilities, labels=labels)
    table = as_probabilities(probabilities, "probabilities")
    n_classes = table.shape[1]
    classes = as_classes(labels, n_classes, "labels")
    some_rows(probabilities=table, labels=classes)
    rows = max(1, _ENTRIES // n_classes)
    for start in range(0, len(table), rows):
        flat = checked_scores(
            table[start : start + rows].ravel(), "probabilities.ravel()", start=start * n_classes
        )
        block = flat.reshape(-1, n_classes)
        _check_sums(block, start)
        yield block, classes[start : start + rows]


def _check_sums(block: NDArray[np.float64], start: int) -> None:
    sums = block.sum(axis=1)
    strange = np.flatnonzero(np.abs(sums - 1.0) > _SUM_TOLERANCE)
    if strange.size:
        row = int(strange[0])
        raise InvalidValueError(
            f"probabilities[{start + row}] sums to {sums[row]:.6g}: expected 1. Pass softmax "
            "outputs over all classes; one-versus-rest scores have to be normalised first."
        )
