"""The exhibit about safe planning: how thresholds are judged, what tables say, and the networks'
inputs. No simulator runs."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ET
from copy import deepcopy
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from experiments.safe_planning import ablation, report
from experiments.safe_planning.ablation import Cell
from experiments.safe_planning.methods import CERTIFIED, METHODS, Table, many_thresholds, threshold

RESULTS = Path(__file__).parents[2] / "experiments" / "results" / "safe_planning.json"


def law(rows: int, unsafe: int, *, score: float = 0.2) -> Table:
    """`unsafe` of so many rollouts are unsafe at one danger; the others reach the goal at 0.1."""
    bad = np.arange(rows) < unsafe
    scores = np.where(bad, score, 0.1)
    return Table(scores, bad, np.where(bad, score, np.nan), ~bad)


def spread_law(rows: int) -> Table:
    """Half of the rollouts are unsafe, at dangers that are spread evenly, so that every threshold
    has a risk of its own."""
    bad = np.arange(rows) % 2 == 0
    scores = np.random.default_rng(0).permutation((np.arange(rows) + 0.5) / rows)
    return Table(scores, bad, np.where(bad, scores, np.nan), ~bad)


def test_a_threshold_that_misses_exactly_xi_does_not_violate() -> None:
    cell = Cell("xi", 0.1, 0.01, 100)
    assert ablation.judged(law(100, 10), cell, "exact", [0.5])["violations"] == 0
    assert ablation.judged(law(100, 11), cell, "exact", [0.5])["violations"] == 1
    # 0.29 * 100 is 28.999999999999996 in floats.
    assert (
        ablation.judged(law(100, 29), Cell("xi", 0.29, 0.01, 100), "exact", [0.5])["violations"]
        == 0
    )


def test_what_is_at_the_threshold_is_stopped_and_neither_missed_nor_successful() -> None:
    table = law(10, 4, score=0.5)
    assert (table.missed(0.5), table.missed(0.51)) == (0, 4)
    assert (table.succeeds(0.1), table.succeeds(0.5)) == (0, 6)
    assert table.missed(np.inf) == 4


@pytest.fixture(scope="module")
def rows() -> list[dict[str, Any]]:
    return ablation.run(spread_law(1_000), [Cell("n", 0.1, 0.1, 200)], repeats=60, seed=1)


def test_certified_thresholds_keep_delta_and_means_do_not(rows: list[dict[str, Any]]) -> None:
    found = {row["method"]: row for row in rows}
    assert set(found) == set(METHODS)
    assert not any(found[method]["exceeds_delta"] for method in CERTIFIED)
    assert found["histogram"]["exceeds_delta"]
    # The law can violate: some draws of the exact method do, though not too many.
    assert 0 < found["exact"]["violations"] < found["histogram"]["violations"]
    assert found["exact"]["success"][0] > found["product"]["success"][0]


def test_the_same_seed_gives_the_same_draws_and_a_cell_of_two_panels_the_same_row() -> None:
    cells = [Cell("xi", 0.1, 0.1, 100), Cell("n", 0.1, 0.1, 100)]
    first, again = (ablation.run(spread_law(500), cells, repeats=5, seed=3) for _ in range(2))
    assert first == again
    half = len(first) // 2
    assert [{**row, "panel": "n"} for row in first[:half]] == first[half:]


def test_the_cells_are_those_of_the_papers_appendix() -> None:
    cells = ablation.cells(20_000, (5_000, 10_000, 15_000, 20_000))
    assert [cell.xi for cell in cells if cell.panel == "xi"] == [0.2, 0.15, 0.1, 0.05, 0.03]
    assert [cell.delta for cell in cells if cell.panel == "delta"] == [0.1, 0.01, 0.001, 0.0001]
    assert {cell.n for cell in cells if cell.panel == "n"} == {5_000, 10_000, 15_000, 20_000}


def test_each_method_chooses_as_its_public_function_does() -> None:
    table = spread_law(1_000)
    chosen = {method: threshold(method, table, xi=0.1, delta=0.01) for method in METHODS}
    assert chosen["naive"] == 0.5
    assert chosen["xi-naive"] == 0.1
    assert chosen["product"] <= chosen["exact"] < chosen["histogram"]


@pytest.mark.parametrize("xi", [0.0, 0.05, 0.1, 0.29, 0.6])
def test_many_thresholds_are_what_the_public_functions_give(xi: float) -> None:
    rng = np.random.default_rng(5)
    bad = rng.random(400) < 0.5
    last = np.where(bad, rng.random(400), np.nan)
    scores = np.where(bad, np.fmax(last, rng.random(400)), rng.random(400))
    # On the grid, saturated, and lost at the start.
    scores[:4], last[:4], bad[:5] = [0.5, 1.0, 0.0, -np.inf], [0.5, 1.0, 0.0, -np.inf], True
    last[4] = 0.0
    table = Table(scores, bad, last, ~bad)
    draws = [rng.integers(400, size=size) for size in (1, 30, 100, 400, 400)]
    for method in METHODS:
        found = many_thresholds(method, table, draws, xi=xi, delta=0.1)
        one_by_one = [threshold(method, table.drawn(rows), xi=xi, delta=0.1) for rows in draws]
        assert found == one_by_one, method


def test_the_table_says_which_methods_violate(rows: list[dict[str, Any]]) -> None:
    lines = report.ablation(rows, "n")
    marked = [line for line in lines if "**violates**" in line]
    assert len(marked) == sum(row["exceeds_delta"] for row in rows)
    assert any("histogram binning" in line for line in marked)
    assert not any("ours, exact" in line for line in marked)


def test_in_every_committed_cell_the_certified_methods_keep_delta() -> None:
    tasks = json.loads(RESULTS.read_text(encoding="utf-8"))["tasks"]
    rows = [row for part in tasks.values() for row in part["ablation"] if row["guaranteed"]]
    assert {row["method"] for row in rows} == set(CERTIFIED)
    assert len(tasks["depth"]["ablation"]) == 13 * len(METHODS)
    assert not [row for row in rows if row["exceeds_delta"]]


class _Room:
    """What a glimpse needs of a room."""

    def __init__(self) -> None:
        self.moment, self.looks = 0, 0

    def look(self) -> dict[str, Any]:
        self.looks += 1
        return {"rgb": np.full(3, self.moment)}

    def digest(self) -> bytes:
        return bytes([self.moment])


def test_a_glimpse_is_drawn_once_and_not_before_it_is_looked_at() -> None:
    from experiments.safe_planning.camera_task import Glimpse

    room: Any = _Room()
    glimpse = Glimpse(room)
    assert room.looks == 0
    assert glimpse["rgb"].tolist() == [0, 0, 0]
    assert list(glimpse) == ["rgb"]
    assert len(glimpse) == room.looks == 1


def test_a_glimpse_that_nobody_looked_at_in_time_raises() -> None:
    from experiments.safe_planning.camera_task import Glimpse

    room: Any = _Room()
    late, in_time = Glimpse(room), Glimpse(room)
    copied: Any = deepcopy(in_time)
    room.moment += 1
    with pytest.raises(RuntimeError, match="moved on"):
        late["rgb"]
    assert in_time["rgb"].tolist() == [0, 0, 0]
    assert type(copied) is dict


def test_a_state_that_was_seen_before_is_answered_without_a_picture() -> None:
    from experiments.safe_planning.camera_task import Glimpse, Remembered

    room: Any = _Room()
    danger = Remembered(lambda seen: float(seen["rgb"][0]), most=2)
    answers = []
    for room.moment in (0, 1, 0, 1, 2, 0):
        answers.append(danger(Glimpse(room)))
    assert answers == [0, 1, 0, 1, 2, 0]
    assert room.looks == 4  # 0, 1, 2, and 0 again: two are remembered at most
    assert danger({"rgb": np.full(3, 7)}) == 7


def test_features_are_the_means_of_blocks() -> None:
    from experiments.safe_planning.sidewalk_task import features

    picture = np.zeros((60, 80, 3), dtype=np.uint8)
    picture[:4, 4:8, 1] = 255
    found = features(picture[None])[0].reshape(15, 20, 3)
    assert found[0, 1].tolist() == [-1, 1, -1]
    assert (found == -1).sum() == found.size - 1


def test_the_animation_moves_both_robots_for_as_many_steps_as_it_lasts() -> None:
    from experiments.safe_planning import animation

    from experiments.robot import Obstacle, Room

    box = Obstacle("box", 2.0, 1.0, 0.3, (0.5, 0.2, 0.3))
    room = Room(4.0, 3.0, (box,), start=(0.5, 1.0, 0.0), goal=(3.5, 1.0))
    way = [(0.5 + 0.1 * step, 1.0, 0.0) for step in range(8)]
    alone = animation.Trip(way, [0.1] * 8, -1, collided=True)
    shielded = animation.Trip(way[:5], [0.1] * 4 + [0.9], 4, collided=False)
    drawn = ET.fromstring(animation.svg(room, alone, shielded, 0.5))
    lists = [
        found.get("values", "").split(";")
        for found in drawn.iter()
        if found.tag.split("}")[1].startswith("animate")
    ]
    assert {len(values) for values in lists} == {8 + animation.PAUSE}
    colours = [values for values in lists if values[0] == animation.DRIVES]
    assert [values[-1] for values in colours] == [animation.UNSAFE, animation.BRAKES]


def test_the_pictures_show_the_first_step_the_last_one_and_that_of_the_shield() -> None:
    from experiments.safe_planning import pictures

    for fires in (1, 20, 31, 38):
        steps = pictures.steps_shown(40, fires)
        assert (steps[0], steps[-1]) == (0, 40)
        assert fires in steps
        assert len(steps) == pictures.SHOWN
    seen = [np.zeros((6, 9, 3), dtype=np.uint8)] * 41
    alone = pictures.Walk(seen, [0.01 * step for step in range(41)], -1, unsafe=True)
    shielded = pictures.Walk(seen[:34], alone.dangers[:34], 31, unsafe=False)
    titles = [ax.get_title() for ax in pictures.drawn(alone, shielded, 0.305, "A room").axes]
    assert "step 31: the shield fires" in titles
    assert "step 40: unsafe" in titles


class _Corridor:
    """One place after the other; the seventh is unsafe, and who stands still stays."""

    def reset(self, *, seed: int) -> tuple[Any, dict[str, Any]]:
        self.place = self.before = seed
        return np.full((2, 2, 3), self.place, dtype=np.uint8), {}

    def step(self, action: int) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        self.before, self.place = self.place, self.place + action
        return np.full((2, 2, 3), self.place, dtype=np.uint8), 0.0, False, False, {}

    def is_unsafe(self) -> bool:
        return self.place >= 7

    def is_stopped(self) -> bool:
        return self.before == self.place


def test_a_pictured_walk_ends_where_it_is_unsafe_or_where_the_shield_has_stopped_it() -> None:
    from experiments.safe_planning import pictures

    from pacbound.shield import Task

    task = Task(
        _Corridor,
        lambda _: 1,
        lambda _: 0,
        lambda picture: float(picture.max()) / 10,
        horizon=20,
        identity="a corridor",
    )
    alone = pictures.walked(task, _Corridor(), 0, np.inf)
    assert (len(alone.pictures), alone.unsafe, alone.fired_at) == (8, True, -1)
    shielded = pictures.walked(task, _Corridor(), 0, 0.45)
    assert (shielded.unsafe, shielded.fired_at) == (False, 5)
    assert shielded.dangers[:6] == alone.dangers[:6]


def test_all_cells_are_counted_once_and_their_tests_combined() -> None:
    record = json.loads(RESULTS.read_text(encoding="utf-8"))
    lines = report.together(record)
    cells = {
        (name, row["xi"], row["delta"], row["n"])
        for name, part in record["tasks"].items()
        for row in part["ablation"]
    }
    assert lines[0].startswith(f"All {len(cells)} cells")
    (ours,) = (line for line in lines if line.startswith("| ours, exact"))
    assert f"| 0 of {len(cells)} | nowhere |" in ours
    (means,) = (line for line in lines if line.startswith("| histogram binning"))
    assert "everywhere" in means
