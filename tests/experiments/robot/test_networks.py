"""The learned parts at work: no torch is needed, and what is shipped is as described."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from experiments.robot.inference import WEIGHTS, read_weights
from experiments.robot.rooms import TUNING
from tests.shield.cars import labelled

from experiments.robot import DangerModel, ImagePolicy, IndoorNavigation, brake
from pacbound.errors import InvalidValueError

LARGEST = 300_000


def test_acting_needs_no_torch() -> None:
    program = (
        "import sys; from experiments.robot import *; import numpy as np; env = "
        "IndoorNavigation();o, _ = env.reset(seed=0); ImagePolicy.load()(o), "
        "DangerModel.load()(o); print('torch' in sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "False"


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
    with pytest.raises(InvalidValueError, match="is not a weights file"):
        ImagePolicy.load(half)
    with pytest.raises(FileNotFoundError):
        ImagePolicy.load(tmp_path / "missing.npz")


def test_the_shipped_weights_are_small() -> None:
    assert [path.name for path in WEIGHTS.glob("*.npz") if path.stat().st_size > LARGEST] == []


def test_the_shipped_policy_is_imperfect_and_the_shipped_danger_tells_when() -> None:
    rollouts = labelled(
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
