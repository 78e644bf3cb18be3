"""The embedded DuckDB: a connection with limits that reads local files and nothing else.

What it cannot hold in memory goes to a temporary folder that is removed. It installs no extension
and touches no network. Its exceptions do not leave this package.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, TypeVar

from pacbound.errors import InvalidValueError, MissingDependencyError

if TYPE_CHECKING:
    from pacbound.sources.batches import Progress

try:
    import duckdb
except ImportError:
    raise MissingDependencyError.for_extra("duckdb", "frames", "Reading tables in files") from None

Result = TypeVar("Result")
Connection = duckdb.DuckDBPyConnection
Relation = duckdb.DuckDBPyRelation
QueryError = duckdb.Error
OutOfMemory = duckdb.OutOfMemoryException

# What DuckDB may use; with Python, NumPy and the code itself a process then stays well under 1 GB.
DEFAULT_MEMORY = "600MB"

_POLL = 0.1


@contextmanager
def connected(memory_limit: str | None = None, *, ordered: bool = False) -> Iterator[Connection]:
    """A connection of its own; `ordered` keeps the rows in the file's order, which costs memory."""
    with TemporaryDirectory(prefix="pacbound-", ignore_cleanup_errors=True) as spill:
        connection = duckdb.connect(
            config={
                "memory_limit": (memory_limit or DEFAULT_MEMORY).strip(),
                "temp_directory": spill,
                "preserve_insertion_order": ordered,
                "autoinstall_known_extensions": False,
                "autoload_known_extensions": False,
            }
        )
        try:
            set_up(connection)
            yield connection
        finally:
            connection.close()


def set_up(connection: Connection) -> None:
    """Set what is set for each connection, not for a database."""
    # Progress is measured, and drawn by whoever asks for it.
    connection.execute("SET enable_progress_bar = true; SET enable_progress_bar_print = false")
    # The statistics in Parquet files leave NaN out, and DuckDB concludes from them that NaN <= 1
    # where all else is.
    connection.execute("SET disabled_optimizers = 'statistics_propagation'")


@contextmanager
def explained(what: str) -> Iterator[None]:
    """Say what DuckDB says of `what` in our own words."""
    try:
        yield
    except duckdb.OutOfMemoryException as error:
        raise out_of_memory(what, error) from None
    except duckdb.Error as error:
        said = (
            " ".join(str(error).split("\n\n")[0].split())
            .removeprefix("Invalid Input Error: ")
            .rstrip(".")
        )
        raise InvalidValueError(
            f"{what} cannot be read: {said}. Was it cut short, or is it of another format?"
        ) from None


def out_of_memory(what: str, error: Exception) -> InvalidValueError:
    """The error for work on `what` that does not fit."""
    said = re.search(r"\(([^()]*/[^()]*used)\)", str(error))
    used = f" ({said[1]})" if said else ""
    return InvalidValueError(
        f"{what} needs more memory than is allowed{used}. Allow more with memory_limit='2GB', or "
        "--memory-limit 2GB."
    )


def run(
    connection: Connection, work: Callable[[], Result], progress: Progress | None = None
) -> Result:
    """The result of `work`, which queries the connection, watched: progress is told, and an
    interrupt stops the query at once.
    """
    with ThreadPoolExecutor(1) as pool:
        future = pool.submit(work)
        try:
            while not wait([future], _POLL).done:
                if progress is not None:
                    progress(share_done(connection))
        except BaseException:
            _stop(connection, future)
            raise
        return future.result()


def in_batches(relation: Relation, rows: int) -> Any:
    """The rows of a relation as Arrow record batches."""
    # Its name before DuckDB 1.5.
    read = (
        relation.to_arrow_reader
        if hasattr(relation, "to_arrow_reader")
        else relation.fetch_record_batch
    )
    return read(rows)


def share_done(connection: Connection) -> float:
    """How much of the query that runs is done, as far as DuckDB knows."""
    return min(1.0, max(0.0, connection.query_progress() / 100))


def select(what: str, source: str) -> str:
    """A query. Whatever comes from outside is in it by way of `literal` or `identifier`."""
    return f"SELECT {what} FROM {source}"  # noqa: RUF100, S608


def literal(text: str) -> str:
    """`text` as a string in SQL."""
    return "'" + text.replace("'", "''") + "'"


def identifier(name: str) -> str:
    """`name` as a name in SQL."""
    return '"' + name.replace('"', '""') + '"'


def file_list(paths: list[Path]) -> str:
    """Files as a list in SQL; a name with wildcards in it means that file alone."""
    return (
        "["
        + ", ".join(literal(re.sub(r"([*?\[])", r"[\1]", str(path.absolute()))) for path in paths)
        + "]"
    )


def _stop(connection: Connection, future: Future[Any]) -> None:
    # Asked again until it has stopped: an interrupt that comes before the query begins is
    # forgotten.
    while not future.done():
        with suppress(duckdb.Error):
            connection.interrupt()
        wait([future], _POLL)
