"""`pacbound apply`: add the certified interval, the decision to answer or to flag, or the answering
model, to each row of a table.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from pacbound.abstention import rows as abstention_rows
from pacbound.atomic_files import is_standard_output
from pacbound.calibration import rows as calibration_rows
from pacbound.cascade import rows as cascade_rows
from pacbound.certificate import (
    AbstentionCertificate,
    CalibrationCertificate,
    CascadeCertificate,
    FalseAlarmCertificate,
    GroupedCascadeCertificate,
    RecallCertificate,
    load_certificate,
)
from pacbound.cli.counting import (
    WrittenOrPiped,
)
from pacbound.cli.exit_codes import VERIFICATION_FAILED, complain, ending_well
from pacbound.cli.lists import names
from pacbound.cli.terminal import json_line, progress_bar
from pacbound.errors import InvalidValueError
from pacbound.recall import rows as recall_rows
from pacbound.sources import Notation, Progress, open_tables
from pacbound.tally.questions import with_article


@ending_well
def apply(
    certificate: Annotated[
        Path,
        typer.Argument(
            metavar="CERT", help="Of a calibration, abstention, cascade, recall or false alarms."
        ),
    ],
    file: Annotated[
        str,
        typer.Argument(
            metavar="FILE",
            help=(
                "The rows: CSV, Parquet, JSON lines, Arrow, .npz, a folder, a glob, or - for "
                "standard input."
            ),
        ),
    ],
    output: Annotated[
        str,
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
        str | None, typer.Option(help="Group column, if not named as in the certificate.")
    ] = None,
    score: Annotated[
        str | None,
        typer.Option(help="Score column of a recall or of false alarms, if not named so."),
    ] = None,
    *,
    written: WrittenOrPiped,
    strict: Annotated[
        bool, typer.Option("--strict", help="Refuse rows of groups that were not certified.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the result for programs.")] = False,
) -> int:
    """Add the certified interval, the decision to answer or to flag, or the model that answers, to
    every row, in order.

    The certificate is verified first: one that does not follow from its own counts is not applied.
    A row of a group that was not certified gets [0, 1] and no estimate, is not answered, or is
    answered by the slow model.
    """
    loaded = load_certificate(certificate)
    verification = loaded.verify()
    if not verification:
        complain(f"{certificate} is {verification}\nIt is not applied.")
        return VERIFICATION_FAILED
    columns = {
        **loaded.provenance.columns,
        **_given(confidence=confidence, prediction=prediction, group=group, score=score),
    }
    (file,) = written.tables([file])
    notation = written.notation()
    with progress_bar("applying") as progress:
        if isinstance(loaded, CalibrationCertificate):
            result = _with_intervals(loaded, file, output, columns, strict, notation, progress)
        elif isinstance(loaded, AbstentionCertificate):
            result = _with_decisions(loaded, file, output, columns, strict, notation, progress)
        elif isinstance(loaded, CascadeCertificate | GroupedCascadeCertificate):
            result = _with_answers(loaded, file, output, columns, strict, notation, progress)
        elif isinstance(loaded, RecallCertificate | FalseAlarmCertificate):
            rows, flagged = recall_rows.apply_to_file(
                loaded,
                file,
                output,
                score=columns.get("score", "score"),
                notation=notation,
                progress=progress,
            )
            result = {"rows": rows, "columns": list(recall_rows.ADDED), "flagged": flagged}
        else:
            raise InvalidValueError(
                f"{with_article(loaded.kind).capitalize()} certificate is not applied to the rows "
                "of a table."
            )
    report = json_line({**result, "output": output}) if as_json else _in_words(result, output)
    # What is said must not be among the rows.
    typer.echo(report, err=is_standard_output(output))
    return 0


def _with_intervals(
    certificate: CalibrationCertificate,
    file: str,
    output: str,
    columns: Mapping[str, str],
    strict: bool,  # noqa: FBT001, RUF100
    notation: Notation,
    progress: Progress | None,
) -> dict[str, Any]:
    applied = calibration_rows.apply_to_file(
        certificate,
        file,
        output,
        confidence=columns.get("confidence", "confidence"),
        group=columns.get("group"),
        strict=strict,
        notation=notation,
        progress=progress,
    )
    return {
        "rows": applied.rows,
        "columns": list(calibration_rows.ADDED),
        "uncertified_rows": applied.uncertified_rows,
        "uncertified_groups": list(applied.uncertified_groups),
    }


def _with_decisions(
    certificate: AbstentionCertificate,
    file: str,
    output: str,
    columns: Mapping[str, str],
    strict: bool,  # noqa: FBT001, RUF100
    notation: Notation,
    progress: Progress | None,
) -> dict[str, Any]:
    applied = abstention_rows.apply_to_file(
        certificate,
        file,
        output,
        confidence=columns.get("confidence", "confidence"),
        group=columns.get("group"),
        strict=strict,
        notation=notation,
        progress=progress,
    )
    return {
        "rows": applied.rows,
        "columns": list(abstention_rows.ADDED),
        "answered": applied.answered,
        "uncertified_rows": applied.uncertified_rows,
        "uncertified_groups": list(applied.uncertified_groups),
    }


def _with_answers(
    certificate: CascadeCertificate | GroupedCascadeCertificate,
    file: str,
    output: str,
    columns: Mapping[str, str],
    strict: bool,  # noqa: FBT001, RUF100
    notation: Notation,
    progress: Progress | None,
) -> dict[str, Any]:
    predictions = names(columns["prediction"]) if "prediction" in columns else None
    # In use the slow model has not run where a fast one answers, so its column may not be there.
    if predictions and not set(predictions) <= set(open_tables(file, notation)[0].columns):
        predictions = None
    rows = cascade_rows.apply_to_file(
        certificate,
        file,
        output,
        confidences=names(columns.get("confidence", "confidence")),
        predictions=predictions,
        group=columns.get("group", "group") if _has_own_thresholds(certificate) else None,
        strict=strict,
        notation=notation,
        progress=progress,
    )
    added = cascade_rows.ADDED if predictions else cascade_rows.ADDED[:1]
    return {"rows": rows, "columns": list(added)}


def _has_own_thresholds(certificate: CascadeCertificate | GroupedCascadeCertificate) -> bool:
    return (
        isinstance(certificate, GroupedCascadeCertificate) and certificate.group_thresholds == "own"
    )


def _in_words(result: Mapping[str, Any], output: str) -> str:
    said = f"{result['rows']:,} rows written to {output} with {', '.join(result['columns'])}."
    instead = "got [0, 1]"
    if "answered" in result:
        said, instead = f"{said}\n{result['answered']:,} of them are answered.", "are not answered"
    if "flagged" in result:
        said = f"{said}\n{result['flagged']:,} of them are flagged."
    strange = result.get("uncertified_groups")
    if not strange:
        return said
    named = ", ".join(map(repr, strange[:5])) + (", …" if len(strange) > 5 else "")
    return (
        f"{said}\n{result['uncertified_rows']:,} rows of {len(strange)} groups that were not "
        f"certified {instead}: {named}."
    )


def _given(**columns: str | None) -> dict[str, str]:
    return {role: name for role, name in columns.items() if name is not None}
