"""The shipped rollouts keep their promises, and what is written about them and about the shield is
what was measured."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from pacbound.data import IndoorNavigationRollouts, indoor_navigation

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def table() -> IndoorNavigationRollouts:
    return indoor_navigation()


def recorded(name: str) -> dict[str, Any]:
    path = ROOT / "experiments" / "results" / name
    if not path.exists():
        pytest.skip("the source distribution carries no experiments")
    document: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return document


def test_every_seed_from_the_first_on_has_one_row(table: IndoorNavigationRollouts) -> None:
    assert table.seed.tolist() == list(range(4_000_000, 4_020_000))


def test_the_record_of_the_collection_is_that_of_the_table(
    table: IndoorNavigationRollouts,
) -> None:
    record = recorded("shield_rollouts.json")
    assert record["rollouts"] == len(table.seed)
    assert record["unsafe"] == int(table.unsafe.sum())
    assert record["reached_the_goal_safely"] == int((table.success & ~table.unsafe).sum())
    assert record["steps"] == int(table.steps.sum())


def test_the_documentation_shows_the_rates_that_were_measured() -> None:
    include = '--8<-- "experiments/results/safe_planning.md:depth-drives"'
    page = ROOT / "docs" / "results" / "safe-planning.md"
    assert include in page.read_text(encoding="utf-8")
    table = (ROOT / "experiments" / "results" / "safe_planning.md").read_text(encoding="utf-8")
    record = recorded("shield.json")
    for row in record["results"]:
        safe, success = (
            (row["rollouts"] - row["unsafe"]) / row["rollouts"],
            row["success"] / row["rollouts"],
        )
        assert f"| {safe:.1%} | {success:.1%} | {row['p_value']:.3g} |" in table
    alone = record["policy_alone"]
    collide, arrive = (alone[key] / alone["rollouts"] for key in ("unsafe", "success"))
    assert f"Without a shield {collide:.1%} are unsafe and {arrive:.1%} reach the goal" in table
