"""Which rooms are for what. The ranges do not meet, so no network and no certificate ever sees a
room of another purpose.

A certificate is worth something only if its rollouts are new to all that was trained, tuned or
chosen before. Whoever changes a network may look at the rooms of `TUNING` as often as they like,
and at those of `CALIBRATION` and `TEST` never.
"""

from __future__ import annotations

POLICY_TRAINING = range(1_000_000, 1_100_000)
DANGER_TRAINING = range(2_000_000, 2_100_000)
TUNING = range(3_000_000, 3_100_000)
CALIBRATION = range(4_000_000, 4_900_000)
TEST = range(6_000_000, 6_900_000)

__all__ = ["CALIBRATION", "DANGER_TRAINING", "POLICY_TRAINING", "TEST", "TUNING"]
