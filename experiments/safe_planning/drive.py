"""Drive with the shield on, where nothing has been seen before, from the repository root:

    MUJOCO_GL=egl python -m experiments.safe_planning.drive camera
    python -m experiments.safe_planning.drive sidewalk

Every method chooses its threshold from the collected rollouts, and drives the same new rooms. By
depth this is `experiments.shield.evaluate`. A run that was killed goes on where it was.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import binom

from experiments.robot.rooms import TEST
from experiments.safe_planning.ablation import DEFAULT_DELTA
from experiments.safe_planning.methods import METHODS, threshold
from experiments.safe_planning.tasks import RESULTS, collected, packages, task
from experiments.shield.progress import shown
from pacbound.shield import ShieldedRollouts, run_shielded


def main() -> None:
    options = parse()
    law = collected(options.task, options.results)
    if law is None:
        raise SystemExit(
            f"There are no rollouts of {options.task} yet: run python -m "
            f"experiments.safe_planning.collect {options.task} first."
        )
    chosen = {
        (xi, method): threshold(method, law, xi=xi, delta=DEFAULT_DELTA)
        for xi in options.xi
        for method in METHODS
    }
    tested = run_shielded(
        task(options.task, remember=True),
        certificate_or_thresholds=sorted({*chosen.values(), np.inf}),
        seeds=TEST[: options.rooms],
        folder=options.folder or Path(f"experiments/runs/safe_planning_drive_{options.task}"),
        n_jobs=1,
        progress=shown("rollouts", every=60),
    )
    asked = f"--rooms {options.rooms} --xi {' '.join(f'{xi:g}' for xi in options.xi)}"
    record = {
        "command": f"python -m experiments.safe_planning.drive {options.task} {asked}",
        "seeds": [int(TEST[0]), int(TEST[options.rooms - 1])],
        "rollouts_sha256": law.digest,
        "calibrated_on": len(law),
        "delta": DEFAULT_DELTA,
        "rooms": options.rooms,
        "policy_alone": counted(tested.at(np.inf)),
        "results": [
            {
                "xi": xi,
                "method": method,
                "threshold": value if np.isfinite(value) else str(value),
                **counted(tested.at(value)),
                "p_value": surprise(tested.at(value), xi),
            }
            for (xi, method), value in chosen.items()
        ],
        "versions": packages(options.task),
    }
    text = json.dumps(record, indent=2)
    path = options.results / f"safe_planning_{options.task}_drives.json"
    path.write_text(text + "\n", encoding="utf-8")
    print(text)


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("task", choices=("camera", "sidewalk"))
    parser.add_argument("--rooms", type=int, default=2_000, help="new rooms for each threshold")
    parser.add_argument("--xi", type=float, nargs="+", default=[0.1])
    parser.add_argument("--folder", type=Path, help="where parts are kept")
    parser.add_argument("--results", type=Path, default=RESULTS)
    return parser.parse_args()


def counted(tested: ShieldedRollouts) -> dict[str, Any]:
    return {
        "rollouts": len(tested),
        "unsafe": int(tested.unsafe.sum()),
        "success": int((tested.success & ~tested.unsafe).sum()),
        "fired": int((tested.fired_at >= 0).sum()),
    }


def surprise(tested: ShieldedRollouts, xi: float) -> float:
    """How likely at least so many unsafe rollouts are if the rate is xi."""
    return float(binom.sf(int(tested.unsafe.sum()) - 1, len(tested), xi))


if __name__ == "__main__":
    main()
