"""Every shape of picture from small numbers, and from numbers that are easy to draw wrongly."""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any, cast

import numpy as np

from pacbound.figure import Figure
from pacbound.figures import Curve, Named
from pacbound.figures.batch import sampled_disagreements
from pacbound.figures.bins import Bins, intervals_by_bin
from pacbound.figures.thresholds import (
    rate_by_coverage,
    share_by_threshold,
)
from pacbound.figures.walk import ExitWalk, loss_along_walk
from pacbound.monitor import Monitor
from pacbound.planning import PilotPlan
from pacbound.planning.plan import PlanPoint
from pacbound.report.plotting import errors_by_look, evidence_over_time, outcome_by_rows
from pacbound.stats.looks import planned_looks

NAN = float("nan")
WORDS = {"title": "By <threshold> & $x$ $y$", "caption": 'The "upright" line is < certified.'}
TARGET = Named(0.9, "target 0.9")


def shares(thresholds: Any, recall: Any, flagged: Any, certified: float | None = None) -> Figure:
    curves = [Curve("positives flagged", recall, "Recall"), Curve("rows flagged", flagged)]
    claim = None if certified is None else Named(certified, f"flag from {certified} on")
    return share_by_threshold(thresholds, curves, asked=TARGET, certified=claim, **WORDS)


def risk(thresholds: Any, coverage: Any, wrong: Any, certified: float | None = None) -> Figure:
    return rate_by_coverage(
        thresholds,
        Curve("coverage", coverage, "Coverage (share of rows answered)"),
        Curve("risk", wrong, "Risk (share of answers wrong)"),
        rows=100,
        asked=Named(0.05, "xi = 0.05"),
        certified=None if certified is None else Named(certified, "answer from here on"),
        **WORDS,
    )


def walk(models: int, steps: int, certified_at: int | None = None) -> Figure:
    exits = np.outer(np.arange(1, models + 1), np.arange(steps))
    thresholds = np.tile(np.linspace(1, 0.5, steps), (models, 1))
    counts = np.arange(steps)
    done = ExitWalk(thresholds, exits, counts, counts // 2, rows=1000)
    return loss_along_walk(done, asked=Named(0.02, "xi = 0.02"), certified_at=certified_at)


def evidence(labels: Any, found: Any, *, limit: float, alarms: Sequence[int] = ()) -> Figure:
    """The evidence of a monitor that has seen no more than this."""
    watched = SimpleNamespace(
        labels=labels[-1],
        history=(labels, found),
        limit=limit,
        alarms=[SimpleNamespace(label=label) for label in alarms],
        false_alarms="ever",
        delta=0.001,
        certificate=SimpleNamespace(kind="shield"),
    )
    return evidence_over_time(cast("Monitor", watched))


def forecast(*points: tuple[float, ...], goal: float | None = None) -> Figure:
    """A plan of sizes, each with the average, the ends of its band, and the share that reached."""
    made = tuple(
        PlanPoint(int(rows), rows, None, reached, reached, value, low, high, (), False)
        for rows, value, low, high, reached in points
    )
    return outcome_by_rows(
        PilotPlan(
            kind="calibration",
            subject="a calibration",
            measure="mean width",
            unit="rows",
            larger=False,
            pilot_rows=50,
            xi=None,
            delta=0.05,
            goal=goal,
            power=0.8,
            draws=10,
            points=made,
            needed=made[-1] if goal else None,
        )
    )


EDGES = np.linspace(0, 1, 6)
BINS = Bins(
    EDGES[:-1], EDGES[1:],
    [0, 10, 0, 100, 1000], [0, 3, 0, 70, 1000],
    [0, 0.05, 0, 0.55, 0.99], [1, 0.7, 1, 0.82, 1],
)  # fmt: skip

SHAPES: dict[str, Figure] = {
    "share": shares([0.9, 0.5, 0.2], [0.6, 0.95, 1.0], [0.2, 0.5, 1.0], 0.5),
    "share, refused": shares([0.2, 0.5], [1.0, 0.4], [1.0, 0.2], float("-inf")),
    "share, one row": shares([0.5], [1.0], [1.0]),
    "share, no rows": shares([], [], []),
    "share, all at score 1": shares([1.0], [1.0], [1.0], 1.0),
    "share, all at score 0": shares([0.0], [1.0], [1.0], 0.0),
    "share, saturated": shares([0.1, 0.2, 0.3], [1.0, 1.0, 1.0], [1.0, 0.7, 0.5], 0.3),
    "share, no positives": shares([0.1, 0.9], [NAN, NAN], [1.0, 0.5]),
    "bins": intervals_by_bin(BINS),
    "bins, one": intervals_by_bin(Bins([0.0], [1.0], [9], [9], [0.66], [1.0])),
    "bins, single scores": intervals_by_bin(
        Bins([0.5, 0.5, 1], [0.5, 1, 1], [5, 6, 7], [5, 6, 7], [0.5, 0.6, 0.7], [1, 1, 1])
    ),
    "bins, no rows": intervals_by_bin(Bins([0, 0.5], [0.5, 1], [0, 0], [0, 0], [0, 0], [1, 1])),
    "coverage": risk([0.9, 0.8, 0.5], [0.4, 0.7, 1.0], [0.01, 0.03, 0.2], 0.8),
    "coverage, refused": risk([0.9, 0.5], [0.4, 1.0], [0.3, 0.4], float("inf")),
    "coverage, one row": risk([0.9], [1.0], [0.0]),
    "coverage, no rows": risk([], [], []),
    "walk": walk(1, 20, 12),
    "walk, two fast models": walk(2, 20, 12),
    "walk, four fast models": walk(4, 20, 0),
    "walk, one step": walk(1, 1),
    "walk, no steps": walk(1, 0),
    "sample": sampled_disagreements([40, 90], records=100, allowed=1, kept=89),
    "sample, none found": sampled_disagreements([], records=100, allowed=0, kept=100),
    "sample, refused": sampled_disagreements([1, 2], records=100, allowed=-1, kept=0),
    "evidence": evidence([100, 200, 300], [0.5, 1500.0, 3], limit=1000, alarms=[190]),
    "evidence, zero": evidence([1], [0.0], limit=20),
    "evidence, huge": evidence([1, 2], [1e-300, 1e300], limit=1e3, alarms=[2, 2]),
    "looks": errors_by_look(planned_looks(0.02, delta=0.01, looks=[100, 500, 900]), 0.01),
    "forecast": forecast((100, 0.3, 0.25, 0.4, 0.0), (1000, 0.1, 0.09, 0.12, 0.9), goal=0.15),
    "forecast, nothing certified": forecast((100, NAN, NAN, NAN, 0.0)),
}
