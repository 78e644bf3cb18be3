"""Reliability diagrams."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, Self

import numpy as np

from pacbound.calibration.reliability import (
    ReliabilityBins,
    induced_reliability,
)
from pacbound.claims.calibration import calibrate
from pacbound.claims.calibration_certificate import CalibrationBins, CalibrationCertificate
from pacbound.figure import (
    Axis,
    Boxes,
    Column,
    Dots,
    Figure,
    Flats,
    Level,
    Line,
    Mark,
    Panel,
)
from pacbound.figures.bins import (
    Bins,
    axis_over_bins,
    intervals_by_bin,
    row_shares_below,
)
from pacbound.report.certificates import figure_of
from pacbound.report.with_matplotlib import Display

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_EXPECTED: Final = "a CalibrationCertificate, as calibrate gives"


class ReliabilityDisplay(Display):
    """A reliability diagram, and below it the share of the rows in each bin.

    Made from a certificate, each bin is a box: as wide as the bin and as high as its interval for
    the true confidence. All boxes of the certificate hold together with probability at least 1 -
    delta. A bin without rows is hatched from 0 to 1. The dots, the shares of rows that were right,
    are what was seen and have no guarantee.

    Made from intervals, it is the paper's diagram for held-out rows: each bin of the estimate is a
    horizontal interval, from the smallest lower end to the largest upper end of its rows (Conf_j),
    at the height of their accuracy. Descriptive: that these cross the diagonal is not certified.

    The axes begin at the first bin with rows. `plot` sets `axes_`, `ax_` and `figure_`; save the
    figure with `display.figure_.savefig(path)`. In a notebook the display shows itself.

    Parameters
    ----------
    figure
        What is shown; the `from_...` methods make it.

    Examples
    --------
    >>> from pacbound.data import fashion_mnist
    >>> table = fashion_mnist()
    >>> correct = table.prediction_fast == table.label
    >>> display = ReliabilityDisplay.from_predictions(table.confidence_fast, correct, delta=0.01)
    >>> display.figure_.savefig("reliability.svg")
    """

    # The certificate that is drawn, if there is one.
    certificate: CalibrationCertificate | None = None

    @classmethod
    def from_predictions(
        cls,
        confidence: Any,
        correct: Any,
        *,
        delta: float,
        n_bins: int = 20,
        ax: Axes | None = None,
        histogram: bool = True,
    ) -> Self:
        """Certify these rows and draw the certificate, which is kept as `.certificate`.

        All intervals hold together with probability at least 1 - `delta`, under the assumptions of
        `pacbound.calibrate`: among them that the rows are independent, drawn as in use, and took no
        part in training.

        Parameters
        ----------
        confidence
            The confidence of each row, in [0, 1].
        correct
            Whether each prediction was right: bool, or 0 and 1.
        delta
            The chance that any of the intervals is wrong, 0 < delta <= 0.5.
        n_bins
            The number of bins of equal width.
        ax
            The axes to draw on; by default those of a new figure.
        histogram
            Whether the share of rows in each bin is drawn below.

        Returns
        -------
        ReliabilityDisplay
            The display, drawn.

        Raises
        ------
        InvalidTypeError, InvalidValueError
            As `pacbound.calibrate`, for rows that cannot be certified.

        Examples
        --------
        >>> display = ReliabilityDisplay.from_predictions(
        ...     [0.7, 0.9, 0.95], [False, True, True], delta=0.05, n_bins=5
        ... )
        >>> display.certificate.n, display.ax_.get_ylabel()
        (3, 'Accuracy (share right)')
        """
        certificate = calibrate(confidence, correct, delta=delta, n_bins=n_bins)
        return cls.from_certificate(certificate, ax=ax, histogram=histogram)

    @classmethod
    def from_certificate(
        cls,
        certificate: CalibrationCertificate,
        *,
        group: str | int | None = None,
        ax: Axes | None = None,
        histogram: bool = True,
    ) -> Self:
        """Draw a calibration certificate, or the table of one group of it.

        Parameters
        ----------
        certificate
            A calibration certificate, as `calibrate` or `load_certificate` gives.
        group
            The group, predicted class or label whose table is drawn, if there is one for each.
        ax
            The axes to draw on; by default those of a new figure.
        histogram
            Whether the share of rows in each bin is drawn below.

        Returns
        -------
        ReliabilityDisplay
            The display, drawn.

        Raises
        ------
        InvalidTypeError
            If `certificate` is not a calibration certificate.
        InvalidValueError
            If the certificate has no such group, or has groups and none was named.
        CertificateError
            If the certificate was changed after it was made.

        Examples
        --------
        >>> from pacbound import calibrate
        >>> certificate = calibrate([0.7, 0.9] * 50, [False, True] * 50, delta=0.05, n_bins=5)
        >>> ReliabilityDisplay.from_certificate(certificate).figure.table().rows[0]
        ['(0.6, 0.8]', '50', '0', '0.0000', '0.0000', '0.0837']
        """
        figure = figure_of(certificate, CalibrationCertificate, _EXPECTED, group)
        display = cls(_with_panel(figure, shown=histogram))
        display.certificate = certificate
        return display.plot(ax)

    @classmethod
    def from_intervals(
        cls,
        intervals: Any,
        estimates: Any,
        correct: Any,
        *,
        n_bins: int = 20,
        ax: Axes | None = None,
        histogram: bool = True,
    ) -> Self:
        """Draw the intervals claimed for held-out rows against their accuracy. Descriptive.

        This is the paper's induced reliability diagram. It has no guarantee.

        Parameters
        ----------
        intervals
            (n, 2) lower and upper ends, as `certificate.interval(confidence)` gives.
        estimates
            (n,) estimates that sort the rows into bins, as `certificate.estimate(confidence)`
            gives; NaN where there is none.
        correct
            Whether each prediction was right: bool, or 0 and 1.
        n_bins
            The number of bins of equal width.
        ax
            The axes to draw on; by default those of a new figure.
        histogram
            Whether the share of rows in each bin is drawn below.

        Returns
        -------
        ReliabilityDisplay
            The display, drawn.

        Raises
        ------
        InvalidValueError
            If there are no rows, lengths differ, or numbers are not in [0, 1]; if a lower end is
            above its upper end.

        Examples
        --------
        >>> from pacbound import calibrate
        >>> confidence, correct = [0.6, 0.8, 0.9] * 30, [False, True, True] * 30
        >>> certificate = calibrate(confidence, correct, delta=0.05, n_bins=10)
        >>> fresh = [0.55, 0.75, 0.85]
        >>> intervals, estimates = certificate.interval(fresh), certificate.estimate(fresh)
        >>> display = ReliabilityDisplay.from_intervals(intervals, estimates, [False, True, True])
        >>> display.figure.title
        'Reliability of intervals: n = 3, 20 bins'
        """
        bins = induced_reliability(intervals, estimates, correct, n_bins=n_bins)
        return cls.from_bins(bins, ax=ax, histogram=histogram)

    @classmethod
    def from_bins(
        cls,
        bins: ReliabilityBins | CalibrationBins,
        *,
        ax: Axes | None = None,
        histogram: bool = True,
    ) -> Self:
        """Draw what was claimed for the rows of each bin against their accuracy. Descriptive.

        Parameters
        ----------
        bins
            What `induced_reliability` or `reliability` in `pacbound.calibration.reliability` gives;
            or a table of a certificate, whose title then claims no delta.
        ax, histogram
            As for `from_intervals`.

        Returns
        -------
        ReliabilityDisplay
            The display, drawn.

        Examples
        --------
        >>> from pacbound.calibration.reliability import reliability
        >>> display = ReliabilityDisplay.from_bins(reliability([0.6, 0.9], [False, True]))
        >>> display.figure.caption
        'Calibration error 0.3500. Descriptive: nothing here is certified.'
        """
        figure = _table(bins) if isinstance(bins, CalibrationBins) else _claimed(bins)
        return cls(_with_panel(figure, shown=histogram)).plot(ax)


def _with_panel(figure: Figure, *, shown: bool) -> Figure:
    return figure if shown else replace(figure, panels=figure.panels[:1])


def _table(bins: CalibrationBins) -> Figure:
    columns = (bins.begin, bins.end, bins.trials, bins.successes, bins.lower, bins.upper)
    title = f"Intervals: n = {int(bins.trials.sum()):,}, {len(bins)} bins"
    return intervals_by_bin(Bins(*columns), title=title)


def _claimed(bins: ReliabilityBins) -> Figure:
    """Claims at the height of the accuracy: a level line for an interval, a dot for a number."""
    count = len(bins.edges) - 1
    begin, end = bins.edges[:-1], bins.edges[1:]
    trials, lower, upper = bins.trials[:count], bins.lower[:count], bins.upper[:count]
    share, seen = bins.accuracy[:count], trials > 0
    wide, single = seen & (lower < upper), seen & (lower >= upper)
    without = int(bins.trials[count:].sum())
    claimed = np.concatenate([lower[seen], upper[seen]])
    label = "Confidence (claimed; below: estimated)" if wide.any() else "Confidence (0 to 1)"
    x = axis_over_bins(np.append(begin[seen], claimed), np.append(end[seen], claimed), label)
    marks: list[Mark] = [Line([x.low, x.high], [x.low, x.high], "ideal", "claimed equals accuracy")]
    if wide.any():
        ends = lower[wide], upper[wide], share[wide]
        marks.append(Flats(*ends, "certified", "claimed interval"))
    if single.any():
        marks.append(Line(lower[single], share[single], "seen"))
        marks.append(Dots(lower[single], share[single], "seen", "claimed confidence"))
    if without:
        rows = f"no estimate: {without:,} row{'s' if without > 1 else ''}"
        marks.append(Level(float(bins.accuracy[count]), "unknown", rows))
    y = Axis.around("Accuracy (share right)", [*bins.accuracy, x.low, x.high], percent=True)
    below = row_shares_below(begin[seen], end[seen], trials[seen] / bins.trials.sum())
    if not seen.all():
        empty = begin[~seen], end[~seen], np.zeros((~seen).sum())
        gaps = Boxes(*empty, np.full((~seen).sum(), below.y.high), "unknown", "no rows")
        below = replace(below, marks=[*below.marks, gaps])
    columns = [
        Column("Bin", [f"{a:.4g} to {b:.4g}" for a, b in zip(begin, end, strict=True)], "text"),
        Column("Rows", trials, "count"),
        Column("Share right", share),
        Column("Claimed from", lower),
        Column("Claimed to", upper),
    ]
    words = _described(bins, points=not wide.any())
    return Figure(*words, x, [Panel(y, marks), below], columns)


def _described(bins: ReliabilityBins, *, points: bool) -> tuple[str, str]:
    """The title and the caption."""
    least, most = bins.averaged(bins.nearest), bins.averaged(bins.farthest)
    of = "Reliability" if points else "Reliability of intervals"
    error = (
        f"Calibration error {least:.4f}"
        if points
        else f"Induced calibration error [{least:.4f}, {most:.4f}]"
    )
    return (
        f"{of}: n = {int(bins.trials.sum()):,}, {len(bins.edges) - 1} bins",
        f"{error}. Descriptive: nothing here is certified.",
    )
