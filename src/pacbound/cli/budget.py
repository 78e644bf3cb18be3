"""`pacbound budget`: begin a budget of delta, and show what is spent of it, and on what."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from pacbound.claims.budget import Budget, SpentOnSample
from pacbound.claims.provenance import sample_name
from pacbound.cli.exit_codes import ending_well
from pacbound.cli.options import JsonOption, option
from pacbound.cli.streams import print_json
from pacbound.documents import Json, printable
from pacbound.errors import InvalidValueError
from pacbound.says import exact


@ending_well
def budget(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="The budget.")],
    delta: Annotated[
        float | None, option("To begin one: what all claims on one sample may spend, say 0.05.")
    ] = None,
    sample: Annotated[
        str | None, typer.Option(metavar="NAME", help="Show what counts for this sample alone.")
    ] = None,
    as_json: JsonOption = False,
) -> int:
    """Show what is spent of a budget, on which samples and for which claims, and what is left; with
    --delta, begin one.

    Every command that certifies takes --budget FILE: it spends before it saves or shows anything,
    and ends with exit code 2 if too little is left. All claims are added up, unless both name
    their sample (--sample), and differently.
    """
    if delta is None and not file.exists():
        raise InvalidValueError(f"There is no budget {file}: begin one with --delta.")
    named = sample_name(sample)
    kept = Budget(file, delta=delta)
    parts = kept.by_sample() if named is None else (kept.on_sample(named),)
    if as_json:
        print_json({"budget": str(file), "delta": kept.delta, "samples": list(map(_listed, parts))})
        return 0
    typer.echo(f"Budget of delta = {exact(kept.delta)} for all claims on one sample: {file}")
    for part in parts:
        typer.echo(f"\n{_head(part)}: {exact(part.spent)} spent, {exact(part.left)} left")
        for look in part.looks:
            known = f" ({look.claim[:19]}…)" if look.claim else ""
            typer.echo(f"  {exact(look.delta):>10}  {printable(look.what)}{known}")
    if not parts:
        typer.echo("Nothing is spent.")
    return 0


def _head(part: SpentOnSample) -> str:
    if not part.samples:
        return "claims that name no sample, and count for every one"
    names = ", ".join(repr(printable(name)) for name in part.samples)
    return f"sample {names}" if len(part.samples) == 1 else f"samples {names}, the same rows"


def _listed(part: SpentOnSample) -> dict[str, Json]:
    return {
        "samples": list(part.samples),
        "spent": part.spent,
        "left": part.left,
        "claims": [
            {"delta": look.delta, "what": look.what, "claim_digest": look.claim}
            for look in part.looks
        ],
    }
