"""The environment keeps Gymnasium's contract, has momentum, knows what is unsafe, and repeats
itself to the bit."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from experiments.robot.environment import GOAL_RADIUS
from experiments.robot.physics import MAX_SPEED, MAX_TURN
from experiments.robot.rooms import ROBOT_RADIUS
from gymnasium.utils.env_checker import check_env

from experiments.robot import IndoorNavigation, Obstacle, Room, brake
from pacbound.errors import InvalidTypeError, InvalidValueError

ROOT = Path(__file__).parents[3]
AHEAD = np.array([1, 0], dtype=np.float32)
LEFT = np.array([0, 1], dtype=np.float32)

WANDERING = """
from tests.experiments.robot.test_environment import wandering
print(wandering(5), wandering(6))
"""

PICTURES = """
import numpy as np
from experiments.robot import IndoorNavigation
from experiments.robot.environment import PICTURE_SIZE, RGB_SHAPE
env, plain = IndoorNavigation(observation="rgb", render_mode="rgb_array"), IndoorNavigation()
env.reset(seed=5), plain.reset(seed=5)
for action in np.random.default_rng(0).uniform((0, -1), (1, 1), size=(5, 2)):
    observation, *_, info = env.step(action)
    picture = env.render()
    assert plain.step(action)[4]["pose"] == info["pose"]
assert env.observation_space.contains(observation)
assert observation["rgb"].shape == RGB_SHAPE and observation["rgb"].std() > 5
assert picture.shape == (*PICTURE_SIZE, 3) and picture.std() > 5
env.close()
print("as it is")
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


def brought_to_standstill(env: IndoorNavigation) -> bool:
    """Brake; whether nothing was touched."""
    safe = True
    while not env.is_stopped():
        env.step(brake())
        safe &= not env.is_unsafe()
    return safe


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


@pytest.mark.parametrize("kind", ["box", "cylinder", "table leg"])
def test_driving_into_furniture_is_unsafe(kind: Any) -> None:
    env = in_hall(Obstacle(kind, 4.0, 5.1, 0.3, (0.03, 0.03, 0.3)))
    while not env.is_unsafe():
        env.step(AHEAD)
    assert env.pose[0] == pytest.approx(4.0 - ROBOT_RADIUS, abs=0.05)


def test_a_touch_that_is_over_before_the_step_is_counts() -> None:
    """A glancing touch of a pole, seen in one of the twenty moments of a step, is unsafe in that
    step."""
    env = in_hall(Obstacle("cylinder", 4.0, 5.0 + ROBOT_RADIUS + 0.02, 0.3, (0.025, 0.025, 0.3)))
    touched = []
    for _ in range(30):
        env.step(AHEAD)
        touched.append(env.is_unsafe())
    assert any(touched)
    assert not touched[-1]


def test_the_robot_drives_under_a_table() -> None:
    env = in_hall(Obstacle("table top", 4.0, 5.0, 0.6, (0.5, 0.5, 0.03)))
    for _ in range(30):
        env.step(AHEAD)
        assert not env.is_unsafe()
    assert env.pose[0] > 4.5


def test_standing_still_is_never_unsafe_and_stays_where_it_is() -> None:
    for seed in range(10):
        env = IndoorNavigation()
        _, info = env.reset(seed=seed)
        for _ in range(30):
            _, _, terminated, _, later = env.step(brake())
            assert not terminated
            assert env.is_stopped()
        assert later["pose"] == pytest.approx(info["pose"], abs=1e-3)


def test_braking_from_full_speed_takes_about_three_quarters_of_a_metre() -> None:
    env = in_hall()
    for _ in range(25):
        env.step(AHEAD)
    assert env.speed[0] == pytest.approx(MAX_SPEED, rel=0.01)
    before = env.pose[0]
    assert brought_to_standstill(env)
    assert 0.70 < env.pose[0] - before < 0.80


def test_turning_takes_time_as_well() -> None:
    env = in_hall()
    env.step(LEFT)
    assert 0 < env.speed[1] < 0.3 * MAX_TURN
    for _ in range(10):
        env.step(LEFT)
    assert env.speed[1] == pytest.approx(MAX_TURN, rel=0.02)


def test_there_are_safe_states_from_which_braking_comes_too_late() -> None:
    env = in_hall(Obstacle("box", 6.0, 5.0, 0.3, (0.3, 0.3, 0.3)))
    while env.pose[0] < 5.0:
        env.step(AHEAD)
    assert not env.is_unsafe()
    assert not brought_to_standstill(env)


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


def test_reaching_the_goal_ends_the_rollout_with_success() -> None:
    room = hall()
    env = IndoorNavigation()
    env.reset(
        options={"room": Room(room.width, room.depth, room.obstacles, room.start, (4.0, 5.0))}
    )
    total = 0.0
    for _ in range(40):
        _, reward, terminated, _, info = env.step(AHEAD)
        total += reward
        if terminated:
            break
    assert info["success"]
    assert not info["unsafe"]
    assert 4.0 - info["pose"][0] <= GOAL_RADIUS
    assert total == pytest.approx(1 + info["pose"][0] - 2.0)


def test_goal_and_speed_are_what_the_robot_would_say() -> None:
    room = hall(heading=np.pi / 2)
    env = IndoorNavigation()
    observation, _ = env.reset(
        options={"room": Room(room.width, room.depth, room.obstacles, room.start, (5.0, 5.0))}
    )
    assert observation["goal"] == pytest.approx([3 / 12, 0, -1], abs=1e-6)
    assert observation["speed"] == pytest.approx([0, 0], abs=1e-9)
    for _ in range(25):
        observation, *_ = env.step(np.array([0.5, 0.5]))
    assert observation["speed"] == pytest.approx([0.5, 0.5], abs=0.01)


def test_actions_are_clipped_to_what_the_motors_can_be_asked_for() -> None:
    poses = []
    for action in ((1, -1), (7, -30)):
        env = in_hall()
        for _ in range(5):
            env.step(np.array(action))
        poses.append(env.pose)
    assert poses[0] == poses[1]


@pytest.mark.parametrize("action", [(np.nan, 0), (np.inf, 0), (1,), (1, 0, 0), 1.0])
def test_what_is_no_action_is_refused(action: Any) -> None:
    with pytest.raises(InvalidValueError, match="expected two finite numbers"):
        in_hall().step(np.array(action, dtype=np.float64))


def test_wrong_arguments_are_refused_in_words() -> None:
    with pytest.raises(InvalidValueError, match="expected 'depth' or 'rgb'"):
        IndoorNavigation(observation="sonar")  # type: ignore[arg-type]
    with pytest.raises(InvalidValueError, match="expected None or 'rgb_array'"):
        IndoorNavigation(render_mode="human")
    with pytest.raises(InvalidTypeError, match="expected a Room"):
        IndoorNavigation().reset(options={"room": 3})


@pytest.mark.parametrize("asked", ["room", "pose", "speed"])
def test_before_the_first_reset_there_is_no_room(asked: str) -> None:
    with pytest.raises(InvalidValueError, match=r"call reset\(\) first"):
        getattr(IndoorNavigation(), asked)
    with pytest.raises(InvalidValueError, match=r"call reset\(\) first"):
        IndoorNavigation().step(AHEAD)
    with pytest.raises(InvalidValueError, match=r"call reset\(\) first"):
        IndoorNavigation().save_state()


def test_camera_images_and_pictures_from_above_leave_the_rollout_as_it_is() -> None:
    # The kind of OpenGL is chosen when MuJoCo is imported, so in a process of its own.
    chosen = {"MUJOCO_GL": "egl", **os.environ}
    done = subprocess.run(
        [sys.executable, "-c", PICTURES], capture_output=True, text=True, check=False, env=chosen
    )
    if "MissingDependencyError" in done.stderr:
        pytest.skip(f"no OpenGL on this machine: {done.stderr.splitlines()[-1]}")
    assert done.stdout.strip() == "as it is", done.stderr


def test_without_opengl_pictures_say_what_to_install_and_depth_works() -> None:
    program = (
        "from experiments.robot import *; IndoorNavigation().reset(); "
        "IndoorNavigation(observation='rgb').reset()"
    )
    without = {**os.environ, "MUJOCO_GL": "disable"}
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False, env=without
    )
    assert "MissingDependencyError: Pictures need OpenGL" in done.stderr
    assert "apt-get install libegl1" in done.stderr
