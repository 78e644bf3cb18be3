"""A table in place of arrays: a frame of any engine, or files, with its columns named by what they
are for.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import Any, Literal

from pacbound.errors import InvalidTypeError
from pacbound.tally.tally import Tally
from pacbound.tally.uses import NEEDED

Use = Literal["calibration", "cascade", "shield"]

_OPTIONAL: dict[Use, tuple[str, ...]] = {
    "calibration": ("correct", "prediction", "label", "group"),
    "cascade": (),
    "shield": ("final_score",),
}


def count_table(table: Any, use: Use, columns: Mapping[str, Any], **options: Any) -> Tally:
    """Count the named columns of a frame, or of the files at a path or at each of several."""
    if isinstance(table, Tally):
        raise InvalidTypeError("A tally is already counted and has no columns: leave columns out.")
    _check_roles(use, columns)
    if _are_paths(table):
        # What opens files is loaded when there are any.
        from pacbound.tally import files  # noqa: PLC0415

        counting: dict[Use, Callable[..., Tally]] = {
            "calibration": files.count_files,
            "cascade": files.count_cascade_files,
            "shield": files.count_shield_files,
        }
        return counting[use](table, **columns, **options)
    return Tally.from_frame(table, kind=use, **columns, **options)


def recorded_columns(columns: Mapping[str, Any] | None) -> dict[str, str]:
    """The names of the columns as a certificate keeps them: several of one use are listed in one
    text.
    """
    named = {} if columns is None else columns
    singular = {"confidences": "confidence", "predictions": "prediction"}
    return {
        singular.get(role, role): name if isinstance(name, str) else ",".join(name)
        for role, name in named.items()
        if name is not None
    }


def refuse_arrays_beside_columns(**arrays: Any) -> None:
    """Refuse arrays that were passed although a table's columns are named."""
    given = [name for name, array in arrays.items() if array is not None]
    if given:
        raise InvalidTypeError(
            f"columns says where the table holds everything: leave {' and '.join(given)} out."
        )


def _check_roles(use: Use, columns: Any) -> None:
    if not isinstance(columns, Mapping):
        raise InvalidTypeError(
            f"columns={columns!r} is no mapping: expected what each column is for, and its name."
        )
    known = (*NEEDED[use], *_OPTIONAL[use])
    strange = [role for role in columns if role not in known]
    if strange:
        raise InvalidTypeError(
            f"columns names {strange[0]!r}, which has no use here: expected {', '.join(known)}."
        )
    absent = [role for role in NEEDED[use] if columns.get(role) is None]
    if absent:
        raise InvalidTypeError(
            f"columns names no {absent[0]!r}: expected {', '.join(NEEDED[use])}."
        )


def _are_paths(table: Any) -> bool:
    paths = table if isinstance(table, (list, tuple)) else [table]
    return all(isinstance(path, (str, os.PathLike)) for path in paths)
