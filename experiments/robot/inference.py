"""The learned parts at work: two small convolutional networks in plain NumPy, one observation at a
time.

No torch: a worker process starts in no time, and a robot needs none. The weights are .npz files of
float32 arrays, which are read without running any code. `experiments/shield/networks.py` has the
same networks with gradients, and trains them.
"""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from experiments.robot.cameras import COLUMNS, ROWS
from pacbound.errors import InvalidValueError

Array = NDArray[np.float32]
Shapes = Mapping[str, tuple[int, ...]]

WEIGHTS = Path(__file__).parent / "weights"
NUMBERS = 5  # three of the goal and two of the speed
CHANNELS = (8, 16, 32)
NEAR = np.float32(0.2)
# Where each column looks, from 1 at the left to -1 at the right.
BEARING = (1 - (2 * np.arange(COLUMNS, dtype=np.float32) + 1) / COLUMNS).astype(np.float32)


def _with_biases(weights: Shapes) -> Shapes:
    biases = {f"{layer}.bias": shape[:1] for layer, shape in weights.items()}
    return {**{f"{layer}.weight": shape for layer, shape in weights.items()}, **biases}


POLICY_SHAPES: Shapes = _with_biases(
    {
        "convolutions.0": (CHANNELS[0], 1, 3, 3),
        "convolutions.1": (CHANNELS[1], CHANNELS[0], 3, 3),
        "convolutions.2": (CHANNELS[2], CHANNELS[1], 3, 3),
        "hidden": (64, CHANNELS[2] * (ROWS // 8) * (COLUMNS // 8) + NUMBERS),
        "output": (2, 64),
    }
)
DANGER_SHAPES: Shapes = _with_biases(
    {
        "column": (16, ROWS),
        "motion": (32, 16 + 6),
        "danger": (32, 32),
        "hidden": (32, 32 + NUMBERS),
        "output": (1, 32),
    }
)


class ImagePolicy:
    """The policy network: an observation in, forward speed and turning rate out.

    Three convolutions of stride 2 over the depth image, then two dense layers that also get goal
    and speed. It imitates an expert that knows the room, from what the robot sees, and is unsafe in
    about half of all rooms: it is there to be shielded.

    Parameters
    ----------
    weights
        Float32 arrays by the names of the layers; `load` reads those that stand beside this file.
        Others than the network needs raise `InvalidValueError`.

    Examples
    --------
    >>> from experiments.robot import IndoorNavigation
    >>> env, policy = IndoorNavigation(), ImagePolicy.load()
    >>> observation, _ = env.reset(seed=0)
    >>> env.action_space.contains(policy(observation))
    True
    """

    def __init__(self, weights: Mapping[str, Any]) -> None:
        self._weights = _checked(weights, POLICY_SHAPES, "policy")

    @classmethod
    def load(cls, path: str | os.PathLike[str] | None = None) -> ImagePolicy:
        """Read the network from a file of weights.

        Parameters
        ----------
        path
            The .npz file; None is the one beside this module.

        Returns
        -------
        ImagePolicy
            The network.

        Raises
        ------
        InvalidValueError
            If the file does not hold the weights of such a network.
        """
        return cls(read_weights(WEIGHTS / "policy.npz" if path is None else path))

    def __call__(self, observation: Mapping[str, Any]) -> Array:
        """The action for an observation."""
        forward, turn = self.outputs(observation).tolist()
        return np.array([min(max(forward, 0.0), 1.0), min(max(turn, -1.0), 1.0)], dtype=np.float32)

    def outputs(self, observation: Mapping[str, Any]) -> Array:
        """What the network gives, before it is clipped to what can be asked of the motors."""
        features: Array = nearness(np.asarray(observation["depth"], dtype=np.float32))[None]
        for place, channels in enumerate(CHANNELS):
            rows, columns = features.shape[1] // 2, features.shape[2] // 2
            kernel = self._weights[f"convolutions.{place}.weight"].reshape(channels, -1)
            bias = self._weights[f"convolutions.{place}.bias"][:, None]
            features = np.maximum(kernel @ _patches(features) + bias, 0)
            features = features.reshape(channels, rows, columns)
        return _dense(self._weights, features.ravel(), _numbers(observation))


class DangerModel:
    """The recoverability network: an observation in, the danger in [0, 1] out, high where braking
    would come too late.

    The same few kernels look at each column of the depth image, and learn what there is in its
    direction, and whether it is in the way of a robot that moves as this one does; the column that
    is worst counts. The danger is a score, not a probability: what it is worth is what
    `pacbound.certify_shield` finds on rollouts.

    Parameters
    ----------
    weights
        Float32 arrays by the names of the layers; `load` reads those that stand beside this file.
        Others than the network needs raise `InvalidValueError`.

    Examples
    --------
    >>> from experiments.robot import IndoorNavigation
    >>> env, danger = IndoorNavigation(), DangerModel.load()
    >>> observation, _ = env.reset(seed=0)
    >>> danger(observation) < 0.5
    True
    """

    def __init__(self, weights: Mapping[str, Any]) -> None:
        self._weights = _checked(weights, DANGER_SHAPES, "danger model")

    @classmethod
    def load(cls, path: str | os.PathLike[str] | None = None) -> DangerModel:
        """Read the network from a file of weights.

        Parameters
        ----------
        path
            The .npz file; None is the one beside this module.

        Returns
        -------
        DangerModel
            The network.

        Raises
        ------
        InvalidValueError
            If the file does not hold the weights of such a network.
        """
        return cls(read_weights(WEIGHTS / "danger.npz" if path is None else path))

    def __call__(self, observation: Mapping[str, Any]) -> float:
        """The danger of an observation."""
        return float(1 / (1 + np.exp(-np.float64(self.outputs(observation)[0]))))

    def outputs(self, observation: Mapping[str, Any]) -> Array:
        """What the network gives: the logarithm of the odds."""
        seen = nearness(np.asarray(observation["depth"], dtype=np.float32))
        numbers = _numbers(observation)
        columns = _layer(self._weights, "column", seen)
        columns = np.concatenate([columns, _motion(*numbers[3:].tolist())])
        for name in ("motion", "danger"):
            columns = _layer(self._weights, name, columns)
        return _dense(self._weights, columns.max(axis=1), numbers)


def nearness(depth: Any) -> Any:
    """What the networks see of a depth image (array or tensor): 1 at the camera and half at a
    metre, so that nearness counts.
    """
    return NEAR / (NEAR + depth)


def read_weights(path: str | os.PathLike[str]) -> dict[str, Array]:
    """The arrays of a weights file."""
    try:
        with Path(path).open("rb") as file, np.load(file, allow_pickle=False) as archive:
            return {name: archive[name] for name in archive.files}
    except FileNotFoundError:
        raise
    except Exception as error:  # a file that is not .npz fails in many ways
        raise InvalidValueError(f"{path} is not a weights file: {error}") from error


def _motion(forward: float, turn: float) -> Array:
    """What a column must know besides what it sees: where it looks, and how the robot moves."""
    same = np.ones(COLUMNS, dtype=np.float32)
    return np.stack(
        [BEARING, BEARING**2, forward * same, turn * same, forward**2 * same, turn * BEARING]
    ).astype(np.float32)


def _numbers(observation: Mapping[str, Any]) -> Array:
    return np.concatenate([observation["goal"], observation["speed"]], dtype=np.float32)


def _layer(weights: Mapping[str, Array], name: str, columns: Array) -> Array:
    sums = weights[f"{name}.weight"] @ columns + weights[f"{name}.bias"][:, None]
    found: Array = np.maximum(sums, 0)
    return found


def _dense(weights: Mapping[str, Array], features: Array, numbers: Array) -> Array:
    """The two layers that both networks end in."""
    known = np.concatenate([features, numbers])
    hidden = np.maximum(weights["hidden.weight"] @ known + weights["hidden.bias"], 0)
    output: Array = weights["output.weight"] @ hidden + weights["output.bias"]
    return output


def _patches(image: Array) -> Array:
    """What a 3 x 3 kernel of stride 2 covers at each of its places: (channels * 9, places)."""
    channels, rows, columns = image.shape
    padded = np.zeros((channels, rows + 2, columns + 2), dtype=np.float32)
    padded[:, 1:-1, 1:-1] = image
    return padded.ravel()[_covered(channels, rows, columns)]


@cache
def _covered(channels: int, rows: int, columns: int) -> NDArray[np.intp]:
    """Where in an image with a rim of one pixel the patches are found."""
    shape = channels, rows + 2, columns + 2
    places = np.arange(math.prod(shape)).reshape(shape)
    windows = sliding_window_view(places, (3, 3), axis=(1, 2))[:, ::2, ::2]
    return windows.transpose(0, 3, 4, 1, 2).reshape(channels * 9, -1)


def _checked(weights: Mapping[str, Any], expected: Shapes, whose: str) -> dict[str, Array]:
    arrays = {name: np.asarray(values, dtype=np.float32) for name, values in weights.items()}
    found = {name: array.shape for name, array in arrays.items()}
    wrong = sorted(
        name for name in found.keys() | expected.keys() if found.get(name) != expected.get(name)
    )
    if wrong:
        verb = "is" if len(wrong) == 1 else "are"
        raise InvalidValueError(
            f"These are not the weights of a {whose}: {', '.join(wrong)} {verb} missing, or not as "
            "expected."
        )
    if not all(np.isfinite(array).all() for array in arrays.values()):
        raise InvalidValueError(f"These are not the weights of a {whose}: expected finite numbers.")
    return arrays
