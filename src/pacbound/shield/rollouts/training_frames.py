"""Frames of rollouts to train a danger model on: what was observed, and whether it was too late."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pacbound.errors import InvalidValueError
from pacbound.shield.rollouts.checkpoint_folder import FRAMES, complete_parts, read_part
from pacbound.shield.rollouts.observations import WHOLE
from pacbound.shield.rollouts.rollout import Frame

_OBSERVATION = "observation/"


@dataclass(frozen=True)
class Frames:
    """Observations that the policy acted on, in the order of seeds and steps, each with its label.

    Train on rollouts of their own: those that certify a shield must be new to its danger model.

    Attributes
    ----------
    observations
        (n, …) array in the dtype of the environment; where observations are nested, a dictionary of
        such arrays by their path, such as "camera" or "arm/joints".
    unrecoverable
        (n,) whether it was too late: True from the first un-recoverable state on.
    seed, step
        (n,) the rollout and the place in it.

    Examples
    --------
    A car that drives at a wall, a metre a step, until it is too late:

    >>> import gymnasium
    >>> class Car(gymnasium.Env):
    ...     def reset(self, *, seed=None, options=None):
    ...         super().reset(seed=seed)
    ...         self.gap = 3
    ...         return np.array([self.gap]), {}
    ...     def step(self, action):
    ...         self.gap -= action
    ...         return np.array([self.gap]), 0.0, self.gap < 0, False, {}
    ...     def save_state(self):
    ...         return self.gap
    ...     def restore_state(self, state):
    ...         self.gap = state
    ...     def is_unsafe(self):
    ...         return self.gap < 0
    >>> from pacbound.shield import Task, collect_rollouts
    >>> task = Task(Car, policy=lambda gap: 1, backup=lambda gap: 0, horizon=9, backup_steps=1)
    >>> _ = collect_rollouts(task, seeds=[0], keep_frames=True, folder="frames")
    >>> frames = Frames.load("frames")
    >>> frames.observations.ravel().tolist(), frames.unrecoverable.tolist()
    ([3, 2, 1, 0], [False, False, False, True])
    """

    observations: Any
    unrecoverable: NDArray[np.bool_]
    seed: NDArray[np.int64]
    step: NDArray[np.int64]

    @classmethod
    def load(cls, folder: str | os.PathLike[str]) -> Frames:
        """All frames of a complete collection; `parts` is for those that do not fit into memory.

        Parameters
        ----------
        folder
            That of `collect_rollouts(..., keep_frames=True, folder=folder)`.

        Returns
        -------
        Frames
            In the order of seeds and steps.

        Raises
        ------
        InvalidValueError
            If the folder holds no frames, or the collection is not complete.
        """
        parts = list(cls.parts(folder))
        if not parts:
            raise InvalidValueError(
                f"{folder} holds no frames: collect the rollouts with keep_frames=True."
            )
        return cls(
            _joined([part.observations for part in parts]),
            np.concatenate([part.unrecoverable for part in parts]),
            np.concatenate([part.seed for part in parts]),
            np.concatenate([part.step for part in parts]),
        )

    @classmethod
    def parts(cls, folder: str | os.PathLike[str]) -> Iterator[Frames]:
        """The frames of a complete collection, some at a time.

        Parameters
        ----------
        folder
            As in `load`.

        Returns
        -------
        iterator of Frames
            Those of each part, read when it is asked for.

        Raises
        ------
        InvalidValueError
            If the collection is not complete.
        """
        read = (read_part(path, FRAMES) for path in complete_parts(folder, "rollouts"))
        return (cls._from_arrays(arrays) for arrays in read if arrays)

    @classmethod
    def _from_arrays(cls, arrays: Mapping[str, NDArray[Any]]) -> Frames:
        observed = {
            name.removeprefix(_OBSERVATION): array
            for name, array in arrays.items()
            if name.startswith(_OBSERVATION)
        }
        whole = observed[WHOLE] if list(observed) == [WHOLE] else observed
        return cls(whole, arrays["unrecoverable"], arrays["seed"], arrays["step"])

    def __len__(self) -> int:
        return len(self.unrecoverable)


def frame_arrays(frames: Sequence[Frame]) -> dict[str, NDArray[Any]]:
    """The frames as the arrays that a part keeps; none if there are none."""
    if not frames:
        return {}
    observed = {
        name: np.stack([frame.observation[name] for frame in frames])
        for name in frames[0].observation
    }
    return {
        **{f"{FRAMES}{_OBSERVATION}{name}": array for name, array in observed.items()},
        f"{FRAMES}unrecoverable": np.array([frame.unrecoverable for frame in frames]),
        f"{FRAMES}seed": np.array([frame.seed for frame in frames], dtype=np.int64),
        f"{FRAMES}step": np.array([frame.step for frame in frames], dtype=np.int64),
    }


def _joined(parts: list[Any]) -> Any:
    if isinstance(parts[0], dict):
        return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
    return np.concatenate(parts)
