"""The reliability diagram: confidence against accuracy, and the share of rows in each bin.

It shows what a certificate holds for each bin, or what was claimed for the rows of each bin.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import numpy as np

from pacbound.calibration.reliability import ReliabilityBins, induced_reliability
from pacbound.claims.calibration import calibrate
from pacbound.claims.calibration_certificate import CalibrationBins, CalibrationCertificate
from pacbound.errors import InvalidTypeError, InvalidValueError
from pacbound.procedures.calibration import Side
from pacbound.report import palette
from pacbound.report.bins import (
    draw_certified_bins,
    draw_claimed_bins,
    draw_row_shares,
    single_values,
)
from pacbound.report.display import Display, light_grid, panel_below, set_heading
from pacbound.tally.questions import Scope

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_MARGIN = 0.02
_TABLES: dict[Scope, tuple[str, str]] = {
    "groups": ("Group", "groups"),
    "overlapping-groups": ("Group", "groups"),
    "per-class": ("Predicted class", "predicted classes"),
    "all-labels": ("Label", "labels"),
}
_ENDS: dict[Side, str] = {"both": "intervals", "lower": "lower ends", "upper": "upper ends"}


class ReliabilityDisplay(Display):
    """A reliability diagram, and below it the share of the rows in each bin.

    Made from a certificate, each bin is a box: as wide as the bin and as high as its interval for
    the true confidence. All boxes of the certificate hold together with probability at least 1 -
    delta. A bin without rows is hatched from 0 to 1. The dots, the shares of rows that were right,
    are what was seen and have no guarantee.

    Made from intervals, it is the paper's diagram for held-out rows: each bin of the estimate is a
    horizontal interval, from the smallest lower end to the largest upper end of its rows (Conf_j),
    at the height of their accuracy. Descriptive: that these cross the diagonal is not certified.

    `plot` sets `ax_`, `panel_ax_` (the share of rows; None without it) and `figure_`; save the
    figure with `display.figure_.savefig(path)`. In a notebook the display shows itself.

    Parameters
    ----------
    bins
        One table of a certificate, or the bins from `induced_reliability` or `reliability` in
        `pacbound.calibration.reliability`.
    certificate
        The certificate that the table is from.
    group
        Which of its tables, if there is one for each group.

    Examples
    --------
    >>> from pacbound.data import fashion_mnist
    >>> table = fashion_mnist()
    >>> correct = table.prediction_fast == table.label
    >>> display = ReliabilityDisplay.from_predictions(table.confidence_fast, correct, delta=0.01)
    >>> display.figure_.savefig("reliability.svg")
    """

    panel_ax_: Axes | None

    def __init__(
        self,
        bins: CalibrationBins | ReliabilityBins,
        *,
        certificate: CalibrationCertificate | None = None,
        group: str | None = None,
    ) -> None:
        self.bins = bins
        self.certificate = certificate
        self.group = group

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
            Whether the share of rows in each bin is drawn below; never where rows were chosen per
            bin (`stratify`), which says nothing about shares.

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
        >>> ReliabilityDisplay.from_certificate(certificate).bins.trials.tolist()
        [0, 0, 0, 50, 50]
        """
        if not isinstance(certificate, CalibrationCertificate):
            raise InvalidTypeError(
                f"certificate is of type {type(certificate).__name__}: expected a "
                "CalibrationCertificate, as calibrate gives."
            )
        certificate.require_intact()
        name = None if group is None else str(group)
        bins = _table(certificate, name)
        # Where rows were chosen per bin, how many a bin has says nothing.
        shares = histogram and not (certificate.draw and certificate.draw.by == "strata")
        return cls(bins, certificate=certificate, group=name).plot(ax, histogram=shares)

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
        >>> display.bins.trials.sum()
        np.int64(3)
        """
        return cls(induced_reliability(intervals, estimates, correct, n_bins=n_bins)).plot(
            ax, histogram=histogram
        )

    def plot(self, ax: Axes | None = None, *, histogram: bool = True) -> Self:
        """Draw the bins, the diagonal, and the share of rows below them.

        Parameters
        ----------
        ax
            The axes to draw on, whose lower part the share of rows takes; by default a new
            figure's.
        histogram
            Whether the share of rows in each bin is drawn below.

        Returns
        -------
        ReliabilityDisplay
            The display itself.

        Raises
        ------
        InvalidTypeError
            If `ax` is not a matplotlib Axes.
        MissingDependencyError
            If matplotlib is not installed.
        """
        self._draw(self._start(ax), histogram=histogram)
        return self

    def _draw(self, ax: Axes, *, histogram: bool = True) -> None:
        self.panel_ax_ = panel = panel_below(ax) if histogram else None
        ideal: dict[str, Any] = {"color": palette.IDEAL, "linestyle": "--", "linewidth": 1}
        ax.plot([0, 1], [0, 1], label="ideal", zorder=1.5, **ideal)
        light_grid(ax)
        if isinstance(self.bins, CalibrationBins):
            side = self.certificate.side if self.certificate else "both"
            draw_certified_bins(ax, self.bins, side=side)
        else:
            draw_claimed_bins(ax, self.bins)
        if panel is not None:
            draw_row_shares(panel, self.bins)
            panel.set_ylabel("Row share")
        ax.set(xlim=(-_MARGIN, 1 + _MARGIN), ylim=(-_MARGIN, 1 + _MARGIN))
        ax.set_ylabel(self._accuracy_label(), parse_math=False)
        (panel or ax).set_xlabel(self._score_label(), parse_math=False)
        set_heading(ax, self._title(), panel=panel)

    def _score_label(self) -> str:
        if isinstance(self.bins, ReliabilityBins) and not _is_points(self.bins):
            return (
                "Confidence (claimed; below: estimated)"
                if self.panel_ax_
                else "Claimed confidence (0 to 1)"
            )
        return (
            f"Probability of label {self.group} (0 to 1)"
            if self._of_labels
            else "Confidence (0 to 1)"
        )

    def _accuracy_label(self) -> str:
        return (
            f"Label {self.group} (share of rows)" if self._of_labels else "Accuracy (share right)"
        )

    @property
    def _of_labels(self) -> bool:
        return self.certificate is not None and self.certificate.scope == "all-labels"

    def _title(self) -> str:
        if isinstance(self.bins, ReliabilityBins):
            return _described(self.bins)
        return _certified(self.bins, self.certificate, self.group)


def _table(certificate: CalibrationCertificate, group: str | None) -> CalibrationBins:
    if group in certificate.tables:
        return certificate.tables[group]
    if not certificate.groups:
        raise InvalidValueError(
            f"group={group!r}, but this certificate has no groups: leave it out."
        )
    shown = ", ".join(repr(name) for name in certificate.groups[:10]) + (
        ", …" if len(certificate.groups) > 10 else ""
    )
    raise InvalidValueError(
        f"group={group!r} is not one of this certificate's {len(certificate.groups)} groups: pass "
        f"one of {shown}."
    )


def _certified(
    bins: CalibrationBins, certificate: CalibrationCertificate | None, group: str | None
) -> str:
    cells = (
        f"{len(bins)} "
        f"{'cells' if single_values(bins).any() else 'bins' if len(bins) > 1 else 'bin'}"
    )
    rows = int(bins.trials.sum())
    if certificate is None:
        return f"Intervals: n = {rows:,}, {cells}"
    facts = f"{cells}, delta = {certificate.delta:g}"
    sure = "hold at once with probability ≥ 1 - delta"
    what = _ENDS[certificate.side]
    if group is None:
        return f"Certified confidence: n = {rows:,}, {facts}\nAll {what} {sure}"
    one, many = _TABLES[certificate.scope]
    return (
        f"{one} {group}: {rows:,} of n = {certificate.n:,}, {facts}\nAll {what} of all "
        f"{len(certificate.groups)} {many} {sure}"
    )


def _described(bins: ReliabilityBins) -> str:
    least, most = bins.averaged(bins.nearest), bins.averaged(bins.farthest)
    points = _is_points(bins)
    error = (
        f"Calibration error {least:.4f}"
        if points
        else f"Induced calibration error [{least:.4f}, {most:.4f}]"
    )
    of = "Reliability" if points else "Reliability of intervals"
    return (
        f"{of}: n = {int(bins.trials.sum()):,}, {len(bins.edges) - 1} bins\n{error} (descriptive)"
    )


def _is_points(bins: ReliabilityBins) -> bool:
    return np.array_equal(bins.lower, bins.upper, equal_nan=True)
