"""`pacbound stratify`: choose the rows to label, so that every bin of a calibration is narrow."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from pacbound.calibration.strata import Stratified, stratify_file
from pacbound.cli.exit_codes import ending_well
from pacbound.cli.file_options import Writes
from pacbound.cli.lists import numbers
from pacbound.cli.table_options import (
    FilesArgument,
    WrittenOrPiped,
)
from pacbound.cli.terminal import print_json, progress_bar


@ending_well
def stratify(
    files: FilesArgument,
    confidence: Annotated[
        str, typer.Option(help="Column with the confidence of the prediction, 0 to 1.")
    ],
    labels: Annotated[int, typer.Option(help="How many rows to label.")],
    output: Annotated[
        Path,
        typer.Option("--output", "-o", help="Where the rows to label go: .csv, .parquet, …"),
        Writes(),
    ],
    n_bins: Annotated[int, typer.Option(help="Number of bins of equal width.")] = 20,
    edges: Annotated[
        str | None, typer.Option(help="Edges fixed beforehand, in place of --n-bins: 0,0.5,0.9,1")
    ] = None,
    row_ids: Annotated[
        str | None, typer.Option(help="Column with a name for each row; else rows go by place.")
    ] = None,
    seed: Annotated[int, typer.Option(help="Key of the choice. Try only one.")] = 0,
    *,
    written: WrittenOrPiped,
    as_json: Annotated[bool, typer.Option("--json", help="Print the result for programs.")] = False,
) -> int:
    """Choose which rows of an unlabelled pool to label: as many in every bin of confidence.

    Label them all, and certify them on the same bins: pacbound calibrate … --strata. Averages over
    these rows are not those of use.
    """
    with progress_bar("choosing") as progress:
        found = stratify_file(
            written.tables(files),
            output,
            confidence=confidence,
            labels=labels,
            n_bins=n_bins,
            edges=None if edges is None else numbers(edges, "--edges"),
            row_ids=row_ids,
            seed=seed,
            notation=written.notation(),
            progress=progress,
        )
    if as_json:
        counts = {"pool": found.pool.tolist(), "to_label": found.chosen.tolist()}
        print_json({**counts, "seed": seed, "output": str(output)})
    else:
        typer.echo(_in_words(found, output, edges or str(n_bins)))
    return 0


def _in_words(found: Stratified, output: Path, strata: str) -> str:
    begin, end = found.bins.bounds
    held = [place for place, rows in enumerate(found.pool.tolist()) if rows]
    lines = [
        f"  ({begin[place]:g}, {end[place]:g}]: {found.chosen[place]:,} of {found.pool[place]:,}"
        for place in held
    ]
    option = "--edges" if "," in strata else "--n-bins"
    return "\n".join(
        [
            f"{int(found.chosen.sum()):,} of {int(found.pool.sum()):,} rows to label are in "
            f"{output}, per bin:",
            *lines,
            f"Label every one of them, then: pacbound calibrate {output} {option} {strata} "
            f"--strata {strata} …",
        ]
    )
