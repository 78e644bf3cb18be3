"""`pacbound apply`: add the certified interval, the decision to answer or to flag, or the answering
model, to each row of a table.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from pacbound.claims.applying import AppliedRows
from pacbound.claims.certificate import Certificate
from pacbound.cli.delivery import progress_bar, say, verified_certificate
from pacbound.cli.exit_codes import ending_well
from pacbound.cli.options import ColumnOption, JsonOption, Reads, Writes, option
from pacbound.cli.rows import PipedRows, named_columns, require_roles
from pacbound.tally.row_rules import EXIT


@ending_well
def apply(
    certificate: Annotated[
        Path,
        typer.Argument(
            metavar="CERT", help="Of a calibration, abstention, cascade, recall or false alarms."
        ),
        Reads(),
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
        Reads(),
    ],
    output: Annotated[
        str,
        option(
            "--output", "-o", "Where the rows go, with columns added: .csv, .parquet, .jsonl, …"
        ),
        Writes(),
    ],
    column: ColumnOption = None,
    *,
    rows: PipedRows,
    strict: Annotated[
        bool, option("--strict", "Refuse rows of groups that were not certified.")
    ] = False,
    as_json: JsonOption = False,
) -> int:
    """Add the certified interval, the decision to answer or to flag, or the model that answers, to
    every row, in order.

    The certificate is verified first: one that does not follow from its own counts is not applied.
    A row of a group that was not certified gets [0, 1] and no estimate, is not answered, or is
    answered by the slow model. Name columns with --column if they are not named as in the
    certificate.
    """
    loaded = verified_certificate(certificate, "applied")
    columns = _columns(loaded, named_columns(column))
    (file,) = rows.tables([file])
    with progress_bar("applying") as progress:
        applied = loaded.apply_to_file(
            file, output, **columns, strict=strict, progress=progress, **rows.options()
        )
    say(_in_words(applied, output), _told(applied, output), as_json=as_json, rows_to=output)
    return 0


def _columns(certificate: Certificate, named: dict[str, str]) -> dict[str, Any]:
    """The columns that were named, and that of the groups, as `apply_to_file` takes them."""
    rule = certificate.row_rule()
    answers = ("prediction",) if EXIT in rule.added else ()
    roles = (rule.role, *answers, *(() if rule.groups is None else ("groups",)))
    require_roles(named, roles, f"applying this {certificate.kind} certificate")
    group = named.pop("groups", certificate.provenance.columns.get("groups"))
    return {**named, **({} if rule.groups is None else {"group": group})}


def _told(applied: AppliedRows, output: str) -> dict[str, Any]:
    return {
        "rows": applied.rows,
        "columns": list(applied.columns),
        **applied.counts,
        "uncertified_rows": applied.uncertified_rows,
        "uncertified_groups": list(applied.uncertified_groups),
        "output": output,
    }


def _in_words(applied: AppliedRows, output: str) -> str:
    lines = [f"{applied.rows:,} rows written to {output} with {', '.join(applied.columns)}."]
    lines += [f"{count:,} of them are {what}." for what, count in applied.counts.items()]
    strange = applied.uncertified_groups
    if strange:
        named = ", ".join(map(repr, strange[:5])) + (", …" if len(strange) > 5 else "")
        lines.append(
            f"{applied.uncertified_rows:,} rows of {len(strange)} groups that were not certified "
            f"{applied.others}: {named}."
        )
    return "\n".join(lines)
