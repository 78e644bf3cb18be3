"""Whether the quotes of a text table are where they can be: DuckDB loses rows where one is not
closed.

Quotes open a field at its start, close it at its end, and stand doubled inside. Counted from the
first of the file, every second one closes: so each can be judged by the byte beside it, wherever
the lines are.
"""

from __future__ import annotations

from typing import Final

import numpy as np

_QUOTE: Final = ord('"')
_ENDS: Final = b"\n\r"
_BOM: Final = b"\xef\xbb\xbf"


class QuoteCheck:
    """Takes the bytes of a table piece by piece, and knows the first quote that is out of place."""

    def __init__(self, separator: str) -> None:
        self._beside = np.zeros(256, dtype=bool)
        self._beside[list(separator.encode() + _ENDS + b'"')] = True
        self._begun, self._first = False, b""
        self._held = b"\n"
        self._seen = 0
        self._done = 0
        self.wrong: int | None = None
        """Where the first quote is that is out of place, in bytes from the start of the file."""

    def feed(self, chunk: bytes) -> None:
        """Take the next bytes."""
        if not self._begun:
            self._first += chunk
            if len(self._first) < len(_BOM):
                return
            self._begin()
        else:
            self._judge(chunk)

    def _begin(self) -> None:
        self._begun, first = True, self._first
        if first.startswith(_BOM):
            self._done = len(_BOM)
        self._judge(first.removeprefix(_BOM))

    def _judge(self, chunk: bytes) -> None:
        data = self._held + chunk
        # A byte is judged by its neighbours, so the last one waits for the next.
        inside = np.frombuffer(data, dtype=np.uint8)
        places = np.flatnonzero(inside[1:-1] == _QUOTE) + 1
        if places.size and self.wrong is None:
            closes = (np.arange(places.size) + self._seen) % 2 == 1
            neighbours = np.where(
                closes, inside[np.minimum(places + 1, len(data) - 1)], inside[places - 1]
            )
            bad = np.flatnonzero(~self._beside[neighbours])
            if bad.size:
                self.wrong = self._done + int(places[bad[0]]) - 1
        self._seen += int(places.size)
        self._done += max(0, len(data) - 2)
        self._held = data[-2:]

    @property
    def is_sound(self) -> bool:
        """Whether every quote is where it can be, once all bytes were taken."""
        if not self._begun:
            self._begin()
        self._judge(b"\n")
        return self.wrong is None and self._seen % 2 == 0
