"""What the robot sees, and pictures of it.

The depth image is a fan of rays, cast by MuJoCo without OpenGL.
Sixty-four columns from left to right and sixteen rows from top to bottom, at equal angles. A pixel
is the distance along its ray to the floor, a wall or a piece of furniture, as a share of the range;
1 is at the range or beyond. The robot does not see itself. Pictures need OpenGL: what the robot's
camera sees, and the room from above.
"""

from __future__ import annotations

import math

import mujoco
import numpy as np
from numpy.typing import NDArray

from experiments.robot.physics import CAMERA_FORWARD, CAMERA_HEIGHT, FLOOR_GROUP, WHEEL_RADIUS
from pacbound.errors import MissingDependencyError

ROWS, COLUMNS = 16, 64
RANGE = 5.0
WIDTH_ANGLE = math.radians(120)
UP_ANGLE, DOWN_ANGLE = math.radians(25), math.radians(-35)

_SEEN = np.array([group == FLOOR_GROUP for group in range(6)], dtype=np.uint8)
_EYE = np.array([CAMERA_FORWARD, 0.0, CAMERA_HEIGHT - WHEEL_RADIUS])


_ADVICE = (
    "Pictures need OpenGL, which could not be started ({reason}). On a machine without a screen, "
    "set the environment variable MUJOCO_GL=egl (Debian and Ubuntu: apt-get install libegl1) or"
    ' MUJOCO_GL=osmesa (libosmesa6) before Python starts. observation="depth" needs no OpenGL.'
)


def _fan() -> NDArray[np.float64]:
    """Unit vectors (rows, columns, 3) in the robot's frame: x forward, y left, z up."""
    # Angles of pixel centres, so that the image is its own mirror image.
    across = ((np.arange(COLUMNS) + 0.5) / COLUMNS - 0.5) * -WIDTH_ANGLE
    up = UP_ANGLE + (np.arange(ROWS) + 0.5) / ROWS * (DOWN_ANGLE - UP_ANGLE)
    up, across = np.meshgrid(up, across, indexing="ij")
    return np.stack([np.cos(up) * np.cos(across), np.cos(up) * np.sin(across), np.sin(up)], axis=-1)


FAN = _fan()


class DepthCamera:
    """The rays of one robot in one model; the arrays that they are cast with are kept between
    images.
    """

    def __init__(self, model: mujoco.MjModel) -> None:
        self._model = model
        self._rays = FAN.reshape(-1, 3)
        self._distance = np.empty(ROWS * COLUMNS)
        self._hit = np.empty(ROWS * COLUMNS, dtype=np.int32)
        self._turn = np.empty(9)

    def image(self, data: mujoco.MjData) -> NDArray[np.float32]:
        """The (16, 64) image from where the robot is now."""
        # From qpos, since what MuJoCo derives from it lags behind by a step of the physics.
        mujoco.mju_quat2Mat(self._turn, data.qpos[3:7])
        turn = self._turn.reshape(3, 3)
        rays = (self._rays @ turn.T).ravel()
        eye = data.qpos[:3] + turn @ _EYE
        mujoco.mj_multiRay(
            self._model,
            data,
            eye,
            rays,
            geomgroup=_SEEN,
            flg_static=True,
            bodyexclude=-1,
            geomid=self._hit,
            dist=self._distance,
            normal=None,
            nray=ROWS * COLUMNS,
            cutoff=RANGE,
        )
        share = self._distance / RANGE
        share[self._hit < 0] = 1.0
        return np.minimum(share, 1.0).astype(np.float32).reshape(ROWS, COLUMNS)


class Pictures:
    """Pictures of a given height and width from one camera of a model; `close` frees what OpenGL
    holds.
    """

    def __init__(self, model: mujoco.MjModel, camera: str, size: tuple[int, int]) -> None:
        self._camera = camera
        try:
            self._renderer = mujoco.Renderer(model, *size)
        except Exception as error:  # every platform and driver fails in its own way
            reason = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
            raise MissingDependencyError(_ADVICE.format(reason=reason)) from error

    def picture(self, data: mujoco.MjData) -> NDArray[np.uint8]:
        """The picture (height, width, 3) of the current state."""
        self._renderer.update_scene(data, camera=self._camera)
        pixels: NDArray[np.uint8] = self._renderer.render()
        return pixels

    def close(self) -> None:
        """Free what OpenGL holds."""
        self._renderer.close()
