"""Claims of the form "act from a threshold on, and at most a share of these goes wrong", declared.

A kind says its rate (`pacbound.claims.rates`): which rows are trials, and when a trial is an event;
and its sentences. The decision, groups, planned looks, documents, figures, the monitor, and how the
threshold is applied to rows are the same for all of them. Where trials do not depend on the
threshold, every threshold on the cautious side keeps the promise, and a sentence may round towards
it. Where they are the rows that reach it, all thresholds that hold stand in the document.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from math import ceil, isinf, log, log1p
from typing import Any, Literal

import numpy as np

from pacbound.claims.certificate import Certificate
from pacbound.claims.claim import C, Cells, Claim, Procedure, Told, Values, interval_work
from pacbound.claims.rates import (
    ALL,
    Rate,
    common_threshold,
    is_left_out,
    is_refused,
    left_out,
    rate_of,
    rows_of,
    search_of,
)
from pacbound.claims.remedies import NEARLY_ALL, WORST, worst_answer
from pacbound.claims.tables import (
    counted_by_table,
    histogram_cells,
    histograms_of,
    no_such_look,
    small_groups_conflict,
)
from pacbound.claims.threshold_certificate import flag_rule
from pacbound.claims.threshold_words import ClaimWords, quantities, said
from pacbound.documents import Json, Reader
from pacbound.errors import InvalidTypeError, InvalidValueError
from pacbound.fields import Field, Fields, Histogram, LevelCounts
from pacbound.figure import Figure, titled
from pacbound.figures import Curve, Named
from pacbound.figures.thresholds import rate_by_coverage, share_by_threshold
from pacbound.forms import Ask, Form, Threshold, Whole, allowed_rate
from pacbound.measure import Measure, Sample
from pacbound.procedures import abstention, graded_abstention
from pacbound.says import Quantity, Says, Sentence, Value, in_unit, share
from pacbound.stats.arguments import LARGEST_COUNT
from pacbound.stats.looks import PlannedLooks, looks_work, planned_looks
from pacbound.tally.questions.question import Judged
from pacbound.tally.row_rules import RowRule
from pacbound.tally.tally import Tally
from pacbound.watch import Integers, Watch, bets_on_losses

# Twenty milliseconds, as `Certificate.work` counts them: a table that may end in a refusal.
_TABLE_WORK = 2e-3


@dataclass(frozen=True)
class ThresholdProcedure(Procedure):
    """How a threshold is found for which rate, and in which words it is said.

    `question` is what it counts, if not what the claim does. In use a trial is `seen_as` one of two
    things, the second if it is an event; `told_by` names the column that says so itself, where
    scores are not needed. `not_watched` says why it cannot be monitored.
    """

    rate: Rate = field(default_factory=lambda: Rate("", ""))
    words: ClaimWords = field(default_factory=ClaimWords)
    question: Any = None
    seen_as: tuple[str, str] = ("kept", "lost")
    told_by: str = ""
    not_watched: str = ""

    @property
    def among(self) -> tuple[str, ...]:
        """The outcome whose rows are trials, if there is one."""
        one = self.rate.of != ALL and not self.rate.reached
        return (self.rate.of,) if one else ()


@dataclass(frozen=True)
class Measured:
    """What a plan improves: the share of an outcome's rows, by its place or "all", that is acted
    on, and whether more of it is better.
    """

    name: str
    outcome: int | Literal["all"]
    larger: bool


class CellRanges(Form):
    """All thresholds that hold, as ranges of cells with both ends, the highest first."""

    def read(self, part: Reader, key: str) -> tuple[tuple[int, int], ...]:
        """The ranges."""
        return tuple((low, high) for low, high in part.raw(key))


_GRADES = (Field("counts", LevelCounts(), counted=True),)


@dataclass(frozen=True, kw_only=True)
class ThresholdClaim(Claim[C]):
    """A claim about a rate, declared.

    Attributes
    ----------
    curves : tuple
        What its figure shows: outcomes by their place, or "all", each with the name of its line.
        The claim is about the first. Where the trials are the rows that reach the threshold: the
        short name and the words of either axis, the share of rows and the rate among them.
    choose : callable or None
        The name of the procedure, from what was asked for; if left out, the first that counts the
        same and whose own asks were asked for.
    conflict : callable or None
        What of that does not go together, in a sentence, or None.
    misfit : callable or None
        What of the columns does not go together, or with what was asked for, or None.
    of_files : callable or None
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
    curves: tuple[tuple[int | str, str], ...]
    certificate: type[C]
    choose: Callable[[Values], str] | None = None
    conflict: Callable[[Values], str | None] | None = None
    misfit: Callable[[Set[str], Values], str | None] | None = None
    of_files: Callable[[Any], Told] | None = None
    applied: str | None = "pac_flag"
    measured: Measured | None = None
    scored: bool = True
    nothing: str = ""

    def __post_init__(self) -> None:
        asked = {ask.name for ask in self.asks}
        for procedure in self.procedures.values():
            question = procedure.question or self.question
            procedure.words.require_names(asked | set(question.outcomes_of_a_row))

    @property
    def _first(self) -> ThresholdProcedure:
        return next(iter(self.procedures.values()))

    @property
    def act(self) -> str:
        """What the rows are called that reach the threshold, where they are the trials."""
        return self._first.words.act

    def wishes(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """What was asked for; a plan of looks must be for the same rate and delta."""
        wishes = super().wishes(given)
        plan = given.get("looks")
        if isinstance(plan, PlannedLooks):
            require_plan(plan, allowed_rate(wishes), wishes["delta"])
        wrong = self.conflict and self.conflict(wishes)
        if wrong:
            raise InvalidValueError(wrong)
        return wishes

    def require_columns(self, given: Set[str], wishes: Values) -> None:
        """Raise if what rows bring does not go together, or with what is asked for."""
        wrong = self.misfit and self.misfit(given, wishes)
        if wrong:
            raise InvalidTypeError(wrong)

    def told(self, data: Any) -> Told:
        """What data says of itself, if it is files."""
        return Told() if self.of_files is None else self.of_files(data)

    def _chosen(self, asked: Values, question: str, *, graded: bool = False) -> str:
        """The name of the procedure, for a tally of the question."""
        if self.choose is not None:
            return self.choose(asked)
        own = {name for one in self.procedures.values() for name in one.asks}
        own = {name for name in own if asked.get(name) is not None}
        fitting = (
            one.name
            for one in self.procedures.values()
            if (one.question or self.question).kind == question
            and set(one.asks) == own
            and one.rate.graded == graded
        )
        return next(fitting, self._first.name)

    def drawn_among(self, wishes: Values, question: Any) -> tuple[str, ...]:
        """The trials of the procedure that decides."""
        return self.procedures[self._chosen(wishes, question.kind)].among

    def fields(self, procedure: Procedure) -> Fields:
        """The fields of a document of the procedure."""
        others = {name for other in self.procedures.values() for name in other.asks}
        others -= set(procedure.asks)
        own = self.procedures[procedure.name]
        return counted_by_table(
            self,
            procedure,
            [ask for ask in self.asks if ask.name not in others],
            *(_GRADES if own.rate.graded else self.counted_fields(own.question or self.question)),
            Field("threshold", Threshold()),
            Field("claimed", CellRanges()) if own.rate.reached else Field("allowed", Whole(-1)),
        )

    def counted_fields(self, question: Any) -> tuple[Field, ...]:
        """What a table holds of the data."""
        return (Field("counts", Histogram(question.outcomes_of_a_row), counted=True),)

    def counted(self, evidence: Tally, wishes: Values) -> dict[str, Any]:
        """A histogram for each group, and what was asked for."""
        graded = evidence.graded is not None
        if graded and wishes.get("first_threshold") is not None:
            raise InvalidTypeError(
                "first_threshold is where a walk starts, and grades need none: leave it out."
            )
        procedure = self.procedures[self._chosen(wishes, evidence.kind, graded=graded)]
        found = histograms_of(evidence, procedure.question or self.question)
        if procedure.rate.reached:
            if evidence.scope not in ("top", "groups"):
                raise InvalidTypeError(
                    "groups overlap, and a row of two groups would have two thresholds: expected "
                    "one group per row."
                )
            found = [(group, counts) for group, counts in found if counts["cells"].size]
        wrong = small_groups_conflict(wishes, evidence.scope)
        looks = wishes.get("looks")
        if looks is not None:
            _require_all_rows(evidence)
        if wrong is not None:
            raise InvalidValueError(wrong)
        tables = [{"group": group, **self.counted_table(counts)} for group, counts in found]
        values = {**self.counted_values(procedure.name, evidence, wishes), "tables": tables}
        if looks is None:
            return values
        planned = planned_looks(allowed_rate(wishes), delta=wishes["delta"], looks=looks).looks
        trials = procedure.rate.search(tables[0], values).trials
        if trials not in planned:
            raise InvalidValueError(no_such_look(trials, procedure.words.unit, planned))
        return values

    def counted_table(self, counts: Values) -> dict[str, Any]:
        """What a table holds of the counts of a group, or of all rows."""
        return {"counts": counts}

    def decided(self, values: Values) -> dict[str, Any]:
        """The threshold of each table at its level."""
        procedure = self.procedures[values["procedure"]]
        rate = procedure.rate
        tables = [{**table, **rate.decided(table, values)} for table in values["tables"]]
        kept = [table for table in tables if not is_left_out(values, table)] or tables
        limits = [table["threshold"] for table in kept]
        refused = [limit == rate.refused for limit in limits]
        own = rate.own(values) and values["scope"] != "top"
        if not own:
            # That of each group alone is no claim, and nobody shall take it for one.
            common = rate.cautious(limits)
            tables = [
                {**table, "threshold": table["threshold"] if is_left_out(values, table) else common}
                for table in tables
            ]
        return {
            **values,
            "assumes": self.assumed(
                procedure.assumes, values["drawn"], values["scope"], values.get("graded")
            ),
            "tables": tables,
            "certified": not (all(refused) if own else any(refused)),
        }

    def noticed(
        self, certificate: C, columns: Mapping[str, Any], count: Callable[[Any], Tally]
    ) -> C:
        """Where nearly all rows are answered: the answer that is most often wrong."""
        made: Any = certificate
        answers, top = columns.get("prediction"), made.values["scope"] == "top"
        hides = self._first.words.hides_rare and made.certified and made.graded is None
        if answers is None or not hides or not top or made.acted < NEARLY_ALL * made.number():
            return certificate
        (table,), rate = made.values["tables"], rate_of(made)
        found = {}
        for name, counts in histograms_of(count(answers), self.question):
            search = rate.search({"counts": counts, "threshold": table["threshold"]}, made.values)
            found[str(name)] = search.events_at(table["threshold"]), search.trials
        notes = {**made.provenance.notes, WORST: worst_answer(found)}
        return replace(certificate, provenance=replace(made.provenance, notes=notes))

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
        unit = self._first.words.rows
        kind: Any = asked
        return Measure(name, unit, self.measured.larger, kind, self._sample, self._least)

    def _sample(self, tally: Tally, rate: float, delta: float) -> Sample:
        found: Any = self.certify(tally, {self.asks[0].name: rate, "delta": delta})
        outcome = self._outcome(found, self.measured.outcome) if self.measured else ALL
        # A draw may lack a group, so thresholds of groups cannot be compared between draws.
        own = found.groups and rate_of(found).own(found.values)
        limits = () if own else (found.threshold,)
        # A draw may have no row of the outcome, and then finds none.
        return Sample(found.certified, found.share(outcome) or 0.0, limits)

    def _least(self, pilot: Tally, rate: float, delta: float) -> int:
        """Rows among which there are as many trials as pass if none is an event, if they stay as
        common as in the pilot.
        """
        wishes = self.wishes({self.asks[0].name: rate, "delta": delta})
        allowed = allowed_rate(wishes)
        graded = pilot.graded is not None
        of = self.procedures[self._chosen(wishes, pilot.kind, graded=graded)].rate
        if of.graded:
            return graded_abstention.least_rows(xi=allowed, delta=delta) or LARGEST_COUNT
        if of.reached:
            return abstention.least_rows(xi=allowed, delta=delta) or LARGEST_COUNT
        trials = ceil(log(delta) / log1p(-allowed)) + 1
        seen = pilot.rows if of.of == ALL else pilot.totals[of.of]
        return ceil(trials * pilot.rows / seen)

    def row_rule(self, certificate: C) -> RowRule | None:
        """What applying adds to each row; None where a row has no single score."""
        return None if self.applied is None else flag_rule(certificate, self.applied)

    @property
    def questions(self) -> tuple[Any, ...]:
        """What may be counted: the claim's question, and those of its procedures."""
        others = (one.question for one in self.procedures.values() if one.question is not None)
        return (self.question, *others)

    def question_of(self, certificate: C) -> Any:
        """What was counted for the certificate."""
        return self._procedure(certificate).question or self.question

    def thresholds(self, certificate: C) -> dict[str, Json]:
        """The threshold, or that of each group; where these are the rule, the document has them."""
        made: Any = certificate
        values, write = made.values, Threshold().write
        if not self.scored and made.is_shield:
            return {"threshold": write(made.threshold)}
        if not self.scored or rate_of(made).reached:
            return {}
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
        """The share of rows from each threshold on, for every table; or the rate among the rows
        that reach one, as it falls. None without a score: two numbers need no picture.
        """
        tables = certificate.values["tables"] if self.scored else ()
        drawn = self._falling if rate_of(certificate).reached else self._by_threshold
        return (drawn(certificate, table) for table in tables)

    def _by_threshold(self, certificate: Any, table: Values) -> Figure:
        name, rate = self.kind.replace("-", " ").capitalize(), rate_of(certificate)
        asked, group = allowed_rate(certificate.values), table["group"]
        below, seen = rate.side == "below", certificate.curve(group)
        first = self._procedure(certificate).words.kept or self.curves[0][1]
        curves = [Curve(first, 1 - seen.rate if below else seen.rate)]
        for place, words in self.curves[1:]:
            outcome = self._outcome(certificate, place)
            curves.append(Curve(words, certificate.reached(outcome, group=group)[1]))
        limit = Quantity(table["threshold"], "threshold", rate.rounding)
        level = 1 - asked if below else asked
        refused = is_refused(certificate, table)
        return share_by_threshold(
            seen.thresholds,
            curves,
            title=f"{name} by threshold" + ("" if group is None else f", {group}"),
            caption="Lines show what was seen. "
            + (
                "Nothing is certified."
                if refused
                else "Certified is what was asked for, at the upright line."
            ),
            asked=Named(level, f"asked for: {share(level).text}"),
            certified=None if refused else Named(limit.value, f"certified: {limit.text}"),
        )

    def _falling(self, certificate: Any, table: Values) -> Figure:
        seen, ask, limit = certificate.curve(table["group"]), self.asks[0], table["threshold"]
        wanted = allowed_rate(certificate.values)
        rate, level = (1 - one if ask.name == "target" else one for one in (seen.rate, wanted))
        (coverage, across), (name, up) = self.curves
        return rate_by_coverage(
            seen.thresholds,
            Curve(str(coverage), seen.coverage, across),
            Curve(str(name), rate, self._procedure(certificate).words.kept or up),
            rows=int(rows_of(table["counts"], ALL).sum()),
            title=titled(f"{str(name).capitalize()} against {coverage}", table["group"]),
            caption="As the threshold falls, more rows reach it. No point of the curve is "
            "certified; "
            + (
                "nothing is."
                if isinf(limit)
                else "what is certified at the dot is the dashed line."
            ),
            asked=Named(level, f"{ask.name} = {_text(ask.said(certificate.values[ask.name]))}"),
            certified=Named(limit, f"from {limit!r} on"),
        )

    def watch(self, certificate: C) -> Any:
        """Each trial is a label, and a loss if it is an event."""
        procedure = self._procedure(certificate)
        if procedure.not_watched:
            return procedure.not_watched
        words = procedure.words
        promise = words.graded if certificate.graded else words.in_use or words.promise
        claimed = str(Sentence(promise, quantities(self, certificate)))
        bets = bets_on_losses(allowed_rate(certificate.values, up=True))
        shared: dict[str, Any] = {"claimed": claimed, "outcomes": procedure.seen_as}
        tables = certificate.values["tables"]
        held = {table["group"]: not is_refused(certificate, table) for table in tables}
        if procedure.told_by:
            return Watch.of_tables(certificate, bets, held, column=procedure.told_by, **shared)
        rate, question = procedure.rate, self.question_of(certificate)
        limits = np.array([table["threshold"] for table in tables])
        if rate.side == "below" and (limits <= 0).all():
            raise InvalidValueError(
                "This certificate acts on every row, so that nothing can be missed: there is "
                "nothing to monitor."
            )

        def outcome(judged: Judged, rows: Integers, places: Integers) -> Any:
            cells, outcomes = judged.cells[rows, -1], judged.outcomes[rows]
            trials, events = rate.among(question.outcomes, cells, outcomes, limits[places])
            return np.where(trials, events, -1)

        return Watch.of_tables(
            certificate,
            bets,
            held,
            question=replace(question, graded=certificate.graded),
            outcome=outcome,
            **shared,
        )

    def cells(self, certificate: C) -> Cells:
        """How many rows of each outcome are in each cell of the score."""
        return histogram_cells(certificate.values["tables"], rate_of(certificate).top)

    def numbers(self, certificate: C) -> list[tuple[str, str]]:
        """What was asked for and decided."""
        filled, values = quantities(self, certificate), certificate.values
        rate, words = rate_of(certificate), self._procedure(certificate).words
        decided = []
        own = rate.own(values) and (values["scope"] != "top" or not rate.reached)
        if self.scored and not own:
            limit = in_unit(filled["threshold"], certificate.provenance.scale)
            decided = [("Threshold", _text(limit))]
        rows, *asked = super().numbers(certificate)
        if not rate.reached and filled["trials"] != filled["n"]:
            asked = [(f"Of these, {words.unit}", filled["trials"].text), *asked]
        return [
            (f"{words.rows.capitalize()} counted", rows[1]),
            *asked,
            *decided,
            *((name, _text(filled[key])) for name, key in words.numbers),
        ]

    def _outcome(self, certificate: C, place: int | str) -> str:
        if isinstance(place, str):
            return place
        return str(self.question_of(certificate).outcomes_of_a_row[place])

    def _procedure(self, certificate: Certificate) -> ThresholdProcedure:
        return self.procedures[certificate.values["procedure"]]

    def work(self, values: Values) -> float:
        """About how long a plan of looks takes, or walks, of which one that ends in a refusal is
        walked many times; all else is quick.
        """
        if self._first.rate.reached:
            rows = (rows_of(table["counts"], ALL) for table in values["tables"])
            return sum(_TABLE_WORK + interval_work(each) for each in rows)
        return _plan_work(values.get("looks"), xi=allowed_rate(values), delta=values["delta"])


def _text(value: Value) -> str:
    return value if isinstance(value, str) else value.text


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
    """Raise if the rows of a look were drawn from others, since a later look would draw others; or
    are in groups.
    """
    if tally.drawn is not None:
        raise InvalidValueError(
            f"looks cannot be combined with {tally.drawn.by}: more rows of a cluster change "
            "which one is drawn. Pass delta divided by the number of looks at each of them instead."
        )
    if tally.scope != "top":
        raise InvalidValueError(
            "looks cannot be combined with groups: certify each group by itself, with a plan of "
            "its own."
        )


def _plan_work(looks: Sequence[int] | None, *, xi: float, delta: float) -> float:
    """How long a plan takes to compute again, as `Certificate.work` counts it."""
    if looks is None or xi == 0:
        return 0.0
    return looks_work(looks, xi=xi, delta=delta) / _LOOKS_WORK
