"""The depth image is what geometry says."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from experiments.robot.cameras import COLUMNS, FAN, RANGE, ROWS
from experiments.robot.physics import CAMERA_FORWARD, CAMERA_HEIGHT

from experiments.robot import IndoorNavigation, Obstacle, Room

WALL = Obstacle("wall", 5.05, 5.0, 5.0, (0.05, 30.0, 5.0))


def seen(*pieces: Obstacle, start: tuple[float, float, float]) -> Any:
    env = IndoorNavigation()
    observation, _ = env.reset(options={"room": Room(10.0, 10.0, pieces, start, (9.0, 9.0))})
    return observation["depth"]


def test_an_image_has_sixteen_rows_and_sixty_four_columns_of_shares() -> None:
    image = seen(WALL, start=(3.0, 5.0, 0.0))
    assert image.shape == (ROWS, COLUMNS) == (16, 64)
    assert image.dtype == np.float32
    assert (image > 0).all()
    assert (image <= 1).all()


def test_a_wall_ahead_and_the_floor_are_at_the_distance_that_geometry_gives() -> None:
    image = seen(WALL, start=(3.0, 5.0, 0.0))
    with np.errstate(divide="ignore"):
        to_wall = (5.0 - 3.0 - CAMERA_FORWARD) / FAN[..., 0]
        to_floor = np.where(FAN[..., 2] < 0, CAMERA_HEIGHT / -FAN[..., 2], np.inf)
    expected = np.minimum(np.minimum(to_wall, to_floor) / RANGE, 1)
    assert image == pytest.approx(expected, abs=1e-4)


@pytest.mark.parametrize("heading", [0.3, -1.0, 2.0])
def test_the_image_turns_with_the_robot(heading: float) -> None:
    image = seen(WALL, start=(4.0, 5.0, heading))
    eye = 4.0 + CAMERA_FORWARD * math.cos(heading)
    across = FAN[..., 0] * math.cos(heading) - FAN[..., 1] * math.sin(heading)
    to_wall = np.where(across > 1e-9, (5.0 - eye) / np.maximum(across, 1e-9), np.inf)
    to_floor = np.where(FAN[..., 2] < 0, CAMERA_HEIGHT / np.maximum(-FAN[..., 2], 1e-9), np.inf)
    assert image == pytest.approx(np.minimum(np.minimum(to_wall, to_floor) / RANGE, 1), abs=1e-4)


def test_what_is_on_the_left_is_in_the_left_half() -> None:
    image = seen(Obstacle("cylinder", 4.0, 5.8, 0.5, (0.1, 0.1, 0.5)), start=(3.0, 5.0, 0.0))
    horizon = image[6]
    assert horizon[: COLUMNS // 2].min() < 0.3
    assert horizon[COLUMNS // 2 :].min() == 1.0


def test_a_table_is_seen_by_its_top_and_its_legs() -> None:
    top = Obstacle("table top", 4.5, 5.0, 0.7, (0.5, 0.5, 0.03))
    leg = Obstacle("table leg", 4.0, 5.0, 0.33, (0.03, 0.03, 0.33))
    start = (3.0, 5.0, 0.0)
    nothing = seen(start=start)
    assert (seen(top, start=start) < nothing)[:5].any()
    assert not (seen(top, start=start) < nothing)[6:].any()
    assert (seen(leg, start=start) < nothing)[6, 28:36].any()


def test_the_robot_does_not_see_itself_and_nothing_is_the_full_range() -> None:
    image = seen(start=(5.0, 5.0, 0.0))
    assert (image[:6] == 1).all()
