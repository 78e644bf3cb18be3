"""What is promised about false alarms: none ever but with probability delta, or one in so many
labels.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from pacbound.certificate.document import exact
from pacbound.errors import InvalidValueError
from pacbound.stats.arguments import LARGEST_COUNT, failure_probability, real_number
from pacbound.stats.betting import Bets, Restarts, RunningSums

LEAST_DELTA: Final = 1e-300
_RATE: Final = re.compile(
    r"\s*one\s+(?:per|in)\s+([0-9][0-9_,.]*(?:e\+?[0-9]+)?)(?:\s+labels?)?\s*"
)
_ROUNDED: Final = 1.0 + 2.0**-40
_EXPECTED: Final = (
    "expected 'ever' (with probability at least 1 - delta never a false alarm) or, for the second "
    "clock, 'one per 1e6 labels' or the number 1e6"
)


@dataclass(frozen=True)
class Promise:
    """Which promise was made; `every` is None for the first, else the labels for one false alarm.

    Under either, labels may not be selected or delayed by their outcome.
    """

    delta: float
    every: float | None = None

    @classmethod
    def of(cls, delta: Any, false_alarms: Any) -> Promise:
        """The promise that the arguments of a monitor ask for."""
        level = failure_probability(delta)
        if level < LEAST_DELTA:
            raise InvalidValueError(
                f"delta={delta} is too small to monitor with: expected at least {LEAST_DELTA}."
            )
        return cls(level, _labels(false_alarms))

    @property
    def text(self) -> str:
        """As `false_alarms` takes it."""
        return "ever" if self.every is None else f"one per {_number(self.every)} labels"

    @property
    def words(self) -> str:
        """What is promised, in a sentence."""
        if self.every is None:
            return (
                "While the claim holds at every step, the alarm ever rings with probability at "
                f"most {exact(self.delta)}."
            )
        return (
            "While the claim holds at every step, the mean time to a false alarm is at least "
            f"{_number(self.every)} labels, and the alarm rings within the first t labels with "
            f"probability at most t / {_number(self.every)}: at most {exact(self.delta)} within "
            f"{int(self.delta * self.every):,} labels. A row counts as a label once for each claim "
            "and each group that it belongs to. This is a weaker promise than 'ever'."
        )

    @property
    def limit(self) -> float:
        """The evidence at which the alarm rings, rounded up."""
        return (1.0 / self.delta if self.every is None else self.every) * _ROUNDED

    def fresh(self, bets: Bets) -> Restarts | RunningSums:
        """The wealth of bets before the first label."""
        return Restarts.fresh(bets) if self.every is None else RunningSums.fresh(bets)

    def shares(self, shares: np.ndarray[Any, np.dtype[np.float64]]) -> Any:
        """How the evidence of several places adds up: averaged, or the sums of their own labels."""
        return shares if self.every is None else np.ones_like(shares)


def _number(every: float) -> str:
    """In digits that read back as the same number."""
    return f"{every:,.0f}" if every == int(every) else repr(every)


def _labels(false_alarms: Any) -> float | None:
    if isinstance(false_alarms, str):
        if false_alarms.strip().lower() == "ever":
            return None
        found = _RATE.fullmatch(false_alarms.lower())
        try:
            every = float((found[1] if found else false_alarms).replace(",", ""))
        except ValueError:
            raise InvalidValueError(
                f"false_alarms={false_alarms!r} is not a promise: {_EXPECTED}."
            ) from None
    else:
        every = real_number(false_alarms, "false_alarms", "a promise about false alarms")
    if not 1.0 < every <= LARGEST_COUNT:
        raise InvalidValueError(
            f"false_alarms={false_alarms!r} is not a promise: {_EXPECTED}, above 1 and at most "
            "2**53."
        )
    return every
