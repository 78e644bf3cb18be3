"""The accuracy-confidence plot: how accurate the answers above a threshold are, and how many.
Descriptive throughout.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import numpy as np

from pacbound.calibration.curves import (
    AccuracyConfidenceBand,
    AccuracyConfidenceCurve,
    accuracy_confidence_band,
    accuracy_confidence_curve,
)
from pacbound.certificate.calibration import CalibrationCertificate
from pacbound.errors import InvalidTypeError
from pacbound.report import palette
from pacbound.report.canvas import axes_for, headed, light_grid, panel_below, png

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_MARGIN = 0.02


class AccuracyConfidenceDisplay:
    """Accuracy among the rows whose confidence reaches a threshold t, and below it the share of
    rows that do (coverage).

    Descriptive: the curves speak of the rows they were given, and no point on them is certified,
    not even where the intervals are. For a threshold with a guarantee use `certify_abstention`.
    With a certificate, the band lies between answering by the lower ends of its intervals,
    P[correct | lower >= t], and by the upper ends, P[correct | upper >= t]: the paper's green area.
    A curve ends, with a dot, at the largest threshold that any row reaches.

    `plot` sets `ax_`, `panel_ax_` (coverage; None without it) and `figure_`. Where no `ax` is given
    the figure is a new one that pyplot does not know: save it with `display.figure_.savefig(path)`;
    in a notebook the display shows itself.

    Parameters
    ----------
    curve
        What `accuracy_confidence_curve` in `pacbound.calibration.curves` gives.
    band
        What `accuracy_confidence_band` gives for intervals of the same rows.
    delta
        The failure probability that these intervals were certified with.

    Examples
    --------
    >>> from pacbound.data import fashion_mnist
    >>> table = fashion_mnist()
    >>> correct = table.prediction_fast == table.label
    >>> display = AccuracyConfidenceDisplay.from_predictions(table.confidence_fast, correct)
    >>> display.figure_.savefig("accuracy-confidence.png")
    """

    def __init__(
        self,
        curve: AccuracyConfidenceCurve,
        *,
        band: AccuracyConfidenceBand | None = None,
        delta: float | None = None,
    ) -> None:
        self.curve = curve
        self.band = band
        self.delta = delta
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
        thresholds: Any = None,
        ax: Axes | None = None,
        coverage: bool = True,
    ) -> Self:
        """Draw the curve of these rows; without `thresholds`, at 0, 0.01, …, 1. Descriptive: no
        guarantee.
        """
        return cls(accuracy_confidence_curve(confidence, correct, thresholds=thresholds)).plot(
            ax, coverage=coverage
        )

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
        """Draw the curve of these rows and the band of their certified intervals. Descriptive: no
        guarantee.

        The rows should be others than those that were certified. A certificate for groups needs the
        group of each row.

        Examples
        --------
        >>> from pacbound import calibrate
        >>> confidence, correct = [0.6, 0.8, 0.9] * 30, [False, True, True] * 30
        >>> certificate = calibrate(confidence, correct, delta=0.05, n_bins=10)
        >>> display = AccuracyConfidenceDisplay.from_certificate(
        ...     certificate, [0.55, 0.75], [False, True], thresholds=[0.0, 0.5]
        ... )
        >>> display.curve.accuracy.tolist(), display.band.by_lower.accuracy.tolist()
        ([0.5, 0.5], [0.5, 1.0])
        """
        if not isinstance(certificate, CalibrationCertificate):
            raise InvalidTypeError(
                f"certificate is of type {type(certificate).__name__}: expected a "
                "CalibrationCertificate, as calibrate gives."
            )
        curve = accuracy_confidence_curve(confidence, correct, thresholds=thresholds)
        band = accuracy_confidence_band(
            certificate.interval(confidence, groups), correct, thresholds=thresholds
        )
        return cls(curve, band=band, delta=certificate.delta).plot(ax, coverage=coverage)

    def plot(self, ax: Axes | None = None, *, coverage: bool = True) -> Self:
        """Draw on `ax`, whose lower part the coverage takes unless `coverage` is False; or on a new
        figure.
        """
        self._own_figure = ax is None
        self.ax_ = axes_for(ax)
        self.figure_ = self.ax_.figure.figure
        self.panel_ax_ = panel_below(self.ax_) if coverage else None
        light_grid(self.ax_)
        if self.band is not None:
            _draw_band(self.ax_, self.panel_ax_, self.band)
        _draw_curve(
            self.ax_,
            self.panel_ax_,
            self.curve,
            label="by confidence",
            color=palette.OBSERVED,
            style="-",
        )
        _scale(self.ax_)
        self.ax_.set_ylabel("Accuracy (share right)")
        if self.panel_ax_ is not None:
            self.panel_ax_.set(ylabel="Coverage", ylim=(0, 1 + 2 * _MARGIN))
        (self.panel_ax_ or self.ax_).set_xlabel("Confidence threshold t (0 to 1)")
        headed(self.ax_, self._title())
        return self

    def _repr_png_(self) -> bytes | None:
        """The figure for notebooks, unless it was drawn on given axes: whoever made those shows
        them.
        """
        return png(self.figure_) if self._own_figure else None

    def _title(self) -> str:
        delta = "" if self.delta is None else f", delta = {self.delta:g}"
        return (
            f"Accuracy of rows that reach t: n = {self.curve.rows:,}{delta}\nDescriptive: no point "
            "is certified"
        )


def _draw_band(ax: Axes, panel: Axes | None, band: AccuracyConfidenceBand) -> None:
    order = np.argsort(band.by_lower.thresholds)
    ax.fill_between(
        band.by_lower.thresholds[order],
        band.by_lower.accuracy[order],
        band.by_upper.accuracy[order],
        step="pre",
        color=palette.BAND,
        alpha=0.25,
        linewidth=0,
        label="between both",
        gid="band",
    )
    _draw_curve(ax, panel, band.by_lower, label="by lower ends", color=palette.BAND, style="--")
    _draw_curve(ax, panel, band.by_upper, label="by upper ends", color=palette.BAND, style=":")


def _draw_curve(
    ax: Axes,
    panel: Axes | None,
    curve: AccuracyConfidenceCurve,
    *,
    label: str,
    color: str,
    style: str,
) -> None:
    # Between two scores the curve is flat, and a score equal to a threshold passes it: each step
    # holds up to its own threshold.
    order = np.argsort(curve.thresholds)
    thresholds, accuracy = curve.thresholds[order], curve.accuracy[order]
    ax.plot(
        thresholds,
        accuracy,
        drawstyle="steps-pre",
        color=color,
        linestyle=style,
        label=label,
        gid=label,
    )
    last = np.flatnonzero(curve.answered[order] > 0)[-1:]
    ax.plot(
        thresholds[last], accuracy[last], linestyle="none", marker="o", markersize=5, color=color
    )
    if panel is not None:
        panel.plot(
            thresholds,
            curve.coverage[order],
            drawstyle="steps-pre",
            color=color,
            linestyle=style,
            gid=label,
        )


def _scale(ax: Axes) -> None:
    """From the least accuracy to 1, and all thresholds from 0 to 1."""
    bottom = min(max(ax.get_ylim()[0], -_MARGIN), 0.9)
    ax.set(xlim=(-_MARGIN, 1 + _MARGIN), ylim=(bottom, 1 + _MARGIN * (1 - bottom)))
