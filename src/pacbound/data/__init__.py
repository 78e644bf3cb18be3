"""The small real tables behind the demo and the examples, shipped inside the package.

The predictions are those of trained models on images they were not trained on, the rollouts those
of a trained policy in rooms it was not trained in. Nothing here computes a guarantee; README.md
beside this file says where each table comes from, under which licence, and how it is rebuilt.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib.resources import files
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "FashionMnistPredictions",
    "IndoorNavigationRollouts",
    "fashion_mnist",
    "indoor_navigation",
]


@dataclass(frozen=True, eq=False)
class FashionMnistPredictions:
    """What a small network with one early exit says about 20,000 held-out Fashion-MNIST images.

    There is one row per image.

    Attributes
    ----------
    confidence_fast, confidence_slow
        Softmax probability of the predicted class, float32, at the early exit and at the end of the
        network; not calibrated.
    prediction_fast, prediction_slow
        Predicted class at the early exit and at the end, 0 to 9.
    label
        True class, 0 to 9.
    split
        0 for the 10,000 images from the end of the training file, which were kept out of training;
        1 for the test file.

    Examples
    --------
    >>> table = fashion_mnist()
    >>> len(table.label), int((table.split == 1).sum()), table.confidence_fast.dtype
    (20000, 10000, dtype('float32'))
    """

    confidence_fast: NDArray[np.float32]
    prediction_fast: NDArray[np.uint8]
    confidence_slow: NDArray[np.float32]
    prediction_slow: NDArray[np.uint8]
    label: NDArray[np.uint8]
    split: NDArray[np.uint8]


def fashion_mnist() -> FashionMnistPredictions:
    """Predictions of a fast and a slow classifier on 20,000 images that neither was trained on.

    The networks were trained for a fixed number of epochs on 50,000 other images, and these 20,000
    took no part in that or in any choice. Every call reads the file again and returns arrays of its
    own.

    Returns
    -------
    FashionMnistPredictions
        The columns, each of length 20,000.

    Examples
    --------
    The early exit is wrong more often than the whole network, which is what a cascade trades for
    speed:

    >>> from pacbound.data import fashion_mnist
    >>> table = fashion_mnist()
    >>> len(table.label)
    20000
    >>> fast, slow = table.prediction_fast == table.label, table.prediction_slow == table.label
    >>> print(f"{fast.mean():.1%} {slow.mean():.1%}")
    84.1% 92.5%
    """
    return FashionMnistPredictions(**_arrays("fashion_mnist.npz"))


@dataclass(frozen=True, eq=False)
class IndoorNavigationRollouts:
    """20,000 rollouts of a robot's learned policy without a shield.

    There is one row per rollout, each in a room of its own.

    Attributes
    ----------
    seed
        The seed of the rollout: the robot of `experiments/robot` in the repository draws room,
        start and goal from it.
    score
        The running maximum of the danger up to the first un-recoverable state, or over the whole
        rollout if there is none.
    unsafe
        Whether there is a first un-recoverable state.
    final_score
        The danger at the first un-recoverable state; NaN for a safe rollout.
    first_unrecoverable
        The step of that state, from 0; -1 if there is none.
    steps
        How many steps the policy took: to the first un-recoverable state, the goal, or the horizon
        of 100.
    success
        Whether the last of them reached the goal.

    Examples
    --------
    >>> table = indoor_navigation()
    >>> print(f"{table.success.mean():.1%} reach the goal, {table.unsafe.mean():.1%} are unsafe")
    41.9% reach the goal, 53.1% are unsafe
    """

    seed: NDArray[np.int32]
    score: NDArray[np.float64]
    unsafe: NDArray[np.bool_]
    final_score: NDArray[np.float64]
    first_unrecoverable: NDArray[np.int8]
    steps: NDArray[np.int8]
    success: NDArray[np.bool_]


def indoor_navigation() -> IndoorNavigationRollouts:
    """Rollouts of a robot that drives through furnished rooms by depth images, often unsafely.

    It is unsafe in about half of the rooms. Policy and danger model were trained in other rooms,
    and these 20,000 took no part in any choice. Every call reads the file again and returns arrays
    of its own.

    Returns
    -------
    IndoorNavigationRollouts
        The columns, each of length 20,000.

    Examples
    --------
    >>> from pacbound import certify_shield
    >>> from pacbound.data import indoor_navigation
    >>> table = indoor_navigation()
    >>> len(table.unsafe), f"{table.unsafe.mean():.1%}"
    (20000, '53.1%')
    >>> certify_shield(table.score, table.unsafe, xi=0.1, delta=0.01).certified
    True
    """
    return IndoorNavigationRollouts(**_arrays("indoor_navigation.npz"))


def _arrays(name: str) -> dict[str, NDArray[Any]]:
    with (
        files(__name__).joinpath(name).open("rb") as file,
        np.load(file, allow_pickle=False) as arrays,
    ):
        return dict(arrays)
