"""Environments that others wrote: restored by a copy or by replay, asked what is unsafe by a
function, and refused with what differs where they do not come back."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

import gymnasium
import numpy as np
import pytest

pytest.importorskip("joblib", reason="joblib is not installed: pip install 'pacbound[shield]'")

from tests.shield.cars import Car, brake, danger, labelled, rash

from pacbound.errors import InvalidValueError
from pacbound.shield import Task, collect_rollouts, run_shielded
from pacbound.shield.rollouts.world import World

collect = partial(labelled, seeds=range(60), horizon=40)
WAYS = ("deepcopy", "replay")


class Foreign(Car):
    """A slippery car of somebody else's: it cannot be saved, and says in `info` that it crashed."""

    save_state = restore_state = is_unsafe = None  # type: ignore[assignment]

    def __init__(self) -> None:
        super().__init__(slip=0.2)

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        seen, reward, terminated, truncated, info = super().step(action)
        return seen, reward, terminated, truncated, {**info, "crashed": self.unsafe}


@pytest.mark.parametrize("restore", WAYS)
@pytest.mark.parametrize("unsafe", ["crashed", lambda env, info: info["crashed"]])
def test_every_way_of_restoring_gives_the_same_rollouts_to_the_bit(
    restore: str, unsafe: Any
) -> None:
    own = collect(partial(Car, slip=0.2), rash, brake, danger)
    other = collect(Foreign, rash, brake, danger, restore=restore, unsafe=unsafe)
    assert own.unsafe.any()
    assert not own.unsafe.all()
    for name, column in own.columns.items():
        np.testing.assert_array_equal(column, other.columns[name], err_msg=name)


@pytest.mark.parametrize("restore", WAYS)
def test_every_way_of_restoring_gives_the_same_forks_to_the_bit(restore: str) -> None:
    known = Task(partial(Car, slip=0.2), Remembers(), brake, danger, horizon=40)
    foreign = replace(known, environment=Foreign, restore=restore, unsafe="crashed")
    own, other = (collect_rollouts(task, seeds=range(60)) for task in (known, foreign))
    assert own.columns.keys() == other.columns.keys()
    for name, column in own.columns.items():
        np.testing.assert_array_equal(column, other.columns[name], err_msg=name)


@pytest.mark.parametrize("restore", WAYS)
def test_wrappers_come_back_with_what_they_remember(restore: str) -> None:
    def make() -> Any:
        return gymnasium.wrappers.StickyAction(gymnasium.wrappers.TimeLimit(Foreign(), 30), 0.5)

    with pytest.raises(InvalidValueError, match="TimeLimit would count"):
        collect(lambda: gymnasium.wrappers.TimeLimit(Car(), 30), rash, brake, danger)
    found = collect(make, rash, brake, danger, restore=restore, unsafe="crashed", backup_steps=60)
    assert not (found.error != "").any()
    # A car that repeats actions on its own does not stand still because its engine does.
    assert not World(make(), restore=restore, unsafe="crashed").knows_standstill
    assert World(Foreign(), restore=restore, unsafe="crashed").knows_standstill


class Shared(gymnasium.Env[Any, Any]):
    """A robot whose joints are held by a server that copies share, as that of PyBullet is."""

    server = np.zeros(4)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        self.server[:] = 0
        return self._look(), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        self.server[2] += action
        return self._look(), 0.0, False, False, {"crashed": False}

    def _look(self) -> Any:
        return {"arm": {"joints": self.server.copy()}, "goal": np.ones(3)}


def test_what_differs_after_a_copy_is_said_with_its_place_step_and_size() -> None:
    arm = partial(collect, Shared, lambda seen: 0.5, lambda seen: -0.125, unsafe="crashed")
    with pytest.raises(InvalidValueError) as refusal:
        arm(restore="deepcopy", backup_steps=2)
    assert (
        "After a simulation in a copy the rollout of seed 0 goes on differently: first at step 1, "
        "where arm/joints[2] is 0.25 instead of 0.5 (0.25 apart), and by the most at step 30, "
        "where arm/joints[2] is 7.5 instead of 15 (7.5 apart)."
    ) in str(refusal.value)
    assert 'Pass restore="replay".' in str(refusal.value)
    assert not arm(restore="replay", backup_steps=2).unsafe.any()


class Drifting(Shared):
    """The server forgets to go back all the way from its third reset on."""

    resets = 0

    def reset(self, **options: Any) -> tuple[Any, dict[str, Any]]:
        super().reset(**options)
        self.resets += 1
        self.server[3] = 0.026 * (self.resets > 2)
        return self._look(), {}


def test_a_replay_that_leads_elsewhere_is_refused_each_time() -> None:
    world = World(Drifting(), restore="replay", unsafe="crashed")
    world.reset(7)
    world.step(1.0)
    with world.excursion():
        world.step(1.0)
    wanted = r"The same 1 actions from reset\(seed=7\) .*arm/joints\[3\] is 0.026 instead of 0 "
    with pytest.raises(InvalidValueError, match=wanted), world.excursion():
        world.step(1.0)


@pytest.mark.parametrize("unsafe", ["crash", lambda env, info: info["crash"], lambda *_: None])
def test_silence_after_a_step_is_not_safety(unsafe: Any) -> None:
    with pytest.raises(InvalidValueError, match=r"unsafe gives no answer.*'success', 'crashed'"):
        collect(Foreign, rash, brake, danger, restore="replay", unsafe=unsafe)


class Remembers:
    """A recurrent policy, as stable-baselines3 has them: its state is what it saw so far."""

    def predict(
        self, observation: Any, state: Any = None, episode_start: Any = None
    ) -> tuple[Any, Any]:
        seen = (0, 0.0) if state is None else state
        return -1 if seen[0] % 3 == 2 else rash(observation), (seen[0] + 1, seen[1])


class RemembersItself:
    """The same policy with its memory inside, and a method that clears it."""

    steps = 0

    def __call__(self, observation: Any) -> Any:
        self.steps += 1
        return -1 if self.steps % 3 == 0 else rash(observation)

    def reset(self) -> None:
        self.steps = 0


@pytest.mark.parametrize("restore", ["own", *WAYS])
@pytest.mark.parametrize("policy", [Remembers(), Remembers().predict, RemembersItself()])
def test_simulated_backups_leave_the_memory_of_a_policy_as_it_is(policy: Any, restore: str) -> None:
    env = partial(Car, slip=0.2) if restore == "own" else Foreign
    unsafe = None if restore == "own" else "crashed"
    task = Task(env, policy, Remembers(), danger, horizon=40, restore=restore, unsafe=unsafe)
    rollouts = labelled(task, seeds=range(60), follow_through=True)
    driven = run_shielded(task, certificate_or_thresholds=np.inf, seeds=range(60))
    # The policy alone, of which no backup was simulated, takes the same steps to the same end.
    kept = ~rollouts.lost
    assert rollouts.steps[kept].tolist() == driven.steps[kept].tolist()
    assert rollouts.collided[kept].tolist() == driven.unsafe[kept].tolist()


def test_a_memory_that_policy_and_backup_share_is_found_out() -> None:
    shared = RemembersItself()
    with pytest.raises(InvalidValueError, match="shares its memory with the backup"):
        collect(partial(Car, slip=0.2), shared, shared, danger)
