"""Shields around environments that come with Gymnasium, over thousands of rollouts, alone and in
parallel."""

from __future__ import annotations

import subprocess
import sys
import warnings
from itertools import pairwise
from typing import Any, SupportsFloat

import numpy as np
import pytest
from scipy.stats import binom

from pacbound import certify_shield
from pacbound.errors import InvalidValueError

pytest.importorskip("gymnasium", reason="the wrappers need the extra `shield`")

import gymnasium
from gymnasium.utils.env_checker import check_env
from gymnasium.vector import AutoresetMode, SyncVectorEnv

from pacbound.shield.gym import ShieldWrapper, VectorShieldWrapper

THRESHOLD = 0.5


def leaning(observation: Any) -> Any:
    """The danger of a pole: how far it leans, 1 where the rollout ends. One observation, or those
    of many environments."""
    return np.minimum(1.0, abs(observation[..., 2].astype(np.float64)) / 0.2095)


def upright(observation: Any) -> Any:
    """Pushes the cart to the side that the pole falls to."""
    return (observation[..., 2] + observation[..., 3] > 0).astype(np.int64)


class Recorded(gymnasium.Wrapper[Any, Any, Any, Any]):
    """Keeps what it was given and what it gave."""

    def __init__(self, env: Any) -> None:
        super().__init__(env)
        self.taken: list[Any] = []

    def step(self, action: Any) -> tuple[Any, SupportsFloat, bool, bool, dict[str, Any]]:
        self.taken.append(action)
        return self.env.step(action)


def cart_pole(steps: int = 60) -> Any:
    return gymnasium.make("CartPole-v1", max_episode_steps=steps)


@pytest.mark.slow
def test_a_thousand_rollouts_of_cart_pole_follow_the_rule_at_every_step() -> None:
    rng = np.random.default_rng(0)
    recorded = Recorded(cart_pole())
    env = ShieldWrapper(recorded, upright, leaning, THRESHOLD)
    fired_in = 0
    for rollout in range(1000):
        observation, _ = env.reset(seed=rollout)
        fired, ended = False, False
        while not ended:
            danger = float(leaning(observation))
            fired = fired or danger >= THRESHOLD
            proposed, expected = int(rng.integers(2)), int(upright(observation))
            observation, _, terminated, truncated, info = env.step(proposed)
            ended = terminated or truncated
            assert info["shield_fired"] is info["shield_override"] is fired
            assert recorded.taken.pop() == (expected if fired else proposed)
            assert fired or info["shield_danger"] == danger
        fired_in += fired
    assert 500 < fired_in <= 1000
    assert env.latch.failures == 0


# ---- Blackjack: the policy is greedy, the backup sticks, and to go bust is unsafe


def bust_chance(hand: Any) -> float:
    """The chance that one more card is too much, as the danger."""
    total, _, usable_ace = hand
    return 0.0 if usable_ace or total < 12 else min(13, total - 8) / 13


class Greedy:
    """Takes cards up to 18, and answers as stable-baselines3 does."""

    def predict(self, hand: Any) -> tuple[int, None]:
        return int(hand[0] < 19), None


def play(env: Any, rollouts: int, seed: int) -> tuple[Any, Any]:
    """The largest danger that the policy acted on in each rollout, and whether it went bust."""
    policy, largest, bust = Greedy(), np.zeros(rollouts), np.zeros(rollouts, dtype=bool)
    for i in range(rollouts):
        hand, _ = env.reset(seed=seed + i)
        ended = False
        while not ended:
            largest[i] = max(largest[i], bust_chance(hand))
            hand, _, ended, _, _ = env.step(policy.predict(hand)[0])
        bust[i] = hand[0] > 21
    return largest, bust


def test_a_certified_shield_keeps_its_promise_in_blackjack() -> None:
    plain = gymnasium.make("Blackjack-v1")
    largest, bust = play(plain, 1000, seed=0)
    xi = 0.15
    assert bust.mean() > 2 * xi
    certificate = certify_shield(largest, bust, xi=xi, delta=0.01)
    assert 0 < certificate.threshold < 1
    _, bust = play(
        ShieldWrapper(plain, lambda hand: 0, bust_chance, certificate), 1000, seed=10_000
    )
    assert bust.mean() > 0
    assert float(binom.sf(int(bust.sum()) - 1, 1000, xi)) > 1e-6


# ---- the contract of Gymnasium


@pytest.mark.parametrize("threshold", [0.0, THRESHOLD, np.inf])
def test_the_wrapper_passes_the_checks_of_gymnasium(threshold: float) -> None:
    env = ShieldWrapper(gymnasium.make("CartPole-v1"), upright, leaning, threshold)
    with warnings.catch_warnings():
        # The checker notes that a wrapped environment is not the bare one, and that CartPole's
        # velocities have no bounds.
        warnings.simplefilter("ignore", UserWarning)
        check_env(env, skip_render_check=True)


def test_resets_that_the_shield_would_not_see_are_refused() -> None:
    inside = gymnasium.wrappers.TimeLimit(gymnasium.wrappers.Autoreset(cart_pole()), 10)
    with pytest.raises(InvalidValueError, match="Put it around the shield"):
        ShieldWrapper(inside, upright, leaning, THRESHOLD)


def test_autoreset_around_the_shield_releases_it() -> None:
    env = gymnasium.wrappers.Autoreset(ShieldWrapper(cart_pole(30), upright, leaning, THRESHOLD))
    env.reset(seed=0)
    seen = [env.step(0)[4].get("shield_fired") for _ in range(200)]
    assert seen.count(None) >= 3, "resets have no shield to speak of"
    for before, after in pairwise(seen):
        assert not (before is None and after is True)
    assert True in seen


def test_an_agent_that_changes_the_observation_in_place_does_not_blind_the_shield() -> None:
    env = ShieldWrapper(cart_pole(), upright, leaning, 0.3)
    observation, _ = env.reset(seed=0)
    dangers = []
    for _ in range(9):
        dangers.append(leaning(observation))
        observation[:] = 0
        observation, *_, info = env.step(0)
        if info["shield_fired"]:
            break
    assert info["shield_danger"] == dangers[-1] >= 0.3


# ---- in parallel


def vector(n: int, mode: AutoresetMode, *, shielded: bool = False) -> Any:
    def make() -> Any:
        return ShieldWrapper(cart_pole(), upright, leaning, THRESHOLD) if shielded else cart_pole()

    return SyncVectorEnv([make] * n, autoreset_mode=mode)


@pytest.mark.long
@pytest.mark.parametrize("mode", [AutoresetMode.NEXT_STEP, AutoresetMode.SAME_STEP])
def test_a_shield_over_many_environments_does_what_a_shield_in_each_does(
    mode: AutoresetMode,
) -> None:
    n, rng, rollouts, fired = 16, np.random.default_rng(1), 0, 0
    over, inside = (
        VectorShieldWrapper(vector(n, mode), upright, leaning, THRESHOLD),
        vector(n, mode, shielded=True),
    )
    np.testing.assert_array_equal(over.reset(seed=3)[0], inside.reset(seed=3)[0])
    between = np.zeros(n, dtype=bool)
    while rollouts < 1000:
        actions = rng.integers(2, size=n)
        *one, infos = over.step(actions)
        *other, known = inside.step(actions)
        for mine, theirs in zip(one, other, strict=True):
            np.testing.assert_array_equal(mine, theirs)
        ended = one[2] | one[3]
        for i in range(n):
            if mode is AutoresetMode.SAME_STEP and ended[i]:
                told = {
                    key: known["final_info"][key][i]
                    for key in ("shield_fired", "shield_override", "shield_danger")
                }
            elif between[i]:
                told = {"shield_fired": False, "shield_override": False, "shield_danger": np.nan}
            else:
                told = {
                    key: known[key][i]
                    for key in ("shield_fired", "shield_override", "shield_danger")
                }
            assert all(
                np.array_equal(infos[key][i], value, equal_nan=True) for key, value in told.items()
            )
        between = ended if mode is AutoresetMode.NEXT_STEP else np.zeros(n, dtype=bool)
        rollouts += int(ended.sum())
        fired += int((ended & infos["shield_fired"]).sum())
    assert 0.5 * rollouts < fired


def test_parallel_environments_that_do_not_say_when_they_reset_are_refused() -> None:
    env = vector(2, AutoresetMode.NEXT_STEP)
    env.metadata = {}
    with pytest.raises(InvalidValueError, match="does not say when it resets"):
        VectorShieldWrapper(env, upright, leaning, THRESHOLD)


# ---- without gymnasium

BLOCKED = """
import sys
sys.modules["gymnasium"] = None
import pacbound.shield
from pacbound.errors import MissingDependencyError
try:
    import pacbound.shield.gym
except MissingDependencyError as error:
    print(error)
"""


def test_importing_without_gymnasium_names_the_command_that_installs_it() -> None:
    done = subprocess.run(
        [sys.executable, "-c", BLOCKED], capture_output=True, text=True, check=True
    )
    assert (
        done.stdout.strip()
        == "ShieldWrapper needs gymnasium, which is not installed. Run: pip install"
        " 'pacbound[shield]'"
    )
