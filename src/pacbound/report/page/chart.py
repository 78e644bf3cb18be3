"""Charts as SVG, written in Python: axes, lines, steps, boxes and dots, and nothing else.

Lengths are in units of a view box that the page scales to its width. Colours are classes of the
style sheet, so that a chart follows the theme of the page. Every chart goes with a table of its
numbers; the chart itself is one image to a screen reader.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from math import ceil, floor, log10
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from pacbound.report.page.markup import Markup, joined, table, tag

Floats = NDArray[np.float64]

WIDTH: Final = 460.0
_LEFT, _RIGHT, _TOP, _BOTTOM = 80.0, 16.0, 8.0, 44.0
_TICKS: Final = 5
_HALF_LETTER: Final = 5.2
"""Half the width of a letter beside an axis, at most: on phones they are largest."""


def number(value: float) -> str:
    """A number as an axis names it, with room for six letters."""
    for unit, name in ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(value) >= max(unit, 1e5):
            return f"{value / unit:.4g}{name}"
    return f"{value:,.10g}" if abs(value) >= 1000 else f"{value:g}"


@dataclass(frozen=True)
class ChartAxis:
    """One axis: what it is about, and where it begins and ends."""

    label: str
    low: float
    high: float
    log: bool = False
    written: Callable[[float], str] = number

    def share(self, values: Any) -> Floats:
        """Where values stand between the two ends, from 0 to 1."""
        low, high, numbers = (
            np.log10(np.asarray(part, dtype=np.float64)) if self.log else np.asarray(part, float)
            for part in (self.low, self.high, values)
        )
        return np.asarray((numbers - low) / (high - low))

    def ticks(self) -> list[float]:
        """Round numbers between the ends, a handful of them."""
        if self.log:
            first, last = ceil(log10(self.low) - 1e-9), floor(log10(self.high) + 1e-9)
            every = max(1, ceil((last - first + 1) / _TICKS))
            return [10.0**power for power in range(first, last + 1, every)]
        step = _round_step((self.high - self.low) / _TICKS)
        first, last = ceil(self.low / step - 1e-9), floor(self.high / step + 1e-9)
        return [round(place * step, 12) for place in range(first, last + 1)]


def _round_step(least: float) -> float:
    """The least of 1, 2, 2.5 and 5 times a power of ten that is not below."""
    power = 10.0 ** floor(log10(least))
    return next(factor * power for factor in (1, 2, 2.5, 5, 10) if factor * power >= 0.999 * least)


@dataclass
class Chart:
    """A chart in the making: marks are drawn in the order in which they are asked for."""

    x: ChartAxis
    y: ChartAxis
    height: float = 300.0
    marks: list[Markup] = field(default_factory=list)

    def place(self, x: Any, y: Any) -> tuple[Floats, Floats]:
        """Values in units of the view box, those beyond an end at the end."""
        across = np.clip(self.x.share(x), 0, 1) * (WIDTH - _LEFT - _RIGHT) + _LEFT
        bottom = self.height - _BOTTOM
        return across, bottom - np.clip(self.y.share(y), 0, 1) * (bottom - _TOP)

    def line(self, x: Any, y: Any, class_: str) -> None:
        """A line through points."""
        self._path(*self.place(*thinned(np.asarray(x, float), np.asarray(y, float))), class_)

    def steps(self, x: Any, y: Any, class_: str) -> None:
        """A line that keeps the height of each point up to the next."""
        across, up = thinned(np.asarray(x, float), np.asarray(y, float))
        self._path(*self.place(np.repeat(across, 2)[1:], np.repeat(up, 2)[:-1]), class_)

    def level(self, y: float, class_: str) -> None:
        """A horizontal line from end to end."""
        self._path(*self.place([self.x.low, self.x.high], [y, y]), class_)

    def upright(self, x: float, class_: str) -> None:
        """A vertical line from end to end."""
        self._path(*self.place([x, x], [self.y.low, self.y.high]), class_)

    def spans(self, x: Any, low: Any, high: Any, class_: str) -> None:
        """A vertical line at each x, from its low to its high end."""
        across, bottom = self.place(x, low)
        _, top = self.place(x, high)
        drawn = (f"M{a:.1f} {b:.1f}V{t:.1f}" for a, b, t in zip(across, bottom, top, strict=True))
        self.marks.append(tag("path", d="".join(drawn), class_=class_))

    def boxes(self, begin: Any, end: Any, low: Any, high: Any, class_: str) -> None:
        """A box for each begin, end, low and high."""
        left, bottom = self.place(begin, low)
        right, top = self.place(end, high)
        drawn = (
            f"M{a:.1f} {b:.1f}V{t:.1f}H{r:.1f}V{b:.1f}Z"
            for a, r, b, t in zip(left, right, bottom, top, strict=True)
        )
        self.marks.append(tag("path", d="".join(drawn), class_=class_))

    def dots(self, x: Any, y: Any, class_: str, *, radius: float = 3.0) -> None:
        """A dot at each point."""
        across, up = self.place(np.atleast_1d(x), np.atleast_1d(y))
        self.marks += [
            tag("circle", cx=f"{a:.1f}", cy=f"{u:.1f}", r=radius, class_=class_)
            for a, u in zip(across, up, strict=True)
        ]

    def svg(self, name: str, described: str) -> Markup:
        """The chart, with the words that a screen reader says in its place."""
        bottom = self.height - _BOTTOM
        return tag(
            "svg",
            tag("g", *self._grid(), class_="grid"),
            tag("g", *self.marks),
            tag("path", d=f"M{_LEFT} {_TOP}V{bottom}H{WIDTH - _RIGHT}", class_="frame"),
            tag("text", self.x.label, x=(WIDTH + _LEFT) / 2, y=self.height - 7, class_="label"),
            tag(
                "text",
                self.y.label,
                transform=f"translate(17 {bottom / 2}) rotate(-90)",
                class_="label",
            ),
            viewBox=f"0 0 {WIDTH:g} {self.height:g}",
            role="img",
            aria_label=f"{name}. {described}",
        )

    def _grid(self) -> list[Markup]:
        bottom = self.height - _BOTTOM
        drawn = []
        for tick in self.x.ticks():
            at, shown = float(self.place(tick, self.y.low)[0]), self.x.written(tick)
            drawn.append(tag("path", d=f"M{at:.1f} {_TOP}V{bottom}"))
            # What stands at the end of the axis must not be cut off there.
            middle = min(at, WIDTH - _HALF_LETTER * len(shown))
            drawn.append(tag("text", shown, x=f"{middle:.1f}", y=bottom + 17, class_="across"))
        for tick in self.y.ticks():
            up, shown = f"{float(self.place(self.x.low, tick)[1]):.1f}", self.y.written(tick)
            drawn.append(tag("path", d=f"M{_LEFT} {up}H{WIDTH - _RIGHT}"))
            drawn.append(tag("text", shown, x=_LEFT - 6, y=up, dy="0.35em", class_="up"))
        return drawn

    def _path(self, across: Floats, up: Floats, class_: str) -> None:
        if across.size:
            drawn = "L".join(f"{a:.1f} {u:.1f}" for a, u in zip(across, up, strict=True))
            self.marks.append(tag("path", d=f"M{drawn}", class_=class_))


MOST_POINTS: Final = 240


def thinned(x: Floats, y: Floats) -> tuple[Floats, Floats]:
    """The points, or of many the lowest, the highest and the last in each of some stretches, so
    that no peak is lost.
    """
    if x.size <= MOST_POINTS:
        return x, y
    kept = {0, x.size - 1}
    for part in np.array_split(np.arange(x.size), MOST_POINTS // 3):
        kept |= {int(part[y[part].argmin()]), int(part[y[part].argmax()]), int(part[-1])}
    places = np.array(sorted(kept))
    return x[places], y[places]


@dataclass(frozen=True)
class Legend:
    """What a class of marks means, and how it looks: "line", "box" or "dot"."""

    class_: str
    meaning: str
    look: str = "line"


@dataclass(frozen=True)
class ChartFigure:
    """A chart or two that share their horizontal axis, with what they mean and their numbers."""

    title: str
    described: str
    charts: Sequence[Chart]
    legend: Sequence[Legend]
    head: Sequence[str]
    rows: Sequence[Sequence[str]]
    of: int | None = None
    """How many rows the table is a selection of; None if it has them all."""

    def html(self) -> Markup:
        """The figure as it goes on the page."""
        selection = "" if self.of is None else f" ({len(self.rows)} of {self.of:,} steps)"
        caption = f"{self.title}{selection}"
        return tag(
            "figure",
            tag("figcaption", tag("h4", self.title), tag("p", self.described)),
            tag("ul", *map(_entry, self.legend), class_="legend"),
            *(chart.svg(self.title, self.described) for chart in self.charts),
            tag(
                "details",
                tag("summary", "The numbers", tag("span", f" of {self.title}", class_="hidden")),
                table(caption, self.head, self.rows),
            ),
        )


def _entry(legend: Legend) -> Markup:
    looks = {
        "line": tag("path", d="M1 6H23", class_=legend.class_),
        "box": tag("path", d="M2 1H22V11H2Z", class_=legend.class_),
        "dot": tag("circle", cx=12, cy=6, r=4, class_=legend.class_),
    }
    key = tag("svg", looks[legend.look], viewBox="0 0 24 12", aria_hidden="true")
    return tag("li", joined([key, legend.meaning]))


def selected(count: int, most: int, *always: int) -> list[int]:
    """At most about `most` of `count` places, evenly, with the first, the last and some others."""
    if count <= most:
        return list(range(count))
    even = np.linspace(0, count - 1, most).round().astype(int).tolist()
    return sorted({*even, *(place for place in always if 0 <= place < count)})


def percent(share: float) -> str:
    """A share as an axis names it."""
    return f"{100 * share:.10g}%"
