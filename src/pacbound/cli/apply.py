"""`pacbound apply`: add the certified interval, or the answering model, to each row of a table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated

import typer

from pacbound.calibration import rows as calibration_rows
from pacbound.cascade import rows as cascade_rows
from pacbound.certificate import (
    CalibrationCertificate,
    CascadeCertificate,
    Certificate,
    load_certificate,
)
from pacbound.cli.exits import VERIFICATION_FAILED, complain, ending_well
from pacbound.cli.lists import names
from pacbound.cli.terminal import print_json, progress_bar
from pacbound.errors import InvalidValueError
from pacbound.sources import Progress, open_tables


@ending_well
def apply(
    certificate: Annotated[
        Path, typer.Argument(metavar="CERT", help="A calibration or cascade certificate.")
    ],
    file: Annotated[
        Path,
        typer.Argument(
            metavar="FILE",
            help="The rows: CSV, Parquet, JSON lines, Arrow, .npz, a folder or a glob.",
        ),
    ],
    output: Annotated[
        Path,
        typer.Option(
            "--output",
            "-o",
            help="Where the rows go, with columns added: .csv, .parquet, .jsonl, …",
        ),
    ],
    confidence: Annotated[
        str | None, typer.Option(help="Confidence columns, if not named as in the certificate.")
    ] = None,
    prediction: Annotated[
        str | None, typer.Option(help="Prediction columns of a cascade, if not named so.")
    ] = None,
    group: Annotated[
        str | None, typer.Option(help="Group column of a calibration, if not named so.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the result for programs.")] = False,
) -> int:
    """Add the certified interval, or the model that answers, to every row, in order.

    The certificate is verified first: one that does not follow from its own counts is not applied.
    """
    loaded = load_certificate(certificate)
    verification = loaded.verify()
    if not verification:
        complain(f"{certificate} is {verification}\nIt is not applied.")
        return VERIFICATION_FAILED
    columns = {
        **loaded.provenance.columns,
        **_given(confidence=confidence, prediction=prediction, group=group),
    }
    with progress_bar("applying") as progress:
        rows, added = _applied(loaded, file, output, columns, progress)
    if as_json:
        print_json({"rows": rows, "output": str(output), "columns": list(added)})
    else:
        typer.echo(f"{rows:,} rows written to {output} with {', '.join(added)}.")
    return 0


def _applied(
    certificate: Certificate,
    file: Path,
    output: Path,
    columns: Mapping[str, str],
    progress: Progress | None,
) -> tuple[int, Sequence[str]]:
    confidence = columns.get("confidence", "confidence")
    if isinstance(certificate, CalibrationCertificate):
        group = columns.get("group")
        rows = calibration_rows.apply_to_file(
            certificate, file, output, confidence=confidence, group=group, progress=progress
        )
        return rows, calibration_rows.ADDED
    if isinstance(certificate, CascadeCertificate):
        tables, predictions = (
            open_tables(file),
            (names(columns["prediction"]) if "prediction" in columns else None),
        )
        # In use the slow model has not run where a fast one answers, so its column may not be
        # there.
        if predictions and not set(predictions) <= set(tables[0].columns):
            predictions = None
        rows = cascade_rows.apply_to_file(
            certificate,
            file,
            output,
            confidences=names(confidence),
            predictions=predictions,
            progress=progress,
        )
        return rows, cascade_rows.ADDED if predictions else cascade_rows.ADDED[:1]
    raise InvalidValueError(
        f"A {certificate.kind} certificate is not applied to the rows of a table."
    )


def _given(**columns: str | None) -> dict[str, str]:
    return {role: name for role, name in columns.items() if name is not None}
