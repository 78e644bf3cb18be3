"""What the tables of a threshold certificate say: trials, events, thresholds, shares of rows.

A table is the histogram of a group, or of all rows, with its decision. Everything here reads values
that are decided already.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import inf
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pacbound.errors import InvalidValueError
from pacbound.procedures.threshold import LOST, TOP, Search, Side
from pacbound.stats.arguments import is_one_of
from pacbound.stats.sequences import bonferroni_level, sidak_level
from pacbound.tally.tally import Tally

Flags = NDArray[np.bool_]
Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Values = Mapping[str, Any]


@dataclass(frozen=True)
class Trials:
    """Which rows are trials, and when a trial is an event.

    Attributes
    ----------
    of : str
        The outcome whose rows are trials; "all" for every row.
    events : str
        The outcome whose rows can be events: `of` itself, unless every row is a trial.
    side : str
        A row of that outcome is an event where its score lies "below" the threshold, or "from" it
        on.
    lost_is_alarm : bool
        Whether a lost rollout is a trial, and an event at every threshold.
    """

    of: str
    events: str
    side: Side
    lost_is_alarm: bool = False

    def search(self, counts: Mapping[str, Integers]) -> Search:
        """What is searched in the counts of a table."""
        cells, events = counts["cells"], counts[self.events]
        rows = sum(column for name, column in counts.items() if name != "cells")
        trials = int(np.sum(rows if self.of == "all" else counts[self.of]))
        if not self.lost_is_alarm:
            return Search(cells, events, trials, self.side)
        gone = cells == LOST
        lost = int(np.sum(np.asarray(rows)[gone]))
        kept = int(events[~gone].sum())
        return Search(cells[~gone], events[~gone], kept + lost, self.side, lost)

    def among(
        self, names: Sequence[str], cells: Integers, outcomes: Integers, limits: Floats
    ) -> tuple[Flags, Flags]:
        """Which rows are trials, and which are events, by the cell and the outcome of each (its
        place among `names`) and the threshold that it is compared with.
        """
        trials = outcomes == names.index(self.of) if self.of != "all" else outcomes >= 0
        beyond = cells < limits * TOP if self.side == "below" else cells >= limits * TOP
        return trials, beyond & (outcomes == names.index(self.events))


def trials_of(certificate: Any) -> Trials:
    """Which rows of a certificate are trials."""
    found: Trials = certificate.by.procedures[certificate.values["procedure"]].trials
    return found


def search_of(certificate: Any, table: Values) -> Search:
    """What was searched for a table's threshold."""
    return trials_of(certificate).search(table["counts"])


def is_refused(trials: Trials, table: Values) -> bool:
    """Whether a table has no threshold: the one that always acts, or never."""
    return bool(table["threshold"] == (-inf if trials.side == "below" else inf))


def threshold_of(certificate: Any, table: Values) -> float:
    """The threshold that rows of a table are compared with."""
    if certificate.values.get("group_thresholds") == "own":
        return float(table["threshold"])
    return common_threshold(certificate)


def common_threshold(certificate: Any) -> float:
    """The most cautious of the thresholds of all tables."""
    thresholds = [float(table["threshold"]) for table in certificate.values["tables"]]
    return min(thresholds) if trials_of(certificate).side == "below" else max(thresholds)


def rows_of(counts: Mapping[str, Integers], outcome: str) -> Integers:
    """The rows of an outcome in each cell; "all" for those of every outcome."""
    known = [name for name in counts if name != "cells"]
    if not is_one_of(outcome, ["all", *known]):
        raise InvalidValueError(
            f"outcome={outcome!r} was not counted: expected 'all', or one of {', '.join(known)}."
        )
    if outcome != "all":
        return counts[outcome]
    columns = [column for name, column in counts.items() if name != "cells"]
    return np.asarray(np.sum(columns, axis=0), dtype=np.int64)


def level_of(values: Values) -> float:
    """The chance to be wrong that each table's decision has."""
    groups, delta = len(values["tables"]), float(values["delta"])
    if values["scope"] == "top" or values["group_thresholds"] == "common" or groups == 1:
        return delta
    share = sidak_level if values["scope"] == "groups" else bonferroni_level
    return share(delta, groups)


def tables_of(tally: Tally) -> list[tuple[str | None, dict[str, Integers]]]:
    """The histogram of each group of a tally, or of all rows."""
    hit = tally.counts.any(axis=1)
    cells, counts = tally.cells[hit, -1], tally.counts[hit]
    if tally.scope == "top":
        return [(None, _columns(tally, cells, counts))]
    places = tally.cells[hit, 0]
    return [
        (group, _columns(tally, cells[places == place], counts[places == place]))
        for place, group in enumerate(tally.groups)
    ]


def _columns(tally: Tally, cells: Integers, counts: Integers) -> dict[str, Integers]:
    return {"cells": cells, **dict(zip(tally.outcomes, counts.T.copy(), strict=True))}
