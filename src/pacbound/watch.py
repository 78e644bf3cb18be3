"""What a kind of certificate has to say to be monitored: its bets, and what a row brings.

Rows are judged into a place (the bets that the row belongs to) and an outcome of those bets. A row
that the claim says nothing about, such as one that was not answered, is left out.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from pacbound.errors import InvalidTypeError, InvalidValueError
from pacbound.stats.arguments import whole_number
from pacbound.stats.betting import Bets, loss_bets
from pacbound.tally.classes import Evidence, Vocabulary
from pacbound.tally.questions.question import Slot, scaled
from pacbound.tally.rows import Rows, only_known

Integers = NDArray[np.int64]
Counts = Sequence[tuple[int, tuple[int, ...]]]
"""A batch of counts: for some places, how often each outcome came."""


@dataclass(frozen=True)
class Seen:
    """Labels that the claim is about: the place of each, and its outcome.

    A row that belongs to several places brings a label for each, one after the other. What its
    labels say depends on each other, so the evidence may be looked at after the last of them only:
    `closes` says which labels are the last of their row. None if every label is.
    """

    places: Integers
    outcomes: Integers
    closes: NDArray[np.bool_] | None = None

    def part(self, start: int, size: int) -> Seen:
        """About `size` labels from `start` on, up to the end of a row."""
        stop = start + size
        if self.closes is None:
            return Seen(self.places[start:stop], self.outcomes[start:stop])
        stop = min(stop, len(self.outcomes))
        stop += int(np.argmax(self.closes[stop - 1 :]))
        rows = slice(start, stop)
        return Seen(self.places[rows], self.outcomes[rows], self.closes[rows])

    def looked_at(self, evidence: NDArray[np.float64], before: float) -> NDArray[np.float64]:
        """The evidence as it is looked at: within a row it is that before the row."""
        if self.closes is None:
            return evidence
        known = np.concatenate([[before], evidence[self.closes]])
        return np.asarray(known[np.cumsum(self.closes)])


@dataclass(frozen=True)
class RowReading:
    """The columns that rows bring, and how a row is judged from them; `labels` names the column of
    true classes, if there is one.
    """

    slots: Mapping[str, Slot]
    judge: Callable[[Rows, Vocabulary, Evidence], Seen]
    labels: str | None = None

    def written(self, scale: float | None) -> RowReading:
        """The same where a score of 1 is written as `scale`."""
        if scale is None:
            return self
        if not any(slot.kind == "number" and key != "loss" for key, slot in self.slots.items()):
            raise InvalidTypeError(
                "scale is about scores, and no column of scores is read here: leave it out."
            )
        return replace(self, slots=scaled(self.slots, scale))


class Watch(Protocol):
    """What a certificate claims, as bets against it."""

    roles: ClassVar[Mapping[str, bool]]
    """The columns that a row may bring, by what they are for; True for what must be there."""

    def __init__(self, certificate: Any) -> None: ...

    @property
    def bets(self) -> tuple[Bets, ...]:
        """The bets of each place."""
        ...

    @property
    def shares(self) -> NDArray[np.float64]:
        """The share of the evidence that each place starts with, where restarts are mixed; they add
        up to 1.
        """
        ...

    @property
    def outcomes(self) -> tuple[str, ...]:
        """The names of the outcomes."""
        ...

    @property
    def claimed(self) -> str:
        """What holds while the certificate does, in words."""
        ...

    @property
    def single(self) -> str | None:
        """The name of the column that stands for all others where a bare array is given."""
        ...

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that a row usually brings."""
        ...

    def place_name(self, place: int) -> str | None:
        """What a place is called; None if there is only one."""
        ...

    def of_columns(self, named: Mapping[str, Any]) -> RowReading:
        """How rows of a table are judged whose columns are named."""
        ...

    def of_arrays(self, given: Mapping[str, Any]) -> tuple[RowReading, Mapping[str, Any]]:
        """How rows of arrays are judged, and the arrays by slot."""
        ...

    def counted(self, given: Mapping[str, Any]) -> Counts:
        """A batch of counts, checked."""
        ...


def one_place(outcomes: NDArray[Any]) -> Seen:
    """Rows that all have the same bets."""
    return Seen(np.zeros(len(outcomes), dtype=np.int64), outcomes.astype(np.int64))


def bets_on_losses(xi: float) -> tuple[Bets, ...]:
    """The bets of a claim that one rate is at most `xi`."""
    bets = loss_bets(xi)
    if bets is None:
        raise InvalidValueError(
            f"xi={xi} is too near 1 to be monitored: no rate above it is left to bet on."
        )
    return (bets,)


def losses_of_labels(given: Mapping[str, Any], what: str) -> tuple[int, int]:
    """How many labels were kept and lost, from `losses` and `labels`."""
    counts = only_known(given, {"losses": True, "labels": True}, what)
    losses, labels = (whole_number(counts[name], name) for name in ("losses", "labels"))
    if losses > labels:
        raise InvalidValueError(
            f"{losses} losses of {labels} labels cannot be: expected losses <= labels. Check the "
            "order of the counts."
        )
    return labels - losses, losses
