"""`pacbound tally`: count one part of the data, to be certified with the others later."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from pacbound.cli.exit_codes import ending_well
from pacbound.cli.file_options import Writes
from pacbound.cli.lists import names
from pacbound.cli.table_options import (
    CascadeClasses,
    Counter,
    FilesArgument,
    LabelsOption,
    RowDraw,
    StrataOption,
    WrittenOrPiped,
    edges_option,
    strata_option,
)
from pacbound.cli.terminal import print_json, progress_bar
from pacbound.tally import Tally
from pacbound.tally.questions import question_for


@ending_well
def tally(
    files: FilesArgument,
    output: Annotated[Path, typer.Option("--output", "-o", help="Where the tally goes."), Writes()],
    kind: Annotated[
        Literal["abstention"] | None,
        typer.Option(help="What is counted for, where its columns are those of a calibration."),
    ] = None,
    confidence: Annotated[
        str | None,
        typer.Option(help="Calibration, abstention: the confidence column. Cascade: c1,c2"),
    ] = None,
    correct: Annotated[
        str | None, typer.Option(help="Calibration, abstention: was the prediction right?")
    ] = None,
    prediction: Annotated[
        str | None,
        typer.Option(help="Calibration, abstention: the predicted class. Cascade: p1,p2,p3"),
    ] = None,
    label: Annotated[str | None, typer.Option(help="Column with the true class.")] = None,
    group: Annotated[
        str | None,
        typer.Option(help="Calibration, abstention, cascade: column with the group of each row."),
    ] = None,
    bins: Annotated[
        int | None, typer.Option(help="Calibration: number of bins, 20 if left out.")
    ] = None,
    edges: Annotated[
        str | None, typer.Option(help="Calibration: edges fixed beforehand: 0,0.5,0.9,1")
    ] = None,
    score: Annotated[
        str | None, typer.Option(help="Shield: running maximum of the danger. Recall: the score.")
    ] = None,
    unsafe: Annotated[
        str | None, typer.Option(help="Shield: whether the rollout has an un-recoverable state.")
    ] = None,
    final_score: Annotated[
        str | None, typer.Option(help="Shield, for the product: danger at that state.")
    ] = None,
    positive: Annotated[
        str | None, typer.Option(help="Recall: whether the row is positive.")
    ] = None,
    *,
    draw: RowDraw,
    strata: StrataOption = None,
    classes: CascadeClasses,
    labels: LabelsOption = None,
    written: WrittenOrPiped,
    counter: Counter,
    as_json: Annotated[bool, typer.Option("--json", help="Print the result for programs.")] = False,
) -> int:
    """Count one part of the data. The columns named say what for: calibration, a cascade, a
    shield or a recall; --kind abstention, where they are those of a calibration.

    `pacbound certify` adds the tallies of all parts, and certifies as if all rows had been counted
    at once.
    """
    several = "," in (prediction or "")
    named = {
        "confidence": _listed(confidence, several=several),
        "prediction": _listed(prediction, several=several),
        "correct": correct,
        "label": label,
        "groups": group,
        "n_bins": bins,
        "edges": edges_option(edges),
        "score": score,
        "positive": positive,
        "unsafe": unsafe,
        "final_score": final_score,
        **classes.options(),
        **draw.columns(),
        **draw.options(),
        "strata": strata_option(strata),
    }
    given = {role: value for role, value in named.items() if value is not None}
    with progress_bar("counting") as progress:
        total = Tally.count(
            question_for(given, "cascade" if several else kind),
            data=written.tables(files),
            **counter.options(),
            answers=labels,
            **written.options(),
            progress=progress,
            **given,
        )
    total.save(output)
    if as_json:
        print_json(
            {
                "tally": str(output),
                "kind": total.kind,
                "rows": total.rows,
                "outcomes": total.totals,
            }
        )
    else:
        typer.echo(
            f"{total}\nWritten to {output}. Add it to others and certify: pacbound certify "
            f"{output} …"
        )
    return 0


def _listed(columns: str | None, *, several: bool) -> str | list[str] | None:
    return names(columns) if columns is not None and several else columns
