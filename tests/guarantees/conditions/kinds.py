"""Small certificates of every kind, by the verbs that users call: whether so many trials with so
many events are claimed to have at most `XI` of them, or as many as the kind promises.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from tests.guarantees.conditions.pairs import DELTA, XI

from pacbound import (
    calibrate,
    certify_abstention,
    certify_cascade,
    certify_false_alarms,
    certify_forks,
    certify_precision,
    certify_rate,
    certify_recall,
    certify_replacement,
    certify_sets,
    certify_shield,
)

LOW, HIGH = 0.2, 0.8
ASKED: Any = {"xi": XI, "delta": DELTA}


def events(trials: int, count: int) -> NDArray[np.bool_]:
    """Truth values, of which the first `count` are events."""
    return np.arange(trials) < count


def _threshold(made: Any) -> float:
    """Of the group "a", where groups have their own."""
    return float(made.thresholds["a"] if made.thresholds else made.threshold)


def recall(trials: int, count: int, **rows: Any) -> bool:
    """Events are positives that a threshold above LOW misses."""
    scores = np.where(events(trials, count), LOW, HIGH)
    made = certify_recall(scores, np.ones(trials, bool), target=1 - XI, delta=DELTA, **rows)
    return _threshold(made) > LOW


def false_alarms(trials: int, count: int, **rows: Any) -> bool:
    """Events are negatives that a threshold up to HIGH lets ring."""
    scores = np.where(events(trials, count), HIGH, LOW)
    return _threshold(certify_false_alarms(scores, np.zeros(trials, bool), **ASKED, **rows)) <= HIGH


def shield(trials: int, count: int, **rows: Any) -> bool:
    """Events are unsafe rollouts that a threshold above LOW lets through."""
    unsafe = events(trials, count)
    return certify_shield(np.where(unsafe, LOW, HIGH), unsafe, **ASKED, **rows).threshold > LOW


def among_unsafe(trials: int, count: int) -> bool:
    """The same, among unsafe rollouts alone."""
    dangers = np.where(events(trials, count), LOW, HIGH)
    made = certify_shield(dangers, np.ones(trials, bool), rate="among-unsafe", **ASKED)
    return made.threshold > LOW


def safe_stopped(trials: int, count: int) -> bool:
    """Events are safe rollouts that a shield up to HIGH stops."""
    dangers = np.where(events(trials, count), HIGH, LOW)
    made = certify_false_alarms(dangers, unsafe=np.zeros(trials, bool), **ASKED)
    return made.threshold <= HIGH


def pass_rate(trials: int, count: int, **asked: Any) -> bool:
    """Events are rows that do not pass."""
    passed = ~events(trials, count)
    return certify_rate(passed, target=1 - XI, delta=DELTA, **asked).certified


def driven(trials: int, count: int) -> bool:
    """Events are rollouts under a shield that are unsafe."""
    return pass_rate(trials, count, threshold=0.5)


def forks(trials: int, count: int) -> bool:
    """Events are rollouts that are unsafe from LOW up, and safe below."""
    rollout, lowest = np.repeat(np.arange(trials), 2), np.tile([0, 13_108], trials)
    highest, safe = np.tile([13_107, 65_537], trials), np.zeros(trials, bool)
    unsafe = np.column_stack([safe, events(trials, count)]).ravel()
    made = certify_forks(rollout, lowest, highest, unsafe, **ASKED)
    return made.threshold > 13_107 / 65_536


def sets(trials: int, count: int, **rows: Any) -> bool:
    """Events are labels that a threshold above LOW leaves out of their sets."""
    likely = np.where(events(trials, count), LOW, HIGH)
    probabilities = np.column_stack([likely, 1 - likely])
    return _threshold(certify_sets(probabilities, np.zeros(trials, int), **ASKED, **rows)) > LOW


def abstention(trials: int, count: int, **rows: Any) -> bool:
    """Events are wrong answers, all of the same confidence."""
    right = ~events(trials, count)
    return certify_abstention(np.ones(trials), right, **ASKED, **rows).certified


def precision(trials: int, count: int, **rows: Any) -> bool:
    """Events are flagged rows that are negative."""
    positive = ~events(trials, count)
    made = certify_precision(np.ones(trials), positive, target=1 - XI, delta=DELTA, **rows)
    return made.certified


def cascade(trials: int, count: int, **rows: Any) -> bool:
    """Events are rows that are lost if the fast model answers."""
    fast = events(trials, count).astype(int)
    answers = np.column_stack([fast, np.zeros(trials, int)])
    label = None if rows.get("claim") == "differ" else np.zeros(trials, int)
    made = certify_cascade(np.full(trials, HIGH), answers, label, **ASKED, **rows)
    thresholds = made.thresholds["a"] if "groups" in rows else made.thresholds
    return bool(thresholds[0] <= HIGH)


def differ(trials: int, count: int) -> bool:
    """Events are answers that differ."""
    return cascade(trials, count, claim="differ")


def replacement(trials: int, count: int, **rows: Any) -> bool:
    """Events are rows that the new model loses."""
    zeros, new = np.zeros(trials, int), events(trials, count).astype(int)
    answers = np.column_stack([zeros, new])
    return certify_replacement(answers, zeros, **ASKED, **rows).certified


def calibration(trials: int, count: int, **rows: Any) -> bool:
    """Events are wrong predictions; 1 - XI is just too low a lower end."""
    options: Any = {"n_bins": 1, "side": "lower", **rows}
    made = calibrate(np.full(trials, HIGH), ~events(trials, count), delta=DELTA, **options)
    table = made.tables["a"] if "groups" in rows else made.bins
    return bool(table.lower[-1] > 1 - XI - 1e-9)


def graded(trials: int, count: int) -> bool:
    """Events are answers of the worst grade, and the others of the best."""
    quality = (~events(trials, count)).astype(float)
    made = calibrate(np.full(trials, HIGH), quality=quality, delta=DELTA, n_bins=1, side="lower")
    return bool(made.bins.lower[-1] > 1 - XI - 1e-9)


@cache
def loss_or_differ(lost: int, gained: int, rows: int, *, labels: bool, xi: float) -> bool:
    """Whether a cascade makes a false claim if the fast model gains at HIGH and loses at LOW: that
    little is lost, if it answers at LOW; without labels that few differ, if it answers at HIGH.
    """
    label, wrong = np.arange(rows) % 2, np.zeros((rows, 2), int)
    wrong[:lost, 0], wrong[rows - gained :, 1] = 1, 1
    made = certify_cascade(
        np.where(np.arange(rows) < lost, LOW, HIGH),
        label[:, None] ^ wrong,
        label if labels else None,
        xi=xi,
        delta=DELTA,
        claim="loss" if labels else "differ",
    )
    return bool(made.thresholds[0] <= (LOW if labels else HIGH))


@cache
def some_labels(lost: int, gained: int, rows: int) -> bool:
    """Whether a model that differs in every row is certified by labels of some of them."""
    told = [(0, 1)] * lost + [(1, 0)] * gained + [(0, 1)] * (rows - lost - gained)
    label = [0] * lost + [0] * gained + [None] * (rows - lost - gained)
    return certify_replacement(np.array(told), label, **ASKED).certified
