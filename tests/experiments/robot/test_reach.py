"""Braking that is called sure never touches anything: every such claim is tried out in the
simulation."""

from __future__ import annotations

import numpy as np
import pytest
from experiments.robot.physics import TOLERANCE, braking_path

from experiments.robot import IndoorNavigation, Obstacle, Room, brake

pytestmark = pytest.mark.long

MOST_BRAKING = 40


def driven_at_random(env: IndoorNavigation, rng: np.random.Generator, steps: int) -> bool:
    """Drive with jerks and turns; whether nothing was touched."""
    action = np.zeros(2)
    for step in range(steps):
        if step % int(rng.integers(1, 8)) == 0:
            action = np.array(
                [
                    rng.choice([0.0, 1.0, rng.uniform(0, 1)]),
                    rng.choice([-1.0, 0.0, 1.0, rng.uniform(-1, 1)]),
                ]
            )
        env.step(action)
        if env.is_unsafe():
            return False
    return True


def brakes_safely(env: IndoorNavigation) -> bool:
    for _ in range(MOST_BRAKING):
        env.step(brake())
        if env.is_unsafe():
            return False
        if env.is_stopped():
            return True
    return False


def test_what_is_surely_recoverable_brakes_safely_in_every_state_tried() -> None:
    env, rng = IndoorNavigation(), np.random.default_rng(0)
    sure = unsure_and_unsafe = 0
    for seed in range(300):
        env.reset(seed=seed)
        if not driven_at_random(env, rng, int(rng.integers(1, 30))):
            assert not env.surely_recoverable()
            continue
        if env.surely_recoverable():
            sure += 1
            assert brakes_safely(env)
        else:
            unsure_and_unsafe += not brakes_safely(env)
    assert sure > 150
    assert unsure_and_unsafe > 10


def test_the_simulated_robot_keeps_to_the_path_of_mechanics_well_within_the_tolerance() -> None:
    room = Room(
        100.0,
        100.0,
        (Obstacle("wall", -0.05, 50.0, 0.5, (0.05, 50.0, 0.5)),),
        (50.0, 50.0, 0.0),
        (1.0, 1.0),
    )
    env, rng, worst = IndoorNavigation(), np.random.default_rng(1), 0.0
    for _ in range(60):
        env.reset(options={"room": room})
        driven_at_random(env, rng, int(rng.integers(1, 30)))
        path = braking_path(env.pose, *env.speed)
        fine = np.stack(
            [np.interp(np.linspace(0, 23, 500), np.arange(24), column) for column in path.T],
            axis=1,
        )
        while not env.is_stopped():
            env.step(brake())
            worst = max(worst, float(np.hypot(*(fine - env.pose[:2]).T).min()))
    assert worst < TOLERANCE / 4
