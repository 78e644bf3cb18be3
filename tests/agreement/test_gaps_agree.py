"""Replacements, prediction sets, classes of which one counts and a single rate, with gaps in
answers, labels and grades: every engine counts what arrays give, and hands over counts alone.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from tests.agreement.conftest import FRAMES, SPARK, Engine

import pacbound
from pacbound import Tally
from pacbound.errors import InvalidValueError
from pacbound.tally import count

ROWS = 600
RNG = np.random.default_rng(4)
NAMES = np.array(["ant", "bee", "é cat"], dtype=object)
LABEL = RNG.integers(0, 3, ROWS)


def _with_gaps(values: Any, share: float) -> Any:
    found = np.array(values, dtype=object)
    found[RNG.random(ROWS) < share] = None
    return found


def _model(accuracy: float, gaps: float) -> Any:
    other = RNG.integers(0, 3, ROWS)
    return _with_gaps(NAMES[np.where(RNG.random(ROWS) < accuracy, LABEL, other)], gaps)


def _grades(gaps: float) -> Any:
    return np.where(RNG.random(ROWS) < gaps, np.nan, RNG.random(ROWS))


SURE = RNG.dirichlet([1, 1, 1], ROWS)
COLUMNS: dict[str, Any] = {
    "old": _model(0.8, 0.1),
    "new": _model(0.8, 0.1),
    "other": _model(0.6, 0.0),
    "y": _with_gaps(NAMES[LABEL], 0.3),
    "whole": NAMES[LABEL],
    "place": _with_gaps(LABEL, 0.1),
    "better": _with_gaps(np.array(["old", "new", "tie"])[RNG.integers(0, 3, ROWS)], 0.1),
    "q_old": _grades(0.1),
    "q_new": _grades(0.1),
    "q_other": _grades(0.0),
    "c": RNG.random(ROWS),
    "g": RNG.integers(0, 2, ROWS),
    "patient": RNG.integers(0, 80, ROWS),
    "id": np.array([f"r{number}" for number in range(ROWS)], dtype=object),
    "nobody": np.full(ROWS, None),
    "1": _model(0.7, 0.0),
    "2": _model(0.7, 0.0),
    "by number": np.where(RNG.random(ROWS) < 0.1, np.nan, RNG.integers(1, 3, ROWS)),
    "w": RNG.random(ROWS),
    **{str(name): SURE[:, place] for place, name in enumerate(NAMES)},
}
COLUMNS["ant"][::9] = np.nan
TABLE = pa.table(
    {
        name: pa.array(
            [None if one != one else one for one in values.tolist()],  # noqa: PLR0124 - NaN
            pa.string() if name == "nobody" else None,
        )
        for name, values in COLUMNS.items()
    }
)
IDS = {"row_ids": "id"}
CLUSTERS = {"clusters": "patient", **IDS, "seed": 0}
WEIGHTS = {"weights": "w", "weight_bound": 1, **IDS, "seed": 0}
PAIR = {"prediction": ["old", "new"], "label": "y"}
THREE = {"prediction": ["old", "new", "other"], "label": "y"}
ILL = {"score": "c", "positive": "whole", "positive_class": "bee"}
SETS = {"probability": [*map(str, NAMES)]}
CASES: dict[str, tuple[str, dict[str, Any]]] = {
    "one candidate": ("replacement", PAIR),
    "two candidates": ("replacement", {**THREE, "groups": "g"}),
    "no label": ("replacement", {"prediction": ["old", "new"]}),
    "by clusters": ("replacement", {**PAIR, **CLUSTERS}),
    "by weights": ("replacement", {**THREE, **WEIGHTS}),
    "grades": ("replacement", {"quality": ["q_old", "q_new", "q_other"]}),
    "grades and answers": (
        "replacement",
        {"prediction": ["old", "new"], "quality": ["q_old", "q_new"], **CLUSTERS},
    ),
    "one grade": ("replacement", {"quality": ["q_new"], "quality_scale": (0, 1)}),
    "preferred": (
        "replacement",
        {"prediction": ["old", "new"], "preferred": "better", "groups": "g"},
    ),
    "preferred by number": (
        "replacement",
        {"prediction": ["1", "2"], "preferred": "by number"},
    ),
    "nothing preferred": (
        "replacement",
        {"prediction": ["old", "new"], "preferred": "nobody"},
    ),
    "one says nothing": ("replacement", {"prediction": ["old", "nobody"], "label": "y"}),
    "nothing labelled": ("replacement", {"prediction": ["old", "new"], "label": "nobody"}),
    "a class": ("recall", {**ILL, "groups": "g"}),
    "a class by clusters": ("recall", {**ILL, **CLUSTERS, "cluster_bound": 30}),
    "a class by weights": ("recall", {**ILL, **WEIGHTS}),
    "a class as a number": (
        "calibration",
        {"confidence": "c", "correct": "g", "positive_class": "1"},
    ),
    "one rate": ("calibration", {"correct": "g", "n_bins": 1, "groups": "whole"}),
    "one rate by clusters": (
        "calibration",
        {"prediction": "other", "label": "whole", "n_bins": 1, **CLUSTERS},
    ),
    "sets": ("sets", {**SETS, "label": "y", "groups": "g"}),
    "sets by places": ("sets", {**SETS, "label": "place"}),
    "sets without labels": ("sets", {**SETS, "label": "nobody"}),
    "sets by clusters": ("sets", {**SETS, "label": "y", **CLUSTERS}),
}


def _from_arrays(question: str, asked: dict[str, Any]) -> Tally:
    def array(role: str, named: Any) -> Any:
        if role == "probability":
            import pandas as pd

            return pd.DataFrame({name: COLUMNS[name] for name in named})
        if isinstance(named, list):
            return np.column_stack([COLUMNS[name] for name in named])
        if named == "by number":
            # Arrays of predictions have no names: the models are the old one and the new one.
            return np.array([{1: "old", 2: "new"}.get(one) for one in COLUMNS[named]], object)
        taken = role != "positive_class" and isinstance(named, str)
        return COLUMNS[named] if taken else named

    given = {role: array(role, named) for role, named in asked.items()}
    return Tally.count(question, **given)


def _counts(tally: Tally) -> Any:
    """All that a tally has, but for the names of its sources."""
    held = tally.to_dict()
    return {name: value for name, value in held.items() if name not in ("sources", "digest")}


@pytest.mark.parametrize("name", CASES)
def test_every_engine_counts_what_arrays_give(table: Engine, name: str) -> None:
    question, asked = CASES[name]
    found = Tally.count(question, data=table(TABLE), **asked)
    assert _counts(found) == _counts(_from_arrays(question, asked))


@pytest.mark.parametrize("engine", ["polars-lazy", "duckdb", SPARK])
def test_nothing_but_counts_leaves_a_lazy_engine(
    engine: str, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(*_: Any) -> Any:
        raise AssertionError("Rows were judged outside of their engine.")

    monkeypatch.setattr(count, "_ask_in_blocks", refused)
    monkeypatch.setattr(count, "_ask_arrays", refused)
    made = FRAMES.get(engine) or request.getfixturevalue("spark").createDataFrame
    rows = made(TABLE)
    for name, (question, asked) in CASES.items():
        assert Tally.count(question, data=rows, **asked).rows > 0, name


def test_a_class_that_is_missing_or_nowhere_is_refused_by_every_engine(table: Engine) -> None:
    rows = table(TABLE)
    asked: dict[str, Any] = {"target": 0.5, "delta": 0.1, "data": rows}
    with pytest.raises(InvalidValueError, match=r"missing .*every row needs its class"):
        pacbound.certify_recall("c", "y", positive_class="bee", **asked)
    with pytest.raises(InvalidValueError, match="is in no row of whole, which holds 'ant', 'bee'"):
        pacbound.certify_recall("c", "whole", positive_class="wasp", **asked)


@pytest.mark.parametrize(
    ("column", "value", "asked", "said"),
    [
        ("q_new", np.nextafter(5.0, 6.0), CASES["grades"][1], "grades from -5 to 5"),
        ("better", "neither", CASES["preferred"][1], "'neither' .1 such"),
    ],
)
def test_a_grade_that_cannot_be_is_refused_by_every_engine(
    table: Engine, column: str, value: Any, asked: dict[str, Any], said: str
) -> None:
    """Also one a little above the best, whose quality would be rounded to 1."""
    values = [value, *TABLE[column].to_pylist()[1:]]
    changed = TABLE.set_column(TABLE.column_names.index(column), column, pa.array(values))
    scale: dict[str, Any] = {"quality_scale": (-5, 5)} if "quality" in asked else {}
    if scale:
        for name in asked["quality"]:
            grades = [None if one is None else 1 + 3 * one for one in TABLE[name].to_pylist()]
            if name == column:
                grades[0] = value
            changed = changed.set_column(
                changed.column_names.index(name), name, pa.array(grades, pa.float64())
            )
    with pytest.raises(InvalidValueError, match=said):
        Tally.count("replacement", data=table(changed), **asked, **scale)
