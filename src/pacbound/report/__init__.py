"""Figures for people: displays that hold their numbers as attributes and draw them with matplotlib.

    ReliabilityDisplay           certified intervals, or claimed ones, against accuracy
    AccuracyConfidenceDisplay    accuracy and coverage above a threshold
    ErrorCostDisplay             error against cost of cascades, and the error asked for
    DesiredAchievedDisplay       the error increase allowed, and the one that test rows saw
    SuccessSafetyDisplay         success against safety of shields, and the safety asked for
    DesiredSafetyDisplay         the safety asked for, and the one that test rollouts saw
    RolloutDisplay               rollouts from above, with the shield off and on

Every number drawn is computed elsewhere in pacbound. No figure touches pyplot or its settings;
`ax=` draws into your own.
"""

from pacbound.report.accuracy_confidence import AccuracyConfidenceDisplay
from pacbound.report.desired_achieved import DesiredAchievedDisplay
from pacbound.report.desired_safety import DesiredSafetyDisplay
from pacbound.report.error_cost import ErrorCostDisplay
from pacbound.report.floor_plan import Drive, FloorPlan, Shape
from pacbound.report.reliability import ReliabilityDisplay
from pacbound.report.rollout_paths import RolloutDisplay
from pacbound.report.success_safety import SuccessSafetyDisplay

__all__ = [
    "AccuracyConfidenceDisplay",
    "DesiredAchievedDisplay",
    "DesiredSafetyDisplay",
    "Drive",
    "ErrorCostDisplay",
    "FloorPlan",
    "ReliabilityDisplay",
    "RolloutDisplay",
    "Shape",
    "SuccessSafetyDisplay",
]
