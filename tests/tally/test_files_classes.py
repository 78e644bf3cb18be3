"""Classes in files with types are taken by the rules of the arrays: numbers equal no text, and what
is no class is refused."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.tally.question_names import question_of
from tests.tally.table_writers import WRITERS

from pacbound import Tally
from pacbound.errors import InvalidTypeError, InvalidValueError

CASCADE: dict[str, Any] = {"confidence": ["c"], "prediction": ["p", "q"], "label": "y"}
CLASSES: dict[str, Any] = {"confidence": "c", "prediction": "p", "label": "y"}
TYPED = ["parquet", "feather", "npz", "npy"]


def written(folder: Path, suffix: str, **columns: Any) -> Path:
    arrays = {name: np.asarray(values) for name, values in columns.items()}
    path = folder / f"rows.{suffix}"
    WRITERS[path.name]({"c": np.full(len(arrays["p"]), 0.5), **arrays}, path)
    return path


ODD = [
    0.5,
    np.inf,
    -np.inf,
    2.0**53,
    3 + 0j,
    b"cat",
    np.datetime64("NaT", "s"),
    np.datetime64("2020-01-01", "s"),
]


@pytest.mark.parametrize("suffix", ["npz", "npy"])
@pytest.mark.parametrize("odd", ODD)
def test_what_is_no_class_is_refused_whatever_it_is_compared_with(
    tmp_path: Path, suffix: str, odd: Any
) -> None:
    for other in (odd, 2**53 + 1, 3, "cat"):
        path = written(tmp_path, suffix, p=[odd], q=[odd], y=[other])
        for named in (CLASSES, CASCADE):
            with pytest.raises((InvalidTypeError, InvalidValueError), match=rf"rows\.{suffix}: p"):
                Tally.count(question_of(named), data=path, **named)


@pytest.mark.parametrize("suffix", TYPED)
def test_whole_floats_and_integers_of_every_width_number_the_same_classes(
    tmp_path: Path, suffix: str
) -> None:
    wide = np.array([2**53 - 1, 2, 2**63 - 1], dtype=np.uint64)
    path = written(tmp_path, suffix, p=wide.astype(np.int64), y=wide)
    assert Tally.count("calibration", data=path, **CLASSES).totals == {"wrong": 0, "right": 3}
    path = written(
        tmp_path,
        suffix,
        p=[1, 2, 3],
        q=np.array([1, 3, 3], dtype=np.float32),
        y=[np.nan, 3.0, 4.0],
    )
    assert Tally.count("cascade", data=path, **CASCADE).totals == {
        "agree": 2,
        "only_fast": 0,
        "only_slow": 1,
        "neither": 0,
        "unlabelled": 0,
    }


@pytest.mark.parametrize("suffix", TYPED)
@pytest.mark.parametrize("role", ["confidence", "correct"])
@pytest.mark.parametrize("huge", [2**53 + 1, -(2**53) - 1, 2**63 - 1])
def test_an_integer_that_floats_do_not_hold_is_no_score_and_no_truth_value(
    tmp_path: Path, suffix: str, role: str, huge: int
) -> None:
    path = written(tmp_path, suffix, p=[huge], ok=[1])
    named: dict[str, Any] = {"confidence": "c", "correct": "ok"} | {role: "p"}
    with pytest.raises(InvalidValueError, match=rf"rows\.{suffix}: \w+\[0\] is"):
        Tally.count(question_of(named), data=path, **named)
