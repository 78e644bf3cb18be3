"""The usual ways to choose the danger at which a policy must hand over to its backup. None has a
guarantee.

They are the baselines of Park et al. (2021), section 5.3: the shield fires once the danger is at or
above the threshold. For thresholds with a guarantee use `certify_shield`.
"""

from __future__ import annotations

import math
from typing import Any, Final

import numpy as np

from pacbound.errors import InvalidTypeError, InvalidValueError
from pacbound.stats.arguments import tolerated_rate
from pacbound.tally.arrays import count_shield
from pacbound.tally.tally import Tally

NAIVE_THRESHOLD: Final = 0.5
"""The paper's naive threshold: brake where un-recoverable is the likelier of the two. No row is
looked at."""

ALWAYS_BRAKE: Final = -math.inf
"""The threshold that every danger reaches, and so does a danger that could not be read."""

POLICY_ALONE: Final = math.inf
"""The threshold that no danger reaches: the backup never acts."""


def xi_threshold(*, xi: float) -> float:
    """The paper's xi-naive: brake once the danger is at least `xi`. No guarantee.

    No row is looked at: dangers are taken at their word. A state with danger below `xi` would be
    un-recoverable with probability below `xi` if they were calibrated, which they are not. And a
    rollout has many states, of which one is enough: even calibrated dangers may leave far more than
    `xi` of the rollouts unsafe.

    Examples
    --------
    >>> xi_threshold(xi=0.1)
    0.1
    """
    return tolerated_rate(xi)


def observed_miss_threshold(scores: Any, unsafe: Any = None, *, xi: float) -> float:
    """The paper's histogram binning: the largest threshold at which the rollouts seen miss at most
    `xi`. No guarantee.

    It is the search of `certify_shield` with means in place of bounds: a rollout is missed if it is
    unsafe and its score, the running maximum of the danger, is below the threshold. Of all
    thresholds j / 2^16 the largest is taken that misses at most a share `xi` of the rollouts seen.
    On new ones it misses more about half of the time: nothing is kept in reserve for chance.
    `POLICY_ALONE` where all may be missed, `ALWAYS_BRAKE` where the rollouts lost at the start are
    too many already.

    `scores` and `unsafe`, or a `Tally` in place of both, are as in `certify_shield`.

    Examples
    --------
    Of 100 rollouts three are unsafe. Two may be missed, so the shield must fire at the third one's
    danger:

    >>> scores, unsafe = [0.25, 0.5, 0.75] + [0.125] * 97, [True] * 3 + [False] * 97
    >>> observed_miss_threshold(scores, unsafe, xi=0.02)
    0.75
    """
    rate, tally = tolerated_rate(xi), _counted(scores, unsafe)
    bad = tally.counts[:, tally.outcomes.index("unsafe")]
    cells, misses = tally.cells[bad > 0, 0], np.cumsum(bad[bad > 0])
    # A quotient of integers is rounded once, as xi was when it was written: 29 of 100 are at most
    # 0.29.
    over = np.flatnonzero(misses / tally.rows > rate)
    if not over.size:
        return POLICY_ALONE
    # Scores in the cell that breaks it are not below a threshold at its lower end.
    cell, top = int(cells[over[0]]), tally.grid.n_cells - 1
    return ALWAYS_BRAKE if cell < 0 else cell / top


def _counted(scores: Any, unsafe: Any) -> Tally:
    if isinstance(scores, Tally):
        if unsafe is not None:
            raise InvalidTypeError("A tally already holds unsafe: leave it out.")
        tally = scores
    elif unsafe is None:
        raise InvalidTypeError("unsafe is missing: pass it, or a Tally in place of both arrays.")
    else:
        tally = count_shield(scores, unsafe)
    if tally.kind != "shield":
        raise InvalidValueError(
            f"{tally!r} is no tally of rollouts: count a running maximum and unsafe for each."
        )
    if tally.rows == 0:
        raise InvalidValueError(
            "There are no rollouts to choose a threshold from: pass at least one."
        )
    return tally
