"""Random orders that follow from a key, the same on every machine and with every version of NumPy.

The words come from the counter-based generator Philox, whose stream is fixed; `Generator` itself
promises no such thing. Nothing here knows what is put in order.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

KEY_BYTES = 16


def new_key(rng: np.random.Generator) -> str:
    """A key of 128 random bits, in 32 hexadecimal digits."""
    return rng.bytes(KEY_BYTES).hex()


def is_key(value: object) -> bool:
    """Whether it is a key, as `new_key` makes them."""
    digits = set("0123456789abcdef")
    return isinstance(value, str) and len(value) == 2 * KEY_BYTES and set(value) <= digits


def keyed_permutation(size: int, key: str) -> NDArray[np.int64]:
    """The numbers from 0 to `size` - 1 in the order that `key` gives them.

    Each gets 128 random bits and the order is theirs. Two are equal with a chance below `size`^2 /
    2^129, which is below 1e-20 for a billion of them.
    """
    words = np.random.Philox(key=int(key, 16)).random_raw(2 * size).reshape(2, size)
    order = np.argsort(words[0])
    # The second 64 bits are looked at only where the first are equal, which is rare.
    if (np.diff(words[0][order]) == 0).any():
        order = np.lexsort((words[1], words[0]))
    return order
