"""Clusters drawn among the trials: over all small cohorts and all draws, claims about the law that
they name are wrong with probability at most delta; and those about other laws are not.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from functools import partial
from math import factorial
from typing import Any

import numpy as np
import pytest
from scipy.special import bdtrc

from pacbound import (
    certify_false_alarms,
    certify_recall,
    certify_shield,
    certify_together,
)
from pacbound.stats.binomial import binomial_upper
from pacbound.tally import draws
from pacbound.tally.keyed_numbers import keyed_numbers

# A row is a score and whether it is positive; a cluster is its rows.
Row = tuple[float, bool]
Law = Sequence[tuple[Fraction, Sequence[Row]]]

LOW, MIDDLE, HIGH = 0.2, 0.5, 0.8
PERCENT = Fraction(1, 100)
# Large clusters are missed more often than small ones; some have no positive at all.
MIXED: Law = [
    (40 * PERCENT, [(HIGH, True), (LOW, False)]),
    (45 * PERCENT, [(LOW, True), (LOW, True), (MIDDLE, True), (MIDDLE, False)]),
    (15 * PERCENT, [(LOW, False), (HIGH, False)]),
]
# Of the positive rows 10 of 11 are missed, and of the clusters half.
UNEVEN: Law = [
    (50 * PERCENT, [(HIGH, True), *[(LOW, False)] * 3]),
    (50 * PERCENT, [(LOW, True)] * 10),
]


def _mirrored(law: Law) -> Law:
    """The same for false alarms: low negatives in the place of high positives."""
    return [(weight, [(1.0 - s, not positive) for s, positive in rows]) for weight, rows in law]


def _trials(rows: Sequence[Row], *, positive: bool) -> list[float]:
    return [score for score, flag in rows if flag is positive]


def _per_cluster(law: Law, event: Callable[[float], bool], *, positive: bool) -> Fraction:
    """How often a random trial of a random cluster that has one is an event."""
    held = [(weight, _trials(rows, positive=positive)) for weight, rows in law]
    held = [(weight, scores) for weight, scores in held if scores]
    parts = (w * Fraction(sum(map(event, scores)), len(scores)) for w, scores in held)
    return sum(parts, Fraction(0)) / sum(weight for weight, _ in held)


def _per_row(law: Law, event: Callable[[float], bool], *, positive: bool) -> Fraction:
    """How often a random trial is an event."""
    held = [(weight, _trials(rows, positive=positive)) for weight, rows in law]
    events = sum((w * sum(map(event, scores)) for w, scores in held), Fraction(0))
    return events / sum(w * len(scores) for w, scores in held)


# What a cluster gives: the chance, its rows, which trial is drawn, and whether it is kept.
Given = tuple[Fraction, Sequence[Row], int, int]


def _given(law: Law, bound: int | None, *, positive: bool) -> list[Given]:
    """All that a cluster can give, each with its chance. With a bound, the row is kept if one of
    `bound` equally likely numbers is below the number of its trials. Rows of one score are alike.
    """
    found: list[Given] = []
    for weight, rows in law:
        scores = _trials(rows, positive=positive) or [0.0]
        kept = Fraction(len(scores), bound or len(scores))
        for score in sorted(set(scores)):
            chance = weight * Fraction(scores.count(score), len(scores))
            found.append((chance * kept, rows, scores.index(score), 0))
            if kept < 1:
                found.append((chance * (1 - kept), rows, scores.index(score), len(scores)))
    return found


def _cohorts(given: Sequence[Given], size: int) -> Iterator[tuple[float, list[Given]]]:
    """All cohorts of so many clusters, in no order, with their chances."""

    def counts(places: int, left: int) -> Iterator[tuple[int, ...]]:
        if places == 1:
            yield (left,)
            return
        for first in range(left + 1):
            for rest in counts(places - 1, left - first):
                yield (first, *rest)

    for times in counts(len(given), size):
        chance = Fraction(factorial(size))
        for (weight, *_), many in zip(given, times, strict=True):
            chance *= weight**many / factorial(many)
        members = [one for one, many in zip(given, times, strict=True) for _ in range(many)]
        yield float(chance), members


def _columns(cohort: Sequence[Given]) -> dict[str, Any]:
    rows = [row for _, held, *_ in cohort for row in held]
    return {
        "score": np.array([score for score, _ in rows]),
        "positive": np.array([flag for _, flag in rows]),
        "clusters": np.repeat(np.arange(len(cohort)), [len(held) for _, held, *_ in cohort]),
    }


@pytest.fixture
def certified(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Any]:
    """Certifies a cohort with the draws that it says, in place of those by a hash."""

    def run(cohort: Sequence[Given], certify: Any, *, positive: bool, **asked: Any) -> Any:
        bound = asked.get("cluster_bound") or 1
        trials = [max(1, len(_trials(rows, positive=positive))) for _, rows, *_ in cohort]
        numbers = np.array(
            [
                # The least number that draws this row, and the least that is or is not kept.
                [-(-(within << 64) // size), -(-(number << 64) // bound), 0]
                for (_, _, within, number), size in zip(cohort, trials, strict=True)
            ],
            dtype=np.uint64,
        )

        def keyed(_: int, purpose: str, names: Any, *, each: int = 1) -> Any:
            listed = list(names)
            if purpose == "cluster":
                return numbers[[int(name) for name in listed]]
            return np.arange(len(listed) * each, dtype=np.uint64).reshape(-1, each)

        monkeypatch.setattr(draws, "keyed_numbers", keyed)
        return certify(**_columns(cohort), **asked)

    return run


def _chance_to_be_wrong(
    law: Law,
    size: int,
    certify: Callable[[Sequence[Given]], Any],
    rate: Callable[[float], Fraction],
    allowed: Fraction,
    *,
    positive: bool,
    bound: int | None = None,
) -> float:
    """Over all cohorts and draws, how often the rate at the certified threshold is above what is
    allowed.
    """
    wrong = 0.0
    for chance, cohort in _cohorts(_given(law, bound, positive=positive), size):
        held = [one for one in cohort if _trials(one[1], positive=positive)]
        if bound is not None and not any(
            one[3] < len(_trials(one[1], positive=positive)) for one in held
        ):
            # Nothing is kept, which raises.
            continue
        certificate = certify(cohort)
        if certificate.certified and rate(certificate.threshold) > allowed:
            wrong += chance
    return wrong


DELTAS = (0.1, 0.3)


@pytest.mark.parametrize("delta", DELTAS)
@pytest.mark.parametrize("law", [MIXED, UNEVEN])
def test_recall_of_a_random_positive_of_a_random_cluster_is_wrong_at_most_delta(
    certified: Callable[..., Any], law: Law, delta: float
) -> None:
    target = 0.55

    def certify(cohort: Sequence[Given]) -> Any:
        return certified(cohort, certify_recall, positive=True, target=target, delta=delta)

    def rate(threshold: float) -> Fraction:
        return _per_cluster(law, lambda score: score < threshold, positive=True)

    wrong = _chance_to_be_wrong(law, 8, certify, rate, 1 - Fraction(target), positive=True)
    assert 0 < wrong <= delta


@pytest.mark.parametrize("delta", DELTAS)
def test_false_alarms_of_a_random_negative_of_a_random_cluster_are_wrong_at_most_delta(
    certified: Callable[..., Any], delta: float
) -> None:
    law, xi = _mirrored(MIXED), 0.45

    def certify(cohort: Sequence[Given]) -> Any:
        return certified(cohort, certify_false_alarms, positive=False, xi=xi, delta=delta)

    def rate(threshold: float) -> Fraction:
        return _per_cluster(law, lambda score: score >= threshold, positive=False)

    wrong = _chance_to_be_wrong(law, 8, certify, rate, Fraction(xi), positive=False)
    assert 0 < wrong <= delta


def test_what_is_drawn_by_clusters_breaks_a_claim_about_rows(
    certified: Callable[..., Any],
) -> None:
    """Half of the clusters are missed and 10 of 11 of the rows: the claim must name its law."""
    target, delta = 0.25, 0.1

    def certify(cohort: Sequence[Given]) -> Any:
        return certified(cohort, certify_recall, positive=True, target=target, delta=delta)

    def per_row(threshold: float) -> Fraction:
        return _per_row(UNEVEN, lambda score: score < threshold, positive=True)

    assert per_row(HIGH) == Fraction(10, 11)
    allowed = 1 - Fraction(target)
    wrong = _chance_to_be_wrong(UNEVEN, 12, certify, per_row, allowed, positive=True)
    assert wrong > 0.5


# With a bound of 3: of the positives 3 of 4 are missed, of the clusters half; sizes are all alike.
BOUNDED: Law = [
    (50 * PERCENT, [(HIGH, True), (LOW, False), (LOW, False)]),
    (50 * PERCENT, [(LOW, True)] * 3),
]


@pytest.mark.parametrize("delta", DELTAS)
def test_with_a_bound_recall_is_that_of_a_random_positive(
    certified: Callable[..., Any], delta: float
) -> None:
    target = 0.3

    def certify(cohort: Sequence[Given]) -> Any:
        return certified(
            cohort, certify_recall, positive=True, target=target, delta=delta, cluster_bound=3
        )

    def per_row(threshold: float) -> Fraction:
        return _per_row(BOUNDED, lambda score: score < threshold, positive=True)

    assert per_row(HIGH) == Fraction(3, 4)
    allowed = 1 - Fraction(target)
    wrong = _chance_to_be_wrong(BOUNDED, 9, certify, per_row, allowed, positive=True, bound=3)
    assert 0 < wrong <= delta


def test_keeping_by_the_size_of_a_cluster_would_break_it() -> None:
    """With size / bound in place of positives / bound, half is certified where 3/4 is true: the
    clusters above are all of size 3, so that every drawn positive would be kept.
    """
    target, delta, clusters = 0.3, 0.1, 12
    most = max(k for k in range(clusters) if binomial_upper(k, clusters, delta=delta) <= 1 - target)
    # Each drawn positive is missed with probability 1/2.
    assert 1 - float(bdtrc(most, clusters, 0.5)) > 0.3


def _is_below(threshold: float, score: float) -> bool:
    return score < threshold


def _both(*, target: float, xi: float, delta: float, **columns: Any) -> Any:
    claims: dict[str, Any] = {
        "misses": partial(certify_recall, **columns, target=target),
        "false-alarms": partial(certify_false_alarms, **columns, xi=xi),
    }
    return certify_together(claims, delta=delta)


def test_both_claims_about_a_score_hold_for_the_clusters_that_have_such_rows(
    certified: Callable[..., Any],
) -> None:
    law: Law = [
        (50 * PERCENT, [(HIGH, True), (LOW, False)]),
        (30 * PERCENT, [(LOW, True), (HIGH, False)]),
        (20 * PERCENT, [(HIGH, True)]),
    ]
    target, xi, delta, wrong = 0.75, 0.35, 0.4, 0.0
    for chance, cohort in _cohorts(_given(law, None, positive=True), 12):
        made = certified(cohort, _both, positive=True, target=target, xi=xi, delta=delta)
        if made.thresholds is not None:
            low, high = made.thresholds
            missed = _per_cluster(law, partial(_is_below, high), positive=True)
            alarms = 1 - _per_cluster(law, partial(_is_below, low), positive=False)
            wrong += chance * (missed > 1 - Fraction(target) or alarms > Fraction(xi))
    assert 0 < wrong <= delta


def _ever_wrong(misses: Callable[[int], Fraction], most: int, target: float, delta: float) -> float:
    """Over all sequences of clusters, the chance that a rule which sees misses, and stops once the
    claim would be certified, ends in a claim that is wrong.
    """
    stopped, left = 0.0, {0: 1.0}
    for n in range(1, most + 1):
        rate = float(misses(n))
        ahead: dict[int, float] = {}
        for seen, chance in left.items():
            ahead[seen] = ahead.get(seen, 0.0) + chance * (1 - rate)
            ahead[seen + 1] = ahead.get(seen + 1, 0.0) + chance * rate
        passes = {k: binomial_upper(k, n, delta=delta) <= 1 - target for k in ahead}
        stopped += sum(chance for k, chance in ahead.items() if passes[k])
        left = {k: chance for k, chance in ahead.items() if not passes[k]}
    return stopped


def test_a_rule_that_sees_how_many_positives_a_cluster_has_breaks_the_claim() -> None:
    """Clusters with one positive are found, those with ten are missed. Whoever sees how many there
    are sees the misses, and may stop when they are few. Whoever sees only that there is one does
    not.
    """
    target, delta, most = 0.9, 0.05, 100
    assert _ever_wrong(lambda _: Fraction(101, 1000), most, target, delta) > 2 * delta
    at_the_end = 1 - bdtrc(
        max(k for k in range(most) if binomial_upper(k, most, delta=delta) <= 1 - target),
        most,
        0.101,
    )
    assert at_the_end <= delta


@pytest.mark.parametrize("certify", ["false alarms", "shield"])
def test_a_lost_rollout_counts_against_either_claim(certify: str) -> None:
    """A lost rollout may have been safe or unsafe: it is drawn among both, and is always an event,
    so nothing that was lost makes a claim better.
    """
    rng = np.random.default_rng(5)
    clusters = np.repeat(np.arange(300), 3)
    unsafe = rng.random(900) < 0.5
    danger = np.where(unsafe, 0.9, 0.1)
    lost = rng.random(900) < 0.05
    columns: dict[str, Any] = {"score": np.where(lost, -np.inf, danger), "unsafe": unsafe | lost}
    if certify == "shield":
        made: Any = certify_shield(
            **columns, xi=0.2, delta=0.05, rate="among-unsafe", clusters=clusters, seed=0
        )
        assert dict(made.draw.among) == {"unsafe": int((unsafe | lost).sum())}
    else:
        made = certify_false_alarms(**columns, xi=0.2, delta=0.05, clusters=clusters, seed=0)
        assert dict(made.draw.among) == {"safe": int((~unsafe | lost).sum())}
    trials = (unsafe | lost) if certify == "shield" else (~unsafe | lost)
    assert made.trials == len(set(clusters[trials].tolist()))
    assert made.events == np.isneginf(columns["score"])[_drawn_rows(made, clusters, trials)].sum()


def _drawn_rows(made: Any, clusters: np.ndarray, trials: np.ndarray) -> np.ndarray:
    """The drawn row of each cluster, by the keyed numbers."""
    found = []
    names = [str(name) for name in dict.fromkeys(clusters.tolist())]
    numbers = keyed_numbers(made.draw.seed, "cluster", names, each=2)[:, 0]
    for name, number in zip(names, numbers.tolist(), strict=True):
        rows = np.flatnonzero((clusters == int(name)) & trials)
        if rows.size:
            found.append(rows[number * rows.size >> 64])
    return np.array(found)
