"""Every source agrees with every other on when two values name the same class.

A pair is a prediction and a label. Alone in their columns they are the same class, and right in
every row, or they are refused: never counted as wrong without a word. Files of text carry no types,
so what the same digits mean there is a verdict of its own.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Callable
from math import inf, nan
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from pyarrow import feather, parquet
from tests.tally.question_names import question_of

from pacbound import Tally
from pacbound.errors import InvalidTypeError, InvalidValueError

SAME, LOST, REFUSED = "same", "lost", "refused"

# Prediction, label, the verdict where columns have types, and where they are text.
PAIRS: list[tuple[Any, Any, str, str]] = [
    (1, 1, SAME, SAME),
    (-1, -1, SAME, SAME),
    (True, True, SAME, SAME),
    (True, 1, SAME, SAME),
    (1, True, SAME, SAME),
    (False, 0, SAME, SAME),
    (1, 1.0, SAME, SAME),
    (1.0, True, SAME, SAME),
    (0, -0.0, SAME, SAME),
    (-3, -3.0, SAME, SAME),
    (2**53 - 1, float(2**53 - 1), SAME, SAME),
    (2**62 + 1, 2**62 + 1, SAME, SAME),
    ("a", "a", SAME, SAME),
    ("é", "é", SAME, SAME),
    ("x y", "x y", SAME, SAME),
    ("a,b", "a,b", SAME, SAME),
    ('a"b', 'a"b', SAME, SAME),
    (" a", " a", SAME, SAME),
    ("true", "true", SAME, SAME),
    ("1", "1", SAME, SAME),
    ("1.0", "1.0", SAME, SAME),
    ("007", "007", SAME, SAME),
    ("-", "-", SAME, SAME),
    ("😀", "😀", SAME, SAME),
    ("nano", "nano", SAME, SAME),
    (1, 2, REFUSED, REFUSED),
    (1, -1, REFUSED, REFUSED),
    (True, 0, REFUSED, REFUSED),
    (2**53 + 1, 2**53, REFUSED, REFUSED),
    ("cat", "dog", REFUSED, REFUSED),
    ("DE", "de", REFUSED, REFUSED),
    ("01", "1", REFUSED, REFUSED),
    ("+1", "1", REFUSED, REFUSED),
    (1, "01", REFUSED, REFUSED),
    (1, "+1", REFUSED, REFUSED),
    (" 1", "1", REFUSED, REFUSED),
    (" a", "a", REFUSED, REFUSED),
    ("a ", "a", REFUSED, REFUSED),
    ("a\u00a0", "a", REFUSED, REFUSED),
    ("\u00e9", "e\u0301", REFUSED, REFUSED),
    ("a", "\u0430", REFUSED, REFUSED),
    ("ß", "ss", REFUSED, REFUSED),
    ("1_0", "10", REFUSED, REFUSED),
    ("0x1", "1", REFUSED, REFUSED),
    (1, "one", REFUSED, REFUSED),
    ("1", "one", REFUSED, REFUSED),
    (True, "yes", REFUSED, REFUSED),
    ("['a']", "a", REFUSED, REFUSED),
    ('["a"]', "a", REFUSED, REFUSED),
    (1.5, 1.5, REFUSED, REFUSED),
    (1.5, 1, REFUSED, REFUSED),
    (inf, inf, REFUSED, REFUSED),
    (-inf, -inf, REFUSED, REFUSED),
    (2.0**53, 2.0**53, REFUSED, REFUSED),
    (1e300, 1e300, REFUSED, REFUSED),
    (nan, nan, REFUSED, REFUSED),
    (nan, 1.0, REFUSED, REFUSED),
    (1.0, nan, REFUSED, REFUSED),
    (None, "a", REFUSED, REFUSED),
    ("a", None, REFUSED, REFUSED),
    ("", "a", REFUSED, REFUSED),
    ("a", "", REFUSED, REFUSED),
    ("", "", REFUSED, REFUSED),
    ("  ", "  ", REFUSED, REFUSED),
    ("NA", "NA", REFUSED, REFUSED),
    ("a", "NA", REFUSED, REFUSED),
    ("nan", "nan", REFUSED, REFUSED),
    ("NaN", "NaN", REFUSED, REFUSED),
    ("None", "None", REFUSED, REFUSED),
    ("null", "null", REFUSED, REFUSED),
    ("?", "?", REFUSED, REFUSED),
    ("N/A", "N/A", REFUSED, REFUSED),
    ("<NA>", "<NA>", REFUSED, REFUSED),
    # What text cannot tell apart, and what it reads as a number.
    (1, "1", REFUSED, SAME),
    ("1", 1, REFUSED, SAME),
    (True, "True", REFUSED, SAME),
    (1, "1.", REFUSED, SAME),
    ("True", "true", REFUSED, SAME),
    ("1e0", "1", REFUSED, SAME),
    ("1.5", "1.5", SAME, REFUSED),
    ("inf", "inf", SAME, REFUSED),
]
ROWS = 3
CALIBRATION: dict[str, Any] = {"confidence": "c", "prediction": "p", "label": "y"}
CASCADE: dict[str, Any] = {"confidence": ["c"], "prediction": ["p", "q"], "label": "y"}


def _columns(prediction: Any, label: Any) -> dict[str, list[Any]]:
    # The slow model is another name for the label, so that a cascade needs it in every row.
    return {"c": [0.5] * ROWS, "p": [prediction] * ROWS, "q": [label] * ROWS, "y": [label] * ROWS}


def _arrow(columns: dict[str, list[Any]]) -> Any:
    return pa.table(columns)


def _written(write: Callable[[dict[str, list[Any]], Path], None], ending: str) -> Any:
    def count(columns: dict[str, list[Any]], folder: Path, named: dict[str, Any]) -> Tally:
        path = folder / f"rows.{ending}"
        write(columns, path)
        return Tally.count(question_of(named), data=path, **named)

    return count


def _framed(hand_over: Callable[[Any], Any]) -> Any:
    def count(columns: dict[str, list[Any]], _: Path, named: dict[str, Any]) -> Tally:
        return Tally.count(question_of(named), data=hand_over(_arrow(columns)), **named)

    return count


def _of_arrays(columns: dict[str, list[Any]], _: Path, named: dict[str, Any]) -> Tally:
    if isinstance(named.get("prediction"), list):
        both = list(zip(columns["p"], columns["q"], strict=True))
        return Tally.count("cascade", confidence=columns["c"], prediction=both, label=columns["y"])
    return Tally.count(
        "calibration", confidence=columns["c"], prediction=columns["p"], label=columns["y"]
    )


def _write_csv(columns: dict[str, list[Any]], path: Path) -> None:
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(columns)
        writer.writerows(zip(*columns.values(), strict=True))


def _write_lines(columns: dict[str, list[Any]], path: Path) -> None:
    rows = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
    # NaN and infinities are not JSON; they are written as the text that other writers give them.
    plain = [
        {name: str(v) if isinstance(v, float) and v - v != 0 else v for name, v in row.items()}
        for row in rows
    ]
    path.write_text("\n".join(map(json.dumps, plain)))


def _write_npz(columns: dict[str, list[Any]], path: Path) -> None:
    # NumPy has no missing value for text; where there is one, it is NaN.
    arrays: dict[str, Any] = {
        name: np.array([nan if value is None else value for value in values])
        for name, values in columns.items()
    }
    np.savez(path, **arrays)


TYPED: dict[str, Any] = {
    "arrays": _of_arrays,
    "pandas": _framed(lambda table: table.to_pandas()),
    "pandas-pyarrow": _framed(lambda table: table.to_pandas(types_mapper=pd.ArrowDtype)),
    "polars": _framed(pl.from_arrow),
    "polars-lazy": _framed(lambda table: pl.DataFrame(table).lazy()),
    "pyarrow": _framed(lambda table: table),
    "duckdb": _framed(duckdb.from_arrow),
    "parquet": _written(
        lambda columns, path: parquet.write_table(_arrow(columns), path), "parquet"
    ),
    "feather": _written(
        lambda columns, path: feather.write_feather(_arrow(columns), path), "feather"
    ),
    "npz": _written(_write_npz, "npz"),
}
TEXT: dict[str, Any] = {
    "csv": _written(_write_csv, "csv"),
    "jsonl": _written(_write_lines, "jsonl"),
}


def _verdict(count: Any, columns: dict[str, list[Any]], folder: Path, named: dict[str, Any]) -> str:
    try:
        counted = count(columns, folder, named)
    except (InvalidValueError, InvalidTypeError):
        return REFUSED
    seen = {name for name, rows in counted.totals.items() if rows}
    # A fast model that differs from the slow one, whose name is the label, loses: nothing worse.
    assert seen in ({"right"}, {"agree"}, {"only_slow"}), counted
    return LOST if seen == {"only_slow"} else SAME


NAMED_PAIRS = pytest.mark.parametrize(
    "pair",
    [
        pytest.param(pair, id=f"{pair[0]!r}-{pair[1]!r}", marks=[pytest.mark.long][: place % 6])
        for place, pair in enumerate(PAIRS)
    ],
)


@NAMED_PAIRS
def test_every_source_gives_the_same_verdict(
    pair: tuple[Any, Any, str, str], tmp_path: Path
) -> None:
    prediction, label, *verdicts = pair
    columns = _columns(prediction, label)
    for sources, verdict in zip((TYPED, TEXT), verdicts, strict=True):
        found = {
            name: _verdict(count, columns, tmp_path, CALIBRATION) for name, count in sources.items()
        }
        assert found == dict.fromkeys(sources, verdict)


@NAMED_PAIRS
def test_a_cascade_takes_a_pair_for_one_class_or_for_a_loss_or_refuses_it(
    pair: tuple[Any, Any, str, str], tmp_path: Path
) -> None:
    prediction, label, *verdicts = pair
    columns = _columns(prediction, label)
    for sources, verdict in zip((TYPED, TEXT), verdicts, strict=True):
        # The others read classes in the same way, whatever is asked of them.
        some = [sources[name] for name in ("arrays", "polars", "parquet", "csv") if name in sources]
        found = {_verdict(count, columns, tmp_path, CASCADE) for count in some}
        assert len(found) == 1
        assert (found == {SAME}) == (verdict == SAME)


@pytest.mark.long
def test_spark_gives_the_verdict_of_the_arrays(spark: Any, tmp_path: Path) -> None:
    count = _framed(spark.createDataFrame)
    for prediction, label, typed, _ in PAIRS:
        columns = _columns(prediction, label)
        assert _verdict(count, columns, tmp_path, CALIBRATION) == typed, (prediction, label)


@pytest.mark.parametrize("source", [*TYPED, *TEXT])
def test_two_classes_that_are_both_predicted_and_both_labels_are_told_apart(
    source: str, tmp_path: Path
) -> None:
    count = {**TYPED, **TEXT}[source]
    for one, other in [("DE", "de"), (" a", "a"), ("01", "001"), (1, 2), ("\u00e9", "e\u0301")]:
        columns = {"c": [0.5] * 3, "p": [one, other, one], "y": [one, other, other]}
        assert count(columns, tmp_path, CALIBRATION).totals == {"wrong": 1, "right": 2}


@pytest.mark.parametrize("source", [*TYPED, *TEXT])
@pytest.mark.parametrize(
    ("classes", "of_slow"),
    [
        ([0, 1], [-1, 1]),
        ([0, 1], [1, 2]),
        (["cat", "dog"], ["kitty", "dog"]),
        (["neg", "pos"], ["LABEL_0", "LABEL_1"]),
    ],
)
def test_a_slow_model_that_names_classes_in_its_own_way_is_refused_and_gains_nothing(
    source: str, classes: list[Any], of_slow: list[Any], tmp_path: Path
) -> None:
    count = {**TYPED, **TEXT}[source]
    labels, fast = [0, 1, 0, 1, 0, 1], [0, 1, 1, 0, 0, 1]
    columns = {
        "c": [0.5] * 6,
        "p": [classes[k] for k in fast],
        "q": [of_slow[k] for k in labels],
        "y": [classes[k] for k in labels],
    }
    with pytest.raises(InvalidValueError, match=r"never predicts|no model predicts"):
        count(columns, tmp_path, CASCADE)


@pytest.mark.parametrize("source", [*TYPED, *TEXT])
def test_a_gain_counts_where_the_slow_model_predicts_the_class_elsewhere(
    source: str, tmp_path: Path
) -> None:
    count = {**TYPED, **TEXT}[source]
    columns = {"c": [0.5] * 3, "p": [0, 1, 1], "q": [1, 0, 1], "y": [0, 0, 1]}
    assert count(columns, tmp_path, CASCADE).totals == {
        "agree": 1,
        "only_fast": 1,
        "only_slow": 1,
        "neither": 0,
        "unlabelled": 0,
    }


def test_gains_that_the_slow_model_cannot_have_made_are_refused_beyond_the_share_allowed() -> None:
    arrays: dict[str, Any] = {
        "confidence": [0.5] * 100,
        "prediction": [(0, 1)] * 29 + [(1, 1)] * 71,
        "label": [0] * 29 + [1] * 71,
    }
    with pytest.raises(
        InvalidValueError, match=r"never predicts: 0 \(29 rows\).*unseen_labels=0\.29\."
    ):
        Tally.count("cascade", **arrays)
    with pytest.raises(InvalidValueError, match="never predicts"):
        Tally.count("cascade", **arrays, unseen_labels=0.28)
    for allowed in ({"unseen_labels": 0.29}, {"classes": [0, 1]}):
        assert Tally.count("cascade", **arrays, **allowed).totals["only_fast"] == 29
