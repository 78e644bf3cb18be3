"""Are the labels right, and does a rollout follow from its seed alone? Checked by replay, on the rollouts that ship."""

from __future__ import annotations

from typing import Any

import numpy as np
from joblib import Parallel, delayed

from pacbound.data import indoor_navigation
from pacbound.shield import Rollouts, check_label, collect_rollouts
from pacbound.shield.robot import DangerModel, ImagePolicy, IndoorNavigation, brake

HORIZON = 100
REPLAYED = 300
RECOLLECTED = 400


def all_checks(jobs: int) -> dict[str, Any]:
    """Counts of what was checked, and of what was found to be right."""
    table = indoor_navigation()
    unsafe = np.flatnonzero(table.unsafe & (table.first_unrecoverable >= 0))[:REPLAYED]
    pairs = [(int(table.seed[row]), int(table.first_unrecoverable[row])) for row in unsafe]
    right = Parallel(n_jobs=jobs)(delayed(_is_right)(seed, step) for seed, step in pairs)
    seeds = table.seed[:RECOLLECTED]
    return {
        "labels_replayed": len(pairs),
        "labels_right": sum(right),
        "rollouts_recollected": len(seeds),
        "equal_with_every_backup_simulated": _equal(table, _collected(seeds, jobs, trust_clearance=False)),
        "equal_in_one_process": _equal(table, _collected(seeds, 1)),
    }


def sentences(found: dict[str, Any]) -> list[str]:
    """What `all_checks` found, for people."""
    return [
        f"{found['labels_right']} of {found['labels_replayed']} labels are right by replay from the reset: braking at the first "
        "un-recoverable state is safe, and after the policy's next step it is not.",
        f"{found['equal_with_every_backup_simulated']} of {found['rollouts_recollected']} rows are the same to the bit if every "
        "backup is simulated, also where the clearance makes it needless.",
        f"{found['equal_in_one_process']} of {found['rollouts_recollected']} rows are the same to the bit in one process.",
    ]


def _is_right(seed: int, step: int) -> bool:
    return check_label(IndoorNavigation, ImagePolicy.load(), brake, seed=seed, first_unrecoverable=step, horizon=HORIZON).ok


def _collected(seeds: Any, jobs: int, *, trust_clearance: bool = True) -> Rollouts:
    return collect_rollouts(
        IndoorNavigation,
        ImagePolicy.load(),
        brake,
        DangerModel.load(),
        seeds=seeds,
        horizon=HORIZON,
        trust_clearance=trust_clearance,
        n_jobs=jobs,
    )


def _equal(table: Any, rollouts: Rollouts) -> int:
    """How many rows are the same as those that ship."""
    names = ("score", "unsafe", "final_score", "first_unrecoverable", "steps", "success")
    pairs = [(getattr(table, name)[: len(rollouts)], getattr(rollouts, name)) for name in names]
    same = [(one == other) | ((one != one) & (other != other)) for one, other in pairs]  # noqa: PLR0124 - NaN is NaN
    return int(np.logical_and.reduce(same).sum())
