"""Small plots in text: the counts on the way to a threshold, or the figure of a claim.

They show what the certificate holds and compute nothing of their own.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import islice

from pacbound.certificate import (
    BatchCertificate,
    Certificate,
)
from pacbound.claims.claim import ClaimCertificate
from pacbound.report.sketch import sketch as figure_sketch

WIDTH = 40
"""How many characters the axis of an interval has."""
ROOM = 78
"""How many columns a picture has, indented on a usual terminal."""
MOST_TABLES = 6


@dataclass(frozen=True)
class Characters:
    """The characters that plots are drawn with."""

    full: str
    line: str
    point: str
    empty: str
    limit: str
    here: str
    encoding: str | None = None

    @classmethod
    def for_encoding(cls, encoding: str | None) -> Characters:
        """Those that an output of the encoding can show."""
        signs = ("█", "━", "●", "·", "┃", "◀")
        try:
            "".join(signs).encode(encoding or "ascii")
        except (UnicodeEncodeError, LookupError):
            return cls("#", "=", "o", ".", "|", "<", encoding)
        return cls(*signs, encoding)


def sketch(certificate: Certificate, strokes: Characters) -> list[str]:
    """The plot of a certificate, as lines; none for a kind that has nothing to draw."""
    if isinstance(certificate, ClaimCertificate):
        groups = len(getattr(certificate, "groups", ()))
        return [
            *(
                line
                for figure in islice(certificate.figures(), MOST_TABLES)
                for line in figure_sketch(figure, width=ROOM, encoding=strokes.encoding)
            ),
            *([f"({MOST_TABLES} of {groups} groups are drawn)"] if groups > MOST_TABLES else []),
        ]
    return _batch(certificate, strokes) if isinstance(certificate, BatchCertificate) else []


def _batch(certificate: BatchCertificate, strokes: Characters) -> list[str]:
    fast = round(WIDTH * certificate.exits / certificate.n)
    bar = strokes.full * fast + strokes.empty * (WIDTH - fast)
    return [
        "Who answered:",
        f"  fast {certificate.exits:>10,} {bar} {certificate.asked:,} slow",
    ]
