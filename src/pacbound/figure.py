"""A figure as data: panels one above the other over one horizontal axis, and marks on them.

It knows no colour, no pixel and no file. `pacbound.report` draws it as SVG on the page,
`pacbound.figures.with_matplotlib` on axes, and both show the same marks.

What a mark means is its `look`:

| look | means |
|---|---|
| `certified` | holds with probability 1 - delta, or was asked for and is what the claim promises |
| `seen` | was seen in these rows, without a guarantee |
| `other` | a second thing that was seen in the same rows |
| `rows` | how many rows there are, or how many a rule picks |
| `ideal` | a reference that is no data: a diagonal, a goal |
| `unknown` | no rows: nothing is known |
| `alarm` | an alarm of a monitor |

A certified mark is never drawn as a stronger claim than it is. `Boxes` and `Band` say
where a true rate lies, so renderers round their ends outwards. NaN is a gap: no line is
drawn where no rows are left.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, fields, replace
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal
from math import ceil, floor, isfinite, isnan, log10
from typing import Any, Final, Literal

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
# A number, or numbers of any type that numpy turns into an array; marks keep them as arrays.
Numbers = Any
Look = Literal["certified", "seen", "other", "rows", "ideal", "unknown", "alarm"]
Written = Literal["text", "exact", "count", "share", "percent", "change", "at least", "at most"]

_LONGEST_NAME: Final = 120
_MOST_TICKS: Final = 10


@dataclass(frozen=True)
class Axis:
    """One axis: what it is about, and where it begins and ends.

    Parameters
    ----------
    label
        What it is about, with its unit.
    low, high
        Its ends, low < high; above 0 on a logarithmic axis.
    log
        Whether equal steps are equal factors.
    percent
        Whether its numbers are shares that are written as percentages.
    whole
        Whether only whole numbers stand beside it, as for counts.

    Raises
    ------
    ValueError
        If the ends are not finite, not in order, or not above 0 where the axis is logarithmic.
    """

    label: str
    low: float
    high: float
    log: bool = False
    percent: bool = False
    whole: bool = False

    def __post_init__(self) -> None:
        if not (isfinite(self.low) and isfinite(self.high) and self.low < self.high):
            raise ValueError(f"an axis from {self.low} to {self.high}: expected low < high, finite")
        if self.log and self.low <= 0:
            raise ValueError(f"a logarithmic axis from {self.low}: expected an end above 0")

    @classmethod
    def around(
        cls,
        label: str,
        values: Any,
        *,
        room: float = 0.06,
        within: tuple[float, float] = (-np.inf, np.inf),
        log: bool = False,
        percent: bool = False,
        whole: bool = False,
    ) -> Axis:
        """An axis that shows the finite `values` and a little `room`, and nothing beyond `within`.

        Values that are all the same get some room too, so the axis never has length 0.
        """
        numbers = np.ravel(np.asarray(values, dtype=np.float64))
        numbers = numbers[np.isfinite(numbers) & ((numbers > 0) | (not log))]
        if log:
            powers = np.log10(numbers) if numbers.size else np.array([0.0, 1.0])
            aside = max(room * float(np.ptp(powers)), 0.2)
            low = 10.0 ** max(float(powers.min()) - aside, -300)
            return cls(
                label, low, 10.0 ** min(float(powers.max()) + aside, 300), log, percent, whole
            )
        low, high = (float(numbers.min()), float(numbers.max())) if numbers.size else (0.0, 1.0)
        aside = room * (high - low)
        if high - low <= 1e-9 * max(1.0, abs(high)):
            aside = max(abs(high) / 20, 1e-2 if percent else 1e-3)
        low, high = max(low - aside, within[0]), min(high + aside, within[1])
        return cls(label, low, high, log, percent, whole)

    def ticks(self, about: int = 5) -> list[float]:
        """About so many round numbers between the ends."""
        if self.log:
            return self._powers(about)
        step = _round_step((self.high - self.low) / about, whole=self.whole)
        first, last = ceil(self.low / step - 1e-9), floor(self.high / step + 1e-9)
        if last - first < 1 and about < _MOST_TICKS:  # one number is no scale
            return self.ticks(about + 1)
        return [float(f"{place * step:.12g}") for place in range(first, last + 1)]

    def _powers(self, about: int) -> list[float]:
        first, last = ceil(log10(self.low) - 1e-9), floor(log10(self.high) + 1e-9)
        powers = range(first - 1, last + 1)
        if last - first < 2:  # one power or two are too few to read a place from
            every = [float(f"{f}e{power}") for power in powers for f in (1, 2, 5)]
            inside = [tick for tick in every if self.low <= tick <= self.high]
            if len(inside) > 1:
                return inside
            return replace(self, log=False).ticks(about)
        apart = ceil((last - first + 1) / about)
        return [float(f"1e{power}") for power in range(first, last + 1, apart)]

    def written(self, value: float) -> str:
        """A place as the axis names it."""
        if self.percent:
            return f"{100 * value:.10g}%"
        return short_number(value)

    def share(self, values: Any) -> Floats:
        """Where values stand between the two ends: 0 at the low one, 1 at the high one.

        On a logarithmic axis 0 and less stand at the low end; NaN stays NaN.
        """
        numbers = np.asarray(values, dtype=np.float64)
        if self.log:
            numbers = np.log10(
                np.where(numbers > 0, numbers, np.where(numbers <= 0, self.low, np.nan))
            )
            low, high = log10(self.low), log10(self.high)
        else:
            low, high = self.low, self.high
        return np.asarray((numbers - low) / (high - low))


class _Numbered:
    """A mark whose numbers are columns of equal length: they become arrays that nobody changes."""

    def __post_init__(self) -> None:
        mark: Any = self
        names = [one.name for one in fields(mark) if one.type == "Numbers"]
        arrays = [np.atleast_1d(np.array(getattr(self, name), dtype=np.float64)) for name in names]
        if len({array.shape for array in arrays}) > 1 or arrays[0].ndim != 1:
            shapes = {name: array.shape for name, array in zip(names, arrays, strict=True)}
            raise ValueError(f"{type(self).__name__} of shapes {shapes}: expected equal lengths")
        for name, array in zip(names, arrays, strict=True):
            array.flags.writeable = False
            object.__setattr__(self, name, array)


@dataclass(frozen=True, eq=False)
class Line(_Numbered):
    """A line through points. A NaN is a gap."""

    x: Numbers
    y: Numbers
    look: Look
    name: str = ""

    def corners(self) -> tuple[Floats, Floats]:
        """The points of the line as it is drawn."""
        return self.x, self.y


@dataclass(frozen=True, eq=False)
class Steps(_Numbered):
    """A line of steps; x rises. A NaN is a gap.

    With holds="up to", y[i] holds from just above x[i - 1] up to and with x[i], as a rate does of
    rows whose score reaches a threshold; the line begins at x[0]. With holds="from", y[i] holds
    from x[i] up to x[i + 1], as a count does that has just changed; the line ends at x[-1].
    """

    x: Numbers
    y: Numbers
    look: Look
    name: str = ""
    holds: Literal["up to", "from"] = "up to"

    def __post_init__(self) -> None:
        super().__post_init__()
        if (np.diff(self.x) < 0).any():
            raise ValueError("the places of steps fall: expected x to rise")

    def corners(self) -> tuple[Floats, Floats]:
        """The points of the line as it is drawn, two for each step."""
        if self.holds == "up to":
            return np.repeat(self.x, 2)[:-1], np.repeat(self.y, 2)[1:]
        return np.repeat(self.x, 2)[1:], np.repeat(self.y, 2)[:-1]


@dataclass(frozen=True, eq=False)
class Flats(_Numbered):
    """A level line at each y, from `left` to `right`: what was seen in each bin."""

    left: Numbers
    right: Numbers
    y: Numbers
    look: Look
    name: str = ""


@dataclass(frozen=True, eq=False)
class Bars(_Numbered):
    """A bar from the foot of the panel to each height; left == right is an upright line."""

    left: Numbers
    right: Numbers
    height: Numbers
    look: Look
    name: str = ""


@dataclass(frozen=True, eq=False)
class Boxes(_Numbered):
    """An interval from `low` to `high` for each bin; left == right is an upright line."""

    left: Numbers
    right: Numbers
    low: Numbers
    high: Numbers
    look: Look
    name: str = ""


@dataclass(frozen=True, eq=False)
class Band(_Numbered):
    """The area between two lines over the same x, which rises. A NaN is a gap."""

    x: Numbers
    low: Numbers
    high: Numbers
    look: Look
    name: str = ""

    def stretches(self) -> list[tuple[Floats, Floats, Floats]]:
        """The x, low and high of each stretch without a gap."""
        known = np.isfinite(self.low) & np.isfinite(self.high)
        cuts = np.flatnonzero(np.diff(known)) + 1
        parts = zip(*(np.split(side, cuts) for side in (self.x, self.low, self.high)), strict=True)
        return [part for part in parts if part[0].size and np.isfinite(part[1][0] + part[2][0])]


@dataclass(frozen=True, eq=False)
class Dots(_Numbered):
    """A dot at each point; numbers in place of arrays are one dot. Dots of a `series` above 0 are
    hollow, with a shape for each, so that those in the same place are all seen.
    """

    x: Numbers
    y: Numbers
    look: Look
    name: str = ""
    series: int = 0


@dataclass(frozen=True)
class Level:
    """A level line across the panel, at what was asked for."""

    y: float
    look: Look
    name: str = ""


@dataclass(frozen=True)
class Upright:
    """An upright line across the panel, at a threshold."""

    x: float
    look: Look
    name: str = ""


@dataclass(frozen=True)
class Note:
    """A few letters below a place."""

    x: float
    y: float
    text: str
    look: Look = "ideal"
    name: str = ""


Mark = Line | Steps | Flats | Bars | Boxes | Band | Dots | Level | Upright | Note


@dataclass(frozen=True)
class Panel:
    """A vertical axis and what is drawn there, the first mark at the back.

    `height` is relative to that of the other panels.
    """

    y: Axis
    marks: Sequence[Mark]
    height: float = 1.0


@dataclass(frozen=True, eq=False)
class Column:
    """A column of a figure's numbers.

    `written` is how each value is written: "text" as it is, "exact" with all its digits, "count"
    as a whole number, "share" with four digits, "percent", "change" as a percentage with its sign,
    "at least" and "at most" with four digits, rounded down and up so that a bound stays true.
    `missing` stands where a value is NaN.
    """

    name: str
    values: Sequence[Any] | NDArray[Any]
    written: Written = "share"
    missing: str = "none there"

    def cell(self, place: int) -> str:
        """One value as it is written."""
        value = self.values[place]
        if self.written == "text":
            return str(value)
        number = float(value)
        return self.missing if isnan(number) else _WRITTEN[self.written](number)


@dataclass(frozen=True)
class Table:
    """Some rows of a figure's numbers; `of` is how many there are in all."""

    head: Sequence[str]
    rows: Sequence[Sequence[str]]
    of: int

    @property
    def selection(self) -> str:
        """Which of the rows these are, in words; empty if they are all."""
        return "" if len(self.rows) == self.of else f"{len(self.rows):,} of {self.of:,} steps"


@dataclass(frozen=True, eq=False)
class Figure:
    """What is drawn, what it means, and its numbers.

    Parameters
    ----------
    title
        A few words.
    caption
        One to three sentences: what is drawn, what of it is certified. A screen reader says them.
    x
        The horizontal axis, which all panels share.
    panels
        From top to bottom.
    columns
        The numbers behind the marks, columns of equal length.
    kept
        Rows of the columns that every table has, with the rows beside them: those of the claim.
    """

    title: str
    caption: str
    x: Axis
    panels: Sequence[Panel]
    columns: Sequence[Column] = ()
    kept: Sequence[int] = ()

    def __post_init__(self) -> None:
        if len({len(column.values) for column in self.columns}) > 1:
            lengths = {column.name: len(column.values) for column in self.columns}
            raise ValueError(f"columns of a figure differ in length: {lengths}")

    @property
    def legend(self) -> list[Mark]:
        """One mark for each name, in the order in which they are drawn."""
        named: dict[str, Mark] = {}
        for panel in self.panels:
            for mark in panel.marks:
                if mark.name:
                    named.setdefault(mark.name, mark)
        return list(named.values())

    def table(self, most: int = 40) -> Table:
        """About `most` rows of the numbers: the first, the last, those of the claim with the rows
        beside them, and others evenly.
        """
        count = len(self.columns[0].values) if self.columns else 0
        near = (place + step for place in self.kept if place >= 0 for step in (-1, 0, 1))
        places = selected(count, most, near)
        rows = [[column.cell(place) for column in self.columns] for place in places]
        return Table([column.name for column in self.columns], rows, count)


def titled(title: str, group: str | None) -> str:
    """The title of a group's figure: a name that is longer than anyone reads is cut."""
    if group is None:
        return title
    cut = group if len(group) <= _LONGEST_NAME else f"{group[:_LONGEST_NAME]}…"
    return f"{title}: {cut}"


def selected(count: int, most: int, always: Iterable[int] = ()) -> list[int]:
    """At most about `most` of `count` places, evenly, with the first, the last and some others."""
    if count <= most:
        return list(range(count))
    even = np.linspace(0, count - 1, max(most, 0)).round().astype(int).tolist()
    return sorted({*even, *(place for place in always if 0 <= place < count)})


def short_number(value: float) -> str:
    """A number with room for about six letters: 0.25, 1,500, 120k, 3M."""
    if abs(value) >= 1e16:
        return f"{value:.4g}"
    for unit, name in ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(value) >= max(unit, 1e5):
            return f"{value / unit:.4g}{name}"
    return (
        f"{value:,.10g}"
        if abs(value) >= 1000
        else f"{value:.10g}"
        if value > 1e-4
        else f"{value:g}"
    )


def _round_step(least: float, *, whole: bool) -> float:
    """The least of 1, 2, 2.5 and 5 times a power of ten that is not below; whole if it must be."""
    power = 10.0 ** floor(log10(least))
    factors = (1, 2, 5, 10) if whole and power < 10 else (1, 2, 2.5, 5, 10)
    step = next(factor * power for factor in factors if factor * power >= 0.999 * least)
    return max(step, 1.0) if whole else step


def _directed(value: float, rounding: str) -> str:
    return (
        f"{Decimal(value).quantize(Decimal('0.0001'), rounding):f}"
        if isfinite(value)
        else str(value)
    )


_WRITTEN: Final[dict[str, Callable[[float], str]]] = {
    "exact": repr,
    "count": lambda value: f"{value:,.0f}",
    "share": lambda value: f"{value:.4f}",
    "percent": lambda value: f"{value:.4%}",
    "change": lambda value: f"{value:+.4%}",
    "at least": lambda value: _directed(value, ROUND_FLOOR),
    "at most": lambda value: _directed(value, ROUND_CEILING),
}
