"""Drives on highway-env: a shield is certified from rollouts with the shield on, at rising
thresholds, and then tried on 1,000 fresh rollouts.

`python -m experiments.shield.highway_drives`, with highway-env installed. The policy accelerates in
its lane, whatever is ahead; the backup slows down; the danger grows as the time to reach the car
ahead shrinks. Nothing is saved or restored. Thresholds and sizes are fixed below, before any
rollout. The result is written to `highway_drives.json` beside this file, after about
half an hour on two cores.
"""

from __future__ import annotations

import json
from importlib import import_module
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np

from pacbound import certify_drives
from pacbound.shield import ShieldedRollouts, Task, run_shielded
from pacbound.stats.binomial import binomial_interval

XI, DELTA, HORIZON = 0.1, 0.01, 25
THRESHOLDS = (0.15, 0.25, 0.35, 0.45)
ROLLOUTS, FRESH = 200, 1000
FASTER, SLOWER = 3, 4
CONFIG = {
    "vehicles_count": 15,
    "lanes_count": 3,
    "duration": 60,
    "observation": {
        "type": "Kinematics",
        "features": ["presence", "x", "y", "vx"],
        "vehicles_count": 8,
        "absolute": False,
        "normalize": False,
    },
}


class Highway(gymnasium.Wrapper[Any, Any, Any, Any]):
    """A highway that says when it crashed."""

    def __init__(self) -> None:
        import_module("highway_env")  # it makes its environments known
        super().__init__(gymnasium.make("highway-fast-v0", config=CONFIG))

    def is_unsafe(self) -> bool:
        return bool(self.unwrapped.vehicle.crashed)  # type: ignore[attr-defined]


def accelerate(_: Any) -> int:
    return FASTER


def slow_down(_: Any) -> int:
    return SLOWER


def danger(seen: Any) -> float:
    """From the seconds until the nearest car ahead in the lane is reached at this speed: 1 at once,
    one half at two seconds, 0 if there is none."""
    others = seen[1:]
    ahead = others[(others[:, 0] > 0) & (others[:, 1] > 0) & (np.abs(others[:, 2]) < 2)]
    closing = np.maximum(-ahead[:, 3], 1e-3)
    seconds = np.maximum(ahead[:, 1] - 5.0, 0.0) / closing
    return float(np.max(2 / (2 + seconds), initial=0.0))


def drive(task: Task, threshold: float, seeds: range) -> ShieldedRollouts:
    return run_shielded(task, certificate_or_thresholds=threshold, seeds=seeds, n_jobs=2)


def seen(rollouts: ShieldedRollouts) -> dict[str, Any]:
    low, high = binomial_interval(int(rollouts.unsafe.sum()), len(rollouts), delta=0.05)
    return {
        "rollouts": len(rollouts),
        "unsafe": int(rollouts.unsafe.sum()),
        "unsafe_rate_95": [round(float(low), 4), round(float(high), 4)],
        "stopped": int((rollouts.fired_at >= 0).sum()),
    }


def main() -> None:
    task = Task(Highway, accelerate, slow_down, danger, horizon=HORIZON, backup_steps=10)
    driven: ShieldedRollouts | None = None
    for place, threshold in enumerate(THRESHOLDS):
        first = 1000 * (place + 1)
        one = drive(task, threshold, range(first, first + ROLLOUTS))
        driven = one if driven is None else driven + one
        made = driven.certify(xi=XI, delta=DELTA)
        print(threshold, seen(one), made.drives[-1]["verdict"], flush=True)
        if made.drives[-1]["verdict"] != "passed":
            break
    assert driven is not None
    certificate = driven.certify(xi=XI, delta=DELTA)
    print(certificate, flush=True)
    alone = drive(task, np.inf, range(50_000, 50_000 + ROLLOUTS))
    again = certify_drives(driven.threshold, driven.unsafe, xi=XI, delta=DELTA)
    assert again.threshold == certificate.threshold
    fresh = drive(task, certificate.threshold, range(90_000, 90_000 + FRESH))
    record = {
        "environment": f"highway-fast-v0, highway-env {import_module('highway_env').__version__}",
        "xi": XI,
        "delta": DELTA,
        "horizon": HORIZON,
        "policy_alone": seen(alone),
        "drives": [dict(one) for one in certificate.drives],
        "certified": certificate.certified,
        "threshold": certificate.threshold,
        "fresh": seen(fresh),
    }
    text = json.dumps(record, indent=1)
    Path(__file__).with_suffix(".json").write_text(text + "\n", encoding="utf-8")
    print(text)


if __name__ == "__main__":
    main()
