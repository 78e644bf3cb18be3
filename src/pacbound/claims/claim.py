"""A claim, and the certificate that it makes.

A claim is a value: one object that says what can be certified, of which rows, asked for how,
decided how, and in which words. Everything else reads it: the command line, the page, the monitor,
planning, verification. `decided` goes from what was counted and asked for to all that follows, so
certifying and verifying are the same call.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Set
from dataclasses import dataclass, field, replace
from typing import Any, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from pacbound.claims import claim_of
from pacbound.claims.assumptions import ON_LEVELS, assumed_of_drawn, assumed_of_groups
from pacbound.claims.certificate import Certificate
from pacbound.claims.provenance import Provenance, about_texts, sample_name
from pacbound.documents import Json, Reader
from pacbound.errors import InvalidTypeError, InvalidValueError
from pacbound.fields import Fields, with_losses
from pacbound.figure import Figure
from pacbound.forms import Ask, checked
from pacbound.measure import Measure
from pacbound.says import Quantity, Says
from pacbound.stats.arguments import LARGEST_COUNT, exact_sum
from pacbound.tally.draws import Drawn
from pacbound.tally.grades import Graded
from pacbound.tally.questions import QUESTIONS
from pacbound.tally.questions.question import OVERLAPPING, RowColumn, Scope, subject_of
from pacbound.tally.row_ids import LABEL, RowIds, returned
from pacbound.tally.row_options import DRAWN_BY, JOINED_BY, POSITIVE, require_row_options
from pacbound.tally.row_rules import RowRule
from pacbound.tally.tally import Tally, recorded_columns, require_is_tally

Values = Mapping[str, Any]
Cells = dict[str, dict[str, int]]


@dataclass(frozen=True)
class Procedure:
    """A way of deciding, under a name with a version that never changes its meaning.

    `assumes` are names of `pacbound.claims.assumptions`; `asks` are what only documents of this
    procedure hold of what was asked for.
    """

    name: str
    assumes: tuple[str, ...]
    asks: tuple[str, ...] = ()

    @property
    def among(self) -> tuple[str, ...]:
        """The outcomes whose rows are its trials, where not every row is one: clusters are drawn
        among these.
        """
        return ()


@dataclass(frozen=True)
class ToLabel:
    """The rows that a label is wanted for, the most wanted first, their ids, and the columns that
    are filled in.
    """

    rows: NDArray[np.int64]
    ids: RowIds
    fill: tuple[str, ...] = (LABEL,)


@dataclass(frozen=True)
class Told:
    """What files say of themselves: what need not be asked for, and what their rows are of."""

    asked: Values = field(default_factory=dict)
    about: Mapping[str, str] = field(default_factory=dict)

    def beside(self, wishes: Values) -> dict[str, Any]:
        """What was asked for, with what the files say; raises where it contradicts them."""
        for name, value in self.asked.items():
            if wishes[name] not in (None, value):
                raise InvalidValueError(
                    f"{name} is {wishes[name]:,}, and the files are of {value:,}: leave it out."
                )
        return {**wishes, **self.asked}


C = TypeVar("C", bound=Certificate)

# What a label is asked for with, and comes back to.
_ASKED = ("xi", "delta", "claim", "costs")

# What is asked for about groups.
_ABOUT_GROUPS = ("group_thresholds", "group_verdicts", "small_groups")


class Claim(ABC, Generic[C]):
    """What can be certified: `C` is the certificate that the verb returns."""

    kind: str
    command: str
    help: str
    question: Any
    asks: tuple[Ask, ...]
    procedures: Mapping[str, Procedure]
    certificate: type[C]
    # Names that its documents may hold as assumed, beside those of its procedures.
    may_assume: tuple[str, ...] = ()
    by_groups: bool = True
    # What of that may be asked for says how rows are counted: a tally is counted by it.
    counts_by: tuple[str, ...] = ()
    # Whether it says which labels could still change the verdict, by `rows_to_label`.
    asks_for_labels: bool = False
    # Of a shield: what to warn of where its danger has a deadline; empty if the claim covers one.
    deadline_warning: str = ""

    @property
    def act(self) -> str:
        """What the rows are called that the claim picks by their score, such as "answered"; empty
        if it is about all rows.
        """
        return ""

    @property
    def measure(self) -> Measure | None:
        """What planning improves; None if it is not planned for."""
        return None

    @property
    def measures(self) -> Mapping[str, Measure]:
        """What planning improves, by the names of what can be planned for."""
        return {} if self.measure is None else {self.kind: self.measure}

    def __reduce__(self) -> tuple[Any, ...]:
        # It is looked up by its kind, so that certificates can be pickled and copied.
        return claim_of, (self.kind,)

    def wishes(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """What was asked for, checked before a row is read."""
        return checked(self.asks, given)

    def gathered(
        self,
        asked: Mapping[str, Any],
        tally: Tally,  # noqa: ARG002
        columns: Mapping[str, Any],  # noqa: ARG002
        rows: Mapping[str, Any],  # noqa: ARG002
    ) -> Mapping[str, Any]:
        """What was asked for, with what it names of other data read, once the rows are counted."""
        return asked

    def require_columns(self, given: Set[str], wishes: Values) -> None:
        """Raise if what rows bring does not go together, or with what is asked for."""

    def told(self, data: Any) -> Told:  # noqa: ARG002
        """What data says of itself, if it is files."""
        return Told()

    def assumed(
        self,
        ids: Iterable[str],
        drawn: Drawn | None,
        scope: Scope = "top",
        graded: Graded | None = None,
    ) -> tuple[str, ...]:
        """The names of what is assumed of the rows that were counted: `ids`, and what groups, a
        draw and grades change of them.
        """
        ids = tuple(ids) if scope == "top" else assumed_of_groups(ids, scope)
        ids = ids if drawn is None else assumed_of_drawn(ids, drawn, self.act)
        return ids if graded is None else (*ids, ON_LEVELS)

    def require_fitting(self, columns: Values, asked: Values, rows: Values) -> None:
        """Raise if columns or row options do not go with what was asked for, before a row is
        read.
        """

    @abstractmethod
    def fields(self, procedure: Procedure) -> Fields:
        """What a document of the procedure holds."""

    @abstractmethod
    def counted(self, evidence: Any, wishes: Values) -> dict[str, Any]:
        """What a document holds of the data, and of what was asked for. Evidence is mostly a
        tally; a batch and a bundle bring their own.
        """

    def counted_values(self, procedure: str, evidence: Tally, asked: Values) -> dict[str, Any]:
        """What every document holds of a tally but its tables, and what was asked for."""
        wrong = wrong_draw(self.procedures[procedure], evidence.drawn)
        if wrong is not None:
            raise InvalidValueError(wrong)
        return {
            **asked,
            "kind": self.kind,
            "procedure": procedure,
            "n": evidence.rows,
            "scope": evidence.scope,
            "drawn": evidence.drawn,
            "graded": evidence.graded,
        }

    @abstractmethod
    def decided(self, values: Values) -> dict[str, Any]:
        """All fields: what was counted and asked for as it is, and what follows computed anew."""

    @abstractmethod
    def says(self, certificate: C) -> Says:
        """The certificate in words."""

    def says_nothing(self, certificate: C) -> str | None:  # noqa: ARG002
        """Why the claim is about none of the rows, with the remedy; None if it is about some."""
        return None

    def row_rule(self, certificate: C) -> RowRule | None:  # noqa: ARG002
        """What is added to each row of a table; None if nothing is said about rows."""
        return None

    def figures(self, certificate: C) -> Iterable[Figure]:  # noqa: ARG002
        """Pictures of the certificate."""
        return ()

    def watch(self, certificate: C) -> Any:
        """The bets against what is claimed, a `Watch`; or a text that says why there are none."""
        return f"nothing is known of {certificate.kind} in use"

    def names_in_columns(self, certificate: C) -> Mapping[str, int] | None:  # noqa: ARG002
        """How many names the provenance has in one text, by what these columns are for; the others
        have one. None if it does not name all that was counted.
        """
        return {}

    @abstractmethod
    def cells(self, certificate: C) -> Cells:
        """The counts by the names of their cells, for comparing them with the data."""

    @property
    def questions(self) -> tuple[Any, ...]:
        """What may be counted for the claim."""
        return (self.question,)

    @property
    def columns(self) -> tuple[RowColumn, ...]:
        """What a row may bring, for any of the questions; needed is what all of them need."""
        found: dict[str, RowColumn] = {}
        for question in self.questions:
            for column in question.columns:
                found.setdefault(column.name, column)
        return tuple(
            replace(column, needed=all(one.roles.get(name) for one in self.questions))
            for name, column in found.items()
        )

    def question_for(self, columns: Mapping[str, Any], data: Any) -> Any:
        """The question that a tally, or the columns that were passed, belong to."""
        if isinstance(data, Tally):
            return next((one for one in self.questions if one.kind == data.kind), self.question)
        given = {name for name, value in columns.items() if value is not None}
        fitting = [one for one in self.questions if given <= one.roles.keys()] or [self.question]
        missing = [
            [role for role, must in one.roles.items() if must and role not in given]
            for one in fitting
        ]
        if len(fitting) > 1 and all(missing):
            raise InvalidTypeError(
                f"{', '.join(sorted(given)) or 'No column'} is not enough to count by: pass "
                f"{', or '.join(map(' and '.join, missing))}, too."
            )
        return fitting[0]

    def as_asked(self, wishes: Values, question: Any) -> Any:  # noqa: ARG002
        """The question with what these options say that a row is."""
        return question

    def drawn_among(self, wishes: Values, question: Any) -> tuple[str, ...]:  # noqa: ARG002
        """The outcomes that clusters are drawn among, for these options and this question; none
        where they are drawn before labels are looked at.
        """
        return ()

    def counting(
        self,
        wishes: Values,  # noqa: ARG002
        columns: Mapping[str, Any],  # noqa: ARG002
        data: Any,  # noqa: ARG002
        rows: Mapping[str, Any],  # noqa: ARG002
    ) -> dict[str, Any]:
        """The options that say how rows are counted, such as bins."""
        return {}

    def recounting(self, certificate: C) -> dict[str, Any]:  # noqa: ARG002
        """How rows are counted again for `verify --data`; raises where no table can hold them."""
        return {}

    def question_of(self, certificate: C) -> Any:  # noqa: ARG002
        """What was counted for the certificate."""
        return self.question

    def rows_to_label(
        self,
        certificate: C,  # noqa: ARG002
        columns: Mapping[str, Any],  # noqa: ARG002
        data: Any,  # noqa: ARG002
        rows: Mapping[str, Any],  # noqa: ARG002
    ) -> ToLabel:
        """The rows whose label could still change the verdict, the most useful first, and by which
        ids they go out.
        """
        raise InvalidTypeError(f"No rows of {self.kind} are asked for.")

    def asked_text(self, wishes: Values) -> str:
        """What labels are asked for: they come home to the question that they went out for."""
        asked = {name: wishes[name] for name in _ASKED if wishes.get(name) is not None}
        return f"{self.kind} {asked}"

    def require_later(self, before: Certificate, now: C) -> None:
        """Raise unless `now` can be a later look at the rows of a certificate of before."""

    def refused_groups(self, certificate: C) -> Iterable[str]:  # noqa: ARG002
        """The groups that nothing is certified for, where others are."""
        return ()

    def numbers(self, certificate: C) -> list[tuple[str, str]]:
        """What was asked for and decided, in names and numbers, for a table."""
        return [("Rows counted", f"{certificate.n:,}"), *self.numbers_asked(certificate)]

    def numbers_asked(self, certificate: C) -> list[tuple[str, str]]:
        """What was asked for, by name; what is about groups only where there are some."""
        values = certificate.values
        alone = values.get("scope", "top") == "top"
        asked = (
            (ask.shown or ask.name, ask.said(values[ask.name]))
            for ask in self.asks
            if values.get(ask.name) is not None and not (alone and ask.name in _ABOUT_GROUPS)
        )
        return [
            (name, value.text if isinstance(value, Quantity) else value.strip())
            for name, value in asked
        ]

    def thresholds(self, certificate: C) -> dict[str, Json]:  # noqa: ARG002
        """What a program compares scores with, beside what stands in the document by itself."""
        return {}

    def work(self, values: Values) -> float:  # noqa: ARG002
        """About how long deciding takes, as `Certificate.work` counts it."""
        return 0.0

    def certify(
        self, evidence: Tally, asked: Mapping[str, Any], columns: Mapping[str, str] | None = None
    ) -> C:
        """The certificate of what was counted."""
        values = self.decided(self.counted(evidence, self.wishes(asked)))
        provenance = Provenance.of(evidence, columns)
        return self.certificate(by=self, values=values, provenance=provenance)

    def noticed(
        self,
        certificate: C,
        columns: Mapping[str, Any],  # noqa: ARG002
        count: Callable[[Any], Tally],  # noqa: ARG002
    ) -> C:
        """The certificate with what is worth a note about the rows, which `count` counts again by
        other groups.
        """
        return certificate

    def read(self, claim: Reader, provenance: Provenance, loaded: Mapping[str, Json]) -> C:
        """The certificate that a document holds, whose shape was checked."""
        values = self.fields(self.procedures[claim.raw("procedure")]).read(claim)
        return self.certificate(by=self, values=values, provenance=provenance, loaded=loaded)


def counts_of(evidence: Tally) -> list[tuple[str | None, dict[str, NDArray[np.int64]]]]:
    """The same of a tally that was looked at."""
    on_levels = evidence.graded is not None
    found = []
    for group, cells, rows in rows_by_group(evidence):
        counts = (
            with_losses({"cells": cells[:, -1], "grades": rows.copy()})
            if on_levels
            else {"cells": cells[:, -1], **dict(zip(evidence.outcomes, rows.T.copy(), strict=True))}
        )
        found.append((group, counts))
    return found


def rows_by_group(
    evidence: Tally,
) -> Iterator[tuple[str | None, NDArray[np.int64], NDArray[np.int64]]]:
    """The cells that hold rows and the counts there, for each group or for all rows."""
    hit = evidence.counts.any(axis=1)
    cells, counts = evidence.cells[hit], evidence.counts[hit]
    for place, group in enumerate(evidence.groups or (None,)):
        own = cells[:, 0] == place if evidence.groups else slice(None)
        yield group, cells[own], counts[own]


def require_tally(tally: Tally, kind: str, grid: Any, *, lowest: int, columns: str) -> None:
    """Raise unless `tally` counts rows of `kind` on `grid`, in cells from `lowest` up; `columns`
    are those to count, for the message. On another grid cells would stand for other scores.
    """
    require_is_tally(tally)
    if tally.kind != kind:
        raise InvalidValueError(
            f"{tally!r} is not a tally of {subject_of(kind)}: count with {columns}."
        )
    if tally.grid != grid:
        raise InvalidValueError(
            f"{tally!r} was counted on the grid {tally.grid.to_dict()}, and this certificate is "
            f"decided on {grid.to_dict()}: cells would be taken for other scores. Count the rows "
            "again."
        )
    if tally.rows == 0:
        raise InvalidValueError(
            f"There are no rows to certify {subject_of(kind)} on: pass at least one."
        )
    known = QUESTIONS[kind].of_a_row_among(tally.outcomes)
    total = exact_sum(tally.counts[:, [name in known for name in tally.outcomes]])
    fits = total == tally.rows or tally.scope in OVERLAPPING
    if (tally.counts < 0).any() or not fits or total > LARGEST_COUNT:
        raise InvalidValueError(
            f"{tally!r} does not add up: its counts are of {total:,} rows. Count again."
        )
    cells = tally.cells[:, -1]
    if (cells < lowest).any() or (cells >= grid.n_cells).any():
        raise InvalidValueError(
            f"{tally!r} has cells that are not on its grid: expected {lowest} to "
            f"{grid.n_cells - 1}. Count again."
        )


def certify(
    claim: Claim[C],
    columns: Mapping[str, Any],
    asked: Mapping[str, Any],
    data: Any,
    rows: Mapping[str, Any],
) -> C:
    """What every verb and every command that certifies calls. What is asked for is checked before a
    row is read.
    """
    wishes = claim.wishes(asked)
    if rows:
        require_row_options(rows, [*columns, *asked])
    if not isinstance(data, Tally):
        given = frozenset(name for name, value in columns.items() if value is not None)
        claim.require_columns(given, wishes)
    claim.require_fitting(columns, wishes, rows)
    options = dict(rows)
    about, sample = options.pop("about", None), options.pop("sample", None)
    if about is not None or sample is not None:
        about, sample = about_texts(about), sample_name(sample)
    told = claim.told(data)
    wishes = told.beside(wishes)
    asked = {**asked, **{name: wishes[name] for name in told.asked}}
    about = {**told.about, **(about or {})} or about
    counting = claim.counting(wishes, columns, data, options)
    question = claim.question_for(columns, data)
    question = replace(claim.as_asked(wishes, question), among=claim.drawn_among(wishes, question))
    if options.get("answers") is not None:
        options["answers"] = returned(options["answers"], claim.asked_text(wishes))
    tally = Tally.count(question, data=data, **{**columns, **counting, **options})
    named = {
        **columns,
        **{name: rows[name] for name in (*DRAWN_BY, *JOINED_BY) if name in rows},
        POSITIVE: None if rows.get(POSITIVE) is None else str(rows[POSITIVE]),
    }
    gathered = dict(claim.gathered(asked, tally, columns, options))
    made = claim.certify(tally, gathered, recorded_columns(named, data))
    if not isinstance(data, Tally):

        def count(groups: Any) -> Tally:
            by = {**columns, **counting, **options, "groups": groups, "seed": tally.seed}
            return Tally.count(question, data=data, **by)

        made = claim.noticed(made, columns, count)
    return made if about is None and sample is None else made.with_about(about, sample=sample)


def wrong_draw(procedure: Procedure, drawn: Drawn | None) -> str | None:
    """Why a claim says nothing about rows that clusters were drawn among; None if it does."""
    of = {} if drawn is None else dict(drawn.among)
    if not of or (procedure.among and of.keys() >= set(procedure.among)):
        return None
    listed = list(procedure.among) or ["all"]
    needed = repr(listed[0]) if len(listed) == 1 else repr(listed)
    return (
        f"Of each cluster one {' and one '.join(of)} row was drawn, and the claim is about "
        f"{' and '.join(listed)} rows: count again, with among={needed}."
    )


def sealed(array: NDArray[Any]) -> NDArray[Any]:
    """`array` as a certificate may hand it out: nobody can write into it."""
    # A view shares its memory with an array that someone else may write into.
    own = array if array.base is None else array.copy()
    own.flags.writeable = False
    return own


def interval_work(trials: NDArray[Any]) -> float:
    """About how long binomial intervals of so many trials take, as `Certificate.work` counts it:
    ten microseconds each up to a million trials, two hundred at 10^12.
    """
    digits = np.log10(np.maximum(trials, 1))
    return float((1e-6 * (1.0 + 3.2 * np.maximum(digits - 6.0, 0.0))).sum())
