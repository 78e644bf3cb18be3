"""A sequence of thresholds that a fold declared, inside a cascade certificate: as JSON and back.

Nothing here can show that the sequence came from a fold, and not from the rows that were counted:
whoever has the rows can choose again, with the share and the seed that are recorded. What is
checked is that the counts could be those of one sample at all steps of the sequence.
"""

from __future__ import annotations

from itertools import accumulate

import numpy as np
from numpy.typing import NDArray

from pacbound.documents import Json, Reader
from pacbound.errors import CertificateError, InvalidValueError
from pacbound.procedures.cascade_front import MOST_STEPS, Declared, never_cell
from pacbound.procedures.cascade_paths import checked_costs
from pacbound.procedures.joint_walk import JointWalk
from pacbound.tally.questions.cascade import MOST_EXITS

Integers = NDArray[np.int64]


def claimed_sequence(declared: Declared | None) -> dict[str, Json]:
    """What a claim holds beside the walks; nothing where no sequence was declared."""
    if declared is None:
        return {}
    return {
        "declared": {
            "models": list(declared.models),
            "costs": list(declared.costs),
            "share": declared.share,
            "seed": declared.seed,
            "rows": declared.rows,
            "cells": declared.cells.tolist(),
        }
    }


def read_sequence(claim: Reader) -> Declared:
    """The sequence that a claim holds."""
    part = claim.mapping("declared")
    cells = np.array(part.table("cells"), dtype=np.int64)
    exits, steps = cells.shape
    if exits > MOST_EXITS or not 1 <= steps <= MOST_STEPS:
        raise CertificateError(
            f"{part.place('cells')} has {exits} exits and {steps} steps: expected at most "
            f"{MOST_EXITS} exits, and 1 to {MOST_STEPS} steps."
        )
    if (cells < 0).any() or (cells > never_cell(exits)).any():
        raise CertificateError(
            f"{part.place('cells')} leaves its grid: expected 0 to {never_cell(exits)}."
        )
    if len(np.unique(cells, axis=1).T) != steps or (cells == never_cell(exits)).all(axis=0).any():
        raise CertificateError(
            f"{part.place('cells')} has a step twice, or one that never exits: expected each "
            "step once."
        )
    models = tuple(part.integers("models"))
    if len(models) != exits + 1 or len(set(models)) != len(models) or min(models) < 0:
        raise CertificateError(
            f"{part.place('models')} is {list(models)}: expected {exits + 1} different places, one "
            "for each exit and the slow model's."
        )
    share = part.number("share")
    if not 0 < share < 1:
        raise CertificateError(f"{part.place('share')} is {share}: expected 0 < share < 1.")
    return Declared(
        models,
        _read_own_costs(part, exits + 1),
        share,
        part.count("seed"),
        part.positive("rows"),
        cells,
    )


def check_front(walk: JointWalk, declared: Declared, place: str) -> None:
    """Raise unless the walk goes along the declared sequence with counts that one sample can have.

    A row leaves at exit m if it reaches that threshold and none before it. So where the thresholds
    before m are no lower and that of m is no higher, all counts of exit m are at least as large;
    and where the thresholds up to m are all no higher, no fewer rows have left by then.
    """
    if not np.array_equal(walk.cells, declared.cells[:, : len(walk)]):
        raise CertificateError(f"{place}.cells leaves the declared sequence.")
    if walk.exits[walk.cells == never_cell(len(walk.cells))].any():
        raise CertificateError(f"{place}: rows leave at an exit that is never taken.")
    left = np.cumsum(walk.exits, axis=0)
    for m, row in enumerate(walk.cells):
        # At [s, t]: every row that leaves at m (has left by m) in step t does so in step s, too.
        before = (walk.cells[:m, :, None] >= walk.cells[:m, None, :]).all(axis=0)
        at_exit = np.asarray(before & (row[:, None] <= row))
        up_to = walk.cells[: m + 1]
        by_then = np.asarray((up_to[:, :, None] <= up_to[:, None, :]).all(axis=0))
        agree = walk.exits[m] - walk.differ[m]
        counts = (walk.exits[m], agree, walk.differ[m], walk.only_slow[m], walk.only_fast[m])
        if any(_falls(count, at_exit) for count in counts) or _falls(left[m], by_then):
            raise CertificateError(
                f"{place}: the counts of exit {m} are not those of one sample at all steps."
            )


def _falls(count: Integers, more: NDArray[np.bool_]) -> bool:
    return bool((more & (count[:, None] < count)).any())


def _read_own_costs(part: Reader, models: int) -> tuple[float, ...]:
    costs = tuple(part.numbers("costs"))
    try:
        checked_costs(tuple(accumulate(costs)), models)
    except InvalidValueError as error:
        raise CertificateError(f"{part.place('costs')}, added up: {error}") from None
    return costs
