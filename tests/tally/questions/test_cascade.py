"""Cascades are counted by what exiting early does, and by whether a label is missing where it
matters."""

from enum import Enum
from typing import Any

import numpy as np
import pytest

from pacbound import Tally
from pacbound.errors import InvalidValueError, RepeatedSourceError

CONFIDENCE = [0.9, 0.8, 0.7, 0.6]
PREDICTIONS = [[1, 1], [1, 2], [1, 2], [1, 2]]


def test_the_five_outcomes_are_told_apart() -> None:
    tally = Tally.count(
        "cascade",
        confidence=CONFIDENCE,
        prediction=PREDICTIONS,
        label=[5, 1, 2, 3],
        unseen_labels=0.25,
    )
    four = {"agree": 1, "only_fast": 1, "only_slow": 1, "neither": 1}
    assert tally.totals == {**four, "unlabelled": 0}
    without = Tally.count(
        "cascade", confidence=CONFIDENCE, prediction=PREDICTIONS, label=[5, 1, 2, None]
    )
    assert without.totals == {**four, "neither": 0, "unlabelled": 1}
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
    expected = Tally.count(
        "cascade",
        confidence=CONFIDENCE,
        prediction=PREDICTIONS,
        label=[5, 1, 2, 3],
        unseen_labels=0.25,
    )
    assert (
        Tally.count(
            "cascade",
            confidence=CONFIDENCE,
            prediction=PREDICTIONS,
            label=labels,
            unseen_labels=0.25,
        )
        == expected
    )


@pytest.mark.parametrize("scores", [np.linspace(0, 1, 400), np.full(400, 0.5)])
def test_the_same_rows_with_more_labels_are_not_added_up(scores: Any) -> None:
    rng = np.random.default_rng(0)
    predictions = rng.integers(0, 2, size=(400, 2))
    labels = predictions[:, 1].astype(object)
    rows: dict[str, Any] = {"confidence": scores, "prediction": predictions}
    few, none = labels.copy(), Tally.count("cascade", **rows)
    few[50:] = None
    some = Tally.count("cascade", **rows, label=few)
    full = Tally.count("cascade", **rows, label=labels)
    for one, other in ((none, some), (some, full), (none, full)):
        with pytest.raises(RepeatedSourceError):
            one + other


def test_rows_told_apart_by_labels_alone_may_be_added() -> None:
    """They are recognised by what stays when labels come, and here that is all alike."""
    rows: dict[str, Any] = {"confidence": np.full(300, 0.5), "prediction": [[0, 1]] * 300}
    rng = np.random.default_rng(1)
    parts = [
        Tally.count("cascade", **rows, label=rng.integers(0, 2, size=300), classes=[0, 1])
        for _ in range(2)
    ]
    assert (parts[0] + parts[1]).rows == 600


def test_class_names_are_compared_as_text() -> None:
    names = np.array([["cat", "cat"], ["cat", "dog"]])
    tally = Tally.count("cascade", confidence=[0.9, 0.8], prediction=names, label=["ox", "dog"])
    assert tally.totals["only_slow"] == 1
    with pytest.raises(InvalidValueError, match="numbers on one side and names on the other"):
        Tally.count("cascade", confidence=[0.9, 0.8], prediction=names, label=[1, 2])


def test_three_models_are_counted_jointly() -> None:
    tally = Tally.count("cascade", confidence=[[0.5, 1.0]], prediction=[[7, 1, 2]], label=[2])
    assert tally.cells.tolist() == [[512, 1024]]
    assert tally.totals["only_slow|only_slow"] == 1


@pytest.mark.parametrize(
    ("confidences", "predictions", "message"),
    [
        (CONFIDENCE, [1, 1, 1, 1], r"expected \(n, M\)"),
        (CONFIDENCE, [[1], [1], [1], [1]], "not a cascade"),
        (CONFIDENCE, [[1, 2, 3]] * 4, "not a cascade"),
        (CONFIDENCE[:3], PREDICTIONS, "confidence has 3"),
        ([0.9, 0.8, np.nan, 0.6], PREDICTIONS, r"confidence\[:, 0\]\[2\] is nan"),
    ],
)
def test_shapes_that_are_no_cascade_are_refused(
    confidences: Any, predictions: Any, message: str
) -> None:
    with pytest.raises(InvalidValueError, match=message):
        Tally.count("cascade", confidence=confidences, prediction=predictions, label=[1, 1, 2, 3])


def test_members_of_an_enumeration_of_text_are_the_text_they_hold() -> None:
    class Animal(str, Enum):  # noqa: UP042 - str() of a StrEnum is its text anyway
        CAT = "cat"
        DOG = "dog"

    slow = [Animal.CAT, Animal.DOG, Animal.DOG]
    found = Tally.count(
        "cascade",
        confidence=[0.5] * 3,
        prediction=list(zip(["cat", "dog", "cat"], slow, strict=True)),
        label=["cat", "dog", "dog"],
    )
    assert found.totals == {
        "agree": 2,
        "only_fast": 0,
        "only_slow": 1,
        "neither": 0,
        "unlabelled": 0,
    }
