"""Collect the rollouts that the robot's shield is certified from, and write the table that ships
with the package:

    python -m experiments.shield.collect

20,000 rollouts of the policy without a shield, in rooms that neither network has seen. The folder
of parts lets a run that was killed go on where it was. What the run took goes to
experiments/results/shield_rollouts.json.
"""

from __future__ import annotations

import argparse
import json
import time
from importlib.resources import files
from pathlib import Path

import numpy as np

from experiments.fixed_npz import write_table
from experiments.robot.rooms import CALIBRATION
from experiments.shield.progress import shown
from experiments.shield.task import robot
from pacbound.shield import Rollouts, collect_rollouts

TYPES = {
    "seed": np.int32,
    "score": np.float64,
    "unsafe": np.bool_,
    "final_score": np.float64,
    "first_unrecoverable": np.int8,
    "steps": np.int8,
    "success": np.bool_,
}


def main() -> None:
    options = parse()
    started = time.perf_counter()
    rollouts = collect_rollouts(
        robot(),
        seeds=CALIBRATION[: options.rollouts],
        outcome="labels",
        folder=options.folder,
        n_jobs=options.jobs,
        progress=shown("rollouts", every=60),
    )
    minutes = (time.perf_counter() - started) / 60
    options.out.parent.mkdir(parents=True, exist_ok=True)
    write_table(
        options.out, {name: rollouts.columns[name].astype(kind) for name, kind in TYPES.items()}
    )
    record = {
        "command": "python -m experiments.shield.collect",
        "minutes": round(minutes, 1),
        "jobs": options.jobs,
        **figures(rollouts),
    }
    text = json.dumps(record, indent=2)
    (options.results / "shield_rollouts.json").write_text(text + "\n", encoding="utf-8")
    print(text)


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    shipped = Path(str(files("pacbound.data").joinpath("indoor_navigation.npz")))
    parser.add_argument("--rollouts", type=int, default=20_000)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument(
        "--folder",
        type=Path,
        default=Path("experiments/runs/shield_rollouts"),
        help="where parts are kept",
    )
    parser.add_argument("--out", type=Path, default=shipped, help="the .npz file to write")
    parser.add_argument("--results", type=Path, default=Path("experiments/results"))
    return parser.parse_args()


def figures(rollouts: Rollouts) -> dict[str, object]:
    """What the table is like."""
    return {
        "rollouts": len(rollouts),
        "first_seed": int(rollouts.seed[0]),
        "steps": int(rollouts.steps.sum()),
        "backups_simulated": int(rollouts.simulated.sum()),
        "clearances_checked": int(rollouts.checked.sum()),
        "unsafe": int(rollouts.unsafe.sum()),
        "lost": int(rollouts.lost.sum()),
        "reached_the_goal_safely": int((rollouts.success & ~rollouts.unsafe).sum()),
        "readings_that_failed": int(rollouts.failures.sum()),
    }


if __name__ == "__main__":
    main()
