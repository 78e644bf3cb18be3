"""`pacbound budget`: begin a budget of delta, and show what is spent of it, and on what."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from pacbound.certificate import Budget
from pacbound.certificate.document import exact
from pacbound.cli.exit_codes import ending_well
from pacbound.cli.terminal import print_json
from pacbound.errors import InvalidValueError


@ending_well
def budget(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="The budget.")],
    delta: Annotated[
        float | None,
        typer.Option(help="To begin one: what all claims on the same rows may spend, say 0.05."),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the result for programs.")] = False,
) -> int:
    """Show what is spent of a budget, on which rows and for which claims, and what is left; with
    --delta, begin one.

    Every command that certifies takes --budget FILE: it spends before it saves or shows anything,
    and ends with exit code 2 if too little is left.
    """
    if delta is None and not file.exists():
        raise InvalidValueError(f"There is no budget {file}: begin one with --delta.")
    kept = Budget(file, delta=delta)
    rows = kept.by_source()
    if as_json:
        print_json(
            {
                "budget": str(file),
                "delta": kept.delta,
                "rows": [
                    {
                        "source": part.source,
                        "spent": part.spent,
                        "left": part.left,
                        "claims": [
                            {"delta": look.delta, "what": look.what, "counts_digest": look.claim}
                            for look in part.looks
                        ],
                    }
                    for part in rows
                ],
            }
        )
        return 0
    typer.echo(f"Budget of delta = {exact(kept.delta)} for the claims on the same rows: {file}")
    for part in rows:
        typer.echo(
            f"\nrows {part.source[:19]}…: {exact(part.spent)} spent, {exact(part.left)} left"
        )
        for look in part.looks:
            known = f" ({look.claim[:19]}…)" if look.claim else ""
            typer.echo(f"  {exact(look.delta):>10}  {look.what or 'a claim'}{known}")
    if not rows:
        typer.echo("Nothing is spent.")
    return 0
