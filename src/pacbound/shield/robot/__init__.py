"""A robot that must not touch the furniture: a MuJoCo task with momentum, its scripted expert and
its learned parts.

    IndoorNavigation    the environment, registered as "pacbound/IndoorNavigation-v0" on import
    brake               the backup policy
    Expert              a driver that knows the room
    ImagePolicy         a driver that sees what the robot sees; unsafe in about half of all rooms
    DangerModel         the danger of an observation: high where braking would come too late
    Room, Obstacle      rooms as plain data; `random_room` draws one
    RestorableMujoco    makes other MuJoCo environments of Gymnasium fit for `collect_rollouts`

Nothing here certifies: `pacbound.shield.collect_rollouts` makes the rollouts that
`pacbound.certify_shield` needs. mujoco and gymnasium are needed by all of it, torch by
`pacbound.shield.robot.networks` alone, which trains.
"""

from pacbound.errors import MissingDependencyError

try:
    import gymnasium as _gymnasium
    import mujoco as _mujoco  # noqa: F401, RUF100
except ImportError as _missing:
    raise MissingDependencyError.for_extra(str(_missing.name), "shield", "The robot") from None

from pacbound.shield.robot.environment import IndoorNavigation, brake
from pacbound.shield.robot.expert import Expert
from pacbound.shield.robot.inference import DangerModel, ImagePolicy
from pacbound.shield.robot.restorable import RestorableMujoco
from pacbound.shield.robot.rooms import Obstacle, Room, random_room

__all__ = [
    "DangerModel",
    "Expert",
    "ImagePolicy",
    "IndoorNavigation",
    "Obstacle",
    "RestorableMujoco",
    "Room",
    "brake",
    "random_room",
]

ENVIRONMENT = "pacbound/IndoorNavigation-v0"

if ENVIRONMENT not in _gymnasium.registry:
    _gymnasium.register(
        ENVIRONMENT, "pacbound.shield.robot.environment:IndoorNavigation", max_episode_steps=100
    )
