"""Cascades are counted by what exiting early does, and by whether a label is missing where it
matters."""

from enum import Enum
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import csv

from pacbound import Tally, certify_cascade
from pacbound.errors import InvalidTypeError, InvalidValueError, RepeatedSourceError
from pacbound.tally.questions.cascade import of_exit

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


def test_labels_left_out_count_as_labels_that_are_all_missing() -> None:
    rows: dict[str, Any] = {"confidence": CONFIDENCE, "prediction": PREDICTIONS}
    left_out = Tally.count("cascade", **rows)
    assert left_out == Tally.count("cascade", **rows, label=[None] * 4)
    assert left_out.totals["unlabelled"] == 3
    with pytest.raises(InvalidValueError, match="never equal: numbers on one side"):
        Tally.count("cascade", confidence=[0.9, 0.8], prediction=[[1, "a"], [2, "b"]])


def test_each_exit_of_a_row_without_a_label_agrees_or_is_unlabelled() -> None:
    predictions = [[1, 1, 1], [1, 1, 2], [1, 2, 1], [2, 1, 1], [1, 2, 3], [1, 2, 3]]
    tally = Tally.count(
        "cascade",
        confidence=np.full((6, 2), 0.5),
        prediction=predictions,
        label=[None] * 5 + [1],
    )
    assert {name: seen for name, seen in tally.totals.items() if seen} == {
        "agree|agree": 1,
        "unlabelled|unlabelled": 2,
        "agree|unlabelled": 1,
        "unlabelled|agree": 1,
        "only_fast|neither": 1,
    }
    assert len(tally.outcomes) == 4**2 + 2**2 - 1
    for place, expected in enumerate(([2, 1, 0, 0, 3], [2, 0, 0, 1, 3])):
        assert of_exit(tally.counts, place, 2).sum(axis=0).tolist() == expected


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


@pytest.mark.parametrize("exits", [1, 2])
def test_rows_of_files_and_frames_with_more_labels_are_not_added_up(
    tmp_path: Path, exits: int
) -> None:
    """Their files differ, and frames have no order: they are recognised by what needs no label."""
    rng = np.random.default_rng(2)

    def drawn() -> dict[str, Any]:
        predictions = {f"p{m}": rng.integers(0, 3, size=300) for m in range(exits + 1)}
        return {f"c{m}": rng.random(300) for m in range(exits)} | predictions

    def counted(columns: dict[str, Any], labels: int, name: str, order: Any) -> Tally:
        y = pa.array(columns["p0"][order], mask=np.arange(300) >= labels)
        table = pa.table({key: value[order] for key, value in columns.items()} | {"y": y})
        named: dict[str, Any] = {
            "confidence": [f"c{m}" for m in range(exits)],
            "prediction": [f"p{m}" for m in range(exits + 1)],
            "label": "y",
        }
        if name == "frame":
            return Tally.count("cascade", data=table, **named)
        csv.write_csv(table, tmp_path / f"{name}-{labels}.csv")
        return Tally.count("cascade", data=tmp_path / f"{name}-{labels}.csv", **named)

    here, there, straight = drawn(), drawn(), np.arange(300)
    first = counted(here, 50, "one", straight)
    other = counted(there, 80, "other", straight)
    for again in (
        counted(here, 100, "one", straight),
        counted(here, 0, "frame", straight),
        counted(here, 120, "shuffled", rng.permutation(300)),
    ):
        for whole in (first, first + other):
            with pytest.raises(RepeatedSourceError):
                whole + again
    certificate = certify_cascade(data=first, xi=0.5, delta=0.1)
    assert [name[:7] for name in certificate.provenance.sources] == ["sha256:"]


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


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ("ab", "names a column, and there is no table"),
        (b"ab", "text or mappings"),
        ({"a": 1, "b": 2}, "text or mappings"),
        ({"a", "b"}, "text or mappings"),
    ],
)
def test_what_is_no_row_of_answers_is_not_taken_apart_into_answers(row: Any, message: str) -> None:
    with pytest.raises(InvalidTypeError, match=message):
        Tally.count("cascade", confidence=[0.5] * 3, prediction=[row] * 3, label=["a"] * 3)


def test_labels_of_different_lengths_are_refused() -> None:
    with pytest.raises(InvalidTypeError, match="cannot be read as classes"):
        Tally.count("cascade", confidence=[0.5] * 2, prediction=[(1, 2)] * 2, label=[[1], [1, 2]])


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


def test_the_column_of_an_exit_is_no_column_of_labels() -> None:
    frame = pa.table({"c": [0.5], "p": [1], "q": [2]})
    with pytest.raises(InvalidValueError, match="an exit would always be right"):
        Tally.count("cascade", data=frame, confidence="c", prediction=["p", "q"], label="p")
    with pytest.raises(InvalidValueError, match="every row would be right"):
        Tally.count("calibration", data=frame, confidence="c", prediction="p", label="p")
    # Against the slow model itself, whatever differs is lost.
    found = Tally.count("cascade", data=frame, confidence="c", prediction=["p", "q"], label="q")
    assert found.totals["only_slow"] == 1
