"""The recall plot: how many positives are found, and how many rows are flagged, by threshold."""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

import numpy as np

from pacbound.claims.recall import RecallCertificate, RecallCurve
from pacbound.errors import InvalidTypeError
from pacbound.report import palette
from pacbound.report.display import Display, light_grid, panel_below, set_heading

if TYPE_CHECKING:
    from matplotlib.axes import Axes


class RecallDisplay(Display):
    """The share of the positives that is flagged against the threshold, and below it the share of
    all rows that is flagged; the certified threshold, and the target.

    The curves are descriptive: they are what was seen in the rows that certified, and no point of
    them is certified. At the certified threshold, the vertical line, what is certified is the
    target, the dashed line, not the height of the curve. A refusal has no vertical line.

    `plot` sets `ax_`, `panel_ax_` (rows flagged) and `figure_`; save the figure with
    `display.figure_.savefig(path)`. In a notebook the display shows itself.

    Parameters
    ----------
    curve
        What `RecallCertificate.recall_curve` gives.
    rows, positives
        How many rows the curve is of, and how many of them are positive.
    target
        The share of the positives that must be flagged.
    delta
        The chance that fewer are.
    threshold
        The certified threshold; -inf if there is none.

    Examples
    --------
    >>> from pacbound import certify_recall
    >>> scores, positive = [0.9] * 300 + [0.1] * 700, [True] * 300 + [False] * 700
    >>> certificate = certify_recall(scores, positive, target=0.95, delta=0.01)
    >>> display = RecallDisplay.from_certificate(certificate)
    >>> display.figure_.savefig("recall.png")
    """

    panel_ax_: Axes

    def __init__(  # noqa: PLR0913, RUF100
        self,
        curve: RecallCurve,
        *,
        rows: int,
        positives: int,
        target: float,
        delta: float,
        threshold: float,
    ) -> None:
        self.curve = curve
        self.rows = rows
        self.positives = positives
        self.target = target
        self.delta = delta
        self.threshold = threshold

    @classmethod
    def from_certificate(cls, certificate: RecallCertificate, *, ax: Axes | None = None) -> Self:
        """Draw the curves of the rows that certified, and the threshold.

        Parameters
        ----------
        certificate
            A recall certificate, as `certify_recall` gives.
        ax
            The axes to draw on; by default those of a new figure.

        Returns
        -------
        RecallDisplay
            The display, drawn.

        Raises
        ------
        InvalidTypeError
            If `certificate` is not a recall certificate.

        Examples
        --------
        >>> from pacbound import certify_recall
        >>> refused = certify_recall([0.5, 0.75], [False, True], target=0.9, delta=0.1)
        >>> RecallDisplay.from_certificate(refused).curve.recall.tolist()
        [1.0, 1.0]
        """
        if not isinstance(certificate, RecallCertificate):
            raise InvalidTypeError(
                f"certificate is of type {type(certificate).__name__}: expected a "
                "RecallCertificate, as certify_recall gives."
            )
        return cls(
            certificate.recall_curve(),
            rows=certificate.n,
            positives=certificate.positives,
            target=certificate.target,
            delta=certificate.delta,
            threshold=certificate.threshold,
        ).plot(ax)

    def _draw(self, ax: Axes) -> None:
        self.panel_ax_ = panel = panel_below(ax)
        light_grid(ax)
        # Thresholds rise to the right; a score equal to a threshold reaches it, so each step holds
        # up to its own threshold.
        thresholds = self.curve.thresholds[::-1]
        for axes, name, values in (
            (ax, "found", self.curve.recall),
            (panel, "flagged", self.curve.flagged),
        ):
            axes.plot(
                thresholds,
                values[::-1],
                drawstyle="steps-pre",
                color=palette.OBSERVED if axes is ax else palette.ROWS,
                label="positives flagged, seen" if axes is ax else "rows flagged, seen",
                gid=name,
            )
        ax.axhline(
            self.target,
            color=palette.CERTIFIED,
            linestyle="--",
            label=f"target {self.target:g}",
            gid="target",
        )
        if np.isfinite(self.threshold):
            for axes in (ax, panel):
                axes.axvline(
                    self.threshold,
                    color=palette.CERTIFIED,
                    label=f"flag from {self.threshold:.4f} on" if axes is ax else None,
                    gid="threshold",
                )
        ax.set_ylabel("Recall (share of positives)")
        ax.set_ylim(-0.02, 1.04)
        panel.set(ylabel="Flagged", ylim=(0, 1.04), xlabel="Threshold (0 to 1)")
        ax.set_xlim(-0.02, 1.02)
        set_heading(ax, self._title(), panel=panel)

    def _title(self) -> str:
        return (
            f"Recall by threshold: n = {self.rows:,}, {self.positives:,} positive, target = "
            f"{self.target:g}, delta = {self.delta:g}\nThe curves are descriptive: no point of "
            "them is certified"
        )
