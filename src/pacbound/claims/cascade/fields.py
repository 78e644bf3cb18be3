"""The document of a cascade certificate: what it holds.

Counts along a walk are written as what each step adds to the one before: small numbers, so that a
certificate stays small whatever n is. How many rows without a label exit is written where there are
any. Nothing here can show that a declared sequence of thresholds came from a fold, and not from the
rows that were counted: whoever has the rows can choose again, with the share and the seed that are
recorded.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from pacbound.claims.cascade.certificate import sealed_walk
from pacbound.claims.claim import sealed
from pacbound.claims.tables import DRAWN, GRADED, SCOPE, Seed, head, tables_field
from pacbound.documents import Json, Reader
from pacbound.errors import CertificateError, InvalidTypeError, InvalidValueError
from pacbound.fields import Field, Fields, Record, Values, column_of
from pacbound.forms import AskedForm, Form, Integers, Number, Numbers, Whole
from pacbound.procedures.cascade import (
    DECLARED,
    Declared,
    checked_costs,
    too_small,
)
from pacbound.procedures.joint_walk import JointWalk, top_of
from pacbound.says import Side
from pacbound.tally.questions.question import in_order

Counts = NDArray[np.int64]

_COUNTS: Final = ("exits", "only_slow", "only_fast")


class Costs(AskedForm):
    """What a row costs in all that each model answers, those before it included; they rise."""

    def check(self, value: Any, name: str) -> tuple[float, ...]:
        """The numbers; how many there must be is known when models are."""
        if isinstance(value, (str, bytes)) or not np.ndim(value) or not len(value):
            raise InvalidTypeError(
                f"{name}={value!r} is not a list of costs: expected what a row costs that each "
                "model answers, such as [1, 10]."
            )
        return checked_costs(value, len(value))

    def parsed(self, text: Any) -> Any:
        """Numbers with commas between them."""
        try:
            return [float(part) for part in text.split(",")] if isinstance(text, str) else text
        except ValueError:
            raise InvalidValueError(
                f"{text} is not a list of numbers: expected for example 1,10"
            ) from None

    def said(self, value: Any, side: Side) -> str:  # noqa: ARG002
        """A list with commas."""
        return ", ".join(f"{cost:g}" for cost in value)


# How many of the rows in which predictions differ have a label, and have none.
LABELS: Final = Record(Fields((Field("labelled", Whole()), Field("unlabelled", Whole()))))


# Where more labels could lead to at best: thresholds, the walk that has them, and the rows that
# take each exit there. It was computed from rows that the certificate does not keep.
BEST_END: Final = Record(
    Fields(
        (
            Field("thresholds", Numbers()),
            Field("chosen", Whole()),
            Field("exits", Integers()),
        )
    )
)


class Walks(Form):
    """The walks of a table, with a list of numbers for every exit."""

    def read(self, part: Reader, key: str) -> tuple[JointWalk, ...]:
        """The walks, with the counts at every step."""
        return tuple(sealed_walk(_walk_of(inner)) for inner in part.mappings(key))

    def write(self, value: Sequence[JointWalk]) -> Json:
        """A list of objects."""
        return [
            {"cells": walk.cells.tolist()}
            | {
                f"{name}_added": np.diff(getattr(walk, name), axis=1, prepend=0).tolist()
                for name in (*_COUNTS, *(["unlabelled"] if walk.unlabelled.any() else []))
            }
            | (
                {}
                if walk.grades is None
                else {"grades_added": np.diff(walk.grades.T, axis=1, prepend=0).tolist()}
            )
            for walk in value
        ]


def _walk_of(part: Reader) -> JointWalk:
    cells = column_of(part, "cells")
    counts = {
        name: np.cumsum(column_of(part, f"{name}_added"), axis=1)
        for name in (*_COUNTS, "unlabelled")
        if part.has(f"{name}_added")
    }
    missing = counts.setdefault("unlabelled", np.zeros_like(cells))
    differ = counts["only_slow"] + counts["only_fast"] + missing
    grades = None
    if part.has("grades_added"):
        grades = np.cumsum(column_of(part, "grades_added"), axis=1).T
    return JointWalk(cells=cells, differ=differ, grades=grades, **counts)


class CellsByExit(Form):
    """A list of whole numbers for every exit, as an array that nobody can write into."""

    def read(self, part: Reader, key: str) -> Counts:
        """The array of shape (exits, steps)."""
        return sealed(column_of(part, key))


# A sequence of thresholds that a fold declared, with the models that it chose.
FOLD: Final = Record(
    Fields(
        (
            Field("models", Integers()),
            Field("costs", Numbers()),
            Field("share", Number("a share", 0, 1)),
            Field("seed", Seed()),
            Field("rows", Whole(1)),
            Field("cells", CellsByExit()),
        )
    ),
    made=lambda values: Declared(**values),
    parts=vars,
)


class GroupSizes(Form):
    """How many rows some groups have."""

    def read(self, part: Reader, key: str) -> dict[str, int]:
        """The rows by the names of the groups."""
        sizes = part.raw(key)
        return {name: sizes[name] for name in in_order(sizes)}


def cascade_fields(claim: Any, procedure: Any) -> Fields:
    """The fields of the documents of a procedure."""
    fold = [Field("declared", FOLD, counted=True)] if procedure.name == DECLARED else []
    kept = ("xi", "delta", "claim", "costs")
    return Fields(
        (
            *head(claim, procedure, [ask for ask in claim.asks if ask.name in kept]),
            SCOPE,
            DRAWN,
            GRADED,
            Field("left_out", GroupSizes(), counted=True, left_out=True),
            *fold,
            tables_field(
                Field("n", Whole(), counted=True),
                Field("thresholds", Numbers()),
                Field("chosen", Whole()),
                Field("labels", LABELS, counted=True),
                Field("walks", Walks(), counted=True),
                Field("best_possible", BEST_END),
            ),
        )
    )


def require_fitting(part: Reader, values: Values) -> None:
    """Raise unless no other groups were left out than those that are too small by their number of
    rows alone, and a declared walk can be that of one sample.
    """
    small, walk = values["left_out"] or {}, values["tables"][0]["walks"][0]
    sizes = {table["group"]: table["n"] for table in values["tables"]}
    for name, rows in {**small, **sizes}.items() if small else ():
        too_few = too_small(rows, len(walk.cells), xi=values["xi"], delta=values["delta"])
        if too_few != (name in small):
            raise CertificateError(
                f"{part.place('left_out')}: {rows} rows of the group {name!r} do not decide "
                "whether it is left out as the claim has it."
            )
    if "declared" in values:
        require_one_sample(walk, f"{part.place('tables')}[0].walks")


def require_one_sample(walk: JointWalk, place: str) -> None:
    """Raise unless one sample can have the counts of a walk whose thresholds need not fall.

    A row leaves at exit m if it reaches that threshold and none before it. So where the thresholds
    before m are no lower and that of m is no higher, all counts of exit m are at least as large;
    and where the thresholds up to m are all no higher, no fewer rows have left by then.
    """
    if walk.exits[walk.cells > top_of(len(walk.cells))].any():
        raise CertificateError(f"{place}: rows leave at an exit that is never taken.")
    left = np.cumsum(walk.exits, axis=0)
    for m, row in enumerate(walk.cells):
        # At [s, t]: every row that leaves at m (has left by m) in step t does so in step s, too.
        before = (walk.cells[:m, :, None] >= walk.cells[:m, None, :]).all(axis=0)
        at_exit = np.asarray(before & (row[:, None] <= row))
        up_to = walk.cells[: m + 1]
        by_then = np.asarray((up_to[:, :, None] <= up_to[:, None, :]).all(axis=0))
        agree = walk.exits[m] - walk.differ[m]
        counts = (walk.exits[m], agree, walk.differ[m], walk.only_slow[m], walk.only_fast[m])
        if any(_falls(count, at_exit) for count in counts) or _falls(left[m], by_then):
            raise CertificateError(
                f"{place}: the counts of exit {m} are not those of one sample at all steps."
            )


def _falls(count: Counts, more: NDArray[np.bool_]) -> bool:
    return bool((more & (count[:, None] < count)).any())
