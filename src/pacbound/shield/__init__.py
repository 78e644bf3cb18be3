"""Shields: a backup policy takes over before it is too late, certified to leave at most so many
rollouts unsafe.

What makes rollouts needs Gymnasium and joblib, and is loaded when it is first used. Without them
its names are there, and raise a `MissingDependencyError` with the pip command when they are used.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from pacbound.errors import MissingDependencyError, stand_in
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
    try:
        value = getattr(import_module("pacbound.shield.rollouts"), name)
    except MissingDependencyError as error:
        # Not kept: once the extra is installed, the name is there without a new start of Python.
        return stand_in(name, __name__, error)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
