"""The environment keeps Gymnasium's contract, has momentum, knows what is unsafe, and repeats
itself to the bit."""

from __future__ import annotations

import hashlib
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from experiments.robot.rooms import ROBOT_RADIUS
from gymnasium.utils.env_checker import check_env

from experiments.robot import IndoorNavigation, Obstacle, Room

pytestmark = pytest.mark.long

ROOT = Path(__file__).parents[3]
AHEAD = np.array([1, 0], dtype=np.float32)

WANDERING = """
from tests.experiments.robot.test_environment import wandering

print(wandering(5), wandering(6))
"""


def hall(*pieces: Obstacle, heading: float = 0.0) -> Room:
    """A hall of 20 m by 10 m with four walls and `pieces`; the robot starts 2 m from the left wall
    and the goal is far away."""
    walls = (
        Obstacle("wall", 10, -0.05, 0.5, (10, 0.05, 0.5)),
        Obstacle("wall", 10, 10.05, 0.5, (10, 0.05, 0.5)),
        Obstacle("wall", -0.05, 5, 0.5, (0.05, 5, 0.5)),
        Obstacle("wall", 20.05, 5, 0.5, (0.05, 5, 0.5)),
    )
    return Room(20.0, 10.0, (*walls, *pieces), (2.0, 5.0, heading), (19.0, 9.0))


def in_hall(*pieces: Obstacle, heading: float = 0.0) -> IndoorNavigation:
    env = IndoorNavigation()
    env.reset(seed=0, options={"room": hall(*pieces, heading=heading)})
    return env


def wandering(seed: int) -> str:
    """A digest of everything that is seen on a drive at random."""
    env, rng, digest = IndoorNavigation(), np.random.default_rng(seed), hashlib.sha256()
    env.reset(seed=seed)
    for _ in range(30):
        observation, reward, terminated, _, info = env.step(
            np.array([rng.uniform(0, 1), rng.uniform(-1, 1)])
        )
        for part in (*observation.values(), np.array([reward, terminated, *info["pose"]])):
            digest.update(part.tobytes())
    return digest.hexdigest()


def test_gymnasium_finds_nothing_wrong_with_it() -> None:
    check_env(IndoorNavigation(), skip_render_check=True)


def test_driving_into_a_wall_is_unsafe_and_ends_the_rollout() -> None:
    env = in_hall(heading=np.pi)
    for _ in range(40):
        _, _, terminated, _, info = env.step(AHEAD)
        if terminated:
            break
    assert env.is_unsafe()
    assert info["unsafe"]
    assert info["pose"][0] == pytest.approx(ROBOT_RADIUS, abs=0.03)


def test_a_state_restored_goes_on_as_it_did_to_the_bit() -> None:
    env, rng = IndoorNavigation(), np.random.default_rng(0)
    env.reset(seed=3)
    drive = rng.uniform((0, -1), (1, 1), size=(25, 2))
    for action in drive[:10]:
        env.step(action)
    state = env.save_state()
    first = [env.step(action)[0]["depth"].tobytes() for action in drive[10:]]
    env.restore_state(state)
    assert [env.step(action)[0]["depth"].tobytes() for action in drive[10:]] == first
    env.reset(seed=8)
    env.restore_state(state)
    assert [env.step(action)[0]["depth"].tobytes() for action in drive[10:]] == first
    other = IndoorNavigation()
    other.restore_state(state)
    assert [other.step(action)[0]["depth"].tobytes() for action in drive[10:]] == first


def test_whether_a_state_is_unsafe_is_restored_with_it() -> None:
    env = in_hall(heading=np.pi)
    safe = env.save_state()
    while not env.is_unsafe():
        env.step(AHEAD)
    touching = env.save_state()
    env.restore_state(safe)
    assert not env.is_unsafe()
    env.restore_state(touching)
    assert env.is_unsafe()


def test_the_same_seed_gives_the_same_rollout_whatever_ran_before_and_in_another_process() -> None:
    here = wandering(5), wandering(6)
    assert (wandering(6), wandering(5)) == here[::-1]
    done = subprocess.run(
        [sys.executable, "-c", WANDERING], capture_output=True, text=True, check=True, cwd=ROOT
    )
    assert tuple(done.stdout.split()) == here
