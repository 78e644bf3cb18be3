"""`certify_shield`: from rollouts to a certificate, by the exact bound or the paper's product."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from pacbound import Tally, certify_shield, load_certificate
from pacbound.errors import InvalidTypeError, InvalidValueError, PacboundError

N, P, XI, DELTA = 2000, 0.05, 0.02, 0.01


def rollouts(seed: int = 0, n: int = N) -> tuple[Any, Any, Any]:
    """Running maxima, whether the rollout is unsafe, and the danger at the first un-recoverable
    state."""
    rng = np.random.default_rng(seed)
    unsafe = rng.random(n) < P
    scores = np.where(unsafe, rng.beta(8, 2, size=n), rng.beta(1, 8, size=n))
    return scores, unsafe, np.where(unsafe, scores * rng.beta(8, 1, size=n), np.nan)


def misses(score: Any, unsafe: Any, threshold: float) -> int:
    return int((np.asarray(unsafe, dtype=bool) & (score < threshold)).sum())


def test_the_exact_bound_allows_25_misses_where_the_product_allows_17() -> None:
    unsafe = np.arange(N) < P * N
    scores = np.linspace(0, 1, N)
    exact = certify_shield(scores, unsafe, xi=XI, delta=DELTA)
    product = certify_shield(
        scores, unsafe, xi=XI, delta=DELTA, bound="product", final_scores=scores
    )
    assert (exact.allowed, product.allowed) == (25, 17)
    assert misses(scores, unsafe, exact.threshold) == 25
    assert misses(scores, unsafe, product.threshold) == 17


def test_the_misses_below_the_threshold_are_as_many_as_are_allowed_and_no_more() -> None:
    scores, unsafe, final = rollouts()
    exact = certify_shield(scores, unsafe, xi=XI, delta=DELTA)
    product = certify_shield(
        scores, unsafe, xi=XI, delta=DELTA, bound="product", final_scores=final
    )
    for certificate, score in ((exact, scores), (product, final)):
        assert misses(score, unsafe, certificate.threshold) == certificate.allowed
        assert misses(score, unsafe, certificate.threshold + 2**-16) > certificate.allowed
        assert certificate.observed_miss_rate == certificate.allowed / N
        assert certificate.verify()
    assert exact.threshold > product.threshold
    assert exact.interventions == (scores >= exact.threshold).sum()


@pytest.mark.parametrize("bound", ["exact", "product"])
def test_a_tally_gives_the_claim_of_the_arrays_however_it_was_put_together(
    bound: Any, tmp_path: Any
) -> None:
    scores, unsafe, final = rollouts()
    more: dict[str, Any] = {"final_scores": final} if bound == "product" else {}
    whole = certify_shield(scores, unsafe, xi=XI, delta=DELTA, bound=bound, **more)
    parts = [
        Tally.from_arrays(
            scores=scores[part],
            unsafe=unsafe[part],
            **{key: value[part] for key, value in more.items()},
        )
        for part in (slice(0, 700), slice(700, None))
    ]
    summed = certify_shield(parts[1] + parts[0], xi=XI, delta=DELTA, bound=bound)
    assert summed.claim_digest == whole.claim_digest
    whole.save(tmp_path / "shield.json")
    assert load_certificate(tmp_path / "shield.json").claim_digest == whole.claim_digest


def test_taking_the_last_danger_for_the_maximum_is_loose_and_never_wrong() -> None:
    scores, unsafe, final = rollouts()
    by_last, by_maximum = (
        Tally.from_arrays(scores=s, unsafe=unsafe)
        for s in (np.where(unsafe, final, scores), scores)
    )
    assert (by_last.counts.sum(axis=0) == by_maximum.counts.sum(axis=0)).all()
    for bound in ("exact", "product"):
        loose = certify_shield(by_last, xi=XI, delta=DELTA, bound=bound)
        tight = certify_shield(by_maximum, xi=XI, delta=DELTA, bound=bound)
        assert loose.threshold <= tight.threshold


def test_the_last_danger_of_a_safe_rollout_is_not_looked_at() -> None:
    scores, unsafe, final = rollouts()
    digests = set()
    for filler in (np.nan, 0.0, 7.0, -np.inf, np.inf, None):
        other = [filler if np.isnan(value) else value for value in final]
        certificate = certify_shield(
            scores, unsafe, xi=XI, delta=DELTA, bound="product", final_scores=other
        )
        digests.add(certificate.claim_digest)
    masked = np.ma.masked_invalid(final)
    digests.add(
        certify_shield(
            scores, unsafe, xi=XI, delta=DELTA, bound="product", final_scores=masked
        ).claim_digest
    )
    assert len(digests) == 1


@pytest.mark.parametrize("bound", ["exact", "product"])
def test_a_rollout_lost_at_the_start_is_missed_at_every_threshold(bound: Any) -> None:
    unsafe = np.arange(400) < 40
    scores = np.where(unsafe, 1.0, 0.1)
    scores[:3] = -np.inf
    more: dict[str, Any] = {"final_scores": scores} if bound == "product" else {}
    certificate = certify_shield(scores, unsafe, xi=0.05, delta=0.05, bound=bound, **more)
    assert certificate.threshold == 1.0
    assert certificate.observed_miss_rate == 3 / 400
    scores[:30] = -np.inf
    refused = certify_shield(scores, unsafe, xi=0.05, delta=0.05, bound=bound, **more)
    assert not refused.certified
    assert refused.threshold == -np.inf
    assert "Always brake" in refused.summary()


@pytest.mark.parametrize("bound", ["exact", "product"])
def test_a_policy_that_is_safe_enough_alone_needs_no_shield(bound: Any) -> None:
    more: dict[str, Any] = {"final_scores": np.zeros(1000)} if bound == "product" else {}
    certificate = certify_shield(
        np.zeros(1000), np.arange(1000) < 5, xi=0.05, delta=0.05, bound=bound, **more
    )
    assert certificate.threshold == np.inf
    assert "Never hand over" in certificate.summary()
    assert certificate.interventions == 0


def test_dangers_of_zero_are_certified_and_said_to_be_of_no_use() -> None:
    certificate = certify_shield(np.zeros(1000), np.arange(1000) < 500, xi=0.05, delta=0.05)
    assert certificate.threshold == 0.0
    assert "certified but of no use" in certificate.summary()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"scores": [0.1], "unsafe": None}, "unsafe is missing"),
        ({"scores": [0.1], "unsafe": [0], "bound": "product"}, "needs final_scores"),
        ({"scores": [0.1], "unsafe": [0], "final_scores": [0.1]}, "goes with bound='product'"),
        ({"scores": [0.1], "unsafe": [0], "bound": "pair"}, "bound='pair' is not known"),
        ({"scores": Tally.from_arrays(scores=[0.1], unsafe=[0]), "unsafe": [0]}, "already holds"),
        (
            {
                "scores": Tally.from_arrays(scores=[0.1], unsafe=[0]),
                "unsafe": None,
                "final_scores": [0.1],
            },
            "already holds",
        ),
        (
            {"scores": Tally.from_arrays(confidence=[0.1], correct=[0]), "unsafe": None},
            "not a tally of a shield",
        ),
        ({"scores": [], "unsafe": []}, "no rollouts"),
        ({"scores": [0.1, 0.2], "unsafe": [0]}, "Rows do not match"),
        ({"scores": [0.1], "unsafe": [2]}, "unsafe[0] is 2"),
        ({"scores": [0.1], "unsafe": [0], "xi": 1.0}, "xi=1.0"),
        ({"scores": [0.1], "unsafe": [0], "delta": 0}, "delta=0"),
        ({"scores": [np.nan], "unsafe": [1]}, "Drop no rollout"),
        ({"scores": [np.inf], "unsafe": [1]}, "scores[0] is inf"),
        (
            {"scores": [0.5], "unsafe": [1], "bound": "product", "final_scores": [np.nan]},
            "final_scores[0] is nan",
        ),
        (
            {"scores": [0.5], "unsafe": [1], "bound": "product", "final_scores": [None]},
            "final_scores[0] is nan",
        ),
        (
            {"scores": [0.5], "unsafe": [1], "bound": "product", "final_scores": [0.6]},
            "Were they swapped?",
        ),
        (
            {"scores": [-np.inf], "unsafe": [1], "bound": "product", "final_scores": [0.6]},
            "Were they swapped?",
        ),
        (
            {"scores": [0.5], "unsafe": [1], "bound": "product", "final_scores": [0.1, 0.2]},
            "Rows do not match",
        ),
        (
            {"scores": [0.5], "unsafe": [1], "bound": "product", "final_scores": ["a"]},
            "does not hold scores",
        ),
    ],
)
def test_arguments_that_make_no_claim_are_explained(
    arguments: dict[str, Any], message: str
) -> None:
    with pytest.raises((InvalidTypeError, InvalidValueError)) as caught:
        certify_shield(**{"xi": 0.1, "delta": 0.1, **arguments})
    assert message in str(caught.value)
    assert isinstance(caught.value, PacboundError)
