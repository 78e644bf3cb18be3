"""One certificate of each kind and verdict, small enough to change in every place."""

from collections.abc import Callable
from dataclasses import replace
from functools import cache, partial
from typing import Any, Literal, Unpack

import numpy as np
import pytest
from numpy.typing import NDArray
from tests.kinds import KINDS
from tests.products import standing_for

from pacbound import (
    Tally,
    answer_batch,
    calibrate,
    certify_abstention,
    certify_alarm_range,
    certify_false_alarms,
    certify_recall,
    certify_shield,
    certify_together,
)
from pacbound.claims.cascade import certify_cascade, certify_declared
from pacbound.claims.certificate import Certificate
from pacbound.procedures.cascade_front import Declared
from pacbound.tally.row_options import RowOptions


def _calibration() -> Certificate:
    rng = np.random.default_rng(1)
    confidence = rng.beta(6, 1, size=400)
    return calibrate(confidence, rng.random(400) < confidence, delta=0.01, n_bins=5)


def _grouped() -> Certificate:
    rng = np.random.default_rng(2)
    confidence = rng.beta(6, 1, size=400)
    groups = rng.choice(["day", "night"], size=400)
    return calibrate(
        confidence,
        rng.random(400) < confidence,
        delta=0.01,
        edges=[0, 0.5, 0.9, 1],
        groups=groups,
        side="lower",
    )


def _equal_mass() -> Certificate:
    rng = np.random.default_rng(3)
    confidence = rng.beta(6, 1, size=400)
    return calibrate(
        confidence,
        rng.random(400) < confidence,
        delta=0.01,
        n_bins=3,
        edges="equal-mass",
        correction="bonferroni",
    )


def drawn_columns(rows: int) -> dict[str, Any]:
    rng = np.random.default_rng(7)
    confidence = rng.beta(6, 1, size=rows)
    return {"confidence": confidence, "correct": rng.random(rows) < confidence, "n_bins": 4}


def cascade_tally(rows: int, **draw: Unpack[RowOptions]) -> Tally:
    rng = np.random.default_rng(4)
    label = rng.integers(0, 10, size=rows)
    confidence = rng.beta(5, 1, size=rows)
    fast = np.where(rng.random(rows) < confidence, label, label + 1)
    slow = np.where(rng.random(rows) < 0.9, label, label + 2)
    return Tally.count(
        "cascade",
        confidence=confidence,
        prediction=np.column_stack([fast, slow]),
        label=label,
        **draw,
    )


def three_models(rows: int) -> Tally:
    rng = np.random.default_rng(6)
    label = rng.integers(0, 10, size=rows)
    confidences = np.sort(rng.beta(5, 1, size=(rows, 2)), axis=1)
    right = rng.random((rows, 3)) < np.column_stack([confidences, np.full(rows, 0.95)])
    predictions = np.where(right, label[:, None], label[:, None] + 1 + np.arange(3))
    return Tally.count("cascade", confidence=confidences, prediction=predictions, label=label)


def in_groups(
    rows: int, models: int, *, labelled: float = 1.0, overlapping: bool = False, small: int = 0
) -> Tally:
    """A cascade whose rows are by day or by night, the last `small` of them at dawn."""
    rng = np.random.default_rng(7)
    label = rng.integers(0, 10, size=rows)
    confidences = np.sort(rng.beta(5, 1, size=(rows, models - 1)), axis=1)
    right = rng.random((rows, models)) < np.column_stack([confidences, np.full(rows, 0.95)])
    predictions = np.where(right, label[:, None], label[:, None] + 1 + np.arange(models))
    times = np.where(rng.random(rows) < 0.6, "day", "night").astype("<U5")
    times[rows - small :] = "dawn"
    groups = {"day": times == "day", "odd": label % 2 == 1} if overlapping else times
    known = np.where(rng.random(rows) < labelled, label, np.nan)
    return Tally.count(
        "cascade",
        confidence=confidences,
        prediction=predictions,
        label=known,
        groups=groups,
        unseen_labels=1.0,
    )


def few_labels(tally: Tally, kept: int) -> Tally:
    """The same rows, with a label only in the cells before the first `kept`, from below."""
    exits = tally.cells.shape[1]
    patterns = [
        int("".join("0" if part == "agree" else "1" for part in name.split("|")), 2)
        for name in tally.outcomes[: 4**exits]
    ]
    counts = tally.counts.copy()
    for place, pattern in enumerate(patterns):
        if pattern:
            counts[kept:, 4**exits + pattern - 1] += counts[kept:, place]
            counts[kept:, place] = 0
    return replace(tally, counts=counts)


def shield_tally(rows: int, **draw: Unpack[RowOptions]) -> Tally:
    rng = np.random.default_rng(5)
    unsafe = rng.random(rows) < 0.2
    score = np.where(unsafe, rng.beta(4, 1, size=rows), rng.beta(1, 4, size=rows))
    score[np.flatnonzero(unsafe)[:2]] = -np.inf
    return Tally.count("shield", score=score, unsafe=unsafe, **draw)


def _batch(
    rows: int, *, xi: float = 0.05, gaps: int = 0, skipped: int = 0, **options: Any
) -> Certificate:
    rng = np.random.default_rng(7)
    slow = rng.integers(0, 10, size=rows)
    confidence = np.round(rng.beta(5, 1, size=rows), 2)
    fast = np.where(rng.random(rows) < confidence, slow, (slow + 1) % 10)
    confidence[:gaps] = np.nan

    def answers(asked: NDArray[np.int64]) -> list[int | None]:
        return [None if row < skipped else int(slow[row]) for row in asked]

    options |= {"on_missing": "leave"} if skipped else {}
    return answer_batch(confidence, fast, answers, xi=xi, delta=0.1, rng=rng, **options).certificate


def abstention_tally(rows: int, *, groups: bool = False) -> Tally:
    rng = np.random.default_rng(7)
    confidence = np.minimum(rng.beta(6, 1, size=rows) * 1.05, 1.0)
    correct = rng.random(rows) < confidence**2
    named = {"groups": rng.choice(["day", "night", "dusk"], size=rows, p=[0.6, 0.39, 0.01])}
    return Tally.count(
        "abstention",
        confidence=confidence.round(2),
        correct=correct,
        groups=named["groups"] if groups else None,
    )


def _pool() -> np.ndarray:
    return np.random.default_rng(8).beta(6, 1, size=300)


def recall_tally(rows: int) -> Tally:
    rng = np.random.default_rng(9)
    positive = rng.random(rows) < 0.2
    score = np.where(positive, rng.beta(4, 1, size=rows), rng.beta(1, 4, size=rows))
    return Tally.count("recall", score=score.round(2), positive=positive)


def _greedy(bound: Literal["exact", "pair", "product"]) -> Certificate:
    return certify_cascade(data=three_models(600), xi=0.1, delta=0.05, bound=bound, method="greedy")


def front(
    rows: int,
    *,
    xi: float = 0.1,
    bound: Literal["exact", "pair", "product"] = "exact",
) -> Certificate:
    """Along a short sequence that does not fall, with an exit that is not used at first."""
    steps = [[1000, 1025], [900, 980], [960, 700], [700, 650], [500, 0], [0, 0]]
    declared = Declared((4, 0, 2), (1.0, 2.0, 6.0), 0.2, 7, 150, np.array(steps).T)
    return certify_declared(three_models(rows), declared, xi=xi, delta=0.05, bound=bound)


def _front_of_two(rows: int, *, xi: float) -> Certificate:
    steps = [[65000, 62000, 63000, 40000, 20000, 0]] if xi else [[62000, 60000, 58000, 0]]
    declared = Declared((1, 0), (1.0, 9.0), 0.25, 0, 200, np.array(steps))
    return certify_declared(cascade_tally(rows), declared, xi=xi, delta=0.05)


def _bundle(shield_rows: int) -> Certificate:
    return certify_together(
        {
            "brake": partial(certify_shield, data=shield_tally(shield_rows), xi=0.05),
            "confidence": partial(calibrate, data=Tally.count("calibration", **drawn_columns(300))),
        },
        delta=0.05,
        shares={"brake": 4, "confidence": 1},
    )


MAKERS: dict[str, Callable[[], Certificate]] = {
    "batch": lambda: _batch(1000),
    "batch-all-asked": lambda: _batch(15),
    "batch-gaps": lambda: _batch(400, gaps=50, skipped=60),
    "batch-nothing-sampled": lambda: _batch(20, xi=0.6, gaps=10),
    "batch-two-looks": lambda: _batch(1000, looks=2),
    "batch-whole-ties": lambda: _batch(1000, whole_ties=True),
    "abstention": lambda: certify_abstention(data=abstention_tally(900), xi=0.15, delta=0.05),
    "abstention-groups": lambda: certify_abstention(
        data=abstention_tally(900, groups=True), xi=0.2, delta=0.05
    ),
    "abstention-pool": lambda: certify_abstention(
        data=abstention_tally(900), xi=0.15, delta=0.05, pool=_pool(), first_threshold=0.99
    ),
    "abstention-pool-refused": lambda: certify_abstention(
        data=abstention_tally(900), xi=0.001, delta=0.05, pool=_pool()
    ),
    "abstention-refused": lambda: certify_abstention(
        data=abstention_tally(900), xi=0.01, delta=0.05
    ),
    "calibration": _calibration,
    "calibration-groups": _grouped,
    "calibration-equal-mass": _equal_mass,
    "calibration-strata": lambda: calibrate(
        data=Tally.count("calibration", **drawn_columns(400), strata=4), delta=0.01
    ),
    "calibration-weights": lambda: calibrate(
        data=Tally.count(
            "calibration",
            **drawn_columns(400),
            weights=np.linspace(0, 3, 400),
            weight_bound=3.5,
            seed=2,
        ),
        delta=0.01,
    ),
    "cascade-clusters": lambda: certify_cascade(
        data=cascade_tally(1800, clusters=np.arange(1800) // 3), xi=0.05, delta=0.05
    ),
    "shield-clusters-per-row": lambda: certify_shield(
        data=shield_tally(1500, clusters=np.arange(1500) // 3, cluster_bound=5), xi=0.1, delta=0.05
    ),
    "bundle": lambda: _bundle(shield_rows=500),
    "bundle-about": lambda: _bundle(shield_rows=500).with_about({"owner": "Ada"}),
    "bundle-refused": lambda: _bundle(shield_rows=50),
    "cascade-exact": lambda: certify_cascade(data=cascade_tally(600), xi=0.05, delta=0.05),
    "cascade-pair": lambda: certify_cascade(
        data=cascade_tally(600), xi=0.05, delta=0.05, bound="pair"
    ),
    "cascade-product": lambda: certify_cascade(
        data=cascade_tally(600), xi=0.05, delta=0.05, bound="product"
    ),
    "cascade-no-loss": lambda: certify_cascade(data=cascade_tally(2000), xi=0.0, delta=0.05),
    "cascade-refused": lambda: certify_cascade(data=cascade_tally(50), xi=0.01, delta=0.05),
    "cascade-paths-exact": lambda: certify_cascade(
        data=three_models(600), xi=0.1, delta=0.05, costs=(1.0, 3.0, 9.0)
    ),
    "cascade-paths-pair": lambda: certify_cascade(
        data=three_models(600), xi=0.1, delta=0.05, bound="pair"
    ),
    "cascade-paths-product": lambda: certify_cascade(
        data=three_models(600), xi=0.1, delta=0.05, bound="product"
    ),
    "cascade-paths-no-loss": lambda: certify_cascade(data=three_models(2000), xi=0.0, delta=0.05),
    "cascade-paths-refused": lambda: certify_cascade(data=three_models(50), xi=0.01, delta=0.05),
    "cascade-partial-exact": lambda: certify_cascade(
        data=few_labels(cascade_tally(600), 560), xi=0.05, delta=0.05, costs=(1.0, 9.0)
    ),
    "cascade-partial-pair": lambda: certify_cascade(
        data=few_labels(cascade_tally(600), 500), xi=0.05, delta=0.05, bound="pair"
    ),
    "cascade-partial-product": lambda: certify_cascade(
        data=few_labels(cascade_tally(2000), 1900), xi=0.05, delta=0.05, bound="product"
    ),
    "cascade-partial-no-loss": lambda: certify_cascade(
        data=few_labels(cascade_tally(2000), 1900), xi=0.0, delta=0.05
    ),
    "cascade-partial-refused": lambda: certify_cascade(
        data=few_labels(cascade_tally(50), 10), xi=0.01, delta=0.05
    ),
    "cascade-no-labels": lambda: certify_cascade(
        data=few_labels(cascade_tally(600), 0), xi=0.05, delta=0.05
    ),
    "cascade-differ": lambda: certify_cascade(
        data=few_labels(cascade_tally(600), 0), xi=0.05, delta=0.05, claim="differ"
    ),
    "cascade-differ-refused": lambda: certify_cascade(
        data=few_labels(cascade_tally(50), 0), xi=0.01, delta=0.05, claim="differ"
    ),
    "cascade-paths-differ": lambda: certify_cascade(
        data=few_labels(three_models(600), 0), xi=0.1, delta=0.05, claim="differ", bound="pair"
    ),
    "cascade-groups-differ": lambda: certify_cascade(
        data=in_groups(400, 2, labelled=0.0), xi=0.2, delta=0.05, claim="differ"
    ),
    "cascade-paths-partial-exact": lambda: certify_cascade(
        data=few_labels(three_models(600), 500), xi=0.1, delta=0.05, costs=(1.0, 3.0, 9.0)
    ),
    "cascade-paths-partial-pair": lambda: certify_cascade(
        data=few_labels(three_models(600), 500), xi=0.1, delta=0.05, bound="pair"
    ),
    "cascade-paths-partial-product": lambda: certify_cascade(
        data=few_labels(three_models(600), 500), xi=0.2, delta=0.05, bound="product"
    ),
    "cascade-paths-partial-no-loss": lambda: certify_cascade(
        data=few_labels(three_models(2000), 1900), xi=0.0, delta=0.05
    ),
    "cascade-paths-no-labels": lambda: certify_cascade(
        data=few_labels(three_models(600), 0), xi=0.1, delta=0.05
    ),
    "cascade-greedy-exact": lambda: _greedy("exact"),
    "cascade-greedy-pair": lambda: _greedy("pair"),
    "cascade-greedy-product": lambda: _greedy("product"),
    "cascade-groups-common-exact": lambda: certify_cascade(
        data=in_groups(400, 2), xi=0.1, delta=0.05, costs=(1.0, 9.0)
    ),
    "cascade-groups-overlapping": lambda: certify_cascade(
        data=in_groups(400, 2, overlapping=True, labelled=0.8), xi=0.1, delta=0.05, bound="pair"
    ),
    "cascade-groups-own-partial": lambda: certify_cascade(
        data=in_groups(400, 2, labelled=0.8, small=9),
        xi=0.15,
        delta=0.05,
        bound="product",
        group_thresholds="own",
    ),
    "cascade-groups-own-product": lambda: certify_cascade(
        data=in_groups(400, 2), xi=0.15, delta=0.05, bound="product", group_thresholds="own"
    ),
    "cascade-groups-no-loss": lambda: certify_cascade(data=in_groups(400, 2), xi=0.0, delta=0.2),
    "cascade-groups-refused": lambda: certify_cascade(
        data=in_groups(400, 2, small=9), xi=0.1, delta=0.05
    ),
    "cascade-groups-common-paths-exact": lambda: certify_cascade(
        data=in_groups(40, 3), xi=0.6, delta=0.05
    ),
    "cascade-front-exact": lambda: front(600),
    "cascade-front-pair": lambda: front(600, bound="pair"),
    "cascade-front-product": lambda: front(600, bound="product"),
    "cascade-front-no-loss": lambda: _front_of_two(2000, xi=0.0),
    "cascade-front-refused": lambda: front(20),
    "cascade-front-two-models": lambda: _front_of_two(600, xi=0.05),
    "recall": lambda: certify_recall(data=recall_tally(600), target=0.9, delta=0.05),
    "recall-looks": lambda: certify_recall(
        data=recall_tally(600), target=0.9, delta=0.05, looks=(60, 116, 200)
    ),
    "recall-looks-refused": lambda: certify_recall(
        data=recall_tally(60), target=0.9, delta=0.05, looks=(14, 60, 116)
    ),
    "recall-refused": lambda: certify_recall(data=recall_tally(100), target=0.95, delta=0.01),
    "false-alarms": lambda: certify_false_alarms(data=recall_tally(600), xi=0.1, delta=0.05),
    "false-alarms-refused": lambda: certify_false_alarms(
        data=recall_tally(60), xi=0.01, delta=0.05
    ),
    "false-alarms-rollouts": lambda: certify_false_alarms(
        data=shield_tally(400), xi=0.1, delta=0.05
    ),
    "false-alarms-rollouts-refused": lambda: certify_false_alarms(
        data=shield_tally(50), xi=0.01, delta=0.05
    ),
    "alarm-range": lambda: certify_alarm_range(
        data=recall_tally(400), xi=0.1, target=0.8, delta=0.05
    ),
    "alarm-range-empty": lambda: certify_alarm_range(
        data=recall_tally(400), xi=0.015, target=0.9, delta=0.2
    ),
    "alarm-range-rollouts": lambda: certify_alarm_range(
        data=shield_tally(300), xi=0.1, missed=0.1, delta=0.1
    ),
    "shield": lambda: certify_shield(data=shield_tally(500), xi=0.05, delta=0.05),
    "shield-among-unsafe": lambda: certify_shield(
        data=shield_tally(500), xi=0.2, delta=0.05, rate="among-unsafe"
    ),
    "shield-among-unsafe-refused": lambda: certify_shield(
        data=shield_tally(50), xi=0.05, delta=0.05, rate="among-unsafe"
    ),
    "shield-product": lambda: certify_shield(
        data=shield_tally(500), xi=0.05, delta=0.05, bound="product"
    ),
    "shield-product-never-fires": lambda: certify_shield(
        data=shield_tally(500), xi=0.5, delta=0.05, bound="product"
    ),
    "shield-product-refused": lambda: certify_shield(
        data=shield_tally(50), xi=0.05, delta=0.05, bound="product"
    ),
    "shield-horizon": lambda: certify_shield(
        data=shield_tally(500), xi=0.05, delta=0.05, horizon=400
    ).with_about({"model": "policy of 3 May", "owner": "Ada"}),
    "shield-looks": lambda: certify_shield(
        data=shield_tally(500), xi=0.05, delta=0.05, looks=(250, 500, 1000)
    ),
    "shield-looks-refused": lambda: certify_shield(
        data=shield_tally(50), xi=0.05, delta=0.05, looks=(50, 500, 1000)
    ),
    "shield-refused": lambda: certify_shield(data=shield_tally(50), xi=0.01, delta=0.05),
    **{name: make for kind in KINDS.values() for name, make in kind.made.items()},
}

LAYOUTS = (
    "abstention-groups", "abstention-pool", "alarm-range", "batch-whole-ties", "bundle",
    "calibration-groups", "calibration-strata", "cascade-clusters", "cascade-front-product",
    "cascade-groups-no-loss", "cascade-groups-own-partial", "cascade-groups-own-product",
    "cascade-partial-refused", "cascade-paths-pair", "false-alarms",
    "false-alarms-rollouts-refused",
    "recall-looks-refused", "alarm-range-rollouts",
    "shield-among-unsafe-refused", "shield-clusters-per-row", "shield-horizon",
    "shield-looks",
    *(name for kind in KINDS.values() for name in kind.layouts),
)  # fmt: skip
"""Of these, made here or frozen, one or the other has every key that a certificate can have: they
stand for all where only the layout of a document matters."""


@cache
def made(name: str) -> Certificate:
    return MAKERS[name]()


@pytest.fixture(params=standing_for(sorted(MAKERS), LAYOUTS))
def certificate(request: pytest.FixtureRequest) -> Certificate:
    """One for each layout of a document, and all of them in `make test-all`."""
    return made(request.param)


@pytest.fixture(params=sorted(MAKERS))
def every_certificate(request: pytest.FixtureRequest) -> Certificate:
    return made(request.param)
