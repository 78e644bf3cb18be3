"""`pacbound calibrate`: certify an interval for the true confidence of every bin."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from pacbound.calibration.certify import calibrate as certified
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
    StrataOption,
    UnseenOption,
    WeightBoundOption,
    WeightsOption,
    class_options,
    draw_columns,
    draw_options,
    strata_option,
)
from pacbound.cli.delivery import BudgetOption, deliver
from pacbound.cli.exit_codes import ending_well
from pacbound.cli.lists import numbers
from pacbound.cli.terminal import progress_bar
from pacbound.procedures.calibration import Correction, Side


@ending_well
def calibrate(
    files: FilesArgument,
    confidence: Annotated[
        str, typer.Option(help="Column with the confidence of the prediction, 0 to 1.")
    ],
    delta: Annotated[
        float, typer.Option(help="Chance that any interval is wrong, for example 0.01.")
    ],
    correct: Annotated[
        str | None, typer.Option(help="Column that says whether the prediction was right.")
    ] = None,
    prediction: Annotated[
        str | None,
        typer.Option(help="Column with the predicted class (with --label, in place of --correct)."),
    ] = None,
    label: Annotated[str | None, typer.Option(help="Column with the true class.")] = None,
    bins: Annotated[int, typer.Option(help="Number of bins of equal width.")] = 20,
    edges: Annotated[
        str | None, typer.Option(help="Edges fixed beforehand, in place of --bins: 0,0.5,0.9,1")
    ] = None,
    group: Annotated[
        str | None, typer.Option(help="Column with a group, for a table of each.")
    ] = None,
    correction: Annotated[
        Correction, typer.Option(help="How delta is shared among the bins.")
    ] = "sidak",
    side: Annotated[
        Side, typer.Option(help="Certify both ends, or one of them more tightly.")
    ] = "both",
    clusters: ClustersOption = None,
    cluster_bound: ClusterBoundOption = None,
    weights: WeightsOption = None,
    weight_bound: WeightBoundOption = None,
    row_ids: RowIdsOption = None,
    seed: SeedOption = None,
    strata: StrataOption = None,
    classes: ClassesOption = None,
    missing: MissingOption = None,
    unseen_labels: UnseenOption = None,
    engine: EngineOption = "duckdb",
    master: MasterOption = None,
    memory_limit: MemoryOption = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Where the certificate goes.")
    ] = None,
    budget: BudgetOption = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the result for programs.")] = False,
) -> int:
    """Certify an interval for the true confidence of every bin.

    The rows must be a fresh labelled sample from the distribution of use: not training data, not
    data that chose the model.
    """
    with progress_bar("counting") as progress:
        certificate = certified(
            files,
            delta=delta,
            n_bins=None if edges is not None else bins,
            edges=None if edges is None else numbers(edges, "--edges"),
            correction=correction,
            side=side,
            **class_options(classes, missing, unseen_labels),
            columns={
                "confidence": confidence,
                "correct": correct,
                "prediction": prediction,
                "labels": label,
                "groups": group,
                **draw_columns(clusters, weights, row_ids),
            },
            strata=strata_option(strata),
            **draw_options(cluster_bound, weight_bound, seed),
            engine=engine,
            master=master,
            memory_limit=memory_limit,
            progress=progress,
        )
    return deliver(certificate, output, as_json=as_json, budget=budget)
