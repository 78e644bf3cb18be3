"""A robot that must not touch the furniture: a MuJoCo task with momentum, its scripted expert and
its learned parts.

    IndoorNavigation    the environment
    brake               the backup policy
    Expert              a driver that knows the room
    ImagePolicy         a driver that sees what the robot sees; unsafe in about half of all rooms
    DangerModel         the danger of an observation: high where braking would come too late
    Room, Obstacle      rooms as plain data; `random_room` draws one

Nothing here certifies: `pacbound.shield.collect_rollouts` makes the rollouts that
`pacbound.certify_shield` needs. mujoco and gymnasium are needed by all of it, torch by nothing:
what trains the learned parts is in `experiments/shield`.
"""

from experiments.robot.environment import IndoorNavigation, brake
from experiments.robot.expert import Expert
from experiments.robot.inference import DangerModel, ImagePolicy
from experiments.robot.rooms import Obstacle, Room, random_room

__all__ = [
    "DangerModel",
    "Expert",
    "ImagePolicy",
    "IndoorNavigation",
    "Obstacle",
    "Room",
    "brake",
    "random_room",
]
