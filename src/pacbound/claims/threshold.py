"""Claims of the form "act from a threshold on, and at most a share of these goes wrong", declared.

A kind says which outcome is a trial, on which side of the threshold a trial is an event, the rate,
and its sentences. The decision (`pacbound.procedures.threshold`), groups, planned looks, documents,
figures, the monitor, and how the threshold is applied to rows are the same for all of them. Events
are monotone in the threshold, so every threshold on the cautious side keeps the promise, and a
sentence may round towards it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from math import inf
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from pacbound.asks import Ask
from pacbound.certificate.looks import plan_work
from pacbound.claims.assumptions import assumed
from pacbound.claims.claim import C, Cells, Claim, ClaimCertificate, Procedure, Values
from pacbound.claims.threshold_fields import threshold_fields
from pacbound.claims.threshold_values import (
    Trials,
    common_threshold,
    is_refused,
    level_of,
    rows_of,
    search_of,
    tables_of,
    threshold_of,
    trials_of,
)
from pacbound.claims.threshold_watch import ThresholdWatch
from pacbound.claims.threshold_words import ClaimWords, quantities, said
from pacbound.documents import printable
from pacbound.errors import InvalidTypeError, InvalidValueError
from pacbound.explorable import CERTIFIED, HOPELESS, REFUSED, Explorable, Reading
from pacbound.fields import Fields
from pacbound.figure import Figure
from pacbound.figures.named import Curve, Named
from pacbound.figures.thresholds import share_by_threshold
from pacbound.procedures.shield_product import product_bound
from pacbound.procedures.threshold import (
    TOP,
    UNEXPLAINED,
    Decision,
    NoThreshold,
    Side,
    decide,
    decide_at_look,
)
from pacbound.says import Quantity, Says, Sentence, share
from pacbound.stats.looks import PlannedLooks, planned_looks
from pacbound.tally.columns import as_scores
from pacbound.tally.row_rules import Limit, RowRule, RowSteps
from pacbound.tally.tally import Tally

Integers = NDArray[np.int64]


@dataclass(frozen=True)
class ThresholdProcedure(Procedure):
    """How a threshold is found among which trials, and in which words it is said.

    `by_product` bounds the rate as the paper does, by the product of two. `question` is what it
    counts, if not what the claim does; `not_watched` says why it cannot be monitored.
    """

    trials: Trials = field(default_factory=lambda: Trials("", "", "below"))
    words: ClaimWords = field(default_factory=ClaimWords)
    by_product: bool = False
    unavoidable_first: bool = False
    question: Any = None
    not_watched: str = ""


class ThresholdCertificate(ClaimCertificate):
    """Act where the score is at or above the threshold: flag, brake, raise an alarm.

    With groups there is one threshold that every group keeps, or one for each.
    """

    @property
    def threshold(self) -> float:
        """The one threshold: -inf (flag, brake) or +inf (no alarm) if the claim is refused."""
        self.require_intact()
        if self.values.get("group_thresholds") == "own":
            raise InvalidTypeError(
                "Each group has its own threshold: use thresholds[name], or apply the certificate "
                "to a frame with the column of groups."
            )
        return common_threshold(self)

    @property
    def thresholds(self) -> dict[str, float]:
        """The threshold of each group; empty without groups."""
        self.require_intact()
        if self.values["scope"] == "top":
            return {}
        common = self.values["group_thresholds"] == "common"
        return {
            table["group"]: common_threshold(self) if common else table["threshold"]
            for table in self.values["tables"]
        }

    @property
    def groups(self) -> tuple[str, ...]:
        """The names of the groups."""
        return tuple(table["group"] for table in self.values["tables"] if table["group"])

    @property
    def allowed(self) -> int:
        """How many trials may be events; -1 if not even zero pass."""
        (table,) = self.values["tables"]
        return int(table["allowed"])

    @property
    def look(self) -> int | None:
        """Which of the planned looks this is, from 1; None if there was no plan."""
        looks = self.values.get("looks")
        if looks is None:
            return None
        (table,) = self.values["tables"]
        return int(looks.index(search_of(self, table).trials)) + 1

    def flags(self, score: Any, groups: Any = None) -> NDArray[np.bool_]:
        """Which rows to act on: flag, brake, alarm.

        Parameters
        ----------
        score
            One score in [0, 1] per row.
        groups
            The group of each row, where each has a threshold of its own.

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
        """
        scores = as_scores(score, "score")
        names = None if groups is None else np.asarray(groups).astype(str)
        self.require_verified()
        (column,) = flag_rule(self).of_arrays([scores], names).values()
        return np.asarray(column, dtype=np.bool_)

    def share(self, outcome: str = "all", *, at: float | None = None) -> float | None:
        """The share of the rows of an outcome that are acted on; None if there are none. It was
        seen on these rows, and is not certified.
        """
        total = acted = 0
        for table in self.values["tables"]:
            counts = table["counts"]
            rows = rows_of(counts, outcome)
            limit = threshold_of(self, table) if at is None else at
            total += int(rows.sum())
            acted += int(rows[counts["cells"] >= limit * TOP].sum())
        return acted / total if total else None


def _no_conflict(_: Values) -> None:
    """Everything goes together."""


@dataclass(frozen=True, kw_only=True)
class ThresholdClaim(Claim[C]):
    """A threshold claim, declared.

    Attributes
    ----------
    rate : callable
        The share of the trials that may be events, from what was asked for.
    curves : tuple
        What its figure shows: outcomes by their place, or "all", each with the name of its line.
        The claim is about the first.
    choose : callable
        The name of the procedure, from what was asked for and the kind of the tally.
    conflict : callable
        What of that does not go together, in a sentence; None if all does.
    applied : str or None
        The column that applying adds to rows; None where it cannot be applied to a table.
    """

    kind: str
    command: str
    help: str
    question: Any
    asks: tuple[Ask, ...]
    procedures: Mapping[str, ThresholdProcedure]
    rate: Callable[[Values], float]
    curves: tuple[tuple[int | Literal["all"], str], ...]
    certificate: type[C]
    choose: Callable[[Values, str], str]
    conflict: Callable[[Values], str | None] = _no_conflict
    applied: str | None = "pac_flag"

    def __post_init__(self) -> None:
        asked = {ask.name for ask in self.asks}
        for procedure in self.procedures.values():
            question = procedure.question or self.question
            procedure.words.require_names(asked | set(question.outcomes))

    def wishes(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """What was asked for; a plan of looks must be for the same rate and delta."""
        wishes = super().wishes(given)
        plan = given.get("looks")
        if isinstance(plan, PlannedLooks):
            require_plan(plan, self.rate(wishes), wishes["delta"])
        wrong = self.conflict(wishes)
        if wrong is not None:
            raise InvalidValueError(wrong)
        return wishes

    def fields(self, procedure: Procedure) -> Fields:
        """The fields of a document of the procedure."""
        return threshold_fields(self, procedure)

    def counted(self, evidence: Tally, wishes: Values) -> dict[str, Any]:
        """A histogram for each group, and what was asked for."""
        procedure = self.procedures[self.choose(wishes, evidence.kind)]
        kept = {ask.name: wishes[ask.name] for ask in self.asks if ask.name in wishes}
        tables = [{"group": group, "counts": counts} for group, counts in tables_of(evidence)]
        return {
            **kept,
            "kind": self.kind,
            "procedure": procedure.name,
            "n": evidence.rows,
            "scope": evidence.scope,
            "drawn": evidence.drawn,
            "tables": tables,
        }

    def decided(self, values: Values) -> dict[str, Any]:
        """The threshold of each table at its level."""
        procedure = self.procedures[values["procedure"]]
        level = level_of(values)
        tables = [
            {**table, "threshold": found.threshold, "allowed": found.allowed}
            for table in values["tables"]
            for found in [self._decision(procedure, values, table, level)]
        ]
        refused = [is_refused(procedure.trials, table) for table in tables]
        own = values.get("group_thresholds") == "own" and values["scope"] != "top"
        return {
            **values,
            "assumes": assumed_by(procedure, values),
            "tables": tables,
            "certified": not (all(refused) if own else any(refused)),
        }

    def refusal(self, certificate: ClaimCertificate, table: Values) -> NoThreshold:
        """Why a table has no threshold, computed from its counts: documents do not hold it."""
        values, procedure = certificate.values, trials_of(certificate)
        decision = self._decision(
            self.procedures[values["procedure"]], values, table, level_of(values)
        )
        stuck = procedure.search(table["counts"]).unavoidable
        return decision.refusal or NoThreshold(UNEXPLAINED, stuck, None)

    def _decision(
        self, procedure: ThresholdProcedure, values: Values, table: Values, level: float
    ) -> Decision:
        search, rate = procedure.trials.search(table["counts"]), self.rate(values)
        if values.get("looks") is not None:
            plan = planned_looks(rate, delta=level, looks=values["looks"])
            if search.trials not in plan.looks:
                raise InvalidValueError(
                    f"There are {search.trials:,} {procedure.words.unit}, and no look was planned "
                    f"there, but at {', '.join(f'{look:,}' for look in plan.looks)}: pass the rows "
                    "up to a look, in the order in which they were drawn. Looks cannot be added."
                )
            return decide_at_look(search, plan)
        passes = None
        if procedure.by_product:
            unsafe = int(search.events.sum())

            def passes(events: int, trials: int) -> bool:
                of_them = -(-unsafe * trials // search.trials)
                bounded = events <= of_them and product_bound(events, of_them, trials, delta=level)
                return bounded is not False and bounded <= rate

        return decide(
            search,
            rate=rate,
            delta=level,
            passes=passes,
            unavoidable_first=procedure.unavoidable_first,
        )

    def says(self, certificate: C) -> Says:
        """The certificate in words."""
        return said(self, certificate)

    def row_rule(self, certificate: C) -> RowRule | None:
        """What applying adds to each row; None where a row has no single score."""
        return None if self.applied is None else flag_rule(certificate, self.applied)

    def _side(self, certificate: ClaimCertificate) -> Side:
        return trials_of(certificate).side

    @property
    def questions(self) -> tuple[Any, ...]:
        """What may be counted: the claim's question, and those of its procedures."""
        others = (one.question for one in self.procedures.values() if one.question is not None)
        return (self.question, *others)

    def question_of(self, certificate: C) -> Any:
        """What was counted for the certificate."""
        return self._procedure(certificate).question or self.question

    def refused_groups(self, certificate: C) -> Iterable[str]:
        """The groups without a threshold."""
        tables = certificate.values["tables"]
        trials = trials_of(certificate)
        return (str(table["group"]) for table in tables if is_refused(trials, table))

    def figures(self, certificate: C) -> Iterable[Figure]:
        """The share of rows from each threshold on, for every table."""
        return (self._figure(certificate, table) for table in certificate.values["tables"])

    def _figure(self, certificate: C, table: Values) -> Figure:
        counts, name = table["counts"], self.kind.replace("-", " ").capitalize()
        inside = counts["cells"] >= 0
        cells = counts["cells"][inside]
        curves = []
        for outcome, words in self.curves:
            rows = rows_of(counts, self._outcome(certificate, outcome))
            total = max(int(rows.sum()), 1)
            curves.append(Curve(words, np.cumsum(rows[inside][::-1])[::-1] / total))
        rate, side = self.rate(certificate.values), self._side(certificate)
        asked = 1 - rate if side == "below" else rate
        limit = Quantity(
            threshold_of(certificate, table), "threshold", "down" if side == "below" else "up"
        )
        group = "" if table["group"] is None else f", {table['group']}"
        return share_by_threshold(
            cells / TOP,
            curves,
            title=f"{name} by threshold{group}",
            caption="Lines show what was seen. "
            + (
                "Certified is what was asked for, at the upright line."
                if not is_refused(trials_of(certificate), table)
                else "Nothing is certified."
            ),
            asked=Named(asked, f"asked for: {share(asked).text}"),
            certified=None
            if is_refused(trials_of(certificate), table)
            else Named(limit.value, f"certified: {limit.text}"),
        )

    def watch(self, certificate: C) -> Any:
        """Each trial is a label, and a loss if it is an event."""
        procedure = self._procedure(certificate)
        if procedure.not_watched:
            return procedure.not_watched
        if certificate.values["scope"] == "overlapping-groups":
            return "a row may be in several of its groups; certify groups that do not overlap"
        claimed = Sentence(procedure.words.promise, quantities(self, certificate))
        rate = self.rate(certificate.values)
        return ThresholdWatch(
            certificate, self.question_of(certificate), procedure.trials, rate, claimed
        )

    def explorable(self, certificate: C) -> Explorable | str:  # noqa: ARG002
        """The threshold, and what would be acted on, at other rates and deltas."""
        names = ("Threshold", *(words for _, words in self.curves), "Allowed")
        return Explorable(self.asks[0].name, names, self._reading, self.curves[-1][1], whole=True)

    def _reading(self, certificate: C, rate: float | None, delta: float) -> Reading:
        try:
            again: Any = certificate.explored(**{self.asks[0].name: rate, "delta": delta})
        except InvalidValueError:
            if certificate.values.get("looks") is None:
                raise
            return Reading(HOPELESS, ("",) * (len(self.curves) + 2))
        filled = quantities(self, again)
        shares = [again.share(self._outcome(again, outcome)) for outcome, _ in self.curves]
        drawn = shares[-1]
        return Reading(
            CERTIFIED if again.certified else REFUSED,
            (
                filled["threshold"].text,
                *("none there" if one is None else f"{one:.2%}" for one in shares),
                filled["allowed"].text,
            ),
            None if drawn is None else (drawn, drawn),
        )

    def cells(self, certificate: C) -> Cells:
        """How many rows of each outcome are in each cell of the score."""
        found: Cells = {}
        for table in certificate.values["tables"]:
            counts = table["counts"]
            group = "" if table["group"] is None else f"group {printable(table['group'])}, "
            outcomes = [name for name in counts if name != "cells"]
            for place, cell in enumerate(counts["cells"].tolist()):
                where = f"score {cell / TOP:g}" if cell >= 0 else "without a score"
                found[f"{group}{where}"] = {name: int(counts[name][place]) for name in outcomes}
        return found

    def numbers(self, certificate: C) -> list[tuple[str, str]]:
        """What was asked for and decided."""
        filled = quantities(self, certificate)
        own = certificate.values.get("group_thresholds") == "own"
        decided = [] if own else [("Threshold", repr(common_threshold(certificate)))]
        kept = [("Events seen", "events"), ("Events allowed", "allowed"), ("Trials", "trials")]
        return [
            *super().numbers(certificate),
            *decided,
            *((name, filled[key].text) for name, key in kept),
        ]

    def _outcome(self, certificate: C, place: int | Literal["all"]) -> str:
        return "all" if place == "all" else str(self.question_of(certificate).outcomes[place])

    def _procedure(self, certificate: C) -> ThresholdProcedure:
        return self.procedures[certificate.values["procedure"]]

    def work(self, values: Values) -> float:
        """About how long a plan of looks takes; all else is quick."""
        return plan_work(values.get("looks"), xi=self.rate(values), delta=values["delta"])


def flag_rule(certificate: Any, column: str = "flag") -> RowRule:
    """1 where the score is at or above the threshold, by group where there are groups."""
    tables = certificate.values["tables"]

    def steps(threshold: float) -> RowSteps:
        return RowSteps((Limit(threshold, closed=True),), {column: (0, 1)})

    if certificate.values["scope"] == "top":
        return RowRule(1, steps(tables[0]["threshold"]), role="score", ones="flagged")
    cautious = -inf if trials_of(certificate).side == "below" else inf
    return RowRule(
        1,
        groups={table["group"]: steps(threshold_of(certificate, table)) for table in tables},
        instead=steps(cautious),
        role="score",
        ones="flagged",
        others="are flagged" if cautious < 0 else "raise no alarm",
    )


def assumed_by(procedure: Procedure, values: Values) -> tuple[str, ...]:
    """The names of what is assumed of the rows that were counted."""
    groups = () if values["scope"] == "top" else ("groups-beforehand",)
    return assumed((*procedure.assumes, *groups), values["drawn"])


def require_plan(plan: PlannedLooks, rate: float, delta: float) -> None:
    """Raise unless looks were planned for this rate, up to rounding, and this delta."""
    if not np.isclose(plan.xi, rate, rtol=1e-12, atol=0) or plan.delta != delta:
        raise InvalidValueError(
            f"looks were planned for xi={plan.xi} and delta={plan.delta}, not for xi={rate} and "
            f"delta={delta}: pass the same."
        )
