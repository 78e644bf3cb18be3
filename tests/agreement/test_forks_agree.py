"""Forks in an engine that puts the rows of a rollout beside each other: the counts of the arrays,
and the same refusals.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from tests.agreement.conftest import FRAMES, SPARK

from pacbound import Tally
from pacbound.errors import InvalidValueError
from pacbound.tally.classes import ClassRule, Evidence
from pacbound.tally.count import Counting
from pacbound.tally.frames.engine_rows import EngineRows
from pacbound.tally.questions.forked_rollouts import FORKS, NEVER

COLUMNS = {"rollout": "seed", "lowest": "low", "highest": "high", "unsafe": "crashed"}


def _rows(groups: bool = False) -> dict[str, Any]:
    """Rollouts of one to four intervals, in any order."""
    rng, rows = np.random.default_rng(5), []
    for rollout in range(60):
        ends = np.sort(rng.choice(np.arange(1, NEVER), rng.integers(0, 4), replace=False))
        for low, high in zip([0, *ends], [*(ends - 1), NEVER], strict=True):
            rows.append((rollout, low, high, bool(rng.random() < 0.3), f"room {rollout % 3}"))
    rng.shuffle(rows)
    names = [*COLUMNS.values(), "room"]
    found = {
        name: list(values) for name, values in zip(names, zip(*rows, strict=True), strict=True)
    }
    return found if groups else {name: found[name] for name in COLUMNS.values()}


@pytest.fixture(params=["polars-lazy", "duckdb", SPARK])
def made(request: pytest.FixtureRequest) -> Any:
    """A function that hands a table over to a lazy engine."""
    if request.param == "pyspark":
        return request.getfixturevalue("spark").createDataFrame
    return FRAMES[request.param]


def _inside(native: Any, **groups: str) -> Any:
    question = FORKS.of_columns(**COLUMNS, **groups)
    counting = Counting(question)
    rows = EngineRows(native, question.slots, ClassRule())
    counting.add(question.judge_inside(rows, Evidence()))
    return counting.result(["inside"])


@pytest.mark.parametrize("grouped", [False, True])
def test_an_engine_counts_the_turns_that_arrays_give(made: Any, grouped: bool) -> None:
    table = _rows(groups=True)
    groups = {"groups": "room"} if grouped else {}
    found = _inside(made(pa.table(table)), **groups)
    arrays = {role: table[name] for role, name in {**COLUMNS, **groups}.items()}
    expected = Tally.count("forks", **arrays)
    assert found.rows == expected.rows == 60
    assert found.groups == expected.groups
    assert np.array_equal(found.cells, expected.cells)
    assert np.array_equal(found.counts, expected.counts)


WRONG = {
    "no such threshold": ("low", 70_000, "70000.* expected the number of a threshold"),
    "falls": ("high", -1, "-1.* expected the number of a threshold"),
    "starts": ("low", 5, "Rollout 0 has no row for the thresholds below 5 .1 such rows"),
    "gap": ("high", 7, "Rollout 0 has no row for the thresholds from 8 on"),
    "group": ("room", "another", "Rollout 0 has the groups"),
    "no name": ("seed", None, "missing"),
    "NaN for a name": ("seed", np.nan, "missing"),
    "-inf for a name": ("seed", -np.inf, "missing|inf"),
}


@pytest.mark.parametrize("case", WRONG)
def test_an_engine_refuses_what_arrays_refuse(made: Any, case: str) -> None:
    column, value, said = WRONG[case]
    table = _rows(groups=True)
    rows = [
        n
        for n, (seed, low) in enumerate(zip(table["seed"], table["low"], strict=True))
        if seed == 0 and low == 0
    ]
    table[column][rows[0]] = value
    with pytest.raises(InvalidValueError, match=said):
        _inside(made(pa.table(table)), groups="room")
    arrays = {role: table[name] for role, name in {**COLUMNS, "groups": "room"}.items()}
    with pytest.raises(InvalidValueError, match=said):
        Tally.count("forks", **arrays)
