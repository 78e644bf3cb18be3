"""A certificate is made only from a tally whose cells mean what its procedure takes them for."""

from dataclasses import replace

import numpy as np
import pytest
from tests.kinds.cascade import cascade_tally
from tests.kinds.cascade_paths import three_models
from tests.kinds.shield import shield_tally

from pacbound import Tally, calibrate, certify_shield
from pacbound.claims.cascade import certify_cascade
from pacbound.errors import InvalidValueError
from pacbound.procedures import threshold
from pacbound.procedures.joint_walk import top_of
from pacbound.stats.arguments import exact_sum
from pacbound.tally.grids import DyadicGrid, EqualWidthBins


def on_grid(tally: Tally, bits: int) -> Tally:
    """The tally of the same rows as if they had been counted on a coarser or finer grid."""
    assert isinstance(tally.grid, DyadicGrid)
    moved = np.where(
        tally.cells < 0, -1, np.floor(tally.cells * 2.0 ** (bits - tally.grid.bits))
    ).astype(np.int64)
    return replace(tally, grid=DyadicGrid(bits), cells=moved)


def test_rows_are_counted_on_the_grids_that_procedures_walk_on() -> None:
    assert cascade_tally(50).grid.n_cells - 1 == top_of(1)
    assert three_models(50).grid.n_cells - 1 == top_of(2)
    assert shield_tally(50).grid.n_cells - 1 == threshold.TOP


@pytest.mark.parametrize("bits", [1, 10, 15, 17, 20])
def test_a_cascade_of_two_models_on_another_grid_is_refused(bits: int) -> None:
    with pytest.raises(InvalidValueError, match="was counted on the grid"):
        certify_cascade(data=on_grid(cascade_tally(400), bits), xi=0.1, delta=0.05)


@pytest.mark.parametrize("bits", [9, 11, 16])
def test_a_cascade_of_three_models_on_another_grid_is_refused(bits: int) -> None:
    with pytest.raises(InvalidValueError, match="was counted on the grid"):
        certify_cascade(data=on_grid(three_models(400), bits), xi=0.1, delta=0.05)


@pytest.mark.parametrize("bits", [10, 15, 17, 20])
def test_a_shield_on_another_grid_is_refused(bits: int) -> None:
    with pytest.raises(InvalidValueError, match="was counted on the grid"):
        certify_shield(data=on_grid(shield_tally(400), bits), xi=0.1, delta=0.05)


def test_cells_that_are_not_on_the_grid_are_refused() -> None:
    tally = shield_tally(400)
    for cells in (tally.cells + 2**16, tally.cells - 1):
        with pytest.raises(InvalidValueError, match="not on its grid"):
            certify_shield(data=replace(tally, cells=cells), xi=0.1, delta=0.05)


def test_counts_whose_sum_wraps_around_to_the_rows_are_refused() -> None:
    """2^64 + 400 rows are 400 in 64 bits."""
    for tally, make in (
        (shield_tally(400), lambda tally, **asked: certify_shield(data=tally, **asked)),
        (cascade_tally(400), lambda tally, **asked: certify_cascade(data=tally, **asked)),
    ):
        counts = tally.counts.copy()
        counts[:4, 0] += 2**62
        assert int(counts.sum()) == 400
        with pytest.raises(InvalidValueError, match="does not add up"):
            make(replace(tally, counts=counts), xi=0.1, delta=0.05)
    tally = Tally.count("calibration", confidence=np.linspace(0, 1, 400), correct=np.ones(400))
    counts = tally.counts.copy()
    counts[:4, 0] += 2**62
    with pytest.raises(InvalidValueError, match="does not add up"):
        calibrate(data=replace(tally, counts=counts), delta=0.05)


def test_more_bins_than_a_file_may_ask_for_are_not_certified() -> None:
    groups = tuple(map(str, range(9)))
    tally = Tally(
        kind="calibration",
        grid=EqualWidthBins(2**20),
        outcomes=("wrong", "right"),
        rows=9,
        cells=np.column_stack([np.arange(9), np.arange(9)]),
        counts=np.column_stack([np.zeros(9, dtype=np.int64), np.ones(9, dtype=np.int64)]),
        scope="groups",
        groups=groups,
    )
    with pytest.raises(InvalidValueError, match="more than a certificate may have"):
        calibrate(data=tally, delta=0.05)


@pytest.mark.parametrize(
    "counts", [[], [0], [2**62] * 8, [-(2**62)] * 8, [2**53, 1, -1], [2**63 - 1, 2**63 - 1]]
)
def test_sums_are_those_of_whole_numbers_of_any_size(counts: list[int]) -> None:
    assert exact_sum(np.array(counts, dtype=np.int64)) == sum(counts)
