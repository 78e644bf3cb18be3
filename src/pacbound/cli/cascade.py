"""`pacbound cascade`: certify the thresholds at which fast models may answer for the slow one."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Literal

import typer

from pacbound.cascade.certify import certify_cascade
from pacbound.cascade.rows import rows_to_label
from pacbound.certificate import Certificate
from pacbound.cli.about import About
from pacbound.cli.delivery import BudgetOption, OutputOption, SampleOption, deliver
from pacbound.cli.exit_codes import ending_well
from pacbound.cli.file_options import Writes
from pacbound.cli.lists import names, numbers
from pacbound.cli.table_options import (
    CascadeClasses,
    Counter,
    FilesArgument,
    LabelsOption,
    RowDraw,
    WrittenOrPiped,
)
from pacbound.cli.terminal import print_json, progress_bar
from pacbound.errors import InvalidTypeError
from pacbound.procedures.cascade import Bound
from pacbound.procedures.cascade_differ import Claim
from pacbound.procedures.cascade_groups import Shared
from pacbound.sources import Notation


@ending_well
def cascade(
    files: FilesArgument,
    prediction: Annotated[
        str,
        typer.Option(help="Columns with each model's prediction, the slow model's last: p1,p2"),
    ],
    confidence: Annotated[
        str | None, typer.Option(help="Columns with the confidence of each model but the last: c1")
    ] = None,
    label: Annotated[
        str | None,
        typer.Option(
            help="Column with the true class; may be empty in any row. Leave it out to certify "
            "without labels."
        ),
    ] = None,
    xi: Annotated[
        float | None, typer.Option(help="The accuracy that may be lost, for example 0.02.")
    ] = None,
    delta: Annotated[
        float | None, typer.Option(help="Chance that more is lost, for example 1e-3.")
    ] = None,
    claim: Annotated[
        Claim,
        typer.Option(
            help="What xi bounds: the accuracy lost; or differ, how many answers differ from the "
            "slow model's, decided beforehand and without --label."
        ),
    ] = "loss",
    cost: Annotated[
        str | None,
        typer.Option(
            help="What a row costs that each model answers, those before it included: 1,10"
        ),
    ] = None,
    bound: Annotated[
        Bound, typer.Option(help="exact, the pair of binomial bounds, or the paper's product.")
    ] = "exact",
    method: Annotated[
        Literal["paths", "greedy"],
        typer.Option(help="For more than two models; greedy is the paper's and carries no proof."),
    ] = "paths",
    group: Annotated[
        str | None,
        typer.Option(help="Column with the group of each row: xi then holds in every group."),
    ] = None,
    group_thresholds: Annotated[
        Shared | None,
        typer.Option(help="With --group: common to all groups, if left out, or own ones of each."),
    ] = None,
    to_label: Annotated[
        Path | None,
        typer.Option(help="Write the rows whose label matters here, and certify nothing."),
        Writes(),
    ] = None,
    *,
    draw: RowDraw,
    classes: CascadeClasses,
    labels: LabelsOption = None,
    written: WrittenOrPiped,
    counter: Counter,
    output: OutputOption = None,
    budget: BudgetOption = None,
    sample: SampleOption = None,
    about: About,
    as_json: Annotated[bool, typer.Option("--json", help="Print the result for programs.")] = False,
) -> int:
    """Certify the thresholds at which fast models may answer for the slow one, losing at most xi
    accuracy.

    Labels matter only where predictions differ: --to-label writes those rows. One that stays
    without a label counts as a loss, so it may be missing for any reason, and all of them may.
    With --claim differ, decided beforehand, xi bounds how many answers differ from the slow
    model's, and labels have no part in it. With --group, xi holds in every group.
    """
    if to_label is not None:
        return _write_rows_to_label(
            written.tables(files),
            names(prediction),
            label,
            to_label,
            written.notation(),
            as_json=as_json,
        )
    if confidence is None or xi is None or delta is None:
        raise InvalidTypeError(
            "Certifying needs --confidence, --xi and --delta; --to-label needs none of them."
        )
    with progress_bar("counting") as progress:
        certify: Callable[..., Certificate] = certify_cascade
        certificate = certify(
            written.tables(files),
            xi=xi,
            delta=delta,
            claim=claim,
            bound=bound,
            method=method,
            group_thresholds=group_thresholds,
            costs=None if cost is None else tuple(numbers(cost, "--cost")),
            **classes.options(),
            columns={
                "confidences": names(confidence),
                "predictions": names(prediction),
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


def _write_rows_to_label(
    files: list[str],
    predictions: list[str],
    label: str | None,
    target: Path,
    notation: Notation,
    *,
    as_json: bool,
) -> int:
    with progress_bar("comparing") as progress:
        needing, rows = rows_to_label(
            files,
            target,
            predictions=predictions,
            label=label,
            notation=notation,
            progress=progress,
        )
    if as_json:
        print_json({"rows": rows, "to_label": needing, "output": str(target)})
    else:
        share = f" ({needing / rows:.1%})" if rows else ""
        typer.echo(
            f"{needing:,} of {rows:,} rows{share} need a label; they are in {target}. Those that "
            "stay without one count as losses. Keep all rows when you certify: pacbound cascade "
            f"{' '.join(files)} --labels {target} …"
        )
    return 0
