"""Intervals for the true confidence of every cell, simultaneously (the paper's Theorem 1).

Cells are fixed before the labels are seen and rows are i.i.d. Given how many rows fell into each
cell, the right predictions are independent binomials with the cells' true confidences, so each cell
gets a Clopper-Pearson interval at a level that makes them all hold together with probability at
least 1 - delta.
"""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import NDArray

from pacbound.errors import InvalidValueError
from pacbound.stats.arguments import is_one_of
from pacbound.stats.binomial import binomial_interval, binomial_lower, binomial_upper
from pacbound.stats.bound_checks import are_lower_bounds, are_upper_bounds
from pacbound.stats.sequences import bonferroni_level, sidak_level

Correction = Literal["sidak", "bonferroni"]
Side = Literal["both", "lower", "upper"]
Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


def cell_intervals(
    trials: Integers,
    successes: Integers,
    *,
    delta: float,
    correction: Correction,
    side: Side,
    overlapping: bool,
) -> tuple[Floats, Floats]:
    """Lower and upper bounds for (tables, cells) of counts; all hold together with probability at
    least 1 - `delta`.

    Tables over disjoint rows share one budget over all their non-empty cells. `overlapping` tables,
    in which a row may be counted more than once, are not independent: each gets an equal share of
    delta (Bonferroni) and spends it within. An empty cell has the interval [0, 1].
    """
    check_options(correction, side)
    levels = _levels(trials > 0, delta, correction, overlapping=overlapping)
    lower, upper = np.zeros(trials.shape), np.ones(trials.shape)
    seen = trials > 0
    hits, attempts, level = successes[seen], trials[seen], levels[seen]
    if side == "both":
        lower[seen], upper[seen] = binomial_interval(hits, attempts, delta=level)
    elif side == "lower":
        lower[seen] = binomial_lower(hits, attempts, delta=level)
    else:
        upper[seen] = binomial_upper(hits, attempts, delta=level)
    return lower, upper


def checked_intervals(
    stored: tuple[Floats, Floats],
    trials: Integers,
    successes: Integers,
    *,
    delta: float,
    correction: Correction,
    side: Side,
    overlapping: bool,
) -> tuple[Floats, Floats]:
    """The `stored` bounds where their tails show that they are bounds of these counts, and
    elsewhere those of `cell_intervals`.

    Another SciPy computes other last digits. What is accepted in their place is said in
    `pacbound.stats.bound_checks`.
    """
    computed = cell_intervals(
        trials,
        successes,
        delta=delta,
        correction=correction,
        side=side,
        overlapping=overlapping,
    )
    level = _levels(trials > 0, delta, correction, overlapping=overlapping)
    level = level / 2.0 if side == "both" else level
    for own, found, tell, other in zip(
        stored, computed, (are_lower_bounds, are_upper_bounds), ("upper", "lower"), strict=True
    ):
        moved = (trials > 0) & (own != found) & (side != other)
        counts = own[moved], successes[moved], trials[moved], level[moved]
        found[moved] = np.where(tell(*counts), own[moved], found[moved])
    return computed


def check_options(correction: object, side: object) -> None:
    """Refuse a correction or a side that does not exist."""
    if not is_one_of(correction, ("sidak", "bonferroni")):
        raise InvalidValueError(
            f"correction={correction!r} is not known: expected 'sidak' or 'bonferroni' (the "
            "paper's delta/K)."
        )
    if not is_one_of(side, ("both", "lower", "upper")):
        raise InvalidValueError(f"side={side!r} is not known: expected 'both', 'lower' or 'upper'.")


def _levels(
    seen: NDArray[np.bool_], delta: float, correction: Correction, *, overlapping: bool
) -> Floats:
    """The failure probability that each cell may spend."""
    shares = [seen[table : table + 1] for table in range(len(seen))] if overlapping else [seen]
    budget = bonferroni_level(delta, len(shares))
    return np.concatenate(
        [np.full(share.shape, _cell_level(share, budget, correction)) for share in shares]
    )


def _cell_level(seen: NDArray[np.bool_], budget: float, correction: Correction) -> float:
    if correction == "bonferroni":
        return bonferroni_level(budget, seen.size)
    return sidak_level(budget, max(1, int(seen.sum())))
