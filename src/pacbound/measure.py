"""What planning improves: how a sample is certified for a claim, and what makes it useful."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from pacbound.tally.tally import Tally


@dataclass(frozen=True)
class Sample:
    """What one sample came to.

    `certified` is False for a refusal; `value` is the measure; `thresholds` has one for each exit,
    none for a calibration; `coarse` where a quicker test
    stood in for the one that certifies.
    """

    certified: bool
    value: float
    thresholds: tuple[float, ...]
    coarse: bool = False


def all_rows(tally: Tally) -> int:
    """Every row needs a label."""
    return tally.rows


def one_outcome(tally: Tally) -> str | None:
    """Why a pilot says too little: all its rows have the same outcome."""
    seen = [name for name, count in tally.totals.items() if count]
    return f"every row of it is {seen[0]!r}; draw a larger one" if len(seen) == 1 else None


def _drawn_alone(laws: Sequence[Tally], rows: int, rate: Any, delta: float) -> None:
    """Nothing is computed exactly."""


@dataclass(frozen=True)
class Measure:
    """How samples for one claim are certified and judged.

    `name` is what is measured, in `unit`s, better if `larger`. `asked` names the rate that is to be
    certified, if there is one: `xi`, which is allowed, or `target`, which is required.
    `certify(tally, rate, delta)` gives the sample's worth, `least(pilot, rate, delta)` the fewest
    rows worth trying, `labels(tally)` how many of its rows need a label, and `silent(tally)` why a
    pilot cannot be planned from, with the remedy, or None. `subject` is what is planned for, as a
    sentence has it, where the kind of the claim does not say it. `chances(laws, rows, rate, delta)`
    gives the chance that so many rows drawn from each law are certified, computed exactly; None
    where samples must be drawn to see it.
    """

    name: str
    unit: str
    larger: bool
    asked: Literal["xi", "target"] | None
    certify: Callable[[Tally, Any, float], Sample]
    least: Callable[[Tally, Any, float], int]
    labels: Callable[[Tally], int] = all_rows
    silent: Callable[[Tally], str | None] = one_outcome
    subject: str = ""
    chances: Callable[[Sequence[Tally], int, Any, float], Any] = _drawn_alone
