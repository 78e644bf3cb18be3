"""Rollouts from above: the room, where the policy drove, where the shield fired, and how it ended,
with the shield off and on.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from pacbound.errors import InvalidTypeError, InvalidValueError
from pacbound.report import palette
from pacbound.report.canvas import axes_for, headed, png
from pacbound.report.floor_plan import Drive, FloorPlan, Shape

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_NOWHERE = np.empty((0, 2))
_PANEL_INCHES = 4.6
_GHOSTS = 12
"""How many outlines of the robot are drawn along a drive."""


class RolloutDisplay:
    """A room from above with the drives of a robot, one panel each: usually with the shield off and
    on.

    The line is near black where the policy drives and orange where the backup has taken over.
    Circles are the robot; a filled one is where it ended. A picture shows one room and proves
    nothing.

    `plot` sets `axes_`, the panels from left to right, and `figure_`. Where no `ax` is given the
    figure is a new one that pyplot does not know: save it with `display.figure_.savefig(path)`; in
    a notebook the display shows itself.

    Parameters
    ----------
    plan
        The room, as a `FloorPlan`.
    drives
        A `Drive` for each panel, by what is written above it.
    robot_radius
        How large the robot is drawn.

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
            raise InvalidTypeError(
                f"plan is a {type(plan).__name__}: expected a FloorPlan. FloorPlan.of(room) makes "
                "one of a room."
            )
        if not drives or not all(isinstance(drive, Drive) for drive in drives.values()):
            raise InvalidTypeError(
                "drives holds none, or what is none: expected a Drive for each panel, by its name."
            )
        if not 0 < robot_radius < np.inf:
            raise InvalidValueError(f"robot_radius={robot_radius}: expected a length above 0.")
        self.plan = plan
        self.drives = dict(drives)
        self.robot_radius = float(robot_radius)
        self.axes_: list[Axes]
        self.figure_: Figure
        self._own_figure = False

    def plot(self, ax: Axes | None = None) -> Self:
        """Draw in the place of `ax`, which becomes the first panel, or on a new figure."""
        self._own_figure = ax is None
        first = axes_for(ax)
        self.figure_ = first.figure.figure
        if self._own_figure:
            height = _PANEL_INCHES * self.plan.depth / self.plan.width
            self.figure_.set_size_inches(
                _PANEL_INCHES * len(self.drives), min(height, 2 * _PANEL_INCHES) + 1.1
            )
        self.axes_ = _side_by_side(first, len(self.drives))
        for panel, (name, drive) in zip(self.axes_, self.drives.items(), strict=True):
            self._draw_room(panel)
            self._draw_drive(panel, drive)
            headed(panel, f"{name}: {drive.story}")
        return self

    def _repr_png_(self) -> bytes | None:
        """The figure for notebooks, unless it was drawn on given axes: whoever made those shows
        them.
        """
        return png(self.figure_) if self._own_figure else None

    def _draw_room(self, ax: Axes) -> None:
        from matplotlib.patches import Circle, Rectangle  # noqa: PLC0415

        plan = self.plan
        ax.add_patch(
            Rectangle(
                (0, 0),
                plan.width,
                plan.depth,
                facecolor=palette.FLOOR,
                edgecolor=palette.WALL,
                linewidth=1.5,
            )
        )
        for shape in sorted(plan.shapes, key=lambda shape: shape.is_overhead):
            ax.add_patch(_patch(shape))
        if plan.goal is not None:
            ax.add_patch(
                Circle(
                    plan.goal,
                    plan.goal_radius,
                    facecolor=palette.GOAL,
                    alpha=0.18,
                    linewidth=0,
                    zorder=2,
                )
            )
            self._mark(
                ax, [plan.goal], "goal", marker="*", size=13, color=palette.GOAL, filled=True
            )
        # Held at the top, which layout engines reckon with when they make room for the title.
        ax.set_aspect("equal", anchor="N")
        margin = 0.02 * max(plan.width, plan.depth)
        ax.set_xlim(-margin, plan.width + margin)
        ax.set_ylim(-margin - 0.08 * plan.depth, plan.depth + margin)
        ax.set(xticks=[], yticks=[])
        ax.spines[:].set_visible(False)
        ax.patch.set_visible(False)
        self._draw_scale(ax)

    def _draw_scale(self, ax: Axes) -> None:
        """One unit of length, below the floor."""
        below = -0.05 * self.plan.depth
        ax.plot(
            [0, min(1.0, self.plan.width)],
            [below, below],
            color=palette.WALL,
            linewidth=2,
            solid_capstyle="butt",
            gid="scale",
        )
        ax.annotate(
            "1 m",
            (min(1.0, self.plan.width), below),
            (4, 0),
            textcoords="offset points",
            va="center",
            fontsize="small",
        )

    def _draw_drive(self, ax: Axes, drive: Drive) -> None:
        for label, places, color in (
            ("policy drives", drive.by_policy, palette.POLICY),
            ("backup brakes", drive.by_backup, palette.BACKUP),
        ):
            # What did not happen is in the legend too, so that the panels line up and read alike.
            ax.plot(
                *places.T,
                color=color,
                linewidth=2,
                solid_capstyle="round",
                label=label,
                gid=label,
                zorder=4,
            )
        self._draw_robots(ax, drive)
        fired = drive.by_backup[:1]
        hit = drive.poses[-1:, :2] if drive.collided else _NOWHERE
        self._mark(ax, drive.poses[:1, :2], "start", marker="o", size=7, color=palette.POLICY)
        self._mark(ax, fired, "shield fires", marker="D", size=8, color=palette.BACKUP, filled=True)
        self._mark(ax, hit, "collision", marker="X", size=11, color=palette.UNSAFE, filled=True)

    def _draw_robots(self, ax: Axes, drive: Drive) -> None:
        from matplotlib.patches import Circle  # noqa: PLC0415

        chosen = np.unique(np.linspace(0, len(drive.poses) - 1, _GHOSTS).round().astype(int))
        for place in chosen:
            color = palette.BACKUP if 0 <= drive.fired_at <= place else palette.POLICY
            outline = {"edgecolor": color, "alpha": 0.35, "linewidth": 0.8, "zorder": 3}
            ax.add_patch(
                Circle(drive.poses[place, :2], self.robot_radius, facecolor="none", **outline)
            )
        color = (
            palette.UNSAFE
            if drive.collided
            else palette.BACKUP
            if drive.fired_at >= 0
            else palette.POLICY
        )
        end = Circle(
            drive.poses[-1, :2],
            self.robot_radius,
            facecolor=color,
            edgecolor=color,
            alpha=0.45,
            zorder=3,
            gid="end",
        )
        ax.add_patch(end)
        if drive.poses.shape[1] == 3:
            x, y, heading = drive.poses[-1]
            nose = self.robot_radius * np.array([np.cos(heading), np.sin(heading)])
            ax.plot(
                [x, x + nose[0]],
                [y, y + nose[1]],
                color=color,
                linewidth=1.5,
                zorder=4,
                gid="heading",
            )

    def _mark(
        self,
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
    from matplotlib.patches import Circle, Rectangle  # noqa: PLC0415

    style: dict[str, Any] = {
        "facecolor": palette.WALL if shape.is_wall else palette.FURNITURE,
        "edgecolor": palette.WALL,
    }
    if shape.is_overhead:
        style = {
            "facecolor": palette.FURNITURE,
            "edgecolor": palette.WALL,
            "alpha": 0.35,
            "linestyle": "--",
        }
    style |= {"linewidth": 0.8, "zorder": 2.5 if shape.is_overhead else 2, "gid": "shape"}
    if shape.is_round:
        return Circle((shape.x, shape.y), shape.width / 2, **style)
    corner = shape.x - shape.width / 2, shape.y - shape.depth / 2
    return Rectangle(
        corner,
        shape.width,
        shape.depth,
        angle=np.degrees(shape.yaw),
        rotation_point="center",
        **style,
    )


def _side_by_side(ax: Axes, count: int) -> list[Axes]:
    """Panels of one size in the place of `ax`, which is the first of them."""
    spec = ax.get_subplotspec()
    if spec is None:
        box, width = ax.get_position(), ax.get_position().width / count
        ax.set_position((box.x0, box.y0, 0.96 * width, box.height))
        return [
            ax,
            *(
                ax.figure.add_axes((box.x0 + place * width, box.y0, 0.96 * width, box.height))
                for place in range(1, count)
            ),
        ]
    grid = spec.subgridspec(1, count, wspace=0.05)
    ax.set_subplotspec(grid[0])
    return [ax, *(ax.figure.add_subplot(grid[place]) for place in range(1, count))]
