"""Labels that cannot be right are refused, with the likeliest cause, and the user has the last
word."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

from pacbound import Tally, calibrate, certify_cascade
from pacbound.errors import InvalidTypeError, InvalidValueError
from pacbound.tally.classes import class_of_text

ROWS = 600


def cascade(fast: Any, slow: Any, labels: Any, **options: Any) -> Tally:
    """Two models whose predictions and labels are given for a few rows, repeated."""
    times = ROWS // len(labels)
    predictions = [list(pair) for pair in zip(fast, slow, strict=True)] * times
    return Tally.count(
        "cascade",
        confidence=[0.9] * (times * len(labels)),
        prediction=predictions,
        label=list(labels) * times,
        **options,
    )


# ---- labels that never match what is predicted


@pytest.mark.parametrize(
    ("labels", "cause"),
    [
        (["DE", "US"], "upper and lower case"),
        ([" de", " us"], "spaces around names"),
        (["['de']", "['us']"], "brackets or quotes"),
        ([0, 1], "numbers on one side and names on the other"),
        (["Germany", "America"], "another list of classes"),
    ],
)
def test_labels_without_a_class_in_common_with_the_predictions_are_refused(
    labels: list[Any], cause: str
) -> None:
    with pytest.raises(InvalidValueError, match=f"have no class in common.*'de', 'us'.*{cause}"):
        cascade(["de", "us"], ["us", "de"], labels)
    predictions = ["de", "us"] * 300
    with pytest.raises(InvalidValueError, match=f"no class in common.*{cause}"):
        calibrate([0.9] * 600, prediction=predictions, label=labels * 300, delta=0.05)


@pytest.mark.parametrize(
    ("predictions", "labels", "cause"),
    [
        (["01", "02"], ["1", "2"], "leading zeros"),
        ([1, 2], ["1", "2"], "text of digits"),
        (["caf\u00e9", "th\u00e9"], ["cafe\u0301", "the\u0301"], "Unicode forms"),
    ],
)
def test_the_likeliest_cause_is_named(
    predictions: list[Any], labels: list[Any], cause: str
) -> None:
    with pytest.raises(InvalidValueError, match=cause):
        cascade(predictions, predictions[::-1], labels)


def test_a_label_that_no_model_predicts_is_refused_where_predictions_differ() -> None:
    fast, slow = ["a", "a", "a"], ["a", "b", "b"]
    with pytest.raises(
        InvalidValueError,
        match=r"no model predicts in any row: 'c' \(200 rows\); 200 of 600 .*unseen_labels=0.34",
    ):
        cascade(fast, slow, ["a", "b", "c"])
    # Where the models agree, the label makes no difference.
    assert cascade(fast, slow, ["c", "b", "a"]).totals["agree"] == 200


def test_a_share_of_unseen_labels_may_be_allowed_and_no_more() -> None:
    fast, slow, labels = ["a", "a", "a"], ["a", "b", "b"], ["a", "b", "c"]
    assert cascade(fast, slow, labels, unseen_labels=1 / 3).totals["neither"] == 200
    with pytest.raises(InvalidValueError, match="no model predicts"):
        cascade(fast, slow, labels, unseen_labels=0.33)
    for share in (-0.1, 1.1):
        with pytest.raises(InvalidValueError, match="not a share of the rows"):
            cascade(fast, slow, labels, unseen_labels=share)


def test_a_model_of_another_spelling_is_refused_although_the_others_match() -> None:
    """The slow model would be wrong in every such row, and the fast one would seem to gain."""
    with pytest.raises(InvalidValueError, match=r"prediction\[:, 1\] holds 'US'.*'us'.*case"):
        cascade(["us", "de"], ["US", "de"], ["us", "de"])
    with pytest.raises(InvalidValueError, match="never equal: numbers on one side"):
        cascade(["us", "de"], [1, 2], ["us", "de"])
    listed = cascade(["us", "de"], ["US", "de"], ["us", "de"], classes=["us", "US", "de"])
    assert listed.totals == {"agree": 300, "only_fast": 300} | NO_MORE


# ---- a list of classes


def test_a_list_of_classes_is_checked_strictly() -> None:
    fast, slow, labels = ["a", "a", "a"], ["a", "b", "b"], ["a", "b", "c"]
    assert cascade(fast, slow, labels, classes=["a", "b", "c"]).totals["neither"] == 200
    with pytest.raises(InvalidValueError, match=r"label\[2\] is 'c'.*not one of the classes"):
        cascade(fast, slow, labels, classes=["a", "b"])
    with pytest.raises(InvalidValueError, match=r"prediction\[:, 1\]\[1\] is 'b'"):
        cascade(fast, slow, labels, classes=["a", "c"])
    with pytest.raises(InvalidValueError, match="classes is empty"):
        cascade(fast, slow, labels, classes=[])


def test_a_listed_class_may_look_like_a_missing_value() -> None:
    fast, slow, labels = ["NA", "none"], ["NA", "EU"], ["NA", "EU"]
    with pytest.raises(InvalidValueError, match="usually a code for a missing value"):
        cascade(fast, slow, labels)
    assert cascade(fast, slow, labels, classes=["NA", "none", "EU"]).totals["agree"] == 300


# ---- what is missing

NO_MORE = {"only_slow": 0, "neither": 0, "unlabelled": 0}
GAPS: dict[str, Any] = {
    "None": ["a", None],
    "NaN": ["a", float("nan")],
    "NA of pandas": ["a", pd.NA],
    "a masked array": np.ma.masked_array(["a", "x"], mask=[False, True]),
    "a Series": pd.Series(["a", None], dtype="string"),
    "StringDType": np.array(["a", None], dtype=np.dtypes.StringDType(na_object=None)),
    "StringDType with NaN": np.array(["a", np.nan], dtype=np.dtypes.StringDType(na_object=np.nan)),
    "empty text": ["a", ""],
}


@pytest.mark.parametrize("labels", GAPS.values(), ids=GAPS)
def test_a_missing_label_is_missing_however_it_is_held(labels: Any) -> None:
    confidences = [0.9, 0.8]
    counted = Tally.count(
        "cascade",
        confidence=confidences,
        prediction=[["a", "b"], ["b", "b"]],
        label=labels,
        classes=["a", "b"],
    )
    assert counted.totals == {"agree": 1, "only_fast": 1} | NO_MORE
    differing = Tally.count(
        "cascade", confidence=confidences, prediction=[["a", "b"], ["b", "a"]], label=labels
    )
    assert differing.totals == {"agree": 0, "only_fast": 1} | NO_MORE | {"unlabelled": 1}


@pytest.mark.parametrize("gaps", GAPS.values(), ids=GAPS)
def test_a_missing_prediction_is_refused_however_it_is_held(gaps: Any) -> None:
    with pytest.raises(InvalidValueError, match=r"prediction\[1\] is missing"):
        Tally.count("calibration", confidence=[0.9, 0.8], prediction=gaps, label=["a", "a"])


@pytest.mark.parametrize("code", ["NA", "nan", "NaN", "None", "null", "NULL", "?", "n/a", "<NA>"])
def test_a_code_for_a_missing_value_is_refused_unless_it_is_named(code: str) -> None:
    fast, slow, labels = ["a", "a"], ["b", "a"], ["a", code]
    with pytest.raises(
        InvalidValueError, match=r"label\[1\] is .* \(300 such values\), usually a code for a"
    ):
        cascade(fast, slow, labels)
    assert cascade(fast, slow, labels, missing=code).totals["only_fast"] == 300
    assert cascade(fast, slow, labels, missing=["-", code]).totals["only_fast"] == 300


def test_options_about_classes_are_refused_where_there_are_none() -> None:
    given: dict[str, Any] = {"confidence": [0.5], "correct": [True]}
    for option in ({"classes": ["a"]}, {"missing": "NA"}, {"unseen_labels": 0.5}):
        with pytest.raises(InvalidTypeError, match="none are counted here"):
            Tally.count("calibration", **given, **option)


# ---- the rule itself


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("1", 1), ("-1", -1), ("-0", 0), ("1.0", 1), ("1.", 1), ("1.000e+00", 1), ("1e2", 100),
        ("true", 1), ("FALSE", 0), ("01", "01"), ("+1", "+1"), (" 1", " 1"), ("1_0", "1_0"),
        ("0x1", "0x1"), ("a", "a"), ("", None), ("9" * 30, int("9" * 30)), ("9" * 500, "9" * 500),
        ("yes", "yes"), ("٣", "٣"),
    ],
)  # fmt: skip
def test_text_in_files_without_types_reads_as_a_number_or_as_itself(text: str, found: Any) -> None:
    assert class_of_text(text) == found
    assert type(class_of_text(text)) is type(found)


def test_half_a_character_is_no_class_because_no_file_could_be_read_again() -> None:
    confidence, half = [0.9, 0.8], "\ud83d"
    for options in ({"classes": ["a", half]}, {"missing": half}):
        with pytest.raises(InvalidValueError, match=r"holds .*half a character"):
            certify_cascade(confidence, [["a", "b"]] * 2, xi=0.5, delta=0.1, **options)
    for made in (
        lambda: certify_cascade(confidence, [["a", half]] * 2, xi=0.5, delta=0.1),
        lambda: calibrate(confidence, prediction=["a", half], label=["a", "a"], delta=0.1),
    ):
        with pytest.raises(
            InvalidValueError, match=r"\(. such values\), text with half a character"
        ):
            made()
