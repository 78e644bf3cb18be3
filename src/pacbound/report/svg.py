"""A figure as it stands on the page: SVG written in Python, a legend, and a table of its numbers.

Lengths are in units of a view box that the page scales to its width. Colours are classes of the
style sheet, so that a chart follows the theme of the page. The chart is one image to a screen
reader, which says its title and caption; the numbers are in the table.
"""

from __future__ import annotations

from math import ceil, floor
from typing import Any, Final

import numpy as np

from pacbound.figure import (
    Axis,
    Band,
    Bars,
    Boxes,
    Dots,
    Figure,
    Flats,
    Floats,
    Level,
    Line,
    Look,
    Mark,
    Note,
    Panel,
    Steps,
    Upright,
)
from pacbound.figures.thinning import thinned
from pacbound.report.page.markup import Markup, joined, table, tag

WIDTH: Final = 460.0
_LEFT, _RIGHT, _BOTTOM = 66.0, 16.0, 44.0
# Above each panel stands what its vertical axis is about, in this height.
_LABEL: Final = 38.0
# The height of a panel of height 1.
_UNIT: Final = 240.0
# The width of a letter beside an axis, at most: on phones they are largest.
_LETTER: Final = 8.8
# Lines are cut off so far outside their panel: one that lies on its edge is seen whole.
_EDGE: Final = 3.0
_COLUMNS: Final = 120

_SHAPES: Final = (
    "m-4 0a4 4 0 1 0 8 0a4 4 0 1 0-8 0z",
    "m-4-4h8v8h-8z",
    "m-5 0l5-5l5 5l-5 5z",
    "m-5 4l5-9l5 9z",
    "m-5-4l5 9l5-9z",
)


def figure_html(figure: Figure, *, rows: int = 40) -> Markup:
    """The figure with its caption, legend, chart, and about `rows` rows of its numbers."""
    numbers = figure.table(rows)
    caption = figure.title + (f" ({numbers.selection})" if numbers.selection else "")
    return tag(
        "figure",
        tag("figcaption", tag("h3", figure.title), tag("p", figure.caption)),
        tag("ul", *map(_legend_entry, figure.legend), class_="legend") if figure.legend else None,
        svg(figure),
        tag(
            "details",
            tag("summary", "The numbers", tag("span", f" of {figure.title}", class_="hidden")),
            table(caption, numbers.head, numbers.rows),
        )
        if numbers.rows
        else None,
    )


def svg(figure: Figure) -> Markup:
    """The chart alone, with the words that a screen reader says in its place."""
    drawn: list[Markup] = []
    top = 0.0
    for panel in figure.panels:
        place = _Place(figure.x, panel, top)
        drawn += _panel(place, is_last=panel is figure.panels[-1])
        top = place.bottom + 8
    height = top - 8 + _BOTTOM
    across = tag("text", figure.x.label, x=(WIDTH + _LEFT) / 2, y=height - 7, class_="label")
    return tag(
        "svg",
        *drawn,
        across,
        viewBox=f"0 0 {WIDTH:g} {height:g}",
        role="img",
        aria_label=f"{figure.title}. {figure.caption}",
    )


class _Place:
    """Where a panel stands in the chart, in units of its view box."""

    def __init__(self, x: Axis, panel: Panel, top: float) -> None:
        self.axis, self.panel = x, panel
        self.top = top + _LABEL
        self.bottom = self.top + _UNIT * panel.height
        self.right = WIDTH - _RIGHT

    def x(self, values: Any) -> Floats:
        # What lies far outside is cut off: it needs no exact place, only a number that is not huge.
        share = np.clip(self.axis.share(values), -5, 6)
        return np.asarray(_LEFT + share * (self.right - _LEFT))

    def y(self, values: Any) -> Floats:
        share = np.clip(self.panel.y.share(values), -5, 6)
        return np.asarray(self.bottom - share * (self.bottom - self.top))

    def holds(self, x: float, y: float) -> bool:
        return _LEFT - 0.5 <= x <= self.right + 0.5 and self.top - 0.5 <= y <= self.bottom + 0.5


def _panel(place: _Place, *, is_last: bool) -> list[Markup]:
    marks = [thinned(mark, place.axis, _COLUMNS) for mark in place.panel.marks]
    paths = [drawn for mark in marks if (drawn := _path(mark, place)) is not None]
    clip = (_LEFT - _EDGE, place.top - _EDGE, place.right - _LEFT + 2 * _EDGE)
    high = place.bottom - place.top + 2 * _EDGE
    box = " ".join(f"{length:g}" for length in (*clip, high))
    side = f"M{_LEFT} {place.top:g}V{place.bottom:g}H{place.right:g}"
    return [
        tag("g", *_grid(place, is_last=is_last), class_="grid"),
        tag(
            "svg",
            *paths,
            x=clip[0],
            y=f"{clip[1]:g}",
            width=clip[2],
            height=f"{high:g}",
            viewBox=box,
        ),
        tag("path", d=side, class_="frame"),
        # Dots and words may reach over the edge; they are not cut off.
        *(drawn for mark in marks for drawn in _over(mark, place)),
        tag("text", place.panel.y.label, x=2, y=f"{place.top - 16:g}"),
    ]


def _grid(place: _Place, *, is_last: bool) -> list[Markup]:
    drawn = []
    wide = place.right - _LEFT
    for tick in _apart(place.axis, wide):
        at, shown = float(place.x(tick)), place.axis.written(tick)
        drawn.append(tag("path", d=f"M{at:.1f} {place.top:g}V{place.bottom:g}"))
        if is_last:
            # What stands at the end of the axis must not be cut off there.
            # A percent sign is half as wide again as a digit.
            middle = min(at, WIDTH - (_LETTER / 2 * (len(shown) + shown.count("%")) + 2))
            y = f"{place.bottom + 17:g}"
            drawn.append(tag("text", shown, x=f"{middle:.1f}", y=y, class_="across"))
    for tick in place.panel.y.ticks(max(2, round(5 * place.panel.height))):
        up, shown = f"{float(place.y(tick)):.1f}", place.panel.y.written(tick)
        drawn.append(tag("path", d=f"M{_LEFT} {up}H{place.right:g}"))
        drawn.append(tag("text", shown, x=_LEFT - 6, y=up, dy="0.35em", class_="up"))
    return drawn


def _apart(axis: Axis, wide: float) -> list[float]:
    """Ticks whose words do not touch."""
    ticks = axis.ticks()
    longest = max((len(axis.written(tick)) for tick in ticks), default=0)
    while len(ticks) > 2 and len(ticks) * (longest + 1) * _LETTER > wide:
        ticks = ticks[::2]
    return ticks


def _path(mark: Mark, place: _Place) -> Markup | None:
    """What a mark draws inside its panel."""
    match mark:
        case Line() | Steps():
            d = _line(place.x(mark.x), place.y(mark.y))
            return tag("path", d=d, class_=f"line-{mark.look}") if d else None
        case Flats():
            parts = zip(place.x(mark.left), place.x(mark.right), place.y(mark.y), strict=True)
            d = "".join(f"M{a:.1f} {u:.1f}H{b:.1f}" for a, b, u in parts)
            return tag("path", d=d, class_=f"line-{mark.look}")
        case Bars():
            foot = np.full(mark.height.size, place.panel.y.low)
            return _boxes(mark.left, mark.right, foot, mark.height, mark.look, place)
        case Boxes():
            return _boxes(mark.left, mark.right, mark.low, mark.high, mark.look, place)
        case Band():
            return tag("path", d=_band(mark, place), class_=f"area-{mark.look}")
        case Level():
            d = f"M{_LEFT} {float(place.y(mark.y)):.1f}H{place.right:g}"
            return tag("path", d=d, class_=_levels(mark.look))
        case Upright():
            d = f"M{float(place.x(mark.x)):.1f} {place.top:g}V{place.bottom:g}"
            return tag("path", d=d, class_=f"line-{mark.look}")
        case _:
            return None


def _over(mark: Mark, place: _Place) -> list[Markup]:
    """Dots and notes, where they are in sight."""
    if isinstance(mark, Dots):
        radius = 5.0 if mark.look in {"certified", "alarm"} else 3.0 if mark.x.size < 60 else 2.0
        places = zip(place.x(mark.x), place.y(mark.y), strict=True)
        return [_dot(mark, x, y, radius) for x, y in places if place.holds(x, y)]
    if isinstance(mark, Note):
        x, y = float(place.x(mark.x)), float(place.y(mark.y))
        return [tag("text", mark.text, x=f"{x:.1f}", y=f"{y + 19:.1f}", class_="across")]
    return []


def _dot(mark: Dots, x: float, y: float, radius: float) -> Markup:
    """A filled circle, or the hollow shape of a series."""
    if not mark.series:
        return tag("circle", cx=f"{x:.1f}", cy=f"{y:.1f}", r=radius, class_=f"dot-{mark.look}")
    shape = _SHAPES[(mark.series - 1) % len(_SHAPES)]
    return tag("path", d=f"M{x:.1f} {y:.1f}{shape}", class_=f"line-{mark.look}")


def _line(x: Floats, y: Floats) -> str:
    """A line with gaps where a point is not a number; level and upright parts are written short."""
    drawn: list[str] = []
    last: tuple[str, str] | None = None
    for a, b in zip(x, y, strict=True):
        if np.isnan(a) or np.isnan(b):
            last = None
            continue
        point = f"{a:.1f}", f"{b:.1f}"
        if last is None:
            drawn.append(f"M{point[0]} {point[1]}")
        elif point[1] == last[1] and point[0] != last[0]:
            drawn.append(f"H{point[0]}")
        elif point[0] == last[0] and point[1] != last[1]:
            drawn.append(f"V{point[1]}")
        elif point != last:
            drawn.append(f"L{point[0]} {point[1]}")
        last = point
    return "".join(drawn)


def _boxes(
    left: Floats, right: Floats, low: Floats, high: Floats, look: Look, place: _Place
) -> Markup:
    """Boxes, and upright lines where one has no width."""
    known = np.isfinite(low) & np.isfinite(high)
    wide, thin = known & (left < right), known & (left >= right)
    sides = place.x(left), place.x(right), place.y(low), place.y(high)
    boxes = zip(*(side[wide] for side in sides), strict=True)
    d = "".join(
        f"M{a:.1f} {_up(b):.1f}V{_down(t):.1f}H{r:.1f}V{_up(b):.1f}Z" for a, r, b, t in boxes
    )
    lines = _uprights(*(sides[i][thin] for i in (0, 2, 3)))
    drawn = [tag("path", d=d, class_=f"area-{look}")] if d else []
    class_ = "line-certified" if look == "rows" else f"line-{look}"
    return joined([*drawn, tag("path", d=lines, class_=class_) if lines else None])


def _uprights(x: Floats, low: Floats, high: Floats) -> str:
    parts = ((a, b, t) for a, b, t in zip(x, low, high, strict=True) if not np.isnan(b + t))
    return "".join(f"M{a:.1f} {_up(b):.1f}V{_down(t):.1f}" for a, b, t in parts)


def _band(mark: Band, place: _Place) -> str:
    drawn = []
    for across, low, high in mark.stretches():
        x, bottom, top = place.x(across), place.y(low), place.y(high)
        there = [f"{a:.1f} {_down(t):.1f}" for a, t in zip(x, top, strict=True)]
        back = [f"{a:.1f} {_up(b):.1f}" for a, b in zip(x[::-1], bottom[::-1], strict=True)]
        drawn.append(f"M{'L'.join(there + back)}Z")
    return "".join(drawn)


# The tenths of a unit beside a place. The vertical axis of SVG points down, so the low end of an
# interval is rounded up, and it never gets narrower.
def _up(length: float) -> float:
    return ceil(10 * length) / 10


def _down(length: float) -> float:
    return floor(10 * length) / 10


def _levels(look: Look) -> str:
    return f"line-{look}" + ("" if look == "ideal" else " dashed")


def _legend_entry(mark: Mark) -> Markup:
    match mark:
        case Dots():
            key = _dot(mark, 12.0, 6.0, 4)
        case Boxes() if (mark.left >= mark.right).all():
            key = tag("path", d="M12 0V12", class_=f"line-{mark.look}")
        case Bars() | Boxes() | Band():
            key = tag("path", d="M2 1H22V11H2Z", class_=f"area-{mark.look}")
        case Upright():
            key = tag("path", d="M12 0V12", class_=f"line-{mark.look}")
        case Level():
            key = tag("path", d="M1 6H23", class_=_levels(mark.look))
        case _:
            key = tag("path", d="M1 6H23", class_=f"line-{mark.look}")
    sample = tag("svg", key, viewBox="0 0 24 12", aria_hidden="true")
    return tag("li", joined([sample, mark.name]))
