"""Pairs for conditions: how often claims are false while somebody does all that the sentences
allow, and while they do what one sentence forbids.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

DELTA, XI = 0.2, 0.5
# A rate that is just too high.
BAD = XI + 1e-9

# The largest chance of a false claim, with the sentence kept or not, up to so many rows.
Law = Callable[[bool, int], float]


@dataclass(frozen=True)
class Pair:
    """Which conditions are left away, and the law of both halves."""

    conditions: tuple[str, ...]
    what: str
    law: Law
    delta: float


PAIRS: list[Pair] = []


def pair(*conditions: str, what: str = "", delta: float = DELTA) -> Callable[[Law], Law]:
    """Registers the law of a pair: `law(kept, rows)` is the largest chance of a false claim."""

    def registered(law: Law) -> Law:
        PAIRS.append(Pair(conditions, what or law.__name__.replace("_", " "), law, delta))
        return law

    return registered
