"""The options that all verbs have that count tables."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from pacbound.cli.lists import names
from pacbound.sources import Engine

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
ClassesOption = Annotated[
    str | None, typer.Option(help="All classes that there are: a,b,c. Any other is refused.")
]
MissingOption = Annotated[
    str | None, typer.Option(help="What stands for a missing class, for example NA or -1.")
]
UnseenOption = Annotated[
    float | None,
    typer.Option(
        help=(
            "Share of the rows whose label may be a class that no model ever predicts; 0 if left "
            "out."
        )
    ),
]


def class_options(
    classes: str | None, missing: str | None, unseen_labels: float | None
) -> dict[str, Any]:
    """What was said about classes, as the verbs take it."""
    return {
        "classes": None if classes is None else names(classes),
        "missing": None if missing is None else names(missing),
        "unseen_labels": unseen_labels,
    }
