"""A rate as a value: which rows are trials, which of these are events, and on which side of a
threshold; and what follows for the table of a group, or of all rows.

Where the trials do not depend on the threshold, events are monotone in it, and one test decides
(`pacbound.procedures.threshold`). Where they are the rows that reach the threshold, the rate is not
monotone, and walks down the thresholds decide which hold (`pacbound.procedures.abstention`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import inf
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pacbound.claims.claim import Values
from pacbound.claims.tables import level_of_tables
from pacbound.errors import InvalidValueError
from pacbound.forms import allowed_rate
from pacbound.procedures import abstention, graded_abstention, threshold
from pacbound.procedures.abstention import NothingPassed
from pacbound.procedures.threshold import LOST, TOP, Decision, NoThreshold, Search, Side
from pacbound.says import Side as Rounding
from pacbound.stats.arguments import is_one_of
from pacbound.stats.binomial import bonferroni_level
from pacbound.stats.looks import planned_looks

Flags = NDArray[np.bool_]
Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
# Why there is no threshold, by either procedure.
Refusal = NoThreshold | NothingPassed

ALL, REACHED = "all", "reached"


@dataclass(frozen=True)
class Rate:
    """Which rows are trials, and when a trial is an event.

    Attributes
    ----------
    of : str
        The outcome whose rows are trials; "all" for every row, "reached" for those whose score
        reaches the threshold.
    events : str
        The outcome whose rows can be events: `of` itself, if that is an outcome.
    side : str
        A row of that outcome is an event where its score lies "below" the threshold, or "from" it
        on.
    lost_is_alarm : bool
        Whether a lost rollout is a trial, and an event at every threshold.
    turns : bool
        Whether tables say where trials become events and where they cease to be: they are then not
        monotone in the threshold, and are walked from a declared start upwards.
    unavoidable_first : bool
        Whether a refusal names events that no threshold avoids as its reason also where not even
        none would pass.
    top : int
        The highest cell: thresholds are multiples of 1 / `top`.
    graded : bool
        Whether rows have grades, and lose what these are below the best. Bets decide then, on every
        threshold by itself (`pacbound.procedures.graded_abstention`).
    """

    of: str
    events: str
    side: Side = "below"
    lost_is_alarm: bool = False
    turns: bool = False
    unavoidable_first: bool = False
    top: int = TOP
    graded: bool = False

    @property
    def reached(self) -> bool:
        """Whether the trials are the rows that reach the threshold."""
        return self.of == REACHED

    @property
    def refused(self) -> float:
        """The threshold of a refusal: it always acts, or never."""
        return -inf if self.side == "below" else inf

    @property
    def rounding(self) -> Rounding:
        """Where a sentence may round a threshold to. Where events are not monotone, no other number
        carries the guarantee.
        """
        if self.turns or self.reached:
            return "exact"
        return "down" if self.side == "below" else "up"

    def cautious(self, thresholds: Sequence[float]) -> float:
        """The most cautious of some thresholds."""
        return min(thresholds) if self.side == "below" else max(thresholds)

    def search(self, table: Values, values: Values) -> Search:
        """What is searched in a table of a document's values; of rows that reach a threshold, those
        that reach the table's own.
        """
        if self.turns:
            return _turning(table["turns"], values["start"])
        counts = table["counts"]
        cells, events, rows = counts["cells"], counts[self.events], rows_of(counts, ALL)
        if self.reached:
            reached = cells >= table["threshold"] * self.top
            return Search(cells, events, int(rows[reached].sum()), self.side, top=self.top)
        trials = int(rows_of(counts, self.of).sum())
        if not self.lost_is_alarm:
            return Search(cells, events, trials, self.side, top=self.top)
        gone = cells == LOST
        lost = int(rows[gone].sum())
        kept = int(events[~gone].sum())
        return Search(cells[~gone], events[~gone], kept + lost, self.side, lost, self.top)

    def among(
        self, names: Sequence[str], cells: Integers, outcomes: Any, limits: Floats
    ) -> tuple[Flags, Any]:
        """Which rows are trials, and which are events, by the cell and the outcome of each (its
        place among `names`, or a grade between two) and the threshold that it is compared with.
        """
        limits = limits * self.top
        beyond = cells < limits if self.side == "below" else cells >= limits
        event = names.index(self.events)
        if self.reached:
            return beyond, np.abs(outcomes - (1 - event))
        trials = outcomes >= 0 if self.of == ALL else outcomes == names.index(self.of)
        return trials, beyond & (outcomes == event)

    def level(self, values: Values) -> float:
        """The chance to be wrong that each table's decision has."""
        delta = float(values["delta"])
        if self.reached:
            return bonferroni_level(delta, len(values["tables"]))
        return level_of_tables(delta, values, own=self.own(values))

    def own(self, values: Values) -> bool:
        """Whether each group has a threshold of its own."""
        return self.reached or values.get("group_thresholds") == "own"

    def decided(self, table: Values, values: Values) -> dict[str, Any]:
        """The threshold of a table by itself, and how many events are allowed, or all thresholds
        that are claimed.
        """
        if not self.reached:
            found = self._found(table, values)
            return {"threshold": found.threshold, "allowed": found.allowed}
        claimed = self._machine.claimed(**self._walked(table, values))
        return {"threshold": claimed[-1][0] / self.top if claimed else inf, "claimed": claimed}

    def refusal(self, table: Values, values: Values) -> Refusal | None:
        """Why a table has no threshold; None if its counts give one."""
        if not self.reached:
            return self._found(table, values).refusal
        walked = self._walked(table, values)
        machine = self._machine
        return None if machine.claimed(**walked) else machine.refusal(**walked)

    @property
    def _machine(self) -> Any:
        """What decides of rows that reach the threshold."""
        return graded_abstention if self.graded else abstention

    def _found(self, table: Values, values: Values) -> Decision:
        search, rate, level = self.search(table, values), allowed_rate(values), self.level(values)
        if values.get("looks") is not None:
            plan = planned_looks(rate, delta=level, looks=values["looks"])
            return threshold.decide_at_look(search, plan)
        first = self.unavoidable_first
        return threshold.decide(search, rate=rate, delta=level, unavoidable_first=first)

    def _walked(self, table: Values, values: Values) -> dict[str, Any]:
        counts, first = table["counts"], values.get("first_threshold")
        shared = {"xi": allowed_rate(values), "delta": self.level(values)}
        if self.graded:
            return {"cells": counts["cells"], "grades": counts["grades"], **shared}
        events = counts[self.events]
        return {
            "cells": counts["cells"],
            "wrong": events,
            "right": rows_of(counts, ALL) - events,
            **shared,
            "declared": None if first is None else int(first * self.top),
        }


def _turning(turns: Mapping[str, Integers], start: float) -> Search:
    """The events at the start, and where they become more or fewer from there on. In the cell below
    the grid every trial begins, so that cell has all of them.
    """
    cells, begin = turns["cells"], turns["cells"] == LOST
    trials = int(turns["safe"][begin].sum() + turns["unsafe"][begin].sum())
    events = turns["unsafe"] - np.where(begin, 0, turns["safe"])
    later = cells >= start * TOP
    return Search(
        np.concatenate([[LOST], cells[later]]),
        np.concatenate([[events[~later].sum()], events[later]]),
        trials,
        "below",
    )


def rows_of(
    counts: Mapping[str, Integers], outcome: str, stand_for: Mapping[str, float] | None = None
) -> Any:
    """The rows of an outcome in each cell; "all" for those of every outcome, each counting for as
    many as it stands for.
    """
    known = [name for name in counts if name not in ("cells", "grades")]
    if not is_one_of(outcome, [ALL, *known]):
        raise InvalidValueError(
            f"outcome={outcome!r} was not counted: expected 'all', or one of {', '.join(known)}."
        )
    if outcome != ALL:
        return counts[outcome]
    weights = stand_for or {}
    return sum(counts[name] * weights.get(name, 1) for name in known)


def stands_for(values: Values) -> dict[str, float]:
    """How many rows each counted row of an outcome stands for, where clusters were drawn among its
    rows; all others stand for themselves.
    """
    drawn, found = values["drawn"], dict[str, float]()
    for name, rows in () if drawn is None else drawn.among:
        # Of groups that overlap, the tables do not say how many rows there are.
        kept = values["n"] - drawn.others
        if len(drawn.among) > 1:
            kept = sum(int(table["counts"][name].sum()) for table in values["tables"])
        found[name] = rows / kept if kept else 1.0
    return found


def rate_of(certificate: Any) -> Rate:
    """The rate that a certificate is about."""
    found: Rate = certificate.by.procedures[certificate.values["procedure"]].rate
    return found


def search_of(certificate: Any, table: Values) -> Search:
    """What was searched for a table's threshold."""
    return rate_of(certificate).search(table, certificate.values)


def is_refused(certificate: Any, table: Values) -> bool:
    """Whether a table alone has no threshold but the one that always acts, or never."""
    rate = rate_of(certificate)
    if rate.reached:
        return not table["claimed"]
    return bool(search_of(certificate, table).threshold(table["allowed"]) == rate.refused)


def is_left_out(values: Values, table: Values) -> bool:
    """Whether a table was left out, as was asked for: by its number of trials alone, of which not
    even zero events would pass.
    """
    return values.get("small_groups") == "leave-out" and table["allowed"] < 0


def left_out(values: Values) -> list[Values]:
    """The tables that were left out."""
    return [table for table in values["tables"] if is_left_out(values, table)]


def common_threshold(certificate: Any) -> float:
    """The most cautious of the thresholds of all tables that were not left out."""
    values = certificate.values
    kept = [table for table in values["tables"] if not is_left_out(values, table)]
    thresholds = [float(table["threshold"]) for table in kept or values["tables"]]
    return rate_of(certificate).cautious(thresholds)
