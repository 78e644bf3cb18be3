"""Rollouts of a policy: collected and labelled to certify a shield, run with the shield on to test
it, and replayed.

    collect_rollouts    the policy alone, with the first state from which braking is too late
    run_shielded        the policy under its shield
    check_label         a label, checked by replay
"""

from pacbound.shield.rollouts.collected import Rollouts, collect_rollouts
from pacbound.shield.rollouts.frames import Frames
from pacbound.shield.rollouts.replay import LabelCheck, check_label
from pacbound.shield.rollouts.shielded import ShieldedRollouts, run_shielded
from pacbound.shield.rollouts.streams import PerRollout

__all__ = [
    "Frames",
    "LabelCheck",
    "PerRollout",
    "Rollouts",
    "ShieldedRollouts",
    "check_label",
    "collect_rollouts",
    "run_shielded",
]
