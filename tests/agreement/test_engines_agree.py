"""Every engine counts the same integers, on values chosen to make them differ."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import duckdb
import numpy as np
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from tests.tally.question_names import question_of

from pacbound import Tally, calibrate, certify_cascade
from pacbound.errors import InvalidValueError

Engine: TypeAlias = Callable[[Any], Any]
Floats = NDArray[np.float64]

EDGES = np.arange(21) / 20
ODD_EDGES = [0.0, 0.05, 0.15, 0.30000000000000004, 0.35, 0.7, 0.95, 1.0]


def _around(edges: NDArray[Any]) -> NDArray[Any]:
    """Each value, and one float below and above it, as far as they are scores."""
    low, high = edges.dtype.type(0), edges.dtype.type(1)
    near = np.concatenate([edges, np.nextafter(edges, low), np.nextafter(edges, high)])
    return near[(near >= 0) & (near <= 1)]


NASTY = np.concatenate(
    [
        _around(EDGES),
        _around(np.arange(50) / 49),  # 1/49 * 49 < 1 in float64
        _around(EDGES.astype(np.float32)).astype(np.float64),
        _around(np.array([1, 3, 32768, 65535]) / 2**16),
        _around(np.array([1, 511, 1023]) / 2**10),
        [0.0, -0.0, 5e-324, 2.0**-1074 * 3, 1.0, 1.0 + 5e-7, 1.0 + 1e-6],
    ]
)
ROWS = len(NASTY)
PLACE = np.arange(ROWS)
OK = PLACE % 3 == 0
FAST, SLOW, TRUTH = PLACE % 5, PLACE % 7, PLACE % 4
MIDDLE = np.where(PLACE % 2, FAST, SLOW)
AGREE = (FAST == SLOW) & (MIDDLE == SLOW)
FEW = PLACE % 11 > 2
LOST = PLACE % 6 == 0
DANGER = np.where(LOST, -np.inf, NASTY)
UNSAFE = LOST | OK
FINAL = np.where(PLACE % 12 == 0, -np.inf, np.minimum(NASTY, 1.0) / 2)
NAMES = np.array(["a", "b", "10", "9", "é"])

TABLE = pa.table(
    {
        "c": NASTY,
        "c32": NASTY.astype(np.float32),
        "reverse": NASTY[::-1],
        "ok": OK,
        "ok8": OK.astype(np.int8),
        "ok64": OK.astype(np.float64),
        "fast": FAST,
        "middle": MIDDLE,
        "slow": SLOW,
        "y": TRUTH,
        "y8": TRUTH.astype(np.int8),
        "yf": TRUTH.astype(np.float64),
        "gaps": pa.array(TRUTH, mask=AGREE),
        "few": pa.array(TRUTH, mask=FEW),
        "few_f": np.where(FEW, np.nan, TRUTH),
        "fast_name": NAMES[FAST],
        "slow_name": NAMES[SLOW % 5],
        "y_name": NAMES[TRUTH],
        "group": NAMES[PLACE % 5],
        "number": PLACE % 11,
        "danger": DANGER,
        "unsafe": UNSAFE,
        "final": pa.array(FINAL, mask=~UNSAFE),
    }
)

CASES: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "float64": ({"confidence": "c", "correct": "ok"}, {"confidence": NASTY, "correct": OK}),
    "float32": (
        {"confidence": "c32", "correct": "ok8"},
        {"confidence": NASTY.astype(np.float32), "correct": OK},
    ),
    "49-bins": (
        {"confidence": "c", "correct": "ok64", "n_bins": 49},
        {"confidence": NASTY, "correct": OK, "n_bins": 49},
    ),
    "one-bin": (
        {"confidence": "c", "correct": "ok", "n_bins": 1},
        {"confidence": NASTY, "correct": OK, "n_bins": 1},
    ),
    "edges": (
        {"confidence": "c", "correct": "ok", "edges": ODD_EDGES},
        {"confidence": NASTY, "correct": OK, "edges": ODD_EDGES},
    ),
    "integers": (
        {"confidence": "c", "prediction": "fast", "label": "y8", "groups": "number"},
        {"confidence": NASTY, "correct": FAST == TRUTH, "groups": PLACE % 11},
    ),
    "floats": (
        {"confidence": "c", "prediction": "fast", "label": "yf"},
        {"confidence": NASTY, "correct": FAST == TRUTH},
    ),
    "names": (
        {"confidence": "c", "prediction": "fast_name", "label": "y_name", "groups": "group"},
        {"confidence": NASTY, "correct": FAST == TRUTH, "groups": NAMES[PLACE % 5]},
    ),
    "abstention": (
        {"question": "abstention", "confidence": "c", "correct": "ok"},
        {"question": "abstention", "confidence": NASTY, "correct": OK},
    ),
    "abstention-groups": (
        {
            "question": "abstention",
            "confidence": "c32",
            "prediction": "fast_name",
            "label": "y_name",
            "groups": "group",
        },
        {
            "question": "abstention",
            "confidence": NASTY.astype(np.float32),
            "correct": FAST == TRUTH,
            "groups": NAMES[PLACE % 5],
        },
    ),
    "recall": ({"score": "c", "positive": "ok8"}, {"score": NASTY, "positive": OK}),
    "two-models": (
        {"confidence": ["c"], "prediction": ["fast", "slow"], "label": "gaps"},
        {"confidence": NASTY, "prediction": np.column_stack([FAST, SLOW]), "label": TRUTH},
    ),
    "three-models": (
        {
            "confidence": ["c", "reverse"],
            "prediction": ["fast", "middle", "slow"],
            "label": "gaps",
        },
        {
            "confidence": np.column_stack([NASTY, NASTY[::-1]]),
            "prediction": np.column_stack([FAST, MIDDLE, SLOW]),
            "label": TRUTH,
        },
    ),
    "two-models-few-labels": (
        {"confidence": ["c"], "prediction": ["fast", "slow"], "label": "few"},
        {
            "confidence": NASTY,
            "prediction": np.column_stack([FAST, SLOW]),
            "label": np.where(FEW, np.nan, TRUTH),
        },
    ),
    "three-models-few-labels": (
        {
            "confidence": ["c", "reverse"],
            "prediction": ["fast", "middle", "slow"],
            "label": "few_f",
        },
        {
            "confidence": np.column_stack([NASTY, NASTY[::-1]]),
            "prediction": np.column_stack([FAST, MIDDLE, SLOW]),
            "label": np.where(FEW, np.nan, TRUTH),
        },
    ),
    "three-models-no-labels": (
        {"confidence": ["c", "reverse"], "prediction": ["fast", "middle", "slow"]},
        {
            "confidence": np.column_stack([NASTY, NASTY[::-1]]),
            "prediction": np.column_stack([FAST, MIDDLE, SLOW]),
        },
    ),
    "two-models-in-groups": (
        {
            "confidence": ["c"],
            "prediction": ["fast", "slow"],
            "label": "few",
            "groups": "group",
        },
        {
            "confidence": NASTY,
            "prediction": np.column_stack([FAST, SLOW]),
            "label": np.where(FEW, np.nan, TRUTH),
            "groups": NAMES[PLACE % 5],
        },
    ),
    "three-models-in-groups": (
        {
            "confidence": ["c", "reverse"],
            "prediction": ["fast", "middle", "slow"],
            "label": "gaps",
            "groups": "number",
        },
        {
            "confidence": np.column_stack([NASTY, NASTY[::-1]]),
            "prediction": np.column_stack([FAST, MIDDLE, SLOW]),
            "label": TRUTH,
            "groups": PLACE % 11,
        },
    ),
    "named-models": (
        {"confidence": ["c"], "prediction": ["fast_name", "slow_name"], "label": "y_name"},
        {
            "confidence": NASTY,
            "prediction": np.column_stack([NAMES[FAST], NAMES[SLOW % 5]]),
            "label": NAMES[TRUTH],
        },
    ),
    "shield": ({"score": "danger", "unsafe": "unsafe"}, {"score": DANGER, "unsafe": UNSAFE}),
}


@pytest.mark.parametrize("case", CASES)
def test_every_engine_counts_the_integers_of_the_arrays(frame: Engine, case: str) -> None:
    columns, arrays = CASES[case]
    # The columns are random, and have nothing to do with each other.
    options: Any = {"unrelated_labels": True} if isinstance(columns.get("prediction"), list) else {}
    asked = {} if "question" in columns else {"question": question_of(columns)}
    counted = Tally.count(data=frame(TABLE), **asked, **columns, **options)
    expected = Tally.count(**asked, **arrays, **options)
    assert counted == expected
    assert counted.rows == ROWS
    assert counted.cells.dtype == counted.counts.dtype == np.int64


def test_calibrations_of_every_engine_and_of_a_file_make_the_same_claim(table: Engine) -> None:
    named: Any = {"confidence": "c", "prediction": "fast", "label": "y", "groups": "group"}
    counted = calibrate(**named, data=table(TABLE), delta=0.05)
    assert (
        counted.claim_digest
        == calibrate(NASTY, FAST == TRUTH, delta=0.05, groups=NAMES[PLACE % 5]).claim_digest
    )
    assert counted.provenance.columns == named
    assert counted.verify()


def test_cascades_of_every_engine_and_of_a_file_make_the_same_claim(table: Engine) -> None:
    named: Any = {
        "confidence": ["c", "reverse"],
        "prediction": ["fast", "middle", "slow"],
        "label": "gaps",
    }
    # The columns are random, and have nothing to do with each other.
    asked: Any = {"xi": 0.3, "delta": 0.05, "unrelated_labels": True}
    counted = certify_cascade(data=table(TABLE), **named, **asked)
    scores, predictions = (
        np.column_stack([NASTY, NASTY[::-1]]),
        np.column_stack([FAST, MIDDLE, SLOW]),
    )
    assert counted.claim_digest == certify_cascade(scores, predictions, TRUTH, **asked).claim_digest
    assert counted.provenance.columns == {
        "confidence": "c,reverse",
        "prediction": "fast,middle,slow",
        "label": "gaps",
    }


@pytest.mark.parametrize("labels", ["few", "y8", "yf", "y"])
def test_every_engine_and_a_file_count_the_matches_of_the_arrays(
    table: Engine, labels: str
) -> None:
    named: Any = {"confidence": ["c"], "prediction": ["fast", "slow"], "label": labels}
    source = table(TABLE)
    named["unrelated_labels"] = True
    counted = Tally.count("cascade", data=source, **named)
    truth = np.where(FEW, np.nan, TRUTH) if labels == "few" else TRUTH
    predictions = np.column_stack([FAST, SLOW])
    expected = Tally.count(
        "cascade",
        confidence=NASTY,
        prediction=predictions,
        label=truth,
        unrelated_labels=True,
    )
    assert counted.matches == expected.matches
    assert counted.matches is not None
    assert counted.matches.labelled == ROWS - np.isnan(truth).sum()


def test_every_engine_and_a_file_refuse_labels_of_other_rows(table: Engine) -> None:
    right = TABLE.append_column("told", TABLE["slow"])
    rolled = TABLE.append_column("told", pa.array(np.roll(SLOW, 1)))
    named: Any = {"confidence": ["c"], "prediction": ["fast", "slow"], "label": "told"}
    certify_cascade(data=table(right), **named, xi=0.3, delta=0.05)
    with pytest.raises(InvalidValueError, match=r"told and the slow model \(slow\) match in"):
        certify_cascade(data=table(rolled), **named, xi=0.3, delta=0.05)


def test_parts_counted_by_different_engines_add_up(frame: Engine) -> None:
    columns: dict[str, Any] = {"confidence": "c", "correct": "ok", "groups": "group"}
    parts = Tally.count("calibration", data=frame(TABLE.slice(0, 100)), **columns) + Tally.count(
        "calibration", data=TABLE.slice(100), **columns
    )
    assert parts == Tally.count(
        "calibration", confidence=NASTY, correct=OK, groups=NAMES[PLACE % 5]
    )


@st.composite
def scores_near_edges(draw: st.DrawFn) -> tuple[int, Floats]:
    n_bins = draw(st.integers(1, 5000))
    edges = np.array(draw(st.lists(st.integers(0, n_bins), min_size=1, max_size=30))) / n_bins
    steps = draw(st.lists(st.integers(-20, 20), min_size=len(edges), max_size=len(edges)))
    near = (edges.view(np.int64) + steps).clip(0, np.float64(1.0).view(np.int64)).view(np.float64)
    return n_bins, np.concatenate([near, draw(st.lists(st.floats(0, 1), max_size=10))])


@given(drawn=scores_near_edges())
def test_scores_a_few_floats_from_an_edge_are_in_the_same_bins(drawn: tuple[int, Floats]) -> None:
    n_bins, scores = drawn
    correct = np.arange(len(scores)) % 2 == 0
    columns: dict[str, Any] = {"confidence": "c", "correct": "ok", "n_bins": n_bins}
    expected = Tally.count("calibration", confidence=scores, correct=correct, n_bins=n_bins)
    frame = pl.DataFrame({"c": scores, "ok": correct})
    assert Tally.count("calibration", data=frame, **columns) == expected
    assert (
        Tally.count("calibration", data=duckdb.from_arrow(frame.to_arrow()), **columns) == expected
    )
