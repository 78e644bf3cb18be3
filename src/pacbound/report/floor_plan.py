"""A room from above and drives through it, as plain data to draw pictures of rollouts from."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pacbound.errors import InvalidValueError

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Shape:
    """A box or a cylinder that stands on the floor.

    Parameters
    ----------
    x, y
        The place of its centre.
    width, depth
        Its full size. The width of a round shape is its diameter.
    yaw
        Its turn in radians.
    is_round
        Whether it is a cylinder.
    is_wall
        Whether it is a wall, which is drawn dark.
    is_overhead
        Whether the robot passes under it, as under a table.

    Examples
    --------
    >>> table_top = Shape(2.0, 1.5, width=1.2, depth=0.8, is_overhead=True)
    """

    x: float
    y: float
    width: float
    depth: float
    yaw: float = 0.0
    is_round: bool = False
    is_wall: bool = False
    is_overhead: bool = False


@dataclass(frozen=True)
class FloorPlan:
    """The floor [0, `width`] x [0, `depth`], the shapes on it, and the goal.

    Parameters
    ----------
    width, depth
        The size of the floor in metres.
    shapes
        What stands on it.
    goal
        The place of the goal; None if there is none.
    goal_radius
        How far from the goal the robot has reached it.

    Raises
    ------
    InvalidValueError
        If the floor's width or depth is not above 0.

    Examples
    --------
    >>> FloorPlan(4, 3, (Shape(2.6, 1.5, 0.8, 1.2),), goal=(3.5, 1.5)).goal
    (3.5, 1.5)
    """

    width: float
    depth: float
    shapes: tuple[Shape, ...] = ()
    goal: tuple[float, float] | None = None
    goal_radius: float = 0.4

    def __post_init__(self) -> None:
        if not (0 < self.width < np.inf and 0 < self.depth < np.inf):
            raise InvalidValueError(
                f"A floor of {self.width} x {self.depth} cannot be drawn: expected two lengths "
                "above 0."
            )

    @classmethod
    def of(cls, room: Any, *, goal_radius: float = 0.4) -> FloorPlan:
        """The plan of a room of `pacbound.shield.robot`, or of anything with the same attributes.

        Parameters
        ----------
        room
            It has `width`, `depth`, `goal` and `obstacles`. An obstacle has `kind`, `x`, `y`,
            `half_size`, `yaw`, `is_round` and `blocks`.
        goal_radius
            How far from the goal the robot has reached it.

        Returns
        -------
        FloorPlan
            The plan, with a shape for each obstacle.

        Examples
        --------
        >>> from types import SimpleNamespace
        >>> room = SimpleNamespace(width=4.0, depth=3.0, goal=(3.5, 1.5), obstacles=[])
        >>> FloorPlan.of(room).depth
        3.0
        """
        shapes = tuple(
            Shape(
                x=obstacle.x,
                y=obstacle.y,
                width=2 * obstacle.half_size[0],
                depth=2 * obstacle.half_size[1],
                yaw=obstacle.yaw,
                is_round=obstacle.is_round,
                is_wall=obstacle.kind == "wall",
                is_overhead=not obstacle.blocks,
            )
            for obstacle in room.obstacles
        )
        return cls(room.width, room.depth, shapes, tuple(room.goal), goal_radius)


@dataclass(frozen=True)
class Drive:
    """One rollout: the robot's poses, and what became of it.

    Parameters
    ----------
    poses
        (n, 2) or (n, 3) places x, y and, if known, headings in radians, the start first.
    fired_at
        The index in `poses` at which the shield fired; -1 if it did not.
    collided
        Whether the last pose is that of a collision.
    success
        Whether the last pose is at the goal.

    Raises
    ------
    InvalidValueError
        If `poses` has another shape or holds numbers that are not finite; if `fired_at` is not an
        index of a pose.

    Examples
    --------
    >>> Drive([(0.5, 1.5), (0.8, 1.5), (1.0, 1.5)], fired_at=1).story
    'the shield fires at step 1, and it stops'
    """

    poses: Any
    fired_at: int = -1
    collided: bool = False
    success: bool = False

    def __post_init__(self) -> None:
        poses = np.asarray(self.poses, dtype=np.float64)
        right_shape = poses.ndim == 2 and poses.shape[1] in (2, 3) and len(poses) > 0
        if not right_shape or not np.isfinite(poses).all():
            raise InvalidValueError(
                f"poses have shape {poses.shape}: expected (n, 2) or (n, 3) finite numbers, the "
                "start first."
            )
        if not -1 <= self.fired_at < len(poses):
            raise InvalidValueError(
                f"fired_at={self.fired_at} is not an index of the {len(poses)} poses: pass -1 if "
                "the shield did not fire."
            )
        object.__setattr__(self, "poses", poses)

    @property
    def by_policy(self) -> Floats:
        """The places while the policy drove."""
        end = len(self.poses) if self.fired_at < 0 else self.fired_at + 1
        return np.asarray(self.poses[:end, :2])

    @property
    def by_backup(self) -> Floats:
        """The places from where the backup took over; empty if it did not."""
        begin = len(self.poses) if self.fired_at < 0 else self.fired_at
        return np.asarray(self.poses[begin:, :2])

    @property
    def story(self) -> str:
        """What became of it, in words."""
        steps = len(self.poses) - 1
        if self.collided:
            late = "" if self.fired_at < 0 else f", though the shield fired at step {self.fired_at}"
            return f"collides at step {steps}{late}"
        if self.fired_at >= 0:
            return f"the shield fires at step {self.fired_at}, and it stops"
        counted = f"{steps} step" if steps == 1 else f"{steps} steps"
        if self.success:
            return f"reaches the goal in {counted}"
        return f"is still on its way after {counted}"
