"""How long a shield takes beside its models: `python -m benchmarks.shield_latency` prints a table
of microseconds per call, the median and the 99th percentile. The danger model returns a number at
once, so what is timed is the shield alone.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

import numpy as np

from pacbound import Shield
from pacbound.shield import VectorShield
from pacbound.shield.latch import Latch

CALLS = 20_000
ENVS = 64


def ways() -> Iterator[tuple[str, Callable[[], object]]]:
    """What is timed, by its name."""
    seen, many = np.zeros(4), np.zeros((ENVS, 4))
    flat = np.full(ENVS, 0.1)

    def drive(_: object) -> float:
        return 1.0

    def drive_all(_: object) -> np.ndarray:
        return flat

    def danger(_: object) -> float:
        return 0.1

    def dangers(_: object) -> np.ndarray:
        return flat

    latch, fired = Latch(danger, 0.5), Shield(drive, drive, danger, 0.05)
    fired(seen)
    shield, timely = (
        Shield(drive, drive, danger, 0.5),
        Shield(drive, drive, danger, 0.5, deadline=1),
    )
    vector = VectorShield(drive_all, drive_all, dangers, 0.5, num_envs=ENVS)
    late = VectorShield(drive_all, drive_all, dangers, 0.5, num_envs=ENVS, deadline=1)
    yield "a call of the danger model alone", lambda: danger(seen)
    yield "`Latch.look`", lambda: latch.look(seen)
    yield "`Shield`, the policy acts", lambda: shield(seen)
    yield "`Shield`, after it has fired", lambda: fired(seen)
    yield "`Shield` with `deadline=`", lambda: timely(seen)
    yield f"`VectorShield`, {ENVS} environments in one call", lambda: vector(many)
    yield f"`VectorShield` with `deadline=`, {ENVS} environments", lambda: late(many)


def microseconds(work: Callable[[], object], calls: int) -> np.ndarray:
    """The time of each call."""
    times = np.empty(calls)
    for place in range(calls):
        started = time.perf_counter_ns()
        work()
        times[place] = time.perf_counter_ns() - started
    return times / 1e3


def table(calls: int = CALLS) -> str:
    """The table, in Markdown."""
    lines = ["| | median, µs | 99 % within, µs |", "|---|---|---|"]
    for name, work in ways():
        times = microseconds(work, calls)
        lines.append(f"| {name} | {np.median(times):.1f} | {np.quantile(times, 0.99):.1f} |")
    return "\n".join(lines)


if __name__ == "__main__":
    print(table())
