"""Shields: a backup policy takes over before it is too late, certified to leave at most so many
rollouts unsafe.

What makes rollouts needs Gymnasium and joblib, and is loaded when it is first used. Without them
its names are there, and raise a `MissingDependencyError` with the pip command when they are used.
"""

from typing import TYPE_CHECKING

from pacbound.lazy_names import lazy_names
from pacbound.shield.policy import Shield, VectorShield

if TYPE_CHECKING:
    from pacbound.shield.rollouts import (
        Frames,
        LabelCheck,
        PerRollout,
        Rollouts,
        ShieldedRollouts,
        Task,
        check_label,
        collect_rollouts,
        run_shielded,
    )

__all__ = [
    "Frames",
    "LabelCheck",
    "PerRollout",
    "Rollouts",
    "Shield",
    "ShieldedRollouts",
    "Task",
    "VectorShield",
    "check_label",
    "collect_rollouts",
    "run_shielded",
]


__getattr__, __dir__ = lazy_names(
    __name__,
    dict.fromkeys(
        [
            "Frames",
            "LabelCheck",
            "PerRollout",
            "Rollouts",
            "ShieldedRollouts",
            "Task",
            "check_label",
            "collect_rollouts",
            "run_shielded",
        ],
        "pacbound.shield.rollouts",
    ),
)
