"""The thresholds that are compared: certified ones, and the paper's baselines, all from the
rollouts that ship."""

from __future__ import annotations

from dataclasses import dataclass

from experiments.baselines import NAIVE_THRESHOLD, observed_miss_threshold
from pacbound import Tally, certify_shield
from pacbound.data import IndoorNavigationRollouts
from pacbound.paper import shield_threshold

XI = (0.05, 0.1, 0.2)
DELTA = 0.01
METHODS = {
    "exact": ("certified, exact", True),
    "product": ("certified, the paper's product", True),
    "histogram": ("histogram binning: means, not bounds", False),
    "naive": ("threshold 0.5", False),
    "xi-naive": ("threshold xi", False),
}
"""What each method is called, and whether it has a guarantee."""


@dataclass(frozen=True)
class Choice:
    """The danger at which a method would brake for an unsafe rate of at most xi."""

    xi: float
    method: str
    threshold: float


def choices(table: IndoorNavigationRollouts) -> list[Choice]:
    """The threshold of every method for every xi."""
    tally = Tally.count("shield", score=table.score, unsafe=table.unsafe)
    found = []
    for xi in XI:
        exact = certify_shield(table.score, table.unsafe, xi=xi, delta=DELTA)
        thresholds = {
            "exact": exact.threshold,
            "product": shield_threshold(table.final_score, table.unsafe, xi=xi, delta=DELTA),
            "histogram": observed_miss_threshold(tally, xi=xi),
            "naive": NAIVE_THRESHOLD,
            "xi-naive": xi,
        }
        found += [Choice(xi, method, threshold) for method, threshold in thresholds.items()]
    return found
