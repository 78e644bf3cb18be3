"""The document of a claim, declared: reading, writing and the digest of the counts follow from one
list.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pacbound.documents import Json, Reader, digest
from pacbound.forms import Form

Values = Mapping[str, Any]
Integers = NDArray[np.int64]


@dataclass(frozen=True)
class Field:
    """A key of a document and its form.

    `counted` says that it was counted or asked for, so that it is part of the digest of the counts.
    `left_out` says that the key is not there where there is nothing to say, in place of null.
    """

    name: str
    form: Form
    counted: bool = False
    left_out: bool = False

    def read(self, part: Reader) -> Any:
        """The value of the key; None where there is none."""
        there = part.has(self.name) and part.raw(self.name) is not None
        return self.form.read(part, self.name) if there else None

    def write(self, values: Values) -> Json:
        """The value as JSON."""
        value = values[self.name]
        return None if value is None else self.form.write(value)

    def stands(self, there: bool) -> bool:  # noqa: FBT001
        """Whether a document has the key, if its value is `there`."""
        return there or not self.left_out


@dataclass(frozen=True)
class Fields:
    """Named fields, in the order in which a document has them."""

    fields: tuple[Field, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """The keys, in order."""
        return tuple(field.name for field in self.fields)

    def read(self, part: Reader) -> dict[str, Any]:
        """The values of a document."""
        return {field.name: field.read(part) for field in self.fields}

    def write(self, values: Values) -> dict[str, Json]:
        """The values as a document."""
        return {
            field.name: field.write(values)
            for field in self.fields
            if field.stands(values[field.name] is not None)
        }

    def counted(self, values: Values) -> dict[str, Json]:
        """What was counted or asked for, as JSON; tables keep what was counted of each."""
        kept = (
            (one.name, one.form, values[one.name])
            for one in self.fields
            if one.counted and one.stands(values[one.name] is not None)
        )
        return {name: None if value is None else form.counted(value) for name, form, value in kept}

    def counts_digest(self, values: Values) -> str:
        """The digest of what was counted or asked for."""
        return digest(self.counted(values))


@dataclass(frozen=True)
class Tables(Form):
    """A list of objects, each with the same fields: one for each group or look."""

    fields: Fields

    def read(self, part: Reader, key: str) -> list[dict[str, Any]]:
        """The values of each table."""
        return [self.fields.read(inner) for inner in part.mappings(key)]

    def write(self, value: Sequence[Values]) -> Json:
        """A list of objects."""
        return [self.fields.write(table) for table in value]

    def counted(self, value: Sequence[Values]) -> Json:
        """What was counted of each table."""
        return [self.fields.counted(table) for table in value]


@dataclass(frozen=True)
class Record(Form):
    """An object with fields of its own: `made` makes a value of them, `parts` takes it apart."""

    fields: Fields
    made: Callable[[dict[str, Any]], Any] = dict
    parts: Callable[[Any], Values] = dict

    def read(self, part: Reader, key: str) -> Any:
        """The value that is made of the fields."""
        return self.made(self.fields.read(part.mapping(key)))

    def write(self, value: Any) -> Json:
        """An object."""
        return self.fields.write(self.parts(value))


@dataclass(frozen=True)
class Histogram(Form):
    """Cells that rise, and how many rows of each have each outcome."""

    outcomes: tuple[str, ...]

    def read(self, part: Reader, key: str) -> dict[str, Integers]:
        """The columns by name; `cells` first."""
        return {name: column_of(part.mapping(key), name) for name in ("cells", *self.outcomes)}


def column_of(part: Reader, key: str) -> Integers:
    """A list of whole numbers as an array; a table as one of two dimensions."""
    return np.array(part.raw(key), dtype=np.int64)


def with_losses(counts: dict[str, Any]) -> dict[str, Any]:
    """Counts of grades, and what they lose and keep in each cell, in whole parts of 2^-20, so that
    both add up to the rows.
    """
    grades = counts["grades"]
    losses = np.rint(2.0**20 * (1.0 - np.arange(grades.shape[1]) / (grades.shape[1] - 1)))
    wrong = grades @ losses * 2.0**-20
    return {**counts, "wrong": wrong, "right": grades.sum(axis=1) - wrong}


@dataclass(frozen=True)
class LevelCounts(Form):
    """Cells that rise, and how many rows of each have a grade on each level, the worst first. A
    document lists the cells and the grades that rows have, and how many have them.
    """

    made: Callable[[dict[str, Any]], dict[str, Any]] = with_losses

    def read(self, part: Reader, key: str) -> dict[str, Any]:
        """The cells, a row of counts for each, and what these lose and keep."""
        inner = part.mapping(key)
        cells, grades, rows = (column_of(inner, name) for name in ("cells", "grades", "rows"))
        held, places = np.unique(cells, return_inverse=True)
        table = np.zeros((held.size, inner.integer("levels")), dtype=np.int64)
        table[places, grades] = rows
        return self.made({"cells": held, "grades": table})

    def write(self, value: Values) -> Json:
        """What rows have, and how many."""
        cells, grades = np.nonzero(value["grades"])
        counts = {
            "cells": value["cells"][cells],
            "grades": grades,
            "rows": value["grades"][cells, grades],
        }
        return super().write({"levels": value["grades"].shape[1], **counts})
