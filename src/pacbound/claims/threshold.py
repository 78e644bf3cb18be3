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
from functools import partial
from math import ceil, inf, log, log1p
from typing import Any, Literal

import numpy as np

from pacbound.claims.certificate import EXPLAINED_WORK, Certificate
from pacbound.claims.claim import C, Cells, Claim, Procedure, Told, Values
from pacbound.claims.tables import (
    DRAWN,
    head,
    histogram_cells,
    histograms_of,
    require_groups,
    require_lost,
    require_total,
    scope_field,
    small_groups_conflict,
    tables_field,
)
from pacbound.claims.threshold_certificate import (
    Trials,
    common_threshold,
    flag_rule,
    is_left_out,
    is_refused,
    left_out,
    level_of,
    rows_of,
    search_of,
    stands_for,
    trials_of,
)
from pacbound.claims.threshold_words import ClaimWords, quantities, said
from pacbound.documents import Json, Reader
from pacbound.errors import CertificateError, InvalidTypeError, InvalidValueError
from pacbound.fields import Field, Fields, Histogram
from pacbound.figure import Figure
from pacbound.figures import Curve, Named
from pacbound.figures.thresholds import share_by_threshold
from pacbound.forms import Ask, Threshold, Whole, allowed_rate
from pacbound.measure import Measure, Sample
from pacbound.procedures.threshold import (
    SLOW,
    UNEXPLAINED,
    Decision,
    NoThreshold,
    Side,
    decide,
    decide_at_look,
)
from pacbound.says import Quantity, Says, Sentence, in_unit, share
from pacbound.stats.looks import PlannedLooks, looks_work, planned_looks
from pacbound.tally.row_rules import RowRule
from pacbound.tally.tally import Tally
from pacbound.watch import ColumnWatch, LossWatch


@dataclass(frozen=True)
class ThresholdProcedure(Procedure):
    """How a threshold is found among which trials, and in which words it is said.

    `question` is what it counts, if not what the claim does. In use a trial is `seen_as` one of two
    things, the second if it is an event; `told_by` names the column that says so itself, where
    scores are not needed. `not_watched` says why it cannot be monitored.
    """

    trials: Trials = field(default_factory=lambda: Trials("", "", "below"))
    words: ClaimWords = field(default_factory=ClaimWords)
    unavoidable_first: bool = False
    question: Any = None
    seen_as: tuple[str, str] = ("kept", "lost")
    told_by: str = ""
    not_watched: str = ""

    @property
    def among(self) -> tuple[str, ...]:
        """The outcome whose rows are trials, unless every row is one."""
        return () if self.trials.of == "all" else (self.trials.of,)


@dataclass(frozen=True)
class Measured:
    """What a plan improves: the share of an outcome's rows, by its place or "all", that is acted
    on, and whether more of it is better.
    """

    name: str
    outcome: int | Literal["all"]
    larger: bool


def _no_conflict(_: Values) -> None:
    """Everything goes together."""


def _no_misfit(*_: Any) -> None:
    """All columns go together."""


def _nothing_told(_: Any) -> Told:
    return Told()


@dataclass(frozen=True, kw_only=True)
class ThresholdClaim(Claim[C]):
    """A threshold claim, declared.

    Attributes
    ----------
    curves : tuple
        What its figure shows: outcomes by their place, or "all", each with the name of its line.
        The claim is about the first.
    choose : callable or None
        The name of the procedure, from what was asked for; if left out, the first that counts the
        same, with looks where these are planned.
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
    scored : bool
        Whether rows have a score; without one all are in the same cell, and the claim holds or not.
    nothing : str
        What to say, with {n}, where not one of the rows is a trial: the column is probably another.
    """

    kind: str
    command: str
    help: str
    question: Any
    asks: tuple[Ask, ...]
    procedures: Mapping[str, ThresholdProcedure]
    curves: tuple[tuple[int | Literal["all"], str], ...]
    certificate: type[C]
    choose: Callable[[Values], str] | None = None
    conflict: Callable[[Values], str | None] = _no_conflict
    misfit: Callable[[Set[str], Values], str | None] = _no_misfit
    of_files: Callable[[Any], Told] = _nothing_told
    applied: str | None = "pac_flag"
    measured: Measured | None = None
    scored: bool = True
    nothing: str = ""

    def __post_init__(self) -> None:
        asked = {ask.name for ask in self.asks}
        for procedure in self.procedures.values():
            question = procedure.question or self.question
            procedure.words.require_names(asked | set(question.outcomes_of_a_row))

    def wishes(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """What was asked for; a plan of looks must be for the same rate and delta."""
        wishes = super().wishes(given)
        plan = given.get("looks")
        if isinstance(plan, PlannedLooks):
            require_plan(plan, allowed_rate(wishes), wishes["delta"])
        wrong = self.conflict(wishes)
        if wrong is not None:
            raise InvalidValueError(wrong)
        return wishes

    def require_columns(self, given: Set[str], wishes: Values) -> None:
        """Raise if what rows bring does not go together, or with what is asked for."""
        wrong = self.misfit(given, wishes)
        if wrong is not None:
            raise InvalidTypeError(wrong)

    def told(self, data: Any) -> Told:
        """What data says of itself, if it is files."""
        return self.of_files(data)

    def _chosen(self, asked: Values, question: str) -> str:
        """The name of the procedure, for a tally of the question."""
        if self.choose is not None:
            return self.choose(asked)
        looks = asked.get("looks") is not None
        fitting = (
            one.name
            for one in self.procedures.values()
            if (one.question or self.question).kind == question and ("looks" in one.asks) == looks
        )
        return next(fitting, next(iter(self.procedures)))

    def drawn_among(self, wishes: Values, question: Any) -> tuple[str, ...]:
        """The trials of the procedure that decides."""
        return self.procedures[self._chosen(wishes, question.kind)].among

    def fields(self, procedure: Procedure) -> Fields:
        """The fields of a document of the procedure."""
        left_out = {name for other in self.procedures.values() for name in other.asks}
        left_out -= set(procedure.asks)
        question = getattr(procedure, "question", None) or self.question
        return Fields(
            (
                *head(self, procedure, [ask for ask in self.asks if ask.name not in left_out]),
                scope_field("top", "groups", "overlapping-groups"),
                DRAWN,
                tables_field(
                    *self.counted_fields(question),
                    Field("threshold", Threshold(question.grid.n_cells - 1)),
                    Field("allowed", Whole(-1)),
                    agree=self.agree_table,
                ),
            ),
            agree=partial(self._agree, procedure, question),
        )

    def counted_fields(self, question: Any) -> tuple[Field, ...]:
        """What a table holds of the data."""
        top = question.grid.n_cells - 1
        form = Histogram(question.outcomes_of_a_row, top, question.lowest_cell)
        return (Field("counts", form, counted=True),)

    def agree_table(self, part: Reader, table: Values) -> None:
        """Raise if what a table holds of the data cannot be."""

    def _agree(self, procedure: Any, question: Any, part: Reader, values: Values) -> None:
        """What was asked for leads to this procedure; groups are named where there are groups;
        counts add up to n; and no row was lost that cannot have been.
        """
        asked = {ask.name: values.get(ask.name, ask.default) for ask in self.asks}
        conflict, looks = self.conflict(asked), asked.get("looks")
        if conflict is not None or self._chosen(asked, question.kind) != procedure.name:
            raise CertificateError(
                f"{part.place('procedure')} is {procedure.name!r}, which does not decide what was "
                f"asked for. {conflict or ''}"
            )
        if looks is not None and (values["drawn"] is not None or values["scope"] != "top"):
            raise CertificateError(
                f"{part.place('looks')}: planned looks cannot be combined with groups or draws."
            )
        if question.judged_at_once and values["drawn"] is not None:
            raise CertificateError(f"{part.place('drawn')} is not null: these rows are not drawn.")
        require_groups(part, values)
        wrong = small_groups_conflict(values, values["scope"])
        if wrong is not None:
            raise CertificateError(f"{part.place('small_groups')}: {wrong}")
        tables = [table["counts"] for table in values["tables"]]
        for counts in tables:
            require_lost(part, question, counts)
        require_total(part, values, tables, "tables")
        trials = procedure.trials.search(values["tables"][0], values).trials
        if looks is not None and trials not in looks:
            raise CertificateError(
                f"{part.place('looks')} holds no look at {trials:,} {procedure.words.unit}, which "
                "were counted."
            )

    def counted(self, evidence: Tally, wishes: Values) -> dict[str, Any]:
        """A histogram for each group, and what was asked for."""
        procedure = self.procedures[self._chosen(wishes, evidence.kind)]
        found = histograms_of(evidence, procedure.question or self.question)
        if wishes.get("looks") is not None:
            _require_all_rows(evidence)
            if evidence.scope != "top":
                raise InvalidValueError(
                    "looks cannot be combined with groups: certify each group by itself, with a "
                    "plan of its own."
                )
        wrong = small_groups_conflict(wishes, evidence.scope)
        if wrong is not None:
            raise InvalidValueError(wrong)
        tables = [{"group": group, **self.counted_table(counts)} for group, counts in found]
        return {**self.counted_values(procedure.name, evidence, wishes), "tables": tables}

    def counted_table(self, counts: Values) -> dict[str, Any]:
        """What a table holds of the counts of a group, or of all rows."""
        return {"counts": counts}

    def named(self, values: Values, question: str) -> dict[str, Any]:
        """What was counted and asked for, with the names of the claim and its procedure."""
        return {**values, "kind": self.kind, "procedure": self._chosen(values, question)}

    def decided(self, values: Values) -> dict[str, Any]:
        """The threshold of each table at its level."""
        procedure = self.procedures[values["procedure"]]
        level = level_of(values)
        tables = [
            {**table, "threshold": found.threshold, "allowed": found.allowed}
            for table in values["tables"]
            for found in [self._decision(procedure, values, table, level)]
        ]
        kept = [table for table in tables if not is_left_out(values, table)] or tables
        limits = [table["threshold"] for table in kept]
        below = procedure.trials.side == "below"
        refused = [limit == (-inf if below else inf) for limit in limits]
        own = values.get("group_thresholds") == "own" and values["scope"] != "top"
        if not own:
            # That of each group alone is no claim, and nobody shall take it for one.
            common = min(limits) if below else max(limits)
            tables = [
                {**table, "threshold": table["threshold"] if is_left_out(values, table) else common}
                for table in tables
            ]
        return {
            **values,
            "assumes": self.assumed(procedure.assumes, values["drawn"], values["scope"]),
            "tables": tables,
            "certified": not (all(refused) if own else any(refused)),
        }

    def refusal(self, certificate: Certificate, table: Values) -> NoThreshold:
        """Why a table has no threshold, computed from its counts: documents do not hold it."""
        values, trials = certificate.values, trials_of(certificate)
        stuck = trials.search(table, values).unavoidable
        if self.work(values) > EXPLAINED_WORK:
            return NoThreshold(SLOW, stuck, None)
        decision = self._decision(
            self.procedures[values["procedure"]], values, table, level_of(values)
        )
        return decision.refusal or NoThreshold(UNEXPLAINED, stuck, None)

    def _decision(
        self, procedure: ThresholdProcedure, values: Values, table: Values, level: float
    ) -> Decision:
        search, rate = procedure.trials.search(table, values), allowed_rate(values)
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
        trials = ceil(log(delta) / log1p(-allowed_rate(wishes))) + 1
        procedure = self.procedures[self._chosen(wishes, pilot.kind)]
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
        values, write = certificate.values, Threshold().write
        common = values["scope"] == "top" or values["group_thresholds"] == "common"
        if common and not left_out(values):
            return {"threshold": write(common_threshold(certificate))}
        return {
            "thresholds": {
                str(table["group"]): write(table["threshold"]) for table in values["tables"]
            }
        }

    def refused_groups(self, certificate: C) -> Iterable[str]:
        """The groups without a threshold."""
        tables = certificate.values["tables"]
        return (str(table["group"]) for table in tables if is_refused(certificate, table))

    def figures(self, certificate: C) -> Iterable[Figure]:
        """The share of rows from each threshold on, for every table."""
        return (self._figure(certificate, table) for table in certificate.values["tables"])

    def _figure(self, certificate: C, table: Values) -> Figure:
        counts, name = table["counts"], self.kind.replace("-", " ").capitalize()
        rate, side = allowed_rate(certificate.values), self._side(certificate)
        search = search_of(certificate, table)
        cells = np.union1d(counts["cells"], search.cells)
        cells = cells[cells >= 0]
        below = np.concatenate([[0], np.cumsum(search.events)])
        below = below[np.searchsorted(search.cells, cells)]
        events = below if side == "below" else search.events.sum() - below
        share_of_events = (search.lost + events) / (search.trials or np.nan)
        first = self._procedure(certificate).words.kept or self.curves[0][1]
        kept = 1 - share_of_events if side == "below" else share_of_events
        curves = [Curve(first, kept)]
        for outcome, words in self.curves[1:]:
            weights = stands_for(certificate.values)
            rows = rows_of(counts, self._outcome(certificate, outcome), weights)
            reached = np.append(np.cumsum(rows[::-1])[::-1], 0)
            places = np.searchsorted(counts["cells"], cells)
            curves.append(Curve(words, reached[places] / (rows.sum() or np.nan)))
        asked = 1 - rate if side == "below" else rate
        rounding = trials_of(certificate).rounding
        limit = Quantity(table["threshold"], "threshold", rounding)
        group = "" if table["group"] is None else f", {table['group']}"
        return share_by_threshold(
            cells / search.top,
            curves,
            title=f"{name} by threshold{group}",
            caption="Lines show what was seen. "
            + (
                "Certified is what was asked for, at the upright line."
                if not is_refused(certificate, table)
                else "Nothing is certified."
            ),
            asked=Named(asked, f"asked for: {share(asked).text}"),
            certified=None
            if is_refused(certificate, table)
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
        rate = allowed_rate(certificate.values, up=True)
        if procedure.told_by:
            if certificate.values["scope"] != "top":
                return "each of its groups is watched apart; certify one group, and monitor that"
            what = f"A monitored {self.kind}"
            return ColumnWatch(
                what, procedure.told_by, rate=rate, claimed=claimed, outcomes=procedure.seen_as
            )
        trials, question = procedure.trials, self.question_of(certificate)
        tables = certificate.values["tables"]
        limits = np.array([table["threshold"] for table in tables])
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
            held=[not is_refused(certificate, table) for table in tables],
            trials_and_events=lambda cells, outcomes, places: trials.among(
                question.outcomes, cells, outcomes, limits[places]
            ),
        )

    def cells(self, certificate: C) -> Cells:
        """How many rows of each outcome are in each cell of the score."""
        return histogram_cells(certificate.values["tables"], trials_of(certificate).top)

    def numbers(self, certificate: C) -> list[tuple[str, str]]:
        """What was asked for and decided."""
        filled = quantities(self, certificate)
        own = certificate.values.get("group_thresholds") == "own"
        decided = []
        if self.scored and not own:
            limit: Any = in_unit(filled["threshold"], certificate.provenance.scale)
            decided = [("Threshold", limit.text)]
        words = self._procedure(certificate).words
        kept = {"events": "Counted against the claim", "allowed": "Allowed against the claim"}
        rows, *asked = super().numbers(certificate)
        if filled["trials"] != filled["n"]:
            asked = [(f"Of these, {words.unit}", filled["trials"].text), *asked]
        return [
            (f"{words.rows.capitalize()} counted", rows[1]),
            *asked,
            *decided,
            *((name, filled[key].text) for key, name in kept.items()),
        ]

    def _outcome(self, certificate: C, place: int | Literal["all"]) -> str:
        return (
            "all" if place == "all" else str(self.question_of(certificate).outcomes_of_a_row[place])
        )

    def _procedure(self, certificate: C) -> ThresholdProcedure:
        return self.procedures[certificate.values["procedure"]]

    def work(self, values: Values) -> float:
        """About how long a plan of looks takes; all else is quick."""
        return _plan_work(values.get("looks"), xi=allowed_rate(values), delta=values["delta"])


def require_plan(plan: PlannedLooks, rate: float, delta: float) -> None:
    """Raise unless looks were planned for this rate, up to rounding, and this delta."""
    if not np.isclose(plan.xi, rate, rtol=1e-12, atol=0) or plan.delta != delta:
        raise InvalidValueError(
            f"looks were planned for xi={plan.xi} and delta={plan.delta}, not for xi={rate} and "
            f"delta={delta}: pass the same."
        )


# Multiplications of a plan that take as long as the longest usual certificate.
_LOOKS_WORK = 8e9


def _require_all_rows(tally: Tally) -> None:
    """Raise if the rows of a look were drawn from others: a later look would draw others."""
    if tally.drawn is not None:
        raise InvalidValueError(
            f"looks cannot be combined with {tally.drawn.by}: more rows of a cluster change "
            "which one is drawn. Pass delta divided by the number of looks at each of them instead."
        )


def _plan_work(looks: Sequence[int] | None, *, xi: float, delta: float) -> float:
    """How long a plan takes to compute again, as `Certificate.work` counts it."""
    if looks is None or xi == 0:
        return 0.0
    return looks_work(looks, xi=xi, delta=delta) / _LOOKS_WORK
