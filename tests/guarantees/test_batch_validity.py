"""More than m answers of a batch differ from the slow model's with probability at most delta.

The records are fixed, so everything can be enumerated: every pattern of disagreements, every
sample, through the function that users call.
"""

from collections.abc import Iterator
from itertools import combinations, product
from typing import Any

import numpy as np
import pytest
from scipy.special import bdtrc

from pacbound import answer_batch
from pacbound.cascade import records
from pacbound.data import fashion_mnist
from pacbound.procedures import batch
from pacbound.procedures.batch import plan
from pacbound.stats.hypergeometric import chance_that_a_look_errs, hypergeometric_tail

pytestmark = pytest.mark.usefixtures("any_delta")

RECORDS = 6
TIES = {
    "no ties": np.arange(RECORDS) / 10,
    "all equal": np.full(RECORDS, 0.5),
    "saturated": np.array([1.0, 1.0, 1.0, 0.4, 0.4, 0.0]),
}


def _violates(
    monkeypatch: pytest.MonkeyPatch,
    scores: np.ndarray,
    differ: np.ndarray,
    permutation: tuple[int, ...],
    tolerated: int,
    **options: Any,
) -> bool:
    """Whether more answers differ than may, if the permutation is this one."""
    monkeypatch.setattr(records, "keyed_permutation", lambda *_: np.array(permutation))
    slow = np.where(differ, 1, 0)
    done: Any = answer_batch(
        scores, np.zeros(len(scores), dtype=int), slow.__getitem__, answers=None, **options
    )
    asked = done.answered_by == "expert"
    assert (done.predictions[asked] == slow[asked]).all()
    assert done.certificate.asked == asked.sum()
    return int((done.predictions != slow).sum()) > tolerated


def _patterns(records: int) -> Iterator[np.ndarray]:
    yield from (np.array(bits, dtype=bool) for bits in product([False, True], repeat=records))


def _samples(records: int, sample: int) -> list[tuple[int, ...]]:
    """A permutation for every sample: only which records are drawn matters, not in which order."""
    return [
        (*drawn, *(set(range(records)) - set(drawn)))
        for drawn in combinations(range(records), sample)
    ]


def _theory(records: int, tolerated: int, sample: int, allowed: int) -> float:
    marked = tolerated + 1 + allowed
    if allowed < 0 or marked > records:
        return 0.0
    return hypergeometric_tail(allowed, population=records, marked=marked, drawn=sample)


@pytest.mark.parametrize(
    ("records", "tolerated", "sample", "delta"),
    [
        (7, 1, 3, 0.5),
        (7, 2, 3, 0.3),
        (7, 1, 4, 0.2),
        (7, 3, 2, 0.6),
        (8, 1, 5, 0.1),
        (8, 2, 4, 0.9),
        (8, 1, 1, 0.05),
        (6, 2, 6, 0.1),
        (7, 5, 2, 0.3),
    ],
)
def test_the_worst_pattern_of_disagreements_violates_as_the_theorem_says(
    records: int, tolerated: int, sample: int, delta: float
) -> None:
    """All patterns, all samples, in the order of the scores; equality where it can be attained."""
    (allowed,) = batch.allowed(records, tolerated, [sample], delta=delta)
    samples = np.zeros((0, records), dtype=bool)
    for drawn in combinations(range(records), sample):
        samples = np.vstack([samples, np.isin(np.arange(records), drawn)])
    free = (np.cumsum(~samples, axis=1) <= tolerated).sum(axis=1)
    worst = 0.0
    for differ in _patterns(records):
        wrong = 0
        for sampled, beginning in zip(samples, free, strict=True):
            stop = batch.stop(np.flatnonzero(sampled & differ), allowed, records)
            prefix = max(stop, int(beginning))
            wrong += int((differ & ~sampled)[:prefix].sum()) > tolerated
        worst = max(worst, wrong / len(samples))
    assert worst == pytest.approx(_theory(records, tolerated, sample, allowed))
    assert worst <= delta


@pytest.mark.parametrize("ties", TIES)
def test_a_batch_violates_as_the_theorem_says_whatever_the_ties(
    monkeypatch: pytest.MonkeyPatch, ties: str
) -> None:
    tolerated, sample, delta = 1, 3, 0.6
    xi = (tolerated + 0.5) / RECORDS
    (allowed,) = plan(RECORDS, RECORDS, xi=xi, delta=delta, drawn=sample).allowed
    assert allowed >= 0
    options = {"xi": xi, "delta": delta, "sample": sample, "key": "0" * 32}
    worst = max(
        float(
            np.mean(
                [
                    _violates(monkeypatch, TIES[ties], differ, drawn, tolerated, **options)
                    for drawn in _samples(RECORDS, sample)
                ]
            )
        )
        for differ in _patterns(RECORDS)
    )
    assert worst == pytest.approx(_theory(RECORDS, tolerated, sample, allowed))
    assert 0 < worst <= delta


def test_records_without_a_score_leave_the_population(monkeypatch: pytest.MonkeyPatch) -> None:
    """They may differ in any way: the slow model answers them, and the others keep m."""
    scores = np.array([0.9, np.nan, 0.8, 0.7, 0.6, 0.5])
    xi, delta, sample = 1.5 / RECORDS, 0.6, 2
    (allowed,) = plan(RECORDS, RECORDS - 1, xi=xi, delta=delta, drawn=sample).allowed
    options = {"xi": xi, "delta": delta, "sample": sample, "key": "0" * 32}
    worst = max(
        float(
            np.mean(
                [
                    _violates(monkeypatch, scores, differ, drawn, 1, **options)
                    for drawn in _samples(RECORDS - 1, sample)
                ]
            )
        )
        for differ in _patterns(RECORDS)
    )
    assert worst == pytest.approx(_theory(RECORDS - 1, 1, sample, allowed))
    assert 0 < worst <= delta


def test_ties_that_stay_whole_violate_less_often(monkeypatch: pytest.MonkeyPatch) -> None:
    options = {"xi": 1.5 / RECORDS, "delta": 0.6, "sample": 3, "whole_ties": True}
    (allowed,) = plan(RECORDS, RECORDS, xi=1.5 / RECORDS, delta=0.6, drawn=3).allowed
    for differ in _patterns(RECORDS):
        wrong = [
            _violates(
                monkeypatch,
                TIES["saturated"],
                differ,
                drawn,
                1,
                key="0" * 32,
                **options,
            )
            for drawn in _samples(RECORDS, 3)
        ]
        assert np.mean(wrong) <= _theory(RECORDS, 1, 3, allowed)


@pytest.mark.parametrize("always", [True, False])
def test_two_looks_violate_at_most_as_often_as_the_recursion_says_whichever_is_taken(
    monkeypatch: pytest.MonkeyPatch,
    always: bool,
) -> None:
    """The second look is taken as planned, or always: the theorem allows every choice."""
    records, tolerated, delta = 5, 1, 0.6
    xi = 1.5 / records
    looks = plan(records, records, xi=xi, delta=delta, looks=2, drawn=1)
    assert looks.drawn == (1, 3)
    theory = chance_that_a_look_errs(
        population=records, tolerated=tolerated, looks=looks.drawn, counts=looks.allowed
    )
    if always:
        monkeypatch.setattr(batch, "worth_another_look", lambda *_: True)
    orders = [
        (first, *rest, *(set(range(records)) - {first, *rest}))
        for first in range(records)
        for rest in combinations(sorted(set(range(records)) - {first}), 2)
    ]
    worst = 0.0
    for differ in _patterns(records):
        wrong = [
            _violates(
                monkeypatch,
                np.arange(records) / 10,
                differ,
                order,
                tolerated,
                xi=xi,
                delta=delta,
                looks=2,
                sample=1,
                key="0" * 32,
            )
            for order in orders
        ]
        worst = max(worst, float(np.mean(wrong)))
    assert 0 < worst <= theory <= delta
    if always:
        assert worst == pytest.approx(theory)


def test_real_batches_violate_about_as_often_as_delta_and_not_more() -> None:
    table = fashion_mnist()
    draws, delta, records, xi = 150, 0.1, 1000, 0.05
    violations = 0
    for draw in range(draws):
        rng = np.random.default_rng([draw, 5])
        rows = rng.permutation(len(table.label))[:records]
        slow = table.prediction_slow[rows]
        result: Any = answer_batch(
            table.confidence_fast[rows],
            table.prediction_fast[rows],
            slow.__getitem__,
            xi=xi,
            delta=delta,
            answers=None,
            key=rng.bytes(16).hex(),
            chunk=records,
        )
        violations += int((result.predictions != slow).sum()) > 50
    assert violations > 3, "a law that cannot violate shows nothing"
    assert bdtrc(violations - 1, draws, delta) > 0.001
