"""A threshold claim in use: each trial is one label, and a loss if it is an event.

Rows are judged by the claim's own question. Those that are not trials say nothing about the claim,
and are left out. Where there are groups, each has bets of its own.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pacbound.claims.threshold_values import Trials, threshold_of
from pacbound.errors import InvalidValueError
from pacbound.procedures.threshold import TOP
from pacbound.stats.betting import Bets
from pacbound.tally.classes import Evidence, Vocabulary
from pacbound.tally.questions.question import Question, Slot
from pacbound.tally.rows import Rows, only_known
from pacbound.watch import (
    Counts,
    RowReading,
    Seen,
    bets_on_losses,
    losses_of_labels,
    one_place,
)


class ThresholdWatch:
    """At most a share `rate` of the trials are events, at the certified thresholds."""

    single = None

    def __init__(  # noqa: PLR0913, RUF100
        self,
        certificate: Any,
        question: Any,
        trials: Trials,
        rate: float,
        claimed: str,
        seen_as: tuple[str, str],
    ) -> None:
        tables = certificate.values["tables"]
        self.outcomes, self.claimed = seen_as, claimed
        self._question, self._trials, self._what = (
            question,
            trials,
            f"A monitored {certificate.kind}",
        )
        self._limits = {table["group"]: threshold_of(certificate, table) for table in tables}
        if trials.side == "below" and all(limit <= 0 for limit in self._limits.values()):
            raise InvalidValueError(
                "This certificate acts on every row, so that nothing can be missed: there is "
                "nothing to monitor."
            )
        self._groups = [group for group in self._limits if group is not None]
        self.bets: tuple[Bets, ...] = bets_on_losses(rate) * len(self._limits)
        self.shares = np.full(len(self._limits), 1 / len(self._limits))

    @property
    def roles(self) -> Mapping[str, bool]:
        """The columns that a row brings; the group, where there are groups."""
        return {**self._question.roles, "groups": bool(self._groups)}

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that a row must bring."""
        return tuple(name for name, must in self.roles.items() if must)

    def place_name(self, place: int) -> str | None:
        """The group; None if there is only one place."""
        return self._groups[place] if self._groups else None

    def of_columns(self, named: Mapping[str, Any]) -> RowReading:
        """How rows of a table are judged whose columns are named."""
        question = self._question.of_columns(**named)
        return RowReading(question.slots, self._judging(question))

    def of_arrays(self, given: Mapping[str, Any]) -> tuple[RowReading, Mapping[str, Any]]:
        """How rows of arrays are judged, and the arrays by slot."""
        question, arrays = self._question.of_arrays(**given)
        return RowReading(question.slots, self._judging(question)), arrays

    def counted(self, given: Mapping[str, Any]) -> Counts:
        """`losses` events of `labels` trials, for a claim without groups."""
        if self._groups:
            raise InvalidValueError("A claim about groups takes rows, not counts: pass the rows.")
        return [(0, losses_of_labels(given, self._what))]

    def _judging(self, question: Question) -> Any:
        def judged(rows: Rows, vocabulary: Vocabulary, evidence: Evidence) -> Seen:
            found = question.judge(rows, vocabulary, evidence)
            cells, names = found.cells[:, -1], question.outcomes
            outcome = np.array(names)[found.outcomes]
            is_trial = (
                np.ones(len(cells), bool)
                if self._trials.of == "all"
                else (outcome == self._trials.of)
            )
            places = self._places(found.groups, found.places, len(cells))
            limits = np.array([*self._limits.values()])[places]
            beyond = (
                cells < limits * TOP if self._trials.side == "below" else (cells >= limits * TOP)
            )
            events = beyond & (outcome == self._trials.events)
            kept = is_trial & (places >= 0)
            return Seen(places[kept], events[kept].astype(np.int64))

        return judged

    def _places(
        self, groups: tuple[str, ...], places: NDArray[np.int64] | None, rows: int
    ) -> NDArray[np.int64]:
        """The bets of each row; -1 for groups that were not certified."""
        if not self._groups or places is None:
            return np.zeros(rows, dtype=np.int64)
        known = [self._groups.index(name) if name in self._groups else -1 for name in groups]
        return np.array([*known, -1], dtype=np.int64)[places]


class ToldWatch:
    """At most a share `rate` of what happens in use goes wrong, as a column of truth values says:
    the threshold has acted already.
    """

    shares = np.ones(1)

    def __init__(
        self, certificate: Any, column: str, seen_as: tuple[str, str], rate: float, claimed: str
    ) -> None:
        self._what = f"A monitored {certificate.kind}"
        self.roles: Mapping[str, bool] = {column: True}
        self.columns, self.single, self.outcomes = (column,), column, seen_as
        self.bets: tuple[Bets, ...] = bets_on_losses(rate)
        self.claimed = claimed

    def place_name(self, place: int) -> str | None:  # noqa: ARG002
        """None: there is only one place."""
        return None

    def of_columns(self, named: Mapping[str, Any]) -> RowReading:
        """How rows of a table are judged whose column is named."""
        (slot,) = only_known(named, self.roles, self._what).values()
        (column,) = self.columns
        return RowReading(
            {column: Slot("flag", slot)}, lambda rows, *_: one_place(rows.flags(column))
        )

    def of_arrays(self, given: Mapping[str, Any]) -> tuple[RowReading, Mapping[str, Any]]:
        """The same of an array."""
        passed = only_known(given, self.roles, self._what)
        return self.of_columns({name: name for name in passed}), passed

    def counted(self, given: Mapping[str, Any]) -> Counts:
        """`losses` that went wrong of `labels`."""
        return [(0, losses_of_labels(given, self._what))]
