"""`certify_shield`: from rollouts to a certificate, by the exact bound or the paper's product, with
misses among all rollouts or the unsafe ones."""

from __future__ import annotations

from math import inf
from typing import Any

import numpy as np
import pytest

from pacbound import Shield, Tally, certify_shield, planned_looks
from pacbound.errors import InvalidTypeError, InvalidValueError, PacboundError
from pacbound.stats.binomial import binomial_upper

N, P, XI, DELTA = 2000, 0.05, 0.02, 0.01
TALLY = Tally.count("shield", score=[0.1], unsafe=[0])


def rollouts(seed: int = 0, n: int = N) -> tuple[Any, Any, Any]:
    """Running maxima, whether the rollout is unsafe, and the danger at the first un-recoverable
    state."""
    rng = np.random.default_rng(seed)
    unsafe = rng.random(n) < P
    scores = np.where(unsafe, rng.beta(8, 2, size=n), rng.beta(1, 8, size=n))
    return scores, unsafe, np.where(unsafe, scores * rng.beta(8, 1, size=n), np.nan)


def misses(score: Any, unsafe: Any, threshold: float) -> int:
    return int((np.asarray(unsafe, dtype=bool) & (score < threshold)).sum())


def test_the_misses_below_the_threshold_are_as_many_as_are_allowed_and_no_more() -> None:
    scores, unsafe, _ = rollouts()
    exact = certify_shield(scores, unsafe, xi=XI, delta=DELTA)
    assert misses(scores, unsafe, exact.threshold) == exact.allowed
    assert misses(scores, unsafe, exact.threshold + 2**-16) > exact.allowed
    assert exact.observed_rate == exact.allowed / N
    assert exact.verify()
    assert exact.acted == (scores >= exact.threshold).sum()


def test_taking_the_last_danger_for_the_maximum_is_loose_and_never_wrong() -> None:
    scores, unsafe, final = rollouts()
    by_last, by_maximum = (
        Tally.count("shield", score=s, unsafe=unsafe)
        for s in (np.where(unsafe, final, scores), scores)
    )
    assert (by_last.counts.sum(axis=0) == by_maximum.counts.sum(axis=0)).all()
    loose = certify_shield(data=by_last, xi=XI, delta=DELTA)
    tight = certify_shield(data=by_maximum, xi=XI, delta=DELTA)
    assert loose.threshold <= tight.threshold


def test_a_rollout_lost_at_the_start_is_missed_at_every_threshold() -> None:
    unsafe = np.arange(400) < 40
    scores = np.where(unsafe, 1.0, 0.1)
    scores[:3] = -np.inf
    certificate = certify_shield(scores, unsafe, xi=0.05, delta=0.05)
    assert certificate.threshold == 1.0
    assert certificate.observed_rate == 3 / 400
    scores[:30] = -np.inf
    refused = certify_shield(scores, unsafe, xi=0.05, delta=0.05)
    assert not refused.certified
    assert refused.threshold == -np.inf
    assert "Always brake" in refused.summary()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"score": [0.1], "unsafe": None}, "unsafe is missing"),
        ({"score": [0.1], "unsafe": [0], "rate": "some"}, "rate='some' is not known"),
        ({"score": TALLY, "unsafe": [0]}, "pass it as data="),
        ({"data": TALLY, "unsafe": [0]}, "beside a Tally, which is already counted"),
        (
            {"data": Tally.count("calibration", confidence=[0.1], correct=[0])},
            "counts something else: count with score, unsafe",
        ),
        ({"score": [], "unsafe": []}, "no rows"),
        ({"score": [0.1, 0.2], "unsafe": [0]}, "Rows do not match"),
        ({"score": [0.1], "unsafe": [2]}, "unsafe[0] is 2"),
        ({"score": [0.1], "unsafe": [0], "xi": 1.0}, "xi=1.0"),
        ({"score": [0.1], "unsafe": [0], "delta": 0}, "delta=0"),
        ({"score": [np.nan], "unsafe": [1]}, "Drop no rollout"),
        ({"score": [np.inf], "unsafe": [1]}, "score[0] is inf"),
    ],
)
def test_arguments_that_make_no_claim_are_explained(
    arguments: dict[str, Any], message: str
) -> None:
    with pytest.raises((InvalidTypeError, InvalidValueError)) as caught:
        certify_shield(**{"xi": 0.1, "delta": 0.1, **arguments})
    assert message in str(caught.value)
    assert isinstance(caught.value, PacboundError)


# ---- misses among the unsafe rollouts


def among_unsafe(score: Any, unsafe: Any, xi: float = 0.1, delta: float = 0.05, **more: Any) -> Any:
    return certify_shield(score, unsafe, xi=xi, delta=delta, rate="among-unsafe", **more)


def test_the_threshold_is_the_highest_whose_misses_among_the_unsafe_are_few() -> None:
    rng = np.random.default_rng(0)
    found = set()
    for _ in range(40):
        cells = np.unique(rng.integers(-1, 65_537, size=30))
        unsafe = rng.integers(0, 5, size=cells.size)
        cells[0], unsafe[0] = -1, rng.choice([0, 3, 30])
        total = int(unsafe.sum())
        scores = np.append(np.repeat(np.where(cells < 0, -inf, cells / 65_536), unsafe), 0.5)
        certificate = among_unsafe(scores, np.arange(total + 1) < total, 0.2, 0.1)
        misses = np.array([unsafe[cells < cell].sum() for cell in cells.tolist()])
        good = (binomial_upper(misses, total, delta=0.1) <= 0.2) & (cells >= 0) & (unsafe > 0)
        assert certificate.threshold == (cells[good].max() / 65_536 if good.any() else -inf)
        found.add(bool(good.any()))
    assert found == {True, False}


@pytest.mark.parametrize("unsafe", [0, 10, 28])
def test_too_few_unsafe_rollouts_are_refused_with_how_many_it_takes(unsafe: int) -> None:
    flags = np.arange(1000) < unsafe
    certificate = among_unsafe(np.where(flags, 0.9, 0.1), flags)
    assert (certificate.certified, certificate.threshold) == (False, -inf)
    assert certificate.refusal.needed == 29
    assert "29 unsafe rollouts would do if none goes wrong" in certificate.summary()
    assert certificate.verify()


def test_the_rate_is_among_the_unsafe_rollouts_in_words_and_numbers_and_a_shield_runs_on_it() -> (
    None
):
    flags = np.arange(1000) < 100
    scores = np.where(np.arange(1000) < 3, 0.05, np.where(flags, 0.9, 0.1))
    certificate = among_unsafe(scores, flags)
    assert certificate.threshold == int(0.9 * 65_536) / 65_536
    assert certificate.observed_rate == 0.03
    said = certificate.summary()
    assert "1,000 rollouts, 100 of them unsafe" in said
    assert "at most 10 % of all rollouts that have an un-recoverable state are then missed" in said
    assert "all rollouts are then unsafe" not in said
    shield = Shield(lambda _: "drive", lambda _: "brake", lambda x: x, certificate)
    assert [shield(danger) for danger in (0.1, 0.9)] == ["drive", "brake"]


def test_it_implies_the_claim_about_all_rollouts_and_never_brakes_later() -> None:
    rng = np.random.default_rng(1)
    compared = 0
    for _ in range(30):
        unsafe = rng.random(2000) < rng.uniform(0.05, 0.9)
        scores = np.where(unsafe, rng.beta(4, 2, size=2000), rng.beta(1, 8, size=2000))
        scores[unsafe & (rng.random(2000) < 0.02)] = -inf
        among = among_unsafe(scores, unsafe)
        of_all = certify_shield(scores, unsafe, xi=0.1, delta=0.05)
        assert among.threshold <= of_all.threshold
        # What the shield lets through, among all rollouts, is within the second claim's budget.
        assert int((unsafe & (scores < among.threshold)).sum()) <= of_all.allowed
        compared += among.certified
    assert compared > 5


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"looks": [1000, 2000]}, "go with rate='all', not with 'among-unsafe'"),
        ({"looks": planned_looks(0.1, delta=0.05, looks=[1000])}, "not with 'among-unsafe'"),
    ],
)
def test_looks_do_not_go_with_it(more: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidValueError, match=message):
        among_unsafe([0.5], [True], **more)
