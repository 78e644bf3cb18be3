"""What the options of all commands share: the panels of `--help`, lists, and which of them name
files.

An option that names files is marked as one that is read or one that is written; a state, which is
both, is written. That none would overwrite what another one names is checked before the command
runs.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from inspect import Parameter
from pathlib import Path
from typing import Annotated, Any, get_args

import typer
from typer.core import TyperCommand
from typer.models import ArgumentInfo, OptionInfo

from pacbound.atomic_files import refuse_overwriting
from pacbound.errors import InvalidValueError

CLAIM = "Claim"
RESULT = "Result"
# The panels; what belongs to none of them is among the options.
ROWS = "Rows: how they are read and drawn"


@dataclass(frozen=True)
class Reads:
    """Marks an option that names files which are read; `files` are those that a value names."""

    files: Callable[[Any], Any] = lambda value: value


@dataclass(frozen=True)
class Writes:
    """Marks an option that names a file which is written. With `is_locked`, NAME.lock is, too."""

    is_locked: bool = False


def option(*words: str, **more: Any) -> Any:
    """An option: how it is spelt, if not as the parameter is, and what `--help` says of it."""
    *spelt, says = words
    return typer.Option(*spelt, help=says, **more)


JsonOption = Annotated[bool, typer.Option("--json", help="Print the result for programs.")]
CertificatesArgument = Annotated[
    list[Path], typer.Argument(metavar="CERT...", help="Certificates."), Reads()
]
PatientOption = Annotated[
    bool, typer.Option("--patient", help="Verify also what takes unusually long.")
]

ColumnOption = Annotated[
    list[str] | None,
    typer.Option(
        "--column",
        metavar="ROLE=NAME",
        help=(
            "Which column plays which role, such as score=risk; several have commas between them: "
            "confidence=c1,c2. May be repeated."
        ),
        rich_help_panel=ROWS,
    ),
]


def names(text: str) -> list[str]:
    """The names in `text`, which has commas between them."""
    return [part.strip() for part in text.split(",")]


def whole_numbers(text: str, option: str) -> list[int]:
    """The whole numbers in `text`; `option` is for the message."""
    return _listed(text, int, f"{option} {text} is not a list of whole numbers", "500,1000,2000")


def numbers(text: str, option: str) -> list[float]:
    """The numbers in `text`; `option` is for the message."""
    return _listed(text, float, f"{option} {text} is not a list of numbers", "0,0.5,1")


def _listed(text: str, kind: Callable[[str], Any], wrong: str, example: str) -> list[Any]:
    try:
        return [kind(part) for part in text.split(",")]
    except ValueError:
        raise InvalidValueError(f"{wrong}: expected for example {example}") from None


class PanelCommand(TyperCommand):
    """A command whose `--help` has the options in panels, in plain text. An option that takes one
    value is typed once.
    """

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Refuse an option that was typed twice: only its last value would count."""
        _, _, typed = self.make_parser(ctx).parse_args(args=list(args))
        for parameter, times in Counter[Any](typed).items():
            single = parameter.param_type_name == "option" and not parameter.multiple
            if single and not parameter.is_flag and times > 1 and not ctx.resilient_parsing:
                ctx.fail(f"{parameter.opts[0]} was typed {times} times: type it once.")
        return super().parse_args(ctx, args)

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write the panels, one after the other."""
        panels: dict[str, list[tuple[str, str]]] = {}
        for parameter in self.get_params(ctx):
            record = parameter.get_help_record(ctx)
            if record is not None:
                panels.setdefault(panel_of(parameter), []).append(record)
        for title, records in panels.items():
            with formatter.section(title):
                formatter.write_dl(records)


def panel_of(parameter: Any) -> str:
    """The panel that an option or an argument is shown in."""
    if parameter.param_type_name == "argument":
        return "Arguments"
    if parameter.name in ("output", "as_json", "help"):
        return RESULT
    return parameter.rich_help_panel or "Options"


def refuse_shared_files(shown: Iterable[Parameter], given: Mapping[str, Any]) -> None:
    """Refuse the options of a command if one of them would overwrite what another one names."""
    written: dict[str, Any] = {}
    read: dict[str, Any] = {}
    for option, mark, value in _marked(shown, given):
        if isinstance(mark, Reads):
            read[option] = mark.files(value)
            continue
        written[option] = value
        if mark.is_locked:
            read[f"the lock of {option}"] = f"{value}.lock"
    refuse_overwriting(written, read)


def _marked(
    shown: Iterable[Parameter], given: Mapping[str, Any]
) -> Iterator[tuple[str, Reads | Writes, Any]]:
    """The options that name files and were given, each as it is typed."""
    for parameter in shown:
        marks = get_args(parameter.annotation)
        for mark in marks:
            value = given.get(parameter.name)
            if isinstance(mark, (Reads, Writes)) and value is not None:
                yield _as_typed(parameter.name, marks), mark, value


def _as_typed(name: str, marks: tuple[Any, ...]) -> str:
    """The option as a user types it, or the argument as the help calls it."""
    for mark in marks:
        if isinstance(mark, ArgumentInfo):
            return (mark.metavar or name.upper()).strip("[]").removesuffix("...")
        if isinstance(mark, OptionInfo):
            # Within an annotation the first name stands where the default would.
            declared = [mark.default, *(mark.param_decls or ())]
            long = [one for one in declared if isinstance(one, str) and one.startswith("--")]
            return long[0] if long else f"--{name.replace('_', '-')}"
    return name
