"""The accuracy-confidence plot: how accurate the answers above a threshold are, and how many.

Descriptive throughout: no point of the curves is certified.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray

from pacbound.calibration.curves import (
    AccuracyConfidenceBand,
    AccuracyConfidenceCurve,
    accuracy_confidence_band,
    accuracy_confidence_curve,
)
from pacbound.claims.calibration_certificate import CalibrationCertificate
from pacbound.errors import InvalidTypeError
from pacbound.report import palette
from pacbound.report.display import Display, light_grid, limits, panel_below, set_heading

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_FEW = 30
"""The accuracy of fewer rows than this is mostly chance."""


class AccuracyConfidenceDisplay(Display):
    """Accuracy among the rows whose confidence reaches a threshold t, and the share of such rows.

    Descriptive: the curves speak of the rows they were given, and no point on them is certified,
    not even where the intervals are. With a certificate, the band lies between answering by the
    lower ends of its intervals, P[correct | lower >= t], and by the upper ends,
    P[correct | upper >= t]: the paper's green area.

    A curve ends, with a dot, at the largest threshold that at least 30 rows reach, or 1 % of the
    rows if these are fewer: beyond it, accuracy is mostly chance. The share of rows that reach a
    threshold (coverage) is drawn to the end. The axes begin where the curves do: below the left end
    every row is answered.

    `plot` sets `ax_`, `panel_ax_` (coverage; None without it) and `figure_`; save the figure with
    `display.figure_.savefig(path)`. In a notebook the display shows itself.

    Parameters
    ----------
    curve
        What `accuracy_confidence_curve` in `pacbound.calibration.curves` gives.
    band
        What `accuracy_confidence_band` gives for intervals of the same rows.
    delta
        The failure probability that these intervals were certified with, for the title.

    Examples
    --------
    >>> from pacbound.data import fashion_mnist
    >>> table = fashion_mnist()
    >>> correct = table.prediction_fast == table.label
    >>> display = AccuracyConfidenceDisplay.from_predictions(table.confidence_fast, correct)
    >>> display.figure_.savefig("accuracy-confidence.png")
    """

    panel_ax_: Axes | None

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
        >>> display.curve.accuracy.round(3).tolist()
        [0.667, 1.0]
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
        """Draw the curve, the band if there is one, and the coverage below them.

        Parameters
        ----------
        ax
            The axes to draw on, whose lower part the coverage takes; by default a new figure's.
        coverage
            Whether the share of rows that reach each threshold is drawn below.

        Returns
        -------
        AccuracyConfidenceDisplay
            The display itself.

        Raises
        ------
        InvalidTypeError
            If `ax` is not a matplotlib Axes.
        MissingDependencyError
            If matplotlib is not installed.
        """
        self._draw(self._start(ax), coverage=coverage)
        return self

    def _draw(self, ax: Axes, *, coverage: bool = True) -> None:
        self.panel_ax_ = panel = panel_below(ax) if coverage else None
        light_grid(ax)
        curves = [self.curve]
        if self.band is not None:
            curves += [self.band.by_lower, self.band.by_upper]
            _draw_band(ax, panel, self.band)
        _draw_curve(ax, panel, self.curve, "by confidence", color=palette.OBSERVED, linestyle="-")
        ax.set_xlim(*_threshold_limits(curves))
        ax.set_ylim(*_accuracy_limits(curves))
        ax.set_ylabel("Accuracy (share right)")
        if panel is not None:
            panel.set(ylabel="Coverage", ylim=(0, 1.04))
        (panel or ax).set_xlabel("Confidence threshold t (0 to 1)")
        set_heading(ax, self._title())

    def _title(self) -> str:
        delta = "" if self.delta is None else f", delta = {self.delta:g}"
        return (
            f"Accuracy of rows that reach t: n = {self.curve.rows:,}{delta}\nDescriptive: no point "
            "is certified"
        )


def _draw_band(ax: Axes, panel: Axes | None, band: AccuracyConfidenceBand) -> None:
    lower, upper = band.by_lower, band.by_upper
    order = np.argsort(lower.thresholds)
    ax.fill_between(
        lower.thresholds[order],
        _shown_accuracy(lower)[order],
        _shown_accuracy(upper)[order],
        step="pre",
        color=palette.BAND,
        alpha=0.25,
        linewidth=0,
        label="between both",
        gid="band",
    )
    _draw_curve(ax, panel, lower, "by lower ends", color=palette.BAND, linestyle="--")
    _draw_curve(ax, panel, upper, "by upper ends", color=palette.BAND, linestyle=":")


def _draw_curve(
    ax: Axes, panel: Axes | None, curve: AccuracyConfidenceCurve, name: str, **style: Any
) -> None:
    # Between two scores the curve is flat, and a score equal to a threshold passes it: each step
    # holds up to its own threshold.
    order = np.argsort(curve.thresholds)
    thresholds, accuracy = curve.thresholds[order], _shown_accuracy(curve)[order]
    ax.plot(thresholds, accuracy, drawstyle="steps-pre", label=name, gid=name, **style)
    last = np.flatnonzero(np.isfinite(accuracy))[-1:]
    dot: dict[str, Any] = {"linestyle": "none", "marker": "o", "markersize": 5}
    ax.plot(thresholds[last], accuracy[last], color=style["color"], **dot)
    if panel is not None:
        panel.plot(thresholds, curve.coverage[order], drawstyle="steps-pre", gid=name, **style)


def _shown_accuracy(curve: AccuracyConfidenceCurve) -> NDArray[np.float64]:
    """The accuracy where enough rows are left to speak of one, and NaN elsewhere."""
    return np.where(curve.answered >= min(_FEW, curve.rows / 100), curve.accuracy, np.nan)


def _accuracy_limits(curves: list[AccuracyConfidenceCurve]) -> tuple[float, float]:
    low, high = limits(np.concatenate([_shown_accuracy(curve) for curve in curves]), least=0.02)
    return max(low, -0.02), min(high, 1.02)


def _threshold_limits(curves: list[AccuracyConfidenceCurve]) -> tuple[float, float]:
    """From the largest threshold that every row reaches, on every curve, to 1."""
    reached = [curve.thresholds[curve.answered == curve.rows] for curve in curves]
    first = min(float(part.max(initial=0.0)) for part in reached)
    left, right = min(max(first, 0.0), 0.9), 1.0
    return left - 0.02 * (right - left), right + 0.02 * (right - left)
