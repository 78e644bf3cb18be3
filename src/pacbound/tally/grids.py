"""How a score in [0, 1] becomes a cell: the four grids and the one tie rule.

A score belongs to exactly one cell, and every engine that counts must agree on values that lie on
an edge. Bins are closed on the right, (edge, next edge], the first one on both sides. Dyadic cells
are closed on the left. All comparisons are made in float64; the caller casts and validates.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final, Protocol

import numpy as np
from numpy.typing import NDArray

from pacbound.documents import Json, Reader
from pacbound.errors import CertificateError, InvalidTypeError, InvalidValueError
from pacbound.tally.columns import Array, as_scores

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

LARGEST_GRID = 2**20
DEFAULT_BINS = 20
# The edges that are taken from the scores that are counted, each a cell of its own.
EQUAL_MASS = "equal-mass"


class Grid(Protocol):
    """A fixed partition of the scores into cells 0, 1, …, n_cells - 1.

    It must be fixed without the rows that are counted: a partition that was chosen by looking at
    scores or outcomes voids every guarantee. Grids are equal if they are the same rule with the
    same numbers.

    Examples
    --------
    >>> for grid in (EqualWidthBins(4), GivenBins((0.0, 0.9, 1.0)), DyadicGrid(2)):
    ...     print(grid.n_cells, grid.cells(np.array([0.0, 0.5, 1.0])), grid.to_dict()["rule"])
    4 [0 1 3] equal-width
    2 [0 0 1] edges
    5 [0 2 4] dyadic
    """

    @property
    def n_cells(self) -> int:
        """The number of cells from 0 on."""

    def cells(self, scores: Floats) -> Integers:
        """The cell of each score; the scores are known to be in range."""

    def to_dict(self) -> dict[str, Json]:
        """The grid as a document holds it."""


@dataclass(frozen=True)
class EqualWidthBins:
    """K bins (k/K, (k+1)/K], the first one [0, 1/K], with the edges k/K rounded to float64.

    A score belongs to a bin exactly if it lies between the bin's edges as float64 numbers, whatever
    engine counts it.

    Parameters
    ----------
    n_bins : int
        The number K of bins, at least 1. Anything else raises `InvalidTypeError` or
        `InvalidValueError`.

    Examples
    --------
    A score on an edge belongs to the bin that ends there:

    >>> EqualWidthBins(20).cells(np.array([0.0, 0.05, 0.15, np.nextafter(0.15, 1), 1.0]))
    array([ 0,  0,  2,  3, 19])
    """

    n_bins: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "n_bins", number_of_bins(self.n_bins, "n_bins"))

    @property
    def n_cells(self) -> int:
        """The number of cells from 0 on."""
        return self.n_bins

    @cached_property
    def edges(self) -> Floats:
        """The edges as an array."""
        return np.arange(self.n_bins + 1) / self.n_bins

    @property
    def bounds(self) -> tuple[Floats, Floats]:
        """Where each bin begins and ends."""
        return self.edges[:-1], self.edges[1:]

    def cells(self, scores: Floats) -> Integers:
        """The cell of each score; the scores are known to be in range."""
        # ceil(p * K) is off by one next to an edge, where p * K rounds; comparing with the edges
        # themselves decides.
        guess = np.ceil(scores * self.n_bins)
        guess -= scores <= (guess - 1) / self.n_bins
        guess += scores > guess / self.n_bins
        return np.asarray(np.maximum(guess - 1, 0), dtype=np.int64)

    def to_dict(self) -> dict[str, Json]:
        """The grid as a document holds it."""
        return {"rule": "equal-width", "n_bins": self.n_bins}


@dataclass(frozen=True)
class GivenBins:
    """Bins (edge, next edge], the first one closed on both sides, with edges fixed without the rows
    that are counted.

    Parameters
    ----------
    limits : tuple of float
        Two or more rising edges, from 0.0 to 1.0. Anything else raises `InvalidValueError`.

    Examples
    --------
    >>> GivenBins((0.0, 0.5, 0.9, 1.0)).cells(np.array([0.0, 0.5, 0.9, 0.95]))
    array([0, 0, 1, 2])
    """

    limits: tuple[float, ...]

    def __post_init__(self) -> None:
        _check_edges(self.limits, fewest=2)
        if self.limits[0] != 0.0 or self.limits[-1] != 1.0:
            raise InvalidValueError(
                f"edges run from {self.limits[0]} to {self.limits[-1]}, so some scores have no "
                "bin: expected 0.0 … 1.0."
            )

    @property
    def n_cells(self) -> int:
        """The number of cells from 0 on."""
        return len(self.limits) - 1

    @cached_property
    def edges(self) -> Floats:
        """The edges as an array."""
        return np.array(self.limits)

    @property
    def bounds(self) -> tuple[Floats, Floats]:
        """Where each bin begins and ends."""
        return self.edges[:-1], self.edges[1:]

    def cells(self, scores: Floats) -> Integers:
        """The cell of each score; the scores are known to be in range."""
        return np.maximum(np.searchsorted(self.edges, scores, side="left") - 1, 0).astype(np.int64)

    def to_dict(self) -> dict[str, Json]:
        """The grid as a document holds it."""
        return {"rule": "edges", "edges": list(self.limits)}


@dataclass(frozen=True)
class AtomBins:
    """Open intervals between the edges, and each edge value a cell of its own.

    This is the grid for edges that were taken from the very scores that are counted, as order
    statistics of fixed ranks. Given their values, and how many scores equal each, the scores
    strictly between two edges are independent draws from the law of scores there, and labels depend
    on their own scores alone. So the successes in each cell, an edge's own included, are binomial
    with the true rate of the cell. An edge within a bin would be one of its scores, and no draw any
    more. Cells alternate: below the first edge, the first edge, between, …

    Parameters
    ----------
    limits : tuple of float
        One or more rising edges in [0, 1]. Anything else raises `InvalidValueError`.

    Examples
    --------
    >>> AtomBins((0.5, 0.9)).cells(np.array([0.1, 0.5, 0.7, 0.9, 1.0]))
    array([0, 1, 2, 3, 4])
    """

    limits: tuple[float, ...]

    def __post_init__(self) -> None:
        _check_edges(self.limits, fewest=1)

    @property
    def n_cells(self) -> int:
        """The number of cells from 0 on."""
        return 2 * len(self.limits) + 1

    @cached_property
    def edges(self) -> Floats:
        """The edges as an array."""
        return np.array(self.limits)

    @property
    def bounds(self) -> tuple[Floats, Floats]:
        """Where each cell begins and ends; an edge's own cell begins where it ends."""
        repeated = np.repeat(self.edges, 2)
        return np.concatenate(([0.0], repeated)), np.concatenate((repeated, [1.0]))

    def cells(self, scores: Floats) -> Integers:
        """The cell of each score; the scores are known to be in range."""
        at_or_below = np.searchsorted(self.edges, scores, side="right")
        below = np.searchsorted(self.edges, scores, side="left")
        return (at_or_below + below).astype(np.int64)

    def to_dict(self) -> dict[str, Json]:
        """The grid as a document holds it."""
        return {"rule": "edges-as-cells", "edges": list(self.limits)}


@dataclass(frozen=True)
class DyadicGrid:
    """Cells floor(score * 2^bits), exact in every IEEE engine; cell j and all above it are the
    scores >= j / 2^bits.

    A score of -inf, the mark of a rollout lost at its start, has a cell of its own below all
    others: -1.

    Parameters
    ----------
    bits : int
        From 1 to 30. Anything else raises `InvalidValueError`.
    digits : int
        If not 0, cells are joined as far as their numbers agree in so many binary digits, up to a
        width of 2^-16: fine where scores are small, and few in all. A joined cell has the number of
        its first.

    Examples
    --------
    >>> DyadicGrid(16).cells(np.array([-np.inf, 0.0, 0.5, 1.0]))
    array([   -1,     0, 32768, 65536])
    >>> DyadicGrid(20, digits=3).cells(np.array([2.0**-20, 0.00001, 0.6])).tolist()
    [1, 10, 629136]
    """

    bits: int
    digits: int = 0

    def __post_init__(self) -> None:
        if self.bits not in range(1, 31):
            raise InvalidValueError(f"bits={self.bits} is not a grid: expected 1 to 30.")
        if self.digits not in range(31):
            raise InvalidValueError(f"digits={self.digits} is not a grid: expected 0 to 30.")

    @property
    def n_cells(self) -> int:
        """The number of cells from 0 on; a lost rollout has the cell -1."""
        return (1 << self.bits) + 1

    def cells(self, scores: Floats) -> Integers:
        """The cell of each score; the scores are known to be in range."""
        # Only -inf is negative here, and it must not be multiplied into something that no integer
        # holds.
        whole = np.floor(np.where(scores < 0, -1.0, scores * (1 << self.bits)))
        found = np.asarray(whole, dtype=np.int64)
        if not self.digits:
            return found
        joined = np.clip(np.frexp(whole)[1] - self.digits, 0, len(self.joints))
        return np.asarray(found >> joined << joined, dtype=np.int64)

    @property
    def joints(self) -> list[float]:
        """The scores from which on cells are joined by two, by four, and so on."""
        widths = range(1, self.bits - WIDEST + 1) if self.digits else ()
        return [2.0 ** (self.digits + width - 1 - self.bits) for width in widths]

    def threshold(self, cell: int) -> float:
        """The least score of `cell`, exact."""
        return cell / (1 << self.bits)

    def to_dict(self) -> dict[str, Json]:
        """The grid as a document holds it."""
        joined: dict[str, Json] = {"digits": self.digits} if self.digits else {}
        return {"rule": "dyadic", "bits": self.bits, **joined}


# Cells that are joined are no wider than 2^-16.
WIDEST: Final = 16

# What a single score is counted on where thresholds are chosen.
FINE: Final = DyadicGrid(16)


# More grades than these are no list that people declare.
MOST_GRADES: Final = 1001


@dataclass(frozen=True)
class DifferenceGrid(DyadicGrid):
    """Cells of the difference of two qualities in place of scores, for grades on `steps` steps.

    Cells 0 to 2 `steps` are differences from -1 to 1 that are known; 2 `steps` + 1 + h those of
    which one quality is missing, h / `steps` at most and that less 1 at least; the last cell those
    of which both are missing.

    Examples
    --------
    >>> grid = DifferenceGrid(steps=4)
    >>> most, missing = np.array([-0.5, 0.25, 1.0]), np.array([0, 1, 2])
    >>> grid.coded(most, missing, declared=False).tolist()
    [2, 10, 14]
    """

    bits: int = 1
    steps: int = 1

    def __post_init__(self) -> None:
        if self.bits != 1 or self.steps not in range(1, MOST_GRADES):
            raise InvalidValueError(f"{self.steps} steps are no grades: expected 1 to 1000.")

    @property
    def n_cells(self) -> int:
        """The number of cells."""
        return 3 * self.steps + 3

    def coded(self, most: Floats, missing: Integers, *, declared: bool) -> Integers:
        """The cell of each row, by the largest difference that is possible and how many of its
        qualities are missing. One between two steps counts as the higher; of `declared` grades
        there is none, but for rounding.
        """
        places = most * self.steps
        known = (np.rint(places) if declared else np.ceil(places)).astype(np.int64) + self.steps
        return np.select(
            [missing == 0, missing == 1], [known, known + self.steps + 1], 3 * self.steps + 2
        )

    def to_dict(self) -> dict[str, Json]:
        """The rule and its number."""
        return {"rule": "differences", "steps": self.steps}


Bins = EqualWidthBins | GivenBins | AtomBins


def equal_mass_edges(scores: Any, *, n_bins: int) -> Floats:
    """Edges that put about equally many of `scores` into each of at most `n_bins` bins.

    Take the scores from other data than the rows to be certified; no labels are needed. Edges
    chosen from the certified rows themselves are `calibrate(..., edges="equal-mass")`, which counts
    each edge value apart. Ties may leave fewer bins.

    Parameters
    ----------
    scores
        One score in [0, 1] per row, in any order.
    n_bins
        The most bins that there may be.

    Returns
    -------
    ndarray
        Rising edges from 0.0 to 1.0, for the argument `edges` of `calibrate`. Those between are
        values of the sample.

    Raises
    ------
    InvalidTypeError
        If `n_bins` is not an integer, or the scores are not numbers.
    InvalidValueError
        If there are no scores, one of them is not in [0, 1], or `n_bins` is not at least 1.

    Examples
    --------
    >>> equal_mass_edges([0.2, 0.4, 0.6, 0.8], n_bins=2)
    array([0. , 0.4, 1. ])
    """
    n_bins = number_of_bins(n_bins, "n_bins")
    values = as_scores(scores, "scores")
    if not values.size:
        raise InvalidValueError("scores is empty, so it has no quantiles: pass at least one score.")
    return np.unique(np.concatenate(([0.0], _inner_quantiles(values, n_bins), [1.0])))


def equal_mass_cells(scores: Floats, n_bins: int) -> AtomBins:
    """The grid for edges taken from the very `scores` that will be counted."""
    n_bins = number_of_bins(n_bins, "n_bins")
    if not scores.size:
        raise InvalidValueError(
            "confidence is empty, so it has no quantiles: pass at least one row."
        )
    inner = _inner_quantiles(scores, max(n_bins, 2))
    return AtomBins(tuple(np.unique(inner).tolist()))


def is_equal_mass(edges: Any) -> bool:
    """Whether edges are to be taken from the rows; they may be an array, which equals no text."""
    return isinstance(edges, str) and edges == EQUAL_MASS


def bins_for(*, n_bins: int, edges: Any, scores: Array | None = None) -> Bins:
    """The bins that the arguments describe; `scores` are those to be counted."""
    if edges is None:
        return EqualWidthBins(n_bins)
    if isinstance(edges, str):
        if edges != EQUAL_MASS or scores is None:
            raise InvalidValueError(
                f"edges={edges!r} is not known here: expected a list of numbers, or 'equal-mass' "
                "for all rows."
            )
        return equal_mass_cells(as_scores(scores, "confidence"), n_bins)
    if isinstance(edges, AtomBins | GivenBins | EqualWidthBins):
        return edges
    return GivenBins(tuple(as_scores(edges, "edges").tolist()))


def grid_from_dict(document: Json, where: str = "grid") -> Bins | DyadicGrid:
    """The grid that a document describes."""
    part = Reader(document, where)
    readers: dict[str, Callable[[], Bins | DyadicGrid]] = {
        "dyadic": lambda: DyadicGrid(
            part.integer("bits"), part.integer("digits") if part.has("digits") else 0
        ),
        "edges": lambda: GivenBins(tuple(part.numbers("edges"))),
        "edges-as-cells": lambda: AtomBins(tuple(part.numbers("edges"))),
        "differences": lambda: DifferenceGrid(steps=part.integer("steps")),
        "equal-width": lambda: EqualWidthBins(part.integer("n_bins")),
    }
    try:
        grid: Bins | DyadicGrid = readers[part.choice("rule", tuple(readers))]()
    except (InvalidValueError, InvalidTypeError) as error:
        raise CertificateError(f"{where}: {error}") from None
    return grid


def _inner_quantiles(scores: Floats, n_bins: int) -> Floats:
    # Order statistics, not interpolated: an edge is then a value of the sample, and ties fall where
    # they are counted.
    ordered = np.sort(scores)
    ranks = np.ceil(np.arange(1, n_bins) * (ordered.size / n_bins)).astype(np.int64) - 1
    return np.asarray(ordered[np.clip(ranks, 0, ordered.size - 1)], dtype=np.float64)


def number_of_bins(n_bins: Any, name: str) -> int:
    """The number of bins as an int of Python's, which documents can hold."""
    given = n_bins[()] if isinstance(n_bins, np.ndarray) and not n_bins.ndim else n_bins
    if isinstance(given, bool) or not isinstance(given, (int, np.integer)):
        raise InvalidTypeError(
            f"{name}={n_bins!r} is not a number of bins: expected an integer such as 20."
        )
    if not 1 <= given <= LARGEST_GRID:
        raise InvalidValueError(
            f"{name}={n_bins} is not a number of bins: expected 1 to {LARGEST_GRID}."
        )
    return int(given)


def _check_edges(edges: tuple[float, ...], fewest: int) -> None:
    if len(edges) < fewest:
        raise InvalidValueError(f"edges has {len(edges)} values: expected at least {fewest}.")
    if len(edges) > LARGEST_GRID:
        raise InvalidValueError(f"edges has {len(edges)} values: expected at most {LARGEST_GRID}.")
    values = np.array(edges, dtype=np.float64)
    if not (np.isfinite(values).all() and (values >= 0).all() and (values <= 1).all()):
        bad = values[~(np.isfinite(values) & (values >= 0) & (values <= 1))][0]
        raise InvalidValueError(f"edges holds {bad}: expected numbers from 0 to 1.")
    if (np.diff(values) <= 0).any():
        where = int(np.flatnonzero(np.diff(values) <= 0)[0])
        raise InvalidValueError(
            f"edges is not increasing at {values[where]}, {values[where + 1]}: sort it and drop "
            "repeats."
        )
