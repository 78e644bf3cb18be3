"""Which options name files, and the one check that none is written that another names.

An option that names files is marked as one that is read or one that is written; a state, which is
both, is written. The check runs before the command does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Annotated, Any, get_args, get_type_hints

import typer
from typer.models import ArgumentInfo, OptionInfo

from pacbound.cli.option_groups import OptionGroup
from pacbound.output_files import refuse_overwriting


def _as_it_is(value: Any) -> Any:
    return value


@dataclass(frozen=True)
class Reads:
    """Marks an option that names files which are read; `files` are those that a value names."""

    files: Callable[[Any], Any] = _as_it_is


@dataclass(frozen=True)
class Writes:
    """Marks an option that names a file which is written. With `is_locked`, NAME.lock is, too."""

    is_locked: bool = False


CertificatesArgument = Annotated[
    list[Path], typer.Argument(metavar="CERT...", help="Certificates."), Reads()
]


def refuse_shared_files(command: Callable[..., Any], given: Mapping[str, Any]) -> None:
    """Refuse the options of a command if one of them would overwrite what another one names."""
    written: dict[str, Any] = {}
    read: dict[str, Any] = {}
    for option, mark, value in _marked(command, given):
        if value is None:
            continue
        if isinstance(mark, Reads):
            read[option] = mark.files(value)
            continue
        written[option] = value
        if mark.is_locked:
            read[f"the lock of {option}"] = f"{value}.lock"
    refuse_overwriting(written, read)


def _marked(
    declared: Callable[..., Any], given: Mapping[str, Any]
) -> Iterator[tuple[str, Reads | Writes, Any]]:
    """The options that name files, those in groups among them, each as it is typed."""
    for name, kind in get_type_hints(declared, include_extras=True).items():
        value = given.get(name)
        if isinstance(value, OptionGroup):
            group: Any = value
            inside = {option.name: getattr(group, option.name) for option in fields(group)}
            yield from _marked(type(value), inside)
            continue
        _, *marks = get_args(kind) or (kind,)
        for mark in marks:
            if isinstance(mark, (Reads, Writes)):
                yield _as_typed(name, marks), mark, value


def _as_typed(name: str, marks: list[Any]) -> str:
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
