"""`pacbound certify`: add tallies that were counted apart, and certify their sum."""

from __future__ import annotations

from functools import reduce
from operator import add
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from pacbound.certificate import (
    CalibrationCertificate,
    CascadeCertificate,
    Certificate,
    ShieldCertificate,
)
from pacbound.cli.delivery import deliver
from pacbound.cli.exits import ending_well
from pacbound.cli.lists import numbers
from pacbound.errors import CertificateError, InvalidTypeError, InvalidValueError
from pacbound.procedures.calibration import Correction, Side
from pacbound.stats.arguments import failure_probability
from pacbound.tally import Tally

KINDS: dict[str, type[CalibrationCertificate | CascadeCertificate | ShieldCertificate]] = {
    "calibration": CalibrationCertificate,
    "cascade": CascadeCertificate,
    "shield": ShieldCertificate,
}
TAKES = {
    "calibration": {"correction", "side"},
    "cascade": {"xi", "bound", "method", "cost"},
    "shield": {"xi", "bound"},
}
"""The options that each kind has beside delta."""


@ending_well
def certify(
    tallies: Annotated[
        list[Path],
        typer.Argument(metavar="TALLY...", help="What `pacbound tally` wrote, one for each part."),
    ],
    delta: Annotated[float, typer.Option(help="Chance that the claim is wrong, for example 0.01.")],
    xi: Annotated[
        float | None,
        typer.Option(help="Cascade: the accuracy that may be lost. Shield: the unsafe share."),
    ] = None,
    cost: Annotated[
        str | None, typer.Option(help="Cascade: what a row costs that each model answers: 1,10")
    ] = None,
    bound: Annotated[
        Literal["exact", "pair", "product"] | None,
        typer.Option(help="Cascade and shield: exact if left out."),
    ] = None,
    method: Annotated[
        Literal["paths", "greedy"] | None,
        typer.Option(help="Cascade of more than two models: paths if left out."),
    ] = None,
    correction: Annotated[
        Correction | None, typer.Option(help="Calibration: how delta is shared among the bins.")
    ] = None,
    side: Annotated[
        Side | None, typer.Option(help="Calibration: certify both ends, or one of them.")
    ] = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Where the certificate goes.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the result for programs.")] = False,
) -> int:
    """Add tallies of parts of the data and certify their sum: the same certificate as from all rows
    at once.

    Each part counts once: a tally that holds rows of another one again is refused.
    """
    failure_probability(delta)
    total = reduce(add, map(_loaded, tallies))
    given = {
        "xi": xi,
        "cost": cost,
        "bound": bound,
        "method": method,
        "correction": correction,
        "side": side,
    }
    return deliver(
        _certified(
            total, delta, {name: value for name, value in given.items() if value is not None}
        ),
        output,
        as_json=as_json,
    )


def _loaded(path: Path) -> Tally:
    try:
        return Tally.load(path)
    except CertificateError as error:
        message = str(error)
        raise CertificateError(message if str(path) in message else f"{path}: {message}") from None


def _certified(tally: Tally, delta: float, options: dict[str, Any]) -> Certificate:
    if tally.kind not in KINDS:
        raise InvalidValueError(
            f"A tally for {tally.kind} is certified by no command yet: expected {', '.join(KINDS)}."
        )
    unknown = options.keys() - TAKES[tally.kind]
    if unknown:
        raise InvalidTypeError(
            f"--{min(unknown)} says nothing about a {tally.kind}, which is what these tallies are "
            "for: leave it out."
        )
    if "xi" in TAKES[tally.kind] and "xi" not in options:
        raise InvalidTypeError(
            f"These tallies are for a {tally.kind}, which needs --xi: the rate that is allowed."
        )
    if "cost" in options:
        options["costs"] = tuple(numbers(options.pop("cost"), "--cost"))
    return KINDS[tally.kind].from_tally(tally, delta=delta, **options)
