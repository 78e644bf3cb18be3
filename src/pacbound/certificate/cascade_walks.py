"""The walks inside a cascade certificate, as JSON and back.

Counts are written as what each step adds to the one before: small numbers, so that a certificate
stays small whatever n is.
"""

from __future__ import annotations

from itertools import accumulate

import numpy as np
from numpy.typing import NDArray

from pacbound.documents import Json, Reader
from pacbound.errors import CertificateError
from pacbound.procedures import cascade, cascade_paths, joint_walk
from pacbound.procedures.cascade import Bound
from pacbound.procedures.joint_walk import JointWalk
from pacbound.tally.questions.cascade import MOST_EXITS

_COUNTS = ("exits", "only_slow", "only_fast")
_LEAVES_EXITS_UNUSED = ("greedy", "front")


def claimed_walks(
    walks: tuple[JointWalk, ...], bound: Bound, *, partial: bool
) -> list[dict[str, Json]]:
    """Each walk with a list of numbers for every exit; with `partial` labels, also how many rows
    have none.
    """
    return [
        {"cells": walk.cells.tolist()}
        | {f"{name}_added": _added(getattr(walk, name)) for name in _counts(bound, partial=partial)}
        for walk in walks
    ]


def read_walks(
    claim: Reader, n: int, bound: Bound, method: str, *, xi: float, partial: bool
) -> tuple[JointWalk, ...]:
    """The walks of a claim, if they could be walks of `n` rows that were decided for `xi`."""
    parts = claim.mappings("walks")
    single = method in ("walk", "front")
    if not parts or (single and len(parts) != 1):
        raise CertificateError(
            f"{claim.place('walks')}: expected {'one walk' if single else 'a list of walks'}."
        )
    walks = tuple(_read_walk(part, n, method, _counts(bound, partial=partial)) for part in parts)
    exits = {len(walk.cells) for walk in walks}
    if len(exits) != 1 or (method != "front" and (method == "walk") != (exits == {1})):
        raise CertificateError(
            f"{claim.place('walks')}: the number of exits does not fit the procedure."
        )
    if method == "greedy" and {len(walks)} != exits:
        raise CertificateError(
            f"{claim.place('walks')} has {len(walks)} walks: expected one for each exit."
        )
    if method == "paths":
        _check_declared(walks, claim, xi)
    return walks


def read_cells(claim: Reader, walk: JointWalk, method: str) -> tuple[int, ...] | None:
    """The thresholds of a claim on their grid; None if it is refused."""
    thresholds, exits = claim.numbers("thresholds"), len(walk.cells)
    top, highest = grid_top(exits), _highest(exits, method)
    if len(thresholds) != exits:
        raise CertificateError(
            f"{claim.place('thresholds')} has {len(thresholds)} values: expected {exits}."
        )
    never = [value == np.inf for value in thresholds]
    if all(never) and method != "greedy" and not claim.flag("certified"):
        return None
    if any(never) and method not in _LEAVES_EXITS_UNUSED:
        raise CertificateError(
            f"{claim.place('thresholds')} holds +inf: expected it only where the claim is refused."
        )
    cells = [highest if value == np.inf else value * top for value in thresholds]
    if any(cell != np.floor(cell) or not 0 <= cell <= highest for cell in cells):
        raise CertificateError(
            f"{claim.place('thresholds')} holds a value that is not on the grid of 1/{top}."
        )
    return tuple(int(cell) for cell in cells)


def grid_top(exits: int) -> int:
    """The highest cell of the grid that scores are counted on: finer where there is a single
    exit.
    """
    return cascade.TOP if exits == 1 else joint_walk.TOP


def _highest(exits: int, method: str) -> int:
    """The highest threshold that a walk can have, above the grid where exits may be unused."""
    return grid_top(exits) + (method in _LEAVES_EXITS_UNUSED)


def _read_walk(part: Reader, n: int, method: str, names: tuple[str, ...]) -> JointWalk:
    cells = part.table("cells")
    if len(cells) > MOST_EXITS:
        raise CertificateError(
            f"{part.place('cells')} has {len(cells)} exits: expected at most {MOST_EXITS}."
        )
    counts = {name: _read_running(part, f"{name}_added", n) for name in names}
    columns = {"cells": np.array(cells, dtype=np.int64), **counts}
    if len({column.shape for column in columns.values()}) != 1 or not columns["cells"].size:
        raise CertificateError(
            f"{part.place('cells')}: expected tables of one shape, with at least one step."
        )
    columns.setdefault("unlabelled", np.zeros_like(columns["exits"]))
    told = columns["only_slow"] + columns["only_fast"] + columns["unlabelled"]
    walk = JointWalk(**{"differ": told, **columns})
    top = _highest(len(walk.cells), method)
    if (walk.cells < 0).any() or (walk.cells > top).any():
        raise CertificateError(f"{part.place('cells')} leaves its grid: expected 0 to {top}.")
    if method != "front":
        _check_falling(walk, part, top)
    if (told > walk.differ).any():
        raise CertificateError(
            f"{part.place('only_slow_added')}: expected only_slow + only_fast <= differ, those "
            "without a label included."
        )
    if (walk.differ > walk.exits).any() or (walk.exits.sum(axis=0) > n).any():
        raise CertificateError(
            f"{part.place('exits_added')}: expected differ <= exits, and no more exits than rows."
        )
    if (walk.exits.sum(axis=0) != n)[(walk.cells == 0).any(axis=0)].any():
        raise CertificateError(
            f"{part.place('exits_added')}: at a threshold of 0 every row exits, and these do not."
        )
    return walk


def _check_falling(walk: JointWalk, part: Reader, top: int) -> None:
    """Raise unless all thresholds fall together, and the counts with them as they must."""
    if (np.diff(walk.cells) > 0).any():
        raise CertificateError(f"{part.place('cells')} does not fall from {top} towards 0.")
    if len(walk.cells) == 1 and (walk.cells[0, 0] != top or (np.diff(walk.cells[0]) == 0).any()):
        raise CertificateError(f"{part.place('cells')} does not begin at {top}, or stands still.")
    # Rows come to the first exit and never leave it; those at later ones leave for earlier ones
    # only.
    first = [column[0] for name, column in vars(walk).items() if name != "cells"]
    if any((np.diff(column) < 0).any() for column in (*first, *np.cumsum(walk.exits, axis=0))):
        raise CertificateError(
            f"{part.place('exits_added')}: counts fall along the walk where they cannot."
        )


def _read_running(part: Reader, key: str, n: int) -> NDArray[np.int64]:
    """The counts whose steps `key` holds, each from 0 to `n`."""
    # Added up in Python's integers: in int64 a sum of 2^64 + 100 would be 100.
    running = [list(accumulate(steps)) for steps in part.table(key)]
    if any(min(counts, default=0) < 0 or max(counts, default=0) > n for counts in running):
        raise CertificateError(f"{part.place(key)} does not add up to counts of 0 to {n} rows.")
    return np.array(running, dtype=np.int64)


def _counts(bound: Bound, *, partial: bool) -> tuple[str, ...]:
    counts = (*_COUNTS, "unlabelled") if partial else _COUNTS
    return (*counts, "differ") if bound == "product" else counts


def _added(running: NDArray[np.int64]) -> list[list[int]]:
    steps: list[list[int]] = np.diff(running, axis=1, prepend=0).tolist()
    return steps


def _check_declared(walks: tuple[JointWalk, ...], claim: Reader, xi: float) -> None:
    """Each walk must go along its declared path: thresholds chosen otherwise are not covered by the
    proof.
    """
    if len(walks) != len(cascade_paths.TILTS):
        raise CertificateError(
            f"{claim.place('walks')}: expected {len(cascade_paths.TILTS)}, one for each declared "
            "path."
        )
    for place, (walk, tilt) in enumerate(zip(walks, cascade_paths.TILTS, strict=True)):
        path = cascade_paths.declared_path(tilt, len(walk.cells)).T.tolist()
        declared, steps = {tuple(column) for column in path}, walk.cells.T.tolist()
        # Without loss the steps that are tried are declared themselves, and held against their list
        # when they are decided again.
        if not all(tuple(column) in declared for column in steps) or (
            steps[0] != path[0] and xi > 0
        ):
            raise CertificateError(
                f"{claim.place('walks')}[{place}].cells leaves the declared path, or does not "
                "begin with it."
            )
