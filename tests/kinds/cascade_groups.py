"""A cascade in groups, under common thresholds or under their own."""

from __future__ import annotations

from typing import Any

import numpy as np
from tests.kinds import cascade
from tests.kinds.cascade import random_cascade
from tests.kinds.kind import Kind, Use
from tests.kinds.random_rows import names, rate

from pacbound import Certificate, Tally, certify_cascade
from pacbound.claims.cascade import CascadeCertificate


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


def _random(rng: np.random.Generator) -> Certificate:
    rows, models = int(rng.integers(1, 160)), int(rng.choice([2, 2, 3]))
    options: dict[str, Any] = {"xi": rate(rng)}
    if rng.random() < 0.3:
        named: Any = {"odd": np.arange(rows) % 2 == 1, "late": np.arange(rows) > rows / 3}
    else:
        named = names(rng, rows)
        options["group_thresholds"] = str(rng.choice(["common", "own"]))
        if options["group_thresholds"] == "common" and options["xi"] > 0:
            options["small_groups"] = str(rng.choice(["refuse", "leave-out"]))
    return random_cascade(rng, rows, models, groups=named, **options)


def watched(*, overlapping: bool = False, own: bool = False) -> CascadeCertificate:
    answers = [[1, 1]] * 1800 + [[0, 1]] * 200
    night = np.arange(2000) % 2 == 0
    certificate = certify_cascade(
        [0.9] * 1800 + [0.1] * 200,
        answers,
        [1] * 2000,
        xi=0.02,
        delta=0.05,
        groups={"night": night} if overlapping else np.where(night, "night", "day"),
        group_thresholds="own" if own else "common",
    )
    assert isinstance(certificate, CascadeCertificate)
    return certificate


def rows_of_use(n: int, rng: np.random.Generator, bad: bool) -> Any:
    rows = cascade.rows_of_use(n, rng, bad=False)
    night = rng.random(n) < 0.5
    # By day nothing is lost, so that all rows together lose half of what the night does.
    if bad:
        lost = night & (rng.random(n) < 0.1)
        rows["prediction"][:, 1] = rows["label"]
        rows["prediction"][lost, 0] = (rows["label"][lost] + 1) % 3
        rows["confidence"] = np.maximum(rows["confidence"], 0.95 * lost)
    return {**rows, "groups": np.where(night, "night", "day")}


KIND = Kind(
    made={
        "cascade-groups-common-exact": lambda: certify_cascade(
            data=in_groups(400, 2), xi=0.1, delta=0.05, costs=(1.0, 9.0)
        ),
        "cascade-groups-small": lambda: certify_cascade(
            data=in_groups(400, 2, labelled=0.8, small=9),
            xi=0.2,
            delta=0.05,
            small_groups="leave-out",
        ),
        "cascade-groups-own-partial": lambda: certify_cascade(
            data=in_groups(400, 2, labelled=0.8, small=9),
            xi=0.15,
            delta=0.05,
            group_thresholds="own",
        ),
        "cascade-groups-own-exact": lambda: certify_cascade(
            data=in_groups(400, 2), xi=0.15, delta=0.05, group_thresholds="own"
        ),
        "cascade-groups-no-loss": lambda: certify_cascade(
            data=in_groups(400, 2), xi=0.0, delta=0.2
        ),
        "cascade-groups-refused": lambda: certify_cascade(
            data=in_groups(400, 2, small=9), xi=0.1, delta=0.05
        ),
        "cascade-groups-common-paths-exact": lambda: certify_cascade(
            data=in_groups(40, 3), xi=0.6, delta=0.05
        ),
    },
    layouts=(
        "cascade-groups-no-loss",
        "cascade-groups-own-partial",
        "cascade-groups-own-exact",
        "cascade-groups-small",
    ),
    random=_random,
    trials=150,
    use=lambda: Use(watched(), rows_of_use),
)
