"""A recall in use: each positive is one label, and a loss if its score is below the threshold.

Given which rows are positive, at most a share 1 - target of the positives may be missed. Negatives
say nothing about it and are left out.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from math import inf, nextafter
from typing import Any, ClassVar

import numpy as np

from pacbound.certificate.document import exact
from pacbound.certificate.recall import RecallCertificate
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

_WHAT = "A monitored recall"


class RecallWatch:
    """At least a share `target` of the positives is flagged."""

    roles: ClassVar[Mapping[str, bool]] = {"score": True, "positive": True}
    outcomes = ("flagged", "missed")
    single = None
    columns = ("score", "positive")
    shares = np.ones(1)

    def __init__(self, certificate: RecallCertificate) -> None:
        if certificate.threshold == 0:
            raise InvalidValueError(
                "This certificate flags everything, so that no positive can be missed: there is "
                "nothing to monitor."
            )
        self.bets = bets_on_losses(_missable(certificate.target))
        self.claimed = f"at least {exact(certificate.target)} of the positives are flagged"
        self._threshold = certificate.threshold

    def place_name(self, place: int) -> str | None:  # noqa: ARG002
        """None: all positives are alike."""
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
        """`losses` missed positives of `labels` positives."""
        return [(0, losses_of_labels(given, _WHAT))]

    def _judged(
        self,
        rows: Rows,
        vocabulary: Vocabulary,  # noqa: ARG002
        evidence: Evidence,  # noqa: ARG002
    ) -> Seen:
        scores, positive = rows.scores("score"), rows.flags("positive")
        return one_place(scores[positive] < self._threshold)


def _missable(target: float) -> float:
    """1 - `target`, rounded up: the claim must not be taken for more than it says."""
    exactly = 1 - Fraction(target)
    near = float(exactly)
    return near if Fraction(near) >= exactly else nextafter(near, inf)
