"""Pictures through OpenGL: what the robot's camera sees, and the room from above."""

from __future__ import annotations

from typing import Any

import mujoco
import numpy as np
from numpy.typing import NDArray

from pacbound.errors import MissingDependencyError

_ADVICE = (
    "Pictures need OpenGL, which could not be started ({reason}). On a machine without a screen, "
    "set the environment variable MUJOCO_GL=egl (Debian and Ubuntu: apt-get install libegl1) or"
    ' MUJOCO_GL=osmesa (libosmesa6) before Python starts. observation="depth" needs no OpenGL.'
)


class Pictures:
    """Pictures of a given size from one camera of a model; `close` frees what OpenGL holds."""

    def __init__(self, model: mujoco.MjModel, camera: str, *, height: int, width: int) -> None:
        self._camera = camera
        try:
            self._renderer = mujoco.Renderer(model, height, width)
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


def close(pictures: Any) -> None:
    """Close `pictures` if there are any."""
    if pictures is not None:
        pictures.close()
