"""Indoor navigation as a Gymnasium environment: drive to the goal, touch nothing but the floor."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal

import gymnasium
import mujoco
import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from experiments.robot.cameras import COLUMNS, ROWS, DepthCamera, Pictures
from experiments.robot.physics import (
    MAX_SPEED,
    MAX_TURN,
    TIMESTEP,
    TRACK,
    WHEEL_RADIUS,
    compile_model,
    surely_brakes,
)
from experiments.robot.rooms import Room, random_room
from pacbound.errors import InvalidTypeError, InvalidValueError

STEP_SECONDS = 0.1
SUBSTEPS = round(STEP_SECONDS / TIMESTEP)
GOAL_RADIUS = 0.4
FARTHEST = 12.0  # metres, that goal distances are shares of: more than the diagonal of any room
RGB_SHAPE = (64, 96, 3)
PICTURE_SIZE = (480, 640)
STANDSTILL_SPEED, STANDSTILL_TURN = 0.005, 0.01
_NO_ROOM = "The robot is in no room yet: call reset() first."

Observation = dict[str, NDArray[Any]]
_INTEGRATION = mujoco.mjtState.mjSTATE_INTEGRATION


@dataclass(frozen=True)
class SavedState:
    """All that the next step depends on besides the action: the room, the physics, and whether the
    last step was unsafe.
    """

    room: Room
    physics: NDArray[np.float64]
    unsafe: bool


class IndoorNavigation(gymnasium.Env[Observation, NDArray[Any]]):
    """A wheeled robot with momentum in a furnished room, a new one at every `reset`.

    The **action** is (forward speed, turning rate) as shares of 1.2 m/s in [0, 1] and of 1.8 rad/s,
    to the left, in [-1, 1]. The motors' force is limited, so braking from full speed takes three
    quarters of a metre: there are states from which no braking helps. The **observation** is a
    dictionary: "depth", a (16, 64) image of shares of five metres (or "rgb", a camera image),
    "goal", its distance as a share of twelve metres and the cosine and sine of its direction, and
    "speed", forward speed and turning rate in the action's units. A rollout **terminates** when the
    robot touches anything but the floor, which is unsafe, or is within 0.4 m of the goal. The
    **reward** is how many metres nearer the goal came, and 1 for reaching it.

    `info` of every step has "pose" (x, y, heading), "success" and "unsafe", and that of `reset` has
    also "room". The same seed gives the same rollout to the bit, whatever ran before. One step is a
    tenth of a second.

    Parameters
    ----------
    observation : "depth" or "rgb"
        "depth" is cast by rays and needs no OpenGL; "rgb" needs it.
    render_mode : "rgb_array" or None
        "rgb_array": `render` gives a picture of the room from above, which needs OpenGL.

    Examples
    --------
    Full speed ahead ends at a wall:

    >>> env = IndoorNavigation()
    >>> observation, info = env.reset(seed=0)
    >>> terminated = False
    >>> straight_on = np.array([1, 0], dtype=np.float32)
    >>> while not terminated:
    ...     observation, reward, terminated, truncated, info = env.step(straight_on)
    >>> info["unsafe"], info["success"]
    (True, False)
    """

    metadata: dict[str, Any] = {  # noqa: RUF012
        "render_modes": ["rgb_array"],
        "render_fps": round(1 / STEP_SECONDS),
    }

    def __init__(
        self, observation: Literal["depth", "rgb"] = "depth", render_mode: str | None = None
    ) -> None:
        if observation not in ("depth", "rgb"):
            raise InvalidValueError(f"observation={observation!r}: expected 'depth' or 'rgb'.")
        if render_mode not in (None, "rgb_array"):
            raise InvalidValueError(f"render_mode={render_mode!r}: expected None or 'rgb_array'.")
        self.render_mode = render_mode
        self._sees = observation
        image = (
            spaces.Box(0, 1, (ROWS, COLUMNS), np.float32)
            if observation == "depth"
            else spaces.Box(0, 255, RGB_SHAPE, np.uint8)
        )
        self.observation_space = spaces.Dict(  # type: ignore[assignment]
            {
                observation: image,
                "goal": spaces.Box(-1, 1, (3,), np.float32),
                "speed": spaces.Box(-2, 2, (2,), np.float32),
            }
        )
        self.action_space = spaces.Box(
            np.array([0, -1], dtype=np.float32), np.array([1, 1], dtype=np.float32)
        )
        self._room: Room | None = None
        self._eye: Pictures | None = None
        self._above: Pictures | None = None

    @property
    def room(self) -> Room:
        """The room that the robot is in."""
        if self._room is None:
            raise InvalidValueError(_NO_ROOM)
        return self._room

    @property
    def pose(self) -> tuple[float, float, float]:
        """The place (x, y) of the robot's centre and its heading in radians."""
        if self._room is None:
            raise InvalidValueError(_NO_ROOM)
        x, y, _, w, i, j, k = self._data.qpos[:7].tolist()
        return x, y, math.atan2(2 * (w * k + i * j), 1 - 2 * (j * j + k * k))

    @property
    def speed(self) -> tuple[float, float]:
        """Forward speed in m/s and turning rate, to the left, in rad/s."""
        heading = self.pose[2]
        x, y, *_, turn = self._data.qvel[:6].tolist()
        return x * math.cos(heading) + y * math.sin(heading), turn

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observation, dict[str, Any]]:
        """Put the robot at rest into a new room.

        Parameters
        ----------
        seed
            What the room is drawn from; None goes on with the generator of before.
        options
            {"room": a `Room`} for this room instead of a new one.

        Returns
        -------
        observation, info
            What the robot sees; and the room and what is known about the robot in it.

        Raises
        ------
        InvalidTypeError
            If options["room"] is not a `Room`.
        """
        super().reset(seed=seed)
        room = (options or {}).get("room")
        if room is None:
            room = random_room(self.np_random)
        if not isinstance(room, Room):
            raise InvalidTypeError(f"options['room'] is a {type(room).__name__}: expected a Room.")
        self._enter(room)
        x, y, heading = room.start
        turn = (math.cos(heading / 2), 0, 0, math.sin(heading / 2))
        self._data.qpos[:7] = (x, y, WHEEL_RADIUS, *turn)
        mujoco.mj_forward(self._model, self._data)
        self._unsafe = self._touches()
        return self._observation(), {**self._info(), "room": room}

    def step(self, action: NDArray[Any]) -> tuple[Observation, float, bool, bool, dict[str, Any]]:
        """Drive for a tenth of a second.

        Parameters
        ----------
        action
            Forward speed in [0, 1] and turning rate in [-1, 1], as shares of the highest; more is
            cut off.

        Returns
        -------
        observation, reward, terminated, truncated, info
            As in Gymnasium. The reward is the way gained towards the goal, and 1 more at the goal.
            The rollout is over at the goal or once the robot has touched something.

        Raises
        ------
        InvalidValueError
            If the action is not two finite numbers.
        """
        before = self._goal_distance()
        self._data.ctrl[:] = _wheel_speeds(action)
        self._unsafe = False
        for _ in range(SUBSTEPS):
            mujoco.mj_step(self._model, self._data)
            self._unsafe |= self._touches()
        info = self._info()
        reward = before - self._goal_distance() + info["success"]
        return self._observation(), reward, info["unsafe"] or info["success"], False, info

    def render(self) -> NDArray[np.uint8] | None:
        """A picture (480, 640, 3) of the room from above; None without a render mode."""
        if self.render_mode is None:
            return None
        if self._above is None:
            self._above = Pictures(self._model, "above", PICTURE_SIZE)
        self._settle()
        return self._above.picture(self._data)

    def close(self) -> None:
        """Free what OpenGL holds."""
        for pictures in (self._eye, self._above):
            if pictures is not None:
                pictures.close()
        self._eye = self._above = None

    def save_state(self) -> SavedState:
        """All that the next step depends on besides the action: `restore_state` goes on from here,
        the same to the bit.
        """
        room = self.room
        physics = np.empty(mujoco.mj_stateSize(self._model, _INTEGRATION))
        mujoco.mj_getState(self._model, self._data, physics, _INTEGRATION)
        return SavedState(room, physics, self._unsafe)

    def restore_state(self, state: SavedState) -> None:
        """Go back to a saved state, of this environment or of another."""
        if state.room is not self._room:
            self._enter(state.room)
            mujoco.mj_forward(self._model, self._data)
        mujoco.mj_setState(self._model, self._data, state.physics, _INTEGRATION)
        self._unsafe = state.unsafe

    def is_unsafe(self) -> bool:
        """Whether the robot touched anything but the floor at any time in the last step."""
        return self._unsafe

    def is_stopped(self) -> bool:
        """Whether the robot stands still, so that `brake` goes no further."""
        forward, turn = self.speed
        return abs(forward) < STANDSTILL_SPEED and abs(turn) < STANDSTILL_TURN

    def surely_recoverable(self) -> bool:
        """Whether braking from here is certain to touch nothing, so that it need not be simulated.

        True is a promise about `brake`, and no other backup; False says only that it takes a
        simulation to know.
        """
        return not self._unsafe and surely_brakes(self.room, self.pose, *self.speed)

    def _enter(self, room: Room) -> None:
        self.close()
        self._room = room
        self._model = compile_model(room)
        self._data = mujoco.MjData(self._model)
        self._depth = DepthCamera(self._model)

    def _touches(self) -> bool:
        # The floor is a plane, the lowest of all types, and so is always first of the two.
        return bool(self._data.contact.geom1.any())

    def _settle(self) -> None:
        """Bring what MuJoCo derives from positions up to date, without touching what the next step
        depends on.
        """
        mujoco.mj_kinematics(self._model, self._data)
        mujoco.mj_camlight(self._model, self._data)

    def _goal_distance(self) -> float:
        goal = self.room.goal
        x, y = self._data.qpos[:2].tolist()
        return math.hypot(goal[0] - x, goal[1] - y)

    def _info(self) -> dict[str, Any]:
        success = not self._unsafe and self._goal_distance() <= GOAL_RADIUS
        return {"pose": self.pose, "success": success, "unsafe": self._unsafe}

    def _observation(self) -> Observation:
        x, y, heading = self.pose
        direction = math.atan2(self.room.goal[1] - y, self.room.goal[0] - x) - heading
        goal = (self._goal_distance() / FARTHEST, math.cos(direction), math.sin(direction))
        forward, turn = self.speed
        speed = np.clip((forward / MAX_SPEED, turn / MAX_TURN), -2, 2)
        return {
            self._sees: self._image(),
            "goal": np.clip(goal, -1, 1).astype(np.float32),
            "speed": speed.astype(np.float32),
        }

    def _image(self) -> NDArray[Any]:
        if self._sees == "depth":
            return self._depth.image(self._data)
        if self._eye is None:
            self._eye = Pictures(self._model, "eye", RGB_SHAPE[:2])
        self._settle()
        return self._eye.picture(self._data)


def brake(observation: Any = None) -> NDArray[np.float32]:  # noqa: ARG001, RUF100
    """The backup policy: stop, whatever is observed.

    Parameters
    ----------
    observation
        Not looked at; it is there because a policy takes one.

    Returns
    -------
    ndarray of shape (2,)
        The action of standing still: no forward speed, no turning.

    Examples
    --------
    >>> brake().tolist()
    [0.0, 0.0]
    """
    return np.zeros(2, dtype=np.float32)


def _wheel_speeds(action: Any) -> tuple[float, float]:
    """The speeds, in rad/s, that the left and the right servo are asked for."""
    values = np.asarray(action, dtype=np.float64)
    if values.shape != (2,) or not np.isfinite(values).all():
        raise InvalidValueError(
            f"action={action!r}: expected two finite numbers, forward speed and turning rate."
        )
    forward = min(max(float(values[0]), 0.0), 1.0) * MAX_SPEED
    sideways = min(max(float(values[1]), -1.0), 1.0) * MAX_TURN * TRACK / 2
    return (forward - sideways) / WHEEL_RADIUS, (forward + sideways) / WHEEL_RADIUS
