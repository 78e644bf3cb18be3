"""Tables opened by Polars, lazily: whoever counts them does it inside its streaming engine, out of core."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from pacbound.errors import InvalidValueError, MissingDependencyError

SCANS = {
    ".parquet": "scan_parquet",
    ".pq": "scan_parquet",
    ".csv": "scan_csv",
    ".jsonl": "scan_ndjson",
    ".ndjson": "scan_ndjson",
    ".arrow": "scan_ipc",
    ".feather": "scan_ipc",
    ".ipc": "scan_ipc",
}


def scan(files: Sequence[Path]) -> Any:
    """A lazy frame over all rows of `files`, which are all of one format."""
    try:
        import polars  # noqa: PLC0415 - loaded only for those who ask for it
    except ImportError:
        raise MissingDependencyError.for_extra("polars", "polars", "the engine polars") from None
    suffixes = {file.suffix.lower() for file in files}
    if len(suffixes) != 1 or not suffixes <= SCANS.keys():
        raise InvalidValueError(
            f"Polars is given files of {', '.join(sorted(suffixes)) or 'no kind'}: expected one of {', '.join(SCANS)}. "
            "The engine duckdb reads more."
        )
    suffix = suffixes.pop()
    partitioned = suffix == ".parquet" and any("=" in folder for file in files for folder in file.parts[:-1])
    options = {"hive_partitioning": True} if partitioned else {}
    return getattr(polars, SCANS[suffix])([str(file) for file in files], **options)


@contextmanager
def reading(files: Sequence[Path], *others: type[Exception]) -> Iterator[None]:
    """Turn what Polars, or whoever speaks for it, says about files that it cannot read into a word to who named them."""
    import polars  # noqa: PLC0415

    unreadable: tuple[type[Exception], ...] = (polars.exceptions.PolarsError, *others)
    try:
        yield
    except unreadable as error:
        named = f"{files[0]}" if len(files) == 1 else f"{files[0]} and {len(files) - 1} more"
        reason = str(error).strip().splitlines()[0].rstrip(".")
        raise InvalidValueError(
            f"{named} cannot be read by Polars: {reason}. If a copy was interrupted, copy it again."
        ) from None
