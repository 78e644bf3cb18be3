"""Grades of tables, by three methods: each claim about a made up table."""

import numpy as np
import pytest
from benchmarks.duels.graded_tables import KINDS, NAMES, Cell, answers_of, found_by, made_up, tossed

CELLS: dict[str, Cell] = {cell.kind: cell for cell in made_up()}


@pytest.mark.parametrize("kind", KINDS)
def test_each_claim_is_decided_by_each_method(kind: str) -> None:
    found = {name: found_by(CELLS[kind], name, 500, 2) for name in NAMES}
    assert all(0 <= value <= 1 and draws == 2 for value, _, draws in found.values())
    assert any(value for value, _, _ in found.values())


def test_tosses_keep_the_mean() -> None:
    rng, cell = np.random.default_rng(0), CELLS["replacement"]
    assert isinstance(cell, Cell)
    answers, true = answers_of(cell.lost, rng)
    old, new = (answers == true[:, None]).mean(axis=0)
    assert old - new == pytest.approx(cell.lost.mean(), abs=0.01)
    assert tossed(cell.quality[:, 1], rng).mean() == pytest.approx(
        cell.quality[:, 1].mean(), abs=0.01
    )
