"""Cascades are counted by what exiting early does, and labels are needed only where predictions
differ."""

from typing import Any

import numpy as np
import pytest

from pacbound import Tally
from pacbound.errors import InvalidValueError

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
