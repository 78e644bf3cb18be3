"""Policies and simulators as people type them: stable-baselines3, highway-env. Each test runs where
its package is installed."""

from __future__ import annotations

from functools import partial
from typing import Any

import gymnasium
import numpy as np
import pytest

pytest.importorskip("joblib", reason="joblib is not installed: pip install 'pacbound[shield]'")

from tests.shield.cars import labelled

from pacbound import Shield
from pacbound.errors import InvalidValueError
from pacbound.shield import Task, VectorShield, run_shielded
from pacbound.shield.gym import ShieldWrapper


def backup(seen: Any) -> int:
    return int(seen[2] + seen[3] > 0)


def danger(seen: Any) -> float:
    return float(min(1.0, 5 * abs(seen[2] + 0.2 * seen[3])))


@pytest.fixture(params=["PPO", "RecurrentPPO"])
def model(request: pytest.FixtureRequest) -> Any:
    if request.param == "PPO":
        made = pytest.importorskip("stable_baselines3").PPO
        return made("MlpPolicy", "CartPole-v1", seed=0, device="cpu")
    made = pytest.importorskip("sb3_contrib").RecurrentPPO
    return made("MlpLstmPolicy", "CartPole-v1", seed=0, device="cpu")


def pole(policy: Any) -> Task:
    return Task(
        lambda: gymnasium.make("CartPole-v1"),
        policy,
        backup,
        danger,
        horizon=20,
        backup_steps=20,
        unsafe=lambda env, info: abs(env.unwrapped.state[2]) > 0.2,
        restore="deepcopy",
    )


def actions(shield: Any, seed: int) -> list[int]:
    """Those of one rollout under a shield that never fires."""
    env = gymnasium.make("CartPole-v1")
    seen, _ = env.reset(seed=seed)
    taken = []
    for _ in range(8):
        taken.append(int(shield(seen)))
        seen, *_ = env.step(taken[-1])
    return taken


def test_a_model_is_asked_as_stable_baselines3_asks_it(model: Any) -> None:
    env = model.get_env()
    env.seed(0)
    seen, state, expected = env.reset(), None, []
    for _ in range(8):
        action, state = model.predict(seen, state, deterministic=True)
        expected.append(int(action[0]))
        seen, *_ = env.step(action)
    shield = Shield(partial(model.predict, deterministic=True), backup, lambda _: 0.0, 0.5)
    for _ in range(2):
        assert actions(shield, 0) == expected
        shield.reset()


@pytest.mark.slow
def test_rollouts_of_a_model_follow_from_their_seeds(model: Any) -> None:
    task = pole(partial(model.predict, deterministic=True))
    rollouts = labelled(task, seeds=range(6), follow_through=True)
    driven = run_shielded(task, certificate_or_thresholds=np.inf, seeds=range(6))
    assert not rollouts.lost.any()
    assert rollouts.steps.tolist() == driven.steps.tolist()
    assert rollouts.collided.tolist() == driven.unsafe.tolist()
    with pytest.raises(InvalidValueError, match="deterministic=True"):
        labelled(pole(model.predict), seeds=range(6))


def test_a_vector_shield_keeps_the_states_of_parallel_rollouts(model: Any) -> None:
    ask = partial(model.predict, deterministic=True)
    both = VectorShield(ask, saying_zero, lambda x: np.zeros(2), 0.5, num_envs=2)
    alone = Shield(ask, backup, lambda _: 0.0, 0.5)
    rows = np.random.default_rng(0).normal(size=(6, 2, 4)).astype(np.float32)
    for row in rows[:3]:
        both(row)
    both.reset([True, False])
    assert [int(both(row)[0]) for row in rows[3:]] == [int(alone(row[0])) for row in rows[3:]]


def saying_zero(seen: Any) -> Any:
    return np.zeros(len(seen), dtype=int)


def test_make_vec_env_puts_a_shield_around_every_environment() -> None:
    make_vec_env = pytest.importorskip("stable_baselines3.common.env_util").make_vec_env
    parts = {"backup": backup, "danger": danger, "certificate_or_threshold": 0.5}
    envs = make_vec_env(
        "CartPole-v1", n_envs=2, seed=0, wrapper_class=ShieldWrapper, wrapper_kwargs=parts
    )
    envs.reset()
    told = [envs.step(np.array([0, 1]))[3] for _ in range(20)]
    assert not any(info["shield_fired"] for info in told[0])
    assert all(info["shield_override"] for info in told[-1])
