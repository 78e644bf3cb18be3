"""Whatever has a figure, drawn by matplotlib; and the figures of what is no certificate: the
evidence of a monitor, plans, and what was claimed for held-out rows.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

import numpy as np

from pacbound.calibration.reliability import ReliabilityBins
from pacbound.claims.certificate import Certificate
from pacbound.errors import InvalidTypeError, InvalidValueError
from pacbound.figure import (
    Axis,
    Band,
    Boxes,
    Column,
    Dots,
    Figure,
    Flats,
    Level,
    Line,
    Mark,
    Note,
    Panel,
    Steps,
    Upright,
)
from pacbound.figures import with_matplotlib
from pacbound.figures.bins import axis_over_bins, row_shares_below
from pacbound.monitor import Monitor
from pacbound.planning import PilotPlan
from pacbound.says import share
from pacbound.stats.looks import PlannedLooks
from pacbound.tally.questions import with_article

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Canvas

# Evidence below this is drawn here: how little there is says nothing.
_LEAST: Final = 1e-6
_CAPTION: Final = (
    "Evidence rises where losses come more often than the claim allows. That it stays low proves "
    "nothing."
)
# Of so many looks the numbers of errors stand beside their points.
_MOST_NAMED: Final = 15
# The ends of an axis of chances: dots at 0 and 1 are seen whole.
_CHANCE: Final = (-0.08, 1.08)

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


def evidence_over_time(monitor: Monitor) -> Figure:
    """The highest evidence in each stretch of labels, so that no peak is lost, the limit, and the
    alarms.
    """
    if not monitor.labels:
        raise InvalidValueError("This monitor has seen no label: there is no evidence to draw.")
    ends, found = (np.asarray(part, np.float64) for part in monitor.history)
    shown = np.maximum(found, _LEAST)
    marks: list[Mark] = [
        Steps(
            np.append(0.0, ends),
            np.append(shown, shown[-1:]),
            "seen",
            "evidence (highest in each stretch)",
            "from",
        ),
        Level(monitor.limit, "certified", f"the alarm rings at {monitor.limit:,.4g}"),
    ]
    alarms = [alarm.label for alarm in monitor.alarms]
    if alarms:
        many = "an alarm" if len(alarms) == 1 else f"{len(alarms):,} alarms"
        marks.append(Dots(alarms, np.full(len(alarms), monitor.limit), "alarm", many))
    promised = f"false alarms: {monitor.false_alarms}"
    if monitor.false_alarms == "ever":
        promised = f"the chance of any false alarm is at most {share(monitor.delta, 'up').text}"
    kind = with_article(monitor.certificate.kind)
    heights = [1.0, *shown, monitor.limit]
    return Figure(
        f"Monitor of {kind} certificate, {monitor.labels:,} labels; {promised}",
        _CAPTION,
        Axis("Labels", 0.0, 1.03 * max([*ends[-1:], *alarms]), whole=True),
        [Panel(Axis.around("Evidence against the claim", heights, log=True), marks)],
        [
            Column("Up to label", ends, "count"),
            Column("Highest evidence", [f"{value:.4g}" for value in found], "text"),
        ],
        [int(found.argmax())],
    )


def errors_by_look(plan: PlannedLooks, rate: float) -> Figure:
    """How many errors each look may show, and the chance that one has passed by then if the true
    rate is `rate`.
    """
    looks, chances = np.array(plan.looks, np.float64), np.cumsum(plan.passing(rate))
    most = np.array(plan.largest_errors, dtype=np.float64)
    errors = np.where(most >= 0, most, np.nan)
    rates = errors / looks
    marks: list[Mark] = [
        Level(plan.xi, "ideal", f"the rate claimed: {plan.xi:g}"),
        Line(looks, rates, "certified", "the look passes at or below"),
        Dots(looks, rates, "certified"),
    ]
    if looks.size <= _MOST_NAMED:
        marks += [
            Note(look, up, f"{count:,.0f}")
            for look, up, count in zip(looks, rates, errors, strict=True)
            if np.isfinite(up)
        ]
    below: list[Mark] = [
        Line(looks, chances, "seen"),
        Dots(looks, chances, "seen", f"passed if the rate is {rate:g} (no guarantee)"),
    ]
    heights = [*rates, plan.xi]
    up = Axis.around("Errors per label", heights, room=0.15, within=(0.0, 1.0), percent=True)
    return Figure(
        f"{looks.size:,} planned looks: a rate of at most {plan.xi:g}, all together at delta = "
        f"{plan.delta:g}",
        "Each number is how many errors a look may show. Below: the chance that a look has passed "
        "by then.",
        Axis.around("Labels", looks, whole=True),
        [Panel(up, marks), Panel(Axis("Passed", *_CHANCE, percent=True), below, 0.4)],
        [
            Column("Labels", looks, "count"),
            Column("Errors allowed", errors, "count", "cannot pass"),
            Column("Chance to have passed", chances),
        ],
    )


def outcome_by_rows(plan: PilotPlan) -> Figure:
    """What larger samples would give, as a pilot lets one expect; an estimate throughout."""
    rows, value, low, high, reached = np.transpose(
        [(one.rows, one.value, one.low, one.high, one.reached) for one in plan.points]
    )
    outcome = plan.measure.capitalize()
    marks: list[Mark] = [
        Band(rows, low, high, "seen", "10 to 90 % of the draws"),
        Line(rows, value, "seen", "average"),
        Dots(rows, value, "seen"),
    ]
    below: list[Mark] = [Line(rows, reached, "seen"), Dots(rows, reached, "seen")]
    heights, sizes = [*low, *high, *value], list(rows)
    if plan.goal is not None:
        marks.append(Level(plan.goal, "ideal", "goal"))
        heights.append(plan.goal)
    if plan.aims:
        below.append(Level(plan.power, "ideal", f"{100 * plan.power:g} % of the draws"))
    if plan.needed is not None:
        sizes.append(plan.needed.rows)
        name = f"about {plan.needed.rows:,} {plan.unit} are enough"
        marks.append(Upright(plan.needed.rows, "ideal", name))
        below.append(Upright(plan.needed.rows, "ideal"))
    enough = "Enough" if plan.goal is not None else "Certified"
    shares = (outcome, "10 % of draws below", "90 % of draws below", "Draws that reached it")
    columns = zip(shares, (value, low, high, reached), strict=True)
    return Figure(
        f"Plan for {plan.subject}: {plan.claim}",
        f"Estimated from a pilot of {plan.pilot_rows:,} {plan.unit}; nothing here is guaranteed",
        Axis.around(plan.unit.capitalize(), sizes, log=True, whole=True),
        [
            Panel(Axis.around(outcome, heights), marks),
            Panel(Axis(enough, *_CHANCE, percent=True), below, 0.4),
        ],
        [
            Column(plan.unit.capitalize(), rows, "count"),
            *(Column(name, part, "share", "none") for name, part in columns),
        ],
    )


def claims_by_accuracy(bins: ReliabilityBins) -> Figure:
    """Claims at the height of the accuracy of their rows: a level line for an interval, a dot for a
    number. Descriptive: that intervals cross the diagonal is not certified.
    """
    count = len(bins.edges) - 1
    begin, end = bins.edges[:-1], bins.edges[1:]
    trials, lower, upper = bins.trials[:count], bins.lower[:count], bins.upper[:count]
    right, seen = bins.accuracy[:count], trials > 0
    wide, single = seen & (lower < upper), seen & (lower >= upper)
    without = int(bins.trials[count:].sum())
    claimed = np.concatenate([lower[seen], upper[seen]])
    label = "Confidence (claimed; below: estimated)" if wide.any() else "Confidence (0 to 1)"
    x = axis_over_bins(np.append(begin[seen], claimed), np.append(end[seen], claimed), label)
    marks: list[Mark] = [Line([x.low, x.high], [x.low, x.high], "ideal", "claimed equals accuracy")]
    if wide.any():
        ends = lower[wide], upper[wide], right[wide]
        marks.append(Flats(*ends, "certified", "claimed interval"))
    if single.any():
        marks.append(Line(lower[single], right[single], "seen"))
        marks.append(Dots(lower[single], right[single], "seen", "claimed confidence"))
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
        Column("Share right", right),
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
