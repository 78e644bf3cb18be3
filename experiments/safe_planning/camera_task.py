"""The robot that sees by its camera: the same rooms, physics and backup as with depth.

OpenGL needs about 0.13 s for each new context, as long as the pictures of a whole rollout take.
Rooms have no textures and no meshes, so one context per process can draw them all, pixel for pixel
as a new one would. A backup that does not look, such as braking, needs no pictures at all: an
observation is drawn when it is first looked at.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import mujoco
import numpy as np
from numpy.typing import NDArray

from experiments.robot import IndoorNavigation, brake, random_room
from experiments.robot.environment import RGB_SHAPE, SavedState
from experiments.robot.physics import compile_model
from pacbound.shield import Task

HORIZON = 100
MOST_GEOMS = 500
WEIGHTS = Path(__file__).parent / "weights"
POLICY, DANGER = WEIGHTS / "camera_policy.npz", WEIGHTS / "camera_danger.npz"


class Glimpse(Mapping[str, NDArray[Any]]):
    """An observation of `CameraRoom` whose picture is drawn when it is first looked at, which must
    be before the robot moves on. A copy is a plain dictionary."""

    def __init__(self, room: CameraRoom) -> None:
        self._room, self._moment, self.state = room, room.moment, room.digest()
        self._seen: dict[str, NDArray[Any]] | None = None

    def __getitem__(self, name: str) -> NDArray[Any]:
        return self._look()[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._look())

    def __len__(self) -> int:
        return len(self._look())

    def __deepcopy__(self, _: Any) -> dict[str, NDArray[Any]]:
        return {name: part.copy() for name, part in self._look().items()}

    def _look(self) -> dict[str, NDArray[Any]]:
        if self._seen is None:
            if self._room.moment != self._moment:
                raise RuntimeError(
                    "The robot has moved on since this observation: look at it, or copy it, before "
                    "the next step."
                )
            self._seen = self._room.look()
        return self._seen


class CameraRoom(IndoorNavigation):
    """`IndoorNavigation(observation="rgb")`, faster: one OpenGL context per process, and no picture
    that nobody looks at."""

    def __init__(self) -> None:
        super().__init__(observation="rgb")
        self.moment = 0
        self._drawn: tuple[mujoco.MjModel, mujoco.MjvScene, mujoco.MjvCamera] | None = None

    def look(self) -> dict[str, NDArray[Any]]:
        """What the robot sees from where it is now."""
        return super()._observation()

    def digest(self) -> bytes:
        """The room and the physics in a few bytes: what is seen and what follows depend on these
        alone."""
        room = repr(self.room).encode()
        return hashlib.sha256(room + self.save_state().physics.tobytes()).digest()

    def restore_state(self, state: SavedState) -> None:
        self.moment += 1
        super().restore_state(state)

    def _observation(self) -> Any:
        self.moment += 1
        return Glimpse(self)

    def _image(self) -> NDArray[Any]:
        if self._drawn is None or self._drawn[0] is not self._model:
            camera = mujoco.MjvCamera()
            camera.type = mujoco.mjtCamera.mjCAMERA_FIXED
            camera.fixedcamid = self._model.camera("eye").id
            scene = mujoco.MjvScene(self._model, maxgeom=MOST_GEOMS)
            self._drawn = self._model, scene, camera
        _, scene, camera = self._drawn
        self._settle()
        mujoco.mjv_updateScene(
            self._model,
            self._data,
            mujoco.MjvOption(),
            None,
            camera,
            mujoco.mjtCatBit.mjCAT_ALL,
            scene,
        )
        height, width, _ = RGB_SHAPE
        window, pixels = mujoco.MjrRect(0, 0, width, height), np.empty(RGB_SHAPE, dtype=np.uint8)
        context, drawing = _drawing(height, width)
        context.make_current()
        mujoco.mjr_render(window, scene, drawing)
        mujoco.mjr_readPixels(pixels, None, window, drawing)
        return np.ascontiguousarray(np.flipud(pixels))


@cache
def _drawing(height: int, width: int) -> tuple[mujoco.GLContext, mujoco.MjrContext]:
    """The OpenGL context of this process, and what MuJoCo keeps in it; never freed."""
    context = mujoco.GLContext(width, height)
    context.make_current()
    # Of any room: it keeps a list for the floor, which every room has.
    room = compile_model(random_room(np.random.default_rng(0)))
    drawing = mujoco.MjrContext(room, mujoco.mjtFontScale.mjFONTSCALE_150)
    mujoco.mjr_setBuffer(mujoco.mjtFramebuffer.mjFB_OFFSCREEN.value, drawing)
    return context, drawing


class Remembered:
    """A policy or a danger model that answers a state which it has seen before from memory.

    Shielded rollouts of one seed are the same at every threshold until the shield fires: they need
    one picture for each state, not one for each threshold.
    """

    def __init__(self, model: Callable[[Any], Any], most: int = 200_000) -> None:
        self._model, self._most = model, most
        self._answers: dict[bytes, Any] = {}

    def __call__(self, observation: Any) -> Any:
        state = getattr(observation, "state", None)
        if state is None:  # a copy, whose picture is drawn already
            return self._model(observation)
        if state not in self._answers:
            if len(self._answers) == self._most:
                self._answers.clear()
            self._answers[state] = self._model(observation)
        return self._answers[state]


def camera_robot(policy: Any, danger: Any) -> Task:
    """The robot with its learned parts, which are told from others by their weights."""
    return Task(
        CameraRoom,
        policy,
        brake,
        danger,
        horizon=HORIZON,
        identity=f"a robot by camera, {digest(POLICY)}, {digest(DANGER) if danger else None}",
    )


def digest(path: Path) -> str:
    return "sha256:" + hashlib.sha256(path.read_bytes()).hexdigest()
