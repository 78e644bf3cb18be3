"""Rollouts from above: the room, where the policy drove, where the shield fired, how it ended."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.patches import Circle, Rectangle
from numpy.typing import NDArray

from experiments import palette
from experiments.robot.rooms import Obstacle, Room

NOWHERE = np.empty((0, 2))
PANEL_INCHES = 4.6
# How many outlines of the robot are drawn along a drive, and how large.
OUTLINES, RADIUS, GOAL_RADIUS = 12, 0.22, 0.4


@dataclass(frozen=True)
class Drive:
    """One rollout: the robot's poses, x, y and its heading, the start first; the pose at which the
    shield fired, -1 if it did not; and what became of it."""

    poses: NDArray[np.float64]
    fired_at: int = -1
    collided: bool = False
    success: bool = False

    @property
    def story(self) -> str:
        """What became of it, in words."""
        steps = len(self.poses) - 1
        if self.collided:
            late = "" if self.fired_at < 0 else f", though the shield fired at step {self.fired_at}"
            return f"collides at step {steps}{late}"
        if self.fired_at >= 0:
            return f"the shield fires at step {self.fired_at}, and it stops"
        if self.success:
            return f"reaches the goal in {steps} steps"
        return f"is still on its way after {steps} steps"


def drawn(room: Room, drives: Mapping[str, Drive]) -> Figure:
    """A room with a panel for each drive. The line is near black where the policy drives and orange
    where the backup has taken over; a filled circle is where the robot ended."""
    high = min(PANEL_INCHES * room.depth / room.width, 2 * PANEL_INCHES)
    figure = Figure(figsize=(PANEL_INCHES * len(drives), high + 1.1), layout="constrained")
    FigureCanvasAgg(figure)
    panels = figure.subplots(1, len(drives), squeeze=False)[0]
    for ax, (name, drive) in zip(panels, drives.items(), strict=True):
        _draw_room(ax, room)
        _draw_drive(ax, drive)
        _draw_robots(ax, drive)
        legend = ax.legend(loc="lower left", bbox_to_anchor=(0, 1), ncols=2, frameon=False)
        pad = legend.get_window_extent().height / figure.dpi * 72 + 9
        ax.set_title(f"{name}: {drive.story}", loc="left", fontsize="medium", pad=pad)
    return figure


def _draw_room(ax: Any, plan: Room) -> None:
    walls: dict[str, Any] = {"edgecolor": palette.WALL, "linewidth": 1.5}
    ax.add_patch(Rectangle((0, 0), plan.width, plan.depth, facecolor=palette.FLOOR, **walls))
    for shape in sorted(plan.obstacles, key=lambda shape: not shape.blocks):
        ax.add_patch(_patch(shape))
    area: dict[str, Any] = {"facecolor": palette.GOAL, "alpha": 0.18, "linewidth": 0}
    ax.add_patch(Circle(plan.goal, GOAL_RADIUS, zorder=2, **area))
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


def _draw_scale(ax: Any, plan: Room) -> None:
    """One metre, below the floor."""
    end, below = min(1.0, plan.width), -0.05 * plan.depth
    style: dict[str, Any] = {"color": palette.WALL, "linewidth": 2, "solid_capstyle": "butt"}
    ax.plot([0, end], [below, below], **style)
    beside: dict[str, Any] = {"textcoords": "offset points", "va": "center"}
    ax.annotate(f"{end:g} m", (end, below), (4, 0), **beside)


def _draw_drive(ax: Any, drive: Drive) -> None:
    fired = len(drive.poses) if drive.fired_at < 0 else drive.fired_at
    for label, places, color in (
        ("policy drives", drive.poses[: fired + 1, :2], palette.POLICY),
        ("backup brakes", drive.poses[fired:, :2], palette.BACKUP),
    ):
        # What did not happen is in the legend too, so that the panels line up and read alike.
        style: dict[str, Any] = {"color": color, "linewidth": 2, "solid_capstyle": "round"}
        ax.plot(*places.T, label=label, zorder=4, **style)
    hit = drive.poses[-1:, :2] if drive.collided else NOWHERE
    _mark(ax, drive.poses[:1, :2], "start", marker="o", size=7, color=palette.POLICY)
    _mark(
        ax,
        drive.poses[fired:, :2][:1],
        "shield fires",
        marker="D",
        size=8,
        color=palette.BACKUP,
        filled=True,
    )
    _mark(ax, hit, "collision", marker="X", size=11, color=palette.UNSAFE, filled=True)


def _draw_robots(ax: Any, drive: Drive) -> None:
    """Outlines of the robot along its way, and a filled one where it ended."""
    chosen = np.unique(np.linspace(0, len(drive.poses) - 1, OUTLINES).round().astype(int))
    for place in chosen:
        color = palette.BACKUP if 0 <= drive.fired_at <= place else palette.POLICY
        thin: dict[str, Any] = {"edgecolor": color, "alpha": 0.5, "linewidth": 0.8, "zorder": 3}
        ax.add_patch(
            Circle((drive.poses[place, 0], drive.poses[place, 1]), RADIUS, facecolor="none", **thin)
        )
    color = palette.BACKUP if drive.fired_at >= 0 else palette.POLICY
    if drive.collided:
        color = palette.UNSAFE
    x, y, heading = drive.poses[-1]
    filled: dict[str, Any] = {"facecolor": color, "edgecolor": color, "alpha": 0.45, "zorder": 3}
    ax.add_patch(Circle((x, y), RADIUS, **filled))
    nose = [x, x + RADIUS * np.cos(heading)], [y, y + RADIUS * np.sin(heading)]
    ax.plot(*nose, color=color, linewidth=1.5, zorder=4)


def _mark(
    ax: Any,
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
        zorder=5,
    )


def _patch(shape: Obstacle) -> Any:
    style: dict[str, Any] = {
        "facecolor": palette.WALL if shape.kind == "wall" else palette.FURNITURE,
        "edgecolor": palette.WALL,
        "linewidth": 0.8,
        "zorder": 2,
    }
    if not shape.blocks:
        light = {"facecolor": palette.FURNITURE, "alpha": 0.35, "linestyle": "--", "zorder": 2.5}
        style |= light
    if shape.is_round:
        return Circle((shape.x, shape.y), shape.half_size[0], **style)
    along, across, _ = shape.half_size
    turned: dict[str, Any] = {"angle": np.degrees(shape.yaw), "rotation_point": "center"}
    corner = shape.x - along, shape.y - across
    return Rectangle(corner, 2 * along, 2 * across, **turned, **style)
