"""Displays of confidence: reliability diagrams, and accuracy above a threshold."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, Self

import numpy as np

from pacbound.calibration.reliability import (
    AccuracyConfidenceBand,
    AccuracyConfidenceCurve,
    ReliabilityBins,
    accuracy_confidence_band,
    accuracy_confidence_curve,
    induced_reliability,
)
from pacbound.claims.calibration import calibrate
from pacbound.claims.calibration_certificate import CalibrationBins, CalibrationCertificate
from pacbound.errors import InvalidTypeError
from pacbound.figure import (
    Axis,
    Band,
    Boxes,
    Column,
    Dots,
    Figure,
    Flats,
    Floats,
    Level,
    Line,
    Look,
    Mark,
    Panel,
    Steps,
)
from pacbound.figures.bins import (
    UNIT,
    Bins,
    axis_over_bins,
    intervals_by_bin,
    row_shares_below,
)
from pacbound.figures.thresholds import FEW
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


class AccuracyConfidenceDisplay(Display):
    """Accuracy among the rows whose confidence reaches a threshold t, and the share of such rows.

    Descriptive: the curves speak of the rows they were given, and no point on them is certified,
    not even where the intervals are. With a certificate, the band lies between answering by the
    lower ends of its intervals, P[correct | lower >= t], and by the upper ends,
    P[correct | upper >= t]: the paper's green area.

    A curve ends, with a dot, at the largest threshold that at least 30 rows reach, or 1 % of the
    rows if these are fewer: beyond it, accuracy is mostly chance. The share of rows that reach a
    threshold (coverage) is drawn as far as there are rows. The axes begin where the curves do:
    below the left end every row is answered.

    `plot` sets `axes_`, `ax_` and `figure_`; save the figure with `display.figure_.savefig(path)`.
    In a notebook the display shows itself.

    Parameters
    ----------
    figure
        What is shown; the `from_...` methods make it.

    Examples
    --------
    >>> from pacbound.data import fashion_mnist
    >>> table = fashion_mnist()
    >>> correct = table.prediction_fast == table.label
    >>> display = AccuracyConfidenceDisplay.from_predictions(table.confidence_fast, correct)
    >>> display.figure_.savefig("accuracy-confidence.png")
    """

    @classmethod
    def from_predictions(
        cls,
        confidence: Any,
        correct: Any,
        *,
        thresholds: Any = None,
        ax: Axes | None = None,
        coverage: bool = True,
    ) -> Self:
        """Draw the curve of these rows. Descriptive: no guarantee.

        Parameters
        ----------
        confidence
            The confidence of each row, in [0, 1].
        correct
            Whether each prediction was right: bool, or 0 and 1.
        thresholds
            Where the curve is computed; by default at 0, 0.01, …, 1.
        ax
            The axes to draw on; by default those of a new figure.
        coverage
            Whether the share of rows that reach each threshold is drawn below.

        Returns
        -------
        AccuracyConfidenceDisplay
            The display, drawn.

        Raises
        ------
        InvalidValueError
            If there are no rows, or a confidence is not in [0, 1]; if `thresholds` is empty or
            holds NaN.

        Examples
        --------
        >>> display = AccuracyConfidenceDisplay.from_predictions(
        ...     [0.6, 0.8, 0.9], [False, True, True], thresholds=[0.0, 0.7]
        ... )
        >>> display.figure.table().rows
        [['0.0', '0.6667', '1.0000'], ['0.7', '1.0000', '0.6667']]
        """
        curve = accuracy_confidence_curve(confidence, correct, thresholds=thresholds)
        return cls(_with_panel(_accuracy(curve), shown=coverage)).plot(ax)

    @classmethod
    def from_certificate(
        cls,
        certificate: CalibrationCertificate,
        confidence: Any,
        correct: Any,
        *,
        groups: Any = None,
        thresholds: Any = None,
        ax: Axes | None = None,
        coverage: bool = True,
    ) -> Self:
        """Draw the curve of these rows and the band of their certified intervals. Descriptive.

        Parameters
        ----------
        certificate
            A calibration certificate, as `calibrate` gives, from other rows than these.
        confidence, correct, thresholds, ax, coverage
            As for `from_predictions`.
        groups
            The group of each row, if the certificate is for groups.

        Returns
        -------
        AccuracyConfidenceDisplay
            The display, drawn.

        Raises
        ------
        InvalidTypeError
            If `certificate` is not a calibration certificate.
        InvalidValueError
            As for `from_predictions`.

        Examples
        --------
        >>> from pacbound import calibrate
        >>> rows = [0.6, 0.8, 0.9] * 30, [False, True, True] * 30
        >>> certificate = calibrate(*rows, delta=0.05, n_bins=10)
        >>> display = AccuracyConfidenceDisplay.from_certificate(
        ...     certificate, [0.55, 0.75], [False, True], thresholds=[0.0, 0.5]
        ... )
        >>> display.figure.table().head[3:5], display.figure.table().rows[1][3:5]
        (['Accuracy by lower ends', 'Coverage by lower ends'], ['1.0000', '0.5000'])
        """
        if not isinstance(certificate, CalibrationCertificate):
            raise InvalidTypeError.of("certificate", certificate, _EXPECTED)
        curve = accuracy_confidence_curve(confidence, correct, thresholds=thresholds)
        intervals = certificate.interval(confidence, groups)
        band = accuracy_confidence_band(intervals, correct, thresholds=thresholds)
        return cls(_with_panel(_accuracy(curve, band, certificate.delta), shown=coverage)).plot(ax)


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


def _accuracy(
    curve: AccuracyConfidenceCurve,
    band: AccuracyConfidenceBand | None = None,
    delta: float | None = None,
) -> Figure:
    """Accuracy and coverage by threshold, and the band between both ends of intervals."""
    order = np.argsort(curve.thresholds, kind="stable")
    places = curve.thresholds[order]
    curves: list[tuple[str, AccuracyConfidenceCurve, Look, int]] = []
    marks: list[Mark] = []
    if band is not None:
        lower, upper = (_accuracy_shown(part)[order] for part in (band.by_lower, band.by_upper))
        x, low = Steps(places, lower, "other").corners()
        high = Steps(places, upper, "other").corners()[1]
        marks.append(Band(x, low, high, "other", "between both"))
        curves.append(("by lower ends", band.by_lower, "other", 2))
        curves.append(("by upper ends", band.by_upper, "other", 3))
    curves.append(("by confidence", curve, "seen", 0))
    below: list[Mark] = []
    columns = [Column("Threshold", places, "exact")]
    for name, part, look, series in curves:
        shown, answered = _accuracy_shown(part)[order], part.coverage[order]
        marks.append(Steps(places, shown, look, name, series=series))
        last = np.flatnonzero(np.isfinite(shown))[-1:]
        marks.append(Dots(places[last], shown[last], look))
        below.append(Steps(places, np.where(answered > 0, answered, np.nan), look, series=series))
    for name, part, _, _ in [curves[-1], *curves[:-1]]:
        columns.append(Column(f"Accuracy {name}", part.accuracy[order]))
        columns.append(Column(f"Coverage {name}", part.coverage[order]))
    heights = np.concatenate([_accuracy_shown(part) for _, part, _, _ in curves])
    facts = "" if delta is None else f", delta = {delta:g}"
    return Figure(
        f"Accuracy of rows that reach t: n = {curve.rows:,}{facts}",
        "Descriptive: no point is certified.",
        _thresholds([part for _, part, _, _ in curves]),
        [
            Panel(Axis.around("Accuracy (share right)", heights, percent=True), marks),
            Panel(Axis("Coverage", *UNIT, percent=True), below, 0.35),
        ],
        columns,
    )


def _accuracy_shown(curve: AccuracyConfidenceCurve) -> Floats:
    """The accuracy where enough rows are left to speak of one, and NaN elsewhere."""
    return np.where(curve.answered >= min(FEW, curve.rows / 100), curve.accuracy, np.nan)


def _thresholds(curves: list[AccuracyConfidenceCurve]) -> Axis:
    """From the largest threshold that every row reaches, on every curve, to 1."""
    reached = [curve.thresholds[curve.answered == curve.rows] for curve in curves]
    first = min(float(part.max(initial=0.0)) for part in reached)
    return Axis("Confidence threshold t (0 to 1)", min(max(first, 0.0), 0.9), 1.0)
