"""The danger of each rollout in a frame: its running maximum, or that at the first un-recoverable
state.

The key of a row says whether it is the one or the other that is wrong with it.
"""

from __future__ import annotations

from typing import Final

import narwhals as nw

from pacbound.errors import InvalidValueError
from pacbound.tally.arrays import FINE
from pacbound.tally.frames.cells import LOST, cell_key, check_scores
from pacbound.tally.frames.columns import Frame, number
from pacbound.tally.frames.counts import KeyCounts
from pacbound.tally.frames.outcomes import OUTCOME, Flag

DANGER: Final = "danger"
_OF_FINAL: Final = -10.0
"""Added to the key of a final score that is none."""

_SWAPPED: Final = -20.0


def danger_key(frame: Frame, score: str, unsafe: Flag, final_score: str | None) -> nw.Expr:
    """The key of the running maximum, or of the final score where that is asked for and the rollout
    is unsafe.
    """
    running = number(frame, score)
    key = cell_key(running, FINE, lost=True)
    if final_score is None:
        return key
    final = number(frame, final_score)
    last = cell_key(final, FINE, lost=True)
    # What is a little above 1 counts as 1, so nothing is above a maximum of 1.
    swapped = nw.when((final > running) & (running < 1.0)).then(nw.lit(_SWAPPED)).otherwise(last)
    of_unsafe = nw.when(last < 0.0).then(last + _OF_FINAL).otherwise(swapped)
    legal = nw.when(unsafe.is_true).then(of_unsafe).otherwise(key)
    return nw.when(key < 0.0).then(key).otherwise(legal)


def check_dangers(
    counts: KeyCounts, frame: Frame, score: str, unsafe: Flag, final_score: str | None
) -> None:
    """Refuse rollouts whose danger is no score, or contradicts what else is known of them."""
    keys = counts.numbers(DANGER)
    saved = counts.rows_where((keys == LOST) & (counts.numbers(OUTCOME) == 0))
    if saved:
        raise InvalidValueError(
            f"{score} holds -inf, lost at its start, but {unsafe.name} is False there ({saved} "
            "such): a lost rollout is unsafe."
        )
    check_scores(counts, DANGER, frame, number(frame, score), score, lost=True)
    if final_score is None:
        return
    looked_at = nw.when(unsafe.is_true).then(number(frame, final_score))
    check_scores(counts, DANGER, frame, looked_at, final_score, lost=True, shift=_OF_FINAL)
    swapped = counts.rows_where(keys == _SWAPPED)
    if swapped:
        raise InvalidValueError(
            f"{final_score} is above its running maximum {score} ({swapped} such values): expected "
            f"{score} to be the maximum up to and including the first un-recoverable state. Were "
            "they swapped?"
        )
