"""A collection on disk: a plan, and a file for each chunk of seeds that is complete. What is there
need not be made again.

A part appears whole or not at all, so a killed collection leaves only complete ones behind. The
plan says what the parts were made with; a folder that was begun with another plan is refused, not
mixed.
"""

from __future__ import annotations

import os
import zipfile
import zlib
from collections.abc import Mapping
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pacbound import documents
from pacbound.atomic_files import atomic_file
from pacbound.documents import Json
from pacbound.errors import InvalidValueError
from pacbound.file_locks import locked
from pacbound.shield.rollouts.task import UNIDENTIFIED

Columns = dict[str, NDArray[Any]]

PLAN = "plan.json"
ROWS, FRAMES, SEEDS = "rows/", "frames/", "seeds"
UNREADABLE = (ValueError, OSError, EOFError, KeyError, zipfile.BadZipFile, zlib.error)


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
    except UNREADABLE as error:
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
            self._begin(plan)

    def _begin(self, plan: Mapping[str, Json]) -> None:
        if (self._folder / PLAN).exists():
            _require_same(
                self._folder, documents.read(self._folder / PLAN, "a plan of rollouts"), dict(plan)
            )
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
        path = part_path(self._folder, place)
        try:
            made = unpacked(path, SEEDS)[""]
            return unpacked(path, ROWS) if np.array_equal(made, seeds) else None
        except UNREADABLE:
            return None

    def write(self, place: int, data: bytes) -> None:
        """Keep a part."""
        with atomic_file(part_path(self._folder, place)) as file:
            file.write(data)


def part_path(folder: Path, place: int) -> Path:
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
    paths = [part_path(home, place) for place in range(int(plan["parts"]))]
    missing = sum(not path.exists() for path in paths)
    if missing:
        raise InvalidValueError(
            f"{missing} of {len(paths)} parts are missing in {home}. Every started rollout counts: "
            "resume the collection first."
        )
    return paths


def _require_same(folder: Path, begun: Mapping[str, Json], now: Mapping[str, Json]) -> None:
    unknown = now.get(UNIDENTIFIED) or begun.get(UNIDENTIFIED)
    if unknown:
        parts = ", ".join(map(str, unknown)) if isinstance(unknown, list) else str(unknown)
        raise InvalidValueError(
            f"{folder} cannot be resumed: nothing tells whether what it was begun with is what is "
            f"passed now, of {parts}, which cannot be compared. Collect into another folder with "
            "identity={...}, a text for each of these that changes whenever it does, and resume "
            "with the same. If the collection is complete, read it by load(folder)."
        )
    changed = [key for key in sorted({*begun, *now}) if begun.get(key) != now.get(key)]
    if changed:
        listed = "; ".join(
            f"{key} was {documents.shown(begun.get(key))} and is {documents.shown(now.get(key))}"
            for key in changed
        )
        raise InvalidValueError(
            f"{folder} was begun with another plan: {listed}. Choose another folder, or resume "
            "with what it was begun with. Where the change does not matter, such as a counter that "
            "an object keeps, give the parts an identity=... of yours from the start."
        )
