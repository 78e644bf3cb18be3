"""The room and the robot as a MuJoCo model: a differential drive with momentum on a floor with
friction.

Two wheels are driven by velocity servos of limited torque, and two casters slide without friction.
So speed changes no faster than the motors' force allows, and stopping takes distance. The robot
touches the floor with wheels and casters, and everything else with its round body, which holds the
wheels: contact with that body is what is unsafe.

Where the robot goes when it brakes follows from mechanics too, a way to know without simulation
that it will touch nothing. Two wheels that do not slip are each held back by the motor's full force
until they stand. While both roll the same way the robot slows down and keeps turning; while they
roll against each other it keeps its speed and turns less; once one stands, the robot swings around
it until the other stands too. MuJoCo's servos and contacts give a little, so its robot leaves this
path, by 15 millimetres at the most in 1,500 random drives; `TOLERANCE` is five times that.
"""

from __future__ import annotations

import math
from typing import Any

import mujoco
import numpy as np
from numpy.typing import NDArray

from experiments.robot.rooms import ROBOT_HEIGHT, ROBOT_RADIUS, Obstacle, Room

TIMESTEP = 0.005
MAX_SPEED = 1.2
MAX_TURN = 1.8

BODY_MASS, WHEEL_MASS = 11.0, 0.5
# The robot's weight sits at its rim (motors, batteries, bumper), which makes it slow to start and
# stop turning.
BODY_INERTIA = (0.25, 0.25, 0.45)
MASS = BODY_MASS + 2 * WHEEL_MASS
WHEEL_RADIUS, TRACK = 0.08, 0.34
BODY_FLOOR_GAP = 0.03
MOTOR_FORCE = 6.0  # newtons at the rim of each wheel: 12 N on 12 kg decelerate by 1 m/s^2
# N per m/s: the servo is at its limit until it is within 0.05 m/s of what was asked.
SERVO_GAIN = 120.0

CAMERA_HEIGHT, CAMERA_FORWARD = 0.32, 0.16

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

FLOOR_GROUP, ROBOT_GROUP = 0, 2
_ROBOT_BIT, _FLOOR_BIT = 1, 2
_CASTER_RADIUS = 0.03
_PLANE, _BOX = mujoco.mjtGeom.mjGEOM_PLANE, mujoco.mjtGeom.mjGEOM_BOX
_SPHERE, _CYLINDER = mujoco.mjtGeom.mjGEOM_SPHERE, mujoco.mjtGeom.mjGEOM_CYLINDER
_BLACK = (0.1, 0.1, 0.1, 1)
_COLOURS = {
    "wall": (0.85, 0.83, 0.78, 1),
    "box": (0.55, 0.36, 0.24, 1),
    "cylinder": (0.30, 0.50, 0.42, 1),
    "table top": (0.76, 0.60, 0.42, 1),
    "table leg": (0.25, 0.22, 0.20, 1),
}


def compile_model(room: Room) -> mujoco.MjModel:
    """The model of a robot in `room`; the floor is geom 0, the first joint is the free one of the
    robot's body.
    """
    spec = mujoco.MjSpec()
    spec.option.timestep = TIMESTEP
    spec.option.integrator = mujoco.mjtIntegrator.mjINT_IMPLICITFAST
    spec.option.cone = mujoco.mjtCone.mjCONE_PYRAMIDAL
    spec.visual.global_.offwidth, spec.visual.global_.offheight = 640, 480
    light = spec.visual.headlight
    light.ambient, light.diffuse, light.specular = (0.4,) * 3, (0.3,) * 3, (0,) * 3
    _add_floor(spec, room)
    for obstacle in room.obstacles:
        _add_obstacle(spec, obstacle)
    _add_robot(spec)
    return spec.compile()


def _add_geom(
    body: mujoco.MjsBody,
    kind: mujoco.mjtGeom,
    size: tuple[float, ...],
    colour: tuple[float, ...],
    *,
    touches: int = 0,
    group: int = ROBOT_GROUP,
    **more: Any,
) -> None:
    """A part of a body that touches what has the same bit, or nothing."""
    bits = {"contype": touches, "conaffinity": touches}
    body.add_geom(type=kind, size=size, rgba=colour, group=group, **bits, **more)


def _add_floor(spec: mujoco.MjSpec, room: Room) -> None:
    world = spec.worldbody
    half = (room.width / 2, room.depth / 2)
    size, grey = (half[0] + 1, half[1] + 1, 0.1), (0.62, 0.62, 0.66, 1)
    place: dict[str, Any] = {"name": "floor", "pos": (*half, 0)}
    _add_geom(world, _PLANE, size, grey, touches=_FLOOR_BIT, group=FLOOR_GROUP, **place)
    sun = mujoco.mjtLightType.mjLIGHT_DIRECTIONAL
    world.add_light(
        dir=(0.4, 0.2, -1), type=sun, diffuse=(0.3,) * 3, specular=(0,) * 3, castshadow=False
    )
    # From far above, so that walls hide little; so far that the floor fits into a picture of 4 : 3
    # whichever way it is longer.
    seen = max(room.depth, 0.75 * room.width) + 0.6
    height = seen / 2 / math.tan(math.radians(20) / 2)
    world.add_camera(name="above", pos=(*half, height), quat=(1, 0, 0, 0), fovy=20)
    disc, green = (0.2, 0.004, 0), (0.1, 0.7, 0.2, 1)
    _add_geom(world, _CYLINDER, disc, green, name="goal", pos=(*room.goal, 0.005))


def _add_obstacle(spec: mujoco.MjSpec, obstacle: Obstacle) -> None:
    half = obstacle.half_size
    kind, size = (_CYLINDER, (half[0], half[2], 0)) if obstacle.is_round else (_BOX, half)
    _add_geom(
        spec.worldbody,
        kind,
        size,
        _COLOURS[obstacle.kind],
        touches=_ROBOT_BIT if obstacle.blocks else 0,
        group=FLOOR_GROUP,
        pos=(obstacle.x, obstacle.y, obstacle.z),
        quat=(math.cos(obstacle.yaw / 2), 0, 0, math.sin(obstacle.yaw / 2)),
    )


def _add_robot(spec: mujoco.MjSpec) -> None:
    body = spec.worldbody.add_body(name="robot", pos=(0, 0, WHEEL_RADIUS))
    body.add_freejoint()
    body.mass, body.inertia, body.ipos = BODY_MASS, BODY_INERTIA, (0, 0, 0)
    body.explicitinertial = True
    half = (ROBOT_HEIGHT - BODY_FLOOR_GAP) / 2
    centre, size = (0, 0, BODY_FLOOR_GAP + half - WHEEL_RADIUS), (ROBOT_RADIUS, half, 0)
    blue = (0.15, 0.3, 0.7, 1)
    _add_geom(body, _CYLINDER, size, blue, name="body", pos=centre, touches=_ROBOT_BIT)
    # A camera looks along its -z with y up: turned so that it looks along the robot's x.
    turn, eye = (0.5, 0.5, -0.5, -0.5), (CAMERA_FORWARD, 0, CAMERA_HEIGHT - WHEEL_RADIUS)
    body.add_camera(name="eye", pos=eye, quat=turn, fovy=70)
    nose = (ROBOT_RADIUS - 0.05, 0, ROBOT_HEIGHT - WHEEL_RADIUS)
    _add_geom(body, _SPHERE, (0.04, 0, 0), (0.9, 0.8, 0.1, 1), pos=nose)
    for sign in (1, -1):
        _add_wheel(spec, body, sign)
        caster = (sign * 0.16, 0, _CASTER_RADIUS - WHEEL_RADIUS)
        slides: dict[str, Any] = {"pos": caster, "condim": 1, "priority": 1}
        _add_geom(body, _SPHERE, (_CASTER_RADIUS, 0, 0), _BLACK, touches=_FLOOR_BIT, **slides)


def _add_wheel(spec: mujoco.MjSpec, body: mujoco.MjsBody, sign: int) -> None:
    name = "left" if sign > 0 else "right"
    wheel = body.add_body(name=f"{name} wheel", pos=(0, sign * TRACK / 2, 0))
    wheel.mass, wheel.explicitinertial = WHEEL_MASS, True
    wheel.inertia = (WHEEL_MASS * WHEEL_RADIUS**2 / 2,) * 3
    wheel.add_joint(name=name, type=mujoco.mjtJoint.mjJNT_HINGE, axis=(0, 1, 0))
    # A sphere touches the floor in one point, where a wheel's rim would touch it in several.
    grips: dict[str, Any] = {"condim": 3, "friction": (1.0, 0.005, 0.0001), "priority": 1}
    _add_geom(wheel, _SPHERE, (WHEEL_RADIUS, 0, 0), _BLACK, touches=_FLOOR_BIT, **grips)
    servo = spec.add_actuator(name=name, target=name, trntype=mujoco.mjtTrn.mjTRN_JOINT)
    gain, torque = SERVO_GAIN * WHEEL_RADIUS**2, MOTOR_FORCE * WHEEL_RADIUS
    servo.set_to_velocity(kv=gain)
    servo.forcelimited, servo.forcerange = True, (-torque, torque)


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
