"""Claims of the form "act from a threshold on, and at most a share of the rows acted on goes
wrong", declared.

Which rows are trials changes with the threshold, so the share is not monotone in it, and a walk
down the thresholds decides which of them hold (`pacbound.procedures.abstention`). A kind says which
outcome is an event, the rate, what a row is called that reaches the threshold, and its sentences.
Groups, documents, figures, the monitor, and how the threshold is applied to rows are the same for
all of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from math import inf, isinf
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pacbound.claims.assumptions import as_graded
from pacbound.claims.certificate import EXPLAINED_WORK, Certificate
from pacbound.claims.claim import C, Cells, Claim, Procedure, Values, interval_work
from pacbound.claims.remedies import NEARLY_ALL, WORST, worst_answer
from pacbound.claims.tables import (
    DRAWN,
    GRADED,
    groups_of,
    head,
    histogram_cells,
    histograms_of,
    require_groups,
    require_total,
    scope_field,
    tables_field,
)
from pacbound.claims.threshold_certificate import group_names
from pacbound.claims.walk_words import WalkWords, quantities, said
from pacbound.documents import Json, Reader
from pacbound.errors import CertificateError, InvalidTypeError, InvalidValueError
from pacbound.fields import Field, Fields, Histogram
from pacbound.figure import Figure, titled
from pacbound.figures import Curve, Named
from pacbound.figures.thresholds import rate_by_coverage
from pacbound.forms import REQUIRED, Ask, Form, Threshold, allowed_rate
from pacbound.measure import Measure, Sample
from pacbound.procedures import abstention
from pacbound.procedures.abstention import NothingPassed
from pacbound.procedures.threshold import TOP
from pacbound.says import Says, Sentence, Value, in_unit
from pacbound.stats.arguments import LARGEST_COUNT, exact_sum, is_one_of, real_number
from pacbound.stats.binomial import bonferroni_level
from pacbound.tally.columns import QUALITY, as_scores
from pacbound.tally.row_rules import Limit, RowRule, RowSteps
from pacbound.tally.tally import Tally
from pacbound.watch import LossWatch

Floats = NDArray[np.float64]

# Twenty milliseconds, as `Certificate.work` counts them: a table that may end in a refusal.
_TABLE_WORK = 2e-3


class RiskCoverage(NamedTuple):
    """What was seen at each threshold, from the highest score down. Descriptive: no point of it is
    certified.

    Attributes
    ----------
    thresholds : ndarray
        The scores that rows have, on the grid of 2^-16.
    coverage : ndarray
        The share of the rows whose score is at least that.
    risk : ndarray
        The share of these that is wrong.

    Examples
    --------
    >>> from pacbound import certify_abstention
    >>> certificate = certify_abstention([0.5, 0.75], [False, True], xi=0.1, delta=0.1)
    >>> certificate.risk_coverage().risk
    array([0. , 0.5])
    """

    thresholds: Floats
    coverage: Floats
    risk: Floats


@dataclass(frozen=True)
class WalkProcedure(Procedure):
    """What fixes where the walk may start: numbers of rows, or a declared `first_threshold`."""

    declared: bool = False


class CellRanges(Form):
    """All thresholds that hold, as ranges of cells with both ends, the highest first."""

    def read(self, part: Reader, key: str) -> tuple[tuple[int, int], ...]:
        """The ranges."""
        if not part.raw(key):
            part.integers(key)
            return ()
        table = part.table(key)
        if len(table[0]) != 2:
            raise CertificateError(f"{part.place(key)} is not a list of ranges.")
        return tuple((low, high) for low, high in table)

    def schema(self) -> dict[str, Json]:
        """A list of pairs of cells."""
        cell: Json = {"type": "integer", "minimum": 0, "maximum": TOP}
        ends: Json = {"type": "array", "items": cell, "minItems": 2, "maxItems": 2}
        return {"type": "array", "items": ends}


class WalkCertificate(Certificate):
    """Act where the score is at or above the threshold, or that of the row's group."""

    by: Any

    @property
    def groups(self) -> tuple[str, ...]:
        """The names of the groups; empty where there are none."""
        return groups_of(self.values)

    @property
    def threshold(self) -> float:
        """Act iff score >= threshold; +inf (never) if the claim is refused. With groups there are
        several: use `thresholds`.
        """
        self.require_intact()
        if self.groups:
            raise InvalidTypeError(
                f"The certificate has a threshold for each of {len(self.groups)} groups: use "
                "thresholds, or pass the group of each row."
            )
        return float(self.values["tables"][0]["threshold"])

    @property
    def thresholds(self) -> dict[str, float]:
        """The threshold of each group, +inf where it is refused; empty without groups."""
        self.require_intact()
        tables = self.values["tables"]
        return {
            table["group"]: table["threshold"] for table in tables if table["group"] is not None
        }

    @property
    def coverage(self) -> float:
        """The share of these rows that is acted on. Descriptive: it is not certified."""
        return self._reached[0] / self.n

    @property
    def refusal(self) -> NothingPassed | None:
        """Why nothing is certified, in numbers; None if it is. With groups, that of the first."""
        return None if self.certified else next(iter(self.refusals.values()))

    @cached_property
    def refusals(self) -> dict[str | None, NothingPassed]:
        """Why each table without a threshold has none, computed from its counts: documents do not
        hold it. What would take long is not tried on a document that was read.
        """
        tables = [table for table in self.values["tables"] if not table["claimed"]]
        if self.loaded is not None and self.work() > EXPLAINED_WORK:
            return {table["group"]: NothingPassed("unexplained", None) for table in tables}
        return {table["group"]: self.by.refusal(self.values, table) for table in tables}

    def claims(self, threshold: float, group: str | None = None) -> bool:
        """Whether a threshold is among those that hold: all of them hold together.

        So a higher one than `threshold` may be taken, after seeing all of this, if it is claimed.

        Parameters
        ----------
        threshold
            From 0 to 1, or +inf, which never acts and always holds. A number that is not on the
            grid of 2^-16 was not tested.
        group
            The name of the group, if the certificate is for groups.

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
        cell, table = value * TOP, self.by.table_of(self, group)
        return cell == np.floor(cell) and any(low <= cell <= high for low, high in table["claimed"])

    @property
    def _reached(self) -> tuple[int, int]:
        found = [self.by.reached(table) for table in self.values["tables"]]
        return sum(acted for acted, _ in found), sum(events for _, events in found)

    def _acts_on(self, given: Any, groups: Any, name: str) -> NDArray[np.bool_]:
        """Which rows reach the threshold, of their group where there are groups."""
        self.require_verified()
        self.require_plain_scores()
        scores = as_scores(given, name)
        if groups is None and self.groups:
            raise InvalidTypeError(
                f"The certificate has {len(self.groups)} groups: pass the group of each row."
            )
        names = group_names(self, groups, len(scores), **{name: given})
        (column,) = self.by.row_rule(self).of_arrays([scores], names).values()
        return np.asarray(column, dtype=np.bool_)

    def _curve(self, group: str | None) -> RiskCoverage:
        table = self.by.table_of(self, group)
        events, rows = self.by.counts_of(table)
        answered = np.cumsum(rows[::-1])
        cells, wrong = table["counts"]["cells"][::-1], np.cumsum(events[::-1])
        return RiskCoverage(cells / TOP, answered / answered[-1], wrong / answered)


@dataclass(frozen=True, kw_only=True)
class WalkClaim(Claim[C]):
    """A claim about the rows that reach a threshold, declared.

    Attributes
    ----------
    event : str
        The outcome of which few may reach the threshold.
    shows_events : bool
        Whether the share of events is shown, or that of the other rows.
    words : WalkWords
        The sentences.
    applied : str
        The column that applying adds to rows.
    """

    kind: str
    command: str
    help: str
    question: Any
    asks: tuple[Ask, ...]
    procedures: Mapping[str, WalkProcedure]
    certificate: type[C]
    event: str
    words: WalkWords
    applied: str
    shows_events: bool = True
    measured: str = "coverage"

    @property
    def measure(self) -> Measure:
        """What a plan improves: the share of rows that are acted on."""
        asked: Any = self.asks[0].name
        return Measure(
            self.measured, "rows", larger=True, asked=asked, certify=self._sample, least=self._least
        )

    def _sample(self, tally: Tally, rate: float, delta: float) -> Sample:
        found: Any = self.certify(tally, {self.asks[0].name: rate, "delta": delta})
        # A draw may lack a group, so thresholds of groups cannot be compared between draws.
        limits = () if found.groups else (found.threshold,)
        return Sample(found.certified, found.coverage, limits)

    def _least(self, _: Tally, rate: float, delta: float) -> int:
        """As many rows as pass if none is an event."""
        allowed = allowed_rate(self.wishes({self.asks[0].name: rate, "delta": delta}))
        return abstention.least_rows(xi=allowed, delta=delta) or LARGEST_COUNT

    @property
    def act(self) -> str:
        """What the rows are called that reach the threshold."""
        return self.words.act

    def __post_init__(self) -> None:
        self.words.require_names({ask.name for ask in self.asks})

    def fields(self, procedure: Procedure) -> Fields:
        """The fields of a document of the procedure."""
        counts = Histogram(self.question.outcomes, TOP, self.question.lowest_cell)
        declared = getattr(procedure, "declared", False)
        asks = (
            replace(ask, default=REQUIRED)
            for ask in self.asks
            if declared or ask.default is not None
        )
        return Fields(
            (
                *head(self, procedure, asks),
                scope_field("top", "groups"),
                DRAWN,
                *([GRADED] if QUALITY in self.question.roles else []),
                tables_field(
                    Field("counts", counts, counted=True),
                    Field("threshold", Threshold(TOP)),
                    Field("claimed", CellRanges()),
                ),
            ),
            agree=_agree,
        )

    def counted(self, evidence: Tally, wishes: Values) -> dict[str, Any]:
        """A histogram for each group that has rows."""
        found = histograms_of(evidence, self.question)
        if evidence.scope not in ("top", "groups"):
            raise InvalidTypeError(
                "groups overlap, and a row of two groups would have two thresholds: expected one "
                "group per row."
            )
        asked = {name: value for name, value in wishes.items() if value is not None}
        declared = "first_threshold" in asked
        name = next(one.name for one in self.procedures.values() if one.declared == declared)
        tables = [
            {"group": group, "counts": counts} for group, counts in found if counts["cells"].size
        ]
        return {**self.counted_values(name, evidence, asked), "tables": tables}

    def decided(self, values: Values) -> dict[str, Any]:
        """All thresholds that hold in each table, at an equal share of delta."""
        tables = []
        for table in values["tables"]:
            claimed = self._walk(abstention.claimed, values, table)
            limit = claimed[-1][0] / TOP if claimed else inf
            tables.append({**table, "threshold": limit, "claimed": claimed})
        procedure = self.procedures[values["procedure"]]
        return {
            **values,
            "assumes": self.assumed(
                procedure.assumes, values["drawn"], values["scope"], values.get("graded")
            ),
            "tables": tables,
            "certified": any(table["claimed"] for table in tables),
        }

    def refusal(self, values: Values, table: Values) -> NothingPassed:
        """Why a table has no threshold."""
        if self._walk(abstention.claimed, values, table):
            return NothingPassed("unexplained", None)
        found: NothingPassed = self._walk(abstention.refusal, values, table)
        return found

    def _walk(self, walk: Callable[..., Any], values: Values, table: Values) -> Any:
        events, rows = self.counts_of(table)
        first = values.get("first_threshold")
        return walk(
            table["counts"]["cells"],
            events,
            rows - events,
            xi=allowed_rate(values),
            delta=bonferroni_level(values["delta"], len(values["tables"])),
            declared=None if first is None else int(first * TOP),
        )

    def table_of(self, certificate: WalkCertificate, group: str | None) -> Values:
        """The counts of a group, or of all rows, with what was decided from them."""
        for table in certificate.values["tables"]:
            if is_one_of(group, [table["group"]]):
                found: Values = table
                return found
        known = ", ".join(map(repr, certificate.groups[:5])) or "none, so pass no group"
        raise InvalidValueError(f"group={group!r} is not in this certificate: it has {known}.")

    def counts_of(self, table: Values) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The events of each cell, and all its rows."""
        counts = table["counts"]
        first, second = (counts[name] for name in self.question.outcomes)
        return counts[self.event], first + second

    def rows_of(self, table: Values) -> int:
        """How many rows a table has."""
        return exact_sum(self.counts_of(table)[1])

    def reached(self, table: Values) -> tuple[int, int]:
        """How many rows reach the threshold, and how many of them are events."""
        above = table["counts"]["cells"] >= table["threshold"] * TOP
        events, rows = self.counts_of(table)
        return exact_sum(rows[above]), exact_sum(events[above])

    def noticed(
        self, certificate: C, columns: Mapping[str, Any], count: Callable[[Any], Tally]
    ) -> C:
        """Where nearly all rows are answered: the answer that is most often wrong."""
        table, answers = certificate.values["tables"][0], columns.get("prediction")
        told = self.words.hides_rare and certificate.certified and certificate.graded is None
        if answers is None or not told or certificate.values["scope"] != "top":
            return certificate
        if self.reached(table)[0] < NEARLY_ALL * self.rows_of(table):
            return certificate
        each = histograms_of(count(answers), self.question)
        found = {
            str(name): self.reached({"counts": counts, "threshold": table["threshold"]})[::-1]
            for name, counts in each
        }
        notes = {**certificate.provenance.notes, WORST: worst_answer(found)}
        return replace(certificate, provenance=replace(certificate.provenance, notes=notes))

    def says(self, certificate: C) -> Says:
        """The certificate in words."""
        return said(self, certificate)

    def row_rule(self, certificate: C) -> RowRule:
        """1 where the score is at or above the threshold, of its group where there are groups."""
        tables = {
            table["group"]: RowSteps(
                (Limit(table["threshold"], closed=True),), {self.applied: (0, 1)}
            )
            for table in certificate.values["tables"]
        }
        if certificate.values["scope"] == "top":
            return RowRule(1, tables[None], role=self._score, ones=self.words.act)
        none = RowSteps((), {self.applied: (0,)})
        others = f"are not {self.words.act}"
        return RowRule(1, None, tables, none, self._score, self.words.act, others)

    def refused_groups(self, certificate: C) -> Iterable[str]:
        """The groups without a threshold."""
        tables = certificate.values["tables"]
        return (str(table["group"]) for table in tables if not table["claimed"])

    def figures(self, certificate: C) -> Iterable[Figure]:
        """The rate among the rows that reach a threshold, as it falls, for every table."""
        return (self._figure(certificate, table) for table in certificate.values["tables"])

    def _figure(self, certificate: Any, table: Values) -> Figure:
        curve, rate = certificate._curve(table["group"]), allowed_rate(certificate.values)
        ask, words = self.asks[0], self.words
        asked = f"{ask.name} = {_text(ask.said(certificate.values[ask.name]))}"
        limit = table["threshold"]
        return rate_by_coverage(
            curve.thresholds,
            Curve(words.coverage[0], curve.coverage, words.coverage[1]),
            Curve(words.rate[0], self._shown(curve.risk), words.rate[1]),
            rows=self.rows_of(table),
            title=titled(words.title, table["group"]),
            caption="As the threshold falls, more rows reach it. No point of the curve is "
            "certified; "
            + (
                "nothing is."
                if isinf(limit)
                else "what is certified at the dot is the dashed line."
            ),
            asked=Named(self._shown(rate), asked),
            certified=Named(limit, f"from {limit!r} on"),
        )

    def _shown(self, rate: Any) -> Any:
        return rate if self.shows_events else 1 - rate

    def watch(self, certificate: C) -> Any:
        """Each row that reaches the threshold is a label, and a loss if it is an event."""
        filled = quantities(self, certificate, certificate.values["tables"])
        rate = allowed_rate(certificate.values, up=True)
        tables, names = certificate.values["tables"], self.question.outcomes
        limits = np.array([table["threshold"] for table in tables]) * TOP
        event, graded = names.index(self.event), certificate.graded
        return LossWatch(
            certificate,
            self.question,
            rate=rate,
            claimed=str(
                Sentence(
                    self.words.promise if graded is None else self.words.graded,
                    {**filled, "as_graded": as_graded(graded)},
                )
            ),
            outcomes=(names[1 - event], names[event]),
            held=[bool(table["claimed"]) for table in tables],
            trials_and_events=lambda cells, outcomes, places: (
                cells >= limits[places],
                np.abs(outcomes - (1 - event)),
            ),
        )

    def cells(self, certificate: C) -> Cells:
        """How many rows of each outcome are in each cell of the score."""
        return histogram_cells(certificate.values["tables"], TOP)

    def numbers(self, certificate: C) -> list[tuple[str, str]]:
        """What was asked for and decided."""
        filled = quantities(self, certificate, certificate.values["tables"])
        decided = dict(zip(self.words.told, (filled["coverage"], filled["rate"]), strict=True))
        if certificate.values["scope"] == "top":
            limit = in_unit(filled["threshold"], certificate.provenance.scale)
            decided = {"Threshold": limit, **decided}
        return [
            *super().numbers(certificate),
            *((name, _text(value)) for name, value in decided.items()),
        ]

    def work(self, values: Values) -> float:
        """About how long the walks take; one that ends in a refusal is walked many times."""
        return sum(
            _TABLE_WORK + interval_work(self.counts_of(table)[1]) for table in values["tables"]
        )

    @property
    def _score(self) -> str:
        return str(self.question.columns[0].name)


def _agree(part: Reader, values: Values) -> None:
    """Groups are named and in order where there are groups; counts add up to n."""
    require_groups(part, values)
    tables = [table["counts"] for table in values["tables"]]
    if not all(table["cells"].size for table in tables):
        raise CertificateError(f"{part.place('tables')}: a table has no rows.")
    require_total(part, values, tables, "tables")


def _text(value: Value) -> str:
    return value if isinstance(value, str) else value.text
