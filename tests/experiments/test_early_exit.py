"""The exhibit about early exits on a shared backbone: what its tables are made of."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from experiments.early_exit import certified, places

RESULTS = Path(__file__).parents[2] / "experiments" / "results"
PLACES = [4, 11, 20]
PARTS: dict[str, Any] = {"heads": [2, 2, 1, 4], "decisions": [1, 1, 1], "alone": 70}
TIMES: dict[str, Any] = {
    "1": {"stages": [10, 20, 30, 20], **PARTS},
    "25": {"stages": [94, 20, 30, 20], **PARTS},
}
"""The whole network takes 84, and 168."""


def kept(name: str) -> Any:
    return json.loads((RESULTS / f"{name}.json").read_text(encoding="utf-8"))


def table(folder: Path, rows: int = 200) -> tuple[Path, dict[str, Any], dict[str, Any]]:
    rng = np.random.default_rng(0)
    labels = rng.integers(10, size=rows)
    path = folder / "table.npz"
    np.savez(
        path,
        confidence=rng.random((rows, 3)),
        prediction=np.repeat(labels[:, None], 4, axis=1).astype(np.uint8),
        label=labels.astype(np.uint8),
    )
    made = {
        "after_blocks": PLACES,
        "multiply_accumulates": {"stages": [30, 30, 30, 10], "heads": [3, 2, 1, 1]},
        "multiply_accumulates_alone": 101,
    }
    chosen = {"fold": 50, "chosen": {"2": [11], "4": PLACES}, "times": TIMES}
    return path, made, chosen


def test_the_images_that_chose_take_no_part_in_certifying(tmp_path: Path) -> None:
    path, made, chosen = table(tmp_path)
    two, four = certified.models(path, made, chosen)
    with np.load(path) as held:
        assert np.array_equal(two.confidences, held["confidence"][50:, 1:2])
        assert np.array_equal(four.confidences, held["confidence"][50:])
        assert np.array_equal(four.labels, held["label"][50:])
    assert two.predictions.shape == (150, 2)
    assert two.labels.dtype == two.predictions.dtype == np.int64


def test_costs_are_those_of_the_parts_that_run_before_an_answer() -> None:
    stages, heads = TIMES["1"]["stages"], TIMES["1"]["heads"]
    assert places.running_costs([4, 20], PLACES, stages, heads) == [12, 63, 87]
    assert places.running_costs(PLACES, PLACES, stages, heads) == [12, 34, 65, 89]
    made = {
        "after_blocks": PLACES,
        "multiply_accumulates": {"stages": stages, "heads": heads},
        "multiply_accumulates_alone": 100,
    }
    assert certified.macs(made, [11]) == pytest.approx([0.32, 0.86])


def test_times_are_shares_of_the_whole_network_s_in_the_mean_of_both_batches() -> None:
    answered = (33 / 84 + 117 / 168) / 2, (87 / 84 + 171 / 168) / 2
    found = places.time_costs([11], PLACES, TIMES)
    assert found == pytest.approx([1e6 * share for share in answered], abs=1)


def test_the_fold_chooses_the_exits_that_take_the_least_time() -> None:
    rng = np.random.default_rng(0)
    label = rng.integers(10, size=1000)
    sure = rng.random((1000, 3)) < [0.1, 0.9, 0.95]
    rows = {
        "confidence": np.where(sure, 0.99, 0.2),
        "prediction": np.column_stack([np.where(sure, label[:, None], 11), label]),
        "label": label,
    }
    found = places.searched(rows, PLACES, TIMES, 2)
    assert [each["after"] for each in found] == [[11], [20], [4]]
    assert [each["time"] for each in found] == sorted(each["time"] for each in found)


def test_the_parts_are_printed_as_shares() -> None:
    lines = places.parts_table(PLACES, TIMES)
    assert "| the first convolution, blocks 1 to 4 | 11.9% | 56.0% |" in lines
    assert "| blocks 21 to 27 | 23.8% | 11.9% |" in lines
    assert "| head after block 20 | 1.2% | 0.6% |" in lines
    assert "| at once | 70000.00 ms an image | 2800.00 ms an image |" in lines


def test_the_committed_choice_is_the_one_of_the_committed_table_and_times() -> None:
    choice, made, parts = (kept(f"early_exit_{name}") for name in ("places", "table", "parts"))
    assert choice["table_sha256"] == made["table_sha256"]
    assert choice["times"] == parts["times"]
    assert choice["chosen"] == {m: found[0]["after"] for m, found in choice["fastest"].items()}
    assert kept("early_exit")["chosen"] == choice["chosen"]
    with np.load(RESULTS / "early_exit_table.npz") as held:
        assert held["confidence"].dtype == np.float64


def test_the_committed_table_has_both_m_and_keeps_xi() -> None:
    exact = [row for row in kept("early_exit")["results"] if row["method"] == "exact"]
    assert {(row["M"], row["xi"]) for row in exact} == {
        (m, xi) for m in (2, 4) for xi in certified.XI
    }
    assert all(row["splits_shown_above"] == 0 for row in exact)
    assert all(row["cost"] <= 1.03 for row in exact)


def test_at_most_70_percent_of_the_time_remains_with_four_models_at_2_percent() -> None:
    timed = [
        row for row in kept("early_exit_timing")["results"] if (row["M"], row["xi"]) == (4, 0.02)
    ]
    assert {row["batch"] for row in timed} >= {1, 25}
    for row in timed:
        assert all(row["certified"])
        assert row["time_ratio"][1] <= 0.7
        assert row["cpu_ratio"][1] <= 0.7


def test_what_the_table_says_of_multiplications_follows_from_the_exits() -> None:
    shares = {"2": [0.3, 1.1]}
    found = {"M": 2, "method": "exact", "exit_rates": [0.25]}
    assert certified.macs_spent(found, shares) == pytest.approx(0.25 * 0.3 + 0.75 * 1.1)
    assert certified.macs_spent({**found, "method": "slow"}, shares) == 1


def test_the_report_shows_times_where_they_were_measured() -> None:
    record = kept("early_exit")
    row: dict[str, Any] = {
        "M": 2,
        "xi": 0.02,
        "batch": 1,
        "cost": 0.9,
        "time_ratio": [0.8, 0.85, 0.95],
    }
    row["cpu_ratio"] = row["time_ratio"]
    timing = {"images": 500, "splits": 4, "rounds": 5, "results": [row]}
    assert "85.0% (80.0% to 95.0%)" in certified.markdown({**record, "timing": timing})
    assert "Nobody has measured" in certified.markdown({**record, "timing": None})
