"""Whatever has a figure, drawn by matplotlib."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pacbound.calibration.reliability import ReliabilityBins
from pacbound.claims.certificate import Certificate
from pacbound.errors import InvalidTypeError
from pacbound.figure import Figure
from pacbound.figures import with_matplotlib
from pacbound.monitor import Monitor
from pacbound.planning import PilotPlan
from pacbound.report.evidence import evidence_over_time
from pacbound.report.plans import errors_by_look, outcome_by_rows
from pacbound.report.reliability import claims_by_accuracy
from pacbound.stats.looks import PlannedLooks

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Canvas

Shown = Figure | Certificate | Monitor | PilotPlan | PlannedLooks | ReliabilityBins


def plot(shown: Shown, *, ax: Axes | None = None) -> Canvas:
    """Draw a figure, or what has one.

    Blue is what is certified, vermilion what was only seen; the title says what of it has a
    guarantee. Axes end a little beyond the data, so read their numbers before you compare lengths.

    Parameters
    ----------
    shown
        One of `certificate.figures()`, or a certificate, whose groups `certificate.plot(group=...)`
        draws; a `Monitor`, for its evidence; what `planned_looks` or `plan_from_pilot` gave; or the
        bins of `reliability` or `induced_reliability` in `pacbound.calibration.reliability`.
    ax
        The axes whose place the figure takes; by default those of a new figure.

    Returns
    -------
    matplotlib Figure
        Save it by `.savefig(path)`. pyplot does not know a new one; in a notebook it shows itself.

    Raises
    ------
    InvalidTypeError
        If `shown` has no figure, or `ax` is not axes.
    InvalidValueError
        If a monitor has seen no label, or a certificate has no figure.
    MissingDependencyError
        If matplotlib is not installed.

    Examples
    --------
    >>> from pacbound import planned_looks
    >>> looks = planned_looks(0.02, delta=0.01, looks=range(240, 2401, 240))
    >>> plot(looks).savefig("looks.png")
    """
    return with_matplotlib.plot(figure_of(shown), ax)


def figure_of(shown: Shown) -> Figure:
    """The figure of what is shown, as data."""
    match shown:
        case Figure():
            return shown
        case Certificate():
            return shown.figure()
        case Monitor():
            return evidence_over_time(shown)
        case PilotPlan():
            return outcome_by_rows(shown)
        case PlannedLooks():
            return errors_by_look(shown, shown.xi / 2)
        case ReliabilityBins():
            return claims_by_accuracy(shown)
    expected = "a figure, a certificate, a monitor, a plan, or bins of reliability(...)"
    raise InvalidTypeError.of("shown", shown, expected)
