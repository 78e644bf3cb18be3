"""Counting columns of arrays into tallies, block by block.

One pass: each block is cast to float64, checked, put into cells and counted. Memory beyond the
arrays stays at a few megabytes. The fingerprint of the rows is taken on the way.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pacbound.errors import InvalidTypeError, InvalidValueError
from pacbound.tally.columns import (
    Array,
    as_flags,
    as_names,
    as_score_column,
    as_scores,
    checked_scores,
    same_length,
)
from pacbound.tally.dense import DenseCounts
from pacbound.tally.exits import count_cascade
from pacbound.tally.final_scores import at_first_unrecoverable
from pacbound.tally.fingerprint import Fingerprint
from pacbound.tally.grids import Bins, DyadicGrid, EqualWidthBins, GivenBins, equal_mass_cells
from pacbound.tally.tally import Integers, Kind, Scope, Tally, in_order

CORRECT = ("wrong", "right")
SAFE = ("safe", "unsafe")
FINE = DyadicGrid(16)


def count(kind: str | None = None, **columns: Any) -> Tally:
    """Count the columns for the use that they belong to."""
    uses: dict[str, tuple[Callable[..., Tally], set[str]]] = {
        "calibration": (count_calibration, {"confidence", "correct"}),
        "abstention": (count_abstention, {"confidence", "correct"}),
        "cascade": (count_cascade, {"confidences", "predictions", "labels"}),
        "shield": (count_shield, {"scores", "unsafe"}),
    }
    if kind is None:
        kind = next((name for name, (_, needed) in uses.items() if needed <= columns.keys()), None)
    if kind not in uses or not uses[kind][1] <= columns.keys():
        listed = "; ".join(
            f"{name}: {', '.join(sorted(needed))}" for name, (_, needed) in uses.items()
        )
        raise InvalidTypeError(
            f"Columns {sorted(columns)} fit no use (kind={kind!r}). Expected {listed}."
        )
    return uses[kind][0](**columns)


def count_calibration(
    confidence: Any,
    correct: Any,
    *,
    n_bins: int = 20,
    edges: Any = None,
    groups: Any = None,
    first_row: int = 0,
) -> Tally:
    """Right and wrong predictions per bin of confidence, and per group where groups are given.

    `first_row` is where these rows begin in a longer table, for the message if one of them is bad.
    """
    scores, flags = as_score_column(confidence, "confidence"), as_flags(correct, "correct")
    same_length(confidence=scores, correct=flags)
    grid = bins_for(n_bins=n_bins, edges=edges, scores=scores)
    if isinstance(groups, Mapping):
        return _count_overlapping("calibration", grid, scores, flags, groups)
    return _count_flags(
        "calibration", grid, CORRECT, "confidence", scores, flags, groups, first_row
    )


def count_abstention(confidence: Any, correct: Any, *, groups: Any = None) -> Tally:
    """Right and wrong predictions per fine cell of confidence."""
    scores, flags = as_score_column(confidence, "confidence"), as_flags(correct, "correct")
    same_length(confidence=scores, correct=flags)
    return _count_flags("abstention", FINE, CORRECT, "confidence", scores, flags, groups)


def count_shield(
    scores: Any, unsafe: Any, *, final_scores: Any = None, first_row: int = 0
) -> Tally:
    """Safe and unsafe rollouts per fine cell of the running maximum of the danger; -inf is a
    rollout lost at its start.

    With `final_scores`, unsafe rollouts are counted by the danger at their first un-recoverable
    state instead. `first_row` is where these rollouts begin in a longer table, for the message if
    one of them is bad.
    """
    column, flags = as_score_column(scores, "scores"), as_flags(unsafe, "unsafe")
    same_length(scores=column, unsafe=flags)
    saved = np.flatnonzero((column == -np.inf) & ~flags)
    if saved.size:
        raise InvalidValueError(
            f"scores[{first_row + saved[0]}] is -inf, lost at its start, but unsafe is False there "
            f"({saved.size} such): a lost rollout is unsafe."
        )
    if final_scores is not None:
        column = at_first_unrecoverable(column, flags, final_scores, first_row=first_row)
    return _count_flags("shield", FINE, SAFE, "scores", column, flags, None, first_row)


def bins_for(*, n_bins: int, edges: Any, scores: Array | None) -> Bins:
    """The calibration bins that the arguments describe; `scores` are those to be counted."""
    if edges is None:
        return EqualWidthBins(n_bins)
    if isinstance(edges, str):
        if edges != "equal-mass" or scores is None:
            raise InvalidValueError(
                f"edges={edges!r} is not known here: expected a list of numbers, or 'equal-mass' "
                "for all rows."
            )
        return equal_mass_cells(as_scores(scores, "confidence"), n_bins)
    return GivenBins(tuple(as_scores(edges, "edges").tolist()))


def _count_flags(
    kind: Kind,
    grid: Bins | DyadicGrid,
    outcomes: tuple[str, str],
    name: str,
    scores: Array,
    flags: NDArray[np.bool_],
    groups: Any,
    first_row: int = 0,
) -> Tally:
    names, codes = ((), None) if groups is None else group_codes(groups, len(scores))
    counts, seal = DenseCounts(grid, 2), Fingerprint()
    for start in range(0, len(scores), counts.block):
        block = checked_scores(
            scores[start : start + counts.block],
            name,
            start=first_row + start,
            lost=kind == "shield",
        )
        right = flags[start : start + counts.block].view(np.uint8)
        counts.add(
            grid.cells(block), right, 0 if codes is None else codes[start : start + counts.block]
        )
        seal.update(block, right)
    cells, table = counts.sparse(grouped=groups is not None)
    scope: Scope = "top" if groups is None else "groups"
    return Tally(kind, grid, outcomes, len(scores), cells, table, scope, names, seal.names())


def _count_overlapping(
    kind: Kind, grid: Bins, scores: Array, flags: NDArray[np.bool_], groups: Mapping[Any, Any]
) -> Tally:
    if not groups:
        raise InvalidValueError("groups is empty: name at least one group.")
    members = {str(name): as_flags(member, f"groups[{name!r}]") for name, member in groups.items()}
    names = in_order(members)
    checked, counts, seal = (
        checked_scores(scores, "confidence"),
        DenseCounts(grid, 2),
        Fingerprint(),
    )
    cells = grid.cells(checked)
    for place, name in enumerate(names):
        member = members[name]
        same_length(confidence=scores, **{f"groups[{name!r}]": member})
        counts.add(cells[member], flags[member].view(np.uint8), place)
    seal.update(checked, flags.view(np.uint8))
    sparse_cells, table = counts.sparse(grouped=True)
    return Tally(
        kind,
        grid,
        CORRECT,
        len(scores),
        sparse_cells,
        table,
        "overlapping-groups",
        names,
        seal.names(),
    )


def group_codes(groups: Any, rows: int) -> tuple[tuple[str, ...], Integers]:
    """The names of the groups in order, and the place of each row's group among them."""
    column = as_names(groups, "groups")
    if len(column) != rows:
        raise InvalidValueError(
            f"Rows do not match: confidence has {rows}, groups has {len(column)}. Pass one group "
            "per row."
        )
    found, codes = np.unique(column, return_inverse=True)
    names = [str(name) for name in found.tolist()]
    ordered = in_order(names)
    places = np.array([ordered.index(name) for name in names], dtype=np.int64)
    return ordered, places[codes]
