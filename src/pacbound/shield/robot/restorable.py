"""Environments of Gymnasium that run on MuJoCo, made restorable: all of the simulation is copied,
what follows from it included.

`mj_getState` and `mj_setState` keep what the next step depends on, but Gymnasium's environments
also read positions of bodies that follow from it, before they step. So the whole `MjData` is
copied.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pacbound.errors import InvalidTypeError, MissingDependencyError

try:
    import gymnasium
    import mujoco
except ImportError as error:
    raise MissingDependencyError.for_extra(str(error.name), "shield", "RestorableMujoco") from None

# A function of the environment that answers yes or no.
Asked = Callable[[Any], Any]


class RestorableMujoco(gymnasium.Wrapper[Any, Any, Any, Any]):
    """An environment of Gymnasium's that runs on MuJoCo, such as Hopper, as `collect_rollouts`
    needs it.

    It must keep what it remembers in its `MjData`, as those that ship with Gymnasium do.

    Parameters
    ----------
    env
        The environment, made with `max_episode_steps=-1`.
    is_unsafe
        Whether the environment it is given is in an unsafe state. It is asked after every step and
        after `reset`.
    is_stopped
        Whether it stands still. Without it, a backup is simulated for all of its steps.
    surely_recoverable
        Whether the backup is certainly safe from here. Without it, every backup is simulated.

    Examples
    --------
    A ball that falls through the floor, and back:

    >>> class Ball(gymnasium.Env):
    ...     def __init__(self):
    ...         ball = "<body pos='0 0 1'><freejoint/><geom size='0.1'/></body>"
    ...         scene = f"<mujoco><worldbody>{ball}</worldbody></mujoco>"
    ...         self.model = mujoco.MjModel.from_xml_string(scene)
    ...         self.data = mujoco.MjData(self.model)
    >>> env = RestorableMujoco(Ball(), is_unsafe=lambda env: env.unwrapped.data.qpos[2] < 0)
    >>> above = env.save_state()
    >>> mujoco.mj_step(env.unwrapped.model, env.unwrapped.data, nstep=500)
    >>> env.is_unsafe()
    True
    >>> env.restore_state(above)
    >>> env.is_unsafe()
    False
    """

    def __init__(
        self,
        env: gymnasium.Env[Any, Any],
        is_unsafe: Asked,
        *,
        is_stopped: Asked | None = None,
        surely_recoverable: Asked | None = None,
    ) -> None:
        super().__init__(env)
        core: Any = env.unwrapped
        if not isinstance(getattr(core, "data", None), mujoco.MjData):
            raise InvalidTypeError(
                f"{env} has no MjData: expected an environment that runs on MuJoCo."
            )
        self._core = core
        self._is_unsafe = is_unsafe
        # Present only where there is an answer: what is missing is not asked.
        if is_stopped is not None:
            self.is_stopped = lambda: bool(is_stopped(self.env))
        if surely_recoverable is not None:
            self.surely_recoverable = lambda: bool(surely_recoverable(self.env))

    def save_state(self) -> Any:
        """A copy of the whole simulation."""
        saved = mujoco.MjData(self._core.model)
        mujoco.mj_copyData(saved, self._core.model, self._core.data)
        return saved

    def restore_state(self, state: Any) -> None:
        """Go back to a copy that was saved."""
        mujoco.mj_copyData(self._core.data, self._core.model, state)

    def is_unsafe(self) -> bool:
        """Whether the environment is in an unsafe state."""
        return bool(self._is_unsafe(self.env))
