"""What may be a score, a flag or a label; everything else raises with the value, the rule and the
remedy."""

from typing import Any

import numpy as np
import pytest

from pacbound import Tally
from pacbound.errors import InvalidTypeError, InvalidValueError
from pacbound.tally import top_label
from pacbound.tally.columns import as_names


@pytest.mark.parametrize(
    ("confidence", "message"),
    [
        ([0.5, float("nan")], r"confidence\[1\] is nan \(1 such values\).*voids the guarantee"),
        ([0.5, float("inf")], r"confidence\[1\] is inf.*logits"),
        ([-0.1, 0.5], r"confidence\[0\] is -0.1.*log-probabilities or logits"),
        ([0.5, 1.1], r"confidence\[1\] is 1.1.*logits or percentages"),
        ([0.5, 1.00001], r"confidence\[1\] is 1.00001.*clip to 1, np.minimum\(score, 1\)"),
        ([1.00001, 1.1], r"confidence\[0\] is 1.00001.*logits or percentages"),
        ([0.5, 1.00001], r"confidence\[1\]"),
        ([97, 3], r"confidence\[0\] is 97.*divide by 100"),
        ([[0.5, 0.5], [0.1, 0.9]], r"shape \(2, 2\).*PACCalibrator"),
        (0.5, r"shape \(\)"),
        ([0.5, None], "1 missing values, the first in row 1: .* voids the guarantee"),
        (np.ma.masked_array([0.5, 0.6], mask=[False, True]), "1 masked values: .* voids the"),
    ],
)
def test_values_that_are_no_scores_are_refused(confidence: Any, message: str) -> None:
    with pytest.raises(InvalidValueError, match=message):
        Tally.count("calibration", confidence=confidence, correct=[1, 0])


@pytest.mark.parametrize(
    ("correct", "error", "message"),
    [
        ([2, 0], InvalidValueError, r"correct\[0\] is 2.*predictions == labels"),
        ([0.5, 0], InvalidValueError, r"correct\[0\] is 0.5"),
        ([float("nan"), 0], InvalidValueError, r"correct\[0\] is nan"),
        (["yes", "no"], InvalidTypeError, "booleans"),
        ([1], InvalidValueError, "confidence has 2, correct has 1"),
        ([None, True], InvalidValueError, "missing"),
        (np.array([True, "no"], dtype=object), InvalidTypeError, "bool, str"),
    ],
)
def test_outcomes_must_be_true_or_false(correct: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        Tally.count("calibration", confidence=[0.5, 0.6], correct=correct)


def test_a_float32_softmax_a_hair_above_one_counts_as_one() -> None:
    confidence = np.array([np.nextafter(np.float32(1), np.float32(2))])
    assert confidence[0] > 1
    assert Tally.count("calibration", confidence=confidence, correct=[1]) == Tally.count(
        "calibration", confidence=[1.0], correct=[1]
    )


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "longdouble", ">f8"])
def test_every_float_type_counts_the_same(dtype: str) -> None:
    values = np.array([0.0, 0.25, 0.5, 1.0])
    expected = Tally.count("calibration", confidence=values, correct=[1, 0, 1, 0])
    assert (
        Tally.count("calibration", confidence=values.astype(dtype), correct=[1, 0, 1, 0])
        == expected
    )


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("shape", [(0, 3), (1, 2), (9000, 3), (9000, 70)])
def test_the_top_label_is_argmax_and_its_probability(order: Any, shape: tuple[int, int]) -> None:
    rng = np.random.default_rng(0)
    probabilities = np.asarray(np.round(rng.random(shape), 1), order=order)
    confidence, prediction = top_label(probabilities)
    assert (prediction == (probabilities.argmax(axis=1) if len(probabilities) else [])).all()
    assert (confidence == (probabilities.max(axis=1) if len(probabilities) else [])).all()


@pytest.mark.parametrize("classes", [10, 100])
@pytest.mark.parametrize("value", [np.nan, np.inf, 1.5])
def test_a_bad_probability_raises_wherever_it_stands(classes: int, value: float) -> None:
    probabilities = np.full((5000, classes), 1 / classes)
    probabilities[4321, classes - 2] = value
    with pytest.raises(InvalidValueError, match="4321"):
        top_label(probabilities)


@pytest.mark.parametrize(
    ("groups", "error", "message"),
    [
        ([1.5, 2.0], InvalidValueError, r"groups\[0\] is 1.5"),
        (["a"], InvalidValueError, "groups has 1"),
        ([None, "a"], InvalidValueError, "missing"),
        (["a", 1], InvalidTypeError, "int, str|dtype"),
        ({}, InvalidValueError, "at least one"),
        ({"a": [1]}, InvalidValueError, "has 1"),
    ],
)
def test_groups_must_be_names(groups: Any, error: type[Exception], message: str) -> None:
    if groups == ["a", 1]:
        groups = np.array(groups, dtype=object)
    with pytest.raises(error, match=message):
        Tally.count("calibration", confidence=[0.5, 0.6], correct=[1, 0], groups=groups)


def test_floats_that_do_not_tell_integers_apart_name_no_groups() -> None:
    for name in (1e300, 2.0**53, float("inf")):
        with pytest.raises(InvalidValueError, match=r"groups\[1\] is"):
            as_names([1.0, name, 1e301], "groups")
