"""What a duel is: cells, each measured with fixed seeds, and a table of what was found."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from scipy.special import bdtrc

Row = dict[str, Any]
"""What was measured in one cell, as it stands in the JSON file. `met` says whether the bar of the
cell was met; it is None or missing where there is no bar."""

Measure = Callable[[int], Row]
"""Measures a cell with so many draws."""


@dataclass(frozen=True)
class Duel:
    """A method to compare with. `cells` takes the folder with the data, or None for what ships, and
    gives the name of each cell and how to measure it; `draws` is how many seeds it takes unless
    told otherwise; `packages` are those whose versions are recorded; `simulated` says that no data
    is needed.
    """

    cells: Callable[[Path | None], Iterable[tuple[str, Measure]]]
    table: Callable[[Sequence[Row]], str]
    draws: int
    packages: tuple[str, ...] = ()
    simulated: bool = False


@cache
def arrays(path: Path) -> dict[str, Any]:
    """All arrays of an npz file."""
    with np.load(path, allow_pickle=False) as file:
        return dict(file)


def at_least(violations: int, draws: int, delta: float) -> float:
    """P(Bin(draws, delta) >= violations): the exact test of "each draw fails with probability at
    most delta".
    """
    return 1.0 if not violations else float(bdtrc(violations - 1, draws, delta))


def violated(violations: int, draws: int, delta: float) -> Row:
    """Violations as they are recorded: their number, and the test of it."""
    return {"violations": violations, "p": at_least(violations, draws, delta)}


def shown(found: Row, draws: int) -> str:
    """Violations as they stand in a table."""
    return f"{found['violations']} of {draws:,} (p {found['p']:.2f})"


def markdown(headings: Sequence[str], lines: Iterable[Sequence[str]]) -> str:
    """A table in Markdown."""
    every = [headings, ["---"] * len(headings), *lines]
    return "\n".join(f"| {' | '.join(line)} |" for line in every)
