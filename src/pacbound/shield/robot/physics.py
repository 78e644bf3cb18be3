"""The room and the robot as a MuJoCo model: a differential drive with momentum on a floor with
friction.

Two wheels are driven by velocity servos of limited torque, and two casters slide without friction.
So speed changes no faster than the motors' force allows, and stopping takes distance. The robot
touches the floor with wheels and casters, and everything else with its round body, which holds the
wheels: contact with that body is what is unsafe.
"""

from __future__ import annotations

import math

import mujoco

from pacbound.shield.robot.rooms import ROBOT_HEIGHT, ROBOT_RADIUS, Obstacle, Room

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
SERVO_GAIN = (
    120.0  # N per m/s: the servo is at its limit until it is within 0.05 m/s of what was asked
)

CAMERA_HEIGHT, CAMERA_FORWARD = 0.32, 0.16

FLOOR_GROUP, ROBOT_GROUP = 0, 2
_ROBOT_BIT, _FLOOR_BIT = 1, 2
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
    (
        spec.visual.headlight.ambient,
        spec.visual.headlight.diffuse,
        spec.visual.headlight.specular,
    ) = (
        (0.4,) * 3,
        (0.3,) * 3,
        (0,) * 3,
    )
    _add_floor(spec, room)
    for obstacle in room.obstacles:
        _add_obstacle(spec, obstacle)
    _add_robot(spec)
    return spec.compile()


def _add_floor(spec: mujoco.MjSpec, room: Room) -> None:
    world = spec.worldbody
    half = (room.width / 2, room.depth / 2)
    world.add_geom(
        name="floor",
        type=mujoco.mjtGeom.mjGEOM_PLANE,
        pos=(*half, 0),
        size=(half[0] + 1, half[1] + 1, 0.1),
        contype=_FLOOR_BIT,
        conaffinity=_FLOOR_BIT,
        group=FLOOR_GROUP,
        rgba=(0.62, 0.62, 0.66, 1),
    )
    sun = mujoco.mjtLightType.mjLIGHT_DIRECTIONAL
    world.add_light(
        dir=(0.4, 0.2, -1), type=sun, diffuse=(0.3,) * 3, specular=(0,) * 3, castshadow=False
    )
    # From far above, so that walls hide little; so far that the floor fits into a picture of 4 : 3
    # whichever way it is longer.
    seen = max(room.depth, 0.75 * room.width) + 0.6
    height = seen / 2 / math.tan(math.radians(20) / 2)
    world.add_camera(name="above", pos=(*half, height), quat=(1, 0, 0, 0), fovy=20)
    goal = (*room.goal, 0.005)
    world.add_geom(
        name="goal",
        type=mujoco.mjtGeom.mjGEOM_CYLINDER,
        pos=goal,
        size=(0.2, 0.004, 0),
        contype=0,
        conaffinity=0,
        group=ROBOT_GROUP,
        rgba=(0.1, 0.7, 0.2, 1),
    )


def _add_obstacle(spec: mujoco.MjSpec, obstacle: Obstacle) -> None:
    half, collides = obstacle.half_size, _ROBOT_BIT if obstacle.blocks else 0
    kind, size = (
        (mujoco.mjtGeom.mjGEOM_CYLINDER, (half[0], half[2], 0))
        if obstacle.is_round
        else (mujoco.mjtGeom.mjGEOM_BOX, half)
    )
    quaternion = (math.cos(obstacle.yaw / 2), 0, 0, math.sin(obstacle.yaw / 2))
    spec.worldbody.add_geom(
        type=kind,
        pos=(obstacle.x, obstacle.y, obstacle.z),
        size=size,
        quat=quaternion,
        contype=collides,
        conaffinity=collides,
        group=FLOOR_GROUP,
        rgba=_COLOURS[obstacle.kind],
    )


def _add_robot(spec: mujoco.MjSpec) -> None:
    body = spec.worldbody.add_body(name="robot", pos=(0, 0, WHEEL_RADIUS))
    body.add_freejoint()
    body.mass, body.inertia, body.ipos = BODY_MASS, BODY_INERTIA, (0, 0, 0)
    body.explicitinertial = True
    half = (ROBOT_HEIGHT - BODY_FLOOR_GAP) / 2
    body.add_geom(
        name="body",
        type=mujoco.mjtGeom.mjGEOM_CYLINDER,
        pos=(0, 0, BODY_FLOOR_GAP + half - WHEEL_RADIUS),
        size=(ROBOT_RADIUS, half, 0),
        contype=_ROBOT_BIT,
        conaffinity=_ROBOT_BIT,
        group=ROBOT_GROUP,
        rgba=(0.15, 0.3, 0.7, 1),
    )
    _add_camera(body)
    for sign in (1, -1):
        _add_wheel(spec, body, sign)
        _add_caster(body, sign)


def _add_camera(body: mujoco.MjsBody) -> None:
    # A camera looks along its -z with y up: turned so that it looks along the robot's x.
    quaternion = (0.5, 0.5, -0.5, -0.5)
    body.add_camera(
        name="eye", pos=(CAMERA_FORWARD, 0, CAMERA_HEIGHT - WHEEL_RADIUS), quat=quaternion, fovy=70
    )
    nose = (ROBOT_RADIUS - 0.05, 0, ROBOT_HEIGHT - WHEEL_RADIUS)
    body.add_geom(
        type=mujoco.mjtGeom.mjGEOM_SPHERE,
        pos=nose,
        size=(0.04, 0, 0),
        contype=0,
        conaffinity=0,
        group=ROBOT_GROUP,
        rgba=(0.9, 0.8, 0.1, 1),
    )


def _add_wheel(spec: mujoco.MjSpec, body: mujoco.MjsBody, sign: int) -> None:
    name = "left" if sign > 0 else "right"
    wheel = body.add_body(name=f"{name} wheel", pos=(0, sign * TRACK / 2, 0))
    wheel.mass, wheel.explicitinertial = WHEEL_MASS, True
    wheel.inertia = (WHEEL_MASS * WHEEL_RADIUS**2 / 2,) * 3
    wheel.add_joint(name=name, type=mujoco.mjtJoint.mjJNT_HINGE, axis=(0, 1, 0))
    # A sphere touches the floor in one point, where a wheel's rim would touch it in several.
    wheel.add_geom(
        type=mujoco.mjtGeom.mjGEOM_SPHERE,
        size=(WHEEL_RADIUS, 0, 0),
        contype=_FLOOR_BIT,
        conaffinity=_FLOOR_BIT,
        condim=3,
        friction=(1.0, 0.005, 0.0001),
        priority=1,
        group=ROBOT_GROUP,
        rgba=(0.1, 0.1, 0.1, 1),
    )
    servo = spec.add_actuator(name=name, target=name, trntype=mujoco.mjtTrn.mjTRN_JOINT)
    gain, torque = SERVO_GAIN * WHEEL_RADIUS**2, MOTOR_FORCE * WHEEL_RADIUS
    servo.set_to_velocity(kv=gain)
    servo.forcelimited, servo.forcerange = True, (-torque, torque)


def _add_caster(body: mujoco.MjsBody, sign: int) -> None:
    radius = 0.03
    body.add_geom(
        type=mujoco.mjtGeom.mjGEOM_SPHERE,
        pos=(sign * 0.16, 0, radius - WHEEL_RADIUS),
        size=(radius, 0, 0),
        contype=_FLOOR_BIT,
        conaffinity=_FLOOR_BIT,
        condim=1,
        priority=1,
        group=ROBOT_GROUP,
        rgba=(0.1, 0.1, 0.1, 1),
    )
