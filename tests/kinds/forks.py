"""Forks: rollouts with one outcome for every threshold."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from tests.kinds.kind import Kind, Use
from tests.kinds.random_rows import level, many, rate

from pacbound import Certificate, Tally, certify_forks

NEVER = 65537


def fork_rows(rollouts: int, rng: np.random.Generator, risk: float = 0.2) -> dict[str, Any]:
    """Rollouts whose danger rises up to three times, whose forks fail now and then, and which are
    unsafe by themselves with the chance `risk`.
    """
    rows: list[tuple[int, int, int, bool]] = []
    for rollout in range(rollouts):
        reached = np.unique(rng.integers(0, NEVER + 1, size=rng.integers(0, 4)))
        ends = [*reached[reached < NEVER].tolist(), NEVER]
        begins = [0, *(end + 1 for end in ends[:-1])]
        chances = [0.02] * (len(ends) - 1) + [risk]
        flags = (rng.random(len(ends)) < chances).tolist()
        rows += zip([rollout] * len(ends), begins, ends, flags, strict=True)
    columns: list[NDArray[Any]] = [np.array(column) for column in zip(*rows, strict=True)]
    return dict(zip(("rollout", "lowest", "highest", "unsafe"), columns, strict=True))


def forks_tally(rollouts: int, risk: float = 0.2) -> Tally:
    return Tally.count("forks", **fork_rows(rollouts, np.random.default_rng(5), risk))


def _random(rng: np.random.Generator) -> Certificate:
    rows = fork_rows(int(rng.integers(1, 120)), rng, float(rng.choice([0.02, 0.2, 0.6])))
    asked: dict[str, Any] = {"xi": rate(rng), "delta": level(rng)}
    asked["start"] = float(rng.choice([0.0, 0.3, 1.0, rng.random()]))
    way = int(rng.integers(3))
    if way == 0:
        times = int(10 ** rng.integers(1, 4))
        return certify_forks(data=many(Tally.count("forks", **rows), times), **asked)
    if way == 1:
        asked |= {"groups": rows["rollout"] % 2, "group_thresholds": rng.choice(["common", "own"])}
    return certify_forks(**rows, **asked)


def _in_use(n: int, rng: np.random.Generator, bad: bool) -> Any:
    return rng.random(n) < (0.3 if bad else 0.01)


def _grouped() -> Certificate:
    rows = fork_rows(600, np.random.default_rng(7), 0.1)
    site = np.where(rows["rollout"] % 3 == 0, "north", "south")
    return certify_forks(**rows, groups=site, xi=0.1, delta=0.05, group_thresholds="own")


KIND = Kind(
    made={
        "forks": lambda: certify_forks(
            data=forks_tally(500), xi=0.1, delta=0.05, horizon=60
        ).with_about({"model": "policy of 3 May", "owner": "Ada"}),
        "forks-groups": _grouped,
        "forks-never-fires": lambda: certify_forks(data=forks_tally(500), xi=0.5, delta=0.05),
        "forks-refused": lambda: certify_forks(data=forks_tally(50), xi=0.01, delta=0.05),
        "forks-start": lambda: certify_forks(data=forks_tally(500), xi=0.1, delta=0.05, start=0.2),
        "forks-start-refused": lambda: certify_forks(
            data=forks_tally(500, 0.6), xi=0.1, delta=0.05, start=1.0
        ),
    },
    layouts=("forks", "forks-groups", "forks-refused"),
    random=_random,
    trials=1100,
    use=lambda: Use(certify_forks(data=forks_tally(500, 0.01), xi=0.05, delta=0.05), _in_use),
)
