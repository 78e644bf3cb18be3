"""A pilot that was counted with clusters plans numbers of clusters."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from pacbound import Tally, calibrate, certify_precision, certify_recall, plan_from_pilot
from pacbound.errors import InvalidValueError


def _rows(patients: int, seed: int) -> dict[str, Any]:
    rng = np.random.default_rng(seed)
    patient = np.repeat(np.arange(patients), rng.integers(1, 8, size=patients))
    ill = (rng.random(patients) < 0.4)[patient]
    positive = ill & (rng.random(len(patient)) < 0.5)
    hard = (rng.random(patients) < 0.3)[patient]
    centre = np.where(positive, np.where(hard, 0.2, 2.0), -2.0)
    score = 1 / (1 + np.exp(-rng.normal(centre)))
    return {"score": score, "positive": positive, "clusters": patient}


PILOT = _rows(500, seed=0)


@pytest.mark.parametrize("draw", [{}, {"among": "all"}, {"cluster_bound": 8}])
def test_a_plan_in_clusters_foretells_what_so_many_clusters_give(draw: dict[str, Any]) -> None:
    pilot = Tally.count("recall", **PILOT, **draw)
    plan = plan_from_pilot(pilot, target=0.8, delta=0.05, sizes=[3000], draws=20)
    assert plan.unit == "clusters"
    assert plan.pilot_rows == 500
    (point,) = plan.points
    real = certify_recall(
        data=Tally.count("recall", **_rows(3000, seed=1), **draw), target=0.8, delta=0.05
    )
    assert point.certified == 1.0
    assert point.value == pytest.approx(real.coverage, abs=0.05)
    labels = 3000 if draw == {"among": "all"} else len(_rows(3000, seed=1)["score"])
    assert point.labels == pytest.approx(labels, rel=0.1)


@pytest.mark.slow
def test_drawing_among_the_positives_takes_fewer_clusters() -> None:
    among, first = (
        plan_from_pilot(
            Tally.count("recall", **PILOT, among=among), target=0.8, delta=0.05, draws=20
        ).needed
        for among in ("positive", "all")
    )
    assert among is not None
    assert first is not None
    assert among.rows < first.rows


def test_a_pilot_that_was_drawn_for_another_claim_is_refused() -> None:
    pilot = Tally.count("recall", **PILOT)
    with pytest.raises(InvalidValueError, match="count again, with among='negative'"):
        plan_from_pilot(pilot, xi=0.1, delta=0.05, claim="false-alarms", draws=10)
    negatives = Tally.count("recall", **PILOT, among="negative")
    plan = plan_from_pilot(negatives, xi=0.3, delta=0.05, claim="false-alarms", draws=10)
    assert plan.needed is not None


def _in_groups(patients: int, seed: int) -> dict[str, Any]:
    rows = _rows(patients, seed)
    groups = np.random.default_rng(seed).choice(["CT", "MRI"], len(rows["score"]), p=[0.7, 0.3])
    return {**rows, "groups": groups, "seed": 5}


@pytest.mark.parametrize("kind", ["recall", "precision"])
def test_a_plan_in_groups_counts_each_cluster_once_in_each(kind: str) -> None:
    more = {} if kind == "recall" else {"among": "all"}
    pilot = Tally.count("recall", **_in_groups(500, seed=0), **more)
    asked: dict[str, Any] = {"target": 0.6, "delta": 0.05}
    plan = plan_from_pilot(pilot, claim=kind, sizes=[3000], draws=20, **asked)
    certify = certify_recall if kind == "recall" else certify_precision
    real: Any = certify(data=Tally.count("recall", **_in_groups(3000, seed=1), **more), **asked)
    assert plan.unit == "clusters"
    (point,) = plan.points
    assert point.certified == 1.0
    seen = real.coverage
    assert point.value == pytest.approx(seen, abs=0.05)


def test_a_calibration_by_clusters_is_planned_in_clusters() -> None:
    rows = PILOT
    pilot = Tally.count(
        "calibration", rows["score"], rows["positive"], n_bins=2, clusters=rows["clusters"], seed=0
    )
    plan = plan_from_pilot(pilot, delta=0.05, sizes=[500], draws=10)
    real = calibrate(
        rows["score"], rows["positive"], delta=0.05, n_bins=2, clusters=rows["clusters"], seed=0
    )
    assert plan.unit == "clusters"
    assert real.draw is not None
    assert real.draw.units == 500
    # A row of each patient in each of two bins.
    assert plan.points[0].labels == pytest.approx(real.n, rel=0.1)
