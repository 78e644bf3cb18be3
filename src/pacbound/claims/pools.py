"""A pool: scores of other rows, without labels. What it fixes is fixed beforehand as far as the
rows that are counted are concerned, because these had no part in it.
"""

from __future__ import annotations

from collections.abc import Container, Mapping
from typing import Any

from pacbound.documents import Json, Reader
from pacbound.errors import CertificateError, InvalidTypeError, InvalidValueError
from pacbound.forms import AskedForm
from pacbound.sources import file_fingerprint
from pacbound.sources.paths import are_paths, expanded
from pacbound.tally.columns import Floats, as_scores


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
