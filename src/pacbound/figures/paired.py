"""A paired comparison: the losses that are allowed beside the gains, and those that were seen."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from pacbound.figure import Axis, Column, Dots, Figure, Mark, Panel, Steps

# How many numbers of gains the edge is drawn at.
_PLACES = 60


def losses_beside_gains(
    gains: Mapping[str, int],
    losses: Sequence[int],
    *,
    n: int,
    passes: Callable[[Any, Any], Any],
    title: str = "Losses beside gains",
) -> Figure:
    """What a paired test allows, and where the models are.

    Parameters
    ----------
    gains
        The rows that each new model gains, by its name.
    losses
        The rows that it loses.
    n
        How many rows were compared.
    passes
        Whether losses and gains, element by element, pass.
    title
        A few words.

    Returns
    -------
    Figure
        The edge of what passes, and a dot for each model.

    Examples
    --------
    >>> figure = losses_beside_gains({"new": 3}, [2], n=50, passes=lambda b, c: b < c + 2)
    >>> figure.table().rows
    [['new', '3', '2', '4']]
    """
    seen = np.array(list(gains.values()), dtype=np.int64)
    end = min(n, max(10, int(1.5 * seen.max(initial=0)) + 1))
    places = np.unique(np.append(np.linspace(0, end, _PLACES).astype(np.int64), seen))
    allowed = most_losses(places, n, passes)
    at = allowed[np.searchsorted(places, seen)]
    marks: list[Mark] = []
    shown = allowed >= 0
    if shown.any():
        where, most = places[shown].astype(float), allowed[shown].astype(float)
        marks.append(Steps(where, most, "certified", "the most losses that pass", "from"))
    marks += [
        Dots(float(gained), float(lost), "seen", f"{name}, as seen", series)
        for series, (name, gained, lost) in enumerate(zip(gains, seen, losses, strict=True))
    ]
    x = Axis("Rows gained", 0.0, 1.02 * max(end, 1), whole=True)
    high = max([*allowed.tolist(), *losses, 1])
    y = Axis("Rows lost", 0.0, 1.08 * high, whole=True)
    columns = [
        Column("Model", list(gains), "text"),
        Column("Gained", seen, "count"),
        Column("Lost", np.asarray(losses), "count"),
        Column("Most losses that pass", at, "count"),
    ]
    caption = (
        "A row is lost if only the old model is right, or may be, and gained if only the new one "
        "is. A model passes on the line and below it."
    )
    return Figure(title, caption, x, [Panel(y, marks)], columns)


def most_losses(gains: Any, n: int, passes: Callable[[Any, Any], Any]) -> Any:
    """The most losses that pass beside each number of gains, by bisection; -1 if none does."""
    low, high = np.full(gains.shape, -1), n - gains
    while (low < high).any():
        middle = (low + high + 1) // 2
        inside = np.broadcast_to(passes(np.maximum(middle, 0), gains), gains.shape)
        low, high = np.where(inside, middle, low), np.where(inside, high, middle - 1)
    return low
