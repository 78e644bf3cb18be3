"""The duel of small samples: its laws, what decides by counts alone, and which cells are lost."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from benchmarks.duels import small_samples
from benchmarks.duels.small_samples import Cell, applied, behind, opened, table, verdicts

RNG = np.random.default_rng(0)
LOST = RNG.choice([-1, 0, 1], p=[0.2, 0.7, 0.1], size=400)


def test_a_test_is_tried_where_exactly_xi_is_lost() -> None:
    cell = Cell("replacement", "old to new", 0.05, None, LOST)
    true, *null = cell.laws()
    assert true == pytest.approx([np.mean(sign == LOST) for sign in (1, -1, 0)])
    assert [lost - gained for lost, gained, _ in null] == pytest.approx([0.05, 0.05])
    assert null[0][1] == 0
    assert null[1][0] + null[1][1] == pytest.approx(true[0] + true[1])
    rate = Cell("rate", "judge", 0.25, None, np.abs(LOST))
    assert rate.laws()[1:] == [(0.25, 0.0, 0.75)]


def test_exact_tests_keep_their_promise_and_walds_does_not() -> None:
    cell = Cell("replacement", "old to new", 0.02, None, LOST)
    found = verdicts(cell, ("pacbound", "Wald", "bootstrap"), 100, 200)
    assert found["pacbound"][1] <= 30
    assert found["Wald"][1] > 20
    assert found["Wald"][0] >= found["pacbound"][0]


def test_what_comes_of_a_threshold_is_counted_in_the_whole_table() -> None:
    scores = np.sort(RNG.random(400))
    cell = Cell("abstention", "made up", 0.2, scores, np.arange(400) < 100)
    ((share, broken, draws),) = applied(cell, ("pacbound",), 200, 5).values()
    assert 0.5 < share < 1
    assert broken <= draws == 5
    chances = RNG.dirichlet([0.2] * 3, size=400)
    sets = Cell("sets", "made up", 0.2, chances, np.where(RNG.random(400) < 0.05, -1, 0))
    ((labels, _, _),) = applied(sets, ("pacbound",), 200, 5).values()
    assert 1 < labels <= 3


def test_a_cell_is_lost_only_to_a_method_that_keeps_its_promise() -> None:
    def method(*values: float, p: float = 1.0) -> dict[str, Any]:
        return {"value": list(values), "broken": [0] * 6, "p": [p] * 6}

    others = {"before": method(*[0.1] * 6), "Wald": method(*[0.9] * 6, p=1e-6)}
    ours = {"pacbound": method(0.1, 0.2, 0.3, 0.4, 0.5, 0.6)}
    other = {"evalstats": method(0.106, 0.204, 0.3, 0.3, 0.3, 0.3)}
    row: dict[str, Any] = {"name": "a cell", "kind": "replacement"}
    row["methods"] = ours | others | other
    row["behind"] = behind(row)
    assert row["behind"] == ["n = 100 0.100 against evalstats 0.106"]
    shown = table([row])
    assert "| replacement | evalstats | 0.106 | 0.204 |" in shown
    assert "5 of 6 |" in shown


def test_another_file_than_the_one_that_was_measured_is_refused(tmp_path: Path) -> None:
    name = next(iter(small_samples.SHA256))
    (tmp_path / name).write_bytes(b"other")
    with pytest.raises(SystemExit, match="has SHA-256"):
        opened(tmp_path, name)
