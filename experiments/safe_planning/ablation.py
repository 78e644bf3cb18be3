"""The appendix's ablations over xi, delta and n, each cell repeated, with the share of draws that
violate.

The rollouts that were collected are the law: a draw takes n of them with replacement, every method
chooses its threshold from the draw, and the threshold is judged by what is true under the law, the
share of all collected rollouts that it misses. So whether a draw violates is known exactly and not
estimated, and the guarantee must hold, as it does for every law: at most a share delta of the draws
may violate. What the same thresholds do in rooms that nobody has drawn from is another table.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.stats import binom

from experiments.safe_planning.methods import CERTIFIED, METHODS, Table, many_thresholds

XI, DELTA = (0.2, 0.15, 0.1, 0.05, 0.03), (1e-1, 1e-2, 1e-3, 1e-4)
DEFAULT_XI, DEFAULT_DELTA = 0.1, 1e-2
LEVEL = 0.001
"""More violations than delta allows are said to be shown if so many, or more, had a smaller
probability than this at a rate of delta."""


@dataclass(frozen=True)
class Cell:
    """One setting: which panel it belongs to, and its three numbers."""

    panel: str
    xi: float
    delta: float
    n: int


def cells(most: int, sizes: tuple[int, ...]) -> list[Cell]:
    """The panels of the appendix: xi, delta and n, the other two at their default."""
    return [
        *(Cell("xi", xi, DEFAULT_DELTA, most) for xi in XI),
        *(Cell("delta", DEFAULT_XI, delta, most) for delta in DELTA),
        *(Cell("n", DEFAULT_XI, DEFAULT_DELTA, n) for n in sizes),
    ]


def run(
    law: Table,
    settings: list[Cell],
    *,
    repeats: int,
    seed: int,
    progress: Callable[[float], None] | None = None,
) -> list[dict[str, Any]]:
    """A row for each cell and method."""
    rows: list[dict[str, Any]] = []
    # The default is in all three panels.
    known: dict[Cell, dict[str, list[float]]] = {}
    for place, cell in enumerate(settings):
        setting = replace(cell, panel="")
        if setting not in known:
            known[setting] = thresholds_of(law, setting, repeats, seed)
        rows += [judged(law, cell, method, found) for method, found in known[setting].items()]
        if progress is not None:
            progress((place + 1) / len(settings))
    return rows


def thresholds_of(law: Table, cell: Cell, repeats: int, seed: int) -> dict[str, list[float]]:
    """The threshold of each method in each draw."""
    rng = np.random.default_rng([seed, cell.n, round(1e6 * cell.xi), round(1e6 * cell.delta)])
    draws = [rng.integers(len(law), size=cell.n, dtype=np.int32) for _ in range(repeats)]
    return {
        method: many_thresholds(method, law, draws, xi=cell.xi, delta=cell.delta)
        for method in METHODS
    }


def judged(law: Table, cell: Cell, method: str, thresholds: list[float]) -> dict[str, Any]:
    """What the thresholds of all draws do under the law, and whether more of them violate than
    delta allows.

    A method without a guarantee promises no delta; it is held against the same one.
    """
    missed = np.array([law.missed(value) for value in thresholds])
    reached = np.array([law.succeeds(value) for value in thresholds])
    # Integers: a share of exactly xi is no violation.
    violations = int((missed > np.floor(cell.xi * len(law) + 1e-9)).sum())
    surprise = float(binom.sf(violations - 1, len(thresholds), cell.delta))
    safe, success = 1 - missed / len(law), reached / len(law)
    return {
        "panel": cell.panel,
        "xi": cell.xi,
        "delta": cell.delta,
        "n": cell.n,
        "method": method,
        "guaranteed": method in CERTIFIED,
        "draws": len(thresholds),
        "violations": violations,
        "p_value": surprise,
        "exceeds_delta": surprise < LEVEL,
        "safety": [round(float(x), 5) for x in spread(safe)],
        "success": [round(float(x), 5) for x in spread(success)],
    }


def spread(values: Any) -> tuple[float, float, float]:
    """The mean, and between which two values nine tenths of the draws are."""
    low, high = np.quantile(values, [0.05, 0.95])
    return float(np.mean(values)), float(low), float(high)
