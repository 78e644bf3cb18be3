"""The exhibit about early exits on a shared backbone: what its tables are made of."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
from experiments.early_exit import certified

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
