"""Planned looks as certificates hold them: the plan that was passed, checked, and read again."""

from __future__ import annotations

from collections.abc import Sequence

from pacbound.errors import InvalidValueError
from pacbound.stats.looks import looks_work
from pacbound.tally.tally import Tally

_LOOKS_WORK = 8e9
"""Multiplications of a plan that take as long as the longest usual certificate."""


def require_all_rows(tally: Tally) -> None:
    """Raise if the rows of a look were drawn from others: a later look would draw others."""
    if tally.drawn is not None:
        raise InvalidValueError(
            f"looks do not go with rows drawn by {tally.drawn.by}: more rows of a cluster change "
            "which one is drawn. Pass delta divided by the number of looks at each of them instead."
        )


def plan_work(looks: Sequence[int] | None, *, xi: float, delta: float) -> float:
    """How long a plan takes to compute again, as `Certificate.work` counts it."""
    if looks is None or xi == 0:
        return 0.0
    return looks_work(looks, xi=xi, delta=delta) / _LOOKS_WORK
