"""The walk of a cascade: what is lost, or how many answers differ, as more rows exit early."""

from __future__ import annotations

import numpy as np

from pacbound.certificate.cascade_labels import thresholds_of
from pacbound.certificate.document import exact
from pacbound.procedures.cascade_differ import Claim
from pacbound.procedures.joint_walk import JointWalk
from pacbound.report.display import limits
from pacbound.report.page.chart import (
    Chart,
    ChartAxis,
    ChartFigure,
    Legend,
    from_zero,
    percent,
    selected,
)
from pacbound.report.page.markup import in_short

_AXES: dict[Claim, str] = {
    "loss": "Accuracy lost, as seen",
    "differ": "Answers that differ, as seen (share)",
}
_SEEN: dict[Claim, str] = {"loss": "lost less gained", "differ": "answers that differ"}


def walk(
    steps: JointWalk,
    n: int,
    *,
    xi: float,
    cells: tuple[int, ...] | None,
    bounded: Claim,
    group: str | None = None,
    rows: int,
) -> ChartFigure | None:
    """The walk of the thresholds that were chosen, with `rows` of its steps as numbers; None where
    it has no step at which a row exits.
    """
    if not n or not steps.exits.any():
        return None
    exits = steps.exits.sum(axis=0) / n
    loss = (steps.losses - steps.gains) / n
    chart = Chart(
        ChartAxis("Rows that exit early (share)", *from_zero(exits), written=percent),
        ChartAxis(_AXES[bounded], *limits([0, *loss, xi]), written=percent),
    )
    (chart.line if len(steps) > 1 else chart.dots)(exits, loss, "seen")
    chart.level(xi, "certified dashed")
    legend = [
        Legend("seen", f"{_SEEN[bounded]}, as seen (no guarantee)"),
        Legend("certified dashed", f"xi = {exact(xi)}"),
    ]
    place = _place(steps, cells)
    if place is not None:
        chart.dots(exits[place], loss[place], "certified-dot", radius=5)
        legend.append(Legend("certified-dot", "at the thresholds of the certificate", "dot"))
    places = selected(len(steps), rows, -1 if place is None else place)
    # Where answers that differ are counted, none of them makes up for another.
    counted = 3 if bounded == "differ" else 5
    columns = ["Thresholds", "Exit early", "Lost", "Gained", "Lost less gained"]
    if bounded == "differ":
        columns = ["Thresholds", "Exit early", "Differ"]
    return ChartFigure(
        "The walk" + ("" if group is None else f": {in_short(group)}"),
        "Thresholds fall from left to right, each step is tested, and the walk ends at the first "
        "that fails. The test leaves room for chance, so it ends below xi.",
        [chart],
        legend,
        columns,
        [
            [
                _written(steps.cells[:, at]),
                f"{int(steps.exits[:, at].sum()):,}",
                f"{int(steps.losses[at]):,}",
                f"{int(steps.gains[at]):,}",
                f"{loss[at]:+.4%}",
            ][:counted]
            for at in places
        ],
        None if len(places) == len(steps) else len(steps),
    )


def _place(steps: JointWalk, cells: tuple[int, ...] | None) -> int | None:
    """The step of the walk that has these thresholds."""
    if cells is None:
        return None
    same = np.flatnonzero((steps.cells == np.array(cells)[:, None]).all(axis=0))
    return int(same[-1]) if same.size else None


def _written(cells: np.ndarray) -> str:
    limits_ = thresholds_of(tuple(cells.tolist()), len(cells)).tolist()
    return ", ".join("never" if np.isinf(value) else repr(value) for value in limits_)
