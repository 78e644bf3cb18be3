"""Tables opened by Polars, lazily: whoever counts them does it inside its streaming engine, out of
core.

Only formats that hold types are read. The folders that stand for columns hold text, as they do for
every engine.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from pacbound.errors import InvalidValueError, MissingDependencyError
from pacbound.sources.batches import Part
from pacbound.sources.paths import first_of, one_format, refuse_stored

SCANS = {
    ".parquet": "scan_parquet",
    ".pq": "scan_parquet",
    ".arrow": "scan_ipc",
    ".feather": "scan_ipc",
    ".ipc": "scan_ipc",
}


@contextmanager
def parts(files: Sequence[Path], *, partitions: Sequence[str]) -> Iterator[list[Part]]:
    """All rows of `files` as one lazy frame; their folders stand for the columns `partitions`."""
    # Whoever counts speaks through narwhals.
    from narwhals.exceptions import NarwhalsError  # noqa: PLC0415

    def watched(work: Callable[[], Any]) -> Any:
        with _reading(files, NarwhalsError):
            return work()

    with _reading(files):
        frame = _scan(files, partitions)
    yield [Part(frame=frame, run=watched)]


def _scan(files: Sequence[Path], partitions: Sequence[str]) -> Any:
    """A lazy frame over all rows of `files`, which are all of one format; their folders stand for
    the columns `partitions`.
    """
    polars = _polars()
    read = getattr(polars, one_format("Polars", {file.suffix.lower() for file in files}, SCANS))
    plain = partial(read, glob=False, hive_partitioning=False)
    if not partitions:
        return plain([str(file) for file in files])
    for file in files:
        refuse_stored(file, plain(str(file)).collect_schema().names(), partitions)
    texts = dict.fromkeys(partitions, polars.String)
    return read(list(map(str, files)), glob=False, hive_partitioning=True, hive_schema=texts)


@contextmanager
def _reading(files: Sequence[Path], *others: type[Exception]) -> Iterator[None]:
    """Turn what Polars, or whoever speaks for it, says about files that it cannot read into a word
    to who named them.
    """
    unreadable: tuple[type[Exception], ...] = (_polars().exceptions.PolarsError, *others)
    try:
        yield
    except unreadable as error:
        reason = str(error).strip().splitlines()[0].rstrip(".")
        raise InvalidValueError(
            f"{first_of(files)} cannot be read by Polars: {reason}. If a copy was interrupted, "
            "copy it again."
        ) from None


def _polars() -> Any:
    try:
        import polars  # noqa: PLC0415 - loaded only for those who ask for it
    except ImportError:
        raise MissingDependencyError.for_extra("polars", "polars", "the engine polars") from None
    return polars
