"""Cascades are counted by what exiting early does, and labels are needed only where predictions
differ."""

from enum import Enum
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from pacbound import Tally
from pacbound.errors import InvalidTypeError, InvalidValueError

CONFIDENCE = [0.9, 0.8, 0.7, 0.6]
PREDICTIONS = [[1, 1], [1, 2], [1, 2], [1, 2]]


def test_the_four_outcomes_are_told_apart() -> None:
    tally = Tally.from_arrays(
        confidences=CONFIDENCE, predictions=PREDICTIONS, labels=[5, 1, 2, 3], unseen_labels=0.25
    )
    assert tally.totals == {"agree": 1, "only_fast": 1, "only_slow": 1, "neither": 1}
    assert tally.cells[:, 0].tolist() == [int(c * 2**16) for c in reversed(CONFIDENCE)]


@pytest.mark.parametrize(
    "labels",
    [
        [None, 1, 2, 3],
        [np.nan, 1, 2, 3],
        np.ma.masked_array([9, 1, 2, 3], mask=[True, False, False, False]),
        np.array([None, 1, 2, 3], dtype=object),
    ],
)
def test_a_label_may_be_missing_where_all_predictions_agree(labels: Any) -> None:
    expected = Tally.from_arrays(
        confidences=CONFIDENCE, predictions=PREDICTIONS, labels=[5, 1, 2, 3], unseen_labels=0.25
    )
    assert (
        Tally.from_arrays(
            confidences=CONFIDENCE, predictions=PREDICTIONS, labels=labels, unseen_labels=0.25
        )
        == expected
    )


def test_a_label_missing_where_predictions_differ_is_refused_with_its_row() -> None:
    with pytest.raises(InvalidValueError, match=r"2 rows have no label.*first rows: 1, 3.*void"):
        Tally.from_arrays(
            confidences=CONFIDENCE, predictions=PREDICTIONS, labels=[1, None, 2, None]
        )


def test_class_names_are_compared_as_text() -> None:
    names = np.array([["cat", "cat"], ["cat", "dog"]])
    tally = Tally.from_arrays(confidences=[0.9, 0.8], predictions=names, labels=["ox", "dog"])
    assert tally.totals["only_slow"] == 1
    with pytest.raises(InvalidValueError, match="numbers on one side and names on the other"):
        Tally.from_arrays(confidences=[0.9, 0.8], predictions=names, labels=[1, 2])


def test_three_models_are_counted_jointly() -> None:
    tally = Tally.from_arrays(confidences=[[0.5, 1.0]], predictions=[[7, 1, 2]], labels=[2])
    assert tally.cells.tolist() == [[512, 1024]]
    assert tally.totals["only_slow|only_slow"] == 1


@pytest.mark.parametrize(
    ("confidences", "predictions", "message"),
    [
        (CONFIDENCE, [1, 1, 1, 1], r"expected \(n, M\)"),
        (CONFIDENCE, [[1], [1], [1], [1]], "not a cascade"),
        (CONFIDENCE, [[1, 2, 3]] * 4, "not a cascade"),
        (CONFIDENCE[:3], PREDICTIONS, "confidences has 3"),
        ([0.9, 0.8, np.nan, 0.6], PREDICTIONS, r"confidences\[:, 0\]\[2\] is nan"),
    ],
)
def test_shapes_that_are_no_cascade_are_refused(
    confidences: Any, predictions: Any, message: str
) -> None:
    with pytest.raises(InvalidValueError, match=message):
        Tally.from_arrays(confidences=confidences, predictions=predictions, labels=[1, 1, 2, 3])


@pytest.mark.parametrize("row", ["ab", b"ab", {"a": 1, "b": 2}, {"a", "b"}])
def test_what_is_no_row_of_answers_is_not_taken_apart_into_answers(row: Any) -> None:
    with pytest.raises(InvalidTypeError, match="text or mappings"):
        Tally.from_arrays(confidences=[0.5] * 3, predictions=[row] * 3, labels=["a"] * 3)


def test_labels_of_different_lengths_are_refused() -> None:
    with pytest.raises(InvalidTypeError, match="cannot be read as classes"):
        Tally.from_arrays(confidences=[0.5] * 2, predictions=[(1, 2)] * 2, labels=[[1], [1, 2]])


def test_members_of_an_enumeration_of_text_are_the_text_they_hold() -> None:
    class Animal(str, Enum):  # noqa: UP042 - str() of a StrEnum is its text anyway
        CAT = "cat"
        DOG = "dog"

    slow = [Animal.CAT, Animal.DOG, Animal.DOG]
    found = Tally.from_arrays(
        confidences=[0.5] * 3,
        predictions=list(zip(["cat", "dog", "cat"], slow, strict=True)),
        labels=["cat", "dog", "dog"],
    )
    assert found.totals == {"agree": 2, "only_fast": 0, "only_slow": 1, "neither": 0}


def test_the_column_of_an_exit_is_no_column_of_labels() -> None:
    frame = pa.table({"c": [0.5], "p": [1], "q": [2]})
    with pytest.raises(InvalidValueError, match="an exit would always be right"):
        Tally.from_frame(frame, confidences="c", predictions=["p", "q"], labels="p")
    with pytest.raises(InvalidValueError, match="every row would be right"):
        Tally.from_frame(frame, confidence="c", prediction="p", labels="p")
    # Against the slow model itself, whatever differs is lost.
    found = Tally.from_frame(frame, confidences="c", predictions=["p", "q"], labels="q")
    assert found.totals["only_slow"] == 1
