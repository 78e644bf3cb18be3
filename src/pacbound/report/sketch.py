"""A figure on a terminal: a grid of characters with every mark where the page would have it.

Certified intervals take every cell that they touch, so a drawn one is never narrower than what is
certified; a certified range of thresholds takes only cells that lie wholly inside it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from math import ceil, floor
from typing import Any, Final, get_args
from unicodedata import combining, east_asian_width

import numpy as np
from numpy.typing import NDArray

from pacbound.documents import printable
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
    Range,
    Steps,
    Upright,
)
from pacbound.report.thinning import thinned

WIDTH: Final = 80
# How many lines a panel of height 1 takes.
ROWS: Final = 15
# No sketch is narrower: there would be no room for numbers beside it.
_LEAST: Final = 30
# Marks in the order in which they are drawn: a later one covers an earlier one.
_ABOVE: Final = (Range, Band, Boxes, Bars, Level, Upright, Line, Steps, Flats, Dots, Note)


@dataclass(frozen=True)
class Strokes:
    """The characters that a sketch is drawn with, by what a mark means."""

    lines: dict[Look, str]
    levels: dict[Look, str]
    uprights: dict[Look, str]
    areas: dict[Look, str]
    dots: dict[Look, str]
    # The dots of the first, second, … series of one look.
    shapes: str
    flat: str
    # A bar that ends inside a cell, from low to full.
    eighths: str
    # The side, the corner, the foot, and a tick on the foot.
    frame: str
    cut: str

    @classmethod
    def for_encoding(cls, encoding: str | None) -> Strokes:
        """Those that an output of the encoding can show."""
        try:
            _FINE._letters().encode(encoding or "ascii")
        except (UnicodeEncodeError, LookupError):
            return _PLAIN
        return _FINE

    def _letters(self) -> str:
        every = (self.lines, self.levels, self.uprights, self.areas, self.dots)
        shown = "".join("".join(part.values()) for part in every)
        return shown + self.shapes + self.flat + self.eighths + self.frame + self.cut

    def of(self, mark: Mark) -> str:
        """The character that stands for a mark in the legend."""
        match mark:
            case Level():
                return self.levels[mark.look]
            case Upright():
                return self.uprights[mark.look]
            case Range() | Band() | Boxes() | Bars():
                return self.areas[mark.look]
            case Dots():
                series = self.shapes[(mark.series - 1) % len(self.shapes)]
                return series if mark.series else self.dots[mark.look]
            case Flats():
                return self.flat
            case _:
                return self.lines[mark.look]


def _by_look(letters: str) -> dict[Look, str]:
    """A character for each look, in the order in which these are listed."""
    return dict(zip(get_args(Look), letters, strict=True))


_FINE: Final = Strokes(
    lines=_by_look("━•+×···"),
    levels=_by_look("╌─┈┈┈┈┈"),
    uprights=_by_look("┃│┊┊┊┊┊"),
    areas=_by_look("▒░▓█░░░"),
    dots=_by_look("◆●+×○○▼"),
    shapes="○□◇△▽",
    flat="─",
    eighths="▁▂▃▄▅▆▇█",
    frame="│└─┴",
    cut="…",
)
_PLAIN: Final = Strokes(
    lines=_by_look("=*+x'''"),
    levels=_by_look("-_~~~~~"),
    uprights=_by_look("|::::::"),
    areas=_by_look("=:%#..."),
    dots=_by_look("@o+xOO!"),
    shapes="abcdefgh",
    flat="-",
    eighths="#",
    frame="|+-+",
    cut="...",
)


def sketch(
    figure: Figure, *, width: int = WIDTH, encoding: str | None = "utf-8", rows: int = ROWS
) -> list[str]:
    """The figure as lines of text, none wider than `width`.

    Parameters
    ----------
    figure
        What is drawn.
    width
        How many columns the terminal has; fewer than 30 count as 30.
    encoding
        What the output is encoded in. Where it cannot show lines and blocks, or is None, the
        sketch is drawn in ASCII.
    rows
        How many lines a panel of height 1 takes.

    Returns
    -------
    list of str
        The title, the panels from top to bottom, the horizontal axis, and the legend.
    """
    strokes = Strokes.for_encoding(encoding)
    wide = max(width, _LEAST)
    ticks = {id(panel): _ticks(panel, _height(panel, rows)) for panel in figure.panels}
    gutter = max((len(word) for part in ticks.values() for word in part.values()), default=0)
    columns = wide - gutter - 2
    lines = [figure.title]
    for panel in figure.panels:
        if panel.y.label:
            lines.append(panel.y.label)
        grid = _Grid(figure.x, panel, (_height(panel, rows), columns), strokes)
        for row, drawn in enumerate(grid.lines()):
            side = ticks[id(panel)].get(row, "")
            lines.append(f"{side:>{gutter}} {strokes.frame[0]}{drawn}".rstrip())
    lines += [" " * (gutter + 1) + line for line in _foot(figure.x, columns, strokes)]
    lines.append(" " * (gutter + 1) + figure.x.label.center(columns).rstrip())
    lines += [f"  {strokes.of(mark)} {mark.name}" for mark in figure.legend]
    return [_fitting(line, wide, strokes, encoding) for line in lines]


def _height(panel: Panel, rows: int) -> int:
    return max(2 if panel.y.words == () else 3, round(rows * panel.height))


def _ticks(panel: Panel, rows: int) -> dict[int, str]:
    """What stands beside which line of a panel."""
    found: dict[int, str] = {}
    for tick in panel.y.ticks(max(2, rows // 3)):
        found.setdefault(_cell(float(panel.y.share(tick)), rows), panel.y.written(tick))
    return {rows - 1 - row: word for row, word in found.items()}


def _foot(x: Axis, columns: int, strokes: Strokes) -> list[str]:
    """The horizontal axis, and the numbers below it where they do not touch."""
    line = [strokes.frame[2]] * columns
    words = [" "] * (columns + 1)
    free = 0
    for tick in x.ticks(max(2, columns // 12)):
        at, word = _cell(float(x.share(tick)), columns), x.written(tick)
        begin = min(max(at + 1 - len(word) // 2, 0), columns + 1 - len(word))
        if begin < free:
            continue
        line[at] = strokes.frame[3]
        words[begin : begin + len(word)] = word
        free = begin + len(word) + 1
    return [strokes.frame[1] + "".join(line), "".join(words).rstrip()]


def _order(mark: Mark) -> tuple[bool, int]:
    """References are at the back: they must not cover an interval."""
    return mark.look != "ideal", _ABOVE.index(type(mark))


def _cell(share: float, cells: int) -> int:
    """The cell that a place lies in."""
    return min(max(floor(share * cells), 0), cells - 1)


@dataclass
class _Grid:
    """The characters of one panel; row 0 is the lowest."""

    x: Axis
    panel: Panel
    size: tuple[int, int]
    strokes: Strokes
    cells: NDArray[Any] = field(init=False)

    def lines(self) -> list[str]:
        """The panel from its top down."""
        self.cells = np.full(self.size, " ", dtype="<U1")
        for mark in sorted(self.panel.marks, key=_order):
            self._draw(thinned(mark, self.x, 4 * self.size[1]))
        return ["".join(row) for row in self.cells[::-1]]

    def _draw(self, mark: Mark) -> None:
        stroke = self.strokes.of(mark)
        match mark:
            case Line() | Steps():
                self._line(*mark.corners(), stroke)
            case Dots():
                self._put(self._across(mark.x), self._along(mark.y), stroke)
            case Flats():
                self._flats(mark, stroke)
            case Bars():
                self._bars(mark)
            case Boxes():
                self._boxes(mark, stroke)
            case Band():
                self._band(mark, stroke)
            case Note():
                self._note(mark)
            case Level() | Upright() | Range():
                self._draw_across(mark, stroke)

    def _draw_across(self, mark: Level | Upright | Range, stroke: str) -> None:
        """What reaches from one side of the panel to the other."""
        match mark:
            case Level() if self.panel.y.low <= mark.y <= self.panel.y.high:
                self.cells[_cell(float(self.panel.y.share(mark.y)), self.size[0])] = stroke
            case Upright() if self.x.low <= mark.x <= self.x.high:
                self.cells[:, _cell(float(self.x.share(mark.x)), self.size[1])] = stroke
            case Range():
                self._range(mark, stroke)

    def _across(self, values: Any) -> Floats:
        return np.asarray(self.x.share(values) * self.size[1])

    def _along(self, values: Any) -> Floats:
        return np.asarray(self.panel.y.share(values) * self.size[0])

    def _put(self, across: Floats, along: Floats, stroke: str) -> None:
        """Characters at places in units of cells, where these are in sight."""
        rows, columns = self.size
        slack = 1e-9
        inside = (across >= -slack) & (across <= columns + slack)
        inside &= (along >= -slack) & (along <= rows + slack)
        column = np.clip(np.floor(across[inside]), 0, columns - 1).astype(int)
        row = np.clip(np.floor(along[inside]), 0, rows - 1).astype(int)
        self.cells[row, column] = stroke

    def _line(self, x: Floats, y: Floats, stroke: str) -> None:
        across = np.clip(self._across(x), -1, self.size[1] + 1)
        along = np.clip(self._along(y), -1, self.size[0] + 1)
        if across.size == 1:
            self._put(across, along, stroke)
        for place in range(across.size - 1):
            ends = slice(place, place + 2)
            if not np.isfinite(across[ends]).all() or not np.isfinite(along[ends]).all():
                continue
            far = max(abs(np.diff(across[ends])[0]), abs(np.diff(along[ends])[0]))
            many = 2 * ceil(far) + 2
            along_way = np.linspace(0.0, 1.0, many)
            self._put(
                across[place] + along_way * (across[place + 1] - across[place]),
                along[place] + along_way * (along[place + 1] - along[place]),
                stroke,
            )

    def _flats(self, mark: Flats, stroke: str) -> None:
        for left, right, y in zip(mark.left, mark.right, mark.y, strict=True):
            empty = self.cells == " "
            before = self.cells.copy()
            self._line(np.array([left, right]), np.array([y, y]), stroke)
            # An interval that is one line high would not be seen behind the share in it.
            self.cells = np.where(empty, self.cells, before)

    def _bars(self, mark: Bars) -> None:
        columns = self.size[1]
        for left, right, height in zip(mark.left, mark.right, mark.height, strict=True):
            begin, end = (round(float(self.x.share(side)) * columns) for side in (left, right))
            begin = min(max(begin, 0), columns - 1)
            high = float(self.panel.y.share(height)) * self.size[0]
            if not high > 0:
                continue
            steps = len(self.strokes.eighths)
            parts = max(round(high * steps), 1)
            place = slice(begin, max(end, begin + 1))
            self.cells[: parts // steps, place] = self.strokes.eighths[-1]
            if parts % steps and parts // steps < self.size[0]:
                self.cells[parts // steps, place] = self.strokes.eighths[parts % steps - 1]

    def _boxes(self, mark: Boxes, stroke: str) -> None:
        sides = (mark.left, mark.right, mark.low, mark.high)
        for left, right, low, high in zip(*sides, strict=True):
            if np.isnan(low) or np.isnan(high) or right < self.x.low or left > self.x.high:
                continue
            row = _touched(self._along([low, high]), self.size[0])
            column = _touched(self._across([left, right]), self.size[1])
            self.cells[row, column] = stroke

    def _band(self, mark: Band, stroke: str) -> None:
        for x, least, most in mark.stretches():
            across = self._across(x)
            # The ends are looked at on both sides of each column, and at the corners inside it.
            edges = np.arange(self.size[1] + 1.0)
            places = np.unique(np.concatenate([edges, np.clip(across, 0, self.size[1])]))
            places = places[(places >= across[0]) & (places <= across[-1])]
            low, high = (np.interp(places, across, self._along(side)) for side in (least, most))
            for column in range(self.size[1]):
                inside = (places >= column) & (places <= column + 1)
                if inside.any():
                    ends = np.array([low[inside].min(), high[inside].max()])
                    self.cells[_touched(ends, self.size[0]), column] = stroke

    def _range(self, mark: Range, stroke: str) -> None:
        low, high = (float(side) for side in self._across([mark.low, mark.high]))
        columns = slice(max(ceil(low), 0), max(floor(high), 0))
        if columns.start >= columns.stop:  # narrower than a cell: the one that it lies in
            middle = _cell((low + high) / 2 / self.size[1], self.size[1])
            columns = slice(middle, middle + 1)
        self.cells[:, columns] = stroke

    def _note(self, mark: Note) -> None:
        rows, columns = self.size
        across, along = float(self._across(mark.x)), float(self._along(mark.y))
        row = _cell(along / rows, rows) + (-1 if mark.below else 1)
        begin = max(floor(across) - len(mark.text) // 2, 0)
        if 0 <= row < rows and begin + len(mark.text) <= columns:
            place = self.cells[row, begin : begin + len(mark.text)]
            if (place == " ").all():
                place[:] = list(mark.text)


def _touched(ends: Floats, cells: int) -> slice:
    """Every cell that an interval touches, and at least one."""
    low, high = np.clip(ends, -1, cells + 1).tolist()
    first = min(max(floor(low), 0), cells - 1)
    return slice(first, min(max(ceil(high), first + 1), cells))


def _fitting(line: str, width: int, strokes: Strokes, encoding: str | None) -> str:
    """A line that a terminal can show, cut where it would be too wide."""
    shown = _encodable(printable(line), encoding)
    if _columns(shown) <= width:
        return shown
    room = width - len(strokes.cut)
    kept = 0
    for letter in shown:
        room -= _columns(letter)
        if room < 0:
            break
        kept += 1
    return shown[:kept] + strokes.cut


def _encodable(line: str, encoding: str | None) -> str:
    try:
        return line.encode(encoding or "ascii", "backslashreplace").decode(encoding or "ascii")
    except LookupError:
        return line.encode("ascii", "backslashreplace").decode("ascii")


def _columns(text: Iterable[str]) -> int:
    """How many columns letters take: those of East Asia take two, accents none."""
    return sum(
        0 if combining(letter) else 2 if east_asian_width(letter) in "WF" else 1 for letter in text
    )
