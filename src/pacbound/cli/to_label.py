"""`--to-label` of the commands that certify: the rows whose label could still change the verdict go
out in a file, and come back by `--labels`.

Of the file that people fill in, the columns of labels are empty, and the last one says which row it
is (`pacbound.tally.row_ids`). What the models say is hidden unless it is asked for: whoever sees an
answer is not asked the same question.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from inspect import Parameter
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from numpy.typing import NDArray

from pacbound.claims.certificate import Certificate
from pacbound.claims.claim import Claim, ToLabel
from pacbound.cli.options import ROWS, Reads, Writes, names
from pacbound.cli.rows import RowChoices
from pacbound.errors import InvalidTypeError, InvalidValueError
from pacbound.sources.rewriting import write_rows
from pacbound.tally.joined_tables import rows_to_ask
from pacbound.tally.returned_labels import identified, open_answers
from pacbound.tally.row_ids import ID, Returned

_OPTIONS: dict[str, tuple[Any, str, tuple[Any, ...]]] = {
    "to_label": (
        Path,
        "Write the rows whose label could still change the verdict to this file, the most useful "
        "first, without the models' answers.",
        (Writes(),),
    ),
    "count": (int, "With --to-label: at most so many rows; all of them if left out.", ()),
    "show": (
        str,
        "With --to-label: the columns that a labeller sees, text,image; if left out, all but those "
        "of the models and the label.",
        (),
    ),
    "handed_out": (
        list[Path],
        "With --to-label: a file of rows that somebody else has; they are not written again. May "
        "be repeated.",
        (Reads(),),
    ),
}


def label_options() -> list[Parameter]:
    """The options of a command that asks for labels."""
    return [
        Parameter(
            name,
            Parameter.KEYWORD_ONLY,
            annotation=Annotated[
                kind | None, typer.Option(help=says, rich_help_panel=ROWS), *marks
            ],
            default=None,
        )
        for name, (kind, says, marks) in _OPTIONS.items()
    ]


def require_askable(given: Mapping[str, Any]) -> bool:
    """Whether rows are asked for; raises if other options say how, or if their file is there."""
    target = given.get("to_label")
    if target is None:
        more = next((name for name in _OPTIONS if given.get(name) is not None), None)
        if more is not None:
            option = more.replace("_", "-")
            raise InvalidTypeError(f"--{option} is about the rows that --to-label writes: pass it.")
        return False
    if target.exists():
        raise InvalidValueError(
            f"--to-label {target} is there, and may hold labels: take them in with --labels "
            f"{target}, and name another file."
        )
    if given["count"] is not None and given["count"] < 1:
        raise InvalidValueError(f"--count {given['count']}: expected at least 1 row.")
    return True


def with_labels(options: dict[str, Any], columns: Mapping[str, Any]) -> dict[str, Any]:
    """The options about rows of which some are asked for: columns of grades need not be there as
    long as none came back.
    """
    if columns.get("quality") is not None and options.get("id") is None:
        options.setdefault("answers", Returned(None))
    return options


def ask_for_labels(
    claim: Claim[Any],
    certificate: Certificate,
    columns: Mapping[str, Any],
    tables: list[str],
    rows: RowChoices,
    given: Mapping[str, Any],
) -> None:
    """Write the rows whose label could still change the verdict, and say what to do with them."""
    options = with_labels(rows.options(), columns)
    options.pop("sample", None)
    found = claim.rows_to_label(certificate, columns, tables, options)
    out = _handed_out(given["handed_out"] or (), found, rows)
    chosen = found.rows[~np.isin(found.rows, out)][: given["count"]]
    target = given["to_label"]
    if not len(chosen):
        left = f" but for the {len(out):,} that are handed out" if len(out) else ""
        typer.echo(
            f"No further label can change the verdict{left}: {target} is not written.\n", err=True
        )
        return
    written = rows_to_ask(
        tables,
        chosen,
        found.fill,
        shown=None if given["show"] is None else names(given["show"]),
        hidden=_hidden(columns),
        by=options.get("id"),
        where=options.get("where"),
        notation=rows.notation(),
    )
    written[ID] = [found.ids.of(row) for row in chosen.tolist()]
    write_rows(target, written, tables, rows.notation())
    files = "".join(f" --labels {file}" for file in (rows.typed.get("labels") or ()))
    typer.echo(
        f"The labels of {len(found.rows):,} of {certificate.n:,} rows are missing and could still "
        f"change the verdict. {len(chosen):,} of them are in {target}, the most useful first: fill "
        f"in {' and '.join(found.fill)} of all or some, leave {ID} as it is, and repeat the "
        f"command with{files} --labels {target}.\n",
        err=True,
    )


def _hidden(columns: Mapping[str, Any]) -> set[str]:
    """What the models say, and what is known of the truth; whoever grades sees the answers."""
    found: set[str] = set()
    graded = columns.get("quality") is not None
    for role in ("confidence", "label", "quality", *([] if graded else ["prediction"])):
        named = columns.get(role)
        found |= {named} if isinstance(named, str) else set(named or ())
    return found


def _handed_out(files: Sequence[Path], found: ToLabel, rows: RowChoices) -> NDArray[np.int64]:
    """The rows that somebody has already."""
    out = [np.zeros(0, dtype=np.int64)]
    for table in open_answers(list(files), rows.notation()) if files else ():
        for batch in table.batches([ID]):
            numbers, ids = identified(batch)
            strange = found.ids.strange(ids)
            if strange:
                raise InvalidValueError(
                    f"{table.path} holds {strange[0]}, which is no row of this table and question."
                )
            out.append(numbers)
    return np.unique(np.concatenate(out))
