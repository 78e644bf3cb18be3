"""Forks against labels, from the same simulator: what each certifies, and what it costs.

    python -m experiments.shield.forks pendulum robot highway

Every task is collected twice on the same seeds, as forks and as labels, and certified at the same
xi and delta. The thresholds are then driven on other seeds: how often the shield never fires and
the rollout ends well, and how often it is unsafe. Steps of the simulator are counted, those of
rehearsals, policies and backups, in the same environment with the same way of restoring. What is
found goes to experiments/results/shield_forks.json. The pendulum needs stable-baselines3, the
highway highway-env.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from concurrent.futures import Executor, ProcessPoolExecutor
from dataclasses import replace
from functools import partial
from importlib import import_module
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np

from experiments.robot.rooms import CALIBRATION, TEST
from experiments.shield.progress import shown
from experiments.shield.task import robot
from pacbound.paper import shield_threshold
from pacbound.shield import (
    ForkedRollouts,
    Rollouts,
    ShieldedRollouts,
    Task,
    collect_rollouts,
    run_shielded,
)
from pacbound.shield.rollouts.files import joined

RESULTS = Path("experiments/results/shield_forks.json")
POLICY = Path("experiments/runs/pendulum_ppo.zip")
DELTA = 0.01
FRESH = 1000


class Counted(gymnasium.Wrapper[Any, Any, Any, Any]):
    """Counts the steps of all simulations in this process."""

    steps = 0

    def step(self, action: Any) -> Any:
        Counted.steps += 1
        return self.env.step(action)


def pendulum() -> Task:
    made: Task = import_module("experiments.shield.pendulum").pendulum(POLICY)
    return made


def highway() -> Task:
    made: Task = import_module("experiments.shield.highway").highway()
    return made


TASKS: dict[str, tuple[Callable[[], Task], int, float]] = {
    "pendulum": (pendulum, 2000, 0.1),
    "robot": (robot, 2000, 0.1),
    "highway": (highway, 500, 0.2),
}


def counting(task: Task) -> Task:
    """The same task in environments whose steps are counted."""
    made: Any = task.environment
    return replace(task, environment=lambda: Counted(made()))


def collection(name: str, seeds: range, outcome: Any) -> tuple[Any, int]:
    """The rollouts of some seeds, and how many steps of the simulator they took."""
    Counted.steps = 0
    found = collect_rollouts(counting(TASKS[name][0]()), seeds=seeds, outcome=outcome)
    print(f"  {outcome} of {len(seeds)} seeds from {seeds[0]}", flush=True)
    return found, Counted.steps


def collected(pool: Executor, name: str, n: int, chunk: int, outcome: str) -> tuple[Any, int]:
    """The rollouts of all seeds, chunk by chunk, each of which is rehearsed."""
    chunks = [CALIBRATION[first : min(first + chunk, n)] for first in range(0, n, chunk)]
    parts = list(pool.map(partial(collection, name, outcome=outcome), chunks))
    columns = joined([found.columns for found, _ in parts])
    first = parts[0][0]
    return type(first)(**columns, task=first.task), sum(steps for _, steps in parts)


def compared(name: str, n: int, jobs: int, chunk: int) -> dict[str, Any]:
    """Both ways on the same seeds, and their thresholds on others."""
    (make, _, xi), started = TASKS[name], time.perf_counter()
    task = make()
    with ProcessPoolExecutor(jobs, mp_context=get_context("spawn")) as pool:
        forks, fork_steps = collected(pool, name, n, chunk, "forks")
        labels, label_steps = collected(pool, name, n, chunk, "labels")
    ways = {
        "forks": forks.certify(xi=xi, delta=DELTA).threshold,
        "labels": labels.certify(xi=xi, delta=DELTA).threshold,
        "product": shield_threshold(labels.final_score, labels.unsafe, xi=xi, delta=DELTA),
    }
    thresholds = sorted({*ways.values(), np.inf})
    fresh = run_shielded(
        task,
        certificate_or_thresholds=thresholds,
        seeds=TEST[: min(n, FRESH)],
        n_jobs=jobs,
        progress=shown("fresh", every=60),
    )
    return {
        "n": n,
        "xi": xi,
        "delta": DELTA,
        "policy_alone": seen(fresh.at(np.inf)),
        **{name: found(fresh, threshold) for name, threshold in ways.items()},
        "misses_at_most_those_of_labels_at_every_threshold": dominated(forks, labels),
        "backups_simulated": {
            "forks": int(forks.of_rollouts("simulated").sum()),
            "labels": int(labels.simulated.sum()),
        },
        "simulator_steps": {"forks": fork_steps, "labels": label_steps},
        "minutes": round((time.perf_counter() - started) / 60, 1),
    }


def dominated(forks: ForkedRollouts, labels: Rollouts) -> bool:
    """Whether forks count at most as many unsafe rollouts as labels at every threshold."""
    first, last = (one[forks.unsafe] for one in (forks.lowest, forks.highest))
    turns = np.bincount(first, minlength=65538) - np.bincount(last + 1, minlength=65539)[:65538]
    scores = np.sort(labels.score[labels.unsafe])
    missed = np.searchsorted(scores, np.arange(65537) / 65536)
    return bool((np.cumsum(turns)[:65537] <= missed).all())


def found(fresh: ShieldedRollouts, threshold: float) -> dict[str, Any]:
    """What a threshold does on rollouts that it was not chosen from."""
    if threshold == -np.inf:
        return {"certified": False}
    return {"threshold": threshold, **seen(fresh.at(threshold))}


def seen(rollouts: ShieldedRollouts) -> dict[str, Any]:
    ended_well = (rollouts.fired_at < 0) & rollouts.success & ~rollouts.unsafe
    return {
        "never_fired_and_successful": round(float(ended_well.mean()), 4),
        "unsafe": round(float(rollouts.unsafe.mean()), 4),
    }


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("tasks", nargs="+", choices=list(TASKS))
    parser.add_argument("--rollouts", type=int, help="fewer than the task has")
    parser.add_argument("--jobs", type=int, default=2, help="processes")
    parser.add_argument("--chunk", type=int, default=125, help="seeds that a process runs at once")
    parser.add_argument("--out", type=Path, default=RESULTS)
    options = parser.parse_args(arguments)
    record = json.loads(options.out.read_text()) if options.out.exists() else {}
    for name in options.tasks:
        _, n, _ = TASKS[name]
        record[name] = {
            "command": f"python -m experiments.shield.forks {name} --chunk {options.chunk}"
            + (f" --rollouts {options.rollouts}" if options.rollouts else ""),
            **compared(name, options.rollouts or n, options.jobs, options.chunk),
        }
        options.out.write_text(json.dumps(record, indent=2) + "\n", encoding="utf-8")
        print(json.dumps(record[name], indent=2))


if __name__ == "__main__":
    main()
