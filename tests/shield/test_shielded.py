"""Rollouts with the shield on: unsafe as often as theory says, and never where the plain rollout
was caught in time."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("joblib", reason="joblib is not installed: pip install 'pacbound[shield]'")

from scipy.stats import binomtest
from tests.shield.cars import (
    Car,
    brake,
    chance_to_be_missed,
    chance_to_be_unsafe,
    danger,
    labelled,
    of_parts,
    rash,
    slippery,
)

from pacbound.errors import InvalidTypeError, InvalidValueError
from pacbound.shield import ShieldedRollouts, run_shielded

run = partial(of_parts, run_shielded, horizon=40)
THRESHOLDS = [0.0, 0.5, 0.875, 1.0, np.inf]


@pytest.mark.slow
def test_on_a_dry_road_a_shielded_rollout_is_unsafe_only_where_the_plain_one_is_missed() -> None:
    plain = labelled(Car, rash, brake, danger, seeds=range(500), horizon=40, follow_through=True)
    shielded = run(Car, rash, brake, danger, THRESHOLDS, seeds=range(500))
    assert shielded.seed.tolist() == np.repeat(np.arange(500), 5).tolist()
    assert shielded.threshold.tolist() == THRESHOLDS * 500
    for threshold in THRESHOLDS:
        some = shielded.at(threshold)
        missed = plain.unsafe & (plain.score < threshold)
        assert not (some.unsafe & ~missed).any()
        assert some.unsafe[missed & plain.collided].all()
        assert some.unsafe[missed & plain.lost].all()


@pytest.mark.long
def test_on_a_slippery_road_shielded_and_missed_rollouts_are_as_common_as_the_exact_chances() -> (
    None
):
    shielded = run(slippery, rash, brake, danger, THRESHOLDS, seeds=range(1500))
    plain = labelled(slippery, rash, brake, danger, seeds=range(10_000, 12_000), horizon=40)
    for threshold in THRESHOLDS:
        unsafe, missed = (
            chance(threshold, 0.1, 40) for chance in (chance_to_be_unsafe, chance_to_be_missed)
        )
        assert unsafe <= missed
        assert binomtest(int(shielded.at(threshold).unsafe.sum()), 1500, unsafe).pvalue > 1e-4
        assert (
            binomtest(int((plain.unsafe & (plain.score < threshold)).sum()), 2000, missed).pvalue
            > 1e-4
        )


def test_braking_goes_on_past_the_horizon_and_ends_at_standstill() -> None:
    class Straight(Car):
        def reset(
            self, *, seed: int | None = None, options: dict[str, Any] | None = None
        ) -> tuple[Any, dict[str, Any]]:
            super().reset(seed=seed)
            self.gap, self.speed = int(seed or 0), 3
            return self._look(), {}

    parts = (Straight, lambda seen: 0, brake, lambda seen: float(seen[0] <= 7))
    coasting = partial(of_parts, run_shielded, *parts)
    ended = coasting(0.5, seeds=[5, 8, 9, 13], horizon=2)
    assert ended.fired_at.tolist() == [0, 1, 1, -1]
    assert ended.steps.tolist() == [3, 4, 4, 2]
    assert not ended.unsafe.any()
    assert coasting(0.5, seeds=[2], horizon=2).unsafe[0]
    assert coasting(0.5, seeds=[9], horizon=2, backup_steps=3).unsafe.tolist() == [False]
    assert coasting(0.5, seeds=[9], horizon=2, backup_steps=2).unsafe.tolist() == [True]


def test_a_goal_that_is_reached_by_a_crash_is_no_success() -> None:
    class Ramming(Car):
        def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
            observation, reward, terminated, truncated, _ = super().step(action)
            return observation, reward, terminated, truncated, {"success": terminated}

    alone = run(Ramming, rash, brake, danger, np.inf, seeds=range(100))
    plain = labelled(
        Ramming, rash, brake, danger, seeds=range(100), horizon=40, follow_through=True
    )
    assert alone.unsafe.any()
    assert not (alone.unsafe & alone.success).any()
    assert not (plain.collided & plain.success).any()


def test_a_danger_model_that_fails_fires_the_shield() -> None:
    def doubtful(seen: Any) -> float:
        return np.nan if seen[1] >= 3 else 0.0

    shielded = run(Car, rash, brake, doubtful, 0.5, seeds=range(100))
    assert (shielded.fired_at >= 0).any()


def test_a_rollout_that_raises_twice_is_unsafe_and_lost() -> None:
    class Crashing(Car):
        def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
            if self.gap == 20:
                raise RuntimeError("crash")
            return super().step(action)

    shielded = run(Crashing, rash, brake, danger, 1.0, seeds=range(100))
    assert 0 < shielded.lost.sum() < 100
    assert shielded.unsafe[shielded.lost].all()
    assert set(shielded.error[shielded.lost]) == {"RuntimeError: crash"}


@pytest.mark.parametrize(
    ("thresholds", "error", "message"),
    [
        ([], InvalidValueError, "There is no threshold"),
        (1.5, InvalidValueError, "threshold=1.5"),
        ("0.5", InvalidValueError, "is not the path of a certificate"),
        (None, InvalidTypeError, "threshold"),
    ],
)
def test_what_is_no_threshold_is_refused(
    thresholds: Any, error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        run(Car, rash, brake, danger, thresholds, seeds=range(5))


def test_rollouts_at_one_threshold_are_certified_as_a_rate_of_that_shield(tmp_path: Path) -> None:
    driven = run(Car, rash, brake, danger, [0.5, 0.25], seeds=range(100))
    with pytest.raises(InvalidValueError, match="rollouts of 2 thresholds"):
        driven.certify(target=0.7, delta=0.05)
    made = driven.at(0.25).certify(
        target=0.7, delta=0.05, about={"owner": "Ada"}, sample="test track"
    )
    assert made.events == int(driven.at(0.25).unsafe.sum())
    assert (made.certified, made.threshold) == (True, 0.25)
    assert made.provenance.about["owner"] == "Ada"
    assert "Car" in made.provenance.about["environment"]
    driven.at(0.25).save(tmp_path / "driven.npz")
    again = ShieldedRollouts.load(tmp_path / "driven.npz").certify(target=0.7, delta=0.05)
    assert again.claim() == made.claim()


def test_a_lost_rollout_did_not_pass() -> None:
    class Breaking(Car):
        def reset(
            self, *, seed: int | None = None, options: dict[str, Any] | None = None
        ) -> tuple[Any, dict[str, Any]]:
            if seed == 7:
                raise RuntimeError("no such room")
            return super().reset(seed=seed, options=options)

    driven = run(Breaking, rash, brake, danger, 0.25, seeds=range(20))
    assert driven.lost.sum() == 1
    made = driven.certify(target=0.1, delta=0.05)
    assert made.events == int(driven.unsafe.sum()) > 0


def test_stops_are_needless_where_the_same_seed_is_safe_without_the_shield() -> None:
    both = run(Car, rash, brake, danger, [0.25, np.inf], seeds=range(100))
    stopped = both.at(0.25).fired_at >= 0
    expected = (~both.at(np.inf).unsafe)[stopped].mean()
    assert both.needless(0.25) == expected
    assert 0 < expected < 1
    assert np.isnan(both.needless(np.inf))
    with pytest.raises(InvalidValueError, match="No rollout has threshold inf"):
        both.at(0.25).needless(0.25)
