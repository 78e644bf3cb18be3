"""The networks: NumPy says what torch says, weights survive the disk, training learns, and what is
shipped is as described."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pacbound.errors import InvalidValueError

pytest.importorskip("mujoco", reason="the robot needs the extra `shield`")

from pacbound.shield.robot import DangerModel, ImagePolicy, IndoorNavigation, brake
from pacbound.shield.robot.demonstrations import demonstrations
from pacbound.shield.robot.inference import DANGER_SHAPES, WEIGHTS, read_weights, write_weights
from pacbound.shield.robot.seeds import TUNING
from pacbound.shield.rollouts import collect_rollouts

LARGEST = 300_000


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
    torch = pytest.importorskip("torch", reason="training needs the extra `torch`")
    from pacbound.shield.robot.networks import DangerNetwork, PolicyNetwork, arrays

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


def test_acting_needs_no_torch() -> None:
    program = (
        "import sys; from pacbound.shield.robot import *; import numpy as np; env = "
        "IndoorNavigation();o, _ = env.reset(seed=0); ImagePolicy.load()(o), "
        "DangerModel.load()(o); print('torch' in sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "False"


def test_training_without_torch_names_the_command_that_installs_it() -> None:
    program = "import sys; sys.modules['torch'] = None; import pacbound.shield.robot.networks"
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False
    )
    assert "needs torch, which is not installed. Run: pip install 'pacbound[torch]'" in done.stderr


def test_training_learns_and_is_the_same_each_time() -> None:
    pytest.importorskip("torch", reason="training needs the extra `torch`")
    from pacbound.shield.robot.networks import arrays, train_danger, train_policy

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
    pytest.importorskip("torch", reason="training needs the extra `torch`")
    from pacbound.shield.robot.networks import train_danger

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


def test_what_are_no_weights_is_refused(tmp_path: Path) -> None:
    policy = read_weights(WEIGHTS / "policy.npz")
    with pytest.raises(
        InvalidValueError, match=r"not the weights of a danger model: column\.bias, column\.weight"
    ):
        DangerModel(policy)
    with pytest.raises(InvalidValueError, match="expected finite numbers"):
        ImagePolicy({**policy, "output.bias": np.array([np.nan, 0])})
    with pytest.raises(InvalidValueError, match=r"policy: hidden\.bias is"):
        ImagePolicy({name: values for name, values in policy.items() if name != "hidden.bias"})
    half = tmp_path / "half.npz"
    half.write_bytes((WEIGHTS / "policy.npz").read_bytes()[:5000])
    with pytest.raises(InvalidValueError, match="is no weights file"):
        ImagePolicy.load(half)
    with pytest.raises(FileNotFoundError):
        ImagePolicy.load(tmp_path / "missing.npz")


def test_demonstrations_are_the_same_for_any_number_of_workers() -> None:
    alone, together = (demonstrations([1, 2], horizon=10, jobs=jobs) for jobs in (1, 2))
    assert all(np.array_equal(alone[name], together[name]) for name in alone)


def test_the_shipped_weights_are_small() -> None:
    assert [path.name for path in WEIGHTS.glob("*.npz") if path.stat().st_size > LARGEST] == []


def test_the_shipped_policy_is_imperfect_and_the_shipped_danger_tells_when() -> None:
    rollouts = collect_rollouts(
        IndoorNavigation,
        ImagePolicy.load(),
        brake,
        DangerModel.load(),
        seeds=TUNING[2000:2050],
        horizon=100,
    )
    assert 0.25 <= np.mean(~rollouts.unsafe) <= 0.65
    assert np.mean(rollouts.success) >= 0.25
    assert not rollouts.lost.any()
    assert np.median(rollouts.score[rollouts.unsafe]) > np.median(rollouts.score[~rollouts.unsafe])
