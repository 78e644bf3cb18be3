"""The reliability diagram: confidence against accuracy, with the intervals certified or claimed,
and the rows per bin.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import numpy as np

from pacbound.calibration.calibrate import calibrate
from pacbound.calibration.reliability import ReliabilityBins, induced_reliability
from pacbound.certificate.calibration import CalibrationBins, CalibrationCertificate
from pacbound.errors import InvalidTypeError, InvalidValueError
from pacbound.procedures.calibration import Side
from pacbound.report import palette
from pacbound.report.boxes import draw_rows, hatch_no_rows
from pacbound.report.canvas import axes_for, headed, light_grid, panel_below, png
from pacbound.report.certified_bins import draw_certified_bins, single_values
from pacbound.report.claimed_bins import draw_claimed_bins
from pacbound.tally.tally import Scope

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_MARGIN = 0.02
_TABLES: dict[Scope, tuple[str, str]] = {
    "groups": ("Group", "groups"),
    "overlapping-groups": ("Group", "groups"),
    "per-class": ("Predicted class", "predicted classes"),
    "all-labels": ("Label", "labels"),
}
_ENDS: dict[Side, str] = {"both": "intervals", "lower": "lower ends", "upper": "upper ends"}


class ReliabilityDisplay:
    """A reliability diagram, and below it the share of the rows in each bin.

    Made from a certificate, each bin is a box: as wide as the bin and as high as its interval for
    the true confidence. All boxes of the certificate hold together with probability at least 1 -
    delta. A bin without rows is hatched from 0 to 1. The dots, the shares of rows that were right,
    are what was seen and have no guarantee.

    Made from intervals, it is the paper's diagram for held-out rows: each bin of the estimate is a
    horizontal interval, from the smallest lower end to the largest upper end of its rows (Conf_j),
    at the height of their accuracy. Descriptive: that these cross the diagonal is not certified.

    `plot` sets `ax_`, `panel_ax_` (the share of rows; None without it) and `figure_`. Where no `ax`
    is given the figure is a new one that pyplot does not know: save it with
    `display.figure_.savefig(path)`; in a notebook the display shows itself.

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
        self.ax_: Axes
        self.panel_ax_: Axes | None
        self.figure_: Figure
        self._own_figure = False

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
        """Draw a calibration certificate, or the table of one `group` of it; one that was changed
        in its file is refused.
        """
        if not isinstance(certificate, CalibrationCertificate):
            raise InvalidTypeError(
                f"certificate is of type {type(certificate).__name__}: expected a "
                "CalibrationCertificate, as calibrate gives."
            )
        certificate.require_intact()
        name = None if group is None else str(group)
        bins = _table(certificate, name)
        return cls(bins, certificate=certificate, group=name).plot(ax, histogram=histogram)

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
        """Draw how the intervals claimed for held-out rows compare with their accuracy: the paper's
        induced diagram.

        Descriptive: no guarantee. `intervals` is (n, 2) and `estimates` (n,), NaN where there is
        none.

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
        """Draw on `ax`, whose lower part the share of rows takes unless `histogram` is False; or on
        a new figure.
        """
        self._own_figure = ax is None
        self.ax_ = axes_for(ax)
        self.figure_ = self.ax_.figure.figure
        self.panel_ax_ = panel_below(self.ax_) if histogram else None
        self.ax_.plot(
            [0, 1],
            [0, 1],
            color=palette.IDEAL,
            linestyle="--",
            linewidth=1,
            label="ideal",
            zorder=1.5,
        )
        light_grid(self.ax_)
        if isinstance(self.bins, CalibrationBins):
            draw_certified_bins(
                self.ax_, self.bins, side=self.certificate.side if self.certificate else "both"
            )
        else:
            draw_claimed_bins(self.ax_, self.bins)
        if self.panel_ax_ is not None:
            self._draw_panel(self.panel_ax_)
        self.ax_.set(xlim=(-_MARGIN, 1 + _MARGIN), ylim=(-_MARGIN, 1 + _MARGIN))
        self.ax_.set_ylabel(self._accuracy_label(), parse_math=False)
        (self.panel_ax_ or self.ax_).set_xlabel(self._score_label(), parse_math=False)
        headed(self.ax_, self._title(), panel=self.panel_ax_)
        return self

    def _repr_png_(self) -> bytes | None:
        """The figure for notebooks, unless it was drawn on given axes: whoever made those shows
        them.
        """
        return png(self.figure_) if self._own_figure else None

    def _draw_panel(self, panel: Axes) -> None:
        bins = self.bins
        begin, end = (
            (bins.begin, bins.end)
            if isinstance(bins, CalibrationBins)
            else (bins.edges[:-1], bins.edges[1:])
        )
        # An entry after the last bin, for rows without an estimate, has no place on the axis; the
        # legend counts them.
        trials = bins.trials[: len(begin)]
        draw_rows(panel, begin, end, trials / max(1, int(bins.trials.sum())))
        if isinstance(bins, ReliabilityBins):
            hatch_no_rows(panel, begin[trials == 0], end[trials == 0])
        panel.set_ylabel("Row share")

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
