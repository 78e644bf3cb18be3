"""Furnished rooms, drawn from a seed: walls, boxes, cylinders and tables with legs, a start and a
goal that can be reached.

A room is plain data and knows nothing of physics. Lengths are metres, angles radians; x and y start
in a corner of the floor.

Which rooms are for what is fixed by ranges of seeds that do not meet, so no network and no
certificate ever sees a room of another purpose. A certificate is worth something only if its
rollouts are new to all that was trained, tuned or chosen before. Whoever changes a network may look
at the rooms of `TUNING` as often as they like, and at those of `CALIBRATION` and `TEST` never.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import label

Floats = NDArray[np.float64]
Kind = Literal["wall", "box", "cylinder", "table top", "table leg"]

POLICY_TRAINING = range(1_000_000, 1_100_000)
DANGER_TRAINING = range(2_000_000, 2_100_000)
TUNING = range(3_000_000, 3_100_000)
CALIBRATION = range(4_000_000, 4_900_000)
TEST = range(6_000_000, 6_900_000)

ROBOT_RADIUS = 0.22
ROBOT_HEIGHT = 0.36
CELL = 0.1

WALL_HEIGHT, WALL_THICKNESS = 1.6, 0.1
START_CLEARANCE, GOAL_CLEARANCE = 0.45, 0.45
LEAST_JOURNEY = 3.5
# Ways are looked for with this much air on both sides of the robot, so that a driver need not be
# perfect.
PATH_MARGIN = 0.08
FURNITURE_GAP = 0.3


@dataclass(frozen=True)
class Obstacle:
    """An upright box or cylinder in a room.

    Attributes
    ----------
    kind : str
        "wall", "box", "cylinder", "table top" or "table leg". Cylinders and legs are round, the
        others are boxes.
    x, y, z : float
        Its centre, in metres.
    half_size : tuple of three floats
        Half its extent along its own axes; something round has its radius twice.
    yaw : float
        How far it is turned about the vertical, in radians.

    Examples
    --------
    The robot can touch a box on the floor, and drives under the top of a table:

    >>> Obstacle("box", 2.0, 1.0, 0.3, (0.5, 0.2, 0.3)).blocks
    True
    >>> Obstacle("table top", 2.0, 1.0, 0.7, (0.5, 0.4, 0.03)).blocks
    False
    """

    kind: Kind
    x: float
    y: float
    z: float
    half_size: tuple[float, float, float]
    yaw: float = 0.0

    @property
    def is_round(self) -> bool:
        """Whether it is a cylinder; otherwise it is a box."""
        return self.kind in ("cylinder", "table leg")

    @property
    def footprint(self) -> tuple[float, float, float]:
        """Half its length, half its width, and a radius around both: a box has no radius, a
        cylinder nothing else.
        """
        return (0.0, 0.0, self.half_size[0]) if self.is_round else (*self.half_size[:2], 0.0)

    @property
    def blocks(self) -> bool:
        """Whether it is low enough for the robot to touch it; the top of a table is not."""
        return self.z - self.half_size[2] <= ROBOT_HEIGHT


@dataclass(frozen=True)
class Room:
    """A room as plain data: the floor, what stands on it, where the robot starts and where it
    should go.

    Attributes
    ----------
    width, depth : float
        The floor is [0, width] x [0, depth], in metres.
    obstacles : tuple of Obstacle
        Walls and furniture.
    start : tuple of three floats
        x, y and heading of the robot.
    goal : tuple of two floats
        x and y of the goal.

    Examples
    --------
    >>> box = Obstacle("box", 2.0, 1.0, 0.3, (0.5, 0.2, 0.3))
    >>> room = Room(4.0, 3.0, (box,), start=(0.5, 1.0, 0.0), goal=(3.5, 1.0))
    >>> room.distance(np.array([[0.5, 1.0], [2.0, 1.0]])).tolist()
    [1.0, 0.0]
    """

    width: float
    depth: float
    obstacles: tuple[Obstacle, ...]
    start: tuple[float, float, float]
    goal: tuple[float, float]

    def distance(self, points: Floats) -> Floats:
        """The distance from each of the (n, 2) `points` to the nearest obstacle that the robot can
        touch; 0 inside of one.
        """
        x, y, long, wide, radius, cosine, sine = self._blocking
        dx, dy = points[:, :1] - x, points[:, 1:] - y
        along = np.maximum(np.abs(cosine * dx + sine * dy) - long, 0.0)
        across = np.maximum(np.abs(cosine * dy - sine * dx) - wide, 0.0)
        nearest: Floats = np.maximum(np.sqrt(along * along + across * across) - radius, 0.0).min(
            axis=1, initial=np.inf
        )
        return nearest

    @cached_property
    def _blocking(self) -> Floats:
        """Rows x, y, half length, half width, radius, cosine and sine of the turn; a column for
        each obstacle.
        """
        pieces = [piece for piece in self.obstacles if piece.blocks]
        rows = [
            (one.x, one.y, *one.footprint, math.cos(one.yaw), math.sin(one.yaw)) for one in pieces
        ]
        return np.array(rows, dtype=np.float64).reshape(-1, 7).T

    def cell_centres(self) -> tuple[Floats, tuple[int, int]]:
        """The centres (n, 2) of the cells that the floor is divided into, and how many there are
        along x and y.
        """
        shape = round(self.width / CELL), round(self.depth / CELL)
        x, y = (np.arange(shape[0]) + 0.5) * CELL, (np.arange(shape[1]) + 0.5) * CELL
        return np.stack(np.meshgrid(x, y, indexing="ij"), axis=-1).reshape(-1, 2), shape

    def cell(self, x: float, y: float) -> tuple[int, int]:
        """The cell that holds the point."""
        columns, rows = round(self.width / CELL), round(self.depth / CELL)
        return min(max(int(x / CELL), 0), columns - 1), min(max(int(y / CELL), 0), rows - 1)


def random_room(rng: np.random.Generator) -> Room:
    """A room with up to ten pieces of furniture, in which the robot fits through on its way from
    start to goal.

    No two pieces touch, and none stands in a wall. Every other room has a wall that divides it in
    part. Start and goal are at least three and a half metres apart and have free floor around them.

    Parameters
    ----------
    rng
        What the room is drawn from: the same generator in the same state gives the same room.

    Returns
    -------
    Room
        The room.

    Examples
    --------
    >>> room = random_room(np.random.default_rng(0))
    >>> room.width, room.depth, len(room.obstacles)
    (7.9, 6.0, 11)
    """
    while True:
        width, depth = round(rng.uniform(6.0, 9.0), 1), round(rng.uniform(5.5, 7.5), 1)
        obstacles = [*_walls(width, depth), *_partition(rng, width, depth)]
        obstacles += _furniture(rng, width, depth, obstacles)
        empty = Room(width, depth, tuple(obstacles), (0.0, 0.0, 0.0), (0.0, 0.0))
        journey = _journey(rng, empty)
        if journey is not None:
            return Room(width, depth, empty.obstacles, *journey)


def _walls(width: float, depth: float) -> list[Obstacle]:
    t, h = WALL_THICKNESS / 2, WALL_HEIGHT / 2
    return [
        Obstacle("wall", width / 2, -t, h, (width / 2 + 2 * t, t, h)),
        Obstacle("wall", width / 2, depth + t, h, (width / 2 + 2 * t, t, h)),
        Obstacle("wall", -t, depth / 2, h, (t, depth / 2, h)),
        Obstacle("wall", width + t, depth / 2, h, (t, depth / 2, h)),
    ]


def _partition(rng: np.random.Generator, width: float, depth: float) -> list[Obstacle]:
    """In every other room, a wall that divides it in part."""
    if rng.random() < 0.5:
        return []
    t, h, half = WALL_THICKNESS / 2, WALL_HEIGHT / 2, depth * rng.uniform(0.15, 0.3)
    x, at_far_side = width * rng.uniform(0.35, 0.65), rng.random() < 0.5
    return [Obstacle("wall", x, depth - half if at_far_side else half, h, (t, half, h))]


def _furniture(
    rng: np.random.Generator, width: float, depth: float, walls: list[Obstacle]
) -> list[Obstacle]:
    """Pieces at random places; one that comes too near to another is put elsewhere, or left out in
    the end.
    """
    obstacles: list[Obstacle] = []
    taken: list[tuple[float, float, float]] = []
    empty = Room(width, depth, tuple(walls), (0.0, 0.0, 0.0), (0.0, 0.0))
    for _ in range(int(rng.integers(7, 11))):
        for _ in range(20):
            x, y = rng.uniform(0.3, width - 0.3), rng.uniform(0.3, depth - 0.3)
            piece, radius = _piece(rng, x, y, rng.uniform(0, math.pi))
            is_clear = all(
                math.hypot(x - a, y - b) >= radius + other + FURNITURE_GAP for a, b, other in taken
            )
            if is_clear and empty.distance(np.array([[x, y]]))[0] >= radius:
                taken.append((x, y, radius))
                obstacles += piece
                break
    return obstacles


def _piece(
    rng: np.random.Generator, x: float, y: float, yaw: float
) -> tuple[list[Obstacle], float]:
    """One piece of furniture around (x, y), and the radius of a circle that holds it."""
    draw = rng.random()
    if draw < 0.4:
        long, wide, height = rng.uniform(0.15, 0.6), rng.uniform(0.15, 0.35), rng.uniform(0.2, 0.7)
        return [Obstacle("box", x, y, height, (long, wide, height), yaw)], math.hypot(long, wide)
    if draw < 0.65:
        radius, height = rng.uniform(0.08, 0.3), rng.uniform(0.2, 0.8)
        return [Obstacle("cylinder", x, y, height, (radius, radius, height))], radius
    half = rng.uniform(0.45, 0.75), rng.uniform(0.35, 0.5)
    return _table(x, y, yaw, half, rng.uniform(0.65, 0.8))


def _table(
    x: float, y: float, yaw: float, half: tuple[float, float], height: float
) -> tuple[list[Obstacle], float]:
    top, leg = 0.03, 0.03
    parts = [Obstacle("table top", x, y, height - top, (*half, top), yaw)]
    long, wide, middle = half[0] - leg, half[1] - leg, (height - 2 * top) / 2
    cosine, sine = math.cos(yaw), math.sin(yaw)
    for a, b in ((long, wide), (long, -wide), (-long, wide), (-long, -wide)):
        at = x + cosine * a - sine * b, y + sine * a + cosine * b
        parts.append(Obstacle("table leg", *at, middle, (leg, leg, middle)))
    return parts, math.hypot(*half)


def _journey(
    rng: np.random.Generator, room: Room
) -> tuple[tuple[float, float, float], tuple[float, float]] | None:
    """A start and a goal that are far apart, with free floor around them and a way between them
    that is wide enough.
    """
    centres, shape = room.cell_centres()
    distance = room.distance(centres)
    region = label(free_cells(distance, shape), structure=np.ones((3, 3)))[0].ravel()
    starts = np.flatnonzero(distance >= ROBOT_RADIUS + START_CLEARANCE)
    goals = np.flatnonzero(distance >= GOAL_CLEARANCE)
    if not len(starts):
        return None
    start = rng.choice(starts)
    far = np.hypot(*(centres[goals] - centres[start]).T) >= LEAST_JOURNEY
    goals = goals[far & (region[goals] == region[start])]
    if not len(goals):
        return None
    (to_x, to_y), heading = centres[rng.choice(goals)].tolist(), rng.uniform(-math.pi, math.pi)
    x, y = centres[start].tolist()
    return (x, y, float(heading)), (to_x, to_y)


def free_cells(distance: Floats, shape: tuple[int, int]) -> NDArray[np.bool_]:
    """The cells, as a grid, on which the robot can stand with a little air around it; `distance` is
    that of their centres.
    """
    return (distance > ROBOT_RADIUS + PATH_MARGIN).reshape(shape)
