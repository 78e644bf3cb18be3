"""What a row goes out with to be labelled, and by which its label comes home.

A file to fill in has the row's `pac_id` in its last column, such as `8745-r2806c26`: the place of
the row in the table, from 0, and a check. The check is taken over the scores and the predictions of
all rows in order, over what was asked, and over the place. So a label comes home to the row of the
same table and the same question or is refused: if a row was dropped, added or moved, if another
table or another question came, and if the line was cut short. Scores are read as numbers and
predictions as classes, so the same rows in another format have the same ids.

What people fill in are columns of these names, so no table of rows that goes out may have them.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import isnan
from typing import Any, Final

import numpy as np

from pacbound.errors import InvalidValueError
from pacbound.sources.values import Values
from pacbound.tally.classes import NotAClassError, class_of_text
from pacbound.tally.columns import Integers, Rows, Slot

# The column that says which row a label is for.
ID: Final = "pac_id"

# What is filled in for a row: its label, the grade of each model's answer, from 1 on, or an answer.
LABEL: Final = "expert_label"
GRADE: Final = "expert_grade_"
ANSWER: Final = "expert_answer"

# How the names of columns begin that are only in files that people fill in.
RESERVED: Final = ("pac_", "expert_")

_ID = re.compile(r"(0|[1-9][0-9]{0,15})-r([0-9a-f]{7})")


def refuse_reserved(columns: Iterable[str], where: Any) -> None:
    """Refuse a table with a column that could be taken for one that somebody filled in."""
    found = [name for name in columns if name.startswith(RESERVED)]
    if found:
        raise InvalidValueError(
            f"{where} has a column {found[0]!r}, and names that begin with "
            f"{' or '.join(RESERVED)} are those of files that are filled in: rename the column."
        )


@dataclass(frozen=True)
class Returned:
    """Labels that came back, in files or in a frame, and what was `asked` of the rows when they
    went out.
    """

    source: Any
    asked: str = ""


def returned(given: Any, asked: str) -> Returned:
    """What came back, to what was `asked`."""
    return Returned(given.source if isinstance(given, Returned) else given, asked)


@dataclass(frozen=True)
class RowIds:
    """The ids of the rows of a table, by the digest of it and by what is asked."""

    table: str
    asked: str

    def of(self, row: int) -> str:
        """The id of the row at a place."""
        return f"{row}-r{self.check(row)}"

    def check(self, row: int) -> str:
        """What stands behind the place."""
        text = f"{self.table}\n{self.asked}\n{row}"
        return hashlib.sha256(text.encode()).hexdigest()[:7]

    def strange(self, checks: Mapping[int, str]) -> list[str]:
        """Those ids, of places and what stands behind them, that are not ids of these rows."""
        return [f"{row}-r{check}" for row, check in checks.items() if check != self.check(row)]


def parted(text: str) -> tuple[int, str] | None:
    """The place and the check of an id; None if it is none, or was cut short."""
    found = _ID.fullmatch(text)
    return None if found is None else (int(found[1]), found[2])


class TableDigest:
    """SHA-256 of what is known of rows before they have a label, in their order: their numbers and
    classes, column by column, but for those of `but`.
    """

    def __init__(self, slots: Mapping[str, Slot], but: Sequence[str]) -> None:
        kinds = ("number", "number or nothing", "class")
        self._columns = {
            key: hashlib.sha256()
            for key, slot in slots.items()
            if slot.kind in kinds and key not in but
        }
        self._places = hashlib.sha256()

    def take(self, rows: Rows) -> None:
        """Take the next rows."""
        for key, digest in self._columns.items():
            column = rows.columns[key]
            digest.update(
                _of_classes(column) if isinstance(column, Values) else _of_numbers(column)
            )

    def choose(self, places: Integers) -> None:
        """Note which rows of the table are taken, where they are not all."""
        self._places.update(places.astype("<i8").tobytes())

    @property
    def value(self) -> str:
        """The digest of all that was taken."""
        parts = [*self._columns.values(), self._places]
        return hashlib.sha256(b"".join(part.digest() for part in parts)).hexdigest()


def _of_numbers(column: Any) -> bytes:
    # -0.0 is 0.0, and every NaN is the same.
    numbers = np.asarray(column, dtype="<f8")
    return np.where(np.isnan(numbers), np.nan, numbers + 0.0).tobytes()


def _of_classes(column: Values) -> bytes:
    # The last place, -1, is that of a class that is missing.
    heads = [0 if one is None else _head(str(one)) for one in map(spelling_of, column.distinct)]
    return np.array([*heads, 0], dtype="<u8")[column.places].tobytes()


def _head(text: str) -> int:
    return int.from_bytes(
        hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()[:8], "little"
    )


def spelling_of(value: Any) -> Any:
    """A class in one spelling of it: 1, 1.0 and "1" are one."""
    if isinstance(value, float) and not isnan(value) and value == int(value):
        value = int(value)
    try:
        return class_of_text(str(value))
    except NotAClassError:
        return str(value)
