"""Rollouts from above: the room, where the policy drove, where the shield fired, how it ended."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from pacbound.errors import InvalidTypeError, InvalidValueError
from pacbound.figure import Floats
from pacbound.report import palette
from pacbound.report.with_matplotlib import Picture, axes_or_new, set_heading

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_NOWHERE = np.empty((0, 2))
_PANEL_INCHES = 4.6
# How many outlines of the robot are drawn along a drive.
_OUTLINES = 12


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
        """The plan of a room of `experiments.robot`, or of anything with the same attributes.

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


class RolloutDisplay(Picture):
    """A room from above with the drives of a robot, such as with the shield off and on.

    Each drive has a panel. The line is near black where the policy drives and orange where the
    backup has taken over. Circles are the robot; a filled one is where it ended. A picture shows
    one room and proves nothing.

    `plot` draws the panels side by side in the place of the axes that it is given. It sets `axes_`,
    the panels from left to right, `ax_`, the first of them, and `figure_`; save the figure with
    `display.figure_.savefig(path)`. In a notebook the display shows itself.

    Parameters
    ----------
    plan
        The room, as a `FloorPlan`.
    drives
        A `Drive` for each panel, by what is written above it.
    robot_radius
        How large the robot is drawn, in the unit of the plan.

    Raises
    ------
    InvalidTypeError
        If `plan` is not a `FloorPlan`, `drives` is empty, or one of them is not a `Drive`.
    InvalidValueError
        If `robot_radius` is not above 0.

    Examples
    --------
    >>> plan = FloorPlan(4, 3, (Shape(2.6, 1.5, 0.8, 1.2),), goal=(3.5, 1.5))
    >>> off = Drive([(0.5 + 0.17 * step, 1.5) for step in range(9)], collided=True)
    >>> on = Drive([(0.5, 1.5), (0.8, 1.5), (1.1, 1.5), (1.3, 1.5), (1.4, 1.5)], fired_at=2)
    >>> display = RolloutDisplay(plan, {"Shield off": off, "Shield on": on})
    >>> display.plot().figure_.savefig("rollouts.png")
    >>> on.story
    'the shield fires at step 2, and it stops'
    """

    def __init__(
        self, plan: FloorPlan, drives: Mapping[str, Drive], *, robot_radius: float = 0.22
    ) -> None:
        if not isinstance(plan, FloorPlan):
            raise InvalidTypeError.of(
                "plan", plan, "a FloorPlan. FloorPlan.of(room) makes one of a room"
            )
        if not drives or not all(isinstance(drive, Drive) for drive in drives.values()):
            raise InvalidTypeError(
                "drives is empty or holds something that is not a Drive: expected a Drive for each "
                "panel, by its name."
            )
        if not 0 < robot_radius < np.inf:
            raise InvalidValueError(f"robot_radius={robot_radius}: expected a length above 0.")
        self.plan = plan
        self.drives = dict(drives)
        self.robot_radius = float(robot_radius)

    def _draw(self, ax: Axes | None) -> list[Axes]:
        height = min(_PANEL_INCHES * self.plan.depth / self.plan.width, 2 * _PANEL_INCHES)
        first = axes_or_new(ax, size=(_PANEL_INCHES * len(self.drives), height + 1.1))
        axes = _side_by_side(first, len(self.drives))
        for panel, (name, drive) in zip(axes, self.drives.items(), strict=True):
            _draw_room(panel, self.plan)
            _draw_drive(panel, drive)
            _draw_robots(panel, drive, self.robot_radius)
            set_heading([panel], f"{name}: {drive.story}")
        return axes


def _draw_room(ax: Axes, plan: FloorPlan) -> None:
    from matplotlib.patches import Circle, Rectangle  # noqa: PLC0415 - matplotlib is optional

    walls: dict[str, Any] = {"edgecolor": palette.WALL, "linewidth": 1.5}
    ax.add_patch(Rectangle((0, 0), plan.width, plan.depth, facecolor=palette.FLOOR, **walls))
    for shape in sorted(plan.shapes, key=lambda shape: shape.is_overhead):
        ax.add_patch(_patch(shape))
    if plan.goal is not None:
        area: dict[str, Any] = {"facecolor": palette.GOAL, "alpha": 0.18, "linewidth": 0}
        ax.add_patch(Circle(plan.goal, plan.goal_radius, zorder=2, **area))
        _mark(ax, [plan.goal], "goal", marker="*", size=13, color=palette.GOAL, filled=True)
    # Held at the top, which layout engines reckon with when they make room for the title.
    ax.set_aspect("equal", anchor="N")
    margin = 0.02 * max(plan.width, plan.depth)
    ax.set_xlim(-margin, plan.width + margin)
    ax.set_ylim(-margin - 0.08 * plan.depth, plan.depth + margin)
    ax.set(xticks=[], yticks=[])
    ax.spines[:].set_visible(False)
    ax.patch.set_visible(False)
    _draw_scale(ax, plan)


def _draw_scale(ax: Axes, plan: FloorPlan) -> None:
    """One metre, below the floor."""
    end, below = min(1.0, plan.width), -0.05 * plan.depth
    style: dict[str, Any] = {"color": palette.WALL, "linewidth": 2, "solid_capstyle": "butt"}
    ax.plot([0, end], [below, below], gid="scale", **style)
    beside: dict[str, Any] = {"textcoords": "offset points", "va": "center"}
    ax.annotate(f"{end:g} m", (end, below), (4, 0), **beside)


def _draw_drive(ax: Axes, drive: Drive) -> None:
    for label, places, color in (
        ("policy drives", drive.by_policy, palette.POLICY),
        ("backup brakes", drive.by_backup, palette.BACKUP),
    ):
        # What did not happen is in the legend too, so that the panels line up and read alike.
        style: dict[str, Any] = {"color": color, "linewidth": 2, "solid_capstyle": "round"}
        ax.plot(*places.T, label=label, gid=label, zorder=4, **style)
    fired = drive.by_backup[:1]
    hit = drive.poses[-1:, :2] if drive.collided else _NOWHERE
    _mark(ax, drive.poses[:1, :2], "start", marker="o", size=7, color=palette.POLICY)
    _mark(ax, fired, "shield fires", marker="D", size=8, color=palette.BACKUP, filled=True)
    _mark(ax, hit, "collision", marker="X", size=11, color=palette.UNSAFE, filled=True)


def _draw_robots(ax: Axes, drive: Drive, radius: float) -> None:
    """Outlines of the robot along its way, and a filled one where it ended."""
    from matplotlib.patches import Circle  # noqa: PLC0415 - matplotlib is optional

    chosen = np.unique(np.linspace(0, len(drive.poses) - 1, _OUTLINES).round().astype(int))
    for place in chosen:
        color = palette.BACKUP if 0 <= drive.fired_at <= place else palette.POLICY
        thin: dict[str, Any] = {"edgecolor": color, "alpha": 0.5, "linewidth": 0.8, "zorder": 3}
        ax.add_patch(Circle(drive.poses[place, :2], radius, facecolor="none", **thin))
    color = palette.BACKUP if drive.fired_at >= 0 else palette.POLICY
    if drive.collided:
        color = palette.UNSAFE
    filled: dict[str, Any] = {"facecolor": color, "edgecolor": color, "alpha": 0.45, "zorder": 3}
    ax.add_patch(Circle(drive.poses[-1, :2], radius, gid="end", **filled))
    if drive.poses.shape[1] == 3:
        x, y, heading = drive.poses[-1]
        nose = [x, x + radius * np.cos(heading)], [y, y + radius * np.sin(heading)]
        ax.plot(*nose, color=color, linewidth=1.5, zorder=4, gid="heading")


def _mark(
    ax: Axes,
    places: Any,
    label: str,
    *,
    marker: str,
    size: float,
    color: str,
    filled: bool = False,
) -> None:
    ax.plot(
        *np.asarray(places).T,
        linestyle="none",
        marker=marker,
        markersize=size,
        markerfacecolor=color if filled else "white",
        markeredgecolor="white" if filled else color,
        markeredgewidth=1.0 if filled else 1.6,
        label=label,
        gid=label,
        zorder=5,
    )


def _patch(shape: Shape) -> Any:
    from matplotlib.patches import Circle, Rectangle  # noqa: PLC0415 - matplotlib is optional

    style: dict[str, Any] = {
        "facecolor": palette.WALL if shape.is_wall else palette.FURNITURE,
        "edgecolor": palette.WALL,
        "linewidth": 0.8,
        "zorder": 2,
        "gid": "shape",
    }
    if shape.is_overhead:
        light = {"facecolor": palette.FURNITURE, "alpha": 0.35, "linestyle": "--", "zorder": 2.5}
        style |= light
    if shape.is_round:
        return Circle((shape.x, shape.y), shape.width / 2, **style)
    corner = shape.x - shape.width / 2, shape.y - shape.depth / 2
    turned: dict[str, Any] = {"angle": np.degrees(shape.yaw), "rotation_point": "center"}
    return Rectangle(corner, shape.width, shape.depth, **turned, **style)


def _side_by_side(ax: Axes, count: int) -> list[Axes]:
    """Panels of one size in the place of `ax`, which is the first of them."""
    spec, figure = ax.get_subplotspec(), ax.figure
    if spec is None:
        box = ax.get_position(original=True)
        width = box.width / count
        places = [(box.x0 + k * width, box.y0, 0.96 * width, box.height) for k in range(count)]
        ax.set_position(places[0])
        return [ax, *(figure.add_axes(place) for place in places[1:])]
    grid = spec.subgridspec(1, count, wspace=0.05)
    ax.set_subplotspec(grid[0])
    return [ax, *(figure.add_subplot(grid[place]) for place in range(1, count))]
