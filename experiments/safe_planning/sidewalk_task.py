"""A second simulator, which others wrote: MiniWorld's sidewalk, seen by a camera, first person.

"Walk on a sidewalk up to an object. Don't walk into the street": both the goal and what is unsafe
are MiniWorld's own, and so is the randomness of the light, the camera and every step
(`domain_rand`). An action turns left, turns right, or walks forward. The backup turns on the spot,
which is always safe, so a state is un-recoverable if the policy's next step leads into the street.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
from numpy.typing import NDArray

from experiments.robot.inference import read_weights
from pacbound.shield import Task

HORIZON = 150
"""MiniWorld's own limit for this environment."""
TURN_LEFT, TURN_RIGHT, FORWARD = range(3)
BLOCK = 4
WEIGHTS = Path(__file__).parent / "weights"
POLICY, DANGER = WEIGHTS / "sidewalk_policy.npz", WEIGHTS / "sidewalk_danger.npz"


@dataclass(frozen=True)
class SavedState:
    """All that the next step depends on besides the action and the generator."""

    place: NDArray[np.float64]
    heading: float
    steps: int
    unsafe: bool
    moved: bool


class Sidewalk(gymnasium.Wrapper[Any, Any, Any, Any]):
    """MiniWorld-Sidewalk-v0, as `pacbound.shield.protocol` asks for."""

    def __init__(self) -> None:
        import pyglet  # noqa: PLC0415 - MiniWorld is optional

        # Without a screen; it must be said before MiniWorld is imported.
        pyglet.options["headless"] = True
        import miniworld  # noqa: F401, PLC0415

        super().__init__(
            gymnasium.make(
                "MiniWorld-Sidewalk-v0",
                max_episode_steps=-1,
                disable_env_checker=True,
                domain_rand=True,
                # Of a picture that nobody looks at; MiniWorld never frees its buffers, and those of
                # the usual 800 x 600 pixels take 25 MB for every environment.
                window_width=80,
                window_height=60,
            )
        )
        self._world: Any = self.env.unwrapped
        self._unsafe = self._moved = False

    def reset(self, **options: Any) -> tuple[Any, dict[str, Any]]:
        observation, info = self.env.reset(**options)
        self._unsafe, self._moved = self._in_the_street(), False
        return observation, info

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        before = self._world.agent.pos.copy()
        observation, reward, terminated, _, info = self.env.step(int(action))
        self._unsafe = self._in_the_street()
        self._moved = not np.array_equal(before, self._world.agent.pos)
        success = not self._unsafe and bool(self._world.near(self._world.box))
        # The limit of steps is the horizon of the rollouts.
        return observation, float(reward), bool(terminated), False, {**info, "success": success}

    def save_state(self) -> SavedState:
        agent = self._world.agent
        return SavedState(
            agent.pos.copy(), float(agent.dir), self._world.step_count, self._unsafe, self._moved
        )

    def restore_state(self, state: SavedState) -> None:
        self._world.agent.pos, self._world.agent.dir = state.place.copy(), state.heading
        self._world.step_count = state.steps
        self._unsafe, self._moved = state.unsafe, state.moved

    def is_unsafe(self) -> bool:
        return self._unsafe

    def is_stopped(self) -> bool:
        return not self._moved

    def surely_recoverable(self) -> bool:
        """Turning on the spot changes no place."""
        return not self._unsafe

    @property
    def bearing(self) -> float:
        """How far to the left the goal is, in radians in [-pi, pi)."""
        agent, goal = self._world.agent, self._world.box.pos
        wanted = np.arctan2(-(goal[2] - agent.pos[2]), goal[0] - agent.pos[0])
        return float((wanted - agent.dir + np.pi) % (2 * np.pi) - np.pi)

    @property
    def plan(self) -> tuple[float, float, float]:
        """Where the walker is on the floor, and its heading."""
        agent = self._world.agent
        return float(agent.pos[0]), float(agent.pos[2]), float(agent.dir)

    @property
    def goal(self) -> tuple[float, float]:
        return float(self._world.box.pos[0]), float(self._world.box.pos[2])

    def _in_the_street(self) -> bool:
        return bool(self._world.street.point_inside(self._world.agent.pos))


class Perceptron:
    """A multilayer perceptron of scikit-learn's over the picture in blocks of 4 x 4, in NumPy."""

    def __init__(self, path: Path) -> None:
        held = read_weights(path)
        layers = len(held) // 2
        self._layers = [(held[f"weight.{place}"], held[f"bias.{place}"]) for place in range(layers)]

    def outputs(self, observation: NDArray[np.uint8]) -> NDArray[np.float64]:
        values = features(observation[None])[0]
        for place, (weight, bias) in enumerate(self._layers):
            values = values @ weight + bias
            if place < len(self._layers) - 1:
                values = np.maximum(values, 0)
        found: NDArray[np.float64] = values.astype(np.float64)
        return found


class Walker(Perceptron):
    """The policy: the action whose output is highest."""

    def __call__(self, observation: NDArray[np.uint8]) -> int:
        return int(np.argmax(self.outputs(observation)))


class StreetDanger(Perceptron):
    """The danger that the next step leads into the street, in [0, 1]."""

    def __call__(self, observation: NDArray[np.uint8]) -> float:
        return float(1 / (1 + np.exp(-self.outputs(observation)[0])))


def features(pictures: NDArray[np.uint8]) -> NDArray[np.float32]:
    """The means of blocks of 4 x 4 pixels: (n, 60, 80, 3) bytes to (n, 900) numbers around 0."""
    n, height, width, colours = pictures.shape
    blocks = pictures.reshape(n, height // BLOCK, BLOCK, width // BLOCK, BLOCK, colours)
    means: NDArray[np.float32] = blocks.mean(axis=(2, 4), dtype=np.float32)
    return (means / np.float32(127.5) - np.float32(1)).reshape(n, -1)


def turn_on_the_spot(observation: Any = None) -> int:  # noqa: ARG001
    return TURN_LEFT


def walk(policy: Any, danger: Any) -> Task:
    """The task with its learned parts, which are told from others by their weights."""
    return Task(
        Sidewalk,
        policy,
        turn_on_the_spot,
        danger,
        horizon=HORIZON,
        identity=f"MiniWorld-Sidewalk-v0, {digest(POLICY)}, {digest(DANGER) if danger else None}",
    )


def digest(path: Path) -> str:
    return "sha256:" + hashlib.sha256(path.read_bytes()).hexdigest()
