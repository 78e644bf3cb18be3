"""`pacbound to-label`: write the rows of a cascade whose label matters."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from pacbound.cascade.rows import rows_to_label
from pacbound.cli.exit_codes import ending_well
from pacbound.cli.file_options import Writes
from pacbound.cli.lists import names
from pacbound.cli.table_options import FilesArgument, WrittenOrPiped
from pacbound.cli.terminal import print_json, progress_bar


@ending_well
def to_label(
    files: FilesArgument,
    prediction: Annotated[
        str, typer.Option(help="Columns with each model's prediction, the slow model's last: p1,p2")
    ],
    output: Annotated[Path, typer.Option("--output", "-o", help="Where the rows go."), Writes()],
    label: Annotated[
        str | None, typer.Option(help="Column with the true class, where some are there already.")
    ] = None,
    *,
    written: WrittenOrPiped,
    as_json: Annotated[bool, typer.Option("--json", help="Print the result for programs.")] = False,
) -> int:
    """Write the rows of a cascade whose label matters, each with its number: those on which the
    models differ.

    A row that stays without a label counts as a loss, so it may be missing for any reason. Nothing
    is certified here: `pacbound cascade` takes the labels back with --labels.
    """
    tables = written.tables(files)
    with progress_bar("comparing") as progress:
        needing, rows = rows_to_label(
            tables,
            output,
            predictions=names(prediction),
            label=label,
            notation=written.notation(),
            progress=progress,
        )
    if as_json:
        print_json({"rows": rows, "to_label": needing, "output": str(output)})
    else:
        share = f" ({needing / rows:.1%})" if rows else ""
        typer.echo(
            f"{needing:,} of {rows:,} rows{share} need a label; they are in {output}. Those that "
            "stay without one count as losses. Keep all rows when you certify: pacbound cascade "
            f"{' '.join(tables)} --labels {output} …"
        )
    return 0
