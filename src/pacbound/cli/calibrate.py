"""`pacbound calibrate`: certify an interval for the true confidence of every bin."""

from __future__ import annotations

from typing import Annotated

import typer

from pacbound.calibration.certify import calibrate as certified
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
    StrataOption,
    WrittenOrPiped,
    edges_from_pool,
    edges_option,
    strata_option,
)
from pacbound.cli.terminal import progress_bar
from pacbound.errors import InvalidTypeError
from pacbound.procedures.calibration import Correction, Side
from pacbound.tally.questions.calibration import EQUAL_MASS


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
        str | None,
        typer.Option(
            help=(
                "Edges fixed beforehand, in place of --bins: 0,0.5,0.9,1. Or equal-mass: as many "
                "rows in each of --bins."
            )
        ),
    ] = None,
    pool: Annotated[
        str | None,
        typer.Option(
            help="With --edges equal-mass: other rows, without labels, that fix the edges."
        ),
        Reads(),
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
    *,
    draw: RowDraw,
    strata: StrataOption = None,
    classes: Classes,
    labels: LabelsOption = None,
    written: WrittenOrPiped,
    counter: Counter,
    output: OutputOption = None,
    budget: BudgetOption = None,
    sample: SampleOption = None,
    about: About,
    as_json: Annotated[bool, typer.Option("--json", help="Print the result for programs.")] = False,
) -> int:
    """Certify an interval for the true confidence of every bin.

    The rows must be a fresh labelled sample from the distribution of use: not training data, not
    data that chose the model.
    """
    rows, limits = written.tables(files), edges_option(edges)
    if pool is not None:
        if edges != EQUAL_MASS:
            raise InvalidTypeError("--pool fixes edges of equal mass: pass --edges equal-mass.")
        limits = edges_from_pool(pool, rows, confidence, n_bins=bins, notation=written.notation())
    with progress_bar("counting") as progress:
        certificate = certified(
            rows,
            delta=delta,
            n_bins=bins if limits is None or limits == EQUAL_MASS else None,
            edges=limits,
            correction=correction,
            side=side,
            **classes.options(),
            columns={
                "confidence": confidence,
                "correct": correct,
                "prediction": prediction,
                "labels": label,
                "groups": group,
                **draw.columns(),
            },
            strata=strata_option(strata),
            **draw.options(),
            **counter.options(),
            answers=labels,
            **written.options(),
            progress=progress,
            about=about.told(),
            sample=sample,
        )
    return deliver(certificate, output, as_json=as_json, budget=budget)
