"""Claims of the form "act from a threshold on, and at most a share of these goes wrong", declared.

A kind says which outcome is a trial, on which side of the threshold a trial is an event, the rate,
and its sentences. The decision (`pacbound.procedures.threshold`), groups, planned looks, documents,
figures, the monitor, and how the threshold is applied to rows are the same for all of them. Events
are monotone in the threshold, so every threshold on the cautious side keeps the promise, and a
sentence may round towards it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field
from math import ceil, inf, log, log1p
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from pacbound.asks import Ask
from pacbound.claims.certificate import EXPLAINED_WORK, Certificate
from pacbound.claims.claim import C, Cells, Claim, Procedure, Told, Values
from pacbound.claims.common_fields import require_tally
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
from pacbound.claims.threshold_words import ClaimWords, quantities, said
from pacbound.documents import Json, printable
from pacbound.errors import InvalidTypeError, InvalidValueError
from pacbound.explorable import CERTIFIED, HOPELESS, REFUSED, Explorable, Reading
from pacbound.fields import Fields
from pacbound.figure import Figure
from pacbound.figures import Curve, Named
from pacbound.figures.thresholds import share_by_threshold
from pacbound.forms import GridPoint
from pacbound.measure import Measure, Sample
from pacbound.procedures.threshold import (
    LOST,
    SLOW,
    TOP,
    UNEXPLAINED,
    Decision,
    NoThreshold,
    Search,
    Side,
    decide,
    decide_at_look,
    within_product,
)
from pacbound.says import Quantity, Says, Sentence, share
from pacbound.stats.looks import PlannedLooks, looks_work, planned_looks
from pacbound.tally.columns import as_names, as_scores, same_length, same_rows
from pacbound.tally.row_rules import Limit, RowRule, RowSteps
from pacbound.tally.tally import Tally
from pacbound.watch import ColumnWatch, LossWatch

Integers = NDArray[np.int64]
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class ThresholdProcedure(Procedure):
    """How a threshold is found among which trials, and in which words it is said.

    `by_product` bounds the rate as the paper does, by the product of two. `question` is what it
    counts, if not what the claim does. In use a trial is `seen_as` one of two things, the second if
    it is an event; `told_by` names the column that says so itself, where scores are not needed.
    `not_watched` says why it cannot be monitored.
    """

    trials: Trials = field(default_factory=lambda: Trials("", "", "below"))
    words: ClaimWords = field(default_factory=ClaimWords)
    by_product: bool = False
    unavoidable_first: bool = False
    question: Any = None
    seen_as: tuple[str, str] = ("kept", "lost")
    told_by: str = ""
    not_watched: str = ""


@dataclass(frozen=True)
class Measured:
    """What a plan improves: the share of an outcome's rows, by its place or "all", that is acted
    on, and whether more of it is better.
    """

    name: str
    outcome: int | Literal["all"]
    larger: bool


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
        names = (table["group"] for table in self.values["tables"])
        return tuple(name for name in names if name is not None)

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
        refused = (one for one in self.values["tables"] if is_refused(trials_of(self), one))
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
        found: tuple[str, ...] = self.by.question_of(self).outcomes
        return found

    @property
    def histograms(self) -> tuple[Mapping[str, Integers], ...]:
        """The counts of each group, or of all rows: `cells`, and the rows of each outcome there."""
        return tuple(table["counts"] for table in self.values["tables"])

    @property
    def searches(self) -> tuple[Search, ...]:
        """What was searched for the threshold of each group."""
        return tuple(trials_of(self).search(counts) for counts in self.histograms)

    @property
    def events(self) -> int:
        """How many trials are events at the threshold, among these rows."""
        limits = [threshold_of(self, table) for table in self.values["tables"]]
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
            The group of each row, where each has a threshold of its own. Rows of a group that was
            not certified are all flagged; where the claim is about false alarms, they raise none.

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
        scores = as_scores(score, "score")
        names = group_names(self, groups, len(scores), score=score)
        self.require_verified()
        (column,) = flag_rule(self).of_arrays([scores], names).values()
        return np.asarray(column, dtype=np.bool_)

    def share(self, outcome: str = "all") -> float | None:
        """The share of the rows of an outcome that are acted on; None if there are none. It was
        seen on these rows, and is not certified.
        """
        total = self.number(outcome)
        return self._acted_on(outcome) / total if total else None

    def _acted_on(self, outcome: str = "all") -> int:
        acted = 0
        for table in self.values["tables"]:
            hit = table["counts"]["cells"] >= threshold_of(self, table) * TOP
            acted += int(rows_of(table["counts"], outcome)[hit].sum())
        return acted

    def reached(self, *outcomes: str) -> tuple[Floats, ...]:
        """The scores that rows have, from the highest down, and for each outcome the share of its
        rows whose score is at least that; NaN if there are none. Lost rollouts reach no score.
        """
        cells = np.unique(np.concatenate([counts["cells"] for counts in self.histograms]))
        cells = cells[cells != LOST][::-1]
        shares = []
        for outcome in outcomes:
            rows = np.zeros(TOP + 1, dtype=np.int64)
            for counts in self.histograms:
                kept = counts["cells"] != LOST
                rows[counts["cells"][kept]] += rows_of(counts, outcome)[kept]
            total = self.number(outcome)
            found = np.cumsum(rows[::-1])[::-1][cells]
            shares.append(found / total if total else np.full(cells.size, np.nan))
        return (cells / TOP, *shares)


def _no_conflict(_: Values) -> None:
    """Everything goes together."""


def _no_misfit(*_: Any) -> None:
    """All columns go together."""


def _nothing_told(_: Sequence[str]) -> Told:
    return Told()


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
    misfit : callable
        What of the columns does not go together, or with what was asked for; None if all does.
    of_files : callable
        What files of rows say of themselves.
    applied : str or None
        The column that applying adds to rows; None where it cannot be applied to a table.
    measured : Measured or None
        What a plan improves; None if it is not planned for.
    rate_in_use : callable or None
        The rate that a monitor bets against, if it is rounded otherwise: up, so that it is never
        less than what is claimed.
    nothing : str
        What to say, with {n}, where not one of the rows is a trial: the column is probably another.
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
    misfit: Callable[[Set[str], Values], str | None] = _no_misfit
    of_files: Callable[[Sequence[str]], Told] = _nothing_told
    applied: str | None = "pac_flag"
    measured: Measured | None = None
    nothing: str = ""
    rate_in_use: Callable[[Values], float] | None = None

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

    def require_columns(self, given: Set[str], wishes: Values) -> None:
        """Raise if what rows bring does not go together, or with what is asked for."""
        wrong = self.misfit(given, wishes)
        if wrong is not None:
            raise InvalidTypeError(wrong)

    def told(self, files: Sequence[str]) -> Told:
        """What files say of themselves."""
        return self.of_files(files)

    def fields(self, procedure: Procedure) -> Fields:
        """The fields of a document of the procedure."""
        return threshold_fields(self, procedure)

    def counted(self, evidence: Tally, wishes: Values) -> dict[str, Any]:
        """A histogram for each group, and what was asked for."""
        procedure = self.procedures[self.choose(wishes, evidence.kind)]
        found = counted_tally(evidence, procedure.question or self.question)
        if wishes.get("looks") is not None:
            _require_all_rows(evidence)
            if evidence.scope != "top":
                raise InvalidValueError(
                    "looks do not go with groups: certify each group by itself, with a plan of its "
                    "own."
                )
        kept = {ask.name: wishes[ask.name] for ask in self.asks if ask.name in wishes}
        tables = [{"group": group, "counts": counts} for group, counts in found]
        return {
            **kept,
            "kind": self.kind,
            "procedure": procedure.name,
            "n": evidence.rows,
            "scope": evidence.scope,
            "drawn": evidence.drawn,
            "tables": tables,
        }

    def named(self, values: Values, question: str) -> dict[str, Any]:
        """What was counted and asked for, with the names of the claim and its procedure."""
        return {**values, "kind": self.kind, "procedure": self.choose(values, question)}

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
            "assumes": self.assumed(procedure, values["drawn"], values["scope"]),
            "tables": tables,
            "certified": not (all(refused) if own else any(refused)),
        }

    def refusal(self, certificate: Certificate, table: Values) -> NoThreshold:
        """Why a table has no threshold, computed from its counts: documents do not hold it."""
        values, trials = certificate.values, trials_of(certificate)
        stuck = trials.search(table["counts"]).unavoidable
        if self.work(values) > EXPLAINED_WORK:
            return NoThreshold(SLOW, stuck, None)
        decision = self._decision(
            self.procedures[values["procedure"]], values, table, level_of(values)
        )
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
        return decide(
            search,
            rate=rate,
            delta=level,
            passes=within_product(search, rate=rate, delta=level) if procedure.by_product else None,
            unavoidable_first=procedure.unavoidable_first,
        )

    def says(self, certificate: C) -> Says:
        """The certificate in words."""
        return said(self, certificate)

    def says_nothing(self, certificate: C) -> str | None:
        """Why the rows tell nothing, if not one of them is a trial."""
        tables = certificate.values["tables"]
        if not self.nothing or any(search_of(certificate, one).trials for one in tables):
            return None
        rows = self._procedure(certificate).words.rows
        return self.nothing.format(n=f"{certificate.n:,}", rows=rows)

    @property
    def measure(self) -> Measure | None:
        """What a plan improves."""
        if self.measured is None:
            return None
        asked, name = self.asks[0].name, self.measured.name
        unit = next(iter(self.procedures.values())).words.rows
        kind: Any = asked
        return Measure(name, unit, self.measured.larger, kind, self._sample, self._least)

    def _sample(self, tally: Tally, rate: float, delta: float) -> Sample:
        found: Any = self.certify(tally, {self.asks[0].name: rate, "delta": delta})
        outcome = self._outcome(found, self.measured.outcome) if self.measured else "all"
        # A draw may have no row of the outcome, and then finds none.
        return Sample(found.certified, found.share(outcome) or 0.0, (found.threshold,))

    def _least(self, pilot: Tally, rate: float, delta: float) -> int:
        """Rows among which there are as many trials as pass if none is an event, if they stay as
        common as in the pilot.
        """
        wishes = self.wishes({self.asks[0].name: rate, "delta": delta})
        trials = ceil(log(delta) / log1p(-self.rate(wishes))) + 1
        procedure = self.procedures[self.choose(wishes, pilot.kind)]
        seen = pilot.rows if procedure.trials.of == "all" else pilot.totals[procedure.trials.of]
        return ceil(trials * pilot.rows / seen)

    def row_rule(self, certificate: C) -> RowRule | None:
        """What applying adds to each row; None where a row has no single score."""
        return None if self.applied is None else flag_rule(certificate, self.applied)

    def _side(self, certificate: Certificate) -> Side:
        return trials_of(certificate).side

    @property
    def questions(self) -> tuple[Any, ...]:
        """What may be counted: the claim's question, and those of its procedures."""
        others = (one.question for one in self.procedures.values() if one.question is not None)
        return (self.question, *others)

    def question_of(self, certificate: C) -> Any:
        """What was counted for the certificate."""
        return self._procedure(certificate).question or self.question

    def thresholds(self, certificate: C) -> dict[str, Json]:
        """The threshold, or that of each group."""
        values, write = certificate.values, GridPoint(TOP).write
        if values["scope"] == "top" or values["group_thresholds"] == "common":
            return {"threshold": write(common_threshold(certificate))}
        return {
            "thresholds": {
                str(table["group"]): write(table["threshold"]) for table in values["tables"]
            }
        }

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
        rate, side = self.rate(certificate.values), self._side(certificate)
        search = search_of(certificate, table)
        below = np.concatenate([[0], np.cumsum(search.events)])
        below = below[np.searchsorted(search.cells, cells)]
        events = below if side == "below" else search.events.sum() - below
        share_of_events = (search.lost + events) / (search.trials or np.nan)
        first = self._procedure(certificate).words.kept or self.curves[0][1]
        kept = 1 - share_of_events if side == "below" else share_of_events
        curves = [Curve(first, kept)]
        for outcome, words in self.curves[1:]:
            rows = rows_of(counts, self._outcome(certificate, outcome))
            total = int(rows.sum()) or np.nan
            curves.append(Curve(words, np.cumsum(rows[inside][::-1])[::-1] / total))
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
        words = procedure.words
        claimed = str(Sentence(words.in_use or words.promise, quantities(self, certificate)))
        rate = (self.rate_in_use or self.rate)(certificate.values)
        if procedure.told_by:
            if certificate.values["scope"] != "top":
                return "each of its groups is watched apart; certify one group, and monitor that"
            what = f"A monitored {self.kind}"
            return ColumnWatch(
                what, procedure.told_by, rate=rate, claimed=claimed, outcomes=procedure.seen_as
            )
        trials, question = procedure.trials, self.question_of(certificate)
        tables = certificate.values["tables"]
        limits = np.array([threshold_of(certificate, table) for table in tables])
        if trials.side == "below" and (limits <= 0).all():
            raise InvalidValueError(
                "This certificate acts on every row, so that nothing can be missed: there is "
                "nothing to monitor."
            )
        return LossWatch(
            certificate,
            question,
            rate=rate,
            claimed=claimed,
            outcomes=procedure.seen_as,
            held=[not is_refused(trials, table) for table in tables],
            trials_and_events=lambda cells, outcomes, places: trials.among(
                question.outcomes, cells, outcomes, limits[places]
            ),
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
        instead = self._procedure(again).words.instead.rstrip(".").lower()
        shares = [again.share(self._outcome(again, outcome)) for outcome, _ in self.curves]
        drawn = shares[-1]
        return Reading(
            CERTIFIED if again.certified else REFUSED,
            (
                filled["threshold"].text if again.certified else instead,
                *("none there" if one is None else f"{one:.2%}" for one in shares),
                filled["allowed"].text,
            ),
            None if drawn is None else (drawn, drawn),
        )

    def cells(self, certificate: C) -> Cells:
        """How many rows of each outcome are in each cell of the score."""
        found: Cells = {}
        for table in certificate.values["tables"]:
            group = "" if table["group"] is None else f"group {printable(table['group'])}, "
            found |= histogram_cells(table["counts"], group)
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
        return _plan_work(values.get("looks"), xi=self.rate(values), delta=values["delta"])


def counted_tally(evidence: Tally, question: Any) -> list[tuple[str | None, dict[str, Integers]]]:
    """The histogram of each group, or of all rows, of a tally of the question."""
    needed = " and ".join(name for name, must in question.roles.items() if must)
    lowest = question.lowest_cell
    require_tally(evidence, question.kind, question.grid, lowest=lowest, columns=needed)
    return tables_of(evidence)


def histogram_cells(counts: Mapping[str, Integers], before: str = "") -> Cells:
    """The rows of each outcome in each cell, by the names of the cells."""
    outcomes = [name for name in counts if name != "cells"]
    return {
        before + (f"score {cell / TOP:g}" if cell >= 0 else "without a score"): {
            name: int(counts[name][place]) for name in outcomes
        }
        for place, cell in enumerate(counts["cells"].tolist())
    }


def group_names(
    certificate: ThresholdCertificate, groups: Any, rows: int, **given: Any
) -> NDArray[np.str_] | None:
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
    own = certificate.values["group_thresholds"] == "own"
    return RowRule(
        1,
        None if own else steps(common_threshold(certificate)),
        groups={table["group"]: steps(threshold_of(certificate, table)) for table in tables},
        instead=steps(cautious),
        role="score",
        ones="flagged",
        others="are flagged" if cautious < 0 else "raise no alarm",
    )


def require_plan(plan: PlannedLooks, rate: float, delta: float) -> None:
    """Raise unless looks were planned for this rate, up to rounding, and this delta."""
    if not np.isclose(plan.xi, rate, rtol=1e-12, atol=0) or plan.delta != delta:
        raise InvalidValueError(
            f"looks were planned for xi={plan.xi} and delta={plan.delta}, not for xi={rate} and "
            f"delta={delta}: pass the same."
        )


_LOOKS_WORK = 8e9
"""Multiplications of a plan that take as long as the longest usual certificate."""


def _require_all_rows(tally: Tally) -> None:
    """Raise if the rows of a look were drawn from others: a later look would draw others."""
    if tally.drawn is not None:
        raise InvalidValueError(
            f"looks do not go with rows drawn by {tally.drawn.by}: more rows of a cluster change "
            "which one is drawn. Pass delta divided by the number of looks at each of them instead."
        )


def _plan_work(looks: Sequence[int] | None, *, xi: float, delta: float) -> float:
    """How long a plan takes to compute again, as `Certificate.work` counts it."""
    if looks is None or xi == 0:
        return 0.0
    return looks_work(looks, xi=xi, delta=delta) / _LOOKS_WORK
