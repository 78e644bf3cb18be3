"""False alarms in use: each negative is one label, and a loss if it raises an alarm.

Given which rows are negative, at most a share xi of the negatives may raise an alarm. Positives say
nothing about it and are left out. A claim about the safe rollouts of a shield cannot be watched:
whether a rollout that the shield stopped would have been safe is not seen in use. Of a range of
thresholds the two claims are watched apart, at the threshold that is in use.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np

from pacbound.certificate.document import exact
from pacbound.certificate.false_alarms import FalseAlarmCertificate
from pacbound.errors import InvalidValueError
from pacbound.tally.classes import Evidence, Vocabulary
from pacbound.tally.questions.recall import RecallQuestion
from pacbound.tally.rows import Rows, only_known
from pacbound.watch import (
    Counts,
    RowReading,
    Seen,
    bets_on_losses,
    losses_of_labels,
    one_place,
)

_WHAT = "A monitored claim about false alarms"


class FalseAlarmWatch:
    """At most a share `xi` of the negatives raises an alarm."""

    roles: ClassVar[Mapping[str, bool]] = {"score": True, "positive": True}
    outcomes = ("quiet", "false alarm")
    single = None
    columns = ("score", "positive")
    shares = np.ones(1)

    def __init__(self, certificate: FalseAlarmCertificate) -> None:
        if certificate.unit == "rollouts":
            raise InvalidValueError(
                "A certificate of the false alarms of rollouts is not monitored: whether a rollout "
                "that the shield stopped would have been safe is not seen in use. Certify again on "
                "new rollouts without the shield."
            )
        self.bets = bets_on_losses(certificate.xi)
        self.claimed = f"at most {exact(certificate.xi)} of the negatives raise an alarm"
        self._threshold = certificate.threshold

    def place_name(self, place: int) -> str | None:  # noqa: ARG002
        """None: all negatives are alike."""
        return None

    def of_columns(self, named: Mapping[str, Any]) -> RowReading:
        """`score` and `positive`."""
        known = only_known(named, self.roles, _WHAT)
        return RowReading(RecallQuestion.of_columns(**known).slots, self._judged)

    def of_arrays(self, given: Mapping[str, Any]) -> tuple[RowReading, Mapping[str, Any]]:
        """The same of arrays."""
        question, arrays = RecallQuestion.of_arrays(**only_known(given, self.roles, _WHAT))
        return RowReading(question.slots, self._judged), arrays

    def counted(self, given: Mapping[str, Any]) -> Counts:
        """`losses` negatives with an alarm of `labels` negatives."""
        return [(0, losses_of_labels(given, _WHAT))]

    def _judged(
        self,
        rows: Rows,
        vocabulary: Vocabulary,  # noqa: ARG002
        evidence: Evidence,  # noqa: ARG002
    ) -> Seen:
        scores, positive = rows.scores("score"), rows.flags("positive")
        return one_place(scores[~positive] >= self._threshold)
