"""The ways to choose a threshold that are compared, each from scores, truth values and a claim."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from benchmarks.peers import adapter
from numpy.typing import NDArray

from experiments.abstention.tables import Case
from pacbound.baselines import observed_risk_threshold, selective_guaranteed_risk
from pacbound.procedures import abstention
from pacbound.procedures.abstention import FIRST
from pacbound.tally.grids import FINE as GRID

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


@dataclass(frozen=True)
class Draw:
    """Rows that certify, and scores of others that have no labels."""

    confidence: Floats
    correct: NDArray[np.bool_]
    pool: Floats


FINE = np.sort(1.0 - np.geomspace(1e-5, 1.0, 100))
"""A hundred thresholds for MAPIE that are dense where networks are sure: its own end at 0.99, where
over-confident networks still err too often."""

Method = Callable[[Case, Draw], float]


def rank_starts(case: Case, draw: Draw) -> float:
    """What `certify_abstention` does."""
    return _lowest(abstention.claimed(*_counts(draw), xi=case.xi, delta=case.delta))


def pool_starts(case: Case, draw: Draw) -> float:
    """The same with `pool=`."""
    starts = abstention.starts_from(GRID.cells(draw.pool), case.n, xi=case.xi, delta=case.delta)
    cells, wrong, right = _counts(draw)
    return _lowest(abstention.claimed(cells, wrong, right, starts, xi=case.xi, delta=case.delta))


def one_start(case: Case, draw: Draw) -> float:
    """A single start, where 3 ln(1/delta) / xi rows are answered, at the full delta. This is valid
    too, since the start enters through its count alone."""
    cells, wrong, right = _counts(draw)
    count = min(case.n, math.ceil(3 * math.log(1 / case.delta) / case.xi))
    ranked = np.minimum(np.sort(GRID.cells(draw.confidence))[::-1], FIRST)
    start = int(ranked[count - 1])
    return _lowest(abstention.claimed(cells, wrong, right, [start], xi=case.xi, delta=case.delta))


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
        "pacbound, pool": (pool_starts, 10**6),
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
