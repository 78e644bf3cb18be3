"""Every score has exactly one cell, on the edges too."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pacbound.errors import CertificateError, InvalidValueError
from pacbound.tally import AtomBins, DyadicGrid, EqualWidthBins, GivenBins, equal_mass_edges
from pacbound.tally.grids import equal_mass_cells, grid_from_dict
from pacbound.tally.questions.label_scores import LABEL_SCORES


def around(values: np.ndarray) -> np.ndarray:
    """The values with the float before and the float after each."""
    near = np.concatenate([values, np.nextafter(values, 0), np.nextafter(values, 1)])
    return np.unique(near[(near >= 0) & (near <= 1)])


@pytest.mark.parametrize("n_bins", [1, 2, 3, 7, 10, 15, 20, 49, 100, 1000, 65535, 2**20])
def test_a_score_lies_between_the_edges_of_its_bin(n_bins: int) -> None:
    edges = np.arange(n_bins + 1) / n_bins
    scores = around(edges)
    cells = EqualWidthBins(n_bins).cells(scores)
    assert ((scores > edges[cells]) | (cells == 0)).all()
    assert (scores <= edges[cells + 1]).all()


@given(st.floats(0, 1), st.integers(1, 1000))
def test_equal_width_bins_are_the_given_bins_with_the_same_edges(score: float, n_bins: int) -> None:
    grid = EqualWidthBins(n_bins)
    same = GivenBins(tuple(grid.edges.tolist()))
    assert grid.cells(np.array([score])) == same.cells(np.array([score]))


@given(st.lists(st.floats(0, 1), min_size=1, max_size=30), st.integers(1, 8))
def test_equal_mass_cells_hold_every_score_and_no_cell_between_edges_holds_more_than_its_share(
    scores: list[float], n_bins: int
) -> None:
    values = np.array(scores)
    grid = equal_mass_cells(values, n_bins)
    counts = np.bincount(grid.cells(values), minlength=grid.n_cells)
    assert counts.sum() == len(scores)
    assert counts[::2].max() <= np.ceil(len(scores) / max(n_bins, 2))
    begin, end = grid.bounds
    inside = grid.cells(values)
    atom = inside % 2 == 1
    assert (values[atom] == begin[inside[atom]]).all()
    assert ((values > begin[inside]) | atom | (inside == 0)).all()
    assert ((values < end[inside]) | atom | (inside == grid.n_cells - 1)).all()


@given(st.floats(0, 1), st.integers(1, 30))
def test_the_dyadic_cell_is_the_exact_floor(score: float, bits: int) -> None:
    cell = DyadicGrid(bits).cells(np.array([score]))[0]
    assert cell == int(Fraction(score) * 2**bits // 1)
    assert DyadicGrid(bits).threshold(int(cell)) <= score


@given(st.one_of(st.floats(0, 1), st.floats(0, 2**-10)), st.integers(17, 30), st.integers(1, 14))
def test_joined_cells_begin_at_or_below_the_score_and_are_wide_where_it_is_large(
    score: float, bits: int, digits: int
) -> None:
    grid = DyadicGrid(bits, digits=digits)
    (cell,) = grid.cells(np.array([score])).tolist()
    exact = int(Fraction(score) * 2**bits // 1)
    assert cell <= exact < cell + 2 ** max(0, min(bits - 16, exact.bit_length() - digits))
    assert grid.cells(np.array([grid.threshold(cell)])).tolist() == [cell]
    assert sum(score >= joint for joint in grid.joints) == min(
        bits - 16, max(0, exact.bit_length() - digits)
    )


def test_prediction_sets_have_few_cells_and_fine_ones_where_scores_are_small() -> None:
    grid = LABEL_SCORES.grid
    steps = np.arange(2**13) / 2**13
    scores = np.concatenate([np.arange(2**16 + 1) / 2**16, *(steps / 2**k for k in range(31))])
    assert np.unique(grid.cells(scores)).size == 94_209
    assert grid.cells(np.array([1e-8, 2e-8])).tolist() == [10, 21]


def test_a_score_passes_a_dyadic_threshold_exactly_if_its_cell_does() -> None:
    grid = DyadicGrid(16)
    cells = np.arange(2**16 + 1)
    scores = around(cells / 2**16)
    for cell in (0, 1, 32767, 65535, 65536):
        assert ((scores >= grid.threshold(cell)) == (grid.cells(scores) >= cell)).all()


def test_a_lost_rollout_lies_below_every_cell() -> None:
    assert DyadicGrid(16).cells(np.array([-np.inf, 0.0])).tolist() == [-1, 0]


def test_equal_mass_edges_split_other_scores_evenly() -> None:
    scores = np.random.default_rng(1).beta(8, 1, size=10_000)
    grid = GivenBins(tuple(equal_mass_edges(scores, n_bins=10).tolist()))
    assert np.bincount(grid.cells(scores)).tolist() == [1000] * 10


@pytest.mark.parametrize(
    "grid", [EqualWidthBins(7), GivenBins((0.0, 0.3, 1.0)), AtomBins((0.5, 1.0)), DyadicGrid(10)]
)
def test_a_grid_survives_its_document(
    grid: EqualWidthBins | GivenBins | AtomBins | DyadicGrid,
) -> None:
    assert grid_from_dict(grid.to_dict()) == grid


@pytest.mark.parametrize(
    ("edges", "message"),
    [
        ((0.0, 0.5, 0.5, 1.0), "not increasing at 0.5, 0.5"),
        ((0.1, 1.0), "run from 0.1"),
        ((0.0, 0.9), "to 0.9"),
        ((0.0, float("nan"), 1.0), "nan"),
        ((0.0, 2.0), "2.0"),
        ((0.0,), "at least 2"),
    ],
)
def test_edges_that_are_no_partition_are_refused(edges: tuple[float, ...], message: str) -> None:
    with pytest.raises(InvalidValueError, match=message):
        GivenBins(edges)


@pytest.mark.parametrize(
    "document",
    [
        None,
        {},
        {"rule": "unheard-of"},
        {"rule": "equal-width", "n_bins": "20"},
        {"rule": "edges", "edges": [0, "a"]},
        {"rule": "dyadic", "bits": 99},
    ],
)
def test_a_document_that_is_no_grid_is_refused(document: object) -> None:
    with pytest.raises(CertificateError):
        grid_from_dict(document)
