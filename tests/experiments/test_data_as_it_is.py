"""Claims on rows that are no independent draws of the law of use: the laws, and the record."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("matplotlib", reason="figures need the extra `report`")

from experiments import data_as_it_is as exhibit

RECORD = json.loads(
    (Path(exhibit.__file__).parent / "results/data_as_it_is.json").read_text(encoding="utf-8")
)


def test_the_true_rates_are_those_of_the_laws() -> None:
    rng = np.random.default_rng(0)
    for bound, (before, _) in exhibit.SHIFTS.items():
        law = exhibit.shifted(bound)
        wrong, draw = zip(*(law.rows(rng) for _ in range(200)), strict=True)
        weights = np.concatenate([one["weights"] for one in draw])
        assert max(weights) <= bound
        # In use, rows count as much as they weigh.
        assert np.average(np.concatenate(wrong), weights=weights) == pytest.approx(
            law.rate, abs=0.003
        )
        assert weights.mean() == pytest.approx(1.0, abs=0.02), before
    law = exhibit.clustered(exhibit.LARGEST)
    assert np.mean([law.rows(rng)[0].mean() for _ in range(200)]) == pytest.approx(0.2, abs=0.005)


def test_claims_hold_on_rows_that_are_drawn_and_fail_on_rows_as_they_are() -> None:
    rows = RECORD["wrong_claims"]
    assert {row["kind"] for row in rows} == set(exhibit.CLAIMS)
    assert len(rows) == 4 * len(exhibit.CLAIMS)
    for row in rows:
        assert row["runs"] == 500
        assert row["drawn"]["chance"] > 1e-3
        assert row["as they are"]["chance"] < 1e-6
        for way in ("drawn", "as they are"):
            again = exhibit.chance(row[way]["wrong"], row["runs"], RECORD["delta"])
            assert row[way]["chance"] == pytest.approx(again)


def test_rare_positives_and_looks_are_as_promised() -> None:
    rare, looks = RECORD["rare_positives"], RECORD["looks"]
    assert rare["rows"] == 20_000
    assert rare["positive"] == 0.02
    assert rare["chance"] > 1e-3
    assert looks["expected_labels"] <= 1450
    assert looks["spent"] <= looks["delta"]
    again = exhibit.looks()
    assert again["largest_errors"] == looks["largest_errors"]
    assert again["expected_labels"] == pytest.approx(looks["expected_labels"])
