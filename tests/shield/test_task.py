"""A task in place of its parts: the same rollouts, and nothing that contradicts it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

pytest.importorskip("joblib", reason="joblib is not installed: pip install 'pacbound[shield]'")

from tests.shield.cars import Car, brake, danger, labelled, rash

from pacbound.errors import InvalidTypeError
from pacbound.shield import Task, check_label, run_shielded

TASK = Task(Car, rash, brake, danger, horizon=40, environment_options={"slip": 0.1})
PARTS: Any = {
    "policy": rash,
    "backup": brake,
    "horizon": 40,
    "environment_options": {"slip": 0.1},
}


def same(one: Any, other: Any) -> bool:
    return all(
        column.tobytes() == other.columns[name].tobytes() for name, column in one.columns.items()
    )


def test_a_task_and_its_parts_give_the_same_rollouts() -> None:
    rollouts = labelled(TASK, seeds=range(50))
    assert same(rollouts, labelled(Car, danger=danger, seeds=range(50), **PARTS))
    assert same(
        run_shielded(TASK, certificate_or_thresholds=[0.5, np.inf], seeds=range(50)),
        run_shielded(
            Car,
            rash,
            brake,
            danger,
            [0.5, np.inf],
            seeds=range(50),
            horizon=40,
            environment_options={"slip": 0.1},
        ),
    )
    row = int(np.flatnonzero(rollouts.first_unrecoverable >= 0)[0])
    place: Any = {
        "seed": int(rollouts.seed[row]),
        "first_unrecoverable": int(rollouts.first_unrecoverable[row]),
    }
    assert check_label(TASK, **place) == check_label(Car, **PARTS, **place)
    assert check_label(TASK, **place).ok


@pytest.mark.parametrize(
    "beside",
    [{"policy": rash}, {"backup": brake}, {"danger": danger}, {"horizon": 40}, {"identity": "a"}],
)
def test_nothing_that_a_task_holds_is_passed_beside_it(beside: dict[str, Any]) -> None:
    name = next(iter(beside))
    with pytest.raises(InvalidTypeError, match=f"{name} was passed beside a Task"):
        labelled(TASK, seeds=range(5), **beside)
    with pytest.raises(InvalidTypeError, match=f"{name} was passed beside a Task"):
        run_shielded(TASK, seeds=range(5), certificate_or_thresholds=0.5, **beside)
    if name != "danger":
        with pytest.raises(InvalidTypeError, match=f"{name} was passed beside a Task"):
            check_label(TASK, seed=0, first_unrecoverable=0, **beside)


def test_a_shield_needs_a_danger_model() -> None:
    with pytest.raises(InvalidTypeError, match="a shield needs a danger model"):
        run_shielded(replace(TASK, danger=None), certificate_or_thresholds=0.5, seeds=range(5))
