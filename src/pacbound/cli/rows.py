"""The options about rows: how tables are written, what counts them, which classes there are, how
rows are drawn, and what their columns are called: `--column ROLE=NAME`, with the roles of the
command that certifies.

They are those of `pacbound.tally.row_options`. A command takes some of them as one argument of type
`RowChoices`, and shows them in a panel of their own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from inspect import Parameter, Signature, signature
from typing import TYPE_CHECKING, Annotated, Any, get_args, get_origin, get_type_hints

import typer

from pacbound.atomic_files import STANDARD_INPUT
from pacbound.cli.options import ROWS, Reads, names, numbers
from pacbound.errors import InvalidTypeError, InvalidValueError
from pacbound.sources.notation import Notation
from pacbound.tally.row_options import POSITIVE as POSITIVE_CLASS
from pacbound.tally.row_options import ROWS as DECLARED

if TYPE_CHECKING:
    from pacbound.claims.certificate import Certificate

# Columns that are not read once another one is named.
_INSTEAD = {
    "correct": ("prediction", "label", "quality"),
    "prediction": ("correct", "loss"),
    "label": ("correct", "loss", "quality", "preferred"),
    "quality": ("correct", "label", "loss", "preferred"),
    "preferred": ("label", "loss", "quality"),
    "loss": ("confidence", "prediction", "label"),
}


def files_argument(more: str = "") -> Any:
    """The tables that a command reads; `more` is said of them at the end."""
    text = (
        "CSV, Parquet, JSON lines, Arrow, .npz, a folder, a quoted glob, or - for standard input; "
        f"all of them are counted together.{more}"
    )
    return Annotated[list[str], typer.Argument(metavar="FILE...", help=text), Reads()]


FilesArgument = files_argument()


@dataclass(frozen=True)
class RowChoices:
    """What was typed of the options about rows, by name."""

    typed: Mapping[str, Any]

    def options(self) -> dict[str, Any]:
        """What was typed, as the verbs take it."""
        parsed: dict[str, Any] = {
            "classes": names,
            "missing": names,
            "quality_scale": lambda text: numbers(text, "--quality-scale"),
        }
        return {
            "answers" if name == "labels" else name: parsed.get(name, lambda it: it)(value)
            for name, value in self.typed.items()
            if name != "format" and value is not None and value is not False
        }

    def notation(self) -> Notation:
        """How the tables are written."""
        return Notation.of(**{name: self.typed[name] for name in WRITTEN})

    def scaled(self, scale: float | str | None) -> RowChoices:
        """The same with this scale, which may have been kept as text."""
        try:
            number = None if scale is None else float(scale)
        except ValueError:
            raise InvalidValueError(f"scale={scale!r} was kept, and is not a number.") from None
        return RowChoices({**self.typed, "scale": number})

    def tables(self, files: Sequence[str]) -> list[str]:
        """The files, with one that holds standard input in the place of -."""
        found = self.typed["format"]
        if found is not None and STANDARD_INPUT not in files:
            raise InvalidTypeError(
                "--format says what comes in over standard input, and - is not among the files: "
                "leave it out."
            )
        if list(files).count(STANDARD_INPUT) > 1:
            raise InvalidValueError("- is named twice, and standard input comes only once.")
        if STANDARD_INPUT not in files:
            return list(files)
        from pacbound.sources.standard_input import standard_input  # noqa: PLC0415

        held = str(standard_input(found))
        return [held if file == STANDARD_INPUT else file for file in files]


WRITTEN = ("delimiter", "decimal", "scale")
PIPED = (*WRITTEN, "format")
COUNTED = ("engine", "master", "memory_limit")
CLASSES = ("classes", "missing", "unseen_labels")
POSITIVE = ("positive_class", "classes")
RELATED = (*CLASSES, "unrelated_labels")
GRADED = ("quality_scale", "graded_by")
CLUSTERED = ("clusters", "cluster_bound", "row_ids")
DRAWN = (*CLUSTERED[:2], "weights", "weight_bound", "row_ids", "seed")
PipedRows = Annotated[RowChoices, PIPED]

_OWN: dict[str, Any] = {
    "format": typer.Option(
        help="With -: csv, tsv, jsonl, parquet, arrow or npz, if its first bytes do not say it."
    ),
    "labels": typer.Option(
        help="A file of labels that came back, filled in where --to-label left a column empty, and "
        "joined to the rows by its column pac_id. May be repeated."
    ),
    "sample": typer.Option(
        metavar="NAME",
        help="A name for these rows: the deltas of all claims about the same rows add up.",
    ),
    "unrelated_labels": typer.Option("--unrelated-labels", help=DECLARED["unrelated_labels"].help),
}
_READ = {"labels": list[str], "sample": str, "format": str}


def _declared(name: str) -> Any:
    row = DECLARED[name]
    return typer.Option(help=f"Column: {row.help}" if row.column else row.help)


def _option(name: str) -> Parameter:
    """The option of a name, as typer reads it."""
    shown = _OWN.get(name) or _declared(name)
    shown.rich_help_panel = ROWS
    kind = _READ.get(name) or DECLARED[name].option
    marks = [Reads()] if name == "labels" else []
    default = False if kind is bool else None
    hint: Any = Annotated[kind if kind is bool else kind | None, shown, *marks]
    return Parameter(name, Parameter.KEYWORD_ONLY, annotation=hint, default=default)


def _names_of(hint: Any) -> tuple[str, ...] | None:
    """Which options about rows an annotation stands for; None if it is another one."""
    is_rows = get_origin(hint) is Annotated and get_args(hint)[0] is RowChoices
    return get_args(hint)[1] if is_rows else None


def shown_options(command: Callable[..., Any]) -> list[Parameter]:
    """The parameters of a command as typer is to see them: all options about rows by themselves."""
    hints, shown = get_type_hints(command, include_extras=True), []
    for parameter in signature(command).parameters.values():
        of_rows = _names_of(hints[parameter.name])
        if of_rows is None:
            shown.append(parameter.replace(annotation=hints[parameter.name]))
        else:
            shown += map(_option, of_rows)
    return shown


def gathered(command: Callable[..., Any], given: Mapping[str, Any]) -> dict[str, Any]:
    """What was given as the command takes it: the options about rows as `RowChoices`."""
    passed = dict(given)
    for name, hint in get_type_hints(command, include_extras=True).items():
        of_rows = _names_of(hint)
        if of_rows is not None:
            passed[name] = RowChoices({option: passed.pop(option) for option in of_rows})
    return passed


def with_options(run: Any, shown: Sequence[Parameter]) -> Callable[..., Any]:
    """The function, as if it had been written with these parameters."""
    run.__signature__ = Signature(shown)
    run.__annotations__ = {parameter.name: parameter.annotation for parameter in shown}
    made: Callable[..., Any] = run
    return made


def named_columns(pairs: Sequence[str] | None) -> dict[str, str]:
    """The columns by their roles, as they were typed."""
    found: dict[str, str] = {}
    for pair in pairs or ():
        role, _, column = pair.partition("=")
        if not role or not column:
            raise InvalidValueError(
                f"--column {pair} names no column: expected ROLE=NAME, for example score=risk."
            )
        if role in found:
            raise InvalidValueError(
                f"--column names {role} twice, {found[role]} and {column}: name it once. Several "
                f"columns of one role have commas between them: {role}={found[role]},{column}"
            )
        found[role] = column
    return found


def require_roles(named: Mapping[str, str], roles: Iterable[str], of: str) -> None:
    """Raise if a named role is not one of `roles`; `of` says what these belong to."""
    known = list(roles)
    for role, column in named.items():
        if role not in known:
            near = get_close_matches(role, known, 1)
            hint = f" Did you mean {near[0]}={column}?" if near else ""
            raise InvalidTypeError(
                f"--column {role}={column}: {of} has no role {role!r}.{hint} Its roles are "
                f"{', '.join(known)}."
            )


def several_of(question: Any) -> set[str]:
    """The roles of a question that several columns play."""
    return {column.name for column in question.columns if column.several}


def readable_roles(question: Any, roles: Iterable[str]) -> tuple[str, ...]:
    """The roles, and the class that counts, where truth values may be written as classes."""
    has_flags = any(column.holds == "flag" for column in question.columns)
    return (*roles, *([POSITIVE_CLASS] if has_flags else []))


def for_question(question: Any, named: Mapping[str, str]) -> dict[str, Any]:
    """The columns as the question takes them: lists for roles that several play."""
    several = several_of(question)
    return {role: names(column) if role in several else column for role, column in named.items()}


def chosen(
    certificate: Certificate, roles: Iterable[str], named: Mapping[str, str]
) -> dict[str, str]:
    """The columns of the `roles`: those that were named, and else those of the certificate, without
    those that a named one stands for.
    """
    known = list(roles)
    require_roles(named, known, f"this {certificate.kind} certificate")
    hidden = {role for other in named for role in _INSTEAD.get(other, ()) if role not in named}
    kept = {
        role: column for role, column in certificate.provenance.columns.items() if role in known
    }
    return {**{role: column for role, column in kept.items() if role not in hidden}, **named}
