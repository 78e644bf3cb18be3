"""Every engine refuses the same rows, with their number, in the same words."""

from __future__ import annotations

from collections.abc import Callable
from math import inf, nan
from typing import Any, TypeAlias

import pyarrow as pa
import pytest
from tests.tally.question_names import question_of

from pacbound import Tally
from pacbound.errors import InvalidTypeError, InvalidValueError
from pacbound.tally.classes import ALL_PREDICT

Engine: TypeAlias = Callable[[Any], Any]

CORRECT: dict[str, Any] = {"confidence": "c", "correct": "ok"}
ANSWER: dict[str, Any] = {"confidence": "c", "prediction": "p", "label": "y"}
CASCADE: dict[str, Any] = {"confidence": ["c"], "prediction": ["p", "q"], "label": "y"}
SHIELD: dict[str, Any] = {"score": "c", "unsafe": "u"}
THREE = [0.5, 0.6, 0.7]


def _table(**columns: Any) -> Any:
    return pa.table(columns)


def _float32(*values: float | None) -> Any:
    return pa.array(values, type=pa.float32())


VALUES: dict[str, tuple[Any, dict[str, Any], str]] = {
    "missing scores": (
        _table(c=[0.5, nan, None, nan], ok=[True, False, True, True]),
        CORRECT,
        (
            "c holds 3 values that are not scores: 3 missing (null or NaN). Expected scores from 0 "
            "to 1. Mend them, or leave out every row without a score, whatever its label: to drop "
            "rows by their outcome voids the guarantee."
        ),
    ),
    "scores out of range": (
        _table(c=_float32(0.5, inf, -inf, -0.5, 3.5, None), ok=[1, 0, 1, 0, 1, 0]),
        CORRECT,
        (
            "c holds 5 values that are not scores: 1 missing (null or NaN), 2 below 0 (the least "
            "-inf), 2 above 1 (the greatest inf). Expected scores from 0 to 1. These look like "
            "logits or percentages: pass softmax outputs, or divide by 100 (for tables: "
            "scale=100, --scale 100)."
        ),
    ),
    "logits": (
        _table(c=[0.5, -0.25, -4.0], ok=[True, False, True]),
        CORRECT,
        (
            "c holds 2 values that are not scores: 2 below 0 (the least -4.0). Expected scores "
            "from 0 to 1. These look like log-probabilities or logits: pass softmax outputs."
        ),
    ),
    "just above what rounding explains": (
        _table(c=[0.5, 1.0 + 1e-6, 1.0 + 1.1e-6], ok=[True, False, True]),
        CORRECT,
        (
            "c holds 1 values that are not scores: 1 above 1 (the greatest 1.0000011). Expected "
            "scores from 0 to 1. These are probabilities above 1 by rounding: clip to 1, "
            "np.minimum(score, 1)."
        ),
    ),
    "missing flags": (
        _table(c=THREE, ok=[True, None, None]),
        CORRECT,
        "ok has 2 missing values (null or NaN): expected True or False, or 0 or 1.",
    ),
    "missing numbers as flags": (
        _table(c=THREE, ok=[1.0, nan, None]),
        CORRECT,
        "ok has 2 missing values (null or NaN): expected True or False, or 0 or 1.",
    ),
    "numbers that are no flags": (
        _table(c=THREE, ok=[1, 0, 7]),
        CORRECT,
        (
            "ok holds 7.0 (1 such values): expected True or False, or 0 or 1. For predictions and "
            "labels name both columns instead."
        ),
    ),
    "missing predictions": (
        _table(c=THREE, p=[1, None, 3], y=[1, None, None]),
        ANSWER,
        f"p has 1 missing values (null or NaN): {ALL_PREDICT}.",
    ),
    "missing labels": (
        _table(c=THREE, p=[1, 2, 3], y=[1, None, None]),
        ANSWER,
        (
            "2 rows have no label in y: label them. Dropping them, or labelling only some, would "
            "void the guarantee."
        ),
    ),
    "NaN as a label": (
        _table(c=THREE, p=[1.0, 2.0, 3.0], y=[1.0, nan, 3.0]),
        ANSWER,
        (
            "1 rows have no label in y: label them. Dropping them, or labelling only some, would "
            "void the guarantee."
        ),
    ),
    "NaN as prediction and label": (
        _table(c=THREE, p=[1.0, nan, nan], y=[1.0, nan, 3.0]),
        ANSWER,
        f"p has 2 missing values (null or NaN): {ALL_PREDICT}.",
    ),
    "missing names": (
        _table(c=THREE, p=["a", "b", "c"], y=["a", None, "b"]),
        ANSWER,
        (
            "1 rows have no label in y: label them. Dropping them, or labelling only some, would "
            "void the guarantee."
        ),
    ),
    "fractions as classes": (
        _table(c=THREE, p=[1.0, 2.5, 0.5], y=[1.0, 2.5, 3.0]),
        ANSWER,
        (
            "p is 2.5 (2 such values), not a whole number that floats hold exactly: expected "
            "classes, which are whole numbers below 2**53 or names. Grades, such as a judge's, are "
            "passed as quality."
        ),
    ),
    "floats too large to be exact classes": (
        _table(c=THREE, p=[1.0, 2.0**70, 3.0], y=[1.0, 2.0, 3.0]),
        ANSWER,
        (
            "p is 1.1805916207174113e+21 (1 such values), not a whole number that floats hold "
            "exactly: expected classes, which are whole numbers below 2**53 or names."
        ),
    ),
    "missing groups": (
        _table(c=THREE, ok=[1, 0, 1], g=["a", None, None]),
        {**CORRECT, "groups": "g"},
        (
            "g has 2 missing values (null or NaN): expected an integer or a string. Name the "
            "missing ones."
        ),
    ),
    "NaN and null as groups": (
        _table(c=THREE, ok=[1, 0, 1], g=[7.0, nan, None]),
        {**CORRECT, "groups": "g"},
        (
            "g has 2 missing values (null or NaN): expected an integer or a string. Name the "
            "missing ones."
        ),
    ),
    "fractions as groups": (
        _table(c=[*THREE, 0.8], ok=[1, 0, 1, 0], g=[7.0, 0.25, 0.75, 1e300]),
        {**CORRECT, "groups": "g"},
        (
            "g holds 3 numbers that are not whole or not below 2**53: expected an integer or a "
            "string."
        ),
    ),
    "no prediction by either model": (
        _table(c=THREE, p=[1, None, None], q=[1, None, 3], y=[1, None, 3]),
        CASCADE,
        f"p has 2 missing values (null or NaN): {ALL_PREDICT}.",
    ),
    "a lost rollout that is safe": (
        _table(c=[-inf, 0.6, -inf], u=[False, True, True]),
        SHIELD,
        (
            "c holds -inf, lost at its start, but u is False there (1 such): a lost rollout is "
            "unsafe."
        ),
    ),
    "missing dangers": (
        _table(c=[nan, 0.6, None], u=[False, True, True]),
        SHIELD,
        (
            "c holds 2 values that are not scores: 2 missing (null or NaN). Expected scores from 0 "
            "to 1. Drop no rollout: one that was lost is unsafe with score -inf, and np.fmax "
            "takes a maximum past NaN."
        ),
    ),
    "numbers against names": (
        _table(c=[0.5], p=[1], y=["1"]),
        ANSWER,
        (
            "y and p have no class in common, so every prediction would count as wrong. Labels: "
            "'1'. Predictions: 1. Likely cause: numbers on one side and text of digits on the "
            "other: use one type."
        ),
    ),
    "numbers against a named label": (
        _table(c=[0.5, 0.6], p=[1, 1], q=[1, 1], y=["one", None]),
        CASCADE,
        (
            "y and p, q have no class in common, so every prediction would count as wrong. Labels: "
            "'one'. Predictions: 1. Likely cause: numbers on one side and names on the other: "
            "name classes one way."
        ),
    ),
}

TYPES: dict[str, tuple[Any, dict[str, Any], str]] = {
    "text as scores": (
        _table(c=["0.5"], ok=[True]),
        CORRECT,
        "c has type String, which does not hold scores",
    ),
    "booleans as scores": (
        _table(c=[True], ok=[True]),
        CORRECT,
        "c has type Boolean, which does not hold scores",
    ),
    "text as flags": (
        _table(c=[0.5], ok=["yes"]),
        CORRECT,
        "ok has type String: expected booleans",
    ),
    "dates as groups": (
        _table(c=[0.5], ok=[True], g=pa.array([1], type=pa.date32())),
        {**CORRECT, "groups": "g"},
        "g has type .*: expected integers or strings",
    ),
}


@pytest.mark.parametrize("case", VALUES)
def test_every_engine_refuses_the_same_values_with_their_number(frame: Engine, case: str) -> None:
    table, columns, message = VALUES[case]
    with pytest.raises(InvalidValueError) as caught:
        Tally.count(question_of(columns), data=frame(table), **columns)
    assert str(caught.value) == message


@pytest.mark.parametrize("case", TYPES)
def test_every_engine_refuses_the_same_types(frame: Engine, case: str) -> None:
    table, columns, message = TYPES[case]
    with pytest.raises(InvalidTypeError, match=message):
        Tally.count(question_of(columns), data=frame(table), **columns)


def test_labels_of_any_type_may_all_be_missing(frame: Engine) -> None:
    for nothing in (pa.nulls(2), pa.nulls(2, type=pa.string()), pa.nulls(2, type=pa.float64())):
        counted = Tally.count(
            "cascade", data=frame(_table(c=[0.5, 0.6], p=[1, 2], q=[1, 3], y=nothing)), **CASCADE
        )
        assert {name: seen for name, seen in counted.totals.items() if seen} == {
            "agree": 1,
            "unlabelled": 1,
        }
