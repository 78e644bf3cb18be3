"""The alarm plot: false alarms, and misses where they are certified too, by threshold."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

import numpy as np

from pacbound.claims.alarm_range import AlarmRangeCertificate
from pacbound.claims.false_alarms import AlarmCurve, FalseAlarmCertificate
from pacbound.claims.recall import RecallCertificate
from pacbound.errors import InvalidTypeError
from pacbound.report import palette
from pacbound.report.display import Display, light_grid, set_heading

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_ROOM = 5.0
"""The axis shows shares up to so many times the larger rate that is allowed."""


@dataclass(frozen=True)
class AllowedMisses:
    """The claim about misses that stands beside the one about false alarms.

    Attributes
    ----------
    share : float
        The share that may be missed.
    among : float
        What the share of the positives is multiplied by: 1, or, for a share of all rollouts, the
        share of them that is unsafe.
    words : str
        What is counted, for the legend.
    """

    share: float
    among: float
    words: str


class AlarmDisplay(Display):
    """The share of the negatives that raises an alarm against the threshold, and the share that is
    allowed; for a range, the share that is missed beside it, and the certified thresholds shaded.

    The curves are descriptive: they are what was seen in the rows that certified, and no point of
    them is certified. At the certified thresholds what is certified are the dashed lines, not the
    heights of the curves. A refusal has no shade.

    `plot` sets `ax_` and `figure_`; save the figure with `display.figure_.savefig(path)`. In a
    notebook the display shows itself.

    Parameters
    ----------
    curve
        What `FalseAlarmCertificate.alarm_curve` gives.
    rows
        How many rows or rollouts the curve is of.
    negatives
        What the negatives are called, such as "safe rollouts".
    xi
        The share of the negatives that may raise an alarm.
    delta
        The chance that a claim is wrong.
    lowest, highest
        The certified thresholds; +inf and -inf if there are none.
    misses
        The claim about misses, where there is one.

    Examples
    --------
    >>> from pacbound import certify_false_alarms
    >>> scores, positive = [0.9] * 300 + [0.1] * 700, [True] * 300 + [False] * 700
    >>> certificate = certify_false_alarms(scores, positive, xi=0.05, delta=0.01)
    >>> display = AlarmDisplay.from_certificate(certificate)
    >>> display.figure_.savefig("alarms.png")
    """

    def __init__(  # noqa: PLR0913, RUF100
        self,
        curve: AlarmCurve,
        *,
        rows: int,
        negatives: str,
        xi: float,
        delta: float,
        lowest: float,
        highest: float,
        misses: AllowedMisses | None = None,
    ) -> None:
        self.curve = curve
        self.rows = rows
        self.negatives = negatives
        self.xi = xi
        self.delta = delta
        self.lowest = lowest
        self.highest = highest
        self.misses = misses

    @classmethod
    def from_certificate(
        cls,
        certificate: FalseAlarmCertificate | AlarmRangeCertificate,
        *,
        ax: Axes | None = None,
    ) -> Self:
        """Draw the curves of the rows that certified, and the certified thresholds.

        Parameters
        ----------
        certificate
            As `certify_false_alarms` or `certify_alarm_range` gives it.
        ax
            The axes to draw on; by default those of a new figure.

        Returns
        -------
        AlarmDisplay
            The display, drawn.

        Raises
        ------
        InvalidTypeError
            If `certificate` is neither.

        Examples
        --------
        >>> from pacbound import certify_alarm_range
        >>> scores, positive = [0.9] * 300 + [0.1] * 700, [True] * 300 + [False] * 700
        >>> both = certify_alarm_range(scores, positive, xi=0.05, target=0.95, delta=0.02)
        >>> display = AlarmDisplay.from_certificate(both)
        >>> round(display.lowest, 3), round(display.highest, 3), display.misses.words
        (0.1, 0.9, 'positives missed')
        """
        if isinstance(certificate, AlarmRangeCertificate):
            alarms = certificate.false_alarms
            lowest, highest = certificate.lowest, certificate.highest
            misses = _allowed(certificate)
        elif isinstance(certificate, FalseAlarmCertificate):
            alarms, misses = certificate, None
            lowest, highest = alarms.threshold, (1.0 if alarms.certified else -np.inf)
        else:
            raise InvalidTypeError(
                f"certificate is of type {type(certificate).__name__}: expected what "
                "certify_false_alarms or certify_alarm_range gives."
            )
        return cls(
            alarms.alarm_curve(),
            rows=alarms.n,
            negatives="negatives" if alarms.unit == "rows" else "safe rollouts",
            xi=alarms.xi,
            delta=certificate.delta,
            lowest=lowest,
            highest=highest,
            misses=misses,
        ).plot(ax)

    def _draw(self, ax: Axes) -> None:
        light_grid(ax)
        # Thresholds rise to the right; a score equal to a threshold reaches it, so each step holds
        # up to its own threshold.
        thresholds = self.curve.thresholds[::-1]
        ax.plot(
            thresholds,
            self.curve.false_alarms[::-1],
            drawstyle="steps-pre",
            color=palette.OBSERVED,
            label=f"{self.negatives} with an alarm, seen",
            gid="false alarms",
        )
        _rate(ax, self.xi, palette.OBSERVED, f"xi = {self.xi:g} of them allowed")
        if self.misses is not None:
            ax.plot(
                thresholds,
                ((1.0 - self.curve.found) * self.misses.among)[::-1],
                drawstyle="steps-pre",
                color=palette.POLICY,
                linestyle="-.",
                label=f"{self.misses.words}, seen",
                gid="misses",
            )
            share = self.misses.share
            _rate(ax, share, palette.POLICY, f"{share:g} of them allowed")
        if self.lowest <= self.highest:
            ax.axvspan(
                self.lowest,
                min(self.highest, 1.02),
                color=palette.CERTIFIED,
                alpha=0.18,
                label=f"certified thresholds {self._ends()}",
                gid="certified",
            )
        allowed = max(self.xi, 0.0 if self.misses is None else self.misses.share)
        ax.set(
            ylim=(0.0, min(1.04, max(_ROOM * allowed, 0.01))),
            xlim=(-0.02, 1.02),
            ylabel="Share",
            xlabel="Threshold (0 to 1): an alarm is raised at or above it",
        )
        set_heading(ax, self._title())

    def _ends(self) -> str:
        if self.misses is None:
            return f"from {self.lowest:.4f}"
        return f"{self.lowest:.4f} to {self.highest:.4f}"

    def _title(self) -> str:
        both = "" if self.misses is None else " and misses"
        return (
            f"False alarms{both} by threshold: n = {self.rows:,}, delta = {self.delta:g}\nThe "
            "curves are descriptive: no point of them is certified"
        )


def _rate(ax: Axes, share: float, color: str, label: str) -> None:
    ax.axhline(share, color=color, linestyle="--", linewidth=1.0, label=label, gid="allowed")


def _allowed(certificate: AlarmRangeCertificate) -> AllowedMisses:
    misses, alarms = certificate.misses, certificate.false_alarms
    if isinstance(misses, RecallCertificate):
        return AllowedMisses(1.0 - misses.target, 1.0, "positives missed")
    if misses.rate == "all":
        among = alarms.positives / misses.n
        return AllowedMisses(misses.xi, among, "unsafe rollouts missed, of all")
    return AllowedMisses(misses.xi, 1.0, "unsafe rollouts missed")
