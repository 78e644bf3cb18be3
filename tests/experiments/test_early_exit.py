"""The exhibit about early exits on a shared backbone: what its tables are made of."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
from experiments.early_exit import certified

RESULTS = Path(__file__).parents[2] / "experiments" / "results"


def table(folder: Path, rows: int = 200) -> tuple[Path, dict[str, Any]]:
    rng = np.random.default_rng(0)
    labels = rng.integers(10, size=rows)
    path = folder / "table.npz"
    np.savez(
        path,
        confidence=rng.random((rows, 3)).astype(np.float32),
        prediction=np.repeat(labels[:, None], 4, axis=1).astype(np.uint8),
        label=labels.astype(np.uint8),
    )
    made = {
        "multiply_accumulates": [30, 60, 90, 110],
        "multiply_accumulates_with_one_exit": [30, 102],
        "multiply_accumulates_alone": 100,
    }
    return path, made


def test_two_and_four_models_are_of_the_same_images(tmp_path: Path) -> None:
    two, four = certified.models(*table(tmp_path))
    assert two.confidences.shape == (200, 1)
    assert four.confidences.shape == (200, 3)
    assert (two.predictions == four.predictions[:, [0, 3]]).all()
    assert (two.costs, four.costs) == ((30, 102), (30, 60, 90, 110))
    assert two.slow_cost == four.slow_cost == 100


def test_bytes_do_not_wrap_around(tmp_path: Path) -> None:
    two, _ = certified.models(*table(tmp_path))
    assert two.labels.dtype == two.predictions.dtype == np.int64


def test_the_committed_table_has_both_m_and_keeps_xi() -> None:
    record = json.loads((RESULTS / "early_exit.json").read_text(encoding="utf-8"))
    exact = [row for row in record["results"] if row["method"] == "exact"]
    assert {(row["M"], row["xi"]) for row in exact} == {
        (m, xi) for m in (2, 4) for xi in certified.XI
    }
    assert all(row["splits_shown_above"] == 0 for row in exact)
    assert all(row["cost"] <= 1.03 for row in exact)


def test_the_report_shows_times_where_they_were_measured() -> None:
    record = json.loads((RESULTS / "early_exit.json").read_text(encoding="utf-8"))
    row: dict[str, Any] = {
        "M": 2,
        "xi": 0.02,
        "batch": 1,
        "cost": 0.9,
        "time_ratio": [0.8, 0.85, 0.95],
    }
    row["cpu_ratio"] = row["time_ratio"]
    timing = {"images": 500, "rounds": 5, "results": [row]}
    assert "85.0% (80.0% to 95.0%)" in certified.markdown({**record, "timing": timing})
    assert "Nobody has measured" in certified.markdown({**record, "timing": None})
