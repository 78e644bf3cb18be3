"""The exhibit about safe planning: how thresholds are judged, what tables say, and the networks'
inputs. No simulator runs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from experiments.safe_planning import ablation, report
from experiments.safe_planning.ablation import Cell
from experiments.safe_planning.methods import CERTIFIED, METHODS, Table, many_thresholds, threshold

RESULTS = Path(__file__).parents[2] / "experiments" / "results" / "safe_planning.json"


def law(rows: int, unsafe: int, *, score: float = 0.2) -> Table:
    """`unsafe` of so many rollouts are unsafe at one danger; the others reach the goal at 0.1."""
    bad = np.arange(rows) < unsafe
    scores = np.where(bad, score, 0.1)
    return Table(scores, bad, np.where(bad, score, np.nan), ~bad)


def spread_law(rows: int) -> Table:
    """Half of the rollouts are unsafe, at dangers that are spread evenly, so that every threshold
    has a risk of its own."""
    bad = np.arange(rows) % 2 == 0
    scores = np.random.default_rng(0).permutation((np.arange(rows) + 0.5) / rows)
    return Table(scores, bad, np.where(bad, scores, np.nan), ~bad)


def test_a_threshold_that_misses_exactly_xi_does_not_violate() -> None:
    cell = Cell("xi", 0.1, 0.01, 100)
    assert ablation.judged(law(100, 10), cell, "exact", [0.5])["violations"] == 0
    assert ablation.judged(law(100, 11), cell, "exact", [0.5])["violations"] == 1
    # 0.29 * 100 is 28.999999999999996 in floats.
    assert (
        ablation.judged(law(100, 29), Cell("xi", 0.29, 0.01, 100), "exact", [0.5])["violations"]
        == 0
    )


def test_what_is_at_the_threshold_is_stopped_and_neither_missed_nor_successful() -> None:
    table = law(10, 4, score=0.5)
    assert (table.missed(0.5), table.missed(0.51)) == (0, 4)
    assert (table.succeeds(0.1), table.succeeds(0.5)) == (0, 6)
    assert table.missed(np.inf) == 4


@pytest.fixture(scope="module")
def rows() -> list[dict[str, Any]]:
    return ablation.run(spread_law(1_000), [Cell("n", 0.1, 0.1, 200)], repeats=60, seed=1)


def test_certified_thresholds_keep_delta_and_means_do_not(rows: list[dict[str, Any]]) -> None:
    found = {row["method"]: row for row in rows}
    assert set(found) == set(METHODS)
    assert not any(found[method]["exceeds_delta"] for method in CERTIFIED)
    assert found["histogram"]["exceeds_delta"]
    # The law can violate: some draws of the exact method do, though not too many.
    assert 0 < found["exact"]["violations"] < found["histogram"]["violations"]
    assert found["exact"]["success"][0] > found["product"]["success"][0]


def test_the_cells_are_those_of_the_papers_appendix() -> None:
    cells = ablation.cells(20_000, (5_000, 10_000, 15_000, 20_000))
    assert [cell.xi for cell in cells if cell.panel == "xi"] == [0.2, 0.15, 0.1, 0.05, 0.03]
    assert [cell.delta for cell in cells if cell.panel == "delta"] == [0.1, 0.01, 0.001, 0.0001]
    assert {cell.n for cell in cells if cell.panel == "n"} == {5_000, 10_000, 15_000, 20_000}


def test_each_method_chooses_as_its_public_function_does() -> None:
    table = spread_law(1_000)
    chosen = {method: threshold(method, table, xi=0.1, delta=0.01) for method in METHODS}
    assert chosen["naive"] == 0.5
    assert chosen["xi-naive"] == 0.1
    assert chosen["product"] <= chosen["exact"] < chosen["histogram"]


@pytest.mark.parametrize("xi", [0.0, 0.05, 0.1, 0.29, 0.6])
def test_many_thresholds_are_what_the_public_functions_give(xi: float) -> None:
    rng = np.random.default_rng(5)
    bad = rng.random(400) < 0.5
    last = np.where(bad, rng.random(400), np.nan)
    scores = np.where(bad, np.fmax(last, rng.random(400)), rng.random(400))
    # On the grid, saturated, and lost at the start.
    scores[:4], last[:4], bad[:5] = [0.5, 1.0, 0.0, -np.inf], [0.5, 1.0, 0.0, -np.inf], True
    last[4] = 0.0
    table = Table(scores, bad, last, ~bad)
    draws = [rng.integers(400, size=size) for size in (1, 30, 100, 400, 400)]
    for method in METHODS:
        found = many_thresholds(method, table, draws, xi=xi, delta=0.1)
        one_by_one = [threshold(method, table.drawn(rows), xi=xi, delta=0.1) for rows in draws]
        assert found == one_by_one, method


def test_in_every_committed_cell_the_certified_methods_keep_delta() -> None:
    tasks = json.loads(RESULTS.read_text(encoding="utf-8"))["tasks"]
    rows = [row for part in tasks.values() for row in part["ablation"] if row["guaranteed"]]
    assert {row["method"] for row in rows} == set(CERTIFIED)
    assert len(tasks["depth"]["ablation"]) == 13 * len(METHODS)
    assert not [row for row in rows if row["exceeds_delta"]]


def test_all_cells_are_counted_once_and_their_tests_combined() -> None:
    record = json.loads(RESULTS.read_text(encoding="utf-8"))
    lines = report.together(record)
    cells = {
        (name, row["xi"], row["delta"], row["n"])
        for name, part in record["tasks"].items()
        for row in part["ablation"]
    }
    assert lines[0].startswith(f"All {len(cells)} cells")
    (ours,) = (line for line in lines if line.startswith("| ours, exact"))
    assert f"| 0 of {len(cells)} | nowhere |" in ours
    (means,) = (line for line in lines if line.startswith("| histogram binning"))
    assert "everywhere" in means
