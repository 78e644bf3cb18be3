"""The walk of a cascade's thresholds: what is lost as more rows exit early."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from pacbound.figure import Axis, Column, Dots, Figure, Floats, Level, Line, Look, Mark, Panel
from pacbound.figures import Named

# Fast models that can be told apart; of more, the table has the exits.
_LOOKS: Final[tuple[Look, ...]] = ("rows", "other", "seen")
UNIT: Final = (0.0, 1.0)


@dataclass(frozen=True, eq=False)
class ExitWalk:
    """The steps that a walk tested, in its order.

    Parameters
    ----------
    thresholds
        (models, steps) thresholds of the fast models, +inf for one that never answers; (steps,) of
        a single one.
    exits
        (models, steps) how many rows exit at each; (steps,) of a single one.
    lost, gained
        (steps,) how many rows only the slow model has right, and only the cascade.
    rows
        How many rows there are.
    models
        The names of the fast models; None for "fast" or "fast 1", "fast 2" and so on.
    """

    thresholds: Any
    exits: Any
    lost: Any
    gained: Any
    rows: int
    models: Sequence[str] | None = None


def loss_along_walk(
    walk: ExitWalk,
    *,
    asked: Named,
    certified_at: int | None = None,
    title: str = "The walk",
    caption: str | None = None,
    differ: bool = False,
    lost: str = "Accuracy",
) -> Figure:
    """The loss against the share of rows that exit early; of several fast models, who answers.

    Parameters
    ----------
    walk
        The steps that were tested.
    asked
        The loss that is allowed: `Named(0.02, "xi = 0.02")`.
    certified_at
        The step whose thresholds are certified; None for a refusal.
    title, caption
        As for `Figure`; the caption has a default.
    differ
        Whether answers that differ are counted in place of losses: none makes up for another.
    lost
        What is lost: accuracy, or the quality of graded answers.

    Returns
    -------
    Figure
        The walk, and the numbers of its steps.

    Examples
    --------
    >>> walk = ExitWalk([0.9, 0.8, 0.7], [100, 200, 300], [0, 1, 4], [0, 0, 1], rows=1000)
    >>> figure = loss_along_walk(walk, asked=Named(0.01, "xi = 0.01"), certified_at=1)
    >>> figure.table().rows[1]
    ['0.8', '200', '1', '0', '+0.1000%']
    """
    thresholds, exits = (
        np.atleast_2d(np.asarray(part, dtype=np.float64)) for part in (walk.thresholds, walk.exits)
    )
    losses, gained = (np.asarray(part, dtype=np.float64) for part in (walk.lost, walk.gained))
    rows = max(walk.rows, 1)
    share, loss = exits.sum(axis=0) / rows, (losses - gained) / rows
    what = "answers that differ" if differ else "lost less gained"
    seen = f"{what}, as seen (no guarantee)"
    marks: list[Mark] = []
    if share.size:
        marks.append((Line if share.size > 1 else Dots)(share, loss, "seen", seen))
    marks.append(Level(asked.value, "certified", asked.name))
    if certified_at is not None:
        at = share[certified_at], loss[certified_at]
        marks.append(Dots(*at, "certified", "at the thresholds of the certificate"))
    x = Axis.around("Rows that exit early (share)", share, within=UNIT, percent=True)
    up = "Answers that differ, as seen" if differ else f"{lost} lost, as seen"
    y = Axis.around(up, [0.0, *loss, asked.value], percent=True)
    panels = [Panel(y, marks)]
    names = walk.models or _names(len(exits))
    if 1 < len(exits) <= len(_LOOKS) and share.size > 1:
        panels.append(_answers(names, exits / rows, share))
    return Figure(
        title,
        caption or _CAPTION,
        x,
        panels,
        [
            Column("Thresholds", [_written(step) for step in thresholds.T], "text"),
            *_exit_columns(names, exits),
            *_lost_columns(losses, gained, loss, differ=differ),
        ],
        [] if certified_at is None else [certified_at],
    )


_CAPTION: Final = (
    "Thresholds fall from left to right, each step is tested, and the walk ends at the first that "
    "fails. The test leaves room for chance, so it ends below what is allowed."
)


def _answers(names: Sequence[str], exits: Floats, share: Floats) -> Panel:
    """Who answers at each step, where there are several fast models."""
    lines = [
        Line(share, part, look, f"{name} answers")
        for name, part, look in zip(names, exits, _LOOKS, strict=False)
    ]
    # Room below 0, so that its name and that of the other axis do not meet on a small page.
    up = Axis.around("Answered", exits, room=0.2, within=(-0.2, 1.0), percent=True)
    return Panel(up, lines, 0.5)


def _exit_columns(names: Sequence[str], exits: Floats) -> list[Column]:
    if len(exits) == 1:
        return [Column("Exit early", exits[0], "count")]
    return [
        Column(f"Exit at {name}", part, "count") for name, part in zip(names, exits, strict=True)
    ]


def _lost_columns(lost: Floats, gained: Floats, loss: Floats, *, differ: bool) -> list[Column]:
    if differ:
        return [Column("Differ", lost, "count")]
    return [
        Column("Lost", lost, "count"),
        Column("Gained", gained, "count"),
        Column("Lost less gained", loss, "change"),
    ]


def _names(count: int) -> list[str]:
    return ["fast"] if count == 1 else [f"fast {number}" for number in range(1, count + 1)]


def _written(thresholds: Floats) -> str:
    return ", ".join("never" if np.isinf(value) else repr(value) for value in thresholds.tolist())
