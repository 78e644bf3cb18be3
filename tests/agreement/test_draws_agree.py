"""The same rows are drawn by every engine, in whatever order and parts they come."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet
from tests.products import standing_for
from tests.tally.question_names import question_of

from pacbound import Tally
from pacbound.errors import InvalidTypeError, InvalidValueError
from pacbound.tally.draws import digest_of_names
from pacbound.tally.frames.counting import collected
from pacbound.tally.frames.keyed_rows import Hashed, names_seen, with_hashes, with_numbers
from pacbound.tally.frames.opening import open_frame
from pacbound.tally.keyed_numbers import keyed_numbers

Engine = Callable[[Any], Any]

ROWS = 400
RNG = np.random.default_rng(0)
GRADES = np.random.default_rng(1)
PATIENT = RNG.integers(0, 60, size=ROWS)
LABEL = RNG.integers(0, 3, size=ROWS)
FAST = np.where(RNG.random(ROWS) < 0.8, LABEL, (LABEL + 1) % 3)
SLOW = np.where(RNG.random(ROWS) < 0.9, LABEL, (LABEL + 2) % 3)
TABLE = pa.table(
    {
        "c": RNG.uniform(size=ROWS),
        "ok": RNG.random(ROWS) < 0.7,
        "fast": FAST,
        "slow": SLOW,
        "y": pa.array(LABEL, mask=FAST == SLOW),
        "u": RNG.random(ROWS) < 0.2,
        "site": np.where(PATIENT % 2, "é north", "south"),
        "patient": [f"p{number:03}" for number in PATIENT],
        "number": PATIENT,
        "w": RNG.uniform(0, 3, size=ROWS),
        "row": [f"r{number}" for number in range(ROWS)],
        "at": np.arange(ROWS),
        "grade": GRADES.integers(1, 6, size=ROWS),
        "q_fast": pa.array(GRADES.random(ROWS), mask=GRADES.random(ROWS) < 0.1),
        "q_slow": pa.array(GRADES.random(ROWS), mask=GRADES.random(ROWS) < 0.1),
    }
)

QUESTIONS: dict[str, dict[str, Any]] = {
    "calibration": {"confidence": "c", "correct": "ok", "groups": "site"},
    "classes": {"confidence": "c", "prediction": "fast", "label": "slow"},
    "cascade": {"confidence": ["c"], "prediction": ["fast", "slow"], "label": "y"},
    "shield": {"score": "c", "unsafe": "u"},
    "recall": {"score": "c", "positive": "u", "groups": "site"},
    "graded": {"confidence": "c", "quality": "grade", "quality_scale": (1, 5)},
    "graded cascade": {
        "confidence": ["c"],
        "prediction": ["fast", "slow"],
        "quality": ["q_fast", "q_slow"],
    },
}
DRAWS: dict[str, dict[str, Any]] = {
    "clusters": {"clusters": "patient", "row_ids": "row", "seed": 0},
    "clusters per row": {"clusters": "number", "row_ids": "at", "cluster_bound": 30, "seed": 3},
    "weights": {"weights": "w", "row_ids": "row", "weight_bound": 3.0, "seed": 0},
    "weights by number": {"weights": "w", "row_ids": "at", "weight_bound": 4, "seed": 5},
}


def _arrays(named: dict[str, Any], table: Any = TABLE) -> dict[str, Any]:
    def column(name: str) -> Any:
        return table[name].to_pylist() if name == "y" else table[name].to_numpy()

    return {
        role: (
            np.column_stack([column(one) for one in name])
            if isinstance(name, list)
            else column(name)
            if isinstance(name, str)
            else name
        )
        for role, name in named.items()
    }


def _counted(data: Any, named: dict[str, Any]) -> Tally:
    return Tally.count(question_of(named), data=data, **named)


@pytest.mark.parametrize("question", QUESTIONS)
@pytest.mark.parametrize("draw", standing_for(DRAWS, ["clusters per row", "weights"]))
def test_every_engine_draws_the_rows_that_arrays_give(
    table: Engine, question: str, draw: str
) -> None:
    named = {**QUESTIONS[question], **DRAWS[draw]}
    expected = Tally.count(question_of(named), **_arrays(named))
    assert 0 < expected.rows < ROWS
    shuffled = TABLE.take(np.random.default_rng(1).permutation(ROWS))
    counted = _counted(table(shuffled), named)
    assert counted == expected
    assert counted.drawn is not None
    assert expected.drawn is not None
    assert counted.drawn.digests() == expected.drawn.digests()


IN_GROUPS: dict[str, dict[str, Any]] = {
    "bins": {"confidence": "c", "correct": "ok", "n_bins": 7},
    "bins of groups": {
        "confidence": "c",
        "correct": "ok",
        "groups": "scanner",
        "n_bins": 3,
    },
    "among positives": {"score": "c", "positive": "u", "groups": "scanner"},
}


@pytest.mark.parametrize("question", IN_GROUPS)
def test_every_engine_draws_a_row_of_each_cluster_for_each_group_and_bin(
    table: Engine, question: str
) -> None:
    scanner = np.random.default_rng(2).integers(0, 3, size=ROWS)
    rows = TABLE.append_column("scanner", pa.array(scanner))
    named = {**IN_GROUPS[question], "clusters": "patient", "row_ids": "row", "seed": 5}
    expected = Tally.count(question_of(named), **_arrays(named, rows))
    shuffled = rows.take(np.random.default_rng(1).permutation(ROWS))
    counted = _counted(table(shuffled), named)
    assert counted == expected
    assert counted.drawn is not None
    assert counted.drawn.each != "cluster"
    assert (counted.drawn.spanning or 0) > 0 or question == "bins"


@pytest.mark.parametrize("question", QUESTIONS)
def test_every_engine_takes_row_ids_alone_and_names_one_that_is_there_twice(
    table: Engine, question: str
) -> None:
    named = {**QUESTIONS[question], "row_ids": "row"}
    expected = Tally.count(question_of(named), **_arrays(named))
    counted = _counted(table(TABLE), named)
    assert counted == expected
    assert np.array_equal(np.asarray(counted.ids), np.asarray(expected.ids))
    doubled = pa.concat_tables([TABLE, TABLE.slice(7, 1), TABLE.slice(7, 1)])
    with pytest.raises(InvalidValueError, match=r"row holds 'r7' 3 times.*1 such"):
        _counted(table(doubled), named)


# Astral and combining characters, quotes, half a flag, NUL, nothing, more than a block of a hash.
AWKWARD = [
    "",
    " ",
    "\0",
    "a\0b",
    "a\0",
    "é",
    "e\u0301",
    "\U0001d518",
    "\U0001f469\u200d\U0001f467",
    "\U0001f1e9",
    "\U0010ffff",
    "\uffff",
    "\u202eabc",
    "'",
    '"',
    "\\",
    "\n",
    "\u0663",
    "7",
    "7.0",
    "NA",
    "ß",
    "ẞ",
    "x" * 55,
    "x" * 56,
    "x" * 64,
    "ü" * 100_000,
]
NAMES = 1_000_000


@pytest.mark.parametrize(
    ("frame", "many"),
    [
        ("polars-lazy", NAMES // 20),
        ("duckdb", NAMES // 20),
        pytest.param("duckdb", NAMES, marks=pytest.mark.long),
        pytest.param("pyspark", NAMES // 10, marks=pytest.mark.long),
        pytest.param("pyspark", NAMES, marks=pytest.mark.product),
    ],
    indirect=["frame"],
)
def test_every_engine_hashes_a_million_names_as_python_does(frame: Engine, many: int) -> None:
    short = AWKWARD[:-1]
    names = AWKWARD + [f"{short[n % len(short)]}{n}" for n in range(many - len(AWKWARD))]
    opened = open_frame(frame(pa.table({"name": names})), ["name"])
    keyed = with_hashes(opened, {"pac_draw_hash": Hashed(5, "row", "name")})
    expected = keyed_numbers(5, "row", names, each=2)
    seen = names_seen(keyed, [])
    assert np.array_equal(np.asarray(seen.numbers), np.sort(expected[:, 0]))
    assert seen.digest == digest_of_names(np.sort(expected[:, 0]))
    few = [*AWKWARD, *names[-1000:]]
    opened = open_frame(frame(pa.table({"name": few, "at": range(len(few))})), ["name", "at"])
    keyed = with_hashes(opened, {"hash": Hashed(5, "row", "name")})
    halves = {f"half_{place}": 8 * place for place in range(4)}
    found = collected(with_numbers(keyed, "hash", halves), in_order=True)
    order = np.argsort(found["at"].astype(np.int64))
    parts = [
        found[f"half_{place}"].astype(np.float64).astype(np.uint64)[order] for place in range(4)
    ]
    numbers = np.stack([(parts[i] << np.uint64(32)) + parts[i + 1] for i in (0, 2)], axis=1)
    assert np.array_equal(numbers, keyed_numbers(5, "row", few, each=2))


@pytest.mark.parametrize("engine", ["duckdb", "polars"])
@pytest.mark.parametrize(
    "by", [{"clusters": "patient", "seed": 0}, {"weights": "w", "weight_bound": 3, "seed": 0}]
)
def test_a_cluster_may_be_spread_over_files(
    tmp_path: Path, engine: Any, by: dict[str, Any]
) -> None:
    for part, start in enumerate(range(0, ROWS, 150)):
        parquet.write_table(TABLE.slice(start, 150), tmp_path / f"part{part}.parquet")
    named = {**QUESTIONS["cascade"], **by}
    assert Tally.count(question_of(named), data=tmp_path, **named, engine=engine) == Tally.count(
        question_of(named), **_arrays(named)
    )


@pytest.mark.parametrize("column", ["patient", "number"])
def test_a_missing_cluster_is_refused_by_every_engine(table: Engine, column: str) -> None:
    values = TABLE[column].to_pylist()
    broken = TABLE.set_column(
        TABLE.column_names.index(column), column, pa.array([None, *values[1:]], TABLE[column].type)
    )
    named = {**QUESTIONS["shield"], "clusters": column, "row_ids": "row"}
    with pytest.raises((InvalidValueError, InvalidTypeError)):
        _counted(table(broken), named)


@pytest.mark.parametrize("value", [None, -0.5, 3.5, float("nan"), float("inf")])
def test_a_weight_that_is_none_is_refused_by_every_engine(table: Engine, value: Any) -> None:
    weights = pa.array([*TABLE["w"].to_pylist()[1:], value], pa.float64())
    broken = TABLE.set_column(TABLE.column_names.index("w"), "w", weights)
    named = {**QUESTIONS["shield"], "weights": "w", "weight_bound": 3, "row_ids": "row"}
    with pytest.raises((InvalidValueError, InvalidTypeError)):
        _counted(table(broken), named)
