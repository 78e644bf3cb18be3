"""The options that all verbs have that count tables, and counting by them."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from pacbound.cli.terminal import progress_bar
from pacbound.tally.engines import Engine, count_by
from pacbound.tally.tally import Tally

FilesArgument = Annotated[
    list[str],
    typer.Argument(
        metavar="FILE...",
        help=(
            "CSV, Parquet, JSON lines, Arrow, .npz, a folder or a quoted glob; all of them are "
            "counted together."
        ),
    ),
]
EngineOption = Annotated[
    Engine, typer.Option(help="What counts: the embedded DuckDB, Polars, or Spark.")
]
MasterOption = Annotated[
    str | None,
    typer.Option(
        help="With --engine spark: spark://host:7077; all cores of this machine if left out."
    ),
]
MemoryOption = Annotated[
    str | None, typer.Option(help="What DuckDB may use, for example 500MB; 600MB if left out.")
]


def counted(
    files: list[str],
    *,
    engine: Engine,
    master: str | None,
    memory_limit: str | None,
    **columns: Any,
) -> Tally:
    """The tally of the named columns of all files, with a bar on a terminal."""
    with progress_bar("counting") as progress:
        return count_by(
            engine, files, master=master, memory_limit=memory_limit, progress=progress, **columns
        )
