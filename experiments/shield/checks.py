"""Are the labels right, does a rollout follow from its seed alone, and is the shield unsafe only
where the proof says it may be?

Checked by replay, on the rollouts that ship and on those with the shield on.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from joblib import Parallel, delayed

from experiments.shield.task import robot
from pacbound.data import indoor_navigation
from pacbound.shield import Rollouts, ShieldedRollouts, check_label, collect_rollouts

REPLAYED = 300
RECOLLECTED = 400


def all_checks(tested: ShieldedRollouts, jobs: int) -> dict[str, Any]:
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
        "equal_with_every_backup_simulated": _equal(
            table, _collected(seeds, jobs, trust_clearance=False)
        ),
        "equal_in_one_process": _equal(table, _collected(seeds, 1)),
        **_coupling(tested, jobs),
    }


def sentences(found: dict[str, Any]) -> list[str]:
    """What `all_checks` found, for people."""
    return [
        (
            f"{found['labels_right']} of {found['labels_replayed']} labels are right by replay "
            "from the reset: braking at the first un-recoverable state is safe, and after the "
            "policy's next step it is not."
        ),
        (
            f"{found['equal_with_every_backup_simulated']} of {found['rollouts_recollected']} rows "
            "are the same to the bit if every backup is simulated, also where the clearance "
            "makes it needless."
        ),
        (
            f"{found['equal_in_one_process']} of {found['rollouts_recollected']} rows are the same "
            "to the bit in one process."
        ),
        (
            f"{found['unsafe_and_missed']} of the {found['unsafe_under_a_shield']} rollouts that "
            "were unsafe under some shield have an un-recoverable state without it, and no "
            "danger up to there that reaches the threshold: they are those that the certificate "
            "counts."
        ),
    ]


def _coupling(tested: ShieldedRollouts, jobs: int) -> dict[str, int]:
    """Of the rollouts that were unsafe under a shield, how many the same seeds without it say were
    missed."""
    plain = _collected(np.unique(tested.seed), jobs)
    place = np.searchsorted(plain.seed, tested.seed)
    missed = plain.unsafe[place] & (plain.score[place] < tested.threshold)
    return {
        "unsafe_under_a_shield": int(tested.unsafe.sum()),
        "unsafe_and_missed": int((tested.unsafe & missed).sum()),
        "missed": int(missed.sum()),
    }


def _is_right(seed: int, step: int) -> bool:
    return check_label(robot(), seed=seed, first_unrecoverable=step).ok


def _collected(seeds: Any, jobs: int, *, trust_clearance: bool = True) -> Rollouts:
    return collect_rollouts(
        robot(), seeds=seeds, outcome="labels", trust_clearance=trust_clearance, n_jobs=jobs
    )


def _equal(table: Any, rollouts: Rollouts) -> int:
    """How many rows are the same as those that ship."""
    names = ("score", "unsafe", "final_score", "first_unrecoverable", "steps", "success")
    pairs = [(getattr(table, name)[: len(rollouts)], getattr(rollouts, name)) for name in names]
    # NaN is NaN.
    same = [(one == other) | ((one != one) & (other != other)) for one, other in pairs]  # noqa: PLR0124, RUF100
    return int(np.logical_and.reduce(same).sum())
