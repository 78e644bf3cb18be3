"""`pacbound recall`: certify the score at which to flag, so that enough positives are found."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from pacbound.cli.counting import (
    ClusterBoundOption,
    ClustersOption,
    EngineOption,
    FilesArgument,
    MasterOption,
    MemoryOption,
    RowIdsOption,
    SeedOption,
    WeightBoundOption,
    WeightsOption,
    draw_columns,
    draw_options,
)
from pacbound.cli.delivery import BudgetOption, deliver
from pacbound.cli.exit_codes import ending_well
from pacbound.cli.lists import whole_numbers
from pacbound.cli.terminal import progress_bar
from pacbound.recall.certify import certify_recall


@ending_well
def recall(
    files: FilesArgument,
    score: Annotated[str, typer.Option(help="Column with the score, 0 to 1, high = positive.")],
    positive: Annotated[str, typer.Option(help="Column that says whether the row is positive.")],
    target: Annotated[
        float, typer.Option(help="The share of the positives that must be flagged: 0.95")
    ],
    delta: Annotated[float, typer.Option(help="Chance that fewer are, for example 0.01.")],
    looks: Annotated[
        str | None,
        typer.Option(help="Planned looks, numbers of positives, fixed beforehand: 100,200"),
    ] = None,
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
    """Certify the score at which to flag, so that at least the target share of positives is
    flagged.

    The rows must be a fresh labelled sample from the distribution of use, and none may have been
    selected for labelling by its score.
    """
    with progress_bar("counting") as progress:
        certificate = certify_recall(
            files,
            target=target,
            delta=delta,
            looks=None if looks is None else whole_numbers(looks, "--looks"),
            columns={
                "score": score,
                "positive": positive,
                **draw_columns(clusters, weights, row_ids),
            },
            **draw_options(cluster_bound, weight_bound, seed),
            engine=engine,
            master=master,
            memory_limit=memory_limit,
            progress=progress,
        )
    return deliver(certificate, output, as_json=as_json, budget=budget)
