"""Where the robot goes when it brakes, as mechanics has it: a way to know without simulation that
it will touch nothing.

Two wheels that do not slip, each held back by the motor's full force until it stands. While both
roll the same way the robot slows down and keeps turning; while they roll against each other it
keeps its speed and turns less; once one stands, the robot swings around it until the other stands
too. MuJoCo's servos and contacts give a little, so its robot leaves this path, by 15 millimetres at
the most in 1,500 random drives; `TOLERANCE` is five times that.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from pacbound.shield.robot.physics import (
    BODY_INERTIA,
    MASS,
    MOTOR_FORCE,
    TRACK,
    WHEEL_MASS,
    WHEEL_RADIUS,
)
from pacbound.shield.robot.rooms import ROBOT_RADIUS, Room

TOLERANCE = 0.08
_POINTS = 24

# A wheel's own inertia adds to what the motor must stop, as if it were mass at the rim.
_RIM_MASS = WHEEL_MASS / 2
_MASS = MASS + 2 * _RIM_MASS
_INERTIA = (
    BODY_INERTIA[2] + 2 * (WHEEL_MASS + _RIM_MASS) * (TRACK / 2) ** 2 + WHEEL_MASS * WHEEL_RADIUS**2
)
_SLOWING = 2 * MOTOR_FORCE / _MASS
_TURNING_LESS = MOTOR_FORCE * TRACK / _INERTIA
_SWINGING_LESS = MOTOR_FORCE * TRACK / (_INERTIA + _MASS * (TRACK / 2) ** 2)


def braking_path(
    pose: tuple[float, float, float], forward: float, turn: float
) -> NDArray[np.float64]:
    """Points (n, 2) on the way of the robot's centre to standstill, at equal times; `forward` in
    m/s, `turn` in rad/s.
    """
    speed, rate = abs(forward), abs(turn)
    rolling = max(0.0, speed - rate * TRACK / 2) / _SLOWING
    spinning = max(0.0, rate - speed * 2 / TRACK) / _TURNING_LESS
    swing = min(rate, speed * 2 / TRACK)
    swinging = swing / _SWINGING_LESS
    ends = (0.0, rolling + spinning, rolling + spinning + swinging)
    times = np.linspace(0.0, ends[2], _POINTS)
    speeds = np.interp(times, ends, (speed, swing * TRACK / 2, 0.0)) * math.copysign(1, forward)
    rates = np.interp(times, ends, (rate, swing, 0.0)) * math.copysign(1, turn)
    interval = times[1]
    heading = pose[2] + _summed(rates, interval)
    x = pose[0] + _summed(speeds * np.cos(heading), interval)
    y = pose[1] + _summed(speeds * np.sin(heading), interval)
    return np.stack([x, y], axis=1)


def surely_brakes(
    room: Room, pose: tuple[float, float, float], forward: float, turn: float
) -> bool:
    """Whether braking from here is certain to touch nothing in `room`: the path keeps so far away
    that no inaccuracy matters.
    """
    path = braking_path(pose, forward, turn)
    # Between two points the robot is never farther from both than half the way from one to the
    # next, which is longest at first.
    between = float(np.hypot(*(path[1] - path[0]))) / 2
    return bool(room.distance(path).min() > ROBOT_RADIUS + TOLERANCE + between)


def _summed(values: NDArray[np.float64], interval: float) -> NDArray[np.float64]:
    """The integral from the start to each point, by trapezoids."""
    steps = np.empty_like(values)
    steps[0] = 0.0
    steps[1:] = (values[1:] + values[:-1]) * (interval / 2)
    return np.cumsum(steps)
