"""`pacbound judge`: how far a judge's verdicts may be trusted, by people's labels."""

from __future__ import annotations

from typing import Annotated

import typer

from pacbound.claims.bundle import CertificateBundle
from pacbound.claims.judge import certify_judge, labels_needed
from pacbound.cli.delivery import (
    AboutOption,
    BudgetOption,
    OutputOption,
    about_of,
    deliver,
    progress_bar,
)
from pacbound.cli.exit_codes import ending_well
from pacbound.cli.options import JsonOption, option
from pacbound.cli.rows import CLASSES, COUNTED, DRAWN, GRADED, PIPED, FilesArgument, RowChoices

# The bounds that people are told the price of: so far apart.
_WIDTH = 0.1


@ending_well
def judge(
    files: FilesArgument,
    verdict: Annotated[str, option("Column: the judge's verdict on each row.")],
    delta: Annotated[float, option("The chance that any of the claims is wrong: 0.05")],
    label: Annotated[
        str | None, option("Column: what people say of each row, in the same classes.")
    ] = None,
    quality: Annotated[
        str | None,
        option("Column: how good people find each verdict, graded from 0 to 1; in place of label."),
    ] = None,
    confidence: Annotated[
        str | None, option("Column: how sure the judge is, from 0 to 1; with --xi.")
    ] = None,
    xi: Annotated[
        float | None,
        option("The share of the verdicts that may be wrong where they stand: 0.1"),
    ] = None,
    groups: Annotated[
        str | None, option("Column: the slice of each row, such as its language.")
    ] = None,
    *,
    rows: Annotated[RowChoices, (*CLASSES, *GRADED, *DRAWN, "labels", *PIPED, *COUNTED, "sample")],
    output: OutputOption = None,
    budget: BudgetOption = None,
    about: AboutOption = None,
    as_json: JsonOption = False,
) -> int:
    """Certify how often a judge is right, and the confidence from which its verdict may stand.

    Of a table with a judge's verdicts and people's labels: bounds on the rate at which each verdict
    is right, the same for each slice, and the confidence from which at most xi of the verdicts are
    wrong. All claims hold at once, in one certificate, which show, report, verify and monitor take.

    Exit code 0: certified. 3: no confidence is high enough, or only in some slices.
    """
    options = {**rows.options(), "about": about_of(about) or None}
    tables = rows.tables(files)
    with progress_bar("counting") as progress:
        bundle = certify_judge(
            verdict,
            label,
            confidence,
            quality=quality,
            delta=delta,
            xi=xi,
            groups=groups,
            data=tables,
            **options,
            progress=progress,
        )
    if not as_json:
        typer.echo(_labels(bundle))
    return deliver(bundle, output, as_json=as_json, budget=budget)


def _labels(bundle: CertificateBundle) -> str:
    """About how many labels would narrow the bounds on each verdict."""
    needed = labels_needed(bundle, _WIDTH)
    listed = [f"{name} about {need:,} (there are {had:,})" for name, (had, need) in needed.items()]
    return f"Labels, estimated, for bounds at most {_WIDTH:.0%} apart: {', '.join(listed)}.\n"
