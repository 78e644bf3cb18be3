"""Policies, whatever they come as: functions of an observation, or objects that predict, as
stable-baselines3 has them.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from inspect import ismethod, signature
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
    several parts. A state that nobody can hand back is refused: the memory of the policy would
    begin anew at each step, or go on from one rollout to the next.
    """

    def __init__(self, policy: Any, role: str) -> None:
        self._predict = _predict_of(policy)
        if self._predict is None and not callable(policy):
            raise InvalidTypeError.of(
                role, policy, "a function of an observation, or a predict method"
            )
        self._policy, self._role = policy, role
        self._state: Any = None
        self._begun: NDArray[np.bool_] | None = None

    def act(self, observation: Any) -> Any:
        """The action, or actions, for what is observed."""
        if self._predict is None:
            return self._action_of(self._policy(observation))
        memory = {} if self._state is None else {"state": self._state}
        if memory and self._begun is not None:
            memory["episode_start"] = self._begun
        answer = self._predict(observation, **memory)
        self._begun = None
        if isinstance(answer, tuple) and len(answer) == 2:
            answer, self._state = answer
            if self._state is not None and not _takes_a_state(self._predict):
                raise self._unknown_state("its predict takes no state=")
        return answer

    def _action_of(self, answer: Any) -> Any:
        """The action in what a function gives, which cannot be handed a state."""
        if not (isinstance(answer, tuple) and len(answer) == 2):
            return answer
        if _is_a_state(answer[1]):
            raise self._unknown_state("it is a plain function")
        return answer[0] if answer[1] is None else answer

    def _unknown_state(self, why: str) -> InvalidTypeError:
        return InvalidTypeError(
            f"The {self._role} gives a state beside its action, as recurrent policies do, but "
            f"{why}, so nobody can hand the state back at the next step. Pass the model itself, or "
            "model.predict, or functools.partial(model.predict, deterministic=True). If the action "
            "has two parts, pass an object whose predict(observation) gives (action, None)."
        )

    def reset(self, mask: NDArray[np.bool_] | None = None) -> None:
        """Begin a new rollout, or new ones in the environments of `mask`."""
        begin_anew(self._policy, mask)
        if mask is None:
            self._state = self._begun = None
        else:
            self._begun = mask.copy() if self._begun is None else self._begun | mask


def begin_anew(thing: Any, mask: NDArray[np.bool_] | None = None) -> None:
    """Let a policy or danger model that has a method `reset` forget the last rollout; with `mask`,
    those of the environments that it is true for.
    """
    method: Any = thing.func if isinstance(thing, partial) else thing
    reset = getattr(method.__self__ if _is_predict(method) else thing, "reset", None)
    if callable(reset) and (mask is None or mask.any()):
        reset(*[] if mask is None else [mask])


def _is_a_state(beside: Any) -> bool:
    """Whether it looks like the state of a recurrent layer, which has numbers for each layer,
    environment and unit, and for an LSTM is a pair of such arrays.
    """
    parts = beside if isinstance(beside, tuple) else ()
    is_pair = len(parts) > 1 and all(getattr(each, "ndim", 0) >= 2 for each in parts)
    return is_pair or getattr(beside, "ndim", 0) >= 3


def _takes_a_state(predict: Callable[..., Any]) -> bool:
    try:
        parameters = signature(predict).parameters.values()
    except ValueError:  # written in C
        return True
    return any(each.name == "state" or each.kind is each.VAR_KEYWORD for each in parameters)


def _predict_of(policy: Any) -> Callable[..., Any] | None:
    """What a policy that predicts is asked by; None for a plain function."""
    own: Callable[..., Any] | None = getattr(policy, "predict", None)
    if callable(own):
        return own
    method = policy.func if isinstance(policy, partial) else policy
    asked: Callable[..., Any] | None = policy if _is_predict(method) else None
    return asked


def _is_predict(method: Any) -> bool:
    return ismethod(method) and method.__name__ == "predict"
