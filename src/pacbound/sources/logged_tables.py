"""Folders that are tables with a log of their own: Delta, Iceberg, Hudi, Spark's streaming sink.

Which rows such a table has is in its log. The folder also holds files that were replaced, rows that
were deleted, and what a failed writer left behind, so its files are not its rows.
"""

from __future__ import annotations

import glob
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path, PurePath
from typing import Final

from pacbound.errors import InvalidValueError

MARKS: Final = {
    "_delta_log": "Delta Lake",
    "metadata/version-hint.text": "Apache Iceberg",
    "metadata/*.metadata.json": "Apache Iceberg",
    ".hoodie": "Apache Hudi",
    "_spark_metadata": "Spark Structured Streaming",
}
"""The table that a folder is if it holds what the pattern matches."""

_FRAMES: Final = {
    "Delta Lake": "duckdb.sql(\"FROM delta_scan('{folder}')\")",
    "Apache Iceberg": "duckdb.sql(\"FROM iceberg_scan('{folder}')\")",
    "Apache Hudi": "spark.read.format('hudi').load('{folder}')",
    "Spark Structured Streaming": "spark.read.parquet('{folder}')",
}


def refuse_logged_tables(files: Iterable[Path]) -> None:
    """Refuse local files that are in the folder of a table with a log, however they were named."""
    # By both names: a link may lead into such a folder.
    both = dict.fromkeys(path for file in files for path in (file.absolute(), file.resolve()))
    refuse_marked(dict.fromkeys(folder for path in both for folder in path.parents), _is_there)


def refuse_marked(
    folders: Iterable[PurePath | str], is_there: Callable[[PurePath | str, str], bool]
) -> None:
    """Refuse folders that hold a mark, by a function that says whether a pattern matches in one."""
    for folder in folders:
        for mark, kind in MARKS.items():
            if is_there(folder, mark):
                frame = _FRAMES[kind].format(folder=folder)
                raise InvalidValueError(
                    f"{folder} is a table of {kind} (it holds {mark}): its files also hold rows "
                    "that were deleted or replaced, and only its log says which. Pass the table as "
                    f"a frame, such as {frame}, or write that to Parquet elsewhere and name the "
                    "copy."
                )


def remote_folders(addresses: Iterable[str]) -> Iterator[str]:
    """The folders that addresses such as s3a://bucket/table/day=1/part.parquet are in, each once.

    A folder that stands for a column is not the root of a table.
    """
    seen = set()
    for address in addresses:
        scheme, _, path = address.partition("://")
        parts = path.split("/")
        for end in range(len(parts) - 1, 0, -1):
            folder = f"{scheme}://{'/'.join(parts[:end])}"
            if folder not in seen and "=" not in parts[end - 1][1:]:
                seen.add(folder)
                yield folder


def _is_there(folder: PurePath | str, mark: str) -> bool:
    # Not Path.glob, which fails on a folder that may not be read.
    return any(glob.iglob(f"{glob.escape(str(folder))}/{mark}"))  # noqa: PTH207
