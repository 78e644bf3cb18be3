"""The scripted expert: it knows the room, plans around the furniture and slows down where it is
narrow or the way turns.

It is what the policy network imitates. The network sees only what the robot sees, so it drives
worse than this.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.sparse.csgraph import dijkstra

from experiments.robot.physics import MAX_SPEED, MAX_TURN
from experiments.robot.rooms import CELL, ROBOT_RADIUS, Room, free_cells

_LOOK_AHEAD = 0.8
_COMFORT = 0.3  # metres of air beyond which more does not make a way better
_DECELERATION = 0.75  # m/s^2, of the 1 that the motors can do
_REACTION = 0.25  # seconds


class Expert:
    """A driver with the map of one room: it plans around the furniture, and slows down where it is
    narrow.

    Parameters
    ----------
    room
        The room, as `IndoorNavigation.reset` gives it in its info.

    Examples
    --------
    >>> from experiments.robot import IndoorNavigation
    >>> env = IndoorNavigation()
    >>> _, info = env.reset(seed=1)
    >>> expert, terminated = Expert(info["room"]), False
    >>> while not terminated:
    ...     _, _, terminated, _, info = env.step(expert.act(env.pose, env.speed))
    >>> info["success"]
    True
    """

    def __init__(self, room: Room) -> None:
        self._room = room
        self._centres, self._shape = room.cell_centres()
        self._distance = room.distance(self._centres)
        self._next = self._towards_goal()

    def act(
        self, pose: tuple[float, float, float], speed: tuple[float, float]
    ) -> NDArray[np.float32]:
        """The action in a situation.

        Parameters
        ----------
        pose
            x, y and heading of the robot.
        speed
            Its forward speed in m/s and its turning rate in rad/s.

        Returns
        -------
        ndarray of shape (2,)
            The action, as `IndoorNavigation.step` takes it.
        """
        x, y, heading = pose
        target = self._target(x, y)
        bearing = math.atan2(target[1] - y, target[0] - x)
        error = math.remainder(bearing - heading, 2 * math.pi)
        turn = 2.5 * error - 0.35 * speed[1]
        forward = MAX_SPEED * max(0.0, math.cos(error)) ** 2 if abs(error) < math.pi / 2 else 0.0
        forward = min(forward, self._stopping_speed(x, y, heading, speed[1]))
        return np.array([forward / MAX_SPEED, np.clip(turn / MAX_TURN, -1, 1)], dtype=np.float32)

    def _target(self, x: float, y: float) -> tuple[float, float]:
        """The farthest point of the way within the look-ahead that can be driven to straight."""
        cell, target = np.ravel_multi_index(self._room.cell(x, y), self._shape), None
        for _ in range(round(_LOOK_AHEAD / CELL) + 1):
            following = self._next[cell]
            if following < 0:
                break
            cell = following
            ahead = self._centres[cell]
            if target is not None and not self._is_open(x, y, ahead[0], ahead[1]):
                break
            target = float(ahead[0]), float(ahead[1])
        return self._room.goal if target is None or self._is_near_goal(x, y) else target

    def _is_near_goal(self, x: float, y: float) -> bool:
        goal = self._room.goal
        return math.hypot(goal[0] - x, goal[1] - y) < _LOOK_AHEAD and self._is_open(x, y, *goal)

    def _is_open(self, x: float, y: float, to_x: float, to_y: float) -> bool:
        share = np.linspace(0, 1, 9)[1:, None]
        points = np.array([[x, y]]) * (1 - share) + np.array([[to_x, to_y]]) * share
        return bool(self._room.distance(points).min() > ROBOT_RADIUS + 0.1)

    def _stopping_speed(self, x: float, y: float, heading: float, turn: float) -> float:
        """The speed from which the robot can stop before what lies ahead of it, on the arc that it
        drives on.
        """
        along = np.arange(0.1, 1.6, 0.1)
        bearing = heading + turn / 2 * along
        points = np.stack([x + along * np.cos(bearing), y + along * np.sin(bearing)], axis=1)
        blocked = self._room.distance(points) < ROBOT_RADIUS + 0.04
        if not blocked.any():
            return MAX_SPEED
        free = max(0.0, float(along[blocked.argmax()]) - 0.15)
        reaction = _DECELERATION * _REACTION
        return max(0.1, math.sqrt(reaction**2 + 2 * _DECELERATION * free) - reaction)

    def _towards_goal(self) -> NDArray[np.int32]:
        """For each cell the next one on the best way to the goal; negative where there is none."""
        free = free_cells(self._distance, self._shape)
        narrow = np.maximum(0, 1 - (self._distance - ROBOT_RADIUS) / _COMFORT).reshape(self._shape)
        cost = 1 + 4 * narrow**2
        # What is not free can be left, at a price, but is not worth entering.
        cost[~free] = 100
        index = np.arange(free.size).reshape(self._shape)
        rows, columns, weights = [], [], []
        for dx, dy in ((0, 1), (1, 0), (1, 1), (1, -1)):
            a = (slice(0, self._shape[0] - dx), slice(max(0, -dy), self._shape[1] - max(0, dy)))
            b = (slice(dx, None), slice(max(0, dy), self._shape[1] + min(0, dy)))
            rows.append(index[a].ravel())
            columns.append(index[b].ravel())
            weights.append((math.hypot(dx, dy) * (cost[a] + cost[b]) / 2).ravel())
        edges = (np.concatenate(weights), (np.concatenate(rows), np.concatenate(columns)))
        graph = csr_array(edges, shape=(free.size, free.size))
        goal = np.ravel_multi_index(self._room.cell(*self._room.goal), self._shape)
        ways = dijkstra(graph, directed=False, indices=goal, return_predecessors=True)
        following: NDArray[np.int32] = ways[1]
        return following
