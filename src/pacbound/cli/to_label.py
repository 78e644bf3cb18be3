"""`pacbound to-label`: the rows of a cascade whose label matters."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from pacbound.cascade.rows import rows_to_label
from pacbound.cli.delivery import progress_bar
from pacbound.cli.exit_codes import ending_well
from pacbound.cli.options import JsonOption, Writes, names, option
from pacbound.cli.rows import FilesArgument, PipedRows
from pacbound.cli.streams import print_json


@ending_well
def to_label(
    files: FilesArgument,
    prediction: Annotated[
        str, option("Columns with each model's prediction, the slow model's last: p1,p2")
    ],
    output: Annotated[Path, option("--output", "-o", "Where the rows go."), Writes()],
    label: Annotated[
        str | None, option("Column with the true class, where some are there already.")
    ] = None,
    *,
    rows: PipedRows,
    as_json: JsonOption = False,
) -> int:
    """Write the rows of a cascade whose label matters, each with its number: those on which the
    models differ.

    A row that stays without a label counts as a loss, so it may be missing for any reason. Nothing
    is certified here: `pacbound cascade` takes the labels back with --labels.
    """
    tables = rows.tables(files)
    with progress_bar("comparing") as progress:
        needing, total = rows_to_label(
            tables,
            output,
            predictions=names(prediction),
            label=label,
            notation=rows.notation(),
            progress=progress,
        )
    if as_json:
        print_json({"rows": total, "to_label": needing, "output": str(output)})
    else:
        share = f" ({needing / total:.1%})" if total else ""
        typer.echo(
            f"{needing:,} of {total:,} rows{share} need a label; they are in {output}. Those that "
            "stay without one count as losses. Keep all rows when you certify: pacbound cascade "
            f"{' '.join(tables)} --labels {output} …"
        )
    return 0
