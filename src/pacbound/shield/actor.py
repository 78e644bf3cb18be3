"""Policies, whatever they come as: functions of an observation, or objects that predict, as
stable-baselines3 has them.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from inspect import ismethod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pacbound.errors import InvalidTypeError


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
            raise InvalidTypeError.of(
                role, policy, "a function of an observation, or a predict method"
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
