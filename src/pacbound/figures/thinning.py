"""Marks with no more parts than a drawing can show: a figure of any number of rows stays small.

The horizontal axis is cut into columns. In each of them a line keeps its first, lowest, highest and
last point, so no peak is lost; intervals become one that holds them all, so none gets narrower.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np

from pacbound.figure import Axis, Band, Bars, Boxes, Dots, Flats, Floats, Line, Mark, Steps


def thinned(mark: Mark, x: Axis, columns: int) -> Mark:
    """`mark` with at most a few parts for each of so many columns; steps become a line."""
    match mark:
        case Line() | Steps():
            return Line(*_line(*mark.corners(), x, columns), mark.look, mark.name)
        case Dots():
            across, up = _line(mark.x, mark.y, x, columns)
            return replace(mark, x=across, y=up)
        case Flats():
            return _flats(mark, x, columns)
        case Bars():
            parts = _columns_of(mark.left, x, columns)
            return _reduced(mark, parts, left=np.min, right=np.max, height=np.max)
        case Boxes():
            parts = _columns_of(mark.left, x, columns)
            return _reduced(mark, parts, left=np.min, right=np.max, low=np.min, high=np.max)
        case Band():
            return _band(mark, x, columns)
        case _:
            return mark


def _columns_of(places: Floats, x: Axis, columns: int) -> list[slice]:
    """Runs of places that lie in one column; single places where they are few already."""
    if places.size <= 2 * columns:
        return [slice(place, place + 1) for place in range(places.size)]
    share = np.nan_to_num(np.clip(x.share(places), -0.5 / columns, 1 + 0.5 / columns))
    keys = np.floor(share * columns)
    if (np.diff(keys) < 0).any():  # not in order: as many runs as there would be columns
        keys = np.floor(np.arange(places.size) / places.size * columns)
    starts = [0, *(np.flatnonzero(np.diff(keys)) + 1).tolist(), places.size]
    return [slice(begin, end) for begin, end in pairwise(starts)]


def _line(x: Floats, y: Floats, axis: Axis, columns: int) -> tuple[Floats, Floats]:
    if x.size <= 4 * columns:
        return x, y
    kept: set[int] = set()
    for part in _columns_of(x, axis, columns):
        heights = y[part]
        kept |= {part.start, part.stop - 1}
        gaps = np.flatnonzero(np.isnan(heights))
        if gaps.size < heights.size:
            lowest, highest = np.nanargmin(heights), np.nanargmax(heights)
            kept |= {part.start + int(lowest), part.start + int(highest)}
        kept |= {part.start + int(place) for place in gaps[:1]}
    places = np.array(sorted(kept))
    return x[places], y[places]


def _flats(mark: Flats, axis: Axis, columns: int) -> Flats:
    parts = _columns_of(mark.left, axis, columns)
    if len(parts) == mark.y.size:
        return mark
    kept = sorted(
        {p.start + int(pick(mark.y[p])) for p in parts for pick in (np.argmin, np.argmax)}
    )
    return replace(mark, left=mark.left[kept], right=mark.right[kept], y=mark.y[kept])


def _band(mark: Band, axis: Axis, columns: int) -> Band:
    parts = _columns_of(mark.x, axis, columns)
    if len(parts) == mark.x.size:
        return mark
    ends = [place for part in parts for place in (part.start, part.stop - 1)]
    low = np.repeat([np.fmin.reduce(mark.low[part]) for part in parts], 2)
    high = np.repeat([np.fmax.reduce(mark.high[part]) for part in parts], 2)
    return replace(mark, x=mark.x[ends], low=low, high=high)


def _reduced(mark: Mark, parts: list[slice], **by: Callable[[Floats], Any]) -> Mark:
    """Each run of parts as one."""
    if len(parts) == getattr(mark, next(iter(by))).size:
        return mark
    columns: dict[str, Any] = {
        name: [reduce(getattr(mark, name)[part]) for part in parts] for name, reduce in by.items()
    }
    return replace(mark, **columns)
