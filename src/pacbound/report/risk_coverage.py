"""The risk-coverage plot: how many answers are wrong, against how many rows are answered."""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

import numpy as np

from pacbound.claims.abstention import AbstentionCertificate
from pacbound.claims.walk import RiskCoverage
from pacbound.errors import InvalidTypeError
from pacbound.report import palette
from pacbound.report.display import Display, light_grid, limits, set_heading

if TYPE_CHECKING:
    from matplotlib.axes import Axes

FEW = 30
"""The share of wrong ones among fewer answers than this is mostly chance."""


class RiskCoverageDisplay(Display):
    """The share of wrong answers against the share of rows that are answered, as the threshold
    falls from left to right; the certified threshold, and xi.

    The curve is descriptive: it is what was seen in the rows that certified, and no point of it is
    certified. The dot is where the certified threshold lies on it; what is certified there is the
    dashed line, xi, not the height of the dot. The curve begins where 30 rows are answered, or 1 %
    of the rows if these are fewer. A refusal has no dot.

    `plot` sets `ax_` and `figure_`; save the figure with `display.figure_.savefig(path)`. In a
    notebook the display shows itself.

    Parameters
    ----------
    curve
        What `AbstentionCertificate.risk_coverage` gives.
    rows
        How many rows the curve is of.
    xi
        The share of the answers that may be wrong.
    delta
        The chance that more are.
    threshold
        The certified threshold; +inf if there is none.
    group
        The name of the group, where the curve is of one.

    Examples
    --------
    >>> from pacbound import certify_abstention
    >>> from pacbound.data import fashion_mnist
    >>> table = fashion_mnist()
    >>> correct = table.prediction_slow == table.label
    >>> certificate = certify_abstention(table.confidence_slow, correct, xi=0.01, delta=0.01)
    >>> display = RiskCoverageDisplay.from_certificate(certificate)
    >>> display.figure_.savefig("risk-coverage.png")
    """

    def __init__(  # noqa: PLR0913, RUF100
        self,
        curve: RiskCoverage,
        *,
        rows: int,
        xi: float,
        delta: float,
        threshold: float,
        group: str | None = None,
    ) -> None:
        self.curve = curve
        self.rows = rows
        self.xi = xi
        self.delta = delta
        self.threshold = threshold
        self.group = group

    @classmethod
    def from_certificate(
        cls,
        certificate: AbstentionCertificate,
        *,
        group: str | None = None,
        ax: Axes | None = None,
    ) -> Self:
        """Draw the curve of the rows that certified, and the threshold.

        Parameters
        ----------
        certificate
            An abstention certificate, as `certify_abstention` gives.
        group
            The name of the group to draw, if the certificate is for groups.
        ax
            The axes to draw on; by default those of a new figure.

        Returns
        -------
        RiskCoverageDisplay
            The display, drawn.

        Raises
        ------
        InvalidTypeError
            If `certificate` is not an abstention certificate.
        InvalidValueError
            If there is no such group.

        Examples
        --------
        >>> from pacbound import certify_abstention
        >>> refused = certify_abstention([0.5, 0.75], [False, True], xi=0.1, delta=0.1)
        >>> display = RiskCoverageDisplay.from_certificate(refused)
        >>> display.threshold, display.curve.coverage.tolist()
        (inf, [0.5, 1.0])
        """
        if not isinstance(certificate, AbstentionCertificate):
            raise InvalidTypeError(
                f"certificate is of type {type(certificate).__name__}: expected an "
                "AbstentionCertificate, as certify_abstention gives."
            )
        curve = certificate.risk_coverage(group)
        chosen = certificate.by.table_of(certificate, group)
        certificate.require_intact()
        return cls(
            curve,
            rows=certificate.by.rows_of(chosen),
            xi=certificate.xi,
            delta=certificate.delta,
            threshold=chosen["threshold"],
            group=group,
        ).plot(ax)

    def _draw(self, ax: Axes) -> None:
        light_grid(ax)
        coverage, risk = self.curve.coverage, self.curve.risk
        shown = coverage * self.rows >= min(FEW, self.rows / 100)
        ax.plot(
            coverage[shown],
            risk[shown],
            drawstyle="steps-post",
            color=palette.OBSERVED,
            label="seen in these rows",
            gid="curve",
        )
        ax.axhline(
            self.xi,
            color=palette.CERTIFIED,
            linestyle="--",
            label=f"xi = {self.xi:g}, certified at the dot" if self._certified else "xi, refused",
            gid="xi",
        )
        place = int(np.count_nonzero(self.curve.thresholds >= self.threshold)) - 1
        if place >= 0:
            ax.plot(
                coverage[place],
                risk[place],
                marker="o",
                markersize=8,
                linestyle="none",
                color=palette.CERTIFIED,
                label=f"answer from {self.threshold:.4f} on",
                gid="threshold",
            )
        low, high = limits(np.append(risk[shown], self.xi), least=0.01)
        ax.set_ylim(max(low, -0.02 * high), high)
        ax.set_xlim(*limits(coverage[shown], room=0.03))
        ax.set_xlabel("Coverage (share of rows answered)")
        ax.set_ylabel("Risk (share of answers that are wrong)")
        set_heading(ax, self._title())

    @property
    def _certified(self) -> bool:
        return bool(np.isfinite(self.threshold))

    def _title(self) -> str:
        of_group = "" if self.group is None else f" of group {self.group}"
        return (
            f"Risk against coverage{of_group}: n = {self.rows:,}, xi = {self.xi:g}, delta = "
            f"{self.delta:g}\nThe curve is descriptive: no point of it is certified"
        )
