"""What several kinds share: forms of their documents, and which tallies they are certified from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pacbound.claims.assumptions import ASSUMED
from pacbound.documents import Json, Reader
from pacbound.errors import CertificateError, InvalidTypeError, InvalidValueError
from pacbound.fields import Values, closed_object
from pacbound.forms import Form, Text
from pacbound.procedures.threshold import LOST
from pacbound.stats.arguments import LARGEST_COUNT
from pacbound.tally.draws import Drawn, drawn_from
from pacbound.tally.grids import DyadicGrid
from pacbound.tally.questions import Kind, with_article
from pacbound.tally.questions.question import OVERLAPPING
from pacbound.tally.tally import Tally


class Assumes(Form):
    """The names of what is assumed."""

    def read(self, part: Reader, key: str) -> tuple[str, ...]:
        """The names, each of which must be known."""
        names = tuple(part.texts(key))
        unknown = next((name for name in names if name not in ASSUMED), None)
        if unknown is not None:
            raise CertificateError(f"{part.place(key)} holds {unknown!r}, which is not known.")
        return names

    def write(self, value: tuple[str, ...]) -> Json:
        """A list."""
        return list(value)

    def schema(self) -> dict[str, Json]:
        """A list of names."""
        return {"type": "array", "items": {"enum": sorted(ASSUMED)}, "minItems": 1}


class DrawnForm(Form):
    """How the rows were drawn from others."""

    def read(self, part: Reader, key: str) -> Drawn:
        """What was drawn from what."""
        inner = part.mapping(key)
        return drawn_from(inner, units="clusters" if inner.has("clusters") else None)

    def write(self, value: Drawn) -> Json:
        """Its numbers; names of clusters are not kept."""
        clusters = {"clusters": value.units} if value.by == "clusters" else {}
        kept = {"by": value.by, "seed": value.seed, "bound": value.bound, "rows": value.rows}
        return {**kept, **clusters}

    def schema(self) -> dict[str, Json]:
        """Its keys."""
        nullable: Json = {"type": ["number", "null"]}
        shapes = {
            "by": {"enum": ["clusters", "weights", "strata"]},
            "seed": {"type": ["integer", "null"]},
            "bound": nullable,
            "rows": {"type": "integer", "minimum": 0},
            "clusters": {"type": "integer", "minimum": 0},
        }
        shape = closed_object(shapes)
        return {**shape, "required": ["by", "seed", "bound", "rows"]}


def require_total(
    part: Reader, values: Values, tables: Sequence[Mapping[str, Any]], key: str
) -> None:
    """Raise unless the counts of all tables are of `n` rows, and those rows can have been drawn."""
    sizes = [sum(exact_sum(table[name]) for name in table if name != "cells") for table in tables]
    total, overlap = sum(sizes), values.get("scope") == "overlapping-groups"
    if (max(sizes) > values["n"]) if overlap else (total != values["n"]):
        raise CertificateError(f"{part.place(key)} hold {total} rows: expected n = {values['n']}.")
    drawn = values["drawn"]
    if drawn is not None and not drawn.fits(values["n"]):
        raise CertificateError(
            f"{part.place('drawn')}: {values['n']} rows cannot have been drawn as it says."
        )


def require_lost(part: Reader, question: Any, counts: Mapping[str, Any]) -> None:
    """Raise if a row that was lost has an outcome that no lost row has."""
    lost = counts["cells"] == LOST
    for name in question.outcomes:
        if question.lost_is not in (None, name) and counts[name][lost].any():
            raise CertificateError(
                f"{part.place('counts')}: a lost row is {name!r}, and can only be "
                f"{question.lost_is!r}."
            )


class NullableText(Text):
    """The name of a group."""


def require_tally(tally: Tally, kind: Kind, grid: DyadicGrid, *, lowest: int, columns: str) -> None:
    """Raise unless `tally` counts rows of `kind` on `grid`, in cells from `lowest` up; `columns`
    are those to count, for the message. On another grid cells would stand for other scores.
    """
    require_is_tally(tally)
    if tally.kind != kind:
        raise InvalidValueError(
            f"{tally!r} is not a tally of {with_article(kind)}: count with {columns}."
        )
    if tally.grid != grid:
        raise InvalidValueError(
            f"{tally!r} was counted on the grid {tally.grid.to_dict()}, and this certificate is "
            f"decided on {grid.to_dict()}: cells would be taken for other scores. Count the rows "
            "again."
        )
    if tally.rows == 0:
        raise InvalidValueError(
            f"There are no rows to certify {with_article(kind)} on: pass at least one."
        )
    total = exact_sum(tally.counts)
    fits = total == tally.rows or tally.scope in OVERLAPPING
    if (tally.counts < 0).any() or not fits or total > LARGEST_COUNT:
        raise InvalidValueError(
            f"{tally!r} does not add up: its counts are of {total:,} rows. Count again."
        )
    if (tally.cells < lowest).any() or (tally.cells >= grid.n_cells).any():
        raise InvalidValueError(
            f"{tally!r} has cells that are not on its grid: expected {lowest} to "
            f"{grid.n_cells - 1}. Count again."
        )


def require_is_tally(tally: Any) -> None:
    """Raise unless it is a tally at all."""
    if not isinstance(tally, Tally):
        raise InvalidTypeError(
            f"tally is of type {type(tally).__name__}: expected a Tally, as Tally.count "
            "gives, or Tally.load."
        )


def exact_sum(counts: NDArray[np.int64]) -> int:
    """The sum of `counts`, however large: sums in int64 wrap around without a word."""
    high, low = counts >> 32, counts & 0xFFFFFFFF
    return (int(high.sum()) << 32) + int(low.sum())
