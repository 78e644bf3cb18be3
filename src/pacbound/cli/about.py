"""The options that say what a certificate is about: which model, which data, whose."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, ClassVar

import typer

from pacbound.cli.file_options import Reads
from pacbound.cli.option_groups import RESULT, OptionGroup
from pacbound.errors import InvalidValueError

FILE = "@"
"""A value that begins with it names a file; twice, it stands for itself."""


def _named_file(value: str) -> list[str]:
    """The file that a value names, if it names one."""
    return [value[1:]] if value.startswith(FILE) and not value.startswith(2 * FILE) else []


def _named_files(pairs: list[str]) -> list[str]:
    return [file for pair in pairs for file in _named_file(pair.partition("=")[2])]


AboutOption = Annotated[
    list[str] | None,
    typer.Option(
        "--about",
        metavar="NAME=TEXT",
        help="What the certificate is about; NAME=@FILE for a file's digest. May be repeated.",
    ),
    Reads(_named_files),
]
ModelOption = Annotated[
    str | None,
    typer.Option(help="Which model: a text, or @FILE for name, size and SHA-256."),
    Reads(_named_file),
]
DatasetOption = Annotated[
    str | None,
    typer.Option(help="Which data: a text, or @FILE."),
    Reads(_named_file),
]
OwnerOption = Annotated[str | None, typer.Option(help="Who answers for it.")]
NoteOption = Annotated[str | None, typer.Option(help="Anything else, for people.")]


@dataclass(frozen=True)
class About(OptionGroup):
    """What a certificate is about."""

    panel: ClassVar[str] = RESULT

    about: AboutOption = None
    model: ModelOption = None
    dataset: DatasetOption = None
    owner: OwnerOption = None
    note: NoteOption = None

    def told(self) -> dict[str, str | Path]:
        """What was said, as the functions that certify take it."""
        named = asdict(self)
        pairs = named.pop("about") or []
        told = {name: value for name, value in named.items() if value is not None}
        for pair in pairs:
            name, sign, value = pair.partition("=")
            if not sign:
                raise InvalidValueError(
                    f"--about {pair}: expected NAME=TEXT, for example --about licence=MIT"
                )
            if name in told:
                raise InvalidValueError(f"--about {name} is there twice: say it once.")
            told[name] = value
        return {name: _text_or_path(name, value) for name, value in told.items()}


def _text_or_path(name: str, value: str) -> str | Path:
    if not value.startswith(FILE) or value.startswith(2 * FILE):
        return value.removeprefix(FILE) if value.startswith(FILE) else value
    if value == FILE:
        raise InvalidValueError(f"{name} is {FILE}: expected the name of a file behind it.")
    return Path(value.removeprefix(FILE))
