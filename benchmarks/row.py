"""One measurement: what was done, what it took us and a peer, and whether that meets the bar."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Unit = Literal["s", "s/row", "bytes", "rows/s", "share"]


@dataclass(frozen=True)
class Bar:
    """The most that a measurement may be: of our figure itself, or of the ratio of ours to the
    peer's."""

    most: float
    of: Literal["ours", "ratio"]
    words: str


@dataclass(frozen=True)
class Row:
    """`theirs` is None where there is no peer to compare with, or where it is not installed.

    `label` is what the figure of ratios calls the row, if it has it; `size` places the row in the
    figure of growth; `question` is the benchmark that gave it.
    """

    work: str
    ours: float
    unit: Unit
    peer: str | None = None
    theirs: float | None = None
    bar: Bar | None = None
    label: str | None = None
    size: int | None = None
    question: str | None = None

    @property
    def ratio(self) -> float | None:
        """Ours over the peer's; for speeds the peer's over ours, so that less is always better.
        None over nothing."""
        over, under = (
            (self.theirs, self.ours) if self.unit == "rows/s" else (self.ours, self.theirs)
        )
        return over / under if over is not None and under else None

    @property
    def met(self) -> bool | None:
        """Whether the bar is met; None without a bar or without the peer that it speaks of."""
        value = None if self.bar is None else self.ours if self.bar.of == "ours" else self.ratio
        return None if self.bar is None or value is None else value <= self.bar.most

    def cells(self) -> tuple[str, ...]:
        """The row as it is printed."""
        peer = (
            ""
            if self.peer is None
            else "peer not installed"
            if self.theirs is None
            else shown(self.theirs, self.unit)
        )
        return (
            self.work,
            shown(self.ours, self.unit),
            peer if self.peer is None else f"{self.peer}: {peer}",
            "" if self.ratio is None else f"{self.ratio:.3g}",
            "" if self.bar is None else self.bar.words,
            {True: "yes", False: "no", None: ""}[self.met],
        )


HEADINGS = ("work", "ours", "peer", "ratio", "bar", "met")


def shown(value: float, unit: Unit) -> str:
    """A quantity with the prefix that suits it."""
    if unit == "share":
        return f"{value:.4f}"
    if unit == "bytes":
        return f"{value / 1e6:.1f} MB"
    if unit == "rows/s":
        return f"{value / 1e6:.2f} M rows/s"
    scale, name = next(
        ((s, n) for s, n in ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs")) if value >= s), (1e-9, "ns")
    )
    return f"{value / scale:.3g} {name}{unit[1:]}"
