"""Figures for people: displays that hold their numbers as attributes and draw them with matplotlib.

    ReliabilityDisplay           certified intervals, or claimed ones, against accuracy
    AccuracyConfidenceDisplay    accuracy and coverage above a threshold
    ErrorCostDisplay             error against cost of cascades, and the error that was asked for
    DesiredAchievedDisplay       the error increase allowed, and the one that test rows saw

Every number drawn is computed elsewhere in pacbound. No figure touches pyplot or its settings; `ax=` draws into your own.
"""

from pacbound.report.accuracy_confidence import AccuracyConfidenceDisplay
from pacbound.report.desired_achieved import DesiredAchievedDisplay
from pacbound.report.error_cost import ErrorCostDisplay
from pacbound.report.reliability import ReliabilityDisplay

__all__ = ["AccuracyConfidenceDisplay", "DesiredAchievedDisplay", "ErrorCostDisplay", "ReliabilityDisplay"]
