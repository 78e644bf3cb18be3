"""The document of a claim about the rows that reach a threshold, and the pool of other scores that
may fix where its walk starts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from pacbound.asks import Ask
from pacbound.claims.claim import Procedure
from pacbound.claims.common_fields import Assumes, DrawnForm, NullableText
from pacbound.claims.pools import Pool, is_table, table_scores
from pacbound.documents import Json, Reader
from pacbound.errors import CertificateError, InvalidTypeError, InvalidValueError
from pacbound.fields import Field, Fields, Histogram, Tables, Values
from pacbound.forms import AskedForm, Choice, Form, GridPoint, TruthValue, Whole
from pacbound.procedures.abstention import FIRST
from pacbound.procedures.threshold import TOP
from pacbound.says import Quantity, Side
from pacbound.stats.arguments import real_number
from pacbound.tally.table import in_order
from pacbound.tally.tally import Tally

FIRST_THRESHOLD: Final = FIRST / TOP
"""The highest threshold that is looked at, unless a lower one is declared."""

_MOST_STARTS: Final = 128
"""There is one for each doubling of a count, so there are never more."""


class FirstThreshold(AskedForm):
    """The highest threshold to be looked at, on the grid, rounded down."""

    option = float

    def check(self, value: Any, name: str) -> float:
        """The threshold on the grid."""
        number = real_number(value, name, "a threshold")
        if not 0 <= number <= 1:
            raise InvalidValueError(
                f"{name}={value} is not a score: expected a number from 0 to 1."
            )
        return min(int(number * TOP), FIRST) / TOP

    def said(self, value: Any, side: Side) -> Quantity:  # noqa: ARG002
        """With all its digits."""
        return Quantity(value, "threshold", "exact")

    def read(self, part: Reader, key: str) -> float:
        """The threshold, on the grid."""
        value = part.number(key)
        if not (0 <= value <= FIRST_THRESHOLD and (value * TOP).is_integer()):
            raise CertificateError(
                f"{part.place(key)} is {value}, which is not on the grid of 2^-16 up to "
                f"{FIRST}/{TOP}."
            )
        return value

    def schema(self) -> dict[str, Json]:
        """A number."""
        return {"type": "number", "minimum": 0, "maximum": FIRST_THRESHOLD}


FIRST_ASK = Ask(
    "first_threshold",
    FirstThreshold(),
    "The highest threshold to look at, declared before any label is seen, if many rows share the "
    "highest score.",
    None,
)
POOL_ASK = Ask(
    "pool",
    Pool(),
    "Scores of other rows without labels, which fix where the search may start: a table.",
    None,
)


class Starts(Form):
    """The cells at which the walk may start, where a pool fixed them."""

    def read(self, part: Reader, key: str) -> tuple[int, ...]:
        """The cells; `walk_fields` compares them with the first threshold."""
        cells = tuple(part.integers(key))
        if not 1 <= len(cells) <= _MOST_STARTS or min(cells) < 0 or max(cells) > FIRST:
            raise CertificateError(
                f"{part.place(key)} are not cells from 0 to {FIRST}, 1 to {_MOST_STARTS} of them."
            )
        return cells

    def write(self, value: Sequence[int]) -> Json:
        """A list."""
        return list(value)

    def schema(self) -> dict[str, Json]:
        """A list of cells."""
        cell: Json = {"type": "integer", "minimum": 0, "maximum": FIRST}
        return {"type": "array", "items": cell, "minItems": 1, "maxItems": _MOST_STARTS}


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

    def write(self, value: Sequence[tuple[int, int]]) -> Json:
        """A list of pairs."""
        return [list(ends) for ends in value]

    def schema(self) -> dict[str, Json]:
        """A list of pairs of cells."""
        cell: Json = {"type": "integer", "minimum": 0, "maximum": TOP}
        ends: Json = {"type": "array", "items": cell, "minItems": 2, "maxItems": 2}
        return {"type": "array", "items": ends}


def walk_fields(claim: Any, procedure: Procedure) -> Fields:
    """The fields of the documents of a procedure."""
    pooled = getattr(procedure, "starts", "ranks") == "pool"
    counts = Histogram(claim.question.outcomes, TOP, claim.question.lowest_cell)
    table = (
        Field("group", NullableText(), counted=True, optional=True),
        *([Field("starts", Starts(), counted=True)] if pooled else []),
        Field("counts", counts, counted=True),
        Field("threshold", GridPoint(TOP)),
        Field("claimed", CellRanges()),
    )
    asks = [ask for ask in claim.asks if not isinstance(ask.form, Pool)]
    return Fields(
        (
            Field("kind", Choice((claim.kind,)), counted=True),
            Field("procedure", Choice((procedure.name,)), counted=True),
            Field("assumes", Assumes()),
            Field("certified", TruthValue()),
            Field("n", Whole(1), counted=True),
            *(Field(ask.name, ask.form, counted=True) for ask in asks),
            Field("scope", Choice(("top", "groups")), counted=True),
            Field("drawn", DrawnForm(), counted=True, optional=True),
            Field("tables", Tables(Fields(table)), counted=True),
        ),
        agree=_agree,
    )


def _agree(part: Reader, values: Values) -> None:
    """Groups are named and in order where there are groups; counts add up to n; no walk starts
    above the first threshold.
    """
    names, scope = [table["group"] for table in values["tables"]], values["scope"]
    groups = [name for name in names if name is not None]
    grouped = groups == names == list(in_order(set(groups)))
    if not (names == [None] if scope == "top" else grouped):
        raise CertificateError(
            f"{part.place('tables')}: expected one table without a group, or groups in order."
        )
    columns = [table["counts"] for table in values["tables"]]
    if not all(table["cells"].size for table in columns):
        raise CertificateError(f"{part.place('tables')}: a table has no rows.")
    total = sum(
        sum(column.tolist())
        for table in columns
        for name, column in table.items()
        if name != "cells"
    )
    if total != values["n"]:
        raise CertificateError(
            f"{part.place('n')} is {values['n']}, but the tables have {total} rows."
        )
    first = values.get("first_threshold", FIRST_THRESHOLD) * TOP
    if any(max(table.get("starts", (0,))) > first for table in values["tables"]):
        raise CertificateError(f"{part.place('tables')}: a start is above the first threshold.")
    drawn = values["drawn"]
    if drawn is not None and not drawn.fits(values["n"]):
        raise CertificateError(
            f"{part.place('drawn')}: {values['n']} rows cannot have been drawn as it says."
        )


def read_pool(pool: Any, tally: Tally, column: Any, rows: Mapping[str, Any]) -> Any:
    """The scores of a pool; a table is written and read as that of the rows is."""
    if not is_table(pool):
        return pool
    why = (
        "starts chosen from the scores that certify void the guarantee. Pass scores of other rows, "
        "or leave pool out"
    )
    return table_scores(pool, column, rows, counted=tally.sources, why=why)


def pool_cells(scores: Any, tally: Tally) -> NDArray[np.int64]:
    """The cells of a pool, which must not be the scores that certify."""
    if is_table(scores):
        raise InvalidTypeError("pool is a table here: pass its column of scores as an array.")
    cells = tally.grid.cells(scores)
    seen, times = np.unique(cells, return_counts=True)
    if tally.scope == "top" and len(scores) == tally.rows and seen.size > 1:
        same = np.array_equal(seen, tally.cells[:, 0])
        if same and np.array_equal(times, tally.counts.sum(axis=1)):
            raise InvalidValueError(
                "pool holds the very scores that certify: starts chosen from them void the "
                "guarantee. Pass scores of other rows, or leave it out."
            )
    return cells
