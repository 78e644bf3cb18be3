"""Environments on MuJoCo come back from a saved state to the bit, those of Gymnasium included."""

from __future__ import annotations

from functools import partial
from typing import Any

import gymnasium
import numpy as np
import pytest

pytest.importorskip("mujoco", reason="the environments need mujoco")
pytest.importorskip("joblib", reason="joblib is not installed: pip install 'pacbound[shield]'")

import mujoco
from tests.shield.cars import labelled

from pacbound.shield import Task, check_label
from pacbound.shield.gym import RestorableMujoco
from pacbound.shield.protocol import Restorable

POLE = """
<mujoco>
  <option timestep="0.02" integrator="RK4"/>
  <worldbody>
    <body name="pole">
      <joint name="hinge" axis="0 1 0" damping="0.1"/>
      <geom type="capsule" size="0.05" fromto="0 0 0 0 0 1"/>
    </body>
  </worldbody>
  <actuator><motor joint="hinge" gear="30" ctrlrange="-1 1"/></actuator>
</mujoco>
"""


class Pole(gymnasium.Env[Any, Any]):
    """A pole on a hinge with a motor, upright at first. Its observation has the place of its
    centre, which its angle gives."""

    def __init__(self) -> None:
        self.model = mujoco.MjModel.from_xml_string(POLE)
        self.data = mujoco.MjData(self.model)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        mujoco.mj_resetData(self.model, self.data)
        self.data.qpos[0] = self.np_random.uniform(-0.05, 0.05)
        mujoco.mj_forward(self.model, self.data)
        return self._look(), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        before = self.data.xipos[1].copy()
        self.data.ctrl[0] = action + 0.05 * self.np_random.normal()
        mujoco.mj_step(self.model, self.data)
        return np.concatenate([self._look(), before]), 0.0, False, False, {}

    def _look(self) -> Any:
        return np.concatenate([self.data.qpos, self.data.qvel, self.data.xipos[1]])


def has_fallen(env: Any) -> bool:
    return abs(float(env.unwrapped.data.qpos[0])) > 0.4


def make_pole() -> RestorableMujoco:
    return RestorableMujoco(Pole(), has_fallen)


def test_it_follows_the_protocol_as_far_as_it_was_told() -> None:
    plain = make_pole()
    assert isinstance(plain, Restorable)
    assert not hasattr(plain, "is_stopped")
    assert not hasattr(plain, "surely_recoverable")
    told: Any = RestorableMujoco(
        Pole(), has_fallen, is_stopped=lambda env: True, surely_recoverable=lambda env: 0
    )
    assert told.is_stopped() is True
    assert told.surely_recoverable() is False


def make_by_name(name: str) -> RestorableMujoco:
    env = gymnasium.make(name, max_episode_steps=-1)
    if name.startswith("InvertedPendulum"):
        return RestorableMujoco(env, lambda env: abs(env.unwrapped.data.qpos[1]) > 0.2)
    return RestorableMujoco(env, lambda env: not env.unwrapped.is_healthy)


@pytest.mark.parametrize("name", ["InvertedPendulum-v5", "Hopper-v5", "Ant-v5"])
def test_environments_of_gymnasium_go_on_as_if_nothing_had_happened(name: str) -> None:
    pytest.importorskip("imageio", reason="the environments of gymnasium[mujoco] need imageio")
    env = make_by_name(name)
    env.reset(seed=1)
    actions = np.random.default_rng(0).uniform(
        -0.3, 0.3, size=(20, *(env.action_space.shape or ()))
    )
    for action in actions[:5]:
        env.step(action)
    state = env.save_state()
    trails = []
    for _ in range(2):
        trails.append([env.step(action)[:3] for action in actions])
        env.restore_state(state)
    for one, other in zip(*trails, strict=True):
        assert one[0].tobytes() == other[0].tobytes()
        assert one[1:] == other[1:]


@pytest.mark.parametrize(("name", "size"), [("InvertedPendulum-v5", 1), ("Hopper-v5", 3)])
def test_rollouts_of_gymnasium_environments_are_labelled(name: str, size: int) -> None:
    pytest.importorskip("imageio", reason="the environments of gymnasium[mujoco] need imageio")
    make = partial(make_by_name, name)
    options: dict[str, Any] = {"horizon": 80, "backup_steps": 15}

    def push(observation: Any) -> Any:
        return np.full(size, 0.5)

    def hold(observation: Any) -> Any:
        return np.array([6 * observation[1] + observation[3]]) if size == 1 else np.zeros(size)

    task = Task(make, push, hold, lambda observation: 0.5, **options)
    rollouts = labelled(task, seeds=range(5))
    assert rollouts.unsafe.all()
    for seed, first in zip(rollouts.seed, rollouts.first_unrecoverable, strict=True):
        assert first > 0
        assert check_label(task, seed=seed, first_unrecoverable=first)
