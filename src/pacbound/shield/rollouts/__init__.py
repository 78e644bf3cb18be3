"""Rollouts of a policy: collected to certify a shield, run with the shield on to test it, and
replayed.

    Task                what rollouts are made of
    collect_rollouts    the policy alone, each rollout with what a shield would make of it at every
                        threshold, or with the first state from which braking comes too late
    run_shielded        the policy under its shield
    check_label         a label, checked by replay
"""

from pacbound.shield.rollouts.checks import LabelCheck, check_label
from pacbound.shield.rollouts.collected import ForkedRollouts, Rollouts, collect_rollouts
from pacbound.shield.rollouts.rollout import Frames
from pacbound.shield.rollouts.shielded import ShieldedRollouts, run_shielded
from pacbound.shield.rollouts.task import PerRollout, Task

__all__ = [
    "ForkedRollouts",
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
