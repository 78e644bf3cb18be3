"""Rows to label: `pacbound stratify` chooses as many in every bin of a calibration, and `pacbound
to-label` those of a cascade whose label matters.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from pacbound.calibration.strata import Stratified, stratify_file
from pacbound.cascade.rows import rows_to_label
from pacbound.cli.delivery import progress_bar
from pacbound.cli.exit_codes import ending_well
from pacbound.cli.options import JsonOption, Writes, names, numbers, option
from pacbound.cli.rows import FilesArgument, PipedRows
from pacbound.cli.streams import print_json


@ending_well
def stratify(
    files: FilesArgument,
    confidence: Annotated[str, option("Column with the confidence of the prediction, 0 to 1.")],
    labels: Annotated[int, option("How many rows to label.")],
    output: Annotated[
        Path, option("--output", "-o", "Where the rows to label go: .csv, .parquet, …"), Writes()
    ],
    n_bins: Annotated[int, option("Number of bins of equal width.")] = 20,
    edges: Annotated[
        str | None, option("Edges fixed beforehand, in place of --n-bins: 0,0.5,0.9,1")
    ] = None,
    row_ids: Annotated[
        str | None, option("Column with a name for each row; else rows go by place.")
    ] = None,
    seed: Annotated[int, option("Key of the choice. Try only one.")] = 0,
    *,
    rows: PipedRows,
    as_json: JsonOption = False,
) -> int:
    """Choose which rows of an unlabelled pool to label: as many in every bin of confidence.

    Label them all, and certify them on the same bins: pacbound calibrate … --strata. Averages over
    these rows are not those of use.
    """
    with progress_bar("choosing") as progress:
        found = stratify_file(
            rows.tables(files),
            output,
            confidence=confidence,
            labels=labels,
            n_bins=n_bins,
            edges=None if edges is None else numbers(edges, "--edges"),
            row_ids=row_ids,
            seed=seed,
            notation=rows.notation(),
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
