"""The small real tables behind the demo and the examples, shipped inside the package and read without a network.

The predictions are those of trained models on images they were not trained on. Nothing here computes a guarantee; README.md
beside this file says where each table comes from, under which licence, and how it is rebuilt.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib.resources import files

import numpy as np
from numpy.typing import NDArray

__all__ = ["FashionMnistPredictions", "fashion_mnist"]


@dataclass(frozen=True, eq=False)
class FashionMnistPredictions:
    """What a small network with one early exit says about 20,000 held-out images of Fashion-MNIST, one row per image.

    Attributes
    ----------
    confidence_fast, confidence_slow
        Softmax probability of the predicted class, float32, at the early exit and at the end of the network; not calibrated.
    prediction_fast, prediction_slow
        Predicted class at the early exit and at the end, 0 to 9.
    label
        True class, 0 to 9.
    split
        0 for the 10,000 images from the end of the training file, which were kept out of training; 1 for the test file.

    """

    confidence_fast: NDArray[np.float32]
    prediction_fast: NDArray[np.uint8]
    confidence_slow: NDArray[np.float32]
    prediction_slow: NDArray[np.uint8]
    label: NDArray[np.uint8]
    split: NDArray[np.uint8]


def fashion_mnist() -> FashionMnistPredictions:
    """Predictions of a fast and a slow classifier on 20,000 images that neither was trained on.

    The networks were trained for a fixed number of epochs on 50,000 other images, and these 20,000 took no part in that or
    in any choice. Every call reads the file again and returns arrays of its own.

    Examples
    --------
    The early exit is wrong more often than the whole network, which is what a cascade trades for speed:

    >>> from pacbound.data import fashion_mnist
    >>> table = fashion_mnist()
    >>> len(table.label)
    20000
    >>> fast, slow = table.prediction_fast == table.label, table.prediction_slow == table.label
    >>> print(f"{fast.mean():.1%} {slow.mean():.1%}")
    84.1% 92.5%

    """
    with files(__name__).joinpath("fashion_mnist.npz").open("rb") as file, np.load(file, allow_pickle=False) as arrays:
        return FashionMnistPredictions(**arrays)
