"""Forks: the law of shielded rollouts, exactly; and a threshold that breaks xi is certified with
probability at most delta."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import pairwise, product
from math import isnan, prod
from typing import Any

import numpy as np
import pytest
from scipy.special import comb
from scipy.stats import binomtest

pytest.importorskip("joblib", reason="joblib is not installed: pip install 'pacbound[shield]'")

import gymnasium
from tests.shield.cars import brake, chance_to_be_unsafe, danger, rash, slippery

from pacbound import Tally, binomial_upper, certify_forks
from pacbound.shield import Task, collect_rollouts
from pacbound.shield.rollouts import task as task_module
from pacbound.shield.rollouts.rollout import Recording, fork_out

Judge = Callable[[int, int, float], None]
TOP, NEVER = 65536, 65537


class Choices:
    """Runs a function once for every way in which its random choices can fall."""

    def __init__(self) -> None:
        self._path: list[bool] = []
        self._place, self._weight = 0, 1.0

    def happens(self, chance: float) -> bool:
        if self._place == len(self._path):
            self._path.append(True)
        taken = self._path[self._place]
        self._place += 1
        self._weight *= chance if taken else 1 - chance
        return taken

    def every(self, run: Callable[[], Any]) -> Iterator[tuple[Any, float]]:
        while True:
            self._place, self._weight = 0, 1.0
            found = run()
            yield found, self._weight
            while self._path and not self._path[-1]:
                self._path.pop()
            if not self._path:
                return
            self._path[-1] = False


class Chain(gymnasium.Env[Any, Any]):
    """Four places on the way to a cliff. The policy climbs or slips; the backup stops in two steps,
    each of which may fail, more often at some places than at others."""

    observation_space = gymnasium.spaces.Discrete(4)

    def __init__(self, choices: Choices, rng: np.random.Generator) -> None:
        self.choices = choices
        self.climbs, self.fails = rng.random(4), rng.random(4) * (rng.random(4) < 0.7)
        self.falls, self.begins_unsafe = rng.random(4) * 0.3, 0.1 * (rng.random() < 0.5)
        self.ends = bool(rng.random() < 0.5)
        self.place = self.braked = self.steps = 0
        self.unsafe = False

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        self.place, self.braked, self.steps = int(self.choices.happens(0.3)), 0, 0
        self.unsafe = self.begins_unsafe > 0 and self.choices.happens(self.begins_unsafe)
        return self.place, {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        if action:
            self.steps += 1
            self.unsafe = self.choices.happens(self.falls[self.place])
            self.place = min(3, self.place + self.choices.happens(self.climbs[self.place]))
        else:
            self.braked += 1
            self.unsafe = self.choices.happens(self.fails[self.place])
        return self.place, 0.0, self.ends and self.steps == 2, False, {}

    def save_state(self) -> Any:
        return self.place, self.braked, self.steps, self.unsafe

    def restore_state(self, state: Any) -> None:
        self.place, self.braked, self.steps, self.unsafe = state

    def is_unsafe(self) -> bool:
        return self.unsafe

    def is_stopped(self) -> bool:
        return self.braked == 2


def _shielded(task: Task, world: Any, threshold: float) -> bool:
    """Whether a rollout that is shielded at the threshold is unsafe: handed over at its end."""
    observation = world.reset(0)
    for _ in range(0 if world.is_unsafe() else task.horizon):
        read = task.danger(observation)
        if isnan(read) or read >= threshold:
            return not task.brakes_safely(world, observation, 0, 0)
        outcome = world.step(1)
        observation = outcome.observation
        if world.is_unsafe() or outcome.terminated:
            return bool(world.is_unsafe())
    return bool(world.is_unsafe() or not task.brakes_safely(world, observation, 0, 0))


@pytest.mark.parametrize("law", range(12))
def test_forks_of_a_chain_have_the_law_of_its_shielded_rollouts(law: int) -> None:
    rng, choices = np.random.default_rng(law), Choices()
    chain = Chain(choices, rng)
    dangers = rng.choice([0.0, 0.2, 0.3, 0.300001, 0.6, 1.0, np.nan], size=4)
    task = Task(
        lambda: chain,
        lambda place: 1,
        lambda place: 0,
        lambda place: float(dangers[place]),
        horizon=3 if chain.ends else 2,
        backup_steps=3,
        rests_when_terminated=True,
    )
    world = task.world()
    numbers = {0, 1, TOP, NEVER, *(int(d * TOP) + one for d in dangers if d < 1 for one in (0, 1))}
    forked = dict.fromkeys(numbers, 0.0)
    total = 0.0
    for rows, weight in choices.every(lambda: fork_out(task, Recording(), {}, world, 0)):
        total += weight
        assert [row.lowest for row in rows] == [0, *(row.highest + 1 for row in rows[:-1])]
        for number in numbers:
            (row,) = (row for row in rows if row.lowest <= number <= row.highest)
            forked[number] += weight * row.unsafe
    assert total == pytest.approx(1.0, abs=1e-12)
    for number in numbers:
        threshold = number / TOP if number < NEVER else np.inf
        runs = choices.every(lambda at=threshold: _shielded(task, world, at))  # type: ignore[misc]
        exact = sum(weight * unsafe for unsafe, weight in runs)
        assert forked[number] == pytest.approx(exact, abs=1e-12)


# Rollouts of four kinds: which of the thresholds 0, 1/4, 1/2, 3/4 and +inf they are unsafe at.
# Safe in between is what nothing monotone could be.
KINDS = ((0, 0, 0, 0, 0), (0, 1, 0, 0, 1), (1, 1, 0, 0, 0), (0, 0, 0, 1, 1))
STEPS = (0, 16384, 32768, 49152, NEVER)


def _rows(counts: tuple[int, ...]) -> dict[str, Any]:
    kinds = np.repeat(np.arange(len(KINDS)), counts)
    lowest, highest = np.array([0, *(step + 1 for step in STEPS[:-1])]), np.array(STEPS)
    return {
        "rollout": np.repeat(np.arange(len(kinds)), len(STEPS)),
        "lowest": np.tile(lowest, len(kinds)),
        "highest": np.tile(highest, len(kinds)),
        "unsafe": np.array(KINDS, dtype=bool)[kinds].ravel(),
    }


def _samples(n: int) -> Iterator[tuple[int, ...]]:
    for first in product(range(n + 1), repeat=len(KINDS) - 1):
        if sum(first) <= n:
            yield (*first, n - sum(first))


def _weight(counts: tuple[int, ...], chances: tuple[float, ...]) -> float:
    ways, left = 1.0, sum(counts)
    for count in counts:
        ways, left = ways * comb(left, count, exact=True), left - count
    return ways * prod(chance**count for chance, count in zip(chances, counts, strict=True))


# Each breaks xi by a hair: at 0, at 1/4, or at 3/4 for the first time.
HAIR = 1e-9
LAWS = (
    (0.5 - HAIR, 0.1, 0.3 + HAIR, 0.1),
    (0.6 - HAIR, 0.2, 0.1 + HAIR, 0.1),
    (0.5 - HAIR, 0.1, 0.1, 0.3 + HAIR),
)


@pytest.mark.parametrize("start", [0.0, 0.25, 0.5])
def test_a_bad_threshold_is_certified_with_probability_at_most_delta(start: float) -> None:
    n, xi, delta = 12, 0.3, 0.1
    wrong, certified = np.zeros(len(LAWS)), np.zeros(len(LAWS))
    risks = np.array(LAWS) @ np.array(KINDS)
    for counts in _samples(n):
        found = certify_forks(**_rows(counts), xi=xi, delta=delta, start=start)
        if not found.certified:
            continue
        assert found.threshold >= start
        passed = [place for place, step in enumerate(STEPS) if step / TOP <= found.threshold]
        tested = [place for place in passed if STEPS[place] / TOP >= start]
        weights = np.array([_weight(counts, law) for law in LAWS])
        certified += weights
        wrong += weights * (risks[:, tested] > xi).any(axis=1)
    assert (wrong <= delta).all()
    assert wrong.max() > 0.3 * delta
    assert certified.max() > 0.2


def test_taking_the_last_threshold_that_passes_is_false_far_more_often() -> None:
    # Three thresholds, each of which breaks xi by a hair, on rollouts of its own.
    n, xi, delta = 12, 0.3, 0.1
    chances = (0.1 - 3 * HAIR, *(0.3 + HAIR,) * 3)
    wrong = 0.0
    for counts in _samples(n):
        if any(binomial_upper(unsafe, n, delta=delta) <= xi for unsafe in counts[1:]):
            wrong += _weight(counts, chances)
    assert wrong > 2 * delta


CALIBRATIONS, ROLLOUTS, DELTA, HORIZON, SLIP = 300, 24, 0.1, 40, 0.1
TASK = Task(slippery, rash, brake, danger, horizon=HORIZON)


@pytest.mark.long
def test_thresholds_certified_from_collected_forks_break_xi_with_chance_at_most_delta(
    judge: Judge,
) -> None:
    # The risk at the threshold 1 is a hair above xi: to certify it is a violation, a likely one.
    xi = chance_to_be_unsafe(1.0, SLIP, HORIZON) - HAIR
    seeds = range(CALIBRATIONS * ROLLOUTS)
    rollouts = collect_rollouts(TASK, seeds=seeds, chunk=300, n_jobs=2)
    places = np.searchsorted(rollouts.rollout, np.arange(0, len(seeds) + 1, ROLLOUTS))
    violations = certified = 0
    for begin, end in pairwise(places):
        columns = ("rollout", "lowest", "highest", "unsafe")
        rows = {name: getattr(rollouts, name)[begin:end] for name in columns}
        found = certify_forks(**rows, xi=xi, delta=DELTA)
        certified += found.certified
        broken = found.certified and chance_to_be_unsafe(found.threshold, SLIP, HORIZON) > xi
        violations += broken
    judge(violations, CALIBRATIONS, DELTA)
    assert certified > 0.5 * CALIBRATIONS
    assert violations > 0.3 * DELTA * CALIBRATIONS


class Echo(gymnasium.Env[Any, Any]):
    """A step leads to danger with probability 1/2, and braking there fails with probability 2/5."""

    observation_space = gymnasium.spaces.Discrete(2)

    def __init__(self) -> None:
        self.place, self.unsafe, self.stopped = 0, False, False

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        self.restore_state((0, False, False))
        return self.place, {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        drawn = self.np_random.random()
        if action:
            self.place = int(drawn < 0.5)
        else:
            self.unsafe, self.stopped = drawn < 0.4 * self.place, True
        return self.place, 0.0, not self.place, False, {}

    def save_state(self) -> Any:
        return self.place, self.unsafe, self.stopped

    def restore_state(self, state: Any) -> None:
        self.place, self.unsafe, self.stopped = state

    def is_unsafe(self) -> bool:
        return bool(self.unsafe)

    def is_stopped(self) -> bool:
        return self.stopped


def test_noise_that_begins_again_from_the_seed_is_not_the_law_of_the_shield(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    task = Task(
        Echo,
        lambda place: 1,
        lambda place: 0,
        lambda place: 0.75 * place,
        horizon=2,
        rests_when_terminated=True,
    )
    honest = int(collect_rollouts(task, seeds=range(1000)).unsafe_at(0.5).sum())
    assert binomtest(honest, 1000, 0.2).pvalue > 0.01
    # The step that led to the danger is drawn once more as that of the backup.
    monkeypatch.setattr(task_module, "stream", lambda seed, *_: np.random.SeedSequence(seed))
    again = int(collect_rollouts(task, seeds=range(1000)).unsafe_at(0.5).sum())
    assert binomtest(again, 1000, 0.4).pvalue > 0.01


def test_groups_that_share_a_threshold_keep_it_all_at_once() -> None:
    n, xi, delta = 7, 0.3, 0.1
    laws = (LAWS[1], LAWS[2])
    risks = [np.array(law) @ np.array(KINDS) for law in laws]
    own = {}
    for counts in _samples(n):
        own[counts] = certify_forks(data=Tally.count("forks", **_rows(counts)), xi=xi, delta=delta)
    ends = {counts: found.threshold for counts, found in own.items()}
    wrong = 0.0
    for first, second in product(ends, repeat=2):
        common = min(ends[first], ends[second])
        passed = [place for place, step in enumerate(STEPS) if step / TOP <= common]
        bad = any((risk[passed] > xi).any() for risk in risks)
        wrong += _weight(first, laws[0]) * _weight(second, laws[1]) * bad
    assert wrong <= delta
