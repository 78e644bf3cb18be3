"""Who acts: policies, whatever they come as (functions of an observation, or objects that predict,
as stable-baselines3 has them), and the backup, once its latch has fired.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from inspect import ismethod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pacbound.errors import InvalidTypeError, InvalidValueError
from pacbound.shield.latch import Flags, Latch


class Actor:
    """A policy that can be asked for an action.

    What has `predict` is asked by it, and of the pair (action, state) that it may give, the state
    is handed back at the next step of the rollout, so that recurrent policies keep theirs. The
    method itself, `model.predict`, is asked in the same way, also in a `functools.partial`. Any
    other function is called. If it gives a pair whose second part is None, as
    `lambda x: model.predict(x)` does, the first is the action; any other tuple is an action of
    several parts, so a recurrent model is passed itself.
    """

    def __init__(self, policy: Any, role: str) -> None:
        self._predict = _predict_of(policy)
        if self._predict is None and not callable(policy):
            raise InvalidTypeError(
                f"{role} is a {type(policy).__name__}: expected a function of an observation, or a "
                "predict method."
            )
        self._policy = policy
        self._state: Any = None
        self._begun: NDArray[np.bool_] | None = None

    def act(self, observation: Any) -> Any:
        """The action, or actions, for what is observed."""
        if self._predict is None:
            answer = self._policy(observation)
            is_stateless = isinstance(answer, tuple) and len(answer) == 2 and answer[1] is None
            return answer[0] if is_stateless else answer
        memory = {} if self._state is None else {"state": self._state}
        if memory and self._begun is not None:
            memory["episode_start"] = self._begun
        answer = self._predict(observation, **memory)
        self._begun = None
        if isinstance(answer, tuple) and len(answer) == 2:
            answer, self._state = answer
        return answer

    def reset(self, mask: NDArray[np.bool_] | None = None) -> None:
        """Begin a new rollout, or new ones in the environments of `mask`."""
        if mask is None:
            self._state = self._begun = None
        else:
            self._begun = mask.copy() if self._begun is None else self._begun | mask


def _predict_of(policy: Any) -> Callable[..., Any] | None:
    """What a policy that predicts is asked by; None for a plain function."""
    own: Callable[..., Any] | None = getattr(policy, "predict", None)
    if callable(own):
        return own
    method = policy.func if isinstance(policy, partial) else policy
    is_predict = ismethod(method) and method.__name__ == "predict"
    asked: Callable[..., Any] | None = policy if is_predict else None
    return asked


class Takeover:
    """A backup and the latch that hands over to it, for one rollout or for parallel environments,
    as in `Latch`.
    """

    def __init__(
        self, backup: Any, danger: Any, certificate_or_threshold: Any, num_envs: int | None = None
    ) -> None:
        self._alone = num_envs is None
        self._backup = Actor(backup, "backup")
        self.latch = Latch(danger, certificate_or_threshold, num_envs)

    def reset(self, mask: Any = None) -> None:
        """Begin a new rollout, or new ones in the environments of `mask`."""
        self.latch.reset(mask)
        self._backup.reset(None if mask is None else np.asarray(mask))

    def act(
        self, observation: Any, policy: Callable[[Any], Any], live: Flags | None = None
    ) -> tuple[Any, Any]:
        """Whether the backup must act, and the action: the backup's where it must, and else the
        policy's, which is asked only where it counts.
        """
        if self._alone:
            fired = self.latch.look(observation)
            return fired, self._backup.act(observation) if fired else policy(observation)
        before = self.latch.fired
        fired = self.latch.look(observation, live)
        # A backup with memory begins where it takes over, as it did where it was tried out.
        self._backup.reset(fired & ~before)
        if fired.all():
            return fired, self._backup.act(observation)
        if not fired.any():
            return fired, policy(observation)
        return fired, _merged(fired, self._backup.act(observation), policy(observation))


def _merged(fired: NDArray[np.bool_], backup: Any, policy: Any) -> Any:
    """The backup's actions where the shield has fired and the policy's elsewhere; composite actions
    part by part.
    """
    if isinstance(policy, dict) and isinstance(backup, dict) and policy.keys() == backup.keys():
        return {key: _merged(fired, backup[key], policy[key]) for key in policy}
    if isinstance(policy, tuple) and isinstance(backup, tuple) and len(policy) == len(backup):
        return tuple(_merged(fired, one, other) for one, other in zip(backup, policy, strict=True))
    one, other = np.asarray(backup), np.asarray(policy)
    if one.shape != other.shape or one.shape[:1] != fired.shape:
        raise InvalidValueError(
            f"The backup gives actions of shape {one.shape} and the policy of shape {other.shape}: "
            f"expected one shape, with {len(fired)} environments first."
        )
    return np.where(fired.reshape(-1, *[1] * (one.ndim - 1)), one, other)
