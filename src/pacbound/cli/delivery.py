"""Handing a certificate over: to its file, and to whoever reads the output."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from pacbound.claims.budget import Budget
from pacbound.claims.certificate import Certificate
from pacbound.cli.exit_codes import REFUSED, decided
from pacbound.cli.file_options import Writes
from pacbound.cli.option_groups import RESULT
from pacbound.cli.terminal import print_json
from pacbound.errors import InvalidValueError

BudgetOption = Annotated[
    Path | None,
    typer.Option(
        help=(
            "A budget of delta, as `pacbound budget` begins it: a claim that would overspend is "
            "neither saved nor shown."
        ),
        rich_help_panel=RESULT,
    ),
    Writes(is_locked=True),
]
OutputOption = Annotated[
    Path | None,
    typer.Option("--output", "-o", help="Where the certificate goes."),
    Writes(),
]

SampleOption = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        help=(
            "What these rows are called: a budget adds up the claims on rows of one name, and "
            "those that name none count for all."
        ),
        rich_help_panel=RESULT,
    ),
]


def deliver(
    certificate: Certificate, output: Path | None, *, as_json: bool, budget: Path | None = None
) -> int:
    """Save and print `certificate`; the exit code says whether it is certified or refused.

    What it spends is taken from the `budget` first: one that overspends is neither saved nor shown.
    A share of no rows at all is bad data, as a table without rows is.
    """
    silent = certificate.says_nothing()
    if silent is not None:
        raise InvalidValueError(silent)
    if budget is not None:
        Budget(budget).spend(certificate)
    code = decided(0 if certificate.certified else REFUSED)
    if output is not None:
        certificate.save(output)
    if as_json:
        print_json(
            {"certificate": None if output is None else str(output), **certificate.to_dict()}
        )
    else:
        typer.echo(certificate.summary())
        if output is not None:
            typer.echo(
                f"\nWritten to {output} ({certificate.claim_digest[:19]}…). Check it any time: "
                f"pacbound verify {output}"
            )
    return code
