"""`pacbound abstain`: certify the confidence at which to answer, so that few answers are wrong."""

from __future__ import annotations

from typing import Annotated

import typer

from pacbound.abstention.certify import certify_abstention
from pacbound.cli.about import About
from pacbound.cli.delivery import BudgetOption, OutputOption, SampleOption, deliver
from pacbound.cli.exit_codes import ending_well
from pacbound.cli.file_options import Reads
from pacbound.cli.table_options import (
    Classes,
    Counter,
    FilesArgument,
    LabelsOption,
    RowDraw,
    WrittenOrPiped,
)
from pacbound.cli.terminal import progress_bar

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
        Reads(),
    ] = None,
    first_threshold: FirstOption = None,
    *,
    classes: Classes,
    draw: RowDraw,
    labels: LabelsOption = None,
    written: WrittenOrPiped,
    counter: Counter,
    output: OutputOption = None,
    budget: BudgetOption = None,
    sample: SampleOption = None,
    about: About,
    as_json: Annotated[bool, typer.Option("--json", help="Print the result for programs.")] = False,
) -> int:
    """Certify the confidence at which to answer, so that at most xi of the answers are wrong.

    The rows must be a fresh labelled sample from the distribution of use: not training data, not
    data that chose the model.
    """
    with progress_bar("counting") as progress:
        certificate = certify_abstention(
            written.tables(files),
            xi=xi,
            delta=delta,
            pool=pool,
            first_threshold=first_threshold,
            **classes.options(),
            columns={
                "confidence": confidence,
                "correct": correct,
                "prediction": prediction,
                "labels": label,
                "groups": group,
                **draw.columns(),
            },
            **draw.options(),
            **counter.options(),
            answers=labels,
            **written.options(),
            progress=progress,
            about=about.told(),
            sample=sample,
        )
    return deliver(certificate, output, as_json=as_json, budget=budget)
