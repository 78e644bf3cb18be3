"""Fewer of the flagged rows are positive than certified with probability at most delta: enumerated
over all samples of a few cells, for many laws.
"""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray
from tests.guarantees.test_abstention_validity import (
    CELLS,
    TOUCHING,
    XI,
    claimed_cells,
    samples,
    worst,
)
from tests.products import standing_for

from pacbound.claims.precision import CLAIM
from pacbound.tally.tally import Tally

TARGET = 1 - XI


def certified(cells: NDArray[np.int64], rows: int, delta: float) -> NDArray[np.bool_]:
    """For each sample and cell whether a threshold is certified that flags it and none below. The
    negative rows of each cell come first, then the positive."""
    question, found = CLAIM.question, []
    for sample in samples(rows, 2 * cells.size):
        counts = sample.reshape(2, -1).T
        hit = counts.any(axis=1)
        outcomes, grid = question.outcomes, question.grid
        tally = Tally(question.kind, grid, outcomes, rows, cells[hit, None], counts[hit])
        certificate = CLAIM.certify(tally, {"target": TARGET, "delta": delta})
        found.append(claimed_cells(certificate.values["tables"][0]["claimed"], cells))
    return np.array(found)


@pytest.mark.parametrize("cells", [CELLS, TOUCHING], ids=["apart", "touching"])
@pytest.mark.parametrize(
    ("delta", "rows"), standing_for([(0.5, 11), (0.2, 10)], [(0.2, 10)], rest="long")
)
def test_no_law_of_three_cells_makes_a_false_claim_more_often_than_delta(
    cells: NDArray[np.int64], delta: float, rows: int
) -> None:
    claimed = certified(cells, rows, delta)
    assert claimed.any()
    most = worst(claimed, rows, seed=3)
    assert most <= delta
    if cells is CELLS:
        assert most > 0.2 * delta, "these laws should come near delta"
