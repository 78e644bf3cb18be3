"""The certificates of rates: what was seen at their thresholds, and which rows they act on.

A table is the histogram of a group, or of all rows, with its decision. Everything here reads values
that are decided already.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from math import inf
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pacbound.claims.certificate import EXPLAINED_WORK, Certificate
from pacbound.claims.claim import Values
from pacbound.claims.rates import (
    ALL,
    Floats,
    Integers,
    Refusal,
    common_threshold,
    is_refused,
    left_out,
    rate_of,
    rows_of,
    search_of,
    stands_for,
)
from pacbound.claims.tables import groups_of
from pacbound.errors import InvalidTypeError, InvalidValueError
from pacbound.procedures.threshold import LOST, SLOW, UNEXPLAINED, NoThreshold
from pacbound.stats.arguments import is_one_of, real_number
from pacbound.tally.columns import as_names, as_scores, same_length, same_rows
from pacbound.tally.row_rules import Limit, RowRule, RowSteps


class RateCurve(NamedTuple):
    """What was seen at each threshold, from the highest score down. No point of it is certified.

    Attributes
    ----------
    thresholds : ndarray
        The scores that rows have, on the grid of 2^-16.
    coverage : ndarray
        The share of all rows whose score is at least that: flagged, answered, stopped.
    rate : ndarray
        The share of the trials that are events there: of the positives, those that are missed; of
        the answers, those that are wrong. NaN if there are no trials.

    Examples
    --------
    >>> from pacbound import certify_abstention
    >>> certificate = certify_abstention([0.5, 0.75], [False, True], xi=0.1, delta=0.1)
    >>> certificate.curve().rate
    array([0. , 0.5])
    """

    thresholds: Floats
    coverage: Floats
    rate: Floats


class ThresholdCertificate(Certificate):
    """Act where the score is at or above the threshold: flag, brake, raise an alarm.

    With groups there is one threshold that every group keeps, or one for each.
    """

    @property
    def threshold(self) -> float:
        """The one threshold: -inf (flag, brake) or +inf (no alarm) if the claim is refused."""
        self.require_intact()
        if self.groups and rate_of(self).own(self.values):
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
    def allowed(self) -> Any:
        """How many trials may be events; -1 if not even zero pass. With groups, in all of them.
        None where the trials are the rows that reach the threshold.
        """
        if rate_of(self).reached:
            return None
        allowed = [int(table["allowed"]) for table in self.values["tables"]]
        return allowed[0] if len(allowed) == 1 else sum(max(0, one) for one in allowed)

    @property
    def refusal(self) -> Refusal | None:
        """Why nothing is certified, and about how many trials would do; None if it is. With groups,
        that of the first group that is refused.
        """
        unknown = NoThreshold(UNEXPLAINED, 0, None)
        return None if self.certified else next(iter(self.refusals.values()), unknown)

    @cached_property
    def refusals(self) -> dict[str | None, Refusal]:
        """Why each table without a threshold has none, computed from its counts: documents do not
        hold it. What would take long is not tried on a document that was read.
        """
        tables = [table for table in self.values["tables"] if is_refused(self, table)]
        looks = self.values.get("looks") is not None
        slow = self.work() > EXPLAINED_WORK and (self.loaded is not None or looks)
        rate, code = rate_of(self), SLOW if slow else UNEXPLAINED
        return {
            table["group"]: (None if slow else rate.refusal(table, self.values))
            or NoThreshold(code, 0, None)
            for table in tables
        }

    @property
    def look(self) -> int | None:
        """Which of the planned looks this is, from 1; None if there was no plan."""
        looks = self.values.get("looks")
        return None if looks is None else int(looks.index(self.trials)) + 1

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
    def trials(self) -> int:
        """How many of these rows the rate is a share of: positives, negatives, answers."""
        return sum(search_of(self, table).trials for table in self.values["tables"])

    @property
    def events(self) -> int:
        """How many trials are events at the threshold, among these rows: missed, wrong, unsafe."""
        tables = self.values["tables"]
        return sum(search_of(self, table).events_at(table["threshold"]) for table in tables)

    @property
    def observed_rate(self) -> float | None:
        """The share of these trials that are events; None if there are no trials. It is not
        certified.
        """
        return self.events / self.trials if self.trials else None

    @property
    def acted(self) -> int:
        """How many of these rows are acted on: flagged, answered, stopped."""
        return int(self._acted_on())

    @property
    def coverage(self) -> float:
        """The share of these rows that is acted on: flagged, answered, stopped. It is not
        certified.
        """
        return self.share() or 0.0

    def number(self, outcome: str = ALL) -> int:
        """How many rows have an outcome; a row of several groups counts in each of them."""
        return sum(int(rows_of(counts, outcome).sum()) for counts in self.histograms)

    def share(self, outcome: str = ALL) -> float | None:
        """The share of the rows of an outcome that are acted on; None if there are none. It was
        seen on these rows, and is not certified. Of "all" rows, where clusters were drawn among
        those of an outcome, these count for as many as there were.
        """
        weights = stands_for(self.values)
        total = sum(float(rows_of(one, outcome, weights).sum()) for one in self.histograms)
        return float(self._acted_on(outcome, weights) / total) if total else None

    def _acted_on(self, outcome: str = ALL, weights: Mapping[str, float] | None = None) -> Any:
        acted = 0
        for table in self.values["tables"]:
            hit = table["counts"]["cells"] >= table["threshold"] * rate_of(self).top
            acted += rows_of(table["counts"], outcome, weights)[hit].sum()
        return acted

    def reached(self, *outcomes: str, group: str | None = None) -> tuple[Floats, ...]:
        """The scores that rows have, from the highest down, and for each outcome the share of its
        rows whose score is at least that; NaN if there are none. Lost rollouts reach no score.
        """
        tables = self._tables(group)
        cells = self._cells(tables)
        counted = (self._rows_from(cells, tables, outcome) for outcome in outcomes)
        return (cells / rate_of(self).top, *(rows / (total or np.nan) for rows, total in counted))

    def _rows_from(
        self, cells: Integers, tables: list[Values], outcome: str
    ) -> tuple[Floats, float]:
        """How many rows of an outcome are in each cell or above, and how many there are."""
        rows, total, weights = np.zeros(cells.size), 0.0, stands_for(self.values)
        for counts in (table["counts"] for table in tables):
            kept, of = counts["cells"] != LOST, rows_of(counts, outcome, weights)
            rows[np.searchsorted(-cells, -counts["cells"][kept])] += of[kept]
            total += of.sum()
        return np.cumsum(rows), total

    def curve(self, group: str | None = None) -> RateCurve:
        """The share of rows that are acted on, and the rate, at each threshold, as seen in these
        rows. No point of it is certified.

        Parameters
        ----------
        group
            The name of a group; all rows if it is left out.

        Returns
        -------
        RateCurve
            The thresholds from the highest score down, with both shares at each.

        Raises
        ------
        InvalidValueError
            If there is no such group.
        """
        tables = self._tables(group)
        cells = self._cells(tables)
        rows, total = self._rows_from(cells, tables, ALL)
        searches = [search_of(self, table) for table in tables]
        events = sum(search.events_in(cells) for search in searches)
        trials: Any = sum(search.trials for search in searches) or np.nan
        if rate_of(self).reached:
            trials = rows
        return RateCurve(cells / rate_of(self).top, rows / (total or np.nan), events / trials)

    def _cells(self, tables: list[Values]) -> Integers:
        """The cells in which something changes, from the highest down."""
        parts = [(table["counts"]["cells"], search_of(self, table).cells) for table in tables]
        cells: Integers = np.unique(np.concatenate([cells for pair in parts for cells in pair]))
        return np.asarray(cells[cells != LOST][::-1])

    def _tables(self, group: str | None) -> list[Values]:
        """The table of a group, or all of them."""
        tables: list[Values] = self.values["tables"]
        found = [table for table in tables if group is None or is_one_of(group, [table["group"]])]
        if not found:
            known = ", ".join(map(repr, self.groups[:5])) or "none, so pass no group"
            raise InvalidValueError(f"group={group!r} is not in this certificate: it has {known}.")
        return found


class FlagCertificate(ThresholdCertificate):
    """Flag a row where its score is at or above the threshold."""

    def flags(self, score: Any, groups: Any = None) -> NDArray[np.bool_]:
        """Which rows to flag.

        Parameters
        ----------
        score
            One score in [0, 1] per row.
        groups
            The group of each row, where each has a threshold of its own, or some were left out.
            Rows of a group that was not certified are all flagged where the claim is about recall;
            where it is about false alarms or precision, none of them is.

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
        return rows_acted_on(self, score, groups, "score")


class ReachedCertificate(ThresholdCertificate):
    """Act where the score is at or above the threshold, or that of the row's group. The rate is not
    monotone in it: each threshold that holds was tested.
    """

    def claims(self, threshold: float, group: str | None = None) -> bool:
        """Whether a threshold is among those that hold: all of them hold together.

        So a higher one than `threshold` may be taken, after seeing all of this, if it is claimed.

        Parameters
        ----------
        threshold
            From 0 to 1, or +inf, which never acts and always holds. A number that is not on the
            grid of 2^-16 was not tested.
        group
            The name of a group; every one of them if it is left out.

        Returns
        -------
        bool
            Whether it is certified.

        Raises
        ------
        InvalidValueError
            If there is no such group, or `threshold` is not a number from 0 on.
        """
        self.require_verified()
        value = real_number(threshold, "threshold", "a threshold")
        if value < 0:
            raise InvalidValueError(f"threshold={threshold} is negative: scores are from 0 to 1.")
        if value == inf:
            return True
        cell, tables = value * rate_of(self).top, self._tables(group)
        return cell == np.floor(cell) and all(
            any(low <= cell <= high for low, high in table["claimed"]) for table in tables
        )


def rows_acted_on(certificate: Any, score: Any, groups: Any, name: str) -> NDArray[np.bool_]:
    """Which rows reach the threshold, of their group where there are groups; `name` is what the
    scores were passed as.
    """
    certificate.require_plain_scores()
    scores = as_scores(score, name)
    names = group_names(certificate, groups, len(scores), **{name: score})
    certificate.require_verified()
    (column,) = flag_rule(certificate).of_arrays([scores], names).values()
    return np.asarray(column, dtype=np.bool_)


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
    tables, rate, act = certificate.values["tables"], rate_of(certificate), certificate.by.act
    role, ones = certificate.by.question_of(certificate).columns[0].name, act or "flagged"

    def steps(threshold: float) -> RowSteps:
        return RowSteps((Limit(threshold, closed=True),), {column: (0, 1)})

    if certificate.values["scope"] == "top":
        return RowRule(1, steps(tables[0]["threshold"]), role=role, ones=ones)
    by_group = rate.own(certificate.values) or left_out(certificate.values)
    others = "are flagged" if rate.side == "below" else "raise no alarm"
    return RowRule(
        1,
        None if by_group else steps(common_threshold(certificate)),
        groups={table["group"]: steps(table["threshold"]) for table in tables},
        instead=steps(rate.refused),
        role=role,
        ones=ones,
        others=f"are not {act}" if act else others,
    )
