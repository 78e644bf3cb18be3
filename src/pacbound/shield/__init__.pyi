from pacbound.shield.policy import Shield as Shield
from pacbound.shield.policy import VectorShield as VectorShield
from pacbound.shield.rollouts.checks import LabelCheck as LabelCheck
from pacbound.shield.rollouts.checks import check_label as check_label
from pacbound.shield.rollouts.collected import ForkedRollouts as ForkedRollouts
from pacbound.shield.rollouts.collected import Rollouts as Rollouts
from pacbound.shield.rollouts.collected import collect_rollouts as collect_rollouts
from pacbound.shield.rollouts.rollout import Frames as Frames
from pacbound.shield.rollouts.shielded import ShieldedRollouts as ShieldedRollouts
from pacbound.shield.rollouts.shielded import run_shielded as run_shielded
from pacbound.shield.rollouts.task import PerRollout as PerRollout
from pacbound.shield.rollouts.task import Task as Task

__all__: list[str]
