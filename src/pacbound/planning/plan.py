"""What samples of several sizes are likely to give: numbers, and the same in words.

A plan is an estimate and says so wherever it is printed.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass

from pacbound.documents import Json, encode_float


@dataclass(frozen=True)
class PlanPoint:
    """What samples of one size came to, over all draws from the pilot; descriptive.

    Attributes
    ----------
    rows : int
        The size of each sample, in rows (rollouts).
    labels : float
        How many of them need a label, on average.
    cost : float or None
        What these labels cost; None if no `label_cost` was given.
    certified : float
        The share of the samples that were certified, not refused.
    reached : float
        The share that was certified and met the goal, if there is one. Of a replacement without a
        goal the median chance to be certified over what the pilot allows, or that at its own rates
        if it is larger.
    value : float
        The measure, on average: the exit rate of a cascade (0 if refused), the mean width of
        intervals, the share of rollouts that the shield stops (1 if refused).
    low, high : float
        The measure in the tenth of the samples where it is lowest, and where it is highest: one in
        ten is at or below `low`, and one in ten at or above `high`.
    thresholds : tuple of float
        The median threshold of each exit, or of the shield; empty for a calibration.
    coarse : bool
        Whether a quicker test stood in for the one that certifies, where that is slow; it is a
        little less generous.

    Examples
    --------
    >>> point = PlanPoint(1000, 200.0, None, 1.0, 1.0, 0.5, 0.45, 0.55, (0.9,), False)
    >>> point.rows, point.value
    (1000, 0.5)
    """

    rows: int
    labels: float
    cost: float | None
    certified: float
    reached: float
    value: float
    low: float
    high: float
    thresholds: tuple[float, ...]
    coarse: bool


@dataclass(frozen=True)
class PilotPlan:
    """What samples of several sizes are likely to give, estimated from a pilot.

    Nothing here is guaranteed. `plan_from_pilot` makes it.

    Attributes
    ----------
    kind : str
        The question: "abstention", "calibration", "cascade", "recall" or "shield"; or
        "false-alarms", or "differ".
    subject : str
        The same as a sentence has it: "a cascade".
    measure : str
        What `value` of the points measures.
    unit : str
        What is counted: "rows" or "rollouts".
    larger : bool
        Whether a larger value is better.
    pilot_rows : int
        The size of the pilot.
    xi : float or None
        The rate that is to be certified; None for a calibration and a recall.
    delta : float
        The chance that the certificate will be wrong.
    goal : float or None
        The value that was asked for.
    power : float
        The share of samples that must be certified and meet the goal.
    draws : int
        The number of samples drawn for each size.
    points : tuple of PlanPoint
        A point for each size, in rising order.
    needed : PlanPoint or None
        The smallest size found that is enough; None if the largest of `points` is not, or if there
        is nothing to be reached: a calibration without a goal.
    target : float or None
        For a recall: the share of the positives that must be flagged.
    allows : tuple or None
        For a replacement without a goal: how many rows are enough for a tenth of the rates that the
        pilot allows, and for nine tenths; None for more than were tried.

    Examples
    --------
    >>> import numpy as np
    >>> from pacbound import Tally, plan_from_pilot
    >>> rng = np.random.default_rng(0)
    >>> unsafe = rng.random(500) < 0.1
    >>> scores = np.where(unsafe, rng.beta(8, 2, size=500), rng.beta(1, 8, size=500))
    >>> plan = plan_from_pilot(
    ...     Tally.count("shield", scores, unsafe), xi=0.05, delta=0.01, goal=0.2
    ... )
    >>> plan.measure, plan.needed is not None
    ('intervention rate', True)
    """

    kind: str
    subject: str
    measure: str
    unit: str
    larger: bool
    pilot_rows: int
    xi: float | None
    delta: float
    goal: float | None
    power: float
    draws: int
    points: tuple[PlanPoint, ...]
    needed: PlanPoint | None
    target: float | None = None
    allows: tuple[int | None, int | None] | None = None

    @property
    def aims(self) -> bool:
        """Whether there is something to be reached: a rate to be certified, or a goal."""
        return not (self.xi is None and self.target is None and self.goal is None)

    @property
    def claim(self) -> str:
        """What is to be certified, in words: "xi = 0.02, delta = 0.01"."""
        asked = {"xi": self.xi, "target": self.target, "delta": self.delta}
        return ", ".join(f"{name} = {rate:g}" for name, rate in asked.items() if rate is not None)

    def to_dict(self) -> dict[str, Json]:
        """The plan for programs; infinite thresholds are the texts "+inf" and "-inf"."""
        return {
            "status": "estimate",
            **asdict(self),
            "points": [_written(point) for point in self.points],
            "needed": None if self.needed is None else _written(self.needed),
        }

    def summary(self) -> str:
        """The plan in words, with a line for each size."""
        return "\n".join(
            [
                f"Plan for {self.subject}, {self.claim}, from a pilot of "
                f"{self.pilot_rows:,} {self.unit}.",
                f"Estimated from {self.draws} draws of each size: nothing here is guaranteed.",
                "",
                *self._table(),
                "",
                self._verdict(),
                *self._notes(),
            ]
        )

    def _table(self) -> Iterator[str]:
        wide = len(self.measure) + 2
        cost = "" if self.points[0].cost is None else f"{'cost':>11}"
        thresholds = "threshold" if self.points[0].thresholds else ""
        yield (
            f"{self.unit:>11}{'labels':>10}{cost}{'certified':>11}{self.measure:>{wide}}"
            f"  {'10 to 90 %':<18}{thresholds}"
        ).rstrip()
        for point in self.points:
            marked = f"{point.rows:,}{'*' if point.coarse else ' '}"
            cost = "" if point.cost is None else f"{point.cost:>11,.2f}"
            spread = f"{point.low:.4f} to {point.high:.4f}"
            thresholds = ", ".join(f"{threshold:.4f}" for threshold in point.thresholds)
            yield (
                f"{marked:>12}{point.labels:>9,.0f}{cost}{point.certified:>11.0%}"
                f"{point.value:>{wide}.4f}  {spread:<18}{thresholds}"
            ).rstrip()

    def _wanted(self) -> str:
        side = "at least" if self.larger else "at most"
        article = "an" if self.measure[0] in "aeiou" else "a"
        goal = [f"have {article} {self.measure} of {side} {self.goal:g}"] if self.goal else []
        return " and ".join([*(["are certified"] if self.xi or self.target else []), *goal])

    def _verdict(self) -> str:
        if not self.aims:
            return f"Name a goal for the {self.measure} to be told how many {self.unit} reach it."
        if self.needed is None:
            return (
                f"No size up to {self.points[-1].rows:,} {self.unit} is enough: of the draws, "
                f"fewer than {self.power:.0%} {self._wanted()}."
            )
        cost = "" if self.needed.cost is None else f", at a cost of {self.needed.cost:,.2f}"
        labels = f"about {self.needed.labels:,.0f} of them with a label"
        if self.unit == "clusters":
            labels = f"with about {self.needed.labels:,.0f} labels"
        enough = f"About {self.needed.rows:,} {self.unit} are enough, {labels}{cost}: "
        if self.allows is None:
            return f"{enough}of the draws, at least {self.power:.0%} {self._wanted()}."
        low, high = (f"{rows:,}" if rows else "more than were tried" for rows in self.allows)
        return (
            f"{enough}at the rates of the pilot, at least {self.power:.0%} {self._wanted()}. It is "
            f"a median: for a tenth of the rates that such a pilot allows {low} {self.unit} are "
            f"enough, for nine tenths {high}."
        )

    def _notes(self) -> Iterator[str]:
        if any(point.coarse for point in self.points):
            yield (
                "* judged by a quicker, coarser test: certifying so many rows will give a little "
                "more."
            )
        yield (
            f"Fix the number of {self.unit} before you look at them, and leave those of the "
            "pilot out."
        )


def _written(point: PlanPoint) -> dict[str, Json]:
    return {**asdict(point), "thresholds": [encode_float(each) for each in point.thresholds]}
