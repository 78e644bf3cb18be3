"""Keyed numbers, by which rows are drawn: the same seed and the same name give the same number,
everywhere and for ever.

What is drawn must not depend on how rows are ordered, cut into parts, or held by an engine, so
nothing is generated in a sequence. The numbers of a name are the first 64 bits of a SHA-256, the
next 64 and so on, of the text "purpose seed name", such as "row 0 r17". No purpose has a space in
it, so that two uses of one seed share nothing. Engines have this hash themselves, and give the same
numbers where the rows are (`pacbound.tally.frames.keyed_rows`).
"""

from __future__ import annotations

import hashlib
import re
import secrets
from collections.abc import Iterable
from operator import index
from typing import Any, Final, Literal

import numpy as np
from numpy.typing import NDArray

from pacbound.documents import LARGEST_INTEGER, Json, Reader
from pacbound.errors import InvalidTypeError, InvalidValueError

Purpose = Literal["cluster", "row", "name", "monitor"]

# Each number is below 2 to the power of this.
BITS: Final = 64

_BYTES: Final = BITS // 8


def keyed_numbers(
    seed: int, purpose: Purpose, names: Iterable[str], *, each: int = 1
) -> NDArray[np.uint64]:
    """`each` numbers from 0 to 2^64 - 1 for every name, a row for each; at most four.

    Whoever does not know the seed cannot tell them from independent and uniform ones.
    """
    keyed, width = hashlib.sha256(keyed_prefix(seed, purpose).encode()), _BYTES * each
    digests = []
    for name in names:
        state = keyed.copy()
        # Half a character, which some files hold, is a name too.
        state.update(name.encode("utf-8", "surrogatepass"))
        digests.append(state.digest()[:width])
    return np.frombuffer(b"".join(digests), dtype=">u8").astype(np.uint64).reshape(-1, each)


def keyed_prefix(seed: int, purpose: Purpose) -> str:
    """What stands before a name where it is hashed."""
    return f"{purpose} {seed} "


def fresh_seed() -> int:
    """A seed that the operating system draws, of 53 bits: every reader of JSON keeps it exactly."""
    return secrets.randbits(53)


_LONGEST_SEED: Final = 1000
_LONG_SEED: Final = re.compile("-?[1-9][0-9]{15,}")


def seed_of(seed: Any) -> int:
    """The seed that was passed, which may be any whole number; a fresh one if none was."""
    if seed is None:
        return fresh_seed()
    try:
        if isinstance(seed, (bool, np.bool_)):
            raise TypeError
        whole = int(seed) if isinstance(seed, float) and seed.is_integer() else index(seed)
    except TypeError:
        raise InvalidTypeError(
            f"seed={seed!r} is not a seed: expected a whole number. To draw the same rows again "
            "pass the seed that the summary names; else leave it out, and one is drawn."
        ) from None
    if abs(whole) >= 10**_LONGEST_SEED:
        raise InvalidValueError(
            f"seed has more than {_LONGEST_SEED} digits: leave it out, and one is drawn."
        )
    return whole


def seed_to_json(seed: int | None) -> Json:
    """A seed as documents hold it: as text where not every reader of JSON keeps it exactly."""
    return seed if seed is None or abs(seed) <= LARGEST_INTEGER else str(seed)


def seed_from(part: Reader) -> int:
    """The seed in a document."""
    value = part.raw("seed")
    text = value if isinstance(value, str) else ""
    is_long = len(text) <= _LONGEST_SEED + 1 and _LONG_SEED.fullmatch(text)
    if is_long and abs(int(text)) > LARGEST_INTEGER:
        return int(text)
    return part.whole("seed")


def name_numbers(names: Iterable[str]) -> NDArray[np.uint64]:
    """A number for every name, whatever the seed of a draw is: names are recognised by it."""
    return keyed_numbers(0, "name", names)[:, 0]


def uniforms(numbers: NDArray[np.uint64]) -> NDArray[np.float64]:
    """The numbers as floats from 0 up to but not including 1, exact to 53 bits."""
    return (numbers >> np.uint64(BITS - 53)).astype(np.float64) * 2.0**-53
