"""Labels that come back land on the rows that they are for, or are refused."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable
from itertools import product
from math import nan
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import polars as pl
import pyarrow as pa
import pytest
from pyarrow import feather, parquet
from tests.agreement.test_nasty_pairs import PAIRS
from tests.products import standing_for

from pacbound import Tally, calibrate, certify_cascade
from pacbound.errors import InvalidTypeError, InvalidValueError
from pacbound.tally.classes import NotAClassError, class_of, class_of_text, is_missing_code

Columns = dict[str, list[Any]]


def _write_csv(columns: Columns, path: Path) -> None:
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(columns)
        writer.writerows(zip(*columns.values(), strict=True))


def _write_lines(columns: Columns, path: Path) -> None:
    rows = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
    plain = [
        {name: str(v) if isinstance(v, float) and v - v != 0 else v for name, v in row.items()}
        for row in rows
    ]
    path.write_text("\n".join(map(json.dumps, plain)))


def _write_npz(columns: Columns, path: Path) -> None:
    arrays: dict[str, Any] = {
        name: np.array([nan if value is None else value for value in values])
        for name, values in columns.items()
    }
    np.savez(path, **arrays)


WRITE: dict[str, Callable[[Columns, Path], None]] = {
    "csv": _write_csv,
    "jsonl": _write_lines,
    "parquet": lambda columns, path: parquet.write_table(pa.table(columns), path),
    "feather": lambda columns, path: feather.write_feather(pa.table(columns), path),
    "npz": _write_npz,
}
TEXT = ("csv", "jsonl")
CALIBRATION: dict[str, Any] = {"confidence": "c", "prediction": "p", "label": "y"}
CASCADE: dict[str, Any] = {"confidence": ["c"], "prediction": ["p", "q"], "label": "y"}


def stored(columns: Columns, folder: Path, name: str) -> Path:
    path = folder / name
    WRITE[path.suffix[1:]](columns, path)
    return path


def rows(n: int = 40) -> Columns:
    rng = np.random.default_rng(0)
    return {
        "c": rng.random(n).tolist(),
        "p": rng.integers(0, 3, n).tolist(),
        "q": rng.integers(0, 3, n).tolist(),
        "g": [f"k{value}" for value in rng.integers(0, 12, n).tolist()],
        "y": rng.integers(0, 3, n).tolist(),
    }


def without(columns: Columns, *names: str) -> Columns:
    return {name: values for name, values in columns.items() if name not in names}


def bare(columns: Columns) -> Columns:
    """The rows without their labels, with numbers of their own."""
    rows = len(columns["c"])
    return {**without(columns, "y"), "pac_id": list(range(rows))}


def shuffled(columns: Columns, seed: int = 0) -> Columns:
    order = np.random.default_rng(seed).permutation(len(next(iter(columns.values()))))
    return {name: [values[i] for i in order] for name, values in columns.items()}


FORMATS = list(WRITE)
EACH_WITH_THE_NEXT = list(zip(FORMATS, FORMATS[1:] + FORMATS[:1], strict=True))


@pytest.mark.parametrize(
    ("source", "answers"), standing_for(product(FORMATS, FORMATS), EACH_WITH_THE_NEXT)
)
def test_labels_in_any_format_and_order_join_rows_in_any_format(
    source: str, answers: str, tmp_path: Path
) -> None:
    whole = rows()
    wanted = Tally.count(
        "calibration", data=stored(whole, tmp_path, f"whole.{source}"), **CALIBRATION
    )
    path = stored(bare(whole), tmp_path, f"rows.{source}")
    came = shuffled({"pac_id": list(range(40)), "y": whole["y"]})
    back = stored(came, tmp_path, f"back.{answers}")
    assert Tally.count("calibration", data=path, answers=back, **CALIBRATION) == wanted
    # Of a cascade only some labels come back.
    some = {name: values[:25] for name, values in came.items()}
    known = dict(zip(some["pac_id"], some["y"], strict=True))
    partly = [known.get(row, nan) for row in range(40)]
    found = Tally.count(
        "cascade", data=path, answers=stored(some, tmp_path, f"some.{answers}"), **CASCADE
    )
    assert found == Tally.count(
        "cascade",
        confidence=whole["c"],
        prediction=np.column_stack([whole["p"], whole["q"]]),
        label=partly,
    )


@pytest.mark.parametrize(
    "engine", ["duckdb", "polars", pytest.param("spark", marks=pytest.mark.long)]
)
def test_every_engine_joins_labels_by_the_numbers_of_rows(engine: Any, tmp_path: Path) -> None:
    whole = rows()
    numbered = shuffled({**without(whole, "y"), "pac_id": list(range(100, 140))}, seed=1)
    path = stored(numbered, tmp_path, "rows.parquet")
    back = stored({"pac_id": list(range(100, 140)), "y": whole["y"]}, tmp_path, "back.csv")
    found = Tally.count("calibration", data=path, answers=back, engine=engine, **CALIBRATION)
    assert found == Tally.count(
        "calibration", data=stored(whole, tmp_path, "whole.csv"), **CALIBRATION
    )


@pytest.mark.parametrize("make", [pl.DataFrame, lambda c: pl.DataFrame(c).lazy(), pa.table])
def test_frames_join_labels_in_files_and_in_frames(make: Any, tmp_path: Path) -> None:
    whole = rows()
    frame = make(bare(whole))
    back = {"pac_id": list(range(40)), "y": whole["y"]}
    wanted = Tally.count("calibration", data=make(whole), **CALIBRATION)
    assert (
        Tally.count(
            "calibration", data=frame, answers=stored(back, tmp_path, "b.csv"), **CALIBRATION
        )
        == wanted
    )
    assert (
        Tally.count("calibration", data=frame, answers=pl.DataFrame(back), **CALIBRATION) == wanted
    )


def test_rows_without_an_order_need_their_numbers(tmp_path: Path) -> None:
    whole = rows()
    back = stored({"pac_id": list(range(40)), "y": whole["y"]}, tmp_path, "back.csv")
    relation = duckdb.from_arrow(pa.table(without(whole, "y")))
    with pytest.raises(InvalidValueError, match=r"have no order.*pac_id"):
        Tally.count("calibration", data=relation, answers=back, **CALIBRATION)
    numbered = duckdb.from_arrow(pa.table({**without(whole, "y"), "pac_id": list(range(40))}))
    found = Tally.count("calibration", data=numbered, answers=back, **CALIBRATION)
    assert found == Tally.count("calibration", data=pa.table(whole), **CALIBRATION)


def test_truth_values_come_back_as_labels_do(tmp_path: Path) -> None:
    right = [value > 0.4 for value in rows()["c"]]
    path = stored(bare(rows()), tmp_path, "rows.csv")
    named: dict[str, Any] = {"confidence": "c", "correct": "ok"}
    wanted = Tally.count("calibration", confidence=rows()["c"], correct=right)
    for ending, spelled in [
        ("csv", ["yes" if value else "No" for value in right]),
        ("parquet", right),
        ("jsonl", [int(value) for value in right]),
        ("npz", [float(value) for value in right]),
    ]:
        back = stored({"pac_id": list(range(40)), "ok": spelled}, tmp_path, f"ok.{ending}")
        assert Tally.count("calibration", data=path, answers=back, **named) == wanted
    back = stored({"pac_id": [0], "ok": ["maybe"]}, tmp_path, "bad.csv")
    with pytest.raises(InvalidValueError, match=r"bad\.csv: ok\[0\] is 'maybe'"):
        Tally.count("calibration", data=path, answers=back, **named)


def test_several_files_are_numbered_on_and_labels_may_come_in_several(tmp_path: Path) -> None:
    whole = rows()
    parts = [
        stored({name: values[part] for name, values in bare(whole).items()}, tmp_path, name_)
        for name_, part in [("a.csv", slice(0, 15)), ("b.csv", slice(15, 40))]
    ]
    backs = [
        stored({"pac_id": list(range(40))[part], "y": whole["y"][part]}, tmp_path, name)
        for name, part in [("one.csv", slice(0, 22)), ("two.csv", slice(22, 40))]
    ]
    found = Tally.count("calibration", data=parts, answers=backs, **CALIBRATION)
    assert found == Tally.count(
        "calibration", data=stored(whole, tmp_path, "whole.csv"), **CALIBRATION
    )
    # All four files have a part in it, so that none is counted again.
    assert len(found.sources) == 4


def test_rows_are_drawn_by_clusters_and_then_labelled(tmp_path: Path) -> None:
    whole = rows()
    path = stored(bare(whole), tmp_path, "rows.csv")
    back = stored({"pac_id": list(range(40)), "y": whole["y"]}, tmp_path, "back.parquet")
    found = Tally.count("calibration", data=path, answers=back, clusters="g", **CALIBRATION, seed=0)
    full = stored(whole, tmp_path, "whole.csv")
    assert found == Tally.count("calibration", data=full, clusters="g", **CALIBRATION, seed=0)
    frame = pl.DataFrame(bare(whole))
    assert (
        Tally.count("calibration", data=frame, answers=back, clusters="g", **CALIBRATION, seed=0)
        == found
    )


def test_labels_that_the_rows_have_already_stay_and_may_not_be_contradicted(
    tmp_path: Path,
) -> None:
    whole = rows()
    partly = {**bare(whole), "y": [y if i % 2 else None for i, y in enumerate(whole["y"])]}
    path = stored(partly, tmp_path, "rows.parquet")
    even = {"pac_id": list(range(0, 40, 2)), "y": whole["y"][::2]}
    wanted = Tally.count("calibration", data=stored(whole, tmp_path, "whole.csv"), **CALIBRATION)
    back = stored(even, tmp_path, "even.csv")
    assert Tally.count("calibration", data=path, answers=back, **CALIBRATION) == wanted
    again = stored({"pac_id": list(range(40)), "y": whole["y"]}, tmp_path, "all.csv")
    assert Tally.count("calibration", data=path, answers=again, **CALIBRATION) == wanted
    other = list(whole["y"])
    other[7] = (other[7] + 1) % 3
    wrong = stored({"pac_id": list(range(40)), "y": other}, tmp_path, "wrong.csv")
    with pytest.raises(InvalidValueError, match=r"another label than .*rows\.parquet for row 7"):
        Tally.count("calibration", data=path, answers=wrong, **CALIBRATION)


REFUSED: dict[str, tuple[Columns, str]] = {
    "contradiction": ({"pac_id": [3, 3], "y": [1, 2]}, r"row 3 twice, once 1 and once 2"),
    "unknown row": ({"pac_id": [3, 40], "y": [1, 1]}, r"answers row 40 .*not in .*rows\.csv"),
    "negative": ({"pac_id": [-1], "y": [1]}, r"pac_id\[0\] is '-1', .* not the id of a row"),
    "fraction": ({"pac_id": [1.5], "y": [1]}, r"pac_id\[0\] is '1.5'"),
    "no number": ({"pac_id": ["x"], "y": [1]}, r"pac_id\[0\] is 'x', which is not the id"),
    "empty number": ({"pac_id": [""], "y": [1]}, r"pac_id\[0\] is ''"),
    "no numbers": ({"row": [1], "y": [1]}, r"no column 'pac_id'"),
    "no labels": ({"pac_id": [1], "label": [1]}, r"no column 'y'"),
    "code for missing": ({"pac_id": [1], "y": ["NA"]}, r"back\.csv: y\[0\] is 'NA'"),
    "another score": ({"pac_id": [1], "y": [1], "c": [0.5]}, r"another 'c' than .* for row 1 "),
    "another prediction": ({"pac_id": [1], "y": [1], "p": [9]}, r"another 'p' than .*other rows"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_answers_that_cannot_be_to_these_rows_are_refused(case: str, tmp_path: Path) -> None:
    came, said = REFUSED[case]
    path = stored(bare(rows()), tmp_path, "rows.csv")
    back = stored(came, tmp_path, "back.csv")
    with pytest.raises(InvalidValueError, match=said):
        Tally.count("cascade", data=path, answers=back, **CASCADE)


def test_a_calibration_needs_the_label_of_every_row(tmp_path: Path) -> None:
    whole = rows()
    path = stored(bare(whole), tmp_path, "rows.csv")
    back = stored({"pac_id": [*range(39)], "y": whole["y"][:39]}, tmp_path, "back.csv")
    with pytest.raises(InvalidValueError, match=r"row 39 has no answer in .*back\.csv"):
        Tally.count("calibration", data=path, answers=back, **CALIBRATION)
    # An empty answer is none, and may be filled in by another file.
    empty = stored({"pac_id": [39], "y": [""]}, tmp_path, "empty.csv")
    last = stored({"pac_id": [39], "y": whole["y"][39:]}, tmp_path, "last.csv")
    with pytest.raises(InvalidValueError, match="row 39 has no answer"):
        Tally.count("calibration", data=path, answers=[back, empty], **CALIBRATION)
    found = Tally.count("calibration", data=path, answers=[back, empty, last], **CALIBRATION)
    assert found == Tally.count(
        "calibration", data=stored(whole, tmp_path, "whole.csv"), **CALIBRATION
    )


def test_columns_that_come_back_may_have_lost_digits_and_types(tmp_path: Path) -> None:
    whole = {**rows(), "p": [str(value) for value in rows()["p"]]}
    whole["q"] = whole["y"] = [str(value) for value in rows()["q"]]
    path = stored(bare(whole), tmp_path, "rows.parquet")
    came = {
        "pac_id": list(range(40)), "y": whole["y"], "c": [round(c, 7) for c in whole["c"]],
        "p": whole["p"],
    }  # fmt: skip
    back = stored(came, tmp_path, "back.parquet")
    assert Tally.count("calibration", data=path, answers=back, **CALIBRATION).rows == 40
    # In CSV the labels are numbers, which never equal text; the predictions beside them are known.
    with pytest.raises(InvalidValueError, match="no class in common"):
        Tally.count(
            "calibration", data=path, answers=stored(came, tmp_path, "back.csv"), **CALIBRATION
        )


def test_a_row_that_was_answered_stands_in_the_table_once(tmp_path: Path) -> None:
    twice = {**without(rows(), "y"), "pac_id": [5] * 40}
    back = stored({"pac_id": [5], "y": [1]}, tmp_path, "back.csv")
    with pytest.raises(InvalidValueError, match="stands there twice"):
        Tally.count("cascade", data=stored(twice, tmp_path, "rows.csv"), answers=back, **CASCADE)


def test_arrays_have_their_labels_beside_them() -> None:
    with pytest.raises(InvalidTypeError, match="answers is about tables"):
        Tally.count("calibration", confidence=[0.5], correct=[True], answers="back.csv")
    with pytest.raises(InvalidValueError, match="no column 'expert_label'"):
        Tally.count(
            "cascade",
            data=pl.DataFrame({"c": [0.5], "p": [0], "q": [1], "pac_id": [0]}),
            confidence=["c"],
            prediction=["p", "q"],
            answers=pl.DataFrame({"pac_id": [0], "y": [1]}),
        )


def test_the_verbs_take_answers_and_certify_the_same(tmp_path: Path) -> None:
    whole = rows()
    path = stored(bare(whole), tmp_path, "rows.csv")
    full = stored(whole, tmp_path, "whole.csv")
    back = stored({"pac_id": list(range(40)), "y": whole["y"]}, tmp_path, "back.csv")
    joined = calibrate(**CALIBRATION, data=path, delta=0.05, answers=back)
    assert joined.counts_digest == calibrate(**CALIBRATION, data=full, delta=0.05).counts_digest
    # The columns are random, and have nothing to do with each other.
    asked: Any = {"xi": 0.5, "delta": 0.05, **CASCADE, "unrelated_labels": True}
    cascade, direct = (
        certify_cascade(data=path, **asked, answers=back),
        certify_cascade(data=full, **asked),
    )
    assert cascade.counts_digest == direct.counts_digest


def _class(value: Any, ending: str) -> Any:
    """The class that a value names in a file, by the one rule; None if it names none."""
    try:
        if ending not in TEXT:
            found = class_of(value)
        else:
            plain = "" if value is None else value
            found = class_of_text(plain if isinstance(plain, str) else str(plain))
    except NotAClassError:
        return None
    return None if isinstance(found, str) and is_missing_code(found) else found


@pytest.mark.parametrize(
    "place",
    standing_for(range(len(PAIRS)), range(0, len(PAIRS), 6)),
    ids=[f"{prediction!r}-{label!r}" for prediction, label, *_ in PAIRS],
)
def test_a_label_in_one_format_is_a_prediction_in_another_if_the_one_rule_says_so(
    place: int, tmp_path: Path
) -> None:
    """All pairs in one format are in tests/agreement."""
    prediction, label, *_ = PAIRS[place]
    for source in ("csv", "parquet"):
        table = {"c": [0.5] * 3, "p": [prediction] * 3, "pac_id": [0, 1, 2]}
        path = stored(table, tmp_path, f"rows.{source}")
        for ending in ("csv", "parquet"):
            back = stored({"pac_id": [2, 0, 1], "y": [label] * 3}, tmp_path, f"back.{ending}")
            said, truth = _class(prediction, source), _class(label, ending)
            try:
                totals = Tally.count("calibration", data=path, answers=back, **CALIBRATION).totals
                found = totals == {"wrong": 0, "right": 3}
                assert found, totals
            except (InvalidValueError, InvalidTypeError):
                found = False
            same = said is not None and said == truth and type(said) is type(truth)
            assert found == same, (source, ending)
