"""How many rows and labels a claim is likely to take, and what it will be worth, from a pilot.

A pilot is a small labelled sample. For each size the pilot is resampled many times, each sample is
certified as the real one will be, and what came out is averaged. Each time the pilot itself is
resampled first: a small pilot could well have come out otherwise, and the spread shows it. What the
pilot never saw, no resampling shows. So a plan is an estimate, and only the certificate of the real
sample guarantees anything.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from math import ceil, floor, inf, log10
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pacbound.claims import claim_of, claims_of
from pacbound.errors import InvalidTypeError, InvalidValueError
from pacbound.forms import Number
from pacbound.measure import Measure
from pacbound.planning.plan import PilotPlan, PlanPoint
from pacbound.sources.batches import Progress, require_progress
from pacbound.stats.arguments import (
    claimed_delta,
    generator,
    is_one_of,
    required_share,
    whole_number,
    whole_numbers,
)
from pacbound.stats.paired import positive_rate
from pacbound.tally import Tally
from pacbound.tally.questions.question import OVERLAPPING, subject_of

# Larger samples are not planned.
MOST_ROWS = 10**9

_SIZES = 10
# If no sizes are given, there are so many, up to at least so many rows.
_REACH = 20_000

# How often the gap between two sizes is halved to find the one that is needed.
_HALVINGS = 4

# If no sizes are given and the rates of the pilot would do, sizes are doubled up to so many rows.
_FARTHEST = 200_000

_COST = Number("the cost of a label", 0.0, inf, "[)")
_POWER = Number("the chance of success", 0.0, 1.0)


def plan_from_pilot(  # noqa: PLR0913
    pilot: Tally,
    *,
    delta: float,
    xi: float | None = None,
    target: float | None = None,
    claim: str | None = None,
    goal: float | None = None,
    sizes: ArrayLike | None = None,
    label_cost: float | None = None,
    power: float = 0.9,
    draws: int = 50,
    rng: np.random.Generator | None = None,
    progress: Progress | None = None,
) -> PilotPlan:
    """How many rows and labels it will take to certify, estimated by resampling a pilot.

    Nothing is guaranteed: the answer is as good as the pilot. A pilot of m rows says little about
    rates far below 1/m. It must be drawn as the sample will be, and its rows are left out of the
    sample, since they chose its size. A pilot that was counted with `clusters` plans numbers of
    clusters: each of them gives what a random cluster of the pilot gives.

    Samples are certified by the function for the question that the pilot was counted for:
    `calibrate`, `certify_abstention`, `certify_cascade`, `certify_recall`, or `certify_shield` at
    the rate of all rollouts; or as `claim` says.

    Parameters
    ----------
    pilot
        The tally of the pilot, of at least two outcomes: `Tally.count` counts
        it. It says which question is planned for.
    delta
        The chance that the certificate may be wrong.
    xi
        The rate that is to be certified, 0 < xi < 1; None for a calibration, which has none, and
        for a recall.
    target
        The share of the positives that must be flagged (recall), or of the flagged rows that must
        be positive (precision).
    claim
        "false-alarms", for the pilot of a recall or a shield whose false alarms are to be
        certified, as by `certify_false_alarms`; "precision", for the pilot of a recall whose
        precision is to be certified, as by `certify_precision`; "differ", for the pilot of a
        cascade of which it is to be certified that few answers differ, as by
        `certify_cascade(..., claim="differ")`. Its pilot is counted without labels.
    goal
        What the certificate should come to: an exit rate of at least so much (cascade), at least
        such a share of rows answered (abstention), intervals at most so wide on average over the
        rows (calibration), at most such a share of rows flagged (recall) or of rollouts stopped
        (shield), at least such a share of positives that raise an alarm (false alarms).
        By default it is enough to be certified.
    sizes
        The numbers of rows to try. By default ten, from the fewest that can be certified on.
    label_cost
        What a label costs, in any unit. A cascade needs labels only where its models differ.
    power
        The share of the samples that must be certified and meet the goal for a size to be enough,
        0 < power < 1.
    draws
        How many samples of each size are drawn, at least 10.
    rng
        Where randomness comes from. By default a generator with seed 0, so that the same pilot
        gives the same plan.
    progress
        Called with the share that is done, from 0 to 1.

    Returns
    -------
    PilotPlan
        A point for each size, and the smallest that is enough; `needed` is None if the largest is
        not. `summary()` says it in words. Of a replacement without a goal it is enough for half of
        the rates that the pilot allows, or for the pilot's own, and `allows` says for how many rows
        a tenth and nine tenths of them are.

    Raises
    ------
    InvalidValueError
        If the pilot is empty, has one outcome only, models that never differ, or groups that
        overlap; if `xi` or `target` is missing, not between 0 and 1, or says nothing about the
        question; if a number is out of its range.
    InvalidTypeError
        If the pilot is not a tally, or a number is not a number.

    Examples
    --------
    >>> from pacbound.data import fashion_mnist
    >>> table = fashion_mnist()
    >>> from pacbound.claims.cascade import CLAIM
    >>> pilot = Tally.count(
    ...     CLAIM.question,
    ...     confidence=table.confidence_fast[:1000],
    ...     prediction=np.column_stack([table.prediction_fast, table.prediction_slow])[:1000],
    ...     label=table.label[:1000],
    ... )
    >>> plan = plan_from_pilot(pilot, xi=0.02, delta=0.01, sizes=[1000, 4000], goal=0.5)
    >>> [(point.rows, round(point.labels, -1), round(point.value, 1)) for point in plan.points]
    [(1000, 160.0, 0.6), (4000, 640.0, 0.7)]
    """
    require_progress(progress)
    level = claimed_delta(delta)
    measure, kind = _checked_measure(pilot, claim), claim or pilot.kind
    subject = measure.subject or subject_of(kind)
    rate = _checked_rate({"xi": xi, "target": target}, subject, measure)
    rng = np.random.default_rng(0) if rng is None else generator(rng)
    wanted = Number(f"a goal for the {measure.name}", 0.0, 1.0, "(]")
    planner = _Planner(
        pilot=pilot,
        measure=measure,
        rate=rate,
        delta=level,
        goal=None if goal is None else wanted.check(goal, "goal"),
        label_cost=None if label_cost is None else _COST.check(label_cost, "label_cost"),
        power=_POWER.check(power, "power"),
        seeds=rng.integers(2**63, size=whole_number(draws, "draws", least=10)),
    )
    chosen = _usual_sizes(measure, pilot, rate, level) if sizes is None else _checked_sizes(sizes)
    tell = progress or (lambda _: None)
    points = []
    # Where clusters are drawn from, sizes are numbers of clusters.
    for rows in chosen:
        points.append(planner.point(rows))
        tell(len(points) / (len(chosen) + _HALVINGS))
    if sizes is None and points[-1].reached < planner.power and planner.would_do(_FARTHEST):
        while points[-1].reached < planner.power:
            points.append(planner.point(min(2 * points[-1].rows, _FARTHEST)))
    needed = planner.needed(points)
    tell(1.0)
    return PilotPlan(
        kind=kind,
        subject=subject,
        measure=measure.name,
        unit=measure.unit,
        larger=measure.larger,
        pilot_rows=_size_of(pilot),
        xi=rate if measure.asked == "xi" else None,
        target=rate if measure.asked == "target" else None,
        delta=level,
        goal=planner.goal,
        power=planner.power,
        draws=len(planner.seeds),
        points=tuple(points),
        needed=needed,
        allows=planner.allows(),
    )


@dataclass(frozen=True, eq=False)
class _Planner:
    """Draws samples from a pilot and judges them.

    Each seed makes one draw of every size, and all of these from the same redrawn pilot, so that
    sizes differ by what more rows bring and less by luck.
    """

    pilot: Tally
    measure: Measure
    rate: float | None
    delta: float
    goal: float | None
    label_cost: float | None
    power: float
    seeds: NDArray[np.int64]
    # The chances of the redrawn pilots, and of the pilot itself, at each size.
    exact: dict[int, Any] = field(default_factory=dict)

    def point(self, rows: int) -> PlanPoint:
        """What samples of so many rows come to."""
        drawn = [self._drawn(rows, np.random.default_rng(seed)) for seed in self.seeds]
        samples = [self.measure.certify(tally, self.rate, self.delta) for tally in drawn]
        labels = float(np.mean([_labels(self.measure, tally) for tally in drawn]))
        values = np.array([sample.value for sample in samples])
        certified = np.array([sample.certified for sample in samples])
        reached = float((certified * self._meets(values)).mean())
        # A chance in place of one draw: what is left to luck is the pilot alone, and not its worst.
        exact = self._chances(rows, self.seeds)
        if exact is not None:
            self.exact[rows], certified = exact, exact[:-1]
            reached = max(_quantile(certified, 0.5), float(exact[-1]))
        return PlanPoint(
            rows=rows,
            labels=labels,
            cost=None if self.label_cost is None else labels * self.label_cost,
            certified=float(certified.mean()),
            reached=reached,
            value=float(values.mean()),
            low=_quantile(values, 0.1),
            high=_quantile(values, 0.9),
            thresholds=tuple(
                _quantile(np.array(each), 0.5)
                for each in zip(*(sample.thresholds for sample in samples), strict=True)
            ),
            coarse=samples[0].coarse,
        )

    def _chances(self, rows: int, seeds: Iterable[np.int64]) -> Any:
        """The chance to certify so many rows from each pilot that is drawn anew, and from the pilot
        as it is; None where only samples show it.
        """
        if self.goal is not None or self.pilot.drawn is not None:
            return None
        counts, rngs = self.pilot.counts, map(np.random.default_rng, seeds)
        redrawn = (rng.multinomial(counts.sum(), counts.ravel() / counts.sum()) for rng in rngs)
        laws = [replace(self.pilot, counts=each.reshape(counts.shape)) for each in redrawn]
        return self.measure.chances([*laws, self.pilot], rows, self.rate, self.delta)

    def would_do(self, rows: int) -> bool:
        """Whether so many rows are enough at the rates of the pilot itself, if that is known."""
        exact = self._chances(rows, ())
        return exact is not None and bool(exact[0] >= self.power)

    def allows(self) -> tuple[int | None, int | None] | None:
        """How many rows are enough for a tenth of the redrawn pilots, and for nine tenths; None for
        more than were tried, or where only samples show it.
        """
        if not self.exact:
            return None
        sizes = sorted(self.exact)
        chances = np.array([self.exact[rows][:-1] for rows in sizes])
        needed = np.array([_crossing(sizes, each, self.power) for each in chances.T])
        found = _quantile(needed, 0.1), _quantile(needed, 0.9)
        low, high = (_rounded(rows) if rows < inf else None for rows in found)
        return low, high

    def needed(self, points: list[PlanPoint]) -> PlanPoint | None:
        """The smallest size found from which on all that were tried are enough."""
        if self.rate is None and self.goal is None:
            return None
        short = [place for place, point in enumerate(points) if point.reached < self.power]
        first = short[-1] + 1 if short else 0
        if first == len(points):
            return None
        return self._between(points[first - 1], points[first]) if first else points[0]

    def _between(self, low: PlanPoint, high: PlanPoint) -> PlanPoint:
        """A size that is enough, near one that is not; `low` is not, `high` is."""
        for _ in range(_HALVINGS):
            middle = _rounded((low.rows * high.rows) ** 0.5)
            if not low.rows < middle < high.rows:
                break
            point = self.point(middle)
            low, high = (low, point) if point.reached >= self.power else (point, high)
        return high

    def _meets(self, values: Any) -> Any:
        if self.goal is None:
            return np.ones(values.shape, dtype=bool)
        return values >= self.goal if self.measure.larger else values <= self.goal

    def _drawn(self, rows: int, rng: np.random.Generator) -> Tally:
        """A sample of so many rows, or clusters, from a pilot that is itself drawn anew."""
        drawn, counts = self.pilot.drawn, np.zeros_like(self.pilot.counts)
        for cells, columns, size in _parts(self.pilot):
            where = np.ix_(cells, columns)
            wanted = size * rows // _size_of(self.pilot)
            counts[where] = _resampled(self.pilot.counts[where], size, wanted, rng)
        if not counts.any():
            # No cluster gave a row, and one row alone is refused, too.
            counts[np.unravel_index(int(self.pilot.counts.argmax()), counts.shape)] = 1
        hit = counts.any(axis=1)
        if _is_clustered(self.pilot) and drawn is not None:
            scale = rows / drawn.units
            among = tuple((name, round(many * scale)) for name, many in drawn.among)
            others = round(drawn.others * scale) if among else 0
            before = sum(many for _, many in among) + others if among else round(drawn.rows * scale)
            several = None if drawn.spanning is None else round(drawn.spanning * scale)
            drawn = replace(drawn, rows=before, units=rows, among=among, spanning=several)
        return replace(
            self.pilot,
            rows=int(counts.sum()),
            cells=self.pilot.cells[hit],
            counts=counts[hit],
            sources=frozenset(),
            drawn=drawn,
        )


def _crossing(sizes: list[int], chances: NDArray[np.float64], power: float) -> float:
    """Where chances begin to be at least `power`, by a line between the logarithms of two sizes;
    infinite if the last is not.
    """
    short = np.flatnonzero(chances < power)
    last = int(short[-1]) if short.size else -1
    if last + 1 == len(sizes):
        return inf
    if last < 0:
        return float(sizes[0])
    share = (power - chances[last]) / (chances[last + 1] - chances[last])
    return float(sizes[last] * (sizes[last + 1] / sizes[last]) ** share)


def _is_clustered(pilot: Tally) -> bool:
    return pilot.drawn is not None and pilot.drawn.by == "clusters"


def _size_of(pilot: Tally) -> int:
    """The number of rows, or of clusters where rows were drawn from them."""
    found = pilot.drawn.units if _is_clustered(pilot) and pilot.drawn is not None else pilot.rows
    return int(found)


def _parts(pilot: Tally) -> list[tuple[NDArray[np.int64], NDArray[np.int64], int]]:
    """The cells and outcomes that are drawn together, by their places, and from how many: at most
    one row of a cluster in each group or bin, of each outcome that was drawn among; all rows of the
    others.
    """
    drawn, every = pilot.drawn, np.arange(len(pilot.outcomes))
    cells = np.arange(len(pilot.cells))
    if drawn is None:
        return [(cells, every, _size_of(pilot))]
    parts = [cells]
    if drawn.apart:
        # How rows of one cluster in several groups go together counts do not say.
        keys = pilot.cells if "bin" in drawn.each else pilot.cells[:, :1]
        _, own = np.unique(keys, axis=0, return_inverse=True)
        parts = [cells[own.ravel() == place] for place in range(own.max(initial=-1) + 1)]
    if not drawn.among:
        return [(part, every, _size_of(pilot)) for part in parts]
    among = [pilot.outcomes.index(name) for name, _ in drawn.among]
    others = [place for place in every.tolist() if place not in among]
    return [
        *((part, np.array([place]), drawn.units) for part in parts for place in among),
        *([(cells, np.array(others), drawn.others)] if others else []),
    ]


def _resampled(
    counts: NDArray[np.int64], size: int, wanted: int, rng: np.random.Generator
) -> NDArray[np.int64]:
    """So many draws from `size` that gave these counts, or nothing, and were drawn anew."""
    found = np.zeros_like(counts)
    where = np.nonzero(counts)
    seen = counts[where]
    nothing = size - int(seen.sum())
    # No place for nothing where there is none: it would make other draws of the same seed.
    chances = np.append(seen, nothing) if nothing > 0 else seen
    if chances.any():
        again = rng.multinomial(int(chances.sum()), chances / chances.sum())
        found[where] = rng.multinomial(wanted, again / again.sum())[: seen.size]
    return found


def _labels(measure: Measure, sample: Tally) -> int:
    """How many rows need a label: of clusters that are drawn among an outcome, all."""
    among = sample.drawn is not None and sample.drawn.among
    return sample.drawn.rows if among and sample.drawn is not None else measure.labels(sample)


def _quantile(values: NDArray[np.float64], share: float) -> float:
    """The least value that at least a `share` of the values does not exceed; never an average of
    two, which may be infinite.
    """
    return float(np.sort(values)[ceil(share * values.size - 1e-9) - 1])


def _usual_sizes(measure: Measure, pilot: Tally, rate: Any, delta: float) -> list[int]:
    size = _size_of(pilot)
    least = ceil(measure.least(pilot, rate, delta) * size / pilot.rows)
    most = min(max(_REACH, 10 * size, 20 * least), MOST_ROWS)
    if least >= most:
        other = "smaller target" if measure.asked == "target" else "larger xi"
        raise InvalidValueError(
            f"{measure.asked}={rate} takes at least {least:,} {measure.unit} to certify, and more "
            f"than {MOST_ROWS:,} are not planned. Allow a {other}."
        )
    return sorted({_rounded(rows) for rows in np.geomspace(least, most, _SIZES)})


def _rounded(rows: float) -> int:
    """`rows` rounded up to two digits: an estimate has no more."""
    unit = 10 ** max(floor(log10(rows)) - 1, 0)
    return int(ceil(rows * (1.0 - 1e-12) / unit) * unit)


def measures_of(question: str) -> dict[str, Measure]:
    """What a pilot of the question can be planned for, by name; the first if none is named."""
    claims = map(claim_of, claims_of(question))
    return {name: measure for claim in claims for name, measure in claim.measures.items()}


def _checked_measure(pilot: Any, claim: str | None) -> Measure:
    if not isinstance(pilot, Tally):
        raise InvalidTypeError(
            f"pilot is of type {type(pilot).__name__}: expected a Tally. Count the pilot with "
            "Tally.count."
        )
    found = measures_of(pilot.kind)
    if not found:
        raise InvalidValueError(f"{pilot!r} is for {subject_of(pilot.kind)}, which is not planned.")
    if pilot.rows == 0:
        raise InvalidValueError("The pilot has no rows: nothing can be planned from it.")
    if pilot.scope in OVERLAPPING:
        raise InvalidValueError(
            "The pilot's groups overlap, and from counts alone it cannot be seen how: plan from "
            "one group, or from all rows."
        )
    if claim is not None and not is_one_of(claim, found):
        raise InvalidValueError(
            f"claim={claim!r} is not what a pilot of {subject_of(pilot.kind)} can be planned "
            f"for: leave it out, or pass one of {', '.join(map(repr, found))}."
        )
    first = next(iter(found))
    unit = "clusters" if _is_clustered(pilot) else found[first].unit
    measure = replace(found[claim or first], unit=unit)
    why = measure.silent(pilot)
    if why is not None:
        raise InvalidValueError(
            f"The pilot of {pilot.rows:,} {measure.unit} says too little: {why}."
        )
    return measure


def _checked_rate(given: Mapping[str, Any], subject: str, measure: Measure) -> float | None:
    """The rate that the question asks for, and no other."""
    for name, value in given.items():
        if value is not None and name != measure.asked:
            raise InvalidValueError(f"{name}={value} says nothing about {subject}: leave it out.")
    if measure.asked is None:
        return None
    value = given[measure.asked]
    if value is None:
        what = "allowed" if measure.asked == "xi" else "required"
        raise InvalidValueError(
            f"{measure.asked} is missing: {subject} is planned for the rate that is {what}."
        )
    return positive_rate(value) if measure.asked == "xi" else required_share(value)


def _checked_sizes(sizes: Any) -> list[int]:
    values = whole_numbers(sizes, "sizes", least=1)
    if values.ndim != 1 or not values.size or values.max() > MOST_ROWS:
        raise InvalidValueError(
            f"sizes={sizes!r} are not numbers of rows: expected a list such as [1000, 5000], up to "
            f"{MOST_ROWS:,}."
        )
    return sorted(set(values.tolist()))
