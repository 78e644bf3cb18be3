"""Documents with one table for each group, or one for all rows: the fields that they share."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pacbound.claims.claim import Cells, Procedure, counts_of, require_tally
from pacbound.claims.provenance import LABELS
from pacbound.documents import Json, Reader, printable
from pacbound.errors import InvalidTypeError
from pacbound.fields import Field, Fields, Tables, Values
from pacbound.forms import Ask, Choice, Form, Text, TruthValue, Whole
from pacbound.says import Sentence
from pacbound.stats.binomial import bonferroni_level, sidak_level
from pacbound.tally.draws import Drawn, drawn_from, unit_to_dict
from pacbound.tally.grades import Graded, graded_from, graded_to_dict
from pacbound.tally.keyed_numbers import seed_from, seed_to_json
from pacbound.tally.questions.question import OVERLAPPING
from pacbound.tally.tally import Tally


class DrawnForm(Form):
    """How the rows were drawn from others."""

    def read(self, part: Reader, key: str) -> Drawn:
        """Reads how the rows were drawn."""
        inner = part.mapping(key)
        return drawn_from(inner, units="clusters" if inner.has("clusters") else None)

    def write(self, value: Drawn) -> Json:
        """Its numbers; names of clusters are not kept."""
        clusters = {"clusters": value.units} if value.by == "clusters" else {}
        seed = seed_to_json(value.seed)
        kept = {"by": value.by, "seed": seed, "bound": value.bound, "rows": value.rows}
        among = {"among": dict(value.among)} if value.among else {}
        return {**kept, **clusters, **unit_to_dict(value), **among}


class Seed(Form):
    """The seed of a draw."""

    def read(self, part: Reader, key: str) -> int:  # noqa: ARG002
        """Any whole number."""
        return seed_from(part)

    def write(self, value: int) -> Json:
        """A number, or text where not every reader would keep it."""
        return seed_to_json(value)


class GradedForm(Form):
    """How outcomes were graded."""

    def read(self, part: Reader, key: str) -> Graded:
        """Judge and scale."""
        return graded_from(part.mapping(key))

    def write(self, value: Graded) -> Json:
        """An object."""
        return graded_to_dict(value)


# More groups than this are mostly a column that names each row, and would not fit a certificate
# that can be read.
MOST_GROUPS = 1000


def head(claim: Any, procedure: Procedure, asks: Iterable[Ask]) -> tuple[Field, ...]:
    """What every document begins with, and what was asked for."""
    return (
        Field("kind", Choice((claim.kind,)), counted=True),
        Field("procedure", Choice((procedure.name,)), counted=True),
        Field("assumes", Form()),
        Field("certified", TruthValue()),
        Field("n", Whole(1), counted=True),
        *(Field(ask.name, ask.form, counted=True) for ask in asks),
    )


# The remedy where every group that cannot be certified is too small, and others can be.
LEAVE_OUT = (
    "These groups have too few {unit} to pass, even if none {wrong}: "
    'small_groups="leave-out" leaves them uncertified and can certify the others.'
)


def noted_labels(notes: Mapping[str, str], reference: str, hide: str) -> list[Sentence]:
    """What is said about labels that may be those of other rows: `reference` is the model that they
    are held against, and `hide` what other labels would do.
    """
    said = {
        "too few to tell": "too few rows have a label, or nearly all have the same, to see whether "
        f"the labels are those of these rows. Labels of other rows {hide}: check how they were "
        "joined.",
        "unrelated": f"the labels match {reference} no more often than labels of other rows would, "
        "and were counted all the same (unrelated_labels). If they are not those of these rows, "
        "the claim is worth nothing.",
    }
    verdict = notes.get(LABELS, "")
    return [Sentence(f"Note: {said[verdict]}")] if verdict in said else []


def recounted(certificate: Any, verb: str) -> dict[str, Any]:
    """How labels are counted again: those that were counted although they look unrelated, too."""
    if certificate.values["scope"] == "overlapping-groups":
        raise InvalidTypeError(
            "The groups of this certificate overlap, and a table has one group for each row: pass "
            f"the groups to {verb} again, and compare `counts_digest`."
        )
    unrelated = certificate.provenance.notes.get(LABELS) == "unrelated"
    return {"unrelated_labels": True} if unrelated else {}


def too_many_groups(tally: Tally) -> str | None:
    """That there are more groups than a certificate may have, in a sentence."""
    if len(tally.groups) <= MOST_GROUPS:
        return None
    return (
        f"{len(tally.groups):,} groups of {tally.rows:,} rows are more than a certificate may "
        f"have: expected at most {MOST_GROUPS:,}. If the column names each row, name one of "
        "groups."
    )


def small_groups_conflict(asked: Values, scope: str, shared: str | None = None) -> str | None:
    """Why small groups cannot be left out, in a sentence; None if they can, or were not asked to
    be. `shared` is the option by which groups have one verdict, where only then they are.
    """
    if asked.get("small_groups") != "leave-out":
        return None
    if scope == "top":
        return (
            "small_groups='leave-out' is about groups, and there are none: pass groups, or leave "
            "it out."
        )
    if shared is not None and asked[shared] == "own":
        return (
            f"small_groups='leave-out' is about what groups have in common: with {shared}='own' a "
            "small group never refuses the others. Leave it out."
        )
    if shared is not None and asked["xi"] == 0:
        return (
            "small_groups='leave-out' cannot be decided for xi=0, where no number of rows is "
            "enough by itself: allow a small loss."
        )
    return None


DRAWN = Field("drawn", DrawnForm(), counted=True)
GRADED = Field("graded", GradedForm(), counted=True, left_out=True)
GROUP = Field("group", Text(), counted=True)
SCOPE = Field("scope", Text(), counted=True)
"""What the tables are for: "top" for one table of all rows."""


def counted_by_table(
    claim: Any,
    procedure: Procedure,
    asks: Iterable[Ask],
    *fields: Field,
    beside: Sequence[Field] = (),
) -> Fields:
    """The fields of documents about a tally: what was asked for, how rows were drawn and graded,
    what stands `beside` these, and what is in the table of each group.
    """
    return Fields(
        (*head(claim, procedure, asks), SCOPE, *beside, DRAWN, GRADED, tables_field(*fields))
    )


def tables_field(*fields: Field) -> Field:
    """A table for each group; what is in it beside the group."""
    return Field("tables", Tables(Fields((GROUP, *fields))), counted=True)


def groups_of(values: Values) -> tuple[str, ...]:
    """The names of the groups; none where there is one table for all rows."""
    return tuple(table["group"] for table in values["tables"] if table["group"] is not None)


def group_prefix(table: Values) -> str:
    """What the name of a cell begins with where there are groups."""
    return "" if table["group"] is None else f"group {printable(table['group'])}, "


def histograms_of(
    evidence: Tally, question: Any
) -> list[tuple[str | None, dict[str, NDArray[np.int64]]]]:
    """The histogram of each group, or of all rows, of a tally of the question: `cells`, and the
    rows of each outcome there, or on each level where answers are graded.
    """
    needed = " and ".join(name for name, must in question.roles.items() if must)
    lowest = question.lowest_cell
    require_tally(evidence, question.kind, question.grid, lowest=lowest, columns=needed)
    return counts_of(evidence)


def histogram_cells(tables: Iterable[Values], top: int) -> Cells:
    """The rows of each outcome in each cell of the score, by the names of the cells."""
    found: Cells = {}
    digits = len(str(top)) + 1
    for table in tables:
        counts = {name: column.tolist() for name, column in counts_by_name(table["counts"]).items()}
        for place, cell in enumerate(counts.pop("cells")):
            where = f"score {cell / top:.{digits}g}" if cell >= 0 else "without a score"
            found[group_prefix(table) + where] = {
                name: rows[place] for name, rows in counts.items()
            }
    return found


def counts_by_name(counts: Values) -> dict[str, NDArray[np.int64]]:
    """The columns of a table, those of grades by the number of each level."""
    if "grades" not in counts:
        return dict(counts)
    levels = enumerate(counts["grades"].T)
    return {"cells": counts["cells"], **{f"grade {place}": column for place, column in levels}}


def depend(values: Values) -> bool:
    """Whether rows of several tables may depend on each other: groups overlap, or one row of a
    cluster was drawn for each of its groups. Tables then share delta by addition.
    """
    drawn = values["drawn"]
    return values.get("scope") in OVERLAPPING or (drawn is not None and drawn.apart)


def level_of_tables(level: float, values: Values, *, own: bool) -> float:
    """The chance to be wrong of the decision on each table: all have the whole `level` where they
    have one verdict in common, and not their `own`.
    """
    groups, dependent = len(values["tables"]), depend(values)
    # Which groups are left out says something about the rows of groups that depend on them.
    by_number = dependent and values.get("small_groups") == "leave-out"
    if groups == 1 or not (own or by_number):
        return level
    return (bonferroni_level if dependent else sidak_level)(level, groups)


def no_such_look(number: int, unit: str, looks: Sequence[int]) -> str:
    """That no look was planned at so many rows, in a sentence."""
    return (
        f"there are {number:,} {unit}, and no look was planned there, but at "
        f"{', '.join(f'{look:,}' for look in looks)}: pass the rows up to a look, in the order in "
        "which they were drawn. Looks cannot be added."
    )
