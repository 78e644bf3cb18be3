"""Planned looks as certificates hold them: the plan that was passed, checked, and read again."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from math import isclose

from pacbound.documents import Reader
from pacbound.errors import CertificateError, InvalidValueError
from pacbound.stats.looks import PlannedLooks, looks_work, plan_at
from pacbound.tally.tally import Tally

_LOOKS_WORK = 8e9
"""Multiplications of a plan that take as long as the longest usual certificate."""


def plan_of(looks: PlannedLooks | Sequence[int], *, xi: float, delta: float) -> PlannedLooks:
    """The plan for `xi` and `delta` of the looks that were passed, or of those of a plan.

    A plan for other numbers is refused. Its `xi` may differ by rounding, as 0.05 does from
    1 - 0.95: its own numbers are not taken, but computed from its looks.
    """
    if not isinstance(looks, PlannedLooks):
        return plan_at(xi, delta=delta, looks=looks)
    if not isclose(looks.xi, xi, rel_tol=1e-12) or looks.delta != delta:
        raise InvalidValueError(
            f"looks were planned for xi={looks.xi} and delta={looks.delta}, not for xi={xi} and "
            f"delta={delta}: pass the same."
        )
    return plan_at(xi, delta=delta, looks=looks.looks)


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


def read_looks(claim: Reader, at: int, what: str) -> tuple[int, ...]:
    """The looks of a claim, one of which is `at`, which is called `what`."""
    looks = tuple(claim.integers("looks"))
    if any(later <= look for look, later in pairwise((0, *looks))) or at not in looks:
        raise CertificateError(
            f"{claim.place('looks')} is not a plan: expected rising numbers, one of which is "
            f"{what}."
        )
    return looks
