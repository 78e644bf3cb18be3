"""A highway of highway-env, driven by a hurried driver, restored by a deep copy.

The driver keeps to its lane, as fast as the car can, and slows down late behind the car ahead: it
crashes in about a fifth of its rollouts. The backup pulls over: to the right while it sees nobody
there, which can be too near a slower car ahead or a faster one behind, and slower otherwise. The
danger grows as the time to reach the car ahead shrinks.

The backup, its length and the horizon were chosen on the seeds of `TUNING`: 11 settings were looked
at, with 35 to 60 rollouts each. With a backup that only brakes, forks and labels certify the same,
since the traffic of highway-env has no noise once it is placed.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pacbound.shield import Task

_environments: Any = import_module("highway_env.envs.highway_env")
_observation: Any = import_module("highway_env.envs.common.observation")

LEFT, IDLE, RIGHT, FASTER, SLOWER = range(5)
HORIZON, BACKUP_STEPS = 10, 5
LANES, LANE, LENGTH = 3, 4.0, 5.0
NEAR, BESIDE = 20.0, 24.0  # metres from one car's middle to the other's
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


class Seen(_observation.KinematicObservation):  # type: ignore[misc]
    """What highway-env's own class gives, without the data frames in which half the time went."""

    def observe(self) -> NDArray[np.float32]:
        car, table = self.observer_vehicle, np.zeros((self.vehicles_count, 5), dtype=np.float32)
        near = self.env.road.close_objects_to(
            car, self.env.PERCEPTION_DISTANCE, count=self.vehicles_count - 1, see_behind=False
        )
        table[0] = [1, *car.position, *car.velocity]
        for row, other in zip(table[1:], near, strict=False):
            row[:] = [1, *(other.position - car.position), *(other.velocity - car.velocity)]
        return table


class Crowded(_environments.HighwayEnvFast):  # type: ignore[misc]
    def define_spaces(self) -> None:
        super().define_spaces()
        self.observation_type = Seen(self, **self.config["observation"])


def crowded() -> Any:
    return Crowded(CONFIG)


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


def pull_over(seen: Array) -> int:
    """Go to the right while no car is seen near there, and slow down otherwise."""
    cars, lane = others(seen), round(float(seen[0, 2]) / LANE)
    beside = (abs(cars[:, 1] - LANE) < LANE / 2) & (abs(cars[:, 0]) < BESIDE)
    return SLOWER if lane == LANES - 1 or beside.any() else RIGHT


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
        pull_over,
        closing_in,
        horizon=HORIZON,
        backup_steps=BACKUP_STEPS,
        success=lambda _env, _info: True,  # it has not crashed
        unsafe="crashed",
        restore="deepcopy",
        identity="highway-fast-v0 and a hurried driver",
    )
