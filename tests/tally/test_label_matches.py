"""Labels of other rows are refused, from whatever source, and parts are judged together."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from numpy.typing import NDArray

from pacbound import (
    Tally,
    certify_cascade,
)
from pacbound.documents import digest
from pacbound.errors import CertificateError, InvalidValueError

N = 600
COLUMNS: dict[str, Any] = {"confidence": ["c"], "prediction": ["fast", "slow"], "label": "y"}


def _rows(n: int = N, classes: int = 2, seed: int = 0) -> dict[str, NDArray[Any]]:
    rng = np.random.default_rng(seed)
    y = rng.integers(0, classes, n)
    slow, fast = (
        np.where(rng.random(n) < right, y, rng.integers(0, classes, n)) for right in (0.9, 0.5)
    )
    return {"c": rng.random(n), "fast": fast, "slow": slow, "y": y}


def _tally(rows: dict[str, NDArray[Any]], labels: Any = None, **options: Any) -> Tally:
    return Tally.count(
        "cascade",
        confidence=rows["c"],
        prediction=np.column_stack([rows["fast"], rows["slow"]]),
        label=rows["y"] if labels is None else labels,
        **options,
    )


WRONG: dict[str, Callable[[Any], Any]] = {
    "shuffled": lambda y: np.random.default_rng(1).permutation(y),
    "rolled by one": lambda y: np.roll(y, 1),
    "inverted": lambda y: 1 - y,
    "in order": np.sort,
}


@pytest.mark.parametrize("wrong", WRONG)
def test_labels_of_other_rows_are_refused_in_arrays_frames_and_files(
    wrong: str, tmp_path: Path
) -> None:
    rows = _rows()
    assert _tally(rows).rows == N
    rows["y"] = WRONG[wrong](rows["y"])
    frame = pd.DataFrame(rows)
    frame.to_csv(tmp_path / "rows.csv", index=False)
    frame.to_parquet(tmp_path / "rows.parquet")
    said = "match in [0-9]+ of 600 rows with a label; in a random order they would in about"
    for made in (
        lambda: _tally(rows),
        lambda: Tally.count("cascade", data=frame, **COLUMNS),
        lambda: Tally.count("cascade", data=pl.from_pandas(frame).lazy(), **COLUMNS),
        lambda: Tally.count("cascade", data=tmp_path / "rows.csv", **COLUMNS),
        lambda: Tally.count("cascade", data=tmp_path / "rows.parquet", engine="polars", **COLUMNS),
        lambda: certify_cascade(data=frame, **COLUMNS, xi=0.05, delta=0.05),
    ):
        with pytest.raises(InvalidValueError, match=said):
            made()
    kept = certify_cascade(data=frame, **COLUMNS, xi=0.05, delta=0.05, unrelated_labels=True)
    assert kept.provenance.notes == {"labels": "unrelated"}
    assert "match the slow model no more often than labels of other rows" in kept.summary()


def test_labels_are_judged_where_models_agree_if_some_are_missing() -> None:
    """Of rows on which two models of two classes differ, the slow one may be right in half."""
    rows = _rows()
    differ = rows["fast"] != rows["slow"]
    y = rows["y"].astype(float)
    coin = np.where(np.random.default_rng(2).random(N) < 0.5, rows["fast"], rows["slow"])
    some = np.where(differ, coin, np.where(np.arange(N) % 10 == 0, y, np.nan))
    assert _tally(rows, some).matches is not None
    with pytest.raises(InvalidValueError, match="rows with a label on which all models agree"):
        _tally(rows, np.where(differ, y, np.where(np.arange(N) % 5 == 0, 1 - y, np.nan)))


def test_too_few_labels_to_tell_are_noted_and_parts_are_judged_together() -> None:
    rows = _rows()
    rows["y"] = WRONG["inverted"](rows["y"])
    parts = [
        _tally({name: column[start : start + 12] for name, column in rows.items()})
        for start in range(0, N, 12)
    ]
    few = certify_cascade(data=parts[0], xi=0.5, delta=0.5)
    assert few.provenance.notes == {"labels": "too few to tell"}
    assert "too few rows have a label, or nearly all" in few.summary()
    whole = sum(parts[1:], start=parts[0])
    with pytest.raises(InvalidValueError, match="probably the labels of other rows"):
        certify_cascade(data=whole, xi=0.5, delta=0.5)
    insisted = [_tally(_rows(12), unrelated_labels=True), parts[1]]
    certify_cascade(data=sum(insisted[1:], start=insisted[0]), xi=0.5, delta=0.5)


def test_a_tally_and_a_part_of_it_add_to_the_whole_with_its_matches(tmp_path: Path) -> None:
    rows = _rows(classes=5)
    halves = [
        _tally({name: column[half] for name, column in rows.items()})
        for half in (slice(0, 200), slice(200, N))
    ]
    whole = _tally(rows)
    assert halves[0] + halves[1] == whole
    whole.save(tmp_path / "tally.json")
    assert Tally.load(tmp_path / "tally.json") == whole
    assert whole.zero() + whole == whole


@pytest.mark.parametrize(
    "change",
    [
        lambda part: part.update(insisted=1),
        lambda part: part.update(more=[]),
        lambda part: part["agreeing"][0].__setitem__(3, 10**6),
        lambda part: part["agreeing"][0].__setitem__(1, part["agreeing"][0][1] + 1),
        lambda part: part["differing"].append(part["differing"][0]),
        lambda part: part["agreeing"][0].__setitem__(0, "cat"),
    ],
)
def test_a_document_with_matches_that_no_rows_have_is_refused(change: Any) -> None:
    document = _tally(_rows()).to_dict()
    change(document["label_matches"])
    document["digest"] = digest({key: document[key] for key in document if key != "digest"})
    with pytest.raises(CertificateError, match="label_matches"):
        Tally.from_dict(document)


def test_a_slow_model_that_always_says_the_same_cannot_be_told_from_an_unrelated_one() -> None:
    rows = _rows()
    rows["slow"] = np.zeros(N, dtype=int)
    tally = _tally(rows, classes=[0, 1])
    assert tally.matches is not None
    assert tally.matches.verdict(N) == "too few to tell"
