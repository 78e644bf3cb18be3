"""False alarms: few of the negatives raise one; and few positives are missed at the same time."""

from pacbound.false_alarms.alarm_range import certify_alarm_range
from pacbound.false_alarms.certify import certify_false_alarms

__all__ = ["certify_alarm_range", "certify_false_alarms"]
