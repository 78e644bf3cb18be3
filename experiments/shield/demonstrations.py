"""Rollouts of the expert, for the policy to imitate."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray

from experiments.robot.environment import IndoorNavigation
from experiments.robot.expert import Expert
from pacbound.errors import InvalidValueError

Rows = dict[str, NDArray[Any]]


def demonstrations(seeds: Iterable[int], *, horizon: int = 100, jobs: int = 1) -> Rows:
    """What the robot saw ("depth", "goal", "speed") and what the expert did ("action"), step by
    step, in one rollout per seed.

    Examples
    --------
    >>> rows = demonstrations([1], horizon=20)
    >>> {name: values.shape for name, values in rows.items()}
    {'depth': (20, 16, 64), 'goal': (20, 3), 'speed': (20, 2), 'action': (20, 2)}
    """
    parts = Parallel(n_jobs=jobs)(delayed(_demonstration)(seed, horizon) for seed in seeds)
    if not parts:
        raise InvalidValueError("There are no seeds: pass one for each rollout of the expert.")
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}


def _demonstration(seed: int, horizon: int) -> Rows:
    env = IndoorNavigation()
    observation, info = env.reset(seed=seed)
    expert, rows = Expert(info["room"]), []
    for _ in range(horizon):
        action = expert.act(env.pose, env.speed)
        rows.append({**observation, "action": action})
        observation, _, terminated, _, _ = env.step(action)
        if terminated:
            break
    return {name: np.stack([row[name] for row in rows]) for name in rows[0]}
