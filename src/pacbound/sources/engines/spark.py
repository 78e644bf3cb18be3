"""Tables opened by Spark: on a cluster, or on all cores of this machine. Only what is collected
comes back.

Local files must be visible to every worker under the same name. That Spark reads all of them, each
once, is checked. Addresses (with ://) go to the cluster as they are named, so they may be on any
file system that Spark knows; nothing is checked about which files they stand for, but that they are
not those of a table with a log. Only formats that hold types are read.

A session that is running is used and left as it was. One that is started here is shared by all
threads that count meanwhile, and ended by the last of them.
"""

from __future__ import annotations

import os
import re
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from glob import glob
from pathlib import Path, PurePath
from tempfile import TemporaryDirectory
from typing import Any
from urllib.parse import unquote

from pacbound.errors import InvalidValueError, MissingDependencyError
from pacbound.sources.batches import Part
from pacbound.sources.paths import (
    expanded,
    first_of,
    is_note,
    one_format,
    refuse_logged_tables,
    refuse_marked,
    refuse_repeated,
    refuse_stored,
    remote_folders,
    suffix_of,
)

# All cores of this machine.
HERE = "local[*]"

KINDS = {".parquet": "parquet", ".pq": "parquet", ".orc": "orc"}

# What must hold while rows are counted, whatever the session is set to.
SETTINGS = {
    # Else the column C of one file is taken for the c of another.
    "spark.sql.caseSensitive": "true",
    # Else the folders day=007 and day=7 are one group.
    "spark.sql.sources.partitionColumnTypeInference.enabled": "false",
    # Else rows are missing without a word.
    "spark.sql.files.ignoreCorruptFiles": "false",
    "spark.sql.files.ignoreMissingFiles": "false",
}


def local_files(paths: Sequence[str]) -> list[Path]:
    """The files that local paths stand for, none of them twice; ORC is known by the end of the name
    that is given.
    """
    plain = [path.removeprefix("file://") for path in paths]
    if not any(suffix_of(Path(path)) == ".orc" for path in plain):
        return expanded(plain)
    found = [file for path in plain for file in _orc_files(Path(path))]
    refuse_logged_tables(found)
    refuse_repeated(found)
    return found


@contextmanager
def parts(
    files: Sequence[Path], *, partitions: Sequence[str], master: str | None
) -> Iterator[list[Part]]:
    """All rows of `files` as one frame, each once; their folders stand for the columns
    `partitions`.
    """
    kind = one_format("Spark", {suffix_of(file) for file in files}, KINDS)
    named, root = [_pattern(file) for file in files], _root(files, partitions)
    with _session(master) as spark, _set(spark), _reading([str(file) for file in files]):
        whole = None if partitions else _whole_folder(spark, kind, files)
        frame = _stored(spark, kind, named) if whole is None else whole
        if root is not None:
            refuse_stored("A file", frame.columns, partitions)
            frame = (
                spark.read.format(kind)
                .schema(frame.schema)
                .option("basePath", f"file://{root}")
                .load(named)
            )
        _refuse_unread(files, frame.inputFiles())
        yield [Part(frame=frame)]


@contextmanager
def remote_parts(paths: Sequence[str], *, master: str | None) -> Iterator[list[Part]]:
    """The rows of the addresses `paths`, as Spark understands them, as one frame."""
    suffixes = {suffix_of(Path(path.rstrip("/"))) for path in paths}
    # Spark writes tables as folders, often without a suffix: these are Parquet.
    kind = one_format("Spark", {s if s in KINDS else ".parquet" for s in suffixes}, KINDS)
    with _session(master) as spark, _set(spark), _reading(paths):
        frame = _stored(spark, kind, list(paths))
        _refuse_logged_tables(spark, frame.inputFiles())
        yield [Part(frame=frame)]


def _stored(spark: Any, kind: str, paths: list[str]) -> Any:
    # Else one file gives the types for all, and the 0.9 of another becomes 0 where they are
    # integers, without a word.
    return spark.read.format(kind).option("mergeSchema", "true").load(paths)


def _whole_folder(spark: Any, kind: str, files: Sequence[Path]) -> Any:
    """The rows of `files` by the name of their folder, which Spark lists at once, where it lists
    many names by a task for each; None if they are few, or not all that Spark finds there.
    """
    folders = {file.parent for file in files}
    if len(files) <= _FEW or len(folders) > 1 or any(p.is_dir() for p in files[0].parent.iterdir()):
        return None
    frame = _stored(spark, kind, [_pattern(folders.pop())])
    return frame if _read_by(frame.inputFiles()) == {file.resolve() for file in files} else None


# So many names Spark lists on the driver (spark.sql.sources.parallelPartitionDiscovery.threshold).
_FEW = 32


def _read_by(uris: Sequence[str]) -> set[Path]:
    return {Path(unquote(uri.removeprefix("file:"))).resolve() for uri in uris}


def _orc_files(path: Path) -> list[Path]:
    if path.is_dir():
        return [
            file
            for file in sorted(path.rglob("*"))
            if file.is_file() and not is_note(file.relative_to(path))
        ]
    found = (
        [path]
        if path.exists()
        else [Path(match) for match in sorted(glob(str(path), recursive=True))]  # noqa: PTH207
    )
    if not found:
        raise InvalidValueError(f"{path} does not exist, and matches no file. Check the path.")
    return found if found == [path] else [file for match in found for file in _orc_files(match)]


def _pattern(file: Path) -> str:
    """The pattern that only `file` matches: Spark takes every path for one."""
    return "file://" + _escaped(str(file.absolute()))


def _escaped(path: str) -> str:
    return re.sub(r"([\[\]{}*?\\])", r"\\\1", path)


def _root(files: Sequence[Path], partitions: Sequence[str]) -> Path | None:
    """The folder whose partitions hold all files; None if there is none, and folders are then no
    columns.

    Spark leaves out the files beside partitions, and in folders within them that are none.
    """
    depth = len(partitions) + 1
    roots = {Path(*file.parts[:-depth]) for file in files}
    inside = all("=" in part[1:] for file in files for part in file.parts[-depth:-1])
    return roots.pop().absolute() if partitions and inside and len(roots) == 1 else None


def _refuse_unread(files: Sequence[Path], read: Sequence[str]) -> None:
    """Refuse files that Spark passes over: those whose names begin with . or _, and empty ones,
    which hold no table.
    """
    found = _read_by(read)
    for file in files:
        if file.resolve() not in found or not file.stat().st_size:
            raise InvalidValueError(
                f"{file} is passed over by Spark: rows may be lost. Rename it, or write it again "
                "if it is empty."
            )
    if len(found) != len(files):
        raise InvalidValueError(
            f"Spark reads {len(found)} files in place of {len(files)}: name each by itself."
        )


def _refuse_logged_tables(spark: Any, files: Sequence[str]) -> None:
    """Refuse files at addresses that are in the folder of a table with a log."""
    from py4j.protocol import Py4JJavaError  # noqa: PLC0415

    java = getattr(spark, "_jvm", None)
    if java is None:
        # A session of Spark Connect, which gives no access to the cluster's file systems.
        return

    def is_there(folder: PurePath | str, mark: str) -> bool:
        path = java.org.apache.hadoop.fs.Path(f"{_escaped(str(folder))}/{mark}")
        try:
            system = path.getFileSystem(spark._jsparkSession.sessionState().newHadoopConf())
            return bool(system.globStatus(path))
        except Py4JJavaError:
            # A folder above the data that may not be looked into.
            return False

    refuse_marked(remote_folders(map(unquote, files)), is_there)


@dataclass
class _Shared:
    """What counts in several threads share: the session that was started here, and what settings
    were before, each with the number of counts that need it.
    """

    lock: threading.Lock = field(default_factory=threading.Lock)
    started: Any = None
    users: int = 0
    before: dict[Any, tuple[int, dict[str, str]]] = field(default_factory=dict)


_SHARED = _Shared()


@contextmanager
def _set(spark: Any) -> Iterator[None]:
    """Hold `SETTINGS` until the last who needs them has counted, and leave the session as it
    was.
    """
    # Threads have objects of their own for one session.
    session = getattr(spark, "_jsparkSession", spark)
    with _SHARED.lock:
        users, before = _SHARED.before.get(session) or (0, spark.conf.getAll)
        _SHARED.before[session] = users + 1, before
        for name, value in SETTINGS.items():
            spark.conf.set(name, value)
    try:
        yield
    finally:
        with _SHARED.lock:
            users, before = _SHARED.before.pop(session)
            if users > 1:
                _SHARED.before[session] = users - 1, before
            else:
                _restore(spark, before)


def _restore(spark: Any, before: Mapping[str, str]) -> None:
    for name in SETTINGS:
        if name in before:
            spark.conf.set(name, before[name])
        else:
            spark.conf.unset(name)


@contextmanager
def _session(master: str | None) -> Iterator[Any]:
    """The session that is running, or one that is started here and ended by the last who uses
    it.
    """
    try:
        # Loaded only for those who ask for it.
        from pyspark import SparkContext  # noqa: PLC0415
        from pyspark.sql import SparkSession  # noqa: PLC0415
    except ImportError:
        raise MissingDependencyError.for_extra("pyspark", "spark", "the engine spark") from None
    with _SHARED.lock:
        # Active is what this thread has used. In another one the same session is running, too, and
        # getOrCreate gives it; so it is the context that says whether there is one to start.
        spark = SparkSession.getActiveSession()
        if spark is None and SparkContext._active_spark_context is not None:
            spark = SparkSession.builder.getOrCreate()
        if spark is not None:
            _refuse_other_master(spark, master)
        else:
            with TemporaryDirectory(prefix="pacbound-spark-") as folder:
                log = Path(folder) / "spark.log"
                spark = _started(SparkSession.builder, master or HERE, log)
            _SHARED.started = _context(spark)
        shared = _context(spark) is _SHARED.started
        _SHARED.users += shared
    try:
        yield spark
    finally:
        with _SHARED.lock:
            _SHARED.users -= shared
            if shared and not _SHARED.users:
                _SHARED.started = None
                spark.stop()


def _refuse_other_master(spark: Any, master: str | None) -> None:
    running = getattr(getattr(spark, "sparkContext", None), "master", None)
    if master is not None and running not in (None, master):
        raise InvalidValueError(
            f"master={master!r} was passed, and this process has a session on {running}, which "
            "would be used: leave master out to count there, or end it first with spark.stop()."
        )


def _context(spark: Any) -> Any:
    """What all sessions of one Spark share; with Spark Connect that is the session."""
    return getattr(spark, "_sc", spark)


def _started(builder: Any, master: str, log: Path) -> Any:
    quiet = (
        builder.master(master).appName("pacbound").config("spark.ui.showConsoleProgress", "false")
    )
    try:
        with _stderr_to(log):
            return quiet.getOrCreate()
    except (
        Exception
    ) as error:  # Java missing, a master that does not answer: Spark has no one class for these
        logged = log.read_text(errors="replace").splitlines()
        reason = next(
            (line.split("ERROR ", 1)[1] for line in logged if "ERROR " in line), _reason(error)
        )
        raise InvalidValueError(
            f"Spark does not start on {master}: {reason} Is Java 17 installed, and does the master "
            "answer?"
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
    from py4j.protocol import Py4JError  # noqa: PLC0415
    from pyspark.errors import PySparkException  # noqa: PLC0415

    try:
        yield
    except (PySparkException, Py4JError, ConnectionError) as error:
        reason = (explained(error) or _reason(error)).rstrip(".")
        raise InvalidValueError(f"{first_of(paths)} cannot be read by Spark: {reason}.") from None


def explained(error: Exception) -> str | None:
    """What an error of Spark means and what to do, as a sentence; None where it says so itself."""
    text, reason = str(error), _reason(error)
    if isinstance(error, ConnectionError) or "Answer from Java side is empty" in text:
        return (
            "the Java process of Spark's driver has ended, most likely because its memory was "
            f"full. {_MORE_MEMORY.format(what='driver')}, which is read when Spark starts"
        )
    if "spark.driver.maxResultSize" in text:
        size = re.search(r"\(([^()]*)\) is bigger than", text)
        came = size[1] if size else "more than it may take"
        return (
            f"{came} would come back to the driver, more than spark.driver.maxResultSize allows: "
            "raise it together with spark.driver.memory, or count fewer groups"
        )
    if _OUT_OF_MEMORY.search(text):
        if "executor driver" in text or not _IN_A_TASK.search(text):
            # On one machine the tasks run in the driver, too.
            return f"the driver of Spark ran out of memory. {_MORE_MEMORY.format(what='driver')}"
        return f"an executor ran out of memory. {_MORE_MEMORY.format(what='executor')}"
    if "Exception thrown in awaitResult" in text and "Caused by" not in text:
        return (
            "a process of Spark stopped answering, most likely because its memory was full. "
            f"{_MORE_MEMORY.format(what='driver')}, or the same for executors"
        )
    if any(mark in text for mark in _DRIFT):
        types = _found(_TYPES, text)
        where = _found(r"Encountered error while reading file (\S+?\.?)\. ", text)
        column = _found(r"[Cc]olumn:? \[(\w+)", text)
        found = ", ".join(part for part in (where, column and f"column {column}", types) if part)
        return (
            f"its files hold one column with different types ({found or reason}): expected one "
            "type. Write the files anew with one of them, or read each type by itself, cast it "
            "and unite the frames: a.unionByName(b)"
        )
    if "FAILED_READ_FILE.FILE_NOT_EXIST" in text:
        return f"a file is gone since the frame was made: read the table again ({reason})"
    return reason if type(error).__module__.startswith(("py4j", "pyspark")) else None


_MORE_MEMORY = "Give it more: spark-submit --{what}-memory 4g, or the setting spark.{what}.memory"
_OUT_OF_MEMORY = re.compile(
    r"OutOfMemoryError|SparkOutOfMemory|exit(?:ed)? (?:with )?(?:exit )?code:? ?(?:52|137)\b|"
    r"Exit status: 137"
)
_IN_A_TASK = re.compile(r"Job aborted|Lost task|ExecutorLost|[Ee]xecutor \d+|Container")
_DRIFT = ("CANNOT_MERGE_SCHEMAS", "CANNOT_MERGE_INCOMPATIBLE", "PARQUET_COLUMN_DATA_TYPE_MISMATCH")
_TYPES = r"((?:\"\w+\" and \"\w+\")|(?:Expected Spark type \w+, actual Parquet type \w+))"


def _found(pattern: str, text: str) -> str | None:
    match = re.search(pattern, text)
    return match[1] if match else None


def _reason(error: Exception) -> str:
    """What went wrong, without the stack of the Java process: what it says of the first cause."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    if any(line.startswith("Traceback (most recent call last)") for line in lines):
        return next(line for line in reversed(lines) if re.match(r"[A-Za-z_.]+(: |$)", line))
    causes = [line for line in lines if line.startswith("Caused by: ") and ": [" in line]
    telling = [line for line in lines if "Exception: " in line or line.startswith("[")]
    found = (causes[-1:] or telling or lines or [type(error).__name__])[0]
    return found.split("Exception: ", 1)[-1]
