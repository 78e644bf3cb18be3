"""Observations as named arrays: what Gymnasium nests in dictionaries and tuples, flat and ready for
a file.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

WHOLE = ""
"""The name of an observation that is one array."""


def flattened(observation: Any, name: str = WHOLE) -> dict[str, NDArray[Any]]:
    """A copy of each array within, by its path: {"camera": …}, {"arm/joints": …}, {"0": …} in a
    tuple.

    >>> flattened({"arm": {"joints": [0.5, 1.0]}, "battery": 3})
    {'arm/joints': array([0.5, 1. ]), 'battery': array(3)}
    """
    if isinstance(observation, Mapping):
        parts = [(str(key), value) for key, value in observation.items()]
    elif isinstance(observation, tuple):
        parts = [(str(place), value) for place, value in enumerate(observation)]
    else:
        return {name: np.array(observation)}
    flat: dict[str, NDArray[Any]] = {}
    for key, value in parts:
        flat |= flattened(value, f"{name}/{key}" if name else key)
    return flat


def same(one: Any, other: Any) -> bool:
    """Whether two observations are equal to the bit, NaN included."""
    left, right = flattened(one), flattened(other)
    return left.keys() == right.keys() and all(
        left[name].dtype == right[name].dtype and left[name].tobytes() == right[name].tobytes()
        for name in left
    )
