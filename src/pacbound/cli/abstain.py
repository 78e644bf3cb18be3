"""`pacbound abstain`: certify the confidence at which to answer, so that few answers are wrong."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import numpy as np
import typer
from numpy.typing import NDArray

from pacbound.abstention.certify import certify_abstention
from pacbound.cli.counting import (
    ClassesOption,
    ClusterBoundOption,
    ClustersOption,
    EngineOption,
    FilesArgument,
    MasterOption,
    MemoryOption,
    MissingOption,
    RowIdsOption,
    SeedOption,
    UnseenOption,
    WeightBoundOption,
    WeightsOption,
    class_options,
    draw_columns,
    draw_options,
)
from pacbound.cli.delivery import BudgetOption, deliver
from pacbound.cli.exit_codes import ending_well
from pacbound.cli.terminal import progress_bar
from pacbound.errors import InvalidTypeError, InvalidValueError
from pacbound.sources import open_tables
from pacbound.sources.batches import require_columns
from pacbound.tally.columns import checked_scores, numeric

FirstOption = Annotated[
    float | None,
    typer.Option(
        help=(
            "Abstention: the highest threshold to look at, declared before any label is seen, if "
            "many rows share the highest score."
        )
    ),
]


@ending_well
def abstain(
    files: FilesArgument,
    confidence: Annotated[
        str, typer.Option(help="Column with the confidence of the prediction, 0 to 1.")
    ],
    xi: Annotated[
        float, typer.Option(help="The share of the answers that may be wrong, for example 0.05.")
    ],
    delta: Annotated[float, typer.Option(help="Chance that more are, for example 0.01.")],
    correct: Annotated[
        str | None, typer.Option(help="Column that says whether the prediction was right.")
    ] = None,
    prediction: Annotated[
        str | None,
        typer.Option(help="Column with the predicted class (with --label, in place of --correct)."),
    ] = None,
    label: Annotated[str | None, typer.Option(help="Column with the true class.")] = None,
    group: Annotated[
        str | None, typer.Option(help="Column with a group, for a threshold of each.")
    ] = None,
    pool: Annotated[
        str | None,
        typer.Option(
            help="A table of other rows without labels, whose confidences say where to start."
        ),
    ] = None,
    first_threshold: FirstOption = None,
    classes: ClassesOption = None,
    missing: MissingOption = None,
    unseen_labels: UnseenOption = None,
    clusters: ClustersOption = None,
    cluster_bound: ClusterBoundOption = None,
    weights: WeightsOption = None,
    weight_bound: WeightBoundOption = None,
    row_ids: RowIdsOption = None,
    seed: SeedOption = None,
    engine: EngineOption = "duckdb",
    master: MasterOption = None,
    memory_limit: MemoryOption = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Where the certificate goes.")
    ] = None,
    budget: BudgetOption = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the result for programs.")] = False,
) -> int:
    """Certify the confidence at which to answer, so that at most xi of the answers are wrong.

    The rows must be a fresh labelled sample from the distribution of use: not training data, not
    data that chose the model.
    """
    with progress_bar("counting") as progress:
        certificate = certify_abstention(
            files,
            xi=xi,
            delta=delta,
            pool=None if pool is None else _scores(pool, confidence),
            first_threshold=first_threshold,
            **class_options(classes, missing, unseen_labels),
            columns={
                "confidence": confidence,
                "correct": correct,
                "prediction": prediction,
                "labels": label,
                "groups": group,
                **draw_columns(clusters, weights, row_ids),
            },
            **draw_options(cluster_bound, weight_bound, seed),
            engine=engine,
            master=master,
            memory_limit=memory_limit,
            progress=progress,
        )
    return deliver(certificate, output, as_json=as_json, budget=budget)


def _scores(path: str, column: str) -> NDArray[np.float64]:
    """The confidences of a table; its other columns are not looked at."""
    parts = [np.empty(0)]
    for table in open_tables(path):
        require_columns(table, [column])
        for batch in table.batches():
            try:
                parts.append(
                    checked_scores(
                        numeric(batch.numbers(column), column), column, start=batch.start
                    )
                )
            except (InvalidTypeError, InvalidValueError) as error:
                raise type(error)(f"{table.path}: {error}") from None
    return np.concatenate(parts)
