"""A danger model that is late, hangs or raises: the backup acts in time, and nothing is mixed."""

from __future__ import annotations

import copy
import gc
import importlib
import pickle
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pacbound import Shield, certify_forks, certify_shield
from pacbound.errors import InvalidTypeError, InvalidValueError
from pacbound.shield import VectorShield
from pacbound.shield.latch import WithDeadline


def shield(danger: Any, deadline: float | None = 0.5) -> Shield:
    return Shield(lambda x: "drive", lambda x: "brake", danger, 0.5, deadline=deadline)


def seen_danger(seen: float) -> float:
    return seen


def test_the_backup_acts_at_the_deadline_while_the_model_hangs() -> None:
    release, calls = threading.Event(), []

    def hangs(seen: float) -> float:
        calls.append(seen)
        release.wait(20)
        return 0.0

    one = shield(hangs)
    started = time.monotonic()
    assert one(0.1) == "brake"
    assert 0.49 < time.monotonic() - started < 10
    assert one.failures == 1
    assert isinstance(one.last_error, TimeoutError)
    assert np.isnan(one.danger)
    # Fired, so nobody waits again.
    assert one(0.2) == "brake"
    assert calls == [0.1]
    # A new rollout: the model is still busy, so the backup acts again, and no thread is added.
    before = set(threading.enumerate())
    one.reset()
    assert one(0.3) == "brake"
    assert "still busy" in str(one.last_error)
    assert set(threading.enumerate()) <= before
    assert calls == [0.1]
    # The late answer, which is low, belongs to nothing; the next reading is its own.
    release.set()
    one.reset()
    assert one(0.4) == "drive"
    assert calls == [0.1, 0.4]
    assert one.danger == 0.0


def test_a_late_answer_is_never_taken_for_the_next_observation() -> None:
    def slow_at_first(seen: float) -> float:
        time.sleep(1.0 if seen < 0 else 0.0)
        return abs(seen)

    one = shield(slow_at_first)
    assert one(-0.1) == "brake"
    one.reset()
    time.sleep(1.0)
    assert one(0.9) == "brake"
    assert one.danger == 0.9


def test_what_the_model_raises_fires_and_an_interrupt_is_raised() -> None:
    def broken(seen: float) -> float:
        raise OSError("the camera is gone")

    one = shield(broken)
    assert one(0.1) == "brake"
    assert isinstance(one.last_error, OSError)

    def interrupted(seen: float) -> float:
        raise KeyboardInterrupt

    other = shield(interrupted)
    with pytest.raises(KeyboardInterrupt):
        other(0.1)
    assert other.fired


def test_all_environments_brake_where_the_model_is_late() -> None:
    release = threading.Event()

    def hangs(seen: Any) -> Any:
        release.wait(20)
        return np.zeros(3)

    ones, zeros = (lambda x: np.ones(3)), (lambda x: np.zeros(3))
    many = VectorShield(ones, zeros, hangs, 0.5, num_envs=3, deadline=0.1)
    assert many(np.zeros(3)).tolist() == [0.0, 0.0, 0.0]
    assert many.failures.tolist() == [1, 1, 1]
    release.set()


def test_copies_have_a_thread_of_their_own_and_a_shield_that_is_gone_has_none() -> None:
    before = set(threading.enumerate())
    one = shield(seen_danger, 20.0)
    assert one(0.1) == "drive"
    for other in (copy.deepcopy(one), pickle.loads(pickle.dumps(WithDeadline(seen_danger, 20.0)))):
        assert other(0.2) in ("drive", 0.2)
    del one, other
    gc.collect()
    end = time.monotonic() + 10
    while set(threading.enumerate()) - before and time.monotonic() < end:
        time.sleep(0.01)
    assert set(threading.enumerate()) <= before


@pytest.mark.parametrize("deadline", [0, -1.0, float("nan"), float("inf")])
def test_a_deadline_is_a_positive_number_of_seconds(deadline: float) -> None:
    with pytest.raises(InvalidValueError, match="deadline"):
        shield(seen_danger, deadline)
    with pytest.raises(InvalidTypeError, match="deadline"):
        shield(seen_danger, "0.1")  # type: ignore[arg-type]


class Mean:
    """A danger model with memory: the mean of what it saw in this rollout. It writes its memory
    last, as a recurrent network does.
    """

    def __init__(self) -> None:
        self.seen: list[float] = []
        self.release, self.broken = threading.Event(), False

    def reset(self) -> None:
        if self.broken:
            raise OSError("no memory")
        self.seen = []

    def __call__(self, seen: float) -> float:
        now = [*self.seen, abs(seen)]
        if seen < 0:
            self.release.wait(20)
        self.seen = now
        return sum(now) / len(now)


def test_a_reset_comes_after_the_late_reading_and_before_the_next() -> None:
    model = Mean()
    one = shield(model)
    assert [one(0.0) for _ in range(9)] == ["drive"] * 9
    assert one(-0.1) == "brake"
    one.reset()
    # It is still busy with the last rollout, so nothing of the new one is read.
    assert one(0.9) == "brake"
    assert "still busy" in str(one.last_error)
    model.release.set()
    one.reset()
    assert one(0.9) == "brake"
    assert one.danger == 0.9
    assert one.failures == 2
    one.reset()
    assert model.seen == []
    assert one(0.1) == "drive"


def test_a_certificate_of_forks_warns_that_it_covers_no_deadline(tmp_path: Path) -> None:
    rollout, unsafe = np.repeat(np.arange(60), 2), np.arange(120) % 2 == 1
    ends = np.tile([0, 32769], 60), np.tile([32768, 65537], 60)
    forks = certify_forks(rollout, *ends, unsafe, xi=0.1, delta=0.05)
    refused = certify_forks(rollout, *ends, ~unsafe, xi=0.1, delta=0.05)
    assert forks.threshold == 0.5
    forks.save(tmp_path / "forks.json")
    act = (lambda x: np.ones(2)), (lambda x: np.zeros(2)), seen_danger
    for given in (forks, tmp_path / "forks.json"):
        with pytest.warns(UserWarning, match="certify_forks does not cover a deadline") as caught:
            Shield(*act, given, deadline=1.0)
        assert caught[0].filename == __file__
        with pytest.warns(UserWarning, match="certify_forks does not cover a deadline"):
            VectorShield(*act, given, num_envs=2, deadline=1.0)
        Shield(*act, given)
    Shield(*act, refused, deadline=1.0)
    Shield(*act, certify_shield([0.9] * 60, [False] * 60, xi=0.1, delta=0.05), deadline=1.0)


def test_wrappers_of_gymnasium_have_a_deadline_too() -> None:
    gymnasium = pytest.importorskip("gymnasium", reason="the wrappers need the extra `shield`")
    wrappers = importlib.import_module("pacbound.shield.gym")
    release = threading.Event()

    def hangs(seen: Any) -> Any:
        release.wait(20)
        return np.zeros(len(seen)) if np.ndim(seen) > 1 else 0.0

    one = wrappers.ShieldWrapper(
        gymnasium.make("CartPole-v1"), lambda x: 1, hangs, 0.5, deadline=0.2
    )
    many = wrappers.VectorShieldWrapper(
        gymnasium.make_vec("CartPole-v1", num_envs=2, vectorization_mode="sync"),
        lambda x: np.ones(len(x), dtype=np.int64),
        hangs,
        0.5,
        deadline=0.2,
    )
    for env, action in ((one, 0), (many, np.zeros(2, dtype=np.int64))):
        env.reset(seed=0)
        assert np.all(env.step(action)[4]["shield_override"])
        assert isinstance(env.latch.last_error, TimeoutError)
    release.set()
    one.reset(seed=0)
    many.reset(seed=0)
    with pytest.raises(InvalidValueError, match="deadline"):
        wrappers.ShieldWrapper(gymnasium.make("CartPole-v1"), lambda x: 1, hangs, 0.5, deadline=0)
    rollout, ends = np.arange(60), (np.zeros(60, dtype=int), np.full(60, 65537))
    forks = certify_forks(rollout, *ends, np.zeros(60, dtype=bool), xi=0.1, delta=0.05)
    with pytest.warns(UserWarning, match="does not cover a deadline") as caught:
        wrappers.ShieldWrapper(gymnasium.make("CartPole-v1"), lambda x: 1, hangs, forks, deadline=1)
    assert caught[0].filename == __file__
