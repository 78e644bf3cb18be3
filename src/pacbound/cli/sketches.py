"""Small plots in text: the counts on the way to a threshold, or the figure of a claim.

They show what the certificate holds and compute nothing of their own.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

import numpy as np

from pacbound.certificate import (
    BatchCertificate,
    CascadeCertificate,
    Certificate,
    GroupedCascadeCertificate,
)
from pacbound.certificate.cascade_walks import grid_top
from pacbound.claims.claim import ClaimCertificate
from pacbound.documents import printable
from pacbound.procedures.cascade_differ import Claim
from pacbound.procedures.joint_walk import JointWalk
from pacbound.report.sketch import sketch as figure_sketch

WIDTH = 40
"""How many characters the axis of an interval has."""
BAR = 26
"""How many characters a bar has, which leaves room for words behind it on a terminal."""
ROOM = 78
"""How many columns a picture has, indented on a usual terminal."""
MOST_STEPS = 8
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


@dataclass(frozen=True)
class WalkedThreshold:
    """A threshold on the way, the count that is held against a limit there, and other words."""

    threshold: str
    count: float
    words: str


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
    drawing = _DRAWINGS.get(type(certificate))
    return [] if drawing is None else drawing(certificate, strokes)


def _cascade(certificate: CascadeCertificate, strokes: Characters) -> list[str]:
    walk = certificate.walks[certificate.chosen]
    unit = _LOST[certificate.bounded]
    return _walk(walk, certificate.n, certificate.xi, certificate.cells, strokes, unit)


def _groups(certificate: GroupedCascadeCertificate, strokes: Characters) -> list[str]:
    lines = []
    for name, group in list(certificate.groups.items())[:MOST_TABLES]:
        lines.append(f"group {printable(name)}")
        walk = group.walks[group.chosen]
        unit = _LOST[certificate.bounded]
        lines += _walk(walk, group.n, certificate.xi, group.cells, strokes, unit)
    if len(certificate.groups) > MOST_TABLES:
        lines.append(f"({MOST_TABLES} of {len(certificate.groups)} groups are drawn)")
    return lines


_LOST: dict[Claim, str] = {"loss": "% lost", "differ": "% differ"}


def _walk(
    walk: JointWalk,
    n: int,
    xi: float,
    cells: Sequence[int] | None,
    strokes: Characters,
    unit: str,
) -> list[str]:
    top = grid_top(len(walk.cells))
    lost = (walk.only_slow - walk.only_fast + walk.unlabelled).sum(axis=0)
    exits = walk.exits.sum(axis=0)
    digits = 4 if len(walk.cells) == 1 else 3
    steps = [
        WalkedThreshold(
            ", ".join(f"{value:.{digits}f}" for value in thresholds),
            100 * loss / n,
            f"{share:.1%} exit",
        )
        for thresholds, loss, share in zip(
            (walk.cells / top).T.tolist(), lost.tolist(), (exits / n).tolist(), strict=True
        )
    ]
    here = -1
    if cells is not None:
        # The walk has a step wherever counts change: the last one at or above the thresholds.
        above = (walk.cells >= np.array(cells)[:, None]).all(axis=0)
        here = int(np.flatnonzero(above)[-1]) if above.any() else -1
    head = "Exiting from a score on, the thresholds falling (descriptive):"
    return [head, *_bars(("score", unit), steps, 100 * xi, here, strokes)]


def _batch(certificate: BatchCertificate, strokes: Characters) -> list[str]:
    fast = round(WIDTH * certificate.exits / certificate.n)
    bar = strokes.full * fast + strokes.empty * (WIDTH - fast)
    return [
        "Who answered:",
        f"  fast {certificate.exits:>10,} {bar} {certificate.asked:,} slow",
    ]


def _bars(
    units: tuple[str, str],
    steps: Sequence[WalkedThreshold],
    limit: float,
    here: int,
    strokes: Characters,
) -> list[str]:
    """Some of the steps as bars, with the limit across them and a mark where the claim stands."""
    of, unit = units
    chosen = _some(len(steps), MOST_STEPS, here)
    most = max([limit, *(steps[place].count for place in chosen)], default=0.0)
    scale = (BAR - 1) / most if most > 0 else 0.0
    wide = max((len(steps[place].threshold) for place in chosen), default=0)
    lines = [f"  {of:>{wide}} {unit:>9}"]
    for place in chosen:
        step = steps[place]
        filled = max(0, round(step.count * scale))
        bar = list((strokes.full * filled).ljust(BAR, strokes.empty))
        if 0 <= limit * scale < BAR:
            bar[round(limit * scale)] = strokes.limit
        mark = f" {strokes.here} the claim" if place == here else ""
        count = f"{step.count:,.2f}" if unit.startswith("%") else f"{step.count:,.0f}"
        said = f" {step.words}" if step.words else ""
        lines.append(f"  {step.threshold:>{wide}} {count:>9} {''.join(bar)}{said}{mark}")
    return lines


def _some(count: int, most: int, must: int = -1) -> Any:
    """Places spread over all of them, both ends and one that must be there included."""
    places = np.unique(np.linspace(0, max(count - 1, 0), min(count, most)).round().astype(int))
    return np.union1d(places, [must]) if 0 <= must < count else places


def _place(falling: Any, threshold: float) -> int:
    """The last of the falling thresholds that is at or above one."""
    above = np.flatnonzero(falling >= threshold)
    return int(above[-1]) if above.size else -1


_DRAWINGS: dict[type[Certificate], Callable[[Any, Characters], list[str]]] = {
    BatchCertificate: _batch,
    CascadeCertificate: _cascade,
    GroupedCascadeCertificate: _groups,
}
