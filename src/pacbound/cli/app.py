"""The verbs of `pacbound`, put together."""

from __future__ import annotations

from typing import Annotated

import typer

from pacbound.cli.abstain import abstain
from pacbound.cli.apply import apply
from pacbound.cli.batch import batch
from pacbound.cli.calibrate import calibrate
from pacbound.cli.cascade import cascade
from pacbound.cli.certify import certify
from pacbound.cli.cost import cost
from pacbound.cli.demo import demo
from pacbound.cli.design import design
from pacbound.cli.label import label
from pacbound.cli.monitor import monitor
from pacbound.cli.plan import plan
from pacbound.cli.recall import recall
from pacbound.cli.shield import shield
from pacbound.cli.stratify import stratify
from pacbound.cli.tally import tally
from pacbound.cli.verify import verify
from pacbound.version import VERSION

app = typer.Typer(
    name="pacbound",
    help="Provable guarantees on what a trained classifier says.",
    epilog=(
        "Exit codes: 0 certified or verified, 1 not verified or the alarm rang, 2 bad usage or "
        "data, 3 refused, 70 a bug, 130 interrupted, 128 + n ended by signal n."
    ),
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)

VERBS = (
    calibrate,
    abstain,
    cascade,
    label,
    design,
    cost,
    batch,
    shield,
    recall,
    tally,
    certify,
    stratify,
    apply,
    verify,
    monitor,
    plan,
    demo,
)
for _verb in VERBS:
    app.command()(_verb)


def _show_version(wanted: bool) -> None:  # noqa: FBT001, RUF100
    if wanted:
        typer.echo(f"pacbound {VERSION}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_show_version, is_eager=True, help="Print the version and exit."
        ),
    ] = False,
) -> None:
    """Provable guarantees on what a trained classifier says."""
