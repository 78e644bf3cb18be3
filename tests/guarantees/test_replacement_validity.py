"""A model that loses xi or more is certified with probability at most delta."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy.stats import binom, multinomial

from pacbound import Tally, certify_replacement, plan_from_pilot
from pacbound.procedures.replacement import passes

Judge = Callable[[int, int, float], None]


@pytest.mark.parametrize(
    ("n", "xi", "delta"), [(12, 0.3, 0.1), (60, 0.1, 0.05), (150, 0.02, 0.1), (60, 0.0, 0.05)]
)
def test_a_model_that_loses_xi_is_certified_with_probability_at_most_delta(
    n: int, xi: float, delta: float
) -> None:
    """Every number of losses and gains, under laws on the edge of what is allowed."""
    losses, gains = np.meshgrid(np.arange(n + 1), np.arange(n + 1), indexing="ij")
    possible = losses + gains <= n
    b, c = losses[possible], gains[possible]
    certified = np.asarray(passes(b, c, n, xi=xi, delta=delta))
    counts = np.column_stack([b, c, n - b - c])
    wrong = []
    for gained in np.linspace(0.0, (1 - xi) / 2, 25):
        law = multinomial(n, [gained + xi, gained, max(1 - xi - 2 * gained, 0.0)])
        wrong.append(float(law.pmf(counts)[certified].sum()))
    assert max(wrong) <= delta
    assert max(wrong) > 0.5 * delta


def answers(rng: np.random.Generator, n: int, lost: float, gained: float) -> Any:
    """Answers of an old and a new model, and the label 1 of every row."""
    which = rng.random(n)
    old = np.where(which < gained, 0, 1)
    new = np.where((which >= gained) & (which < gained + lost), 0, 1)
    return np.column_stack([old, new])


def test_labels_asked_for_adaptively_certify_a_bad_model_in_at_most_delta_of_the_draws(
    judge: Judge,
) -> None:
    """The labeller knows which labels speak for the new model, asks for those first, and publishes
    as soon as the claim is certified: the true loss is xi."""
    n, xi, delta, runs = 300, 0.03, 0.05, 2000
    rng, violations, ends = np.random.default_rng(11), 0, 0
    for run in range(runs):
        prediction = answers(rng, n, 0.05 + xi, 0.05)
        differ = np.flatnonzero(prediction[:, 0] != prediction[:, 1])
        # Gains first; of the rest, at random.
        order = differ[np.argsort(prediction[differ, 0] + rng.random(differ.size))]
        label, ever = np.full(n, np.nan), False
        label[prediction[:, 0] == prediction[:, 1]] = 1
        for start in range(0, order.size, 6):
            label[order[start : start + 6]] = 1
            gains = int(((prediction[:, 0] == 0) & (label == 1)).sum())
            # What has no label counts as lost.
            certified = bool(passes(differ.size - gains, gains, n, xi=xi, delta=delta))
            ever |= certified
            if run % 20 == 0:
                made = certify_replacement(prediction, label, xi=xi, delta=delta)
                assert made.certified == certified
            if certified:
                break
        violations += ever
        gains = int((prediction[:, 0] == 0).sum())
        whole = bool(passes(differ.size - gains, gains, n, xi=xi, delta=delta))
        ends += whole
        assert whole >= ever
    judge(violations, runs, delta)
    assert violations > 0.2 * delta * runs
    assert violations == ends


def test_a_group_that_loses_xi_refuses_the_common_verdict(judge: Judge) -> None:
    """One group gains much, the other loses xi: together they would pass."""
    n, xi, delta, runs = 400, 0.04, 0.1, 500
    rng, common, own = np.random.default_rng(5), 0, 0
    groups = np.arange(n) % 2
    for _ in range(runs):
        prediction = answers(rng, n, 0.0, 0.2)
        prediction[groups == 1] = answers(rng, n // 2, 0.05 + xi, 0.05)
        asked: dict[str, Any] = {"xi": xi, "delta": delta, "groups": groups}
        common += certify_replacement(prediction, np.ones(n), **asked).certified
        apart = certify_replacement(prediction, np.ones(n), group_verdicts="own", **asked)
        own += "1" not in apart.by.refused_groups(apart)
    judge(common, runs, delta)
    judge(own, runs, delta)
    assert common > 0.2 * delta * runs


def test_leaving_out_small_groups_certifies_a_group_that_loses_xi_in_at_most_delta() -> None:
    """Exactly, over how many rows each of two groups has, and how many of the first are lost; all
    rows of the second are gains."""
    n, xi, delta, wrong, tested = 60, 0.1, 0.1, 0.0, 0.0
    for size in range(n + 1):
        law = binom.pmf(size, n, 0.4)
        groups = (np.arange(n) < size).astype(int)
        for lost in range(size + 1):
            prediction = np.column_stack([groups, (groups == 0) | (np.arange(n) >= lost)])
            made = certify_replacement(
                prediction, np.ones(n), groups=groups, xi=xi, delta=delta,
                small_groups="leave-out", classes=[0, 1],
            )  # fmt: skip
            if not made.certified or "1" in made.left_out:
                break
            wrong += law * binom.pmf(lost, size, xi)
        tested += law * ("1" not in made.left_out)
    assert wrong <= delta
    assert wrong > 0.2 * delta
    assert 0.3 < tested < 0.9


def test_several_candidates_that_lose_xi_are_all_refused_in_most_draws(judge: Judge) -> None:
    n, xi, delta, runs = 300, 0.04, 0.1, 500
    rng, violations = np.random.default_rng(6), 0
    for _ in range(runs):
        new = [answers(rng, n, xi, 0.0)[:, 1] for _ in range(4)]
        prediction = np.column_stack([np.ones(n, dtype=int), *new])
        made = certify_replacement(prediction, np.ones(n), xi=xi, delta=delta)
        violations += bool(made.may_replace)
    judge(violations, runs, delta)
    assert violations > 0.2 * delta * runs


def exact_power(n: int, lost: float, gained: float, xi: float, delta: float) -> float:
    """Over every number of losses and gains, up to chances that do not matter."""
    top = [int(binom.isf(1e-12, n, rate)) + 1 for rate in (lost, gained)]
    b, c = np.meshgrid(np.arange(top[0] + 1), np.arange(top[1] + 1), indexing="ij")
    law = multinomial(n, [lost, gained, 1 - lost - gained])
    chances = law.pmf(np.stack([b, c, n - b - c], axis=-1))
    return float(chances[np.asarray(passes(b, c, n, xi=xi, delta=delta))].sum())


@pytest.mark.parametrize("wanted", [0.5, 0.8, 0.95])
def test_a_planned_sample_reaches_its_power(wanted: float) -> None:
    """Exactly, where the pilot is so large that its rates are the true ones."""
    xi, delta, lost, gained, size = 0.02, 0.05, 0.03, 0.03, 500_000
    pilot = Tally.count(
        "replacement", answers(np.random.default_rng(2), 2000, 0.03, 0.03), np.ones(2000)
    )
    counts = np.zeros_like(pilot.counts)
    places = [pilot.outcomes.index(name) for name in ("only_old", "only_new", "equal")]
    counts[0, places] = [round(lost * size), round(gained * size), size - round(0.06 * size)]
    pilot = replace(pilot, rows=size, counts=counts)
    plan = plan_from_pilot(pilot, xi=xi, delta=delta, power=wanted, sizes=[300, 1000, 3000, 9000])
    assert plan.needed is not None
    n = plan.needed.rows
    assert exact_power(n, lost, gained, xi, delta) >= wanted - 0.002
    assert exact_power(int(0.85 * n), lost, gained, xi, delta) < wanted
    assert plan.needed.labels == pytest.approx(0.06 * n, rel=0.1)


@pytest.mark.long
def test_half_of_the_plans_from_pilots_reach_their_power_and_their_ranges_hold_what_it_takes() -> (
    None
):
    """Each plan is made from a pilot of its own, with its luck; the power of each is exact."""
    xi, delta, wanted, lost, gained = 0.01, 0.05, 0.8, 0.03, 0.045
    rng, reached, held = np.random.default_rng(3), list[float](), 0
    true = next(n for n in range(300, 3000, 50) if exact_power(n, lost, gained, xi, delta) > wanted)
    for _ in range(24):
        pilot = Tally.count("replacement", answers(rng, 400, lost, gained), np.ones(400))
        plan = plan_from_pilot(pilot, xi=xi, delta=delta, power=wanted, draws=20, rng=rng)
        assert plan.allows is not None
        low, high = plan.allows
        held += (low or 1e9) <= true <= (high or 1e9)
        if (pilot.totals["only_old"] - pilot.totals["only_new"]) / 400 < xi / 2:
            assert plan.needed is not None
        rows = 10**9 if plan.needed is None else plan.needed.rows
        reached.append(1.0 if rows > 5000 else exact_power(rows, lost, gained, xi, delta))
    assert 0.3 < np.mean(np.array(reached) >= wanted) < 0.7
    assert held >= 15


def graded(rng: np.random.Generator, n: int, shift: float = 0.0) -> Any:
    """Grades from 1 to 5 that two judgements give, in noise; the second model's are lower by
    `shift` of the scale on average."""
    base = rng.integers(1, 6, size=n)
    noisy = np.clip(base[:, None] + rng.integers(-1, 2, size=(n, 2)), 1, 5).astype(float)
    lowered = rng.random(n) < shift
    noisy[lowered, 1], noisy[lowered, 0] = 1.0, 5.0
    same = ~lowered & (rng.random(n) < 0.5)
    noisy[same] = noisy[same][:, ::-1]
    return noisy


def test_a_model_is_better_than_itself_in_at_most_delta_of_noisy_judgements(judge: Judge) -> None:
    n, delta, runs = 200, 0.1, 400
    rng = np.random.default_rng(8)

    def passes(quality: Any) -> bool:
        asked: dict[str, Any] = {"quality_scale": (1, 2, 3, 4, 5), "xi": 0.0, "delta": delta}
        return certify_replacement(quality=quality, **asked).certified

    judge(sum(passes(graded(rng, n)) for _ in range(runs)), runs, delta)
    assert sum(passes(graded(rng, n, 0.2)[:, ::-1]) for _ in range(20)) > 10


def test_a_graded_loss_of_xi_is_certified_in_at_most_delta_of_the_draws(judge: Judge) -> None:
    """Half of the qualities that are missing could have spoken for the new model."""
    n, xi, delta, runs = 300, 0.04, 0.1, 1000
    rng, scale = np.random.default_rng(9), (0.0, 0.25, 0.5, 0.75, 1.0)

    def passes(loss: float) -> bool:
        quality = rng.choice([0.25, 0.5, 0.75], size=n)[:, None] + np.zeros((n, 2))
        lost = rng.random(n) < 4 * loss
        quality[lost] = [0.5, 0.25]
        quality[rng.random(n) < 0.002, 1] = np.nan
        return certify_replacement(
            quality=quality, xi=xi, delta=delta, quality_scale=scale
        ).certified

    judge(sum(passes(xi) for _ in range(runs)), runs, delta)
    assert sum(passes(xi / 8) for _ in range(20)) > 10
