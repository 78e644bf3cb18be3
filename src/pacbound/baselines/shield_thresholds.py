"""The usual ways to choose the danger at which a policy must hand over to its backup.

None has a guarantee. They are the baselines of Park et al. (2021), section 5.3: the shield fires
once the danger is at or above the threshold. For thresholds with a guarantee use `certify_shield`.
"""

from __future__ import annotations

import math
from typing import Any, Final

import numpy as np

from pacbound.errors import InvalidTypeError, InvalidValueError
from pacbound.stats.arguments import tolerated_rate
from pacbound.tally.questions.rollouts import ROLLOUTS
from pacbound.tally.tally import Tally

NAIVE_THRESHOLD: Final = 0.5
"""The paper's naive threshold: brake where the state is more likely un-recoverable than not."""

ALWAYS_BRAKE: Final = -math.inf
"""The threshold that every danger reaches, an invalid one included: the backup always acts."""

POLICY_ALONE: Final = math.inf
"""The threshold that no danger reaches: the backup never acts."""


def xi_threshold(xi: float) -> float:
    """The paper's xi-naive: brake once the danger is at least `xi`. No guarantee.

    No row is looked at: dangers are believed as they are. If they were calibrated, which they are
    not, a state with danger below `xi` would be un-recoverable with probability below `xi`. But a
    rollout has many states, and one un-recoverable state makes it unsafe: even calibrated dangers
    may leave far more than `xi` of the rollouts unsafe.

    Parameters
    ----------
    xi
        The share of rollouts that may be unsafe, 0 <= xi < 1.

    Returns
    -------
    float
        The threshold: `xi` itself.

    Raises
    ------
    InvalidTypeError
        If `xi` is not one number.
    InvalidValueError
        If `xi` is not in [0, 1).

    Examples
    --------
    >>> xi_threshold(0.1)
    0.1
    """
    return tolerated_rate(xi)


def observed_miss_threshold(scores: Any, unsafe: Any = None, *, xi: float) -> float:
    """The paper's histogram binning: the largest threshold that missed at most `xi`. No guarantee.

    This is the search of `certify_shield` with means in place of bounds. A rollout is missed if it
    is unsafe and its score, the running maximum of the danger, is below the threshold. Of all
    thresholds j / 2^16 the largest is taken that misses at most a share `xi` of the rollouts seen.
    On new ones it misses more about half of the time: nothing is kept in reserve for chance.

    Parameters
    ----------
    scores
        The score of each rollout, as for `certify_shield`, or a shield `Tally` in place of both
        arguments.
    unsafe
        Whether each rollout was unsafe.
    xi
        The share of rollouts that may be missed, 0 <= xi < 1.

    Returns
    -------
    float
        The threshold; `POLICY_ALONE` where all may be missed, `ALWAYS_BRAKE` where too many
        rollouts are lost at the start already.

    Raises
    ------
    InvalidTypeError
        If `unsafe` is missing, or comes with a tally.
    InvalidValueError
        If there are no rollouts, or the tally is not one of rollouts; if `xi` is not in [0, 1).

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
        tally = Tally.count(ROLLOUTS, score=scores, unsafe=unsafe)
    if tally.kind != ROLLOUTS.kind:
        raise InvalidValueError(
            f"{tally!r} is not a tally of rollouts: count a running maximum and unsafe for each."
        )
    if tally.rows == 0:
        raise InvalidValueError(
            "There are no rollouts to choose a threshold from: pass at least one."
        )
    return tally
