"""Shields: a backup policy takes over before it is too late, certified to leave at most so many
rollouts unsafe.

What makes rollouts needs Gymnasium and joblib, and is loaded when it is first used.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from pacbound.shield.certify import certify_shield
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

_OF_ROLLOUTS = frozenset(
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
    ]
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
    "certify_shield",
    "check_label",
    "collect_rollouts",
    "run_shielded",
]


def __getattr__(name: str) -> Any:
    if name not in _OF_ROLLOUTS:
        raise AttributeError(f"module 'pacbound.shield' has no attribute {name!r}")
    value = getattr(import_module("pacbound.shield.rollouts"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
