"""Labels that came back are joined inside Spark as they are to arrays, and refused alike."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pytest
from tests.products import standing_for

from pacbound import (
    Monitor,
    Tally,
    answer_batch,
    calibrate,
    design_cascade,
    rows_to_label,
)
from pacbound.errors import InvalidTypeError, InvalidValueError

pytestmark = pytest.mark.long

N = 400
RNG = np.random.default_rng(0)
LABEL = RNG.integers(0, 3, N)
FAST = np.where(RNG.random(N) < 0.8, LABEL, (LABEL + 1) % 3)
SLOW = np.where(RNG.random(N) < 0.9, LABEL, (LABEL + 2) % 3)
TABLE = pa.table(
    {
        "c": RNG.random(N),
        "fast": FAST,
        "slow": SLOW,
        "patient": RNG.integers(0, 50, N),
        "id": [f"r{n}" for n in range(N)],
        "pac_id": np.arange(N),
    }
)
CHOSEN = RNG.choice(N, 120, replace=False)
SOME = pa.table(
    {
        "pac_id": CHOSEN,
        "y": LABEL[CHOSEN],
        "fast": FAST[CHOSEN],
        "c": TABLE["c"].to_numpy()[CHOSEN],
    }
)
ALL = pa.table({"pac_id": np.arange(N)[::-1], "right": (FAST == LABEL)[::-1]})
GRADES = pa.table({"pac_id": np.arange(N), "grade": RNG.random(N)})
CASCADE: dict[str, Any] = {"confidence": ["c"], "prediction": ["fast", "slow"], "label": "y"}
RIGHT: dict[str, Any] = {"confidence": "c", "correct": "right"}
JOINS: dict[str, tuple[str, Any, dict[str, Any]]] = {
    "some": ("cascade", SOME, CASCADE),
    "all": ("calibration", ALL, RIGHT),
    "drawn": ("calibration", ALL, {**RIGHT, "clusters": "patient", "row_ids": "id", "seed": 3}),
    "graded": ("calibration", GRADES, {"confidence": "c", "quality": "grade"}),
}


# Where answers come from says nothing about what is asked of the rows.
STAYS = [*((case, True) for case in JOINS), ("some", False), ("all", False)]


@pytest.mark.parametrize(
    ("case", "stays"), standing_for([(c, s) for c in JOINS for s in (True, False)], STAYS)
)
def test_labels_are_those_that_arrays_get(spark: Any, case: str, stays: bool) -> None:
    question, answers, named = JOINS[case]
    expected = Tally.count(question, data=pl.DataFrame(TABLE), answers=answers, **named)
    came = spark.createDataFrame(answers) if stays else answers
    found = Tally.count(question, data=spark.createDataFrame(TABLE), answers=came, **named)
    assert found == expected
    assert found.matches == expected.matches


def test_answers_of_another_type_than_the_labels_of_the_frame_are_joined_outside(
    spark: Any,
) -> None:
    empty = TABLE.append_column("y", pa.nulls(N, pa.float64()))
    expected = Tally.count("cascade", data=pl.DataFrame(empty), answers=SOME, **CASCADE)
    for came in (SOME, spark.createDataFrame(SOME)):
        frame = spark.createDataFrame(empty)
        assert Tally.count("cascade", data=frame, answers=came, **CASCADE) == expected


def _with(table: Any, name: str, values: Any) -> Any:
    if name not in table.column_names:
        return table.append_column(name, pa.array(values))
    return table.set_column(table.column_names.index(name), name, pa.array(values))


REFUSED: dict[str, tuple[Any, Any, str]] = {
    "answered twice": (
        TABLE,
        pa.concat_tables([SOME, _with(SOME.slice(0, 1), "y", [(int(LABEL[CHOSEN[0]]) + 1) % 3])]),
        r"answers row \d+ twice",
    ),
    "another table": (
        TABLE,
        _with(SOME, "pac_id", [5000, *CHOSEN[1:].tolist()]),
        r"answers row 5000 \(1 such answers\), which is not in",
    ),
    "another score": (TABLE, _with(SOME, "c", RNG.random(120)), r"has another 'c' than .*120 such"),
    "another answer": (TABLE, _with(SOME, "fast", (FAST[CHOSEN] + 1) % 3), "has another 'fast'"),
    "a row twice": (
        pa.concat_tables([TABLE, TABLE.slice(int(CHOSEN[0]), 1)]),
        SOME,
        "stands there twice",
    ),
    "another label": (
        _with(TABLE, "y", (LABEL + 1) % 3),
        SOME,
        r"says another label than .*120 such rows",
    ),
    "no number": (
        TABLE,
        _with(SOME, "pac_id", [-1, *CHOSEN[1:].tolist()]),
        "is not the id of a row",
    ),
    "text": (TABLE, _with(SOME, "y", LABEL[CHOSEN].astype(str)), "no class in common"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_wrong_with_labels_is_refused_alike(spark: Any, case: str) -> None:
    table, answers, said = REFUSED[case]
    engines = (
        (pl.DataFrame(table), answers),
        (spark.createDataFrame(table), spark.createDataFrame(answers)),
    )
    for rows, came in engines:
        with pytest.raises(InvalidValueError, match=said):
            Tally.count("cascade", data=rows, answers=came, **CASCADE)


def test_every_row_needs_an_answer_where_labels_may_not_be_missing(spark: Any) -> None:
    few = spark.createDataFrame(ALL.slice(3))
    with pytest.raises(InvalidValueError, match=r"has no answer in .*3 such rows"):
        Tally.count("calibration", data=spark.createDataFrame(TABLE), answers=few, **RIGHT)
    unnumbered = spark.createDataFrame(TABLE).drop("pac_id")
    with pytest.raises(InvalidValueError, match="give it a column pac_id"):
        Tally.count("calibration", data=unnumbered, answers=ALL, **RIGHT)


def test_what_needs_arrays_says_what_to_collect(spark: Any) -> None:
    frame = spark.createDataFrame(TABLE)
    with pytest.raises(InvalidTypeError, match=r"Column of Spark.*collect it"):
        calibrate(frame["c"], frame["fast"], delta=0.1)
    with pytest.raises(InvalidTypeError, match=r"Column of Spark.*collect it"):
        answer_batch(frame["c"], frame["fast"], lambda rows: rows, xi=0.1, delta=0.1, answers=None)
    named: Any = (["c", "c"], ["fast", "slow"], "y")
    with pytest.raises(InvalidTypeError, match="collect the columns that it needs"):
        design_cascade(*named, data=frame, costs=[1, 5], xi=0.1, delta=0.1)
    with pytest.raises(InvalidValueError, match="rows are asked for by their place"):
        rows_to_label(["c"], ["fast", "slow"], data=frame, xi=0.1, delta=0.1)
    monitor = Monitor(calibrate([0.5] * 9, [True] * 9, delta=0.1), delta=0.01)
    with pytest.raises(InvalidValueError, match=r"no order.* sort them .* pass the columns as arr"):
        monitor.update(frame, columns={"confidence": "c", "correct": "fast"})
