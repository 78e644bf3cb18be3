from pacbound.shield.policy import Shield as Shield
from pacbound.shield.policy import VectorShield as VectorShield
from pacbound.shield.rollouts import ForkedRollouts as ForkedRollouts
from pacbound.shield.rollouts import Frames as Frames
from pacbound.shield.rollouts import LabelCheck as LabelCheck
from pacbound.shield.rollouts import PerRollout as PerRollout
from pacbound.shield.rollouts import Rollouts as Rollouts
from pacbound.shield.rollouts import ShieldedRollouts as ShieldedRollouts
from pacbound.shield.rollouts import Task as Task
from pacbound.shield.rollouts import check_label as check_label
from pacbound.shield.rollouts import collect_rollouts as collect_rollouts
from pacbound.shield.rollouts import run_shielded as run_shielded

__all__: list[str]
