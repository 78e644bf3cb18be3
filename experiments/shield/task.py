"""The task of all experiments with the robot: its policy and its danger model, 100 steps."""

from __future__ import annotations

from experiments.robot import DangerModel, ImagePolicy, IndoorNavigation, brake
from pacbound.shield import Task

HORIZON = 100


def robot() -> Task:
    """The robot with its learned parts."""
    return Task(IndoorNavigation, ImagePolicy.load(), brake, DangerModel.load(), horizon=HORIZON)
