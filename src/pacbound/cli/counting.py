"""The options that all verbs have that count tables."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from pacbound.cli.lists import names, numbers
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
ClustersOption = Annotated[
    str | None,
    typer.Option(help="Column with the patient, video, … of each row: one row of each is drawn."),
]
ClusterBoundOption = Annotated[
    int | None,
    typer.Option(help="The most rows any cluster can have: the claim is then about a random row."),
]
WeightsOption = Annotated[
    str | None,
    typer.Option(help="Column with the target's density over that of the rows, up to a factor."),
]
WeightBoundOption = Annotated[
    float | None, typer.Option(help="The largest weight that there can be, seen or not.")
]
RowIdsOption = Annotated[
    str | None, typer.Option(help="Column with a name for each row, where rows have no order.")
]
SeedOption = Annotated[
    int | None,
    typer.Option(help="Key of the draw by clusters or weights, 0 if left out. Try only one."),
]
StrataOption = Annotated[
    str | None,
    typer.Option(help="Rows were chosen by `pacbound stratify`: its --bins or --edges."),
]


def draw_options(
    cluster_bound: int | None, weight_bound: float | None, seed: int | None
) -> dict[str, Any]:
    """What was said about drawing rows, beside the columns, as the verbs take it."""
    return {"cluster_bound": cluster_bound, "weight_bound": weight_bound, "seed": seed}


def draw_columns(
    clusters: str | None, weights: str | None, row_ids: str | None
) -> dict[str, str | None]:
    """The columns that rows are drawn by, as the verbs take them."""
    return {"clusters": clusters, "weights": weights, "row_ids": row_ids}


def strata_option(strata: str | None) -> int | list[float] | None:
    """The bins that rows were chosen by: how many of equal width, or their edges."""
    if strata is None:
        return None
    return int(strata) if strata.strip().isdecimal() else numbers(strata, "--strata")


def class_options(
    classes: str | None, missing: str | None, unseen_labels: float | None
) -> dict[str, Any]:
    """What was said about classes, as the verbs take it."""
    return {
        "classes": None if classes is None else names(classes),
        "missing": None if missing is None else names(missing),
        "unseen_labels": unseen_labels,
    }
