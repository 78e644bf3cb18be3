"""Keyed numbers: the same seed and the same name give the same number, everywhere and for ever.

What is drawn or tossed must not depend on how rows are ordered, cut into parts, or held by an
engine, so nothing is generated in a sequence. Each name is hashed by BLAKE2b under a key, which is
the seed; what the numbers are for is part of the hash, so that two uses of one seed share nothing.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from typing import Final, Literal

import numpy as np
from numpy.typing import NDArray

Purpose = Literal["cluster", "row", "stratum", "coin", "name", "monitor"]

# Each number is below 2 to the power of this.
BITS: Final = 64

_BYTES: Final = BITS // 8


def keyed_numbers(
    seed: int, purpose: Purpose, names: Iterable[str], *, each: int = 1
) -> NDArray[np.uint64]:
    """`each` numbers from 0 to 2^64 - 1 for every name, a row for each.

    Whoever does not know the seed cannot tell them from independent and uniform ones.
    """
    keyed = hashlib.blake2b(
        digest_size=_BYTES * each, key=seed.to_bytes(_BYTES, "little"), person=purpose.encode()
    )
    digests = []
    for name in names:
        state = keyed.copy()
        # Half a character, which some files hold, is a name too.
        state.update(name.encode("utf-8", "surrogatepass"))
        digests.append(state.digest())
    return np.frombuffer(b"".join(digests), dtype="<u8").astype(np.uint64).reshape(-1, each)


def name_numbers(names: Iterable[str]) -> NDArray[np.uint64]:
    """A number for every name, whatever the seed of a draw is: names are recognised by it."""
    return keyed_numbers(0, "name", names)[:, 0]


def uniforms(numbers: NDArray[np.uint64]) -> NDArray[np.float64]:
    """The numbers as floats from 0 up to but not including 1, exact to 53 bits."""
    return (numbers >> np.uint64(BITS - 53)).astype(np.float64) * 2.0**-53
