"""Truth values written as classes: which one counts, from every source, and what is refused."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pacbound import (
    Tally,
    calibrate,
    certify_abstention,
    certify_false_alarms,
    certify_precision,
    certify_recall,
    certify_shield,
)
from pacbound.errors import InvalidTypeError, InvalidValueError

rng = np.random.default_rng(0)
SCORE = rng.random(600)
FLAG = rng.random(600) < SCORE
LABEL = np.where(FLAG, "ill", "healthy")
BY_VERB: dict[str, tuple[Callable[..., Any], str, str, dict[str, Any]]] = {
    "recall": (certify_recall, "score", "positive", {"target": 0.8, "delta": 0.1}),
    "precision": (certify_precision, "score", "positive", {"target": 0.7, "delta": 0.1}),
    "false alarms": (certify_false_alarms, "score", "positive", {"xi": 0.2, "delta": 0.1}),
    "shield": (certify_shield, "score", "unsafe", {"xi": 0.3, "delta": 0.1}),
    "calibration": (calibrate, "confidence", "correct", {"delta": 0.1, "n_bins": 4}),
    "abstention": (certify_abstention, "confidence", "correct", {"xi": 0.4, "delta": 0.1}),
}


@pytest.mark.parametrize("name", BY_VERB)
def test_every_verb_with_truth_values_takes_classes_in_their_place(name: str) -> None:
    verb, score, flag, asked = BY_VERB[name]
    plain = verb(**{score: SCORE, flag: FLAG}, **asked)
    by_class = verb(**{score: SCORE, flag: LABEL}, positive_class="ill", **asked)
    assert by_class.claim() == plain.claim()
    numbers = verb(**{score: SCORE, flag: np.where(FLAG, 2, 1)}, positive_class=2, **asked)
    assert numbers.claim() == plain.claim()
    with pytest.raises(InvalidTypeError, match=r"'healthy', 'ill'.*positive_class='ill'"):
        verb(**{score: SCORE, flag: LABEL}, **asked)


def sources(folder: Path) -> dict[str, Any]:
    pl = pytest.importorskip("polars")
    frame = pl.DataFrame({"s": SCORE, "y": LABEL, "n": np.where(FLAG, 1, 2)})
    frame.write_csv(folder / "rows.csv")
    frame.write_parquet(folder / "rows.parquet")
    frame.write_ndjson(folder / "rows.jsonl")
    np.savez(folder / "rows.npz", s=SCORE, y=LABEL, n=np.where(FLAG, 1, 2))
    return {
        "polars": frame,
        "lazy polars": frame.lazy(),
        "pandas": frame.to_pandas(),
        "categories": frame.with_columns(pl.col("y").cast(pl.Categorical)),
        **{suffix: folder / f"rows.{suffix}" for suffix in ("csv", "parquet", "jsonl", "npz")},
    }


def test_every_source_counts_the_same(tmp_path: Path) -> None:
    asked: Any = {"target": 0.8, "delta": 0.1}
    plain = certify_recall(SCORE, FLAG, **asked).claim()
    for name, data in sources(tmp_path).items():
        found = certify_recall("s", "y", data=data, positive_class="ill", **asked)
        assert found.claim() == plain, name
        assert found.provenance.columns["positive_class"] == "ill"
        # In a file without types "1" is a number.
        assert certify_recall("s", "n", data=data, positive_class="1", **asked).claim() == plain
        with pytest.raises((InvalidTypeError, InvalidValueError), match=r"positive_class='ill'"):
            certify_recall("s", "y", data=data, **asked)
        with pytest.raises(InvalidValueError, match=r"'Ill' is in no row of y.*'healthy', 'ill'"):
            certify_recall("s", "y", data=data, positive_class="Ill", **asked)


def test_a_part_without_the_class_is_counted_if_all_classes_are_listed() -> None:
    well = np.full(300, "healthy")
    parts = {"score": SCORE[:300], "positive": well, "positive_class": "ill"}
    with pytest.raises(InvalidValueError, match="classes="):
        Tally.count("recall", **parts)
    tally = Tally.count("recall", **parts, classes=["ill", "healthy"])
    assert tally.counts[:, 1].sum() == 0
    with pytest.raises(InvalidValueError, match="'sick'"):
        Tally.count(
            "recall", **{**parts, "positive": np.full(300, "sick")}, classes=["ill", "healthy"]
        )


@pytest.mark.parametrize(
    ("labels", "said"),
    [
        ([*LABEL[:-1], None], r"\[599\] is missing \(1 such rows\)"),
        ([*LABEL[:-1], ""], "missing"),
        ([*LABEL[:-1], "NA"], "missing"),
        ([0.5] * 600, "not a whole number"),
    ],
)
def test_a_class_that_is_missing_or_none_is_refused(labels: list[Any], said: str) -> None:
    with pytest.raises((InvalidTypeError, InvalidValueError), match=said):
        certify_recall(SCORE, labels, positive_class="ill", target=0.8, delta=0.1)


@pytest.mark.parametrize(
    ("classes", "named"),
    [
        (("crash", "safe"), "positive_class='crash', on the command line --positive-class crash"),
        (("arrived", "crash"), "the class that is unsafe"),
        (("crash", "done"), "the class that is unsafe"),
        (("done", "done"), "the class that is unsafe"),
    ],
)
def test_no_class_is_recommended_that_may_turn_the_claim_around(
    classes: tuple[str, str], named: str, tmp_path: Path
) -> None:
    table = tmp_path / "rows.csv"
    table.write_text("g,u\n" + "".join(f"0.5,{name}\n" for name in classes))
    for data in (None, table):
        columns = ("g", "u") if data else ([0.5, 0.5], list(classes))
        with pytest.raises((InvalidTypeError, InvalidValueError), match=re.escape(named)) as told:
            certify_shield(*columns, data=data, xi=0.1, delta=0.05)
        assert "='safe'" not in str(told.value)
