"""Counts of two outcomes per cell of the fine grid, and thresholds on that grid, as they stand in a
claim. What cannot be is refused, with the place where it stands.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from pacbound.certificate.tally_checks import exact_sum
from pacbound.documents import Reader, encode_float
from pacbound.errors import CertificateError
from pacbound.tally.grids import FINE

Integers = NDArray[np.int64]

TOP = FINE.n_cells - 1


def read_counts(
    part: Reader, outcomes: tuple[str, str], *, lowest: int = 0
) -> tuple[Integers, Integers, Integers]:
    """The cells, which rise from `lowest` on, and how many rows of each have each outcome."""
    cells, first, second = (
        np.array(part.integers(key), dtype=np.int64) for key in ("cells", *outcomes)
    )
    if not cells.size == first.size == second.size or not cells.size:
        raise CertificateError(f"{part.place('cells')}: lists of different length, or empty.")
    if cells[0] < lowest or cells[-1] > TOP or (np.diff(cells) <= 0).any():
        raise CertificateError(f"{part.place('cells')} does not rise from {lowest} towards {TOP}.")
    if (first < 0).any() or (second < 0).any():
        raise CertificateError(f"{part.place(outcomes[0])}: a count is less than 0.")
    return cells, first, second


def require_total(part: Reader, n: int, *counts: Integers) -> None:
    """Raise unless all counts together are of `n` rows."""
    total = sum(map(exact_sum, counts))
    if total != n:
        raise CertificateError(f"{part.place('cells')} hold {total} rows, not n = {n}.")


def none_is(what: str, rows: int, remedy: str) -> str:
    """What is said where none of the rows is what a claim is about."""
    return (
        f"None of {rows:,} rows is {what}, so nothing is known about the scores of {what} ones. "
        f"{remedy} If they are rare, label more rows: which, must not depend on their scores."
    )


def read_threshold(part: Reader, *infinite: float, lowest: int = 0) -> float:
    """The threshold: one of the `infinite` ones, or that of a cell from `lowest` on."""
    limit = part.number("threshold")
    on_grid = limit * TOP == np.floor(limit * TOP) and lowest <= limit * TOP <= TOP
    if limit not in infinite and not on_grid:
        allowed = ", ".join(str(encode_float(one)) for one in infinite)
        above = ", above 0" if lowest else ""
        raise CertificateError(
            f"{part.place('threshold')} is {limit}, which is neither {allowed} nor on the grid of "
            f"2^-16{above}."
        )
    return limit
