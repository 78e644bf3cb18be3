"""Shields around Gymnasium environments: the agent's action is replaced by the backup's once the
danger reaches the threshold.

The danger is that of the observation that the agent acts on, the last one it was given; a copy of
it is kept, so that an agent that changes it in place does not blind the shield. A terminal
observation belongs to the rollout that ends with it.

`RestorableMujoco` makes environments that run on MuJoCo fit for `collect_rollouts`.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from copy import deepcopy
from importlib import import_module
from typing import Any, SupportsFloat

import numpy as np

from pacbound.claims.certificate import Certificate
from pacbound.errors import InvalidTypeError, InvalidValueError, MissingDependencyError
from pacbound.shield.latch import Latch
from pacbound.shield.policy import Takeover, merged
from pacbound.shield.protocol import layers

try:
    import gymnasium
    from gymnasium.error import ResetNeeded
    from gymnasium.utils import RecordConstructorArgs
    from gymnasium.vector import AutoresetMode, VectorEnv, VectorWrapper
except ImportError:
    raise MissingDependencyError.for_extra("gymnasium", "shield", "ShieldWrapper") from None

_RESET_FIRST = "The shield has seen no observation yet: call reset() before step()."

# A function of the environment that answers yes or no.
Asked = Callable[[Any], Any]


class ShieldWrapper(gymnasium.Wrapper[Any, Any, Any, Any], RecordConstructorArgs):
    """An environment in which the backup takes over once the danger is at or above the threshold,
    until `reset`.

    The guarantee is that of `pacbound.Shield`. `info` of every step has `shield_fired` (the shield
    has fired in this rollout), `shield_override` (the agent's action was replaced in this step) and
    `shield_danger` (the last danger read; NaN if that failed). Whoever steps need not know of it: a
    stable-baselines3 model, a script, a person.

    Parameters
    ----------
    env : gymnasium.Env
        An environment that is reset by whoever steps it: put `Autoreset` around the shield, not
        inside it.
    backup : callable, or object with `predict`
        What acts on an observation once the shield has fired.
    danger : callable
        The danger of an observation in [0, 1], high where un-recoverable.
    certificate_or_threshold : certificate of a shield, its path, or number
        As in `pacbound.Shield`.
    deadline : float or None
        As in `pacbound.Shield`: the seconds that the danger model has; if it is late, or hangs, the
        backup acts.

    Raises
    ------
    InvalidTypeError, InvalidValueError, CertificateError
        As `pacbound.Shield` does; and `InvalidValueError` if `Autoreset` is inside.
    gymnasium.error.ResetNeeded
        If `step` is called before the first `reset`.

    Examples
    --------
    A cart that only pushes to the left, until the pole leans by a twentieth:

    >>> env = ShieldWrapper(
    ...     gymnasium.make("CartPole-v1"),
    ...     backup=lambda x: int(x[2] + x[3] > 0),
    ...     danger=lambda x: min(1.0, 10 * abs(x[2])),
    ...     certificate_or_threshold=0.5,
    ... )
    >>> _, _ = env.reset(seed=0)
    >>> infos = [env.step(0)[4] for _ in range(10)]
    >>> [info["shield_override"] for info in infos]
    [False, False, False, False, False, False, False, True, True, True]
    """

    def __init__(
        self,
        env: gymnasium.Env[Any, Any],
        backup: Any,
        danger: Callable[[Any], Any],
        certificate_or_threshold: Certificate | str | os.PathLike[str] | float,
        *,
        deadline: float | None = None,
    ) -> None:
        # Recorded as they are, not copied: a model may be large.
        RecordConstructorArgs.__init__(
            self,
            _disable_deepcopy=True,
            backup=backup,
            danger=danger,
            certificate_or_threshold=certificate_or_threshold,
            deadline=deadline,
        )
        gymnasium.Wrapper.__init__(self, env)
        if any(isinstance(layer, gymnasium.wrappers.Autoreset) for layer in layers(env)):
            raise InvalidValueError(
                "Autoreset is inside the shield, which would not see its resets. Put it around the "
                "shield."
            )
        self._takeover = Takeover(backup, danger, certificate_or_threshold, deadline=deadline)
        self._observation: Any = None
        self._begun = False

    @property
    def latch(self) -> Latch:
        """The latch, with `threshold`, `fired`, `failures` and `last_error`."""
        return self._takeover.latch

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Begin a new rollout: the agent acts again."""
        observation, info = self.env.reset(seed=seed, options=options)
        self._takeover.reset()
        self._observation, self._begun = deepcopy(observation), True
        return observation, info

    def step(self, action: Any) -> tuple[Any, SupportsFloat, bool, bool, dict[str, Any]]:
        """Take the agent's action, or, once the shield has fired, that of the backup."""
        if not self._begun:
            raise ResetNeeded(_RESET_FIRST)
        fired, taken = self._takeover.act(self._observation, lambda _: action)
        observation, reward, terminated, truncated, info = self.env.step(taken)
        self._observation = deepcopy(observation)
        told = {"shield_fired": fired, "shield_override": fired, "shield_danger": self.latch.score}
        return observation, reward, terminated, truncated, {**info, **told}


class VectorShieldWrapper(VectorWrapper[Any, Any, Any, Any, Any]):
    """Parallel environments with a shield for each: its latch is released when its own environment
    is reset.

    The guarantee is that of `pacbound.Shield`, for each rollout of each environment. `infos` has
    the arrays `shield_fired`, `shield_override` and `shield_danger`, about the step that was taken.
    All autoreset modes are followed. Where an environment is being reset in a step (`NEXT_STEP`),
    its action counts for nothing, and so does its danger: it is NaN.

    Parameters
    ----------
    env : gymnasium.vector.VectorEnv
        The environments.
    backup : callable, or object with `predict`
        What gives an action for each environment from the observations of all of them.
    danger : callable
        The danger of each environment, (n,) numbers in [0, 1].
    certificate_or_threshold : certificate of a shield, its path, or number
        As in `pacbound.Shield`.
    deadline : float or None
        As in `pacbound.Shield`; if the danger model is late, the backup acts in all environments.

    Raises
    ------
    InvalidTypeError, InvalidValueError, CertificateError
        As `pacbound.shield.VectorShield` does; and `InvalidValueError` if the environments do not
        say when they are reset.
    gymnasium.error.ResetNeeded
        If `step` is called before the first `reset`.

    Examples
    --------
    >>> envs = VectorShieldWrapper(
    ...     gymnasium.make_vec("CartPole-v1", num_envs=2, vectorization_mode="sync"),
    ...     backup=lambda x: (x[:, 2] + x[:, 3] > 0).astype(int),
    ...     danger=lambda x: np.minimum(1.0, 10 * abs(x[:, 2])),
    ...     certificate_or_threshold=0.5,
    ... )
    >>> _, _ = envs.reset(seed=0)
    >>> for _ in range(4):
    ...     *_, infos = envs.step(np.array([0, 1]))
    >>> infos["shield_override"]
    array([False,  True])
    """

    def __init__(
        self,
        env: VectorEnv[Any, Any, Any],
        backup: Any,
        danger: Callable[[Any], Any],
        certificate_or_threshold: Certificate | str | os.PathLike[str] | float,
        *,
        deadline: float | None = None,
    ) -> None:
        super().__init__(env)
        self._mode = _autoreset_mode(env)
        self._takeover = Takeover(
            backup, danger, certificate_or_threshold, env.num_envs, deadline=deadline
        )
        self._observations: Any = None
        self._begun = False
        self._resetting = np.zeros(env.num_envs, dtype=bool)

    @property
    def latch(self) -> Latch:
        """The latches, with `threshold`, `fired`, `failures` and `last_error`."""
        return self._takeover.latch

    def reset(
        self, *, seed: int | list[int | None] | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Begin a new rollout in every environment, or in those of `options["reset_mask"]`."""
        # Taken before the environments see the options: they take it out.
        mask = (options or {}).get("reset_mask")
        mask = None if mask is None else np.array(mask)
        observations, infos = self.env.reset(seed=seed, options=options)  # type: ignore[arg-type]
        self._takeover.reset(mask)
        self._resetting[slice(None) if mask is None else mask] = False
        self._observations, self._begun = deepcopy(observations), True
        return observations, infos

    def step(self, actions: Any) -> tuple[Any, Any, Any, Any, dict[str, Any]]:
        """Take the agent's actions, and the backup's where the shield has fired."""
        if not self._begun:
            raise ResetNeeded(_RESET_FIRST)
        live = ~self._resetting
        fired, taken = self._takeover.act(self._observations, lambda _: actions, live)
        if fired.all():
            # None of the agent's actions is taken; they show which shape the backup's must have.
            taken = merged(fired, taken, actions)
        observations, rewards, terminated, truncated, infos = self.env.step(taken)
        danger = np.where(live, self.latch.score, np.nan)
        told = {"shield_fired": fired, "shield_override": fired.copy(), "shield_danger": danger}
        self._follow(np.asarray(terminated) | np.asarray(truncated))
        self._observations = deepcopy(observations)
        # Gymnasium keeps beside each entry the mask of the environments that it is about.
        masks = {f"_{key}": np.ones(self.num_envs, dtype=bool) for key in told}
        return observations, rewards, terminated, truncated, {**infos, **told, **masks}

    def _follow(self, ended: Any) -> None:
        """Release the latches of the environments that have been reset in this step."""
        if self._mode is AutoresetMode.SAME_STEP:
            self._takeover.reset(ended)
        elif self._mode is AutoresetMode.NEXT_STEP:
            self._takeover.reset(self._resetting)
            self._resetting = ended


class RestorableMujoco(gymnasium.Wrapper[Any, Any, Any, Any]):
    """An environment of Gymnasium's that runs on MuJoCo, such as Hopper, as `collect_rollouts`
    needs it: all of the simulation can be saved and restored.

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

    Raises
    ------
    InvalidTypeError
        If the environment does not run on MuJoCo.

    Examples
    --------
    A ball that falls through the floor, and back:

    >>> import mujoco
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
        # An environment that runs on MuJoCo has loaded it.
        engine = sys.modules.get("mujoco")
        if engine is None or not isinstance(getattr(core, "data", None), engine.MjData):
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
        # mj_getState keeps what the next step depends on, but Gymnasium's environments also read
        # positions of bodies that follow from it, before they step.
        mujoco = import_module("mujoco")
        saved = mujoco.MjData(self._core.model)
        mujoco.mj_copyData(saved, self._core.model, self._core.data)
        return saved

    def restore_state(self, state: Any) -> None:
        """Go back to a copy that was saved."""
        import_module("mujoco").mj_copyData(self._core.data, self._core.model, state)

    def is_unsafe(self) -> bool:
        """Whether the environment is in an unsafe state."""
        return bool(self._is_unsafe(self.env))


def _autoreset_mode(env: VectorEnv[Any, Any, Any]) -> AutoresetMode:
    try:
        return AutoresetMode(env.metadata["autoreset_mode"])
    except (KeyError, ValueError):
        raise InvalidValueError(
            f"{env} does not say when it resets: expected metadata['autoreset_mode'] to be an "
            "AutoresetMode. Without it, a latch would be kept from one rollout to the next, or "
            "released within one."
        ) from None
