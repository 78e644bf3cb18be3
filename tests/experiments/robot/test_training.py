"""Training of the robot's networks: NumPy says what torch says, weights survive the disk, training
learns."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch", reason="training needs the extra `torch`")

import torch
from experiments.robot.inference import DANGER_SHAPES, read_weights
from experiments.shield.demonstrations import demonstrations
from experiments.shield.networks import (
    DangerNetwork,
    PolicyNetwork,
    arrays,
    train_danger,
    train_policy,
    write_weights,
)

from experiments.robot import DangerModel, ImagePolicy
from pacbound.errors import InvalidValueError


def random_observations(count: int, *, seed: int = 0) -> dict[str, Any]:
    rng = np.random.default_rng(seed)
    return {
        "depth": rng.uniform(0, 1, size=(count, 16, 64)).astype(np.float32),
        "goal": rng.uniform(-1, 1, size=(count, 3)).astype(np.float32),
        "speed": rng.uniform(-1, 1, size=(count, 2)).astype(np.float32),
    }


def row(observations: dict[str, Any], place: int) -> dict[str, Any]:
    return {name: values[place] for name, values in observations.items()}


@pytest.mark.parametrize("kind", ["policy", "danger"])
def test_numpy_says_what_torch_says(kind: str) -> None:
    torch.manual_seed(0)
    network: Any = PolicyNetwork() if kind == "policy" else DangerNetwork()
    small: Any = (ImagePolicy if kind == "policy" else DangerModel)(arrays(network))
    seen = random_observations(50)
    numbers = np.concatenate([seen["goal"], seen["speed"]], axis=1)
    with torch.no_grad():
        expected = network(torch.from_numpy(seen["depth"]), torch.from_numpy(numbers)).numpy()
    found = np.stack([small.outputs(row(seen, place)) for place in range(50)])
    assert found == pytest.approx(expected, abs=1e-5)
    assert found.std() > 1e-3


def test_training_learns_and_is_the_same_each_time() -> None:
    seen = random_observations(256)
    seen["depth"][:] = 0.5  # nothing to learn by heart
    # What can be learnt in its mirror image as well: turn towards the goal, and danger is speed.
    actions = np.stack([0.5 + 0.2 * seen["goal"][:, 0], seen["goal"][:, 2]], axis=1)
    first, second = (arrays(train_policy(seen, actions, epochs=2, seed=1)) for _ in range(2))
    assert all(np.array_equal(first[name], second[name]) for name in first)
    shares: list[float] = []
    policy = ImagePolicy(
        arrays(train_policy(seen, actions, epochs=100, seed=1, progress=shares.append))
    )
    assert shares == [(epoch + 1) / 100 for epoch in range(100)]
    acted = np.stack([policy(row(seen, place)) for place in range(100)])
    assert np.abs(acted - actions[:100]).mean() < 0.1
    fast = seen["speed"][:, 0] > 0.3
    danger = DangerModel(arrays(train_danger(seen, fast, epochs=100, seed=1)))
    dangers = np.array([danger(row(seen, place)) for place in range(256)])
    assert dangers[fast].mean() > 0.7
    assert dangers[~fast].mean() < 0.3


def test_a_danger_cannot_be_learnt_from_one_kind_of_state() -> None:
    with pytest.raises(InvalidValueError, match="the same label"):
        train_danger(random_observations(4), np.zeros(4, dtype=bool), epochs=1, seed=0)


def test_weights_survive_the_disk(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    weights = {
        name: rng.normal(size=shape).astype(np.float32) for name, shape in DANGER_SHAPES.items()
    }
    write_weights(tmp_path / "weights.npz", weights)
    loaded = read_weights(tmp_path / "weights.npz")
    assert loaded.keys() == weights.keys()
    assert all(np.array_equal(loaded[name], weights[name]) for name in weights)


def test_demonstrations_are_the_same_for_any_number_of_workers() -> None:
    alone, together = (demonstrations([1, 2], horizon=10, jobs=jobs) for jobs in (1, 2))
    assert all(np.array_equal(alone[name], together[name]) for name in alone)
