"""Why the data cannot support a claim, and what would."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from pacbound.stats.arguments import LARGEST_COUNT


@dataclass(frozen=True)
class Refusal:
    """A reason in words, and about how many labels (rollouts) it would take; None if no number of
    them would help.

    A refusal does not show that the model is bad: it says that this sample cannot show that it is
    good.
    """

    reason: str
    needed: int | None


def least_passing(passes: Callable[[int], bool]) -> int | None:
    """A number of rows that passes, within one per cent of where passing begins; None if it is more
    than can be counted.
    """
    high = 1
    while not passes(high):
        high *= 2
        if high > LARGEST_COUNT:
            return None
    low = high // 2
    while high - low > max(1, low // 100):
        middle = (low + high) // 2
        low, high = (low, middle) if passes(middle) else (middle, high)
    return high
