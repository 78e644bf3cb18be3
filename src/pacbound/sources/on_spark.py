"""Tables opened by Spark: on a cluster, or on all cores of this machine. Only what is collected comes back.

Paths go to the cluster as they are named, so they may be on any file system that Spark knows; a local one must be visible to
every worker under the same name.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from pacbound.errors import InvalidValueError, MissingDependencyError

HERE = "local[*]"
"""All cores of this machine."""

READS: dict[str, tuple[str, dict[str, str]]] = {
    ".parquet": ("parquet", {}),
    ".csv": ("csv", {"header": "true", "inferSchema": "true", "mode": "FAILFAST"}),
    ".jsonl": ("json", {"mode": "FAILFAST"}),
    ".ndjson": ("json", {"mode": "FAILFAST"}),
    ".orc": ("orc", {}),
}


@contextmanager
def table(paths: Sequence[str], *, master: str | None) -> Iterator[Any]:
    """A Spark frame over all rows of `paths`. A session that is running is used and left running; else one is started here."""
    if not paths:
        raise InvalidValueError("No files were named: pass at least one.")
    suffixes = {Path(path.rstrip("/")).suffix.lower() for path in paths}
    # Spark writes tables as folders, often without a suffix: these are Parquet.
    kinds = {suffix if suffix in READS else "" for suffix in suffixes} - {""} or {".parquet"}
    if len(kinds) != 1:
        raise InvalidValueError(
            f"Spark is given files of {', '.join(sorted(kinds))}: expected one format. Count each apart, and add."
        )
    kind, options = READS[kinds.pop()]
    with _session(master) as spark, _reading(paths):
        yield spark.read.format(kind).options(**options).load([_absolute(path) for path in paths])


def _absolute(path: str) -> str:
    return path if "://" in path else str(Path(path).absolute())


@contextmanager
def _session(master: str | None) -> Iterator[Any]:
    try:
        from pyspark.sql import SparkSession  # noqa: PLC0415 - loaded only for those who ask for it
    except ImportError:
        raise MissingDependencyError.for_extra("pyspark", "spark", "the engine spark") from None
    running = SparkSession.getActiveSession()
    if running is not None:
        yield running
        return
    with TemporaryDirectory(prefix="pacbound-spark-") as folder:
        spark = _started(SparkSession.builder, master or HERE, Path(folder) / "spark.log")
        try:
            yield spark
        finally:
            spark.stop()


def _started(builder: Any, master: str, log: Path) -> Any:
    quiet = builder.master(master).appName("pacbound").config("spark.ui.showConsoleProgress", "false")
    try:
        with _stderr_to(log):
            return quiet.getOrCreate()
    except Exception as error:  # Java missing, a master that does not answer: Spark has no one class for these
        logged = log.read_text(errors="replace").splitlines()
        reason = next((line.split("ERROR ", 1)[1] for line in logged if "ERROR " in line), _reason(error))
        raise InvalidValueError(
            f"Spark does not start on {master}: {reason} Is Java 17 installed, and does the master answer?"
        ) from None


@contextmanager
def _stderr_to(log: Path) -> Iterator[None]:
    """Give the Java process that starts here a file for its log, in place of our stderr."""
    sys.stderr.flush()
    ours = os.dup(2)
    with log.open("wb") as file:
        os.dup2(file.fileno(), 2)
    try:
        yield
    finally:
        os.dup2(ours, 2)
        os.close(ours)


@contextmanager
def _reading(paths: Sequence[str]) -> Iterator[None]:
    from py4j.protocol import Py4JJavaError  # noqa: PLC0415
    from pyspark.errors import PySparkException  # noqa: PLC0415

    try:
        yield
    except (PySparkException, Py4JJavaError) as error:
        named = paths[0] if len(paths) == 1 else f"{paths[0]} and {len(paths) - 1} more"
        raise InvalidValueError(f"{named} cannot be read by Spark: {_reason(error)}") from None


def _reason(error: Exception) -> str:
    """What went wrong, without the stack of the Java process."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    telling = [line for line in lines if "Exception: " in line or line.startswith("[")]
    return (telling or lines or [type(error).__name__])[0].split("Exception: ", 1)[-1]
