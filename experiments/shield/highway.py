"""A highway of highway-env, driven by a hurried driver, restored by a deep copy.

The driver keeps to its lane, as fast as the car can, and slows down late behind the car ahead: it
crashes in about a quarter of its rollouts. The backup slows down. The danger grows as the time to
reach the car ahead shrinks. All of this was chosen on the seeds of `TUNING`.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

import gymnasium
import numpy as np
from numpy.typing import NDArray

from pacbound.shield import Task

LEFT, IDLE, RIGHT, FASTER, SLOWER = range(5)
HORIZON, BACKUP_STEPS = 10, 4
LANES, LANE, LENGTH = 3, 4.0, 5.0
NEAR = 20.0  # metres from one car's middle to the other's
CONFIG = {
    "lanes_count": LANES,
    "vehicles_count": 5,
    "duration": 100,
    "observation": {
        "type": "Kinematics",
        "features": ["presence", "x", "y", "vx", "vy"],
        "vehicles_count": 5,
        "absolute": False,
        "normalize": False,
    },
}

Array = NDArray[np.float64]


def crowded() -> Any:
    import_module("highway_env")  # it makes its environments known
    return gymnasium.make("highway-fast-v0", config=CONFIG, max_episode_steps=-1)


def others(seen: Array) -> Array:
    """The cars around: how far ahead, how far to the right, how much faster."""
    return seen[1:][seen[1:, 0] > 0][:, 1:]


def ahead(cars: Array, lanes: int = 0) -> Array:
    """Those in front, in this lane or so many lanes to the right."""
    return cars[(cars[:, 0] > 0) & (abs(cars[:, 1] - lanes * LANE) < LANE / 2)]


def hurried(seen: Array) -> int:
    """Drive as fast as the car can, and slow down only when the car ahead is near."""
    near = np.min(ahead(others(seen))[:, 0], initial=np.inf) < NEAR
    return SLOWER if near else FASTER


def slow_down(_: Any) -> int:
    return SLOWER


def closing_in(seen: Array) -> float:
    """From the seconds until the car ahead in the lane is reached at these speeds: 1 at once, one
    half at two seconds, 0 if there is none."""
    near = ahead(others(seen))
    seconds = np.maximum(near[:, 0] - LENGTH, 0.0) / np.maximum(-near[:, 2], 1e-3)
    return float(np.max(2 / (2 + seconds), initial=0.0))


def highway() -> Task:
    return Task(
        crowded,
        hurried,
        slow_down,
        closing_in,
        horizon=HORIZON,
        backup_steps=BACKUP_STEPS,
        success=lambda _env, _info: True,  # it has not crashed
        unsafe="crashed",
        restore="deepcopy",
        identity="highway-fast-v0 and a hurried driver",
    )
