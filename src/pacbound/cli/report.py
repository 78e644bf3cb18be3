"""`pacbound report`: a page about certificates that people can open."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Annotated

import typer

from pacbound.cli.exit_codes import (
    BAD_INPUT,
    REFUSED,
    VERIFICATION_FAILED,
    complain,
    decided,
    ending_well,
)
from pacbound.cli.options import PatientOption, Reads, Writes, option
from pacbound.cli.streams import print_json
from pacbound.cli.verify import worst
from pacbound.errors import InvalidValueError, UnwritableFileError
from pacbound.report import ReportedCertificate, WrittenReport, write_report
from pacbound.report.page.entries import entries_of


@ending_well
def report(
    certificates: Annotated[
        list[Path],
        typer.Argument(metavar="CERT...", help="Certificates, or folders of them."),
        Reads(),
    ],
    output: Annotated[
        Path, option("--output", "-o", "Where the page goes, such as report.html."), Writes()
    ],
    monitor: Annotated[
        list[Path] | None,
        option(
            "The state of a monitor of one of them, or of all claims of a bundle, as `pacbound "
            "monitor --state` keeps it. "
            "May be given several times."
        ),
        Reads(),
    ] = None,
    title: Annotated[str, option("The title of the page.")] = "pacbound report",
    patient: PatientOption = False,
    as_json: Annotated[bool, option("--json", "Print what was written for programs.")] = False,
) -> int:
    """Write a page about certificates: claims, assumptions and figures.

    The page is one file that needs no network. Every certificate is verified first. One that is not
    verified, or cannot be read, is named on the page with the reason, and nothing of it is shown.

    Of a folder all .json files are taken. What is printed at the end is the sum of the deltas: keep
    all certificates of one sample in one folder.

    Exit codes as for verify: 0: all are verified and certified. 3: all are verified, and one is a
    refusal. 2: one cannot be read. 1: one is not verified. The page is written in all these cases.
    """
    certificates = list(_files(certificates))
    try:
        written = write_report(
            certificates, output, monitors=monitor or (), title=title, patient=patient
        )
    except (UnwritableFileError, BrokenPipeError):
        # The page cannot be written. What is true of the certificates does not depend on it.
        decided(worst(map(_code, entries_of(certificates, patient=patient))))
        raise
    code = decided(worst(map(_code, written.certificates)))
    if as_json:
        print_json(
            {
                "report": str(output),
                "bytes": written.size,
                "delta": written.delta,
                "certificates": [_for_programs(entry) for entry in written.certificates],
            }
        )
    else:
        _say(written)
    return code


def _files(paths: Iterable[Path]) -> Iterator[Path]:
    """The files, and those in folders, by name."""
    for path in paths:
        if not path.is_dir():
            yield path
            continue
        inside = sorted(path.glob("*.json"))
        if not inside:
            raise InvalidValueError(
                f"{path} is a folder without .json files: expected certificates in it."
            )
        yield from inside


def _say(written: WrittenReport) -> None:
    for entry in written.certificates:
        if entry.verified:
            typer.echo(f"{entry.name}: {'certified' if entry.certified else 'REFUSED'}")
        else:
            complain(f"{entry.name}: {_why(entry)}")
    if len(written.certificates) > 1:
        typer.echo(
            f"The chance that any of these claims was certified and is wrong is at most "
            f"{written.delta:g}, the sum of their deltas, of refusals too."
        )
    size = written.size / 1000
    typer.echo(f"\nWritten to {written.path} ({size:.0f} KB). Open it in a browser.")


def _why(entry: ReportedCertificate) -> str:
    if not entry.readable:
        return entry.problems[0]
    lines = "".join(f"\n  {line}" for line in entry.problems)
    return f"NOT VERIFIED{lines}"


def _code(entry: ReportedCertificate) -> int:
    if not entry.readable:
        return BAD_INPUT
    if not entry.verified:
        return VERIFICATION_FAILED
    return 0 if entry.certified else REFUSED


def _for_programs(entry: ReportedCertificate) -> dict[str, object]:
    return {
        "certificate": entry.name,
        "kind": entry.kind,
        "ok": entry.verified,
        "certified": entry.certified,
        "problems": list(entry.problems),
    }
