"""Recall by patients, drawn among the positives and drawn first: the law, and the record."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("matplotlib", reason="figures need the extra `report`")

from experiments import clusters as exhibit

RECORD = json.loads(
    (Path(exhibit.__file__).parent / "results/clusters.json").read_text(encoding="utf-8")
)


def test_the_true_rates_are_those_of_the_law() -> None:
    rng = np.random.default_rng(0)
    misses: dict[str, list[float]] = {"among": [], "first": []}
    for _ in range(20):
        rows = exhibit.cohort(rng)
        order = rng.permutation(len(rows["score"]))
        low, positive, patient = (rows[key][order] for key in ("score", "positive", "clusters"))
        _, first = np.unique(patient, return_index=True)
        misses["first"] += (low[first][positive[first]] < 0.6).tolist()
        _, among = np.unique(patient[positive], return_index=True)
        misses["among"] += (low[positive][among] < 0.6).tolist()
    for way, seen in misses.items():
        assert np.mean(seen) == pytest.approx(exhibit.missed(0.6, way), abs=0.015)


def test_claims_hold_and_drawing_among_the_positives_refuses_and_flags_less() -> None:
    found = {(one["target"], one["way"]): one for one in RECORD["claims"]}
    assert RECORD["patients"] == 2000
    for target in exhibit.TARGETS:
        among, first = found[target, "among"], found[target, "first"]
        for one in (among, first):
            assert one["runs"] == 400
            assert one["chance"] == pytest.approx(exhibit.chance(one["wrong"], one["runs"]))
            assert one["chance"] > 1e-3
        assert among["refused"] <= first["refused"]
        assert among["median_flagged"] < first["median_flagged"]
        assert among["median_trials"] > 2 * first["median_trials"]
    assert found[0.99, "among"]["refused"] == 0
    assert found[0.99, "first"]["refused"] == 400
