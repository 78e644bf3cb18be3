"""The ways to choose a threshold that are compared, each from scores, truth values and a claim."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from benchmarks.peers import adapter
from numpy.typing import NDArray

from experiments.abstention.tables import Case
from experiments.baselines import observed_risk_threshold, selective_guaranteed_risk
from pacbound.procedures import abstention
from pacbound.tally.grids import FINE as GRID

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


@dataclass(frozen=True)
class Draw:
    """Rows that certify."""

    confidence: Floats
    correct: NDArray[np.bool_]


FINE = np.sort(1.0 - np.geomspace(1e-5, 1.0, 100))
"""A hundred thresholds for MAPIE that are dense where networks are sure: its own end at 0.99, where
over-confident networks still err too often."""

Method = Callable[[Case, Draw], float]


def rank_starts(case: Case, draw: Draw) -> float:
    """What `certify_abstention` does."""
    return _lowest(abstention.claimed(*_counts(draw), xi=case.xi, delta=case.delta))


def one_start(case: Case, draw: Draw) -> float:
    """A single walk from where four times as many rows are answered as can pass at the least, at
    the full delta: valid too, since its count is fixed."""
    count = 4 * (abstention.least_rows(xi=case.xi, delta=case.delta) or case.n)
    walk = abstention.Walk(min(case.n, count), case.delta)
    return _lowest(abstention.passed(abstention.Runs.of(*_counts(draw), None), (walk,), case.xi))


def sgr(case: Case, draw: Draw) -> float:
    """Geifman and El-Yaniv's bisection."""
    return selective_guaranteed_risk(draw.confidence, draw.correct, xi=case.xi, delta=case.delta)


def observed(case: Case, draw: Draw) -> float:
    """No reserve for chance."""
    return observed_risk_threshold(draw.confidence, draw.correct, xi=case.xi)


def methods() -> dict[str, tuple[Method, int]]:
    """Each method with the largest number of draws that it is tried on."""
    found: dict[str, tuple[Method, int]] = {
        "pacbound": (rank_starts, 10**6),
        "one start": (one_start, 10**6),
        "SGR": (sgr, 10**6),
        "observed risk": (observed, 10**6),
    }
    mapie = adapter("mapie")
    if mapie is not None:
        for correction in ("bonferroni_holm", "fixed_sequence"):
            found[f"MAPIE, {correction}"] = (
                _mapie(mapie.control_precision, correction, None),
                100,
            )
            found[f"MAPIE, {correction}, fine near 1"] = (
                _mapie(mapie.control_precision, correction, FINE),
                100,
            )
    return found


def _mapie(control: Callable[..., float], correction: str, thresholds: Any) -> Method:
    def method(case: Case, draw: Draw) -> float:
        return control(draw.confidence, draw.correct, case.xi, case.delta, correction, thresholds)

    return method


def _counts(draw: Draw) -> tuple[Integers, Integers, Integers]:
    cells, places = np.unique(GRID.cells(draw.confidence), return_inverse=True)
    right = np.bincount(places, weights=draw.correct, minlength=cells.size).astype(np.int64)
    return cells, np.bincount(places, minlength=cells.size) - right, right


def _lowest(claimed: tuple[tuple[int, int], ...]) -> float:
    return GRID.threshold(claimed[-1][0]) if claimed else np.inf
