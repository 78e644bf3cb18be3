"""Rollouts on disk: a table in one file, or a collection in a folder of parts.

A table is .npz; every value comes back as it went in, -inf and NaN included. A folder has a plan,
and a file for each chunk of seeds that is complete: what is there need not be made again. A part
appears whole or not at all, so a killed collection leaves only complete ones behind. The plan says
what the parts were made with; a folder that was begun with another plan is refused, not mixed.
"""

from __future__ import annotations

import os
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from io import BytesIO
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from pacbound import documents
from pacbound.atomic_files import atomic_file
from pacbound.claims.task_record import MEMBER, about_task, known_task, read_task
from pacbound.documents import Json
from pacbound.errors import InvalidValueError
from pacbound.file_locks import locked
from pacbound.sources.formats.arrays import DAMAGED, NpzFile

Columns = dict[str, NDArray[Any]]

PLAN = "plan.json"
ROWS, FRAMES, SEEDS = "rows/", "frames/", "seeds"
_UNREADABLE = (*DAMAGED, KeyError)
_TYPES: Mapping[Any, type] = {"int": np.int64, "float": np.float64, "bool": bool, "str": np.str_}


@dataclass(frozen=True, eq=False, kw_only=True)
class RolloutTable:
    """Rows about rollouts, column by column, with the task that they are of: what all such tables
    share. A row is of the dataclass `row`, and a folder of such rows says `kind`.
    """

    row: ClassVar[type]
    kind: ClassVar[str]

    task: Mapping[str, Json] = field(default_factory=dict)

    @property
    def columns(self) -> Columns:
        """The columns by their names."""
        return {one.name: getattr(self, one.name) for one in fields(self.row)}

    @property
    def about(self) -> dict[str, str]:
        """What a certificate from these rollouts says that it is about."""
        return about_task(self._recorded)

    @property
    def _recorded(self) -> Mapping[str, Json]:
        """The task, with what was counted on the way."""
        return self.task

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the table to a file, whole or not at all.

        Parameters
        ----------
        path
            Where to write it: a name that ends in .npz.

        Raises
        ------
        InvalidValueError
            If the name ends in something else.
        UnwritableFileError
            If the file cannot be written.
        """
        write_table(path, self.columns, self._recorded if self.task else None)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Read the table from a file that `save` wrote, or from the folder of a complete
        collection.

        Parameters
        ----------
        path
            The file or the folder.

        Returns
        -------
        Rollouts, ForkedRollouts or ShieldedRollouts
            The table.

        Raises
        ------
        InvalidValueError
            If it is not such a table, or parts of the collection are missing or cannot be read.
        """
        if not Path(path).is_dir():
            return cls(**_read_table(Path(path), _types_of(cls.row)), task=read_task(path))
        parts = [read_part(part, ROWS) for part in complete_parts(path, cls.kind)]
        return cls(**joined(parts), task=known_task(read_plan(path)))


def arrays_of(rows: Sequence[Any]) -> Columns:
    """The fields of the rows, which are of one dataclass, as the arrays that a part keeps."""
    return {
        f"{ROWS}{name}": np.array([getattr(row, name) for row in rows], dtype=kind)
        for name, kind in _types_of(type(rows[0])).items()
    }


def _types_of(row: type) -> dict[str, type]:
    return {field.name: _TYPES[field.type] for field in fields(row)}


def joined(parts: Sequence[Columns]) -> Columns:
    """The columns of all parts, one after the other."""
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}


def write_table(
    path: str | os.PathLike[str],
    columns: Mapping[str, NDArray[Any]],
    task: Mapping[str, Json] | None = None,
) -> None:
    """Write the columns to an .npz file, and beside the arrays the `task`."""
    target = Path(path)
    _require_npz(target)
    made = BytesIO(packed(columns))
    if task:
        with zipfile.ZipFile(made, "a") as archive:
            archive.writestr(zipfile.ZipInfo(MEMBER), documents.canonical(dict(task)))
    with atomic_file(target) as file:
        file.write(made.getvalue())


def _read_table(source: Path, types: Mapping[str, type]) -> Columns:
    """The named columns of a file that `write_table` wrote."""
    _require_npz(source)
    parts = [batch.arrays for batch in NpzFile(source).batches(list(types))]
    try:
        return {
            name: np.concatenate([np.empty(0, kind), *(part[name] for part in parts)]).astype(kind)
            for name, kind in types.items()
        }
    except ValueError as error:
        raise InvalidValueError(f"{source} is not a table of rollouts: {error}.") from None


def _require_npz(path: Path) -> None:
    if path.suffix.lower() != ".npz":
        raise InvalidValueError(f"{path}: expected a name that ends in .npz.")


def packed(arrays: Mapping[str, NDArray[Any]]) -> bytes:
    """The arrays as the bytes of an .npz file, compressed; the same arrays give the same bytes."""
    target = BytesIO()
    np.savez_compressed(target, **dict[str, Any](arrays))
    return target.getvalue()


def unpacked(data: bytes | Path, prefix: str) -> Columns:
    """The arrays whose names begin with `prefix`, without it."""
    # A file of our own: np.load leaves the one it opens behind when it fails.
    with (
        BytesIO(data) if isinstance(data, bytes) else data.open("rb") as file,
        np.load(file, allow_pickle=False) as archive,
    ):
        return {
            name.removeprefix(prefix): archive[name]
            for name in archive.files
            if name.startswith(prefix)
        }


def read_part(path: Path, prefix: str) -> Columns:
    """The arrays of a part that should be there."""
    try:
        return unpacked(path, prefix)
    except _UNREADABLE as error:
        raise InvalidValueError(
            f"{path} cannot be read ({error}). Resume the collection: it will be made again."
        ) from None


class CheckpointFolder:
    """The folder of one collection."""

    def __init__(self, folder: str | os.PathLike[str], plan: Mapping[str, Json]) -> None:
        self._folder = Path(folder)
        self._folder.mkdir(parents=True, exist_ok=True)
        # Of two collections that begin at once, the second must see the plan of the first.
        with locked(self._folder / PLAN, wait=True):
            if (self._folder / PLAN).exists():
                _require_same(self._folder, read_plan(self._folder), plan)
            elif any(self._folder.glob("part-*.npz")):
                raise InvalidValueError(
                    f"{self._folder} holds parts of rollouts but no {PLAN}: choose another folder."
                )
            else:
                documents.write(self._folder / PLAN, plan)

    def rows(self, place: int, seeds: NDArray[np.int64]) -> Columns | None:
        """The rows of a part that is there for these seeds; None if it is missing or cannot be
        read, so that it is made again.
        """
        path = _part_path(self._folder, place)
        try:
            made = unpacked(path, SEEDS)[""]
            return unpacked(path, ROWS) if np.array_equal(made, seeds) else None
        except _UNREADABLE:
            return None

    def write(self, place: int, data: bytes) -> None:
        """Keep a part."""
        with atomic_file(_part_path(self._folder, place)) as file:
            file.write(data)


def _part_path(folder: Path, place: int) -> Path:
    """Where a part is kept."""
    return folder / f"part-{place:06d}.npz"


def read_plan(folder: str | os.PathLike[str]) -> dict[str, Json]:
    """What the parts of a folder were made with."""
    home = Path(folder)
    if not (home / PLAN).exists():
        raise InvalidValueError(
            f"{home} has no {PLAN}: expected the folder of a collection of rollouts."
        )
    return documents.read(home / PLAN, "a plan of rollouts")


def complete_parts(folder: str | os.PathLike[str], kind: str) -> list[Path]:
    """The files of a collection of a `kind`, in the order of its seeds, if all are there."""
    home, plan = Path(folder), read_plan(folder)
    if plan.get("kind") != kind:
        raise InvalidValueError(f"{home} holds {plan.get('kind')}: expected {kind}.")
    paths = [_part_path(home, place) for place in range(int(plan["parts"]))]
    missing = sum(not path.exists() for path in paths)
    if missing:
        raise InvalidValueError(
            f"{missing} of {len(paths)} parts are missing in {home}. Every started rollout counts: "
            "resume the collection first."
        )
    return paths


def _require_same(folder: Path, begun: Mapping[str, Json], now: Mapping[str, Json]) -> None:
    changed = [key for key in sorted({*begun, *now}) if begun.get(key) != now.get(key)]
    if changed:
        listed = "; ".join(
            f"{key} was {documents.shown(begun.get(key))} and is {documents.shown(now.get(key))}"
            for key in changed
        )
        raise InvalidValueError(
            f"{folder} was begun with another plan: {listed}. Choose another folder, or resume "
            "with what it was begun with."
        )
