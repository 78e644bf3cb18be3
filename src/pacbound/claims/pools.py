"""A pool: scores of other rows, without labels; and where a walk down the thresholds may start,
which it fixes. What a pool fixes is fixed beforehand as far as the rows that are counted are
concerned, because these had no part in it.
"""

from __future__ import annotations

from collections.abc import Container, Mapping
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from pacbound.documents import Json, Reader
from pacbound.errors import CertificateError, InvalidTypeError, InvalidValueError
from pacbound.forms import Ask, AskedForm, Form
from pacbound.procedures.abstention import FIRST
from pacbound.procedures.threshold import TOP
from pacbound.says import Quantity, Side
from pacbound.sources import file_fingerprint
from pacbound.sources.paths import are_paths, expanded
from pacbound.stats.arguments import real_number
from pacbound.tally.columns import Floats, as_scores
from pacbound.tally.tally import Tally

# The highest threshold that is looked at, unless a lower one is declared.
FIRST_THRESHOLD: Final = FIRST / TOP

# There is one for each doubling of a count, so there are never more.
_MOST_STARTS: Final = 128


class Pool(AskedForm):
    """Scores of other rows: an array, or a table that has them; no part of the document."""

    names_files = True

    def check(self, value: Any, name: str) -> Any:
        """The scores; a table is read later, as the rows are."""
        if is_table(value):
            return value
        scores = as_scores(value, name)
        if not scores.size:
            raise InvalidValueError(f"{name} is empty: pass at least one score, or leave it out.")
        return scores

    def read(self, part: Reader, key: str) -> Any:
        """A document holds what the pool fixes, and not the pool."""
        raise CertificateError(f"{part.place(key)} is not expected here.")

    def schema(self) -> dict[str, Json]:
        """Nothing fits."""
        return {"not": {}}


def is_table(pool: Any) -> bool:
    """Whether it is a frame or the paths of files, and not scores."""
    return are_paths(pool) or hasattr(pool, "columns")


def table_scores(
    pool: Any, column: Any, rows: Mapping[str, Any], *, counted: Container[str], why: str
) -> Floats:
    """The scores of a table, which is written and read as that of the rows is.

    `rows` are the row options, and `counted` the fingerprints of the files that are counted. If one
    of them is in the pool, too, that raises; `why` says what is wrong with it, and the remedy.
    """
    if not isinstance(column, str):
        raise InvalidTypeError(
            "pool is a table, and no column of it is named: pass its column of scores as an array."
        )
    files = expanded(pool) if are_paths(pool) else ()
    same = next((file for file in files if file_fingerprint(file) in counted), None)
    if same is not None:
        raise InvalidValueError(f"{same} is among the files that are counted: {why}.")
    # Loaded here, because to verify a certificate takes nothing that reads rows.
    from pacbound.tally.count import scores_in  # noqa: PLC0415

    return scores_in(column, pool, rows)


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
    shown="Highest threshold looked at",
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
        """The cells; the claim compares them with the first threshold."""
        cells = tuple(part.integers(key))
        if not 1 <= len(cells) <= _MOST_STARTS or min(cells) < 0 or max(cells) > FIRST:
            raise CertificateError(
                f"{part.place(key)} are not cells from 0 to {FIRST}, 1 to {_MOST_STARTS} of them."
            )
        return cells

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

    def schema(self) -> dict[str, Json]:
        """A list of pairs of cells."""
        cell: Json = {"type": "integer", "minimum": 0, "maximum": TOP}
        ends: Json = {"type": "array", "items": cell, "minItems": 2, "maxItems": 2}
        return {"type": "array", "items": ends}


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
