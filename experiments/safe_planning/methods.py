"""The ways to choose the danger at which the shield fires that are compared, and how a threshold is
judged."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from experiments.baselines import NAIVE_THRESHOLD, observed_miss_threshold
from pacbound import Tally, certify_shield
from pacbound.paper import shield_threshold, unsafe_bound
from pacbound.procedures.threshold import TOP, allowed_events
from pacbound.stats.planning import largest_passing

METHODS = {
    "naive": "0.5",
    "xi-naive": "xi",
    "histogram": "histogram binning",
    "product": "the paper's product",
    "exact": "ours, exact",
}
"""What each method is called in tables."""
CERTIFIED = ("product", "exact")


@dataclass(frozen=True, eq=False)
class Table:
    """Rollouts of a policy without a shield, a row each, as `collect_rollouts` gives them."""

    score: NDArray[np.float64]
    unsafe: NDArray[np.bool_]
    final_score: NDArray[np.float64]
    success: NDArray[np.bool_]

    def __len__(self) -> int:
        return len(self.score)

    @property
    def digest(self) -> str:
        """What tells these rollouts from others."""
        columns = (self.score, self.unsafe, self.final_score, self.success)
        return hashlib.sha256(b"".join(column.tobytes() for column in columns)).hexdigest()

    @cached_property
    def tally(self) -> Tally:
        return Tally.count("shield", score=self.score, unsafe=self.unsafe)

    def drawn(self, rows: NDArray[np.int64]) -> Table:
        return Table(
            self.score[rows], self.unsafe[rows], self.final_score[rows], self.success[rows]
        )

    def missed(self, threshold: float) -> int:
        """How many are unsafe and never as dangerous as the threshold: all that can be unsafe under
        the shield."""
        return int((self.unsafe & (self.score < threshold)).sum())

    def succeeds(self, threshold: float) -> int:
        """How many reach the goal under the shield."""
        return int((self.success & ~self.unsafe & (self.score < threshold)).sum())


def table_of(rollouts: Any) -> Table:
    """The columns that count, of a `Rollouts` or of anything with the same columns."""
    return Table(
        np.asarray(rollouts.score, dtype=np.float64),
        np.asarray(rollouts.unsafe, dtype=bool),
        np.asarray(rollouts.final_score, dtype=np.float64),
        np.asarray(rollouts.success, dtype=bool),
    )


def many_thresholds(
    method: str, table: Table, draws: Iterable[NDArray[Any]], *, xi: float, delta: float
) -> list[float]:
    """What `threshold` gives for each draw of rows, a hundred times faster.

    A method fires at the cell of the first unsafe rollout that it may not miss, and how many it may
    miss follows from counts alone: no tally, and no certificate, is made. A test holds the two
    together.
    """
    if method in ("naive", "xi-naive"):
        return [threshold(method, table, xi=xi, delta=delta) for _ in draws]
    scores = table.final_score if method == "product" else table.score
    # NaN stands for safe rollouts, which are not looked at.
    cells = np.full(len(table), -1)
    read = np.isfinite(scores)
    cells[read] = np.floor(scores[read] * TOP)
    found = []
    for rows in draws:
        unsafe = cells[rows[table.unsafe[rows]]]
        may = allowed(method, len(unsafe), len(rows), xi, delta)
        found.append(fires_at(unsafe, may))
    return found


def fires_at(unsafe: NDArray[np.int64], may: int) -> float:
    """The largest threshold that misses at most so many of the unsafe rollouts, given by cells."""
    if may < 0:
        return -np.inf
    if len(unsafe) <= may:
        return np.inf
    cell = int(np.partition(unsafe, may)[may])
    return cell / TOP if cell >= 0 else -np.inf


@cache
def allowed(method: str, unsafe: int, n: int, xi: float, delta: float) -> int:
    """How many unsafe rollouts may be missed; -1 if nothing can be certified."""
    if method == "exact":
        return allowed_events(n, rate=xi, delta=delta)
    if method == "product":
        return largest_passing(
            lambda misses: bool(unsafe_bound(misses, unsafe, n, delta=delta) <= xi), unsafe
        )
    # A quotient of integers is rounded once, as xi was when it was written.
    return largest_passing(lambda misses: misses / n <= xi, n)


def threshold(method: str, table: Table, *, xi: float, delta: float) -> float:
    """The danger at which the method fires, from calibration rollouts."""
    if method == "naive":
        return NAIVE_THRESHOLD
    if method == "xi-naive":
        return xi
    if method == "histogram":
        return observed_miss_threshold(table.tally, xi=xi)
    if method == "exact":
        return certify_shield(data=table.tally, xi=xi, delta=delta).threshold
    return shield_threshold(table.final_score, table.unsafe, xi=xi, delta=delta)
