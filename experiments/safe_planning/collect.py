"""Collect the rollouts that a task's shield is certified from, from the repository root:

    MUJOCO_GL=egl python -m experiments.safe_planning.collect camera
    python -m experiments.safe_planning.collect sidewalk

Rollouts of the policy without a shield, from seeds that neither network has seen. They are kept in
parts, so that a run that was killed goes on where it was. The sidewalk needs MiniWorld: `pip
install --group experiments`. Those by depth ship with the package: `experiments.shield.collect`.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import time
from pathlib import Path

from experiments.robot.rooms import CALIBRATION
from experiments.safe_planning.tasks import RESULTS, keep, packages, task
from experiments.shield.progress import shown
from pacbound.shield import collect_rollouts


def main() -> None:
    options = parse()
    started, cpu = time.perf_counter(), time.process_time()
    rollouts = collect_rollouts(
        task(options.task),
        seeds=CALIBRATION[: options.rollouts],
        outcome="labels",
        folder=options.folder or Path(f"experiments/runs/safe_planning_{options.task}"),
        n_jobs=1,
        progress=shown("rollouts", every=60),
    )
    out = keep(options.task, rollouts, options.results)
    record = {
        "command": f"python -m experiments.safe_planning.collect {options.task}",
        "rollouts": len(rollouts),
        "first_seed": int(rollouts.seed[0]),
        "steps": int(rollouts.steps.sum()),
        "unsafe": int(rollouts.unsafe.sum()),
        "lost": int(rollouts.lost.sum()),
        "reached_the_goal_safely": int((rollouts.success & ~rollouts.unsafe).sum()),
        "readings_that_failed": int(rollouts.failures.sum()),
        "sha256": hashlib.sha256(out.read_bytes()).hexdigest(),
        "versions": packages(options.task),
        "minutes_of_the_last_run": round((time.perf_counter() - started) / 60, 1),
        "cpu_minutes_of_the_last_run": round((time.process_time() - cpu) / 60, 1),
    }
    text = json.dumps(record, indent=2)
    out.with_name(f"safe_planning_{options.task}_rollouts.json").write_text(
        text + "\n", encoding="utf-8"
    )
    print(text)


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("task", choices=("camera", "sidewalk"))
    parser.add_argument("--rollouts", type=int, default=20_000)
    parser.add_argument("--folder", type=Path, help="where parts are kept")
    parser.add_argument("--results", type=Path, default=RESULTS)
    return parser.parse_args()


if __name__ == "__main__":
    main()
