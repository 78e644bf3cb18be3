"""Wall-clock times, best of several; two ways to do one thing are measured in turn, so that a busy
moment hits both."""

from __future__ import annotations

import time
from collections.abc import Callable

Work = Callable[[], object]


def race(ours: Work, theirs: Work | None, *, repeats: int) -> tuple[float, float | None]:
    """The best times of both over `repeats` rounds, in seconds; None for a missing peer."""
    if theirs is None:
        return best_of(ours, repeats=repeats), None
    rounds = [(timed(ours), timed(theirs)) for _ in range(repeats)]
    return min(own for own, _ in rounds), min(other for _, other in rounds)


def best_of(work: Work, *, repeats: int) -> float:
    """The best time of one work, in seconds."""
    return min(timed(work) for _ in range(repeats))


def timed(work: Work) -> float:
    """The seconds that one call takes."""
    started = time.perf_counter()
    work()
    return time.perf_counter() - started
