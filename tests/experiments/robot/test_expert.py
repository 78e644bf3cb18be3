"""The expert drives safely to the goal in nearly all rooms."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from experiments.robot.rooms import CALIBRATION, DANGER_TRAINING, POLICY_TRAINING, TEST, TUNING

from experiments.robot import Expert, IndoorNavigation


def test_the_expert_is_safe_and_arrives_in_nearly_all_rooms() -> None:
    env, unsafe, success = IndoorNavigation(), 0, 0
    for seed in TUNING[:40]:
        _, info = env.reset(seed=seed)
        expert = Expert(info["room"])
        for _ in range(100):
            action = expert.act(env.pose, env.speed)
            assert env.action_space.contains(action)
            _, _, terminated, _, info = env.step(action)
            if terminated:
                break
        unsafe, success = unsafe + info["unsafe"], success + info["success"]
    assert unsafe <= 2
    assert success >= 34


def test_the_same_place_gets_the_same_action() -> None:
    env = IndoorNavigation()
    _, info = env.reset(seed=0)
    first, second = (Expert(info["room"]).act(env.pose, env.speed) for _ in range(2))
    assert np.array_equal(first, second)


def test_no_room_is_for_two_purposes() -> None:
    ranges = sorted(
        [POLICY_TRAINING, DANGER_TRAINING, TUNING, CALIBRATION, TEST],
        key=lambda seeds: seeds.start,
    )
    assert all(one.stop <= other.start for one, other in pairwise(ranges))
