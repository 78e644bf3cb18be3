"""What a command hands over: a certificate to its file and to whoever reads the output, figures, a
result for programs; and on a terminal a progress bar.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer

from pacbound.atomic_files import atomic_file, is_standard_output
from pacbound.claims.certificate import Certificate, load_certificate
from pacbound.cli.exit_codes import REFUSED, VERIFICATION_FAILED, complain, decided
from pacbound.cli.options import RESULT, Reads, Writes, option
from pacbound.cli.streams import json_line
from pacbound.errors import InvalidValueError
from pacbound.sources.batches import Progress

# A value that begins with it names a file; twice, it stands for itself.
_FILE = "@"
_FORMATS = (".png", ".svg", ".pdf")


def _named_files(pairs: Sequence[str]) -> list[str]:
    """The files that texts about a certificate name."""
    values = (pair.partition("=")[2] for pair in pairs)
    return [value[1:] for value in values if _names_file(value)]


def _names_file(value: str) -> bool:
    return value.startswith(_FILE) and not value.startswith(2 * _FILE)


AboutOption = Annotated[
    list[str] | None,
    typer.Option(
        "--about",
        metavar="NAME=TEXT",
        help=(
            "What the certificate is about, such as model=…, dataset=…, owner=…, note=…; "
            "NAME=@FILE for a file's name, size and SHA-256. May be repeated."
        ),
        rich_help_panel=RESULT,
    ),
    Reads(_named_files),
]

OutputOption = Annotated[
    Path | None, option("--output", "-o", "Where the certificate goes."), Writes()
]


def about_of(pairs: Sequence[str] | None) -> dict[str, str | Path]:
    """What --about says, as the functions that certify take it."""
    told: dict[str, str | Path] = {}
    for pair in pairs or ():
        name, sign, value = pair.partition("=")
        if not sign:
            raise InvalidValueError(
                f"--about {pair}: expected NAME=TEXT, for example --about licence=MIT"
            )
        if name in told:
            raise InvalidValueError(f"--about {name} is there twice: say it once.")
        if value == _FILE:
            raise InvalidValueError(f"{name}={_FILE} names no file: expected {name}={_FILE}FILE.")
        text = value.removeprefix(_FILE)
        told[name] = Path(text) if _names_file(value) else text
    return told


def deliver(
    certificate: Certificate,
    output: Path | None,
    *,
    as_json: bool,
    beside: Mapping[str, Any] | None = None,
) -> int:
    """Save and print `certificate`, for programs with what stands `beside` it; the exit code says
    whether it is certified or refused.

    A share of no rows at all is bad data, as a table without rows is.
    """
    silent = certificate.says_nothing()
    if silent is not None:
        raise InvalidValueError(silent)
    code = decided(0 if certificate.certified else REFUSED)
    words = certificate.summary()
    if output is not None:
        certificate.save(output)
        words += (
            f"\n\nWritten to {output} ({certificate.claim_digest[:19]}…). Check it any time: "
            f"pacbound verify {output}"
        )
    result = {"certificate": text_of(output), **(beside or {}), **certificate.to_dict()}
    say(words, result, as_json=as_json)
    return code


def say(
    words: str, result: Mapping[str, Any], *, as_json: bool, rows_to: str | None = None
) -> None:
    """Print a result for people, or on one line for programs. It must not be among the rows, where
    these go to standard output.
    """
    among = rows_to is not None and is_standard_output(rows_to)
    typer.echo(json_line(result) if as_json else words, err=among)


def verified_certificate(path: Path, done: str) -> Certificate:
    """The certificate in a file; if it does not follow from its counts the command ends, and says
    that it is not `done`.
    """
    certificate = load_certificate(path)
    verification = certificate.verify()
    if not verification:
        complain(f"{path} is {verification}\nIt is not {done}.")
        raise typer.Exit(VERIFICATION_FAILED)
    return certificate


def text_of(path: Path | None) -> str | None:
    """The name of a file, where there is one."""
    return None if path is None else str(path)


class Shown:
    """Progress on stderr: the share done, and what is good to know before it is done."""

    def __init__(self, update: Progress | None = None) -> None:
        self._update = update

    def __call__(self, share: float) -> None:
        """Show the share that is done."""
        if self._update is not None:
            self._update(share)

    def note(self, text: str) -> None:
        """Say something beside the bar."""
        typer.echo(text, err=True)


@contextmanager
def progress_bar(title: str) -> Iterator[Shown]:
    """A bar on stderr that takes the share done; where stderr is not a terminal, notes alone."""
    from rich.console import Console  # noqa: PLC0415
    from rich.progress import Progress as Bar  # noqa: PLC0415

    console = Console(stderr=True)
    if not console.is_terminal:
        yield Shown()
        return
    with Bar(console=console, transient=True) as bar:
        task = bar.add_task(title, total=1.0)
        yield Shown(lambda share: bar.update(task, completed=share))


def require_drawable(figure: Path | None) -> None:
    """Refuse a name without a known format, before any work is done."""
    if figure is not None and figure.suffix.lower() not in _FORMATS:
        raise InvalidValueError(
            f"--figure {figure} has no format that can be drawn: expected a name that ends in "
            f"{', '.join(_FORMATS)}."
        )


def draw(shown: Any, figure: Path | None) -> str:
    """Draw what has a figure into a file, if one is named; and a line that says so."""
    if figure is None:
        return ""
    from pacbound.report import plot  # noqa: PLC0415 - nothing else here needs it

    canvas = plot(shown)
    with atomic_file(figure) as file:
        canvas.savefig(file, dpi=150, format=figure.suffix[1:].lower())
    return f"\nDrawn into {figure}."
