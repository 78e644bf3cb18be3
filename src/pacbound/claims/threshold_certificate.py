"""The certificate of a threshold claim, and what its tables say: trials, events, thresholds, shares
of rows.

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

from pacbound.claims.certificate import Certificate
from pacbound.claims.claim import Values
from pacbound.claims.tables import depend, groups_of
from pacbound.errors import InvalidTypeError, InvalidValueError
from pacbound.procedures.threshold import LOST, TOP, NoThreshold, Search, Side
from pacbound.says import Side as Rounding
from pacbound.stats.arguments import is_one_of
from pacbound.stats.binomial import bonferroni_level, sidak_level
from pacbound.tally.columns import as_names, as_scores, same_length, same_rows
from pacbound.tally.row_rules import Limit, RowRule, RowSteps

Flags = NDArray[np.bool_]
Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


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
    turns : bool
        Whether tables say where trials become events and where they cease to be: they are then not
        monotone in the threshold, and are walked from a declared start upwards.
    top : int
        The highest cell: thresholds are multiples of 1 / `top`.
    """

    of: str
    events: str
    side: Side
    lost_is_alarm: bool = False
    turns: bool = False
    top: int = TOP

    @property
    def rounding(self) -> Rounding:
        """Where a sentence may round a threshold to. Where events are not monotone, no other number
        carries the guarantee.
        """
        if self.turns:
            return "exact"
        return "down" if self.side == "below" else "up"

    def search(self, table: Values, values: Values) -> Search:
        """What is searched in a table of a document's values."""
        if self.turns:
            return _turning(table["turns"], values["start"])
        counts = table["counts"]
        cells, events = counts["cells"], counts[self.events]
        rows = sum(column for name, column in counts.items() if name != "cells")
        trials = int(np.sum(rows if self.of == "all" else counts[self.of]))
        if not self.lost_is_alarm:
            return Search(cells, events, trials, self.side, top=self.top)
        gone = cells == LOST
        lost = int(np.sum(np.asarray(rows)[gone]))
        kept = int(events[~gone].sum())
        return Search(cells[~gone], events[~gone], kept + lost, self.side, lost, self.top)

    def among(
        self, names: Sequence[str], cells: Integers, outcomes: Integers, limits: Floats
    ) -> tuple[Flags, Flags]:
        """Which rows are trials, and which are events, by the cell and the outcome of each (its
        place among `names`) and the threshold that it is compared with.
        """
        trials = outcomes == names.index(self.of) if self.of != "all" else outcomes >= 0
        limits = limits * self.top
        beyond = cells < limits if self.side == "below" else cells >= limits
        return trials, beyond & (outcomes == names.index(self.events))


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


def trials_of(certificate: Any) -> Trials:
    """Which rows of a certificate are trials."""
    found: Trials = certificate.by.procedures[certificate.values["procedure"]].trials
    return found


def search_of(certificate: Any, table: Values) -> Search:
    """What was searched for a table's threshold."""
    return trials_of(certificate).search(table, certificate.values)


def is_refused(certificate: Any, table: Values) -> bool:
    """Whether a table alone has no threshold but the one that always acts, or never."""
    limit = search_of(certificate, table).threshold(table["allowed"])
    return bool(limit == (-inf if trials_of(certificate).side == "below" else inf))


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
    return min(thresholds) if trials_of(certificate).side == "below" else max(thresholds)


def rows_of(
    counts: Mapping[str, Integers], outcome: str, stand_for: Mapping[str, float] | None = None
) -> Any:
    """The rows of an outcome in each cell; "all" for those of every outcome, each counting for as
    many as it stands for.
    """
    known = [name for name in counts if name != "cells"]
    if not is_one_of(outcome, ["all", *known]):
        raise InvalidValueError(
            f"outcome={outcome!r} was not counted: expected 'all', or one of {', '.join(known)}."
        )
    if outcome != "all":
        return counts[outcome]
    weights = stand_for or {}
    return sum(column * weights.get(name, 1) for name, column in counts.items() if name != "cells")


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


def level_of(values: Values) -> float:
    """The chance to be wrong that each table's decision has."""
    groups, delta = len(values["tables"]), float(values["delta"])
    dependent = depend(values)
    # Which groups are left out says something about the scores of groups that depend on them.
    common = values.get("group_thresholds", "common") == "common" and not (
        dependent and values.get("small_groups") == "leave-out"
    )
    if values["scope"] == "top" or common or groups == 1:
        return delta
    share = bonferroni_level if dependent else sidak_level
    return share(delta, groups)


class ThresholdCertificate(Certificate):
    """Act where the score is at or above the threshold: flag, brake, raise an alarm.

    With groups there is one threshold that every group keeps, or one for each.
    """

    @property
    def threshold(self) -> float:
        """The one threshold: -inf (flag, brake) or +inf (no alarm) if the claim is refused."""
        self.require_intact()
        if self.values.get("group_thresholds") == "own":
            raise InvalidTypeError(
                f"Each group has its own threshold: use thresholds[name]{self._or_applied}."
            )
        if self.left_out:
            raise InvalidTypeError(
                f"The threshold is not for all rows: {len(self.left_out)} groups were left out. "
                f"Use thresholds[name]{self._or_applied}."
            )
        return common_threshold(self)

    @property
    def _or_applied(self) -> str:
        """A hint that it can be applied to rows; empty if it cannot."""
        applied = self.by.row_rule(self) is not None
        return ", or apply the certificate to a frame with the column of groups" if applied else ""

    @property
    def thresholds(self) -> dict[str, float]:
        """The threshold of each group; empty without groups."""
        self.require_intact()
        if self.values["scope"] == "top":
            return {}
        return {table["group"]: table["threshold"] for table in self.values["tables"]}

    @property
    def left_out(self) -> tuple[str, ...]:
        """The groups that `small_groups="leave-out"` left out, for too few trials."""
        return tuple(str(table["group"]) for table in left_out(self.values))

    @property
    def groups(self) -> tuple[str, ...]:
        """The names of the groups."""
        return groups_of(self.values)

    @property
    def allowed(self) -> int:
        """How many trials may be events; -1 if not even zero pass. With groups, in all of them."""
        allowed = [int(table["allowed"]) for table in self.values["tables"]]
        return allowed[0] if len(allowed) == 1 else sum(max(0, one) for one in allowed)

    @property
    def refusal(self) -> NoThreshold | None:
        """Why nothing is certified, and about how many trials would do; None if it is. With groups,
        that of the first group that is refused.
        """
        if self.certified:
            return None
        refused = (one for one in self.values["tables"] if is_refused(self, one))
        claim: Any = self.by
        found: NoThreshold = claim.refusal(self, next(refused, self.values["tables"][0]))
        return found

    @property
    def looks(self) -> tuple[int, ...] | None:
        """The planned looks; None if there was no plan."""
        return self.values.get("looks")

    @property
    def look(self) -> int | None:
        """Which of the planned looks this is, from 1; None if there was no plan."""
        if self.looks is None:
            return None
        (search,) = self.searches
        return int(self.looks.index(search.trials)) + 1

    @property
    def outcomes(self) -> tuple[str, ...]:
        """The outcomes that rows were counted by."""
        found: tuple[str, ...] = self.by.question_of(self).outcomes_of_a_row
        return found

    @property
    def histograms(self) -> tuple[Mapping[str, Integers], ...]:
        """The counts of each group, or of all rows: `cells`, and the rows of each outcome there."""
        return tuple(table["counts"] for table in self.values["tables"])

    @property
    def searches(self) -> tuple[Search, ...]:
        """What was searched for the threshold of each group."""
        return tuple(search_of(self, table) for table in self.values["tables"])

    @property
    def events(self) -> int:
        """How many trials are events at the threshold, among these rows."""
        limits = [table["threshold"] for table in self.values["tables"]]
        return sum(map(Search.events_at, self.searches, limits))

    def number(self, outcome: str = "all") -> int:
        """How many rows have an outcome; a row of several groups counts in each of them."""
        return sum(int(rows_of(counts, outcome).sum()) for counts in self.histograms)

    def flags(self, score: Any, groups: Any = None) -> NDArray[np.bool_]:
        """Which rows to act on: flag, brake, alarm.

        Parameters
        ----------
        score
            One score in [0, 1] per row.
        groups
            The group of each row, where each has a threshold of its own, or some were left out.
            Rows of a group that was not certified are all flagged; where the claim is about false
            alarms, they raise none.

        Returns
        -------
        ndarray of bool
            True where the score is at or above the threshold.

        Raises
        ------
        CertificateError
            If the certificate does not follow from its own counts.
        InvalidValueError
            If a score is not in [0, 1].
        InvalidTypeError
            If `groups` is missing where each has a threshold of its own, or is there where the
            certificate has none.
        """
        self.require_plain_scores()
        scores = as_scores(score, "score")
        names = group_names(self, groups, len(scores), score=score)
        self.require_verified()
        (column,) = flag_rule(self).of_arrays([scores], names).values()
        return np.asarray(column, dtype=np.bool_)

    def share(self, outcome: str = "all") -> float | None:
        """The share of the rows of an outcome that are acted on; None if there are none. It was
        seen on these rows, and is not certified. Of "all" rows, where clusters were drawn among
        those of an outcome, these count for as many as there were.
        """
        weights = stands_for(self.values)
        total = sum(float(rows_of(one, outcome, weights).sum()) for one in self.histograms)
        return float(self._acted_on(outcome, weights) / total) if total else None

    def _acted_on(self, outcome: str = "all", weights: Mapping[str, float] | None = None) -> Any:
        acted = 0
        for table in self.values["tables"]:
            hit = table["counts"]["cells"] >= table["threshold"] * trials_of(self).top
            acted += rows_of(table["counts"], outcome, weights)[hit].sum()
        return acted

    def reached(self, *outcomes: str) -> tuple[Floats, ...]:
        """The scores that rows have, from the highest down, and for each outcome the share of its
        rows whose score is at least that; NaN if there are none. Lost rollouts reach no score.
        """
        cells = np.unique(np.concatenate([counts["cells"] for counts in self.histograms]))
        cells = cells[cells != LOST]
        shares, weights = [], stands_for(self.values)
        for outcome in outcomes:
            rows, total = np.zeros(cells.size), 0.0
            for counts in self.histograms:
                kept, of = counts["cells"] != LOST, rows_of(counts, outcome, weights)
                rows[np.searchsorted(cells, counts["cells"][kept])] += of[kept]
                total += of.sum()
            found = np.cumsum(rows[::-1])
            shares.append(found / total if total else np.full(cells.size, np.nan))
        return (cells[::-1] / trials_of(self).top, *shares)


def group_names(certificate: Any, groups: Any, rows: int, **given: Any) -> NDArray[np.str_] | None:
    """The group of each of so many rows, beside the column that was given; None if not passed."""
    if groups is None:
        return None
    if not certificate.groups:
        raise InvalidTypeError("The certificate has no groups: leave groups out.")
    same_rows(**given, groups=groups)
    names = as_names(groups, "groups").astype(np.str_)
    same_length(**{name: range(rows) for name in given}, groups=names)
    return names


def flag_rule(certificate: Any, column: str = "flag") -> RowRule:
    """1 where the score is at or above the threshold, by group where there are groups."""
    tables = certificate.values["tables"]

    def steps(threshold: float) -> RowSteps:
        return RowSteps((Limit(threshold, closed=True),), {column: (0, 1)})

    if certificate.values["scope"] == "top":
        return RowRule(1, steps(tables[0]["threshold"]), role="score", ones="flagged")
    cautious = -inf if trials_of(certificate).side == "below" else inf
    by_group = certificate.values["group_thresholds"] == "own" or left_out(certificate.values)
    return RowRule(
        1,
        None if by_group else steps(common_threshold(certificate)),
        groups={table["group"]: steps(table["threshold"]) for table in tables},
        instead=steps(cautious),
        role="score",
        ones="flagged",
        others="are flagged" if cautious < 0 else "raise no alarm",
    )
