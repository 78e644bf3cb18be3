"""Drives in a simulator that others wrote: a shield is certified from rollouts with it on, at
rising thresholds, and the certified threshold is then tried on 1,000 fresh rollouts:

    python -m experiments.shield.drives sidewalk highway

Nothing is saved or restored. Thresholds, sizes and seeds are fixed below, before any rollout. The
sidewalk is MiniWorld's, walked by the camera policy of `experiments.safe_planning`; the highway is
that of `experiments.shield.highway`. What is found goes to experiments/results/shield_drives.json.
It needs MiniWorld and highway-env.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import binom

from experiments.robot.rooms import CALIBRATION, TEST
from experiments.shield.forks import highway
from experiments.shield.progress import shown
from pacbound.shield import ShieldedRollouts, Task, run_shielded

RESULTS = Path("experiments/results/shield_drives.json")
DELTA = 0.01
FIRST_SEED = 500_000
"""The place in the ranges of seeds from which no other experiment has taken any."""


@dataclass(frozen=True)
class Walk:
    """A task, and what is declared before its first rollout."""

    task: Callable[[], Task]
    package: str
    xi: float
    thresholds: tuple[float, ...]
    rollouts: int
    fresh: int = 1000
    alone: int = 300


def sidewalk() -> Task:
    made: Task = import_module("experiments.safe_planning.tasks").task("sidewalk")
    return made


WALKS = {
    "sidewalk": Walk(sidewalk, "miniworld", 0.1, (0.1, 0.2, 0.3, 0.4, 0.5, 0.6), 300),
    "highway": Walk(highway, "highway-env", 0.2, (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8), 300),
}


def driven(task: Task, walk: Walk) -> list[dict[str, Any]]:
    """Each threshold as a rate, on seeds of its own, up to the first that is refused."""
    found: list[dict[str, Any]] = []
    for place, threshold in enumerate(walk.thresholds):
        first = FIRST_SEED + place * walk.rollouts
        rollouts = at(task, threshold, CALIBRATION[first : first + walk.rollouts])
        certificate = rollouts.certify(target=1 - walk.xi, delta=DELTA)
        print(certificate, flush=True)
        found.append(
            {
                "threshold": threshold,
                "rollouts": len(rollouts),
                "unsafe": int(rollouts.unsafe.sum()),
                "lost": int(rollouts.lost.sum()),
                "allowed": certificate.allowed,
                "verdict": "passed" if certificate.certified else "failed",
            }
        )
        if not certificate.certified:
            break
    return found


def at(task: Task, threshold: float, seeds: range) -> ShieldedRollouts:
    name = f"rollouts at {threshold:g}"
    return run_shielded(
        task, certificate_or_thresholds=threshold, seeds=seeds, progress=shown(name, every=60)
    )


def counted(rollouts: ShieldedRollouts) -> dict[str, int]:
    """How rollouts under a shield ended. One that the shield stops does not count as a success."""
    fired = rollouts.fired_at >= 0
    return {
        "rollouts": len(rollouts),
        "unsafe": int(rollouts.unsafe.sum()),
        "fired": int(fired.sum()),
        "never_fired_and_safe": int((~fired & ~rollouts.unsafe).sum()),
        "reached_the_goal_safely": int((rollouts.success & ~rollouts.unsafe).sum()),
    }


def measured(walk: Walk) -> dict[str, Any]:
    """The walk, its claim, and both tried where nothing was chosen."""
    started, task = time.perf_counter(), walk.task()
    drives = driven(task, walk)
    standing = [drive["threshold"] for drive in drives if drive["verdict"] == "passed"]
    new = TEST[FIRST_SEED:]
    fresh = at(task, standing[-1] if standing else -np.inf, new[: walk.fresh])
    unsafe = int(fresh.unsafe.sum())
    return {
        "environment": f"{walk.package} {version(walk.package)}",
        "xi": walk.xi,
        "delta": DELTA,
        "horizon": task.horizon,
        "declared": {"thresholds": walk.thresholds, "rollouts": walk.rollouts},
        "drives": drives,
        "certified": bool(standing),
        "threshold": standing[-1] if standing else None,
        "policy_alone": counted(at(task, np.inf, new[walk.fresh : walk.fresh + walk.alone])),
        "fresh": counted(fresh),
        "chance_of_so_many_unsafe_if_the_rate_were_xi": float(
            binom.sf(unsafe - 1, len(fresh), walk.xi)
        ),
        "minutes": round((time.perf_counter() - started) / 60, 1),
    }


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("tasks", nargs="+", choices=list(WALKS))
    parser.add_argument("--out", type=Path, default=RESULTS)
    options = parser.parse_args(arguments)
    record = json.loads(options.out.read_text()) if options.out.exists() else {}
    for name in options.tasks:
        command = f"python -m experiments.shield.drives {name}"
        record[name] = {"command": command, **measured(WALKS[name])}
        options.out.write_text(json.dumps(record, indent=2) + "\n", encoding="utf-8")
        print(json.dumps(record[name], indent=2))


if __name__ == "__main__":
    main()
