"""The task of all experiments with the robot: the shipped policy and danger model, 100 steps."""

from __future__ import annotations

from pacbound.shield import Task
from pacbound.shield.robot import DangerModel, ImagePolicy, IndoorNavigation, brake

HORIZON = 100


def robot() -> Task:
    """The robot with its shipped parts."""
    return Task(IndoorNavigation, ImagePolicy.load(), brake, DangerModel.load(), horizon=HORIZON)
