"""Every verb that certifies, on the tables that ship with the package; and what is computed around
them: bounds, plans, draws, monitors.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial
from typing import Any

import numpy as np

from pacbound import (
    Monitor,
    Tally,
    answer_batch,
    binomial_interval,
    binomial_lower,
    binomial_upper,
    calibrate,
    certified_cost,
    certify_abstention,
    certify_cascade,
    certify_false_alarms,
    certify_recall,
    certify_shield,
    certify_together,
    design_cascade,
    plan_from_pilot,
    planned_looks,
    rows_to_label,
    trials_needed,
)
from pacbound.calibration import expected_calibration_error, induced_calibration_error
from pacbound.claims.certificate import Certificate
from pacbound.data import fashion_mnist, indoor_navigation
from pacbound.tally import equal_mass_edges

ROWS = 4_000
"""Enough to certify, few enough that an exact test is cheap."""


class Images:
    """The first images of the shipped table, as two models see them."""

    def __init__(self) -> None:
        table = fashion_mnist()
        self.confidence, self.slow_confidence = table.confidence_fast, table.confidence_slow
        self.fast, self.slow, self.label = (
            column[:ROWS].astype(int)
            for column in (table.prediction_fast, table.prediction_slow, table.label)
        )
        self.confidence, self.slow_confidence = self.confidence[:ROWS], self.slow_confidence[:ROWS]
        self.correct = self.fast == self.label
        self.predictions = np.column_stack([self.fast, self.slow])
        self.three = np.column_stack([self.fast, self.slow, self.label])
        self.confidences = np.column_stack([self.confidence, self.slow_confidence])
        self.shoes = np.isin(self.label, (5, 7, 9))
        self.shoe_score = np.where(np.isin(self.fast, (5, 7, 9)), 0.5, 0.0) + self.confidence / 2
        self.kind = np.where(self.shoes, "shoe", "clothes")
        self.patient = np.arange(ROWS) // 4


images = cache(Images)


@cache
def rollouts() -> dict[str, Any]:
    table = indoor_navigation()
    return {"score": table.score[:ROWS], "unsafe": table.unsafe[:ROWS]}


def _calibrated(**options: Any) -> Certificate:
    return calibrate(images().confidence, images().correct, delta=0.01, **options)


def _abstained(**options: Any) -> Certificate:
    return certify_abstention(
        images().confidence, images().correct, delta=0.01, **{"xi": 0.05, **options}
    )


def _recalled(**options: Any) -> Certificate:
    return certify_recall(
        images().shoe_score, images().shoes, delta=0.01, **{"target": 0.97, **options}
    )


def _alarmed(**options: Any) -> Certificate:
    return certify_false_alarms(
        images().shoe_score, images().shoes, delta=0.01, **{"xi": 0.02, **options}
    )


def _cascaded(**options: Any) -> Any:
    found = {"xi": 0.02, "label": images().label, **options}
    return certify_cascade(images().confidence, images().predictions, delta=0.01, **found)


def _cascaded_three(**options: Any) -> Any:
    return certify_cascade(
        images().confidences, images().three, images().label, xi=0.03, delta=0.01, **options
    )


def _shielded(**options: Any) -> Certificate:
    return certify_shield(**rollouts(), delta=0.01, **{"xi": 0.05, **options})


def _after_200_labels() -> Certificate:
    label = np.full(len(images().label), np.nan)
    rows: Any = {"confidence": images().confidence, "prediction": images().predictions}
    asked: Any = {"xi": 0.02, "delta": 0.01}
    while np.isfinite(label).sum() < 200:
        found = rows_to_label(**rows, label=label, count=50, **asked)
        if not len(found):
            break
        label[found] = images().label[found]
    return certify_cascade(**rows, label=label, **asked)


def _batch(**options: Any) -> Any:
    return answer_batch(
        images().confidence,
        images().fast,
        lambda rows: images().slow[rows],
        xi=0.05,
        delta=0.05,
        answers=None,
        key=np.random.default_rng(3).bytes(16).hex(),
        **options,
    ).certificate


def _designed() -> Certificate:
    models = images()
    return design_cascade(
        np.column_stack([models.confidences, np.ones(ROWS)]),
        models.three,
        models.label,
        costs=[1.0, 4.0, 20.0],
        xi=0.05,
        delta=0.01,
        seed=1,
    ).certificate


def _together() -> Certificate:
    return certify_together(
        {
            "brake": partial(certify_shield, **rollouts(), xi=0.05),
            "flag": partial(certify_recall, images().shoe_score, images().shoes, target=0.97),
        },
        delta=0.02,
    )


CASES: dict[str, Callable[[], Certificate]] = {
    "calibrate": _calibrated,
    "calibrate-bonferroni": partial(_calibrated, correction="bonferroni"),
    "calibrate-clusters": lambda: _calibrated(clusters=images().patient, seed=5),
    "calibrate-edges": partial(_calibrated, edges=[0, 0.5, 0.9, 0.99, 1]),
    "calibrate-equal-mass": partial(_calibrated, n_bins=8, edges="equal-mass"),
    "calibrate-groups": lambda: _calibrated(groups=images().kind, n_bins=5),
    "calibrate-lower": partial(_calibrated, side="lower"),
    "calibrate-weights": lambda: _calibrated(
        weights=np.where(images().shoes, 1.0, 0.25), weight_bound=1.0, seed=5
    ),
    "abstention": _abstained,
    "abstention-groups": lambda: _abstained(groups=images().kind),
    "abstention-declared": partial(_abstained, first_threshold=0.99),
    "abstention-refused": partial(_abstained, xi=0.0001),
    "recall": _recalled,
    "recall-clusters": lambda: _recalled(clusters=images().patient, seed=5, target=0.95),
    "recall-looks": partial(_recalled, looks=(600, 1_207, 2_000)),
    "recall-refused": partial(_recalled, target=0.9999),
    "false-alarms": _alarmed,
    "false-alarms-refused": partial(_alarmed, xi=0.0001),
    "cascade-exact": _cascaded,
    "cascade-no-loss": partial(_cascaded, xi=0.0),
    "cascade-no-labels": partial(_cascaded, label=None),
    "cascade-refused": partial(_cascaded, xi=0.0005),
    "cascade-groups-common": lambda: _cascaded(groups=images().kind, xi=0.05),
    "cascade-groups-own": lambda: _cascaded(groups=images().kind, xi=0.05, group_thresholds="own"),
    "cascade-paths": partial(_cascaded_three, costs=[1.0, 4.0, 20.0]),
    "labels-that-matter": _after_200_labels,
    "batch": _batch,
    "batch-two-looks": partial(_batch, looks=2),
    "batch-whole-ties": partial(_batch, whole_ties=True),
    "design": _designed,
    "shield": _shielded,
    "shield-among-unsafe": partial(_shielded, rate="among-unsafe"),
    "shield-looks": partial(_shielded, looks=(1_000, 2_000, 4_000)),
    "shield-refused": partial(_shielded, xi=0.0005),
    "together": _together,
}


def _bounds() -> Any:
    trials = np.array([1, 59, 1000, 35_505, 10**6, 10**10, 10**12])
    successes = np.array([0, 0, 31, 999, 250_000, 3, 5 * 10**11])
    return {
        f"{delta:g}": {
            "upper": binomial_upper(successes, trials, delta=delta).tolist(),
            "lower": binomial_lower(successes, trials, delta=delta).tolist(),
            "interval": np.stack(binomial_interval(successes, trials, delta=delta)).tolist(),
        }
        for delta in (0.05, 1e-3, 1e-12, 1e-250)
    }


def _monitored() -> Any:
    watch = Monitor(_abstained(), delta=0.01)
    clock = Monitor(_abstained(), delta=0.01, false_alarms=10_000)
    rows = {"confidence": np.ones(3_000), "correct": np.arange(3_000) % 9 > 0}
    for each in (watch, clock):
        each.update(rows)
    return {
        name: {
            "alarms": [alarm.label for alarm in each.alarms],
            "evidence": each.evidence,
            "limit": each.limit,
        }
        for name, each in (("ever", watch), ("per", clock))
    }


def _planned_from_a_pilot() -> Any:
    tally = Tally.count("recall", score=images().shoe_score[:600], positive=images().shoes[:600])
    plan = plan_from_pilot(
        tally, target=0.95, delta=0.05, sizes=[400, 1_600], draws=20, rng=np.random.default_rng(2)
    )
    return [
        [point.rows, point.certified, point.value, point.low, point.high] for point in plan.points
    ]


def _cost() -> Any:
    certificate = _cascaded(costs=[1.0, 8.0])
    return [
        certified_cost(certificate, images().slow_confidence, delta=0.01).upper,
    ]


def _looks() -> Any:
    plan = planned_looks(0.02, delta=0.01, looks=[500, 1_000, 1_500, 2_000])
    allowed = [plan.allowed(trials) for trials in plan.looks]
    return {"allowed": allowed, "expected": plan.expected_labels(0.01)}


def _metrics() -> Any:
    confidence, correct = images().confidence, images().correct
    certificate = calibrate(confidence, correct, delta=0.01)
    held = certificate.interval(confidence), certificate.estimate(confidence)
    induced = induced_calibration_error(*held, correct)
    return [expected_calibration_error(confidence, correct), *induced]


NUMBERS: dict[str, Callable[[], Any]] = {
    "binomial-bounds": _bounds,
    "calibration-errors": _metrics,
    "certified-cost": _cost,
    "equal-mass-edges": lambda: equal_mass_edges(images().confidence, n_bins=6).tolist(),
    "monitor": _monitored,
    "plan-from-pilot": _planned_from_a_pilot,
    "planned-looks": _looks,
    "trials-needed": lambda: [
        list(trials_needed(0.05, 0.025, delta=0.01)),
        list(trials_needed(0.02, 0.01, delta=1e-3)),
        list(trials_needed(0.01, 0.0, delta=1e-3)),
    ],
}
