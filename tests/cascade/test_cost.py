"""What a cascade costs at most: from fresh scores, and from the rows that chose its thresholds."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.stats import binom

from pacbound import Tally, binomial_upper, certify_cascade, load_certificate
from pacbound.cascade import CascadeCost, certified_cost, estimated_cost
from pacbound.claims.cascade import CascadeCertificate, certify_declared
from pacbound.errors import (
    CertificateError,
    InvalidTypeError,
    InvalidValueError,
    PacboundError,
    RepeatedSourceError,
)
from pacbound.procedures.cascade_front import Declared


def two_models(n: int = 2000, **options: Any) -> CascadeCertificate:
    """At 0.5 and above the fast model agrees; below, it is wrong."""
    confidence = np.linspace(0, 1, n)
    fast = (confidence < 0.5).astype(int)
    given: dict[str, Any] = {"xi": 0.05, "delta": 0.01, "costs": [2, 10]} | options
    found: CascadeCertificate = certify_cascade(
        confidence, np.column_stack([fast, np.zeros(n, int)]), np.zeros(n), **given
    )
    return found


def three_models(n: int = 3000, **options: Any) -> CascadeCertificate:
    rng = np.random.default_rng(0)
    scores = rng.random((n, 2))
    wrong = rng.random((n, 2)) > 0.5 + 0.6 * scores
    predictions = np.column_stack([wrong, np.zeros(n, bool)]).astype(int)
    given: dict[str, Any] = {"xi": 0.1, "delta": 0.05, "costs": [1, 3, 10], "bound": "pair"}
    given |= options
    found: CascadeCertificate = certify_cascade(scores, predictions, np.zeros(n), **given)
    return found


def front(n: int = 3000) -> CascadeCertificate:
    rng = np.random.default_rng(0)
    scores = rng.random((n, 2))
    wrong = rng.random((n, 2)) > 0.5 + 0.6 * scores
    predictions = np.column_stack([wrong, np.zeros(n, bool)]).astype(int)
    tally = Tally.count("cascade", confidence=scores, prediction=predictions, label=np.zeros(n))
    steps = np.array([[1000, 1025], [1025, 800], [900, 950], [800, 900], [0, 0]]).T
    declared = Declared((5, 1, 0), (1.0, 2.0, 7.0), 0.2, 0, 500, steps)
    return certify_declared(tally, declared, xi=0.1, delta=0.05, bound="pair")


def test_fresh_scores_bound_the_share_that_stays_by_clopper_pearson() -> None:
    certificate = two_models()
    threshold = certificate.thresholds[0]
    fresh = np.array([threshold] * 700 + [np.nextafter(threshold, 0)] * 300)
    bound = certified_cost(certificate, fresh, delta=0.02)
    assert bound.upper == pytest.approx(2 + 8 * binomial_upper(300, 1000, delta=0.02), rel=1e-15)
    assert bound.observed == pytest.approx(2 + 8 * 0.3)
    assert (bound.rows, bound.source, bound.slow) == (1000, "fresh", 10)
    assert (bound.delta, bound.together) == (0.02, 0.03)


def test_the_bound_from_fresh_scores_misses_with_probability_at_most_delta() -> None:
    """Exactly: over all numbers of rows that may stay."""
    certificate, rows, delta = two_models(), 25, 0.1
    threshold = certificate.thresholds[0]
    uppers = np.array(
        [
            certified_cost(
                certificate, [0.0] * stay + [threshold] * (rows - stay), delta=delta
            ).upper
            for stay in range(rows + 1)
        ]
    )
    missed = []
    for share in np.linspace(0.01, 0.99, 99):
        misses = uppers < 2 + 8 * share
        missed.append(float(binom.pmf(np.arange(rows + 1), rows, share)[misses].sum()))
    assert max(missed) <= delta
    assert max(missed) > delta / 2, "this bound is far wider than it must be"


def test_several_exits_share_the_delta() -> None:
    certificate = three_models()
    first, second = certificate.thresholds
    assert 0 < first <= 1
    assert 0 < second <= 1
    fresh = np.array([[1.0, 0.0]] * 300 + [[0.0, 1.0]] * 500 + [[0.0, 0.0]] * 200)
    upper = certified_cost(certificate, fresh, delta=0.02).upper
    stay = [binomial_upper(count, 1000, delta=0.01) for count in (700, 200)]
    assert upper == pytest.approx(1 + 2 * stay[0] + 7 * stay[1], rel=1e-14)


def test_the_same_rows_bound_it_by_dkw() -> None:
    certificate = two_models()
    bound = certified_cost(certificate, delta=0.02)
    stay = 1 - certificate.exit_rates[0] + np.sqrt(np.log(1 / 0.02) / (2 * 2000))
    assert bound.upper == pytest.approx(2 + 8 * stay, rel=1e-12)
    assert bound.upper >= 2 + 8 * stay
    assert (bound.rows, bound.source) == (2000, "same")
    assert bound.observed == certificate.expected_cost


def test_the_same_rows_pay_for_all_paths_and_exits() -> None:
    certificate = three_models()
    stay = 1 - np.cumsum(certificate.exit_rates)
    stay = stay + np.sqrt(np.log(14 / 0.02) / (2 * certificate.n))
    bound = certified_cost(certificate, delta=0.02)
    assert bound.upper == pytest.approx(1 + 2 * stay[0] + 7 * stay[1], rel=1e-12)


def test_the_same_rows_pay_for_all_steps_that_a_fold_declared() -> None:
    certificate = front()
    assert certificate.cells == (800, 900)
    left = np.cumsum(certificate.exit_counts)
    stay = [binomial_upper(3000 - count, 3000, delta=0.02 / 10) for count in left.tolist()]
    bound = certified_cost(certificate, delta=0.02)
    assert bound.upper == pytest.approx(1 + 2 * stay[0] + 7 * stay[1], rel=1e-12)
    assert bound.slow == 7


def certain(certificate: CascadeCertificate, **given: Any) -> float:
    return certified_cost(certificate, delta=0.01, **given).upper


def test_what_is_certain_costs_no_delta() -> None:
    """A threshold of 0 leaves nobody, and a refusal lets nobody leave."""
    everywhere = certify_cascade(
        [0.5] * 500, [[0, 0]] * 500, [0] * 500, xi=0.05, delta=0.05, costs=[2, 10]
    )
    assert everywhere.thresholds.tolist() == [0.0]
    assert certain(everywhere) == certain(everywhere, confidence=[0.0, 0.3]) == 2.0
    refused = two_models(10)
    assert not refused.certified
    assert certain(refused) == certain(refused, confidence=[1.0, 1.0]) == 10.0


def test_an_exit_that_is_never_taken_is_not_paid_for() -> None:
    n = 1000
    tally = Tally.count(
        "cascade",
        confidence=np.full((n, 2), 0.9),
        prediction=np.zeros((n, 3), int),
        label=np.zeros(n),
    )
    declared = Declared((0, 1, 2), (1.0, 2.0, 7.0), 0.2, 0, 9, np.array([[1025], [500]]))
    certificate = certify_declared(tally, declared, xi=0.05, delta=0.05)
    assert certificate.thresholds.tolist() == [np.inf, 500 / 1024]
    assert certificate.expected_cost == 2.0
    fresh = np.array([[1.0, 0.9]] * 90 + [[1.0, 0.1]] * 10)
    bound = certified_cost(certificate, fresh, delta=0.02)
    assert bound.observed == pytest.approx(2 + 7 * 0.1)
    assert bound.upper == pytest.approx(2 + 7 * binomial_upper(10, 100, delta=0.02), rel=1e-14)


def test_dkw_holds_at_the_threshold_that_hurts_most(judge: Callable[..., None]) -> None:
    """For every sample the adversary takes the threshold at which the rows flatter most."""
    rng, n, delta, runs = np.random.default_rng(0), 50, 0.2, 4000
    reach = np.sqrt(np.log(1 / delta) / (2 * n))
    for law in ("continuous", "atoms"):
        scores = rng.random((runs, n))
        if law == "atoms":
            scores = np.floor(scores * 7) / 7
        points = np.linspace(0, 1, 701)[1:]
        # The share that leaves in truth: P(score >= point).
        truth = 1 - points if law == "continuous" else 1 - np.ceil(points * 7 - 1e-9) / 7
        seen = (
            (scores[:, :, None] >= points).mean(axis=1)
            if law == "atoms"
            else _shares(scores, points)
        )
        worst = (seen - truth).max(axis=1)
        violations = int((worst > reach).sum())
        judge(violations, runs, delta)
        assert law == "atoms" or violations > runs * delta / 2, "the adversary is too kind"


def _shares(scores: Any, points: Any) -> Any:
    ordered = np.sort(scores, axis=1)
    below = np.stack([np.searchsorted(row, points, side="left") for row in ordered])
    return 1 - below / scores.shape[1]


@pytest.fixture(scope="module")
def judge() -> Callable[..., None]:
    def judged(violations: int, runs: int, delta: float) -> None:
        assert binom.sf(violations - 1, runs, delta) > 1e-6, (violations, runs)

    return judged


def test_a_file_of_fresh_scores_says_what_the_arrays_say(tmp_path: Path) -> None:
    certificate = three_models()
    fresh = np.random.default_rng(1).random((777, 2))
    np.savez(tmp_path / "fresh.npz", a=fresh[:, 0], b=fresh[:, 1])
    lines = "\n".join(f"{a!r},{b!r}" for a, b in fresh.tolist())
    (tmp_path / "fresh.csv").write_text(f"a,b\n{lines}\n")
    arrays = certified_cost(certificate, fresh, delta=0.01)
    for name in ("fresh.npz", "fresh.csv"):
        shares: list[float] = []
        file = certified_cost(
            certificate,
            confidence=["a", "b"],
            data=tmp_path / name,
            delta=0.01,
            progress=shares.append,
        )
        assert file == arrays


def test_the_file_that_was_certified_on_is_not_fresh(tmp_path: Path) -> None:
    confidence = np.linspace(0, 1, 500)
    np.savez(tmp_path / "rows.npz", c=confidence, p=np.zeros(500), y=np.zeros(500))
    path = tmp_path / "rows.npz"
    named: Any = {"confidence": ["c"], "prediction": ["p", "y"], "label": "y"}
    certificate = certify_cascade(data=path, **named, xi=0.05, delta=0.05, costs=[1, 2])
    with pytest.raises(RepeatedSourceError, match="not fresh"):
        certified_cost(certificate, data=path, confidence="c", delta=0.05)


def test_a_certificate_from_a_file_is_verified_first(tmp_path: Path) -> None:
    certificate = two_models()
    certificate.save(tmp_path / "c.json")
    loaded = load_certificate(tmp_path / "c.json")
    assert isinstance(loaded, CascadeCertificate)
    assert certified_cost(loaded, delta=0.01) == certified_cost(certificate, delta=0.01)
    document = json.loads((tmp_path / "c.json").read_text())
    document["claim"]["costs"][0] = 1.0
    (tmp_path / "d.json").write_text(json.dumps(document))
    changed = load_certificate(tmp_path / "d.json")
    assert isinstance(changed, CascadeCertificate)
    with pytest.raises(CertificateError, match="changed after it was written"):
        certified_cost(changed, delta=0.01)


@pytest.mark.parametrize(
    ("given", "error", "message"),
    [
        ({"confidence": [0.5, np.nan]}, InvalidValueError, r"confidence\[:, 0\]\[1\] is nan"),
        ({"confidence": [0.5, 3.0]}, InvalidValueError, "expected scores from 0 to 1"),
        ({"confidence": []}, InvalidValueError, "no rows"),
        ({"confidence": np.ones((5, 2))}, InvalidValueError, "expected 1, one of each exit"),
        ({"confidence": ["a"]}, InvalidTypeError, "does not hold scores"),
        ({"delta": 0.6}, InvalidValueError, "chance that the claim is wrong"),
        ({"delta": 0}, InvalidValueError, "failure probability"),
        ({"data": "x.npz"}, InvalidTypeError, "confidence is missing"),
        ({"progress": 3}, InvalidTypeError, "progress is of type int"),
        (
            {"data": "x.npz", "confidence": ["c", "d"]},
            InvalidValueError,
            "confidence has 2 columns: expected 1, one of each exit",
        ),
        ({"data": "x.npz", "confidence": [0.5]}, InvalidTypeError, "names its columns"),
    ],
)
def test_what_cannot_be_is_refused(
    given: dict[str, Any], error: type[PacboundError], message: str
) -> None:
    with pytest.raises(error, match=message):
        certified_cost(two_models(), **({"delta": 0.01} | given))


def test_certificates_without_costs_or_proof_have_no_bound() -> None:
    with pytest.raises(InvalidValueError, match="no costs"):
        certified_cost(two_models(costs=None), delta=0.01)
    with pytest.raises(InvalidValueError, match="not certified"):
        certified_cost(three_models(method="greedy"), delta=0.01)
    with pytest.raises(InvalidTypeError, match="list is not a cascade certificate"):
        certified_cost([0.5], delta=0.01)  # type: ignore[arg-type]


def test_the_bound_is_printed_rounded_up() -> None:
    bound = certified_cost(two_models(), delta=0.02)
    shown = float(str(bound).split("at most ")[1].split(" on")[0])
    assert bound.upper <= shown <= bound.upper * 1.001


# ------------------------------------------------------------------------------------------- money


def test_each_model_that_a_request_is_passed_through_is_paid() -> None:
    certificate = two_models()
    (threshold,) = certificate.thresholds.tolist()
    rng = np.random.default_rng(1)
    scores, costs = rng.random(500), rng.random((500, 2))
    exits = scores >= threshold
    spent = np.where(exits, costs[:, 0], costs.sum(axis=1))
    found = estimated_cost(certificate, scores, costs)
    assert found.mean == pytest.approx(spent.mean())
    assert found.slow == pytest.approx(costs[:, 1].mean())
    assert found.saved == pytest.approx(1 - spent.mean() / costs[:, 1].mean())
    assert found.rows == 500
    assert found.saved_a_month is None


def test_a_model_that_never_answers_is_not_paid() -> None:
    certificate = three_models()
    thresholds = certificate.thresholds.tolist()
    rng = np.random.default_rng(2)
    scores, costs = rng.random((300, 2)), rng.random((300, 3))
    total = 0.0
    for score, cost in zip(scores.tolist(), costs.tolist(), strict=True):
        for m, threshold in enumerate(thresholds):
            if np.isinf(threshold):
                continue
            total += cost[m]
            if score[m] >= threshold:
                break
        else:
            total += cost[-1]
    assert estimated_cost(certificate, scores, costs).mean == pytest.approx(total / 300)
    refused = two_models(n=20)
    assert not refused.certified
    alone = estimated_cost(refused, [0.9, 1.0], [[1, 5], [1, 7]])
    assert (alone.mean, alone.slow, alone.saved) == (6.0, 6.0, 0.0)


def test_tokens_cost_their_price_by_the_million() -> None:
    certificate, tokens = two_models(), np.array([[1000, 100, 2000, 50], [400, 0, 0, 10]])
    costs = np.array([[1000 * 0.5 + 100 * 2, 2000 * 5 + 50 * 20], [400 * 0.5, 10 * 20]]) / 1e6
    by_tokens = estimated_cost(certificate, [0.9, 0.1], tokens=tokens, price=[0.5, 2, 5, 20])
    by_cost = estimated_cost(certificate, [0.9, 0.1], costs)
    assert by_tokens.mean == pytest.approx(by_cost.mean)
    assert by_tokens.slow == pytest.approx(by_cost.slow)


def test_money_is_said_in_words_and_as_an_estimate() -> None:
    assert str(CascadeCost(0.0042, 0.0166, 5000, "EUR", 100_000)).splitlines() == [
        "A request costs about 0.0042 EUR on average, and 0.0166 EUR by the slow model.",
        "That saves about 1,240 EUR a month at 100,000 requests (75 %).",
        "This is an estimate from 5,000 requests, and no part of the guarantee.",
    ]
    dearer = str(CascadeCost(3.0, 2.0, 10, "USD", 50))
    assert "That costs about 50 USD more a month at 50 requests (50 %)." in dearer
    assert "\nThat saves 75 %.\n" in str(CascadeCost(0.5, 2.0, 10))
    assert CascadeCost(0.0, 0.0, 1).saved == 0.0


@pytest.mark.parametrize(
    ("given", "error", "said"),
    [
        ({}, InvalidTypeError, "Pass cost"),
        ({"cost": [[1, 2]] * 3, "tokens": [[1, 2, 3, 4]] * 3}, InvalidTypeError, "Pass cost"),
        ({"cost": [[1, 2]] * 3, "price": [1]}, InvalidTypeError, "Pass cost"),
        ({"tokens": [[1, 2, 3, 4]] * 3}, InvalidTypeError, "Pass cost"),
        ({"tokens": [[1, 2, 3, 4]] * 3, "price": [1, 2]}, InvalidValueError, "expected 4 numbers"),
        ({"tokens": [[1, 2, 3, 4]] * 3, "price": [1, 2, 3, -4]}, InvalidValueError, "from 0 on"),
        (
            {"tokens": [[1, 2]] * 3, "price": [1, 2, 3, 4]},
            InvalidValueError,
            "tokens has 2 columns",
        ),
        ({"cost": [[1, 2, 3]] * 3}, InvalidValueError, "expected 2, one of each model"),
        ({"cost": [1.0, 2.0, 3.0]}, InvalidValueError, "expected 2, one of each model"),
        ({"cost": [[1, 2]] * 4}, InvalidValueError, "Rows do not match"),
        ({"cost": [[1, 2], [1, np.nan], [1, 3]]}, InvalidValueError, r"cost\[:, 1\]\[1\] is nan"),
        ({"cost": [[1, 2], [-1, 2], [1, 3]]}, InvalidValueError, r"\[1\] is -1.0 \(1 such"),
        ({"cost": [["a", "b"]] * 3}, InvalidTypeError, "dtype"),
        ({"cost": [[1, 2]] * 3, "requests": 0}, InvalidValueError, "requests"),
        ({"cost": [[1, 2]] * 3, "currency": 3}, InvalidTypeError, "currency"),
        ({"cost": [[1, 2]] * 3, "classes": [1]}, InvalidTypeError, "classes"),
    ],
)
def test_what_cannot_be_a_cost_is_named(
    given: dict[str, Any], error: type[PacboundError], said: str
) -> None:
    with pytest.raises(error, match=said):
        estimated_cost(two_models(), [0.1, 0.5, 0.9], **given)


def test_no_rows_and_other_certificates_have_no_estimate() -> None:
    with pytest.raises(InvalidValueError, match="no rows"):
        estimated_cost(two_models(), np.zeros(0), np.zeros((0, 2)))
    grouped = two_models(groups=np.arange(2000) % 2, bound="pair")
    with pytest.raises(InvalidTypeError, match="without groups"):
        estimated_cost(grouped, [0.5], [[1, 2]])


def test_files_give_the_estimate_of_arrays(tmp_path: Path) -> None:
    certificate, rng = two_models(), np.random.default_rng(3)
    scores, tokens = rng.random(200), rng.integers(0, 3000, size=(200, 4))
    lines = ["s,a,b,c,d"]
    lines += [
        ",".join(map(str, [100 * score, *row])) for score, row in zip(scores, tokens, strict=True)
    ]
    (tmp_path / "log.csv").write_text("\n".join(lines))
    prices: dict[str, Any] = {"price": [0.1, 0.4, 2, 8], "currency": "EUR", "requests": 1000}
    arrays = estimated_cost(certificate, scores, tokens=tokens, **prices)
    files = estimated_cost(
        certificate,
        "s",
        tokens=["a", "b", "c", "d"],
        data=tmp_path / "log.csv",
        scale=100,
        **prices,
    )
    assert files.mean == pytest.approx(arrays.mean)
    assert (files.rows, files.currency, files.requests) == (200, "EUR", 1000)
    with pytest.raises(InvalidTypeError, match="names its columns"):
        estimated_cost(certificate, "s", [[1, 2]], data=tmp_path / "log.csv")
