"""`pacbound shield`: certify the danger at which a policy must hand over to its backup."""

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
    RowDraw,
    WrittenOrPiped,
)
from pacbound.cli.terminal import progress_bar
from pacbound.procedures.shield import Bound, Rate
from pacbound.shield.certify import certify_shield
from pacbound.shield.task_record import about_task, common_task


@ending_well
def shield(
    files: FilesArgument,
    score: Annotated[
        str,
        typer.Option(
            help=(
                "Column with the running maximum of the danger, 0 to 1; -inf if lost at the start."
            )
        ),
    ],
    unsafe: Annotated[
        str, typer.Option(help="Column that says whether the rollout has an un-recoverable state.")
    ],
    xi: Annotated[
        float, typer.Option(help="The share of the rollouts that may be unsafe, for example 0.1.")
    ],
    delta: Annotated[float, typer.Option(help="Chance that more are, for example 0.01.")],
    bound: Annotated[Bound, typer.Option(help="exact, or the paper's product.")] = "exact",
    rate: Annotated[
        Rate, typer.Option(help="What xi is a share of: all rollouts, or the unsafe ones.")
    ] = "all",
    horizon: Annotated[
        int | None,
        typer.Option(
            help=(
                "The most steps of a rollout, which then stands in the claim; as the file says, "
                "if it is an .npz of `Rollouts.save`."
            ),
            min=1,
        ),
    ] = None,
    final_score: Annotated[
        str | None,
        typer.Option(
            help="For the product: column with the danger at the first un-recoverable state."
        ),
    ] = None,
    looks: Annotated[
        str | None,
        typer.Option(
            help=(
                "The planned numbers of rollouts, one of which this is: 500,1000,2000. Fixed "
                "before the first rollout."
            )
        ),
    ] = None,
    *,
    draw: RowDraw,
    written: WrittenOrPiped,
    counter: Counter,
    output: OutputOption = None,
    budget: BudgetOption = None,
    sample: SampleOption = None,
    about: About,
    as_json: Annotated[bool, typer.Option("--json", help="Print the result for programs.")] = False,
) -> int:
    """Certify the danger at which a policy must hand over, so that at most xi of the rollouts are
    unsafe.

    The table has a row for each rollout of the policy without the shield. Every one that was
    started counts: one that was lost is unsafe at -inf.
    """
    said, task = about.told(), common_task(files)
    with progress_bar("counting") as progress:
        certificate = certify_shield(
            written.tables(files),
            xi=xi,
            delta=delta,
            bound=bound,
            looks=None if looks is None else whole_numbers(looks, "--looks"),
            rate=rate,
            horizon=task.get("horizon") if horizon is None else horizon,
            columns={
                "scores": score,
                "unsafe": unsafe,
                "final_scores": final_score,
                **draw.columns(),
            },
            **draw.options(),
            **counter.options(),
            **written.options(),
            progress=progress,
            about={**about_task(task), **said},
            sample=sample,
        )
    return deliver(certificate, output, as_json=as_json, budget=budget)
