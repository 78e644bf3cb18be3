"""`pacbound false-alarms`: certify the score from which alarms may be raised, so that few are
false; and, if asked, that few positives are missed at the same time.
"""

from __future__ import annotations

from typing import Annotated, Any

import typer

from pacbound.cli.about import About
from pacbound.cli.delivery import BudgetOption, OutputOption, SampleOption, deliver
from pacbound.cli.exit_codes import ending_well
from pacbound.cli.table_options import (
    Counter,
    FilesArgument,
    LabelsOption,
    RowDraw,
    WrittenOrPiped,
)
from pacbound.cli.terminal import progress_bar
from pacbound.errors import InvalidTypeError
from pacbound.false_alarms import certify_alarm_range, certify_false_alarms
from pacbound.procedures.shield import Rate


@ending_well
def false_alarms(
    files: FilesArgument,
    score: Annotated[
        str,
        typer.Option(
            help=(
                "Column with the score, 0 to 1, high = positive. Rollouts: the largest danger of "
                "each, -inf if it was lost."
            )
        ),
    ],
    xi: Annotated[
        float, typer.Option(help="The share of the negatives that may raise an alarm: 0.05")
    ],
    delta: Annotated[float, typer.Option(help="Chance that the claim is wrong: 0.01")],
    positive: Annotated[
        str | None, typer.Option(help="Column that says whether the row is positive.")
    ] = None,
    unsafe: Annotated[
        str | None,
        typer.Option(help="For rollouts, in place of --positive: has it an un-recoverable state?"),
    ] = None,
    target: Annotated[
        float | None,
        typer.Option(help="Both at once: the share of the positives that must raise an alarm."),
    ] = None,
    missed: Annotated[
        float | None,
        typer.Option(help="Both at once, rollouts: the share that may be unsafe under the shield."),
    ] = None,
    rate: Annotated[
        Rate | None,
        typer.Option(help="What --missed is a share of: all rollouts, or the unsafe ones."),
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
    """Certify the lowest score from which to raise alarms, so that at most xi of the negatives
    raise one.

    With --target, or --missed for rollouts, the misses are certified beside it: both hold at all
    thresholds of the range that is printed. Alone, this does not claim safety.
    """
    if positive is None and unsafe is None:
        raise InvalidTypeError("Name --positive, or --unsafe where rows are rollouts.")
    asked: dict[str, Any] = {"target": target, "missed": missed, "rate": rate}
    both = {name: value for name, value in asked.items() if value is not None}
    with progress_bar("counting") as progress:
        certificate = (certify_alarm_range if both else certify_false_alarms)(
            written.tables(files),
            xi=xi,
            delta=delta,
            **both,
            columns={
                "score": score,
                "positive": positive,
                "unsafe": unsafe,
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
