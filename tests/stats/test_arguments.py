"""Wrong arguments raise, and say what to do."""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pacbound import (
    PACCalibrator,
    Tally,
    binomial_lower,
    binomial_upper,
    calibrate,
    certify_abstention,
    certify_cascade,
    certify_false_alarms,
    certify_recall,
    certify_shield,
    certify_together,
    plan_from_pilot,
    planned_looks,
    trials_needed,
)
from pacbound.errors import InvalidTypeError, InvalidValueError, PacboundError
from pacbound.stats import arguments


@pytest.mark.parametrize(
    "delta", [0.05, np.float32(0.05), np.array(0.05), Decimal("0.05"), Fraction(1, 20), 5e-324]
)
def test_any_single_number_is_a_failure_probability(delta: Any) -> None:
    value = arguments.failure_probability(delta)
    assert type(value) is float
    assert value == float(delta)


@pytest.mark.parametrize("delta", [0, 1, 1.2, -0.05, math.inf, -math.inf, math.nan])
def test_numbers_outside_the_unit_interval_are_no_failure_probability(delta: float) -> None:
    with pytest.raises(InvalidValueError, match="not a failure probability"):
        arguments.failure_probability(delta)


@pytest.mark.parametrize(
    "delta",
    [
        "0.1",
        b"0.1",
        np.array("0.1"),
        True,
        np.True_,
        None,
        [0.1],
        (0.1, 0.2),
        object(),
        1j,
        10**400,
        [[1], [1, 2]],
    ],
)
def test_what_is_no_single_number_is_no_failure_probability(delta: Any) -> None:
    with pytest.raises(InvalidTypeError):
        arguments.failure_probability(delta)


def test_error_names_the_argument_and_the_remedy() -> None:
    with pytest.raises(InvalidValueError) as caught:
        arguments.failure_probability(1.2)
    expected = (
        "delta=1.2 is not a failure probability: expected 0 < delta < 1. For a 95 % guarantee pass "
        "delta=0.05."
    )
    assert str(caught.value) == expected
    with pytest.raises(InvalidValueError, match="level=2 is not"):
        arguments.failure_probability(2, "level")


def test_errors_are_both_ours_and_the_standard_ones() -> None:
    with pytest.raises(PacboundError):
        arguments.failure_probability(2)
    with pytest.raises(ValueError, match="not a failure probability"):
        arguments.failure_probability(2)
    with pytest.raises(TypeError, match="expected one number"):
        arguments.failure_probability("2")


def test_failure_probabilities_keep_their_shape() -> None:
    assert arguments.failure_probabilities(0.1).shape == ()
    assert arguments.failure_probabilities([[0.1], [0.2]]).shape == (2, 1)
    assert arguments.failure_probabilities(np.array([0.5], np.float32)).dtype == np.float64


@pytest.mark.parametrize("delta", [[0.1, 0.0], [1.0], [0.1, math.inf], [math.nan], [2]])
def test_one_bad_failure_probability_spoils_all(delta: list[float]) -> None:
    with pytest.raises(InvalidValueError):
        arguments.failure_probabilities(delta)


@pytest.mark.parametrize("delta", [["0.1"], [None], [True], [[0.1], [0.1, 0.2]]])
def test_failure_probabilities_are_numbers(delta: Any) -> None:
    with pytest.raises(InvalidTypeError):
        arguments.failure_probabilities(delta)


def test_tolerated_rates_start_at_zero_and_end_below_one() -> None:
    assert arguments.tolerated_rate(0) == 0.0
    assert arguments.tolerated_rate(np.float64(0.02)) == 0.02
    for xi in (1, 1.5, -0.01, math.nan):
        with pytest.raises(InvalidValueError, match="xi"):
            arguments.tolerated_rate(xi)


def test_probabilities_include_both_ends() -> None:
    assert arguments.probabilities([0, 1], "rate").tolist() == [0.0, 1.0]
    for bad in (-0.1, 1.1, math.inf, math.nan):
        with pytest.raises(InvalidValueError, match="rate holds"):
            arguments.probabilities([0.5, bad], "rate")


@pytest.mark.parametrize(
    "values",
    [[1, 2], np.array([1, 2], np.uint8), [1.0, 2.0], np.array([1, 2], np.float16), (1, 2)],
)
def test_whole_numbers_become_int64(values: Any) -> None:
    counts = arguments.whole_numbers(values, "trials")
    assert counts.dtype == np.int64
    assert counts.tolist() == [1, 2]


def test_whole_numbers_are_exact_up_to_the_largest_count() -> None:
    assert int(arguments.whole_numbers(2**53, "trials")) == 2**53
    for bad in (2**53 + 1, np.uint64(2**63 + 5), 1e30, -1, np.int64(-(2**62))):
        with pytest.raises(InvalidValueError, match=r"expected 0 to 2\*\*53"):
            arguments.whole_numbers([1, bad], "trials")


@pytest.mark.parametrize("values", [1.5, math.nan, math.inf, [3, 0.1]])
def test_fractions_are_not_rounded_to_counts(values: Any) -> None:
    with pytest.raises(InvalidValueError, match="Pass counts, not rates"):
        arguments.whole_numbers(values, "trials")


@pytest.mark.parametrize(
    "values",
    [True, [True, False], "3", ["3"], None, [1, None], object(), 10**30, 1j, [[1], [1, 2]]],
)
def test_booleans_text_and_objects_are_not_counts(values: Any) -> None:
    with pytest.raises(InvalidTypeError, match="trials"):
        arguments.whole_numbers(values, "trials")


def test_masked_entries_are_not_counts() -> None:
    with pytest.raises(InvalidValueError, match="masked"):
        arguments.whole_numbers(np.ma.masked_array([1, 2], [False, True]), "trials")


def test_one_whole_number_is_one_int() -> None:
    assert type(arguments.whole_number(np.int64(3), "tests")) is int
    with pytest.raises(InvalidTypeError, match="expected one whole number"):
        arguments.whole_number([3], "tests")
    with pytest.raises(
        InvalidValueError, match="tests holds 0, which is not a count: expected 1 to"
    ):
        arguments.whole_number(0, "tests", least=1)


def test_successes_and_trials_share_a_shape() -> None:
    hits, attempts = arguments.successes_of_trials([[1], [2]], [5, 6, 7])
    assert hits.shape == attempts.shape == (2, 3)


def test_more_successes_than_trials_name_the_first_such_pair() -> None:
    with pytest.raises(
        InvalidValueError,
        match=r"7 successes of 6 trials cannot be.*Check the order of the arguments",
    ):
        arguments.successes_of_trials([1, 7, 9], [5, 6, 7])


CLAIMS: dict[str, Callable[[float], Any]] = {
    "calibrate": lambda delta: calibrate([0.5], [True], delta=delta),
    "abstention": lambda delta: certify_abstention([0.5], [True], xi=0.1, delta=delta),
    "recall": lambda delta: certify_recall([0.5], [True], target=0.9, delta=delta),
    "false alarms": lambda delta: certify_false_alarms([0.5], [True], xi=0.1, delta=delta),
    "shield": lambda delta: certify_shield([0.5], [True], xi=0.1, delta=delta),
    "cascade": lambda delta: certify_cascade([0.5], [[1, 1]], [1], xi=0.1, delta=delta),
    "together": lambda delta: certify_together(
        {"a": partial(calibrate, [0.5], [True])}, delta=delta
    ),
    "calibrator": lambda delta: PACCalibrator(delta=delta).fit([[0.5, 0.5]], [1]),
    "from a tally": lambda delta: calibrate(
        data=Tally.count("calibration", confidence=[0.5], correct=[True]), delta=delta
    ),
    "planned looks": lambda delta: planned_looks(0.1, delta=delta, looks=[500]),
    "trials": lambda delta: trials_needed(0.1, 0.01, delta=delta),
    "pilot": lambda delta: plan_from_pilot(
        Tally.count("calibration", confidence=[0.5], correct=[True]), delta=delta
    ),
}


@pytest.mark.parametrize("claim", CLAIMS)
def test_a_confidence_passed_as_delta_of_a_claim_is_refused(claim: str) -> None:
    too_large: list[Any] = [0.95, np.float32(0.99), 0.5000001]
    for delta in too_large:
        with pytest.raises(
            InvalidValueError,
            match=r"chance that the claim is wrong; for 95 % confidence pass (delta=)?0\.05",
        ):
            CLAIMS[claim](delta)
    assert not Path("never-written.json").exists()


def test_a_bound_may_be_asked_for_at_any_level() -> None:
    assert binomial_upper(3, 10, delta=0.95) < 0.3 < binomial_lower(3, 10, delta=0.95)
    assert calibrate([0.5], [True], delta=0.5).delta == 0.5
