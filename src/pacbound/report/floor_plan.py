"""A room from above and drives through it, as plain data from which a picture is drawn."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pacbound.errors import InvalidValueError

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Shape:
    """What stands on the floor: a box or a cylinder, by its centre, its full size and its turn in
    radians.

    `is_round`: its width is its diameter. `is_wall`: drawn dark. `is_overhead`: the robot passes
    under it, as under a table.
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
    """The floor [0, `width`] x [0, `depth`], the shapes on it, and the goal with its radius."""

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
        """The plan of a room as `pacbound.shield.robot` draws them, or of anything that describes
        itself in the same words.

        A room has `width`, `depth`, `goal` and `obstacles`; an obstacle has `kind`, `x`, `y`,
        `half_size`, `yaw`, `is_round` and `blocks`.
        """
        shapes = tuple(
            Shape(
                x=one.x,
                y=one.y,
                width=2 * one.half_size[0],
                depth=2 * one.half_size[1],
                yaw=one.yaw,
                is_round=one.is_round,
                is_wall=one.kind == "wall",
                is_overhead=not one.blocks,
            )
            for one in room.obstacles
        )
        return cls(room.width, room.depth, shapes, tuple(room.goal), goal_radius)


@dataclass(frozen=True)
class Drive:
    """One rollout: the robot's poses, and what became of it.

    Attributes
    ----------
    poses
        (n, 2) or (n, 3) places x, y and, if known, headings in radians, the start first.
    fired_at
        The place in `poses` at which the shield fired; -1 if it did not.
    collided, success
        Whether the last pose is that of a collision, or is at the goal.
    """

    poses: Any
    fired_at: int = -1
    collided: bool = False
    success: bool = False

    def __post_init__(self) -> None:
        poses = np.asarray(self.poses, dtype=np.float64)
        if (
            poses.ndim != 2
            or poses.shape[1] not in (2, 3)
            or len(poses) == 0
            or not np.isfinite(poses).all()
        ):
            raise InvalidValueError(
                f"poses have shape {poses.shape}: expected (n, 2) or (n, 3) numbers, the start "
                "first."
            )
        if not -1 <= self.fired_at < len(poses):
            raise InvalidValueError(
                f"fired_at={self.fired_at} is no place in {len(poses)} poses: expected -1 if it "
                "did not fire."
            )
        object.__setattr__(self, "poses", poses)

    @property
    def by_policy(self) -> Floats:
        """The places while the policy drove."""
        end = len(self.poses) if self.fired_at < 0 else self.fired_at + 1
        return np.asarray(self.poses[:end, :2])

    @property
    def by_backup(self) -> Floats:
        """The places from where the backup took over; none if it did not."""
        return np.asarray(
            self.poses[:0, :2] if self.fired_at < 0 else self.poses[self.fired_at :, :2]
        )

    @property
    def story(self) -> str:
        """What became of it, in words."""
        steps = len(self.poses) - 1
        if self.collided:
            fired = (
                "" if self.fired_at < 0 else f", though the shield fired at step {self.fired_at}"
            )
            return f"collides at step {steps}{fired}"
        if self.fired_at >= 0:
            return f"the shield fires at step {self.fired_at}, and it stops"
        return (
            f"reaches the goal in {steps} steps"
            if self.success
            else f"is still on its way after {steps} steps"
        )
