"""A rate below its target is certified with probability at most delta; and of thresholds that are
driven in rising order, each a rate at the whole delta up to the first refusal, one whose rate of
unsafe rollouts is too high stands with probability at most delta, whichever thresholds and numbers
of rollouts are chosen on the way. Driving a refused one again breaks it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache

import numpy as np
import pytest
from scipy.stats import binom

from pacbound import certify_rate
from pacbound.stats.binomial import binomial_upper

XI, DELTA = 0.3, 0.1
# The true share of unsafe rollouts at each threshold. The last law is worse when it brakes earlier.
LAWS = {
    "rises": {0.2: 0.05, 0.4: 0.25, 0.6: 0.30001, 0.8: 0.5},
    "bad at once": {0.2: 0.30001, 0.4: 0.30001, 0.6: 0.30001, 0.8: 0.30001},
    "falls": {0.2: 0.30001, 0.4: 0.2, 0.6: 0.1, 0.8: 0.05},
    "to and fro": {0.2: 0.1, 0.4: 0.30001, 0.6: 0.1, 0.8: 0.30001},
}
Drive = tuple[float, int, int]
Choose = Callable[[tuple[Drive, ...]], tuple[float, int] | None]


@cache
def certifies(n: int, failed: int) -> bool:
    return certify_rate(np.arange(n) >= failed, target=1 - XI, delta=DELTA).certified


@cache
def allowed(n: int) -> int:
    """The most failures with which `n` rollouts are certified, -1 if none is."""
    uppers = binomial_upper(np.arange(n + 1), n, delta=DELTA)
    return int((uppers <= XI).sum()) - 1


@pytest.mark.parametrize("n", [11, 16, 40])
@pytest.mark.parametrize("rate", [0.30001, 0.35, 0.6])
def test_a_rate_below_its_target_is_certified_with_probability_at_most_delta(
    n: int, rate: float
) -> None:
    chances = binom.pmf(np.arange(n + 1), n, rate)
    wrong = sum(chance for k, chance in enumerate(chances) if certifies(n, k))
    assert wrong <= DELTA


def test_groups_below_the_target_are_certified_together_with_probability_at_most_delta() -> None:
    """Two groups, one of which just misses the target: exactly, over all counts of both."""
    n, wrong = 12, 0.0
    groups = np.repeat(["a", "b"], n)
    for bad, chance in enumerate(binom.pmf(np.arange(n + 1), n, 0.30001)):
        passed = np.concatenate([np.ones(n, bool), np.arange(n) >= bad])
        made = certify_rate(passed, groups=groups, target=1 - XI, delta=DELTA)
        # The other group surely passes, which is the worst case.
        wrong += chance * made.certified
    assert wrong <= DELTA


@cache
def standing(drives: tuple[Drive, ...]) -> float:
    """The last threshold that stands, -inf if none does."""
    stands = -np.inf
    for threshold, n, unsafe in drives:
        if not certifies(n, unsafe):
            break
        stands = threshold
    return stands


def outcomes(law: dict[float, float], choose: Choose) -> Iterator[tuple[tuple[Drive, ...], float]]:
    """Every way in which drives can go that are chosen like this, with its exact chance."""
    waiting: list[tuple[tuple[Drive, ...], float]] = [((), 1.0)]
    while waiting:
        drives, chance = waiting.pop()
        following = choose(drives)
        if following is None:
            yield drives, chance
            continue
        g, n = following
        weights = binom.pmf(np.arange(n + 1), n, law[g])
        waiting += [((*drives, (g, n, k)), chance * weight) for k, weight in enumerate(weights)]


def greedy(drives: tuple[Drive, ...]) -> tuple[float, int] | None:
    """After a good drive a big step and many rollouts, after a poor one a small step and few."""
    if not drives:
        return 0.2, 11
    g, _, k = drives[-1]
    higher = [at for at in (0.2, 0.4, 0.6, 0.8) if at > g]
    if not higher or len(drives) == 3:
        return None
    return (higher[-1], 16) if k == 0 else (higher[0], 7 + k % 5)


def declared(drives: tuple[Drive, ...]) -> tuple[float, int] | None:
    return None if len(drives) == 3 else ((0.2, 0.4, 0.6)[len(drives)], 12)


def once_it_passed(drives: tuple[Drive, ...]) -> tuple[float, int] | None:
    """Goes up as long as drives pass, with sizes that depend on what was seen."""
    if drives and (standing(drives) != drives[-1][0] or len(drives) == 3):
        return None
    return ((0.2, 0.4, 0.6)[len(drives)], 8 + sum(k for _, _, k in drives) % 6)


@pytest.mark.parametrize("law", LAWS.values(), ids=LAWS)
@pytest.mark.parametrize("choose", [greedy, declared, once_it_passed])
def test_a_bad_threshold_stands_with_probability_at_most_delta(
    law: dict[float, float], choose: Choose
) -> None:
    total = wrong = 0.0
    for drives, chance in outcomes(law, choose):
        total += chance
        threshold = standing(drives)
        wrong += chance * (threshold > -np.inf and law[threshold] > XI)
    assert total == pytest.approx(1)
    assert wrong <= DELTA


def test_the_law_can_violate() -> None:
    sizes = np.arange(5, 60)
    most = np.array([allowed(int(n)) for n in sizes])
    assert binom.cdf(most, sizes, 0.30001).max() > 0.9 * DELTA


@pytest.mark.parametrize("law", LAWS.values(), ids=LAWS)
def test_no_choice_of_thresholds_and_sizes_does_worse(law: dict[float, float]) -> None:
    """The worst of all rules: what comes next may depend on all that was seen, and of that only
    whether the drives passed bears on what stands."""
    passing = {
        (g, n): float(binom.cdf(allowed(n), n, rate))
        for g, rate in law.items()
        for n in range(1, 120)
    }

    @cache
    def worst(after: float) -> float:
        """The chance of a false claim from here on, if all drives so far passed and are good."""
        return max(
            (
                chance if law[g] > XI else chance * worst(g)
                for (g, _), chance in passing.items()
                if g > after
            ),
            default=0.0,
        )

    assert worst(-np.inf) <= DELTA


@pytest.mark.parametrize(("pooled", "times"), [(True, 1.51), (False, 1.90)])
def test_driving_a_refused_threshold_again_breaks_the_guarantee(pooled: bool, times: float) -> None:
    """Why a threshold is not driven again after it was refused: not with the first rollouts, nor
    without them. The figures are those of docs/drives.md and docs/proofs.md."""

    def chance(n: int) -> float:
        rate, once = XI + 1e-9, allowed(n)
        first, seen = binom.cdf(once, n, rate), np.arange(once + 1, n + 1)
        more = allowed(2 * n) - seen if pooled else once
        again = binom.pmf(seen, n, rate) * binom.cdf(more, n, rate)
        return float(first + again.sum())

    assert round(max(map(chance, range(20, 200))) / DELTA, 2) == times
