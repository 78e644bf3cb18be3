"""The task of all experiments with the robot: its policy and its danger model, 100 steps."""

from __future__ import annotations

import hashlib

from experiments.robot import DangerModel, ImagePolicy, IndoorNavigation, brake
from experiments.robot.inference import WEIGHTS
from pacbound.shield import Task

HORIZON = 100


def robot() -> Task:
    """The robot with its learned parts, whose weights are its name."""
    weights = b"".join((WEIGHTS / f"{name}.npz").read_bytes() for name in ("policy", "danger"))
    return Task(
        IndoorNavigation,
        ImagePolicy.load(),
        brake,
        DangerModel.load(),
        horizon=HORIZON,
        identity=f"sha256:{hashlib.sha256(weights).hexdigest()}",
    )
