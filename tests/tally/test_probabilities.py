"""Counting tables of class probabilities: each scope, and rows whose class has no column."""

from typing import Any

import numpy as np
import pytest

from pacbound.errors import InvalidTypeError, InvalidValueError
from pacbound.tally import EqualWidthBins
from pacbound.tally.probabilities import count_probabilities

SCOPES: list[Any] = ["top", "per-class", "all-labels"]
TABLE = [[0.9, 0.1], [0.2, 0.8], [0.6, 0.4]]


@pytest.mark.parametrize("scope", SCOPES)
def test_a_class_without_a_column_is_refused_unless_asked_for(scope: Any) -> None:
    with pytest.raises(
        InvalidValueError, match=r"labels\[1\] is -1: expected a class index from 0 to 1\.$"
    ):
        count_probabilities(TABLE, [0, -1, 0], grid=EqualWidthBins(2), scope=scope)


@pytest.mark.parametrize("labels", [[0, -2, 0], [0, 2, 0]])
def test_with_unseen_only_minus_one_stands_for_no_column(labels: list[int]) -> None:
    with pytest.raises(
        InvalidValueError,
        match=r"labels\[1\] is -?2: expected a class index from 0 to 1, or -1 for none",
    ):
        count_probabilities(TABLE, labels, grid=EqualWidthBins(2), unseen=True)


@pytest.mark.parametrize("dtype", ["int8", "int64", "float32"])
@pytest.mark.parametrize(
    ("scope", "wrong", "right"),
    [
        ("top", [0, 2], [0, 1]),
        ("per-class", [[0, 1], [0, 1]], [[0, 1], [0, 0]]),
        ("all-labels", [[1, 1], [2, 1]], [[0, 1], [0, 0]]),
    ],
)
def test_no_label_is_right_in_a_row_whose_class_has_no_column(
    scope: Any, wrong: Any, right: Any, dtype: str
) -> None:
    tally = count_probabilities(
        TABLE, np.array([0, -1, -1], dtype=dtype), grid=EqualWidthBins(2), scope=scope, unseen=True
    )
    assert tally.rows == 3
    counts = tally.dense() if scope != "top" else tally.dense()[0]
    assert np.array_equal(counts[..., 0], wrong)
    assert np.array_equal(counts[..., 1], right)


@pytest.mark.parametrize("scope", SCOPES)
def test_unseen_changes_nothing_where_every_class_has_a_column(scope: Any) -> None:
    rng = np.random.default_rng(0)
    table, labels = rng.dirichlet(np.ones(70), size=500), rng.integers(70, size=500)
    counts = [
        count_probabilities(table, labels, grid=EqualWidthBins(5), scope=scope, unseen=unseen)
        for unseen in (False, True)
    ]
    assert counts[0] == counts[1]
    assert counts[0].sources == counts[1].sources


@pytest.mark.parametrize(
    "labels", [["cat", "dog", "cat"], [True, False, True], [0.5, 1.0, 0.0], [np.nan, 0, 1]]
)
def test_labels_that_are_no_column_indices_are_refused(labels: Any) -> None:
    with pytest.raises(
        (InvalidTypeError, InvalidValueError),
        match=r"labels has dtype .*class indices 0 to 1.*PACClassifier",
    ):
        count_probabilities(TABLE, labels, grid=EqualWidthBins(2))
