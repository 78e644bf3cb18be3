"""Which rows of traffic the slow model answers too, in the shadow: decided by a key, row by row,
before anything is known of the outcome.

To look only at a random share of the traffic is as good as to look at all of it, and slower by that
share: the rows that are looked at, those that do not exit early among them, lose as much as all
rows do. To look at a share of the exits only would test the loss per exit, which is larger, and
ring falsely.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pacbound.errors import InvalidTypeError, InvalidValueError
from pacbound.forms import Number

_SHARE = Number("a share of the rows", 0.0, 1.0, "(]")


@dataclass(frozen=True)
class Shadow:
    """A share of the rows of traffic, drawn by a key.

    Whether a row is drawn depends on its own name and the key alone, so that every machine decides
    alike, without a state, and before the outcome: a row is drawn if BLAKE2b of its name, keyed,
    as 8 bytes read from the most significant on, is below the share of 2^64.

    Parameters
    ----------
    share
        The share of the rows that is drawn, 0 < share <= 1.
    key
        1 to 64 bytes, or text of as many. Draw one at random, once, and keep it: to try several
        and pick one by its outcomes voids every promise.

    Raises
    ------
    InvalidValueError, InvalidTypeError
        If the share or the key is not one.

    Examples
    --------
    >>> shadow = Shadow(0.25, key="7d1f")
    >>> shadow.mask(["request-21", "request-22", "request-23"]).tolist()
    [True, False, True]
    >>> round(float(shadow.mask(range(10_000)).mean()), 2)
    0.25
    """

    share: float
    key: str | bytes

    def __post_init__(self) -> None:
        _SHARE.check(self.share, "share")
        if not isinstance(self.key, (str, bytes)):
            raise InvalidTypeError(f"key={self.key!r} is not a key: expected text or bytes.")
        if not 1 <= len(self._key) <= 64:
            raise InvalidValueError(
                f"key has {len(self._key)} bytes: expected 1 to 64, drawn at random once."
            )

    def wants(self, row: int | str) -> bool:
        """Whether a row is drawn.

        Parameters
        ----------
        row
            Its name: a number that counts the rows of traffic, or text such as the id of a
            request. 12 and "12" are the same row. No two rows may share a name.

        Returns
        -------
        bool
            True for the share of all names that is drawn.

        Raises
        ------
        InvalidTypeError
            If `row` is neither a whole number nor text.
        """
        if isinstance(row, bool) or not isinstance(row, (int, str, np.integer)):
            raise InvalidTypeError(
                f"row={row!r} does not name a row: expected a whole number or text."
            )
        name = str(row).encode("utf-8", "surrogatepass")
        drawn = blake2b(name, digest_size=8, key=self._key).digest()
        return int.from_bytes(drawn, "big") < int(self.share * 2**64)

    def mask(self, rows: Iterable[Any]) -> NDArray[np.bool_]:
        """Which of some rows are drawn.

        Parameters
        ----------
        rows
            Their names, as for `wants`.

        Returns
        -------
        ndarray of bool
            True where a row is drawn.

        Raises
        ------
        InvalidTypeError
            As from `wants`.
        """
        return np.fromiter(map(self.wants, rows), dtype=bool)

    @property
    def _key(self) -> bytes:
        return self.key.encode() if isinstance(self.key, str) else self.key
