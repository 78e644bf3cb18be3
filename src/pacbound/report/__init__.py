"""Figures for people: displays that hold their numbers as attributes and draw them with matplotlib.

    ReliabilityDisplay           certified intervals, or claimed ones, against accuracy
    AccuracyConfidenceDisplay    accuracy and coverage above a threshold

Every number drawn is computed elsewhere in pacbound. No figure touches pyplot or its settings; `ax=` draws into your own.
"""

from pacbound.report.accuracy_confidence import AccuracyConfidenceDisplay
from pacbound.report.reliability import ReliabilityDisplay

__all__ = ["AccuracyConfidenceDisplay", "ReliabilityDisplay"]
