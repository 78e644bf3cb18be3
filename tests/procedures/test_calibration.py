"""From counts to intervals, against Clopper-Pearson as the textbook writes it."""

from __future__ import annotations

from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import beta

from pacbound.errors import InvalidValueError
from pacbound.procedures.calibration import Correction, Side, cell_intervals

CORRECTIONS: tuple[Correction, ...] = ("sidak", "bonferroni")
SIDES: tuple[Side, ...] = ("both", "lower", "upper")


def literal_levels(trials: Any, delta: float, correction: Correction, overlapping: bool) -> Any:
    """The level of each cell, one at a time, from the words of the guarantee."""
    tables, cells = trials.shape
    levels = np.empty(trials.shape)
    for table, cell in product(range(tables), range(cells)):
        budget = delta / tables if overlapping else delta
        shared = trials[table] if overlapping else trials
        if correction == "bonferroni":
            levels[table, cell] = budget / shared.size
        else:
            levels[table, cell] = 1 - (1 - budget) ** (1 / max(1, int((shared > 0).sum())))
    return levels


def literal_interval(successes: int, trials: int, level: float, side: Side) -> tuple[float, float]:
    if trials == 0:
        return 0.0, 1.0
    share = level / 2 if side == "both" else level
    lower = (
        0.0
        if successes == 0 or side == "upper"
        else float(beta.ppf(share, successes, trials - successes + 1))
    )
    upper = (
        1.0
        if successes == trials or side == "lower"
        else float(beta.isf(share, successes + 1, trials - successes))
    )
    return lower, upper


@pytest.mark.parametrize("overlapping", [False, True])
@pytest.mark.parametrize("side", SIDES)
@pytest.mark.parametrize("correction", CORRECTIONS)
def test_every_cell_has_the_clopper_pearson_interval_of_its_level(
    correction: Correction, side: Side, overlapping: bool
) -> None:
    rng = np.random.default_rng(1)
    for _ in range(10):
        trials = rng.integers(0, 40, size=(3, 4)) * rng.integers(0, 2, size=(3, 4))
        successes = rng.binomial(trials, 0.8)
        delta = rng.uniform(0.001, 0.3)
        lower, upper = cell_intervals(
            trials,
            successes,
            delta=delta,
            correction=correction,
            side=side,
            overlapping=overlapping,
        )
        levels = literal_levels(trials, delta, correction, overlapping)
        for place in np.ndindex(trials.shape):
            expected = literal_interval(
                int(successes[place]), int(trials[place]), levels[place], side
            )
            assert (lower[place], upper[place]) == pytest.approx(expected, rel=1e-7, abs=1e-12)


@pytest.mark.parametrize(
    ("cells", "empty"), [(1, 0), (1, 3), (2, 0), (7, 5), (20, 0), (20, 19), (500, 1)]
)
def test_all_sidak_intervals_hold_together_at_one_minus_delta_in_exact_arithmetic(
    cells: int, empty: int
) -> None:
    # No success in one trial has the upper bound 1 - level, so the levels can be read off.
    trials = np.array([[1] * cells + [0] * empty])
    for delta in (0.3, 0.05, 1e-3, 1e-9):
        _, upper = cell_intervals(
            trials,
            np.zeros_like(trials),
            delta=delta,
            correction="sidak",
            side="upper",
            overlapping=False,
        )
        together = Fraction(1)
        for bound in upper[0, :cells]:
            together *= Fraction(float(bound))
        assert together >= 1 - Fraction(delta)
        assert float(together) == pytest.approx(1 - delta, rel=1e-9)


@pytest.mark.parametrize("overlapping", [False, True])
@pytest.mark.parametrize("correction", CORRECTIONS)
def test_the_levels_of_all_cells_of_overlapping_tables_add_up_to_at_most_delta(
    correction: Correction, overlapping: bool
) -> None:
    trials = np.array([[1, 1, 0], [0, 0, 0], [1, 0, 0]])
    delta = 0.06
    _, upper = cell_intervals(
        trials,
        np.zeros_like(trials),
        delta=delta,
        correction=correction,
        side="upper",
        overlapping=overlapping,
    )
    level = 1 - upper
    expected = {
        ("bonferroni", False): [[delta / 9, delta / 9, 0], [0, 0, 0], [delta / 9, 0, 0]],
        ("bonferroni", True): [[delta / 9, delta / 9, 0], [0, 0, 0], [delta / 9, 0, 0]],
        ("sidak", False): np.where(trials > 0, 1 - (1 - delta) ** (1 / 3), 0),
        ("sidak", True): [[1 - (1 - delta / 3) ** 0.5] * 2 + [0], [0, 0, 0], [delta / 3, 0, 0]],
    }[correction, overlapping]
    assert level == pytest.approx(np.array(expected), rel=1e-9)
    if overlapping:
        assert level.sum() <= delta * 1.02


@pytest.mark.parametrize("overlapping", [False, True])
@pytest.mark.parametrize("side", SIDES)
@pytest.mark.parametrize("correction", CORRECTIONS)
def test_a_cell_without_rows_has_the_interval_from_zero_to_one(
    correction: Correction, side: Side, overlapping: bool
) -> None:
    for trials in (
        np.zeros((1, 4), dtype=np.int64),
        np.array([[0, 9, 0, 3]]),
        np.array([[0, 0], [5, 0]]),
    ):
        lower, upper = cell_intervals(
            trials, trials, delta=0.05, correction=correction, side=side, overlapping=overlapping
        )
        assert (lower[trials == 0] == 0.0).all()
        assert (upper[trials == 0] == 1.0).all()


def test_an_open_side_stays_open_and_the_other_spends_the_full_level() -> None:
    trials, successes = np.array([[50, 80]]), np.array([[40, 8]])
    both, lower, upper = (
        cell_intervals(
            trials, successes, delta=0.1, correction="bonferroni", side=side, overlapping=False
        )
        for side in SIDES
    )
    assert (lower[1] == 1.0).all()
    assert (upper[0] == 0.0).all()
    assert (lower[0] > both[0]).all()
    assert (upper[1] < both[1]).all()
    halved = cell_intervals(
        trials, successes, delta=0.05, correction="bonferroni", side="lower", overlapping=False
    )
    assert halved[0] == pytest.approx(both[0], rel=1e-12)


def test_an_empty_bin_costs_nothing_under_sidak_and_its_share_under_bonferroni() -> None:
    trials, successes = np.array([[50, 80]]), np.array([[40, 8]])
    padded = np.pad(trials, ((0, 0), (0, 8))), np.pad(successes, ((0, 0), (0, 8)))
    for correction in CORRECTIONS:
        plain = cell_intervals(
            trials, successes, delta=0.1, correction=correction, side="both", overlapping=False
        )
        wide = cell_intervals(
            *padded, delta=0.1, correction=correction, side="both", overlapping=False
        )
        assert np.array_equal(plain[0], wide[0][:, :2]) is (correction == "sidak")
        assert (wide[0][:, :2] <= plain[0]).all()


@pytest.mark.parametrize(
    ("correction", "side"), [("holm", "both"), ("sidak", "left"), (None, "both"), ("sidak", None)]
)
def test_an_unknown_correction_or_side_is_refused(correction: Any, side: Any) -> None:
    one = np.ones((1, 1), dtype=np.int64)
    with pytest.raises(InvalidValueError, match="is not known"):
        cell_intervals(one, one, delta=0.1, correction=correction, side=side, overlapping=False)


@given(
    counts=st.lists(st.tuples(st.integers(0, 10**6), st.floats(0, 1)), min_size=1, max_size=6),
    delta=st.floats(1e-12, 0.9),
    correction=st.sampled_from(CORRECTIONS),
)
def test_an_interval_holds_the_observed_share_and_grows_as_delta_falls(
    counts: list[tuple[int, float]], delta: float, correction: Correction
) -> None:
    trials = np.array([[n for n, _ in counts]])
    successes = np.array([[int(n * share) for n, share in counts]])
    lower, upper = cell_intervals(
        trials, successes, delta=delta, correction=correction, side="both", overlapping=False
    )
    share = successes / np.maximum(trials, 1)
    assert ((lower <= share) & (share <= upper))[trials > 0].all()
    below, above = cell_intervals(
        trials, successes, delta=delta / 3, correction=correction, side="both", overlapping=False
    )
    assert ((below <= lower) & (upper <= above)).all()
