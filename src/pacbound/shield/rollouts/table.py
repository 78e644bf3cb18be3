"""Tables of rollouts in files: .npz, or .csv and .tsv for people; every value comes back as it went
in, -inf and NaN included.
"""

from __future__ import annotations

import csv
import os
import zipfile
from collections.abc import Mapping, Sequence
from io import BytesIO, TextIOWrapper
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pacbound import documents
from pacbound.atomic_files import atomic_file
from pacbound.claims.task_record import MEMBER
from pacbound.documents import Json
from pacbound.errors import InvalidValueError
from pacbound.shield.rollouts.checkpoint_folder import UNREADABLE, packed, unpacked

_SEPARATORS = {".csv": ",", ".tsv": "\t"}
_FLAGS = {"true": True, "false": False}


def columns_of(rows: Sequence[Any], types: Mapping[str, type]) -> dict[str, NDArray[Any]]:
    """The attributes of the rows as arrays."""
    return {
        name: np.array([getattr(row, name) for row in rows], dtype=kind)
        for name, kind in types.items()
    }


def with_younger(columns: Mapping[str, Any], younger: Sequence[str]) -> dict[str, Any]:
    """The columns, with zeros for counts that older versions did not keep."""
    rows = int(np.size(next(iter(columns.values()), ())))
    return {**{name: np.zeros(rows, dtype=np.int64) for name in younger}, **columns}


def write_table(
    path: str | os.PathLike[str],
    columns: Mapping[str, NDArray[Any]],
    task: Mapping[str, Json] | None = None,
) -> None:
    """Write the columns as the file's ending says; an .npz file also keeps the `task`, beside the
    arrays.
    """
    target = Path(path)
    if target.suffix.lower() == ".npz":
        made = BytesIO(packed(columns))
        if task:
            with zipfile.ZipFile(made, "a") as archive:
                archive.writestr(zipfile.ZipInfo(MEMBER), documents.canonical(dict(task)))
        with atomic_file(target) as file:
            file.write(made.getvalue())
        return
    separator = _separator(target)
    with atomic_file(target) as file:
        text = TextIOWrapper(file, encoding="utf-8", newline="", write_through=True)
        writer = csv.writer(text, delimiter=separator, lineterminator="\n")
        writer.writerow(columns)
        writer.writerows(
            zip(
                *([_shown(value) for value in column.tolist()] for column in columns.values()),
                strict=True,
            )
        )
        text.detach()


def read_table(
    path: str | os.PathLike[str], types: Mapping[str, type], younger: Sequence[str] = ()
) -> dict[str, NDArray[Any]]:
    """The named columns of a file that `write_table` wrote; `younger` ones may be missing."""
    source = Path(path)
    found = _read_npz(source) if source.suffix.lower() == ".npz" else _read_text(source)
    found = with_younger(found, younger)
    missing = [name for name in types if name not in found]
    if missing:
        raise InvalidValueError(
            f"{source} has no column {missing[0]!r}: expected a table of rollouts, with "
            f"{', '.join(types)}."
        )
    try:
        return {name: _typed(found[name], kind) for name, kind in types.items()}
    except (ValueError, KeyError) as error:
        raise InvalidValueError(f"{source} is not a table of rollouts: {error}.") from None


def _read_npz(source: Path) -> Mapping[str, Any]:
    try:
        return unpacked(source, "")
    except UNREADABLE as error:
        if isinstance(error, OSError):
            raise
        raise InvalidValueError(
            f"{source} cannot be read as .npz ({error}). Was it cut short? Write it again."
        ) from None


def _read_text(source: Path) -> Mapping[str, Any]:
    with source.open(encoding="utf-8-sig", newline="") as file:
        rows = list(csv.reader(file, delimiter=_separator(source)))
    if not rows:
        raise InvalidValueError(f"{source} is empty: expected a header and rows.")
    ragged = next((number for number, row in enumerate(rows, 1) if len(row) != len(rows[0])), None)
    if ragged is not None:
        raise InvalidValueError(
            f"{source}, line {ragged} has {len(rows[ragged - 1])} values: expected {len(rows[0])}."
        )
    return {name: [row[place] for row in rows[1:]] for place, name in enumerate(rows[0])}


def _typed(values: Any, kind: type) -> NDArray[Any]:
    if kind is bool and isinstance(values, list):
        values = [_FLAGS[value.lower()] for value in values]
    return np.asarray(values).astype(kind)


def _shown(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _separator(path: Path) -> str:
    try:
        return _SEPARATORS[path.suffix.lower()]
    except KeyError:
        raise InvalidValueError(
            f"{path}: expected a name that ends in .npz, .csv or .tsv."
        ) from None
