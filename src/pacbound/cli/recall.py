"""`pacbound recall`: certify the score at which to flag, so that enough positives are found."""

from __future__ import annotations

from typing import Annotated

import typer

from pacbound.cli.about import About
from pacbound.cli.delivery import BudgetOption, OutputOption, SampleOption, deliver
from pacbound.cli.exit_codes import ending_well
from pacbound.cli.lists import whole_numbers
from pacbound.cli.table_options import (
    Counter,
    FilesArgument,
    LabelsOption,
    RowDraw,
    WrittenOrPiped,
)
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
    *,
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
    """Certify the score at which to flag, so that at least the target share of positives is
    flagged.

    The rows must be a fresh labelled sample from the distribution of use, and none may have been
    selected for labelling by its score.
    """
    with progress_bar("counting") as progress:
        certificate = certify_recall(
            written.tables(files),
            target=target,
            delta=delta,
            looks=None if looks is None else whole_numbers(looks, "--looks"),
            columns={
                "score": score,
                "positive": positive,
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
