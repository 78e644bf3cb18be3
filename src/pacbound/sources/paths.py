"""Which files are meant: a path, a glob, a folder with tables in it, or several of these, each file
once and in order.

A folder may be partitioned as Hive does it: the part `day=monday` of a path is a column `day` that
holds `monday` in all rows. Only local files are read. Whatever is left out of a sample voids the
guarantee, so nothing is skipped that might hold rows.

Folders that are tables with a log of their own (Delta, Iceberg, Hudi, Spark's streaming sink) are
refused: which rows such a table has is in its log. The folder also holds files that were replaced,
rows that were deleted, and what a failed writer left behind, so its files are not its rows.
"""

from __future__ import annotations

import glob
import os
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path, PurePath
from typing import Final, TypeAlias
from urllib.parse import unquote

from pacbound.atomic_files import ADDRESS, as_path, as_written
from pacbound.errors import InvalidTypeError, InvalidValueError, RepeatedSourceError

Paths: TypeAlias = str | os.PathLike[str] | Iterable[str | os.PathLike[str]]

# The format of a table by the end of its name; text may be compressed, as in .csv.gz.
FORMATS = {
    ".csv": "delimited",
    ".tsv": "delimited",
    ".txt": "delimited",
    ".parquet": "parquet",
    ".pq": "parquet",
    ".jsonl": "json",
    ".ndjson": "json",
    ".json": "json",
    ".arrow": "arrow",
    ".feather": "arrow",
    ".ipc": "arrow",
    ".npz": "npz",
    ".npy": "npy",
}

# What stands between the values of a text table, by the end of its name.
SEPARATORS = {".csv": ",", ".txt": ",", ".tsv": "\t"}

_SPREADSHEETS = (".xlsx", ".xlsm", ".xlsb", ".xls", ".ods", ".numbers")
_COMPRESSED = ("delimited", "json")
_WILD = re.compile(r"[*?\[]")
_NO_PARTITION = "__HIVE_DEFAULT_PARTITION__"

# The table that a folder is if it holds what the pattern matches.
MARKS: Final = {
    "_delta_log": "Delta Lake",
    "metadata/version-hint.text": "Apache Iceberg",
    "metadata/*.metadata.json": "Apache Iceberg",
    ".hoodie": "Apache Hudi",
    "_spark_metadata": "Spark Structured Streaming",
}

_FRAMES: Final = {
    "Delta Lake": "duckdb.sql(\"FROM delta_scan('{folder}')\")",
    "Apache Iceberg": "duckdb.sql(\"FROM iceberg_scan('{folder}')\")",
    "Apache Hudi": "spark.read.format('hudi').load('{folder}')",
    "Spark Structured Streaming": "spark.read.parquet('{folder}')",
}


def expanded(paths: Paths) -> list[Path]:
    """The files that `paths` stand for: globs and folders sorted, none of them twice."""
    found = [file for path in as_list(paths) for file in _files(Path(path))]
    refuse_logged_tables(file for file in found if format_of(file) == "parquet")
    refuse_repeated(found)
    return found


def as_list(paths: Paths) -> list[str | os.PathLike[str]]:
    """The paths that were named, one or several."""
    try:
        named = [paths] if isinstance(paths, (str, os.PathLike)) else list(paths)
    except TypeError:
        raise InvalidTypeError(
            f"A {type(paths).__name__} is not a path: expected the name of a file or folder, or "
            "several."
        ) from None
    for path in named:
        as_path(path)
    if not named:
        raise InvalidValueError("No files were named: pass at least one.")
    return named


def are_paths(table: object) -> bool:
    """Whether it is a path or several, and not a frame."""
    paths = table if isinstance(table, (list, tuple)) else [table]
    return bool(paths) and all(isinstance(path, (str, os.PathLike)) for path in paths)


def suffix_of(path: Path) -> str:
    """The end of a file's name that says what is in it, without `.gz`."""
    plain = path.with_suffix("") if path.suffix.lower() == ".gz" else path
    return plain.suffix.lower()


def format_of(path: Path) -> str | None:
    """The format of the table in `path`, by its name; None if that says nothing."""
    found = FORMATS.get(suffix_of(path))
    return None if path.suffix.lower() == ".gz" and found not in _COMPRESSED else found


def partitions_beside(path: Path, stored: Collection[str]) -> dict[str, str | None]:
    """The columns that the folders of `path` stand for, but for those that the file has itself: it
    knows better.
    """
    return {name: value for name, value in partitions_of(path).items() if name not in stored}


def first_of(files: Sequence[str | Path]) -> str:
    """The first of the files that are meant, and how many more there are, for a message."""
    return str(files[0]) if len(files) == 1 else f"{files[0]} and {len(files) - 1} more"


def one_format(engine: str, suffixes: set[str], known: Mapping[str, str]) -> str:
    """The one format, of those that an engine knows, that the ends of all names stand for."""
    formats = {known.get(suffix) for suffix in suffixes}
    found = formats.pop()
    if formats or found is None:
        raise InvalidValueError(
            f"{engine} is given files of {', '.join(sorted(suffixes))}: expected one format of "
            f"{', '.join(known)}. Count each apart, and add; the engine duckdb reads more."
        )
    return found


def refuse_stored(file: object, stored: Collection[str], partitions: Sequence[str]) -> None:
    """Refuse columns that are in a file and in the names of its folders: Polars and Spark would
    take the folder's value.
    """
    for name in partitions:
        if name in stored:
            raise InvalidValueError(
                f"{file} has a column {name!r}, and is in a folder {name}=… too: which is meant? "
                "Rename the folder."
            )


def partitions_of(path: Path) -> dict[str, str | None]:
    """The columns that the folders of `path` stand for, with their value; None where Hive says that
    there is none.
    """
    found: dict[str, str | None] = {}
    for part in path.parts[:-1]:
        if "=" not in part[1:]:
            continue
        name, value = part.split("=", 1)
        if unquote(name) in found:
            raise InvalidValueError(
                f"{path} names {unquote(name)!r} twice in its folders: which is meant? Rename one "
                "of them."
            )
        found[unquote(name)] = None if value == _NO_PARTITION else unquote(value)
    return found


def _files(path: Path) -> Iterator[Path]:
    if path.is_dir():
        yield from _tables_in(path)
    elif path.exists():
        yield _table(path)
    elif ADDRESS.match(str(path)):
        raise InvalidValueError(
            f"{as_written(path)} is an address: only local files are read. Download it, or mount "
            "it as a folder."
        )
    elif _WILD.search(str(path)):
        # Path.glob takes no absolute pattern.
        matches = sorted(glob.glob(str(path), recursive=True))  # noqa: PTH207
        if not matches:
            raise InvalidValueError(
                f"{path} matches no file. Check the pattern and the folder you are in."
            )
        for match in matches:
            # `**` matches a folder and then, by themselves, the files in it.
            if not (Path(match).is_dir() and "**" in str(path)):
                yield from _files(Path(match))
    else:
        several = all(Path(one).exists() for one in str(path).split(","))
        hint = "Name each file with an option of its own" if several else "Check the path"
        raise InvalidValueError(f"{path} does not exist. {hint}.")


def _table(path: Path) -> Path:
    if path.suffix.lower() in _SPREADSHEETS:
        raise InvalidValueError(
            f"{path} is a spreadsheet: save the sheet as CSV (UTF-8) and name that, or write it "
            f"with pandas.read_excel({path.name!r}).to_parquet({path.stem + '.parquet'!r})."
        )
    if format_of(path) is None:
        raise InvalidValueError(
            f"{path} is not a table that can be read here: expected {', '.join(FORMATS)}."
        )
    return path


def _tables_in(folder: Path) -> list[Path]:
    inside = [path for path in sorted(folder.rglob("*")) if not is_note(path.relative_to(folder))]
    # A link to a folder is not gone into, and one that leads nowhere holds nothing: rows would be
    # missing without a word.
    lost = [
        path for path in inside if not path.is_file() and (path.is_symlink() or not path.is_dir())
    ]
    if lost:
        raise InvalidValueError(
            f"{lost[0]} is a link to a folder, a broken link or a device: name the files that are "
            "meant."
        )
    files = [path for path in inside if path.is_file()]
    if not files:
        raise InvalidValueError(
            f"{folder} is a folder without tables: expected files that end in {', '.join(FORMATS)}."
        )
    # Before their formats are looked at: a log is a file of another one.
    refuse_logged_tables(file for file in files if format_of(file) == "parquet")
    formats = {format_of(file): file for file in files}
    if None in formats or len(formats) > 1:
        listed = ", ".join(str(file.relative_to(folder)) for file in formats.values())
        raise InvalidValueError(
            f"{folder} holds more than tables of one format ({listed}). Name those that are meant: "
            f"'{folder}/**/*.parquet'."
        )
    return files


def is_note(path: Path) -> bool:
    """Whether it is one of the notes that writers leave in a folder: _SUCCESS, ._SUCCESS.crc."""
    return any(part[0] in "._" and "=" not in part for part in path.parts)


def refuse_repeated(files: list[Path]) -> None:
    """Refuse a file that is there twice, under whatever names."""
    seen: dict[Path, Path] = {}
    for file in files:
        real = file.resolve()
        if real in seen:
            other = "" if seen[real] == file else f" (once as {seen[real]})"
            raise RepeatedSourceError(
                f"{file} is named twice{other}: counting rows twice voids every guarantee. Name it "
                "once."
            )
        seen[real] = file


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
