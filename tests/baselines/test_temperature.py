"""Temperature scaling finds the optimum, stops at its limits where there is none, and refuses what
it cannot fit."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import optimize, special
from tests.products import standing_for

from pacbound.baselines import (
    HIGHEST_TEMPERATURE,
    LOWEST_TEMPERATURE,
    PROBABILITY_FLOOR,
    TemperatureScaling,
    optimal_temperature,
)
from pacbound.errors import InvalidValueError


def independent_optimum(logits: Any, labels: Any) -> float:
    """The root of the derivative in the logarithm of beta, by Brent's method on sums that do not
    round."""
    table = np.asarray(logits, dtype=np.float64)
    told = table[np.arange(len(table)), labels]

    def slope(log_beta: float) -> float:
        shares = special.softmax(math.exp(log_beta) * table, axis=1)
        return math.fsum((shares * (table - told[:, None])).ravel().tolist())

    return math.exp(-optimize.brentq(slope, math.log(1e-6), math.log(1e6), xtol=1e-14, rtol=1e-14))


def sampled(
    rng: np.random.Generator, rows: int, classes: int, temperature: float
) -> tuple[Any, Any]:
    """Logits, and labels drawn from their softmax at `temperature`."""
    logits = 4 * rng.normal(size=(rows, classes))
    return logits, (logits / temperature + rng.gumbel(size=logits.shape)).argmax(axis=1)


@pytest.mark.parametrize("temperature", standing_for([0.3, 1.0, 2.5, 9.0], [2.5], rest="long"))
@pytest.mark.parametrize(("rows", "classes"), [(300, 2), (2000, 10), (400, 1000)])
def test_temperature_is_within_a_millionth_of_an_independent_optimum(
    rows: int, classes: int, temperature: float
) -> None:
    logits, labels = sampled(np.random.default_rng([rows, classes]), rows, classes, temperature)
    found = TemperatureScaling().fit(logits, labels).temperature_
    assert found == pytest.approx(independent_optimum(logits, labels), rel=1e-8)


@pytest.mark.parametrize("scale", [1e-4, 1e-2, 1e3])
def test_logits_scaled_by_a_factor_have_a_temperature_scaled_by_it(scale: float) -> None:
    logits, labels = sampled(np.random.default_rng(4), 1000, 5, 2.0)
    assert optimal_temperature(scale * logits, labels) == pytest.approx(
        scale * optimal_temperature(logits, labels), rel=1e-8
    )


@given(
    st.lists(
        st.tuples(st.floats(-60, 60), st.floats(-60, 60), st.floats(-60, 60), st.integers(0, 2)),
        min_size=2,
        max_size=12,
    )
)
def test_no_other_temperature_makes_the_labels_likelier(
    rows: list[tuple[float, float, float, int]],
) -> None:
    logits, labels = np.array([row[:3] for row in rows]), np.array([row[3] for row in rows])
    found = optimal_temperature(logits, labels)
    # Shifted before dividing, or the rounding of 60 / 1e-6 hides the difference between logits that
    # are nearly equal.
    shifted = logits - logits.max(axis=1, keepdims=True)

    def loss(temperature: float) -> float:
        return float(
            -special.log_softmax(shifted / temperature, axis=1)[np.arange(len(rows)), labels].mean()
        )

    others = np.append(
        np.geomspace(LOWEST_TEMPERATURE, HIGHEST_TEMPERATURE, 60),
        found * np.array([0.9, 0.999, 1.001, 1.1]),
    )
    others = others[(others >= LOWEST_TEMPERATURE) & (others <= HIGHEST_TEMPERATURE)]
    assert loss(found) <= min(loss(other) for other in others) * (1 + 1e-12) + 1e-12


def test_labels_that_all_have_the_highest_logit_give_the_lowest_temperature() -> None:
    logits = np.array([[5.0, 1.0, 0.0], [0.0, 0.0, 0.5], [2.0, 2.0, -1.0]])
    scaling = TemperatureScaling().fit(logits, [0, 2, 1])
    assert scaling.temperature_ == LOWEST_TEMPERATURE == 1e-6
    np.testing.assert_array_equal(
        scaling.predict_proba(logits), [[1, 0, 0], [0, 0, 1], [0.5, 0.5, 0]]
    )


def test_a_probability_of_zero_counts_as_the_floor() -> None:
    zeros, floored = (
        np.array([[1.0, 0.0], [0.0, 1.0]]),
        np.array([[1.0, PROBABILITY_FLOOR], [PROBABILITY_FLOOR, 1.0]]),
    )
    rows, labels = [0, 0, 0, 1], [0, 0, 1, 1]
    first = TemperatureScaling(inputs="probabilities").fit(zeros[rows], labels)
    assert (
        first.temperature_
        == TemperatureScaling(inputs="probabilities").fit(floored[rows], labels).temperature_
    )
    assert first.temperature_ == pytest.approx(-math.log(PROBABILITY_FLOOR) / math.log(3), rel=1e-9)


@pytest.mark.parametrize(
    ("inputs", "scores", "labels", "message"),
    [
        ("logits", [[0.0, float("nan")]], [0], r"logits\[0, 1\] is nan"),
        ("logits", [[0.0, float("inf")]], [0], r"logits\[0, 1\] is inf"),
        ("logits", [[0.0, 1.0]], [2], "class index from 0 to 1"),
        ("logits", [[0.0, 1.0]], [0, 1], "Rows do not match"),
        ("logits", np.empty((0, 2)), np.empty(0, dtype=int), "no rows"),
        ("probabilities", [[-2.0, 1.0]], [0], "logits"),
        ("probabilities", [[0.5, 1.5]], [0], "logits"),
        ("probabilities", [[0.5, float("nan")]], [0], "nan"),
        ("scores", [[0.0, 1.0]], [0], "inputs='scores' is not known"),
    ],
)
def test_what_cannot_be_fitted_is_refused(
    inputs: Any, scores: Any, labels: Any, message: str
) -> None:
    with pytest.raises(InvalidValueError, match=message):
        TemperatureScaling(inputs=inputs).fit(scores, labels)
