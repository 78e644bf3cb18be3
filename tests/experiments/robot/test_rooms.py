"""Rooms follow from their seed, are furnished as they say, and can be crossed."""

from __future__ import annotations

import math
from itertools import combinations
from typing import Any

import numpy as np
import pytest
from experiments.robot.rooms import (
    LEAST_JOURNEY,
    ROBOT_RADIUS,
    Obstacle,
    Room,
    free_cells,
    random_room,
)
from scipy.ndimage import label

ROOMS = [random_room(np.random.default_rng(seed)) for seed in range(40)]


def corners(box: Obstacle) -> Any:
    long, wide, _ = box.half_size
    own = np.array([(long, wide), (-long, wide), (-long, -wide), (long, -wide)])
    turn = np.array(
        [(math.cos(box.yaw), math.sin(box.yaw)), (-math.sin(box.yaw), math.cos(box.yaw))]
    )
    return own @ turn + (box.x, box.y)


def outline(piece: Obstacle) -> Any:
    """Points on the rim of a piece as seen from above."""
    if piece.is_round:
        angles = np.linspace(0, 2 * np.pi, 40, endpoint=False)
        return np.stack(
            [
                piece.x + piece.half_size[0] * np.cos(angles),
                piece.y + piece.half_size[0] * np.sin(angles),
            ],
            axis=1,
        )
    ends = corners(piece)
    share = np.linspace(0, 1, 20)[:, None]
    return np.concatenate(
        [a * (1 - share) + b * share for a, b in zip(ends, np.roll(ends, -1, axis=0), strict=True)]
    )


def alone(room: Room, piece: Obstacle) -> Room:
    return Room(room.width, room.depth, (piece,), room.start, room.goal)


def furniture(room: Room) -> list[Obstacle]:
    return [piece for piece in room.obstacles if piece.kind != "wall"]


def test_the_same_seed_gives_the_same_room() -> None:
    assert random_room(np.random.default_rng(7)) == ROOMS[7]
    assert len(set(ROOMS)) == len(ROOMS)


def test_every_room_can_be_crossed_by_the_robot_from_start_to_goal() -> None:
    for room in ROOMS:
        centres, shape = room.cell_centres()
        regions, _ = label(free_cells(room.distance(centres), shape), structure=np.ones((3, 3)))
        assert regions[room.cell(*room.start[:2])] == regions[room.cell(*room.goal)] > 0
        assert math.dist(room.start[:2], room.goal) >= LEAST_JOURNEY


def test_the_robot_starts_with_free_floor_around_it() -> None:
    for room in ROOMS:
        assert room.distance(np.array([room.start[:2]]))[0] > ROBOT_RADIUS + 0.4


def test_furniture_stands_on_the_floor_between_the_walls() -> None:
    for room in ROOMS:
        for piece in furniture(room):
            assert (outline(piece) >= 0).all()
            assert (outline(piece) <= (room.width, room.depth)).all()
            assert piece.z - piece.half_size[2] == pytest.approx(0) or piece.kind == "table top"


def test_no_two_pieces_of_furniture_touch() -> None:
    for room in ROOMS:
        for one, other in combinations([piece for piece in room.obstacles if piece.blocks], 2):
            if "wall" not in (one.kind, other.kind):
                assert alone(room, one).distance(outline(other)).min() > 0.05


def test_every_kind_of_furniture_comes_up_and_tables_have_four_legs() -> None:
    kinds = [piece.kind for room in ROOMS for piece in room.obstacles]
    assert {"wall", "box", "cylinder", "table top", "table leg"} == set(kinds)
    assert kinds.count("table leg") == 4 * kinds.count("table top")
    assert any(sum(piece.kind == "wall" for piece in room.obstacles) == 5 for room in ROOMS)


def test_the_robot_fits_under_a_table_but_not_through_its_legs() -> None:
    for room in ROOMS:
        assert {piece.blocks for piece in room.obstacles if piece.kind == "table top"} <= {False}
        assert {piece.blocks for piece in room.obstacles if piece.kind == "table leg"} <= {True}


def test_distance_is_that_of_geometry() -> None:
    turned = Obstacle("box", 2.0, 2.0, 0.3, (0.5, 0.2, 0.3), math.pi / 2)
    pillar = Obstacle("cylinder", 5.0, 2.0, 0.3, (0.25, 0.25, 0.3))
    room = Room(6.0, 4.0, (turned, pillar), (0.0, 0.0, 0.0), (0.0, 0.0))
    points = np.array([(2.0, 3.0), (3.0, 2.0), (2.5, 2.9), (2.0, 2.1), (5.0, 3.0), (5.1, 2.0)])
    assert room.distance(points) == pytest.approx([0.5, 0.8, 0.5, 0.0, 0.75, 0.0])


def test_an_empty_room_has_nothing_near() -> None:
    assert Room(6.0, 4.0, (), (1.0, 1.0, 0.0), (3.0, 3.0)).distance(np.zeros((2, 2))).tolist() == [
        np.inf,
        np.inf,
    ]
