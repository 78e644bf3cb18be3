"""Columns of pandas that say by their index that they are not in one order are refused, wherever
several columns are passed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest

from pacbound import (
    Monitor,
    PACCalibrator,
    answer_batch,
    batch_step,
    calibrate,
    certify_abstention,
    certify_cascade,
    certify_false_alarms,
    certify_recall,
    certify_sets,
    certify_shield,
    design_cascade,
    rows_to_label,
)
from pacbound.baselines import TemperatureScaling
from pacbound.calibration import expected_calibration_error
from pacbound.errors import InvalidValueError
from pacbound.tally.columns import same_rows

N = 40
RNG = np.random.default_rng(0)
FRAME = pd.DataFrame(
    {"s": RNG.random(N), "t": RNG.random(N), "p": 1, "q": 1, "ok": RNG.random(N) < 0.7},
    index=[f"row {place}" for place in range(N)],
)
FRAME["y"] = FRAME["ok"].astype(int)
OTHER = FRAME.iloc[::-1]
TWO: Any = {"xi": 0.5, "delta": 0.1}
BRAKE = certify_shield([0.1] * 50, [False] * 50, xi=0.2, delta=0.1)

VERBS: dict[str, Callable[[Any], Any]] = {
    "calibrate": lambda there: calibrate(FRAME["s"], there["ok"], delta=0.1),
    "groups": lambda there: calibrate(
        FRAME["s"], FRAME["ok"], groups={"all": there["ok"]}, delta=0.1
    ),
    "clusters": lambda there: calibrate(
        FRAME["s"], FRAME["ok"], clusters=there["y"], delta=0.1, seed=0
    ),
    "abstention": lambda there: certify_abstention(
        FRAME["s"], prediction=FRAME["p"], label=there["y"], classes=[0, 1], **TWO
    ),
    "cascade": lambda there: certify_cascade(
        FRAME["s"], FRAME[["p", "q"]], there["y"], classes=[0, 1], **TWO
    ),
    "models": lambda there: certify_cascade(FRAME["s"], there[["p", "q"]], **TWO),
    "shield": lambda there: certify_shield(FRAME["s"], there["ok"], **TWO),
    "recall": lambda there: certify_recall(FRAME["s"], there["ok"], target=0.5, delta=0.1),
    "false alarms": lambda there: certify_false_alarms(FRAME["s"], there["ok"], **TWO),
    "design": lambda there: design_cascade(
        FRAME[["s", "t"]], FRAME[["p", "q"]], there["y"], costs=[1, 2], last=1, **TWO
    ),
    "batch": lambda there: batch_step(FRAME["s"], there["y"], **TWO, answers=None),
    "probabilities": lambda there: PACCalibrator(delta=0.1).fit(
        pd.DataFrame({0: FRAME["s"], 1: 1 - FRAME["s"]}), there["y"]
    ),
    "sets": lambda there: certify_sets(FRAME[["s", "t"]], there["y"], **TWO),
    "temperature": lambda there: TemperatureScaling(inputs="probabilities").fit(
        pd.DataFrame({0: FRAME["s"], 1: 1 - FRAME["s"]}), there["y"]
    ),
    "rows to label": lambda there: rows_to_label(FRAME["s"], there[["p", "q"]], **TWO),
    "error": lambda there: expected_calibration_error(FRAME["s"], there["ok"]),
    "monitor": lambda there: Monitor(calibrate([0.5] * 9, [True] * 9, delta=0.1), delta=0.1).update(
        {"confidence": FRAME["s"], "correct": there["ok"]}
    ),
}


@pytest.mark.parametrize("verb", VERBS)
def test_the_same_index_in_another_order_is_refused(verb: str) -> None:
    VERBS[verb](FRAME)
    with pytest.raises(InvalidValueError, match=r"hold the same index in another order.*\.loc\["):
        VERBS[verb](OTHER)
    # Places are what is meant, if nothing names the rows.
    VERBS[verb](OTHER.set_axis(range(N)))


def test_rows_that_are_named_in_two_ways_are_refused_and_places_are_not() -> None:
    one = pd.Series([1, 2, 3], index=[3, 5, 9])
    with pytest.raises(InvalidValueError, match="a and b hold different indexes"):
        same_rows(a=one, b=one.set_axis([3, 5, 7]))
    same_rows(a=one, b=one.reset_index(drop=True), c=[1, 2, 3], d=one.to_numpy(), e=one.copy())
    # A shuffled frame beside what counts from 0: the same index, in another order.
    with pytest.raises(InvalidValueError, match="the same index in another order"):
        same_rows(a=one.set_axis([2, 0, 1]), b=one.set_axis(range(3)))
    # Of other lengths: said where lengths are looked at.
    same_rows(a=one, b=one.iloc[:2])


def test_answers_that_name_their_rows_in_another_order_are_refused() -> None:
    def expert(rows: Any) -> Any:
        return pd.Series([1] * len(rows), index=rows).iloc[::-1]

    with pytest.raises(InvalidValueError, match=r"in another order.*the first are"):
        answer_batch([0.9] * 9, [0] * 9, expert, xi=0.0, delta=0.1, answers=None)
