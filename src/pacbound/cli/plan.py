"""`pacbound plan`: how many labels a claim will take."""

from __future__ import annotations

from typing import Annotated

import typer

from pacbound.cli.exit_codes import ending_well
from pacbound.cli.terminal import print_json
from pacbound.stats.planning import trials_needed


@ending_well
def plan(
    target: Annotated[float, typer.Option(help="The rate to be certified, for example 0.02.")],
    expected: Annotated[
        float, typer.Option(help="The rate you expect in truth, below the target.")
    ],
    delta: Annotated[float, typer.Option(help="Chance that the certificate is wrong.")],
    power: Annotated[float, typer.Option(help="Chance that the certificate comes about.")] = 0.9,
    as_json: Annotated[bool, typer.Option("--json", help="Print the result for programs.")] = False,
) -> int:
    """Say how many labels it takes to certify a rate."""
    first, always = trials_needed(target, expected, delta=delta, power=power)
    if as_json:
        print_json(
            {
                "target": target,
                "expected": expected,
                "delta": delta,
                "power": power,
                "first": first,
                "always": always,
            }
        )
    else:
        typer.echo(
            f"{first:,} labels certify a rate of at most {target:g} (delta = {delta:g}) with "
            f"probability {power:g} if the true rate is {expected:g}.\nFrom {always:,} labels on, "
            "every number does. Fix the number before the first label is seen."
        )
    return 0
