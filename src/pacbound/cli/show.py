"""`pacbound show`: what a certificate claims, of what, and whether it follows, for people."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.text import Text

from pacbound.claims.certificate import Certificate, Verification
from pacbound.cli.exit_codes import BAD_INPUT, REFUSED, VERIFICATION_FAILED, ending_well
from pacbound.cli.options import CertificatesArgument, PatientOption, option
from pacbound.cli.streams import print_json
from pacbound.cli.verify import for_programs, read_or_complain, worst
from pacbound.documents import Json, printable, printable_lines
from pacbound.says import aligned

MOST_DIFFERENCES = 10
MOST_SOURCES = 5

_COLOURS = {"CERTIFIED": "bold green", "REFUSED": "bold yellow", "NOT VERIFIED": "bold red"}


@dataclass(frozen=True)
class Section:
    """A title, and lines that are shown as they are."""

    title: str
    lines: list[str]


@ending_well
def show(
    certificates: CertificatesArgument,
    patient: PatientOption = False,
    as_json: Annotated[bool, option("--json", "Print a line for programs for each.")] = False,
) -> int:
    """Say what a certificate claims and assumes, what it is about, and whether it follows from its
    counts.

    Every certificate is verified first, and one that does not verify is shown with what differs.

    Exit code as of verify. 0: all are verified and certified. 3: all are verified, and one is a
    refusal. 2: one cannot be read. 1: one is not verified, whatever the others are.
    """
    codes = []
    for place, path in enumerate(certificates):
        if place and not as_json:
            typer.echo()
        codes.append(_shown(path, patient=patient, as_json=as_json))
    return worst(codes)


def _shown(path: Path, *, patient: bool, as_json: bool) -> int:
    certificate = read_or_complain(path, as_json=as_json)
    if certificate is None:
        return BAD_INPUT
    verification = certificate.verify(patient=patient)
    if as_json:
        print_json({"certificate": str(path), **_for_programs(certificate, verification)})
    else:
        verdict = _verdict(certificate, verification)
        # What is not verified is not called by what it claims.
        called = certificate.called if verification else "Not to be used"
        _print(printable(called), verdict, path, _sections(certificate, verification))
    if not verification:
        return VERIFICATION_FAILED
    return 0 if certificate.certified else REFUSED


def _verdict(certificate: Certificate, verification: Verification) -> str:
    if not verification:
        return "NOT VERIFIED"
    return "CERTIFIED" if certificate.certified else "REFUSED"


def _sections(certificate: Certificate, verification: Verification) -> Iterator[Section]:
    if not verification:
        found = [printable(line) for line in verification.differences[:MOST_DIFFERENCES]]
        beyond = len(verification.differences) - len(found)
        more = [f"and {beyond:,} more differences"] if beyond else []
        yield Section("Why it is not verified", [*found, *more])
    yield from _told(certificate, verified=verification.ok)
    if verification:
        yield Section(
            "Verified",
            [
                "Every number of the claim follows from the counts in the file. That does not show "
                "that the counts are those of the data."
            ],
        )
    yield Section("Made", _made(certificate))


def _told(certificate: Certificate, *, verified: bool) -> Iterator[Section]:
    """What a certificate is about, its claim in a plain sentence and in full, what it assumes;
    for a bundle those of each of its claims.
    """
    if about := certificate.about_lines():
        yield Section("About (as its maker says, no part of the claim)", [x[2:] for x in about[1:]])
    said = certificate.says
    why = [str(sentence) for sentence in said.refused]
    if verified:
        refused = "REFUSED: " if said.refused else ""
        yield Section("In plain words", _lines([f"{refused}{said.in_short}", *why]))
        if said.table:
            caption = [] if said.caption is None else [f"{said.caption}:"]
            yield Section("In numbers", _lines([*caption, *aligned(said.table)]))
        rest = replace(said, refused=(), table=(), caption=None)
        full = [str(said.title), *rest.in_full()]
        yield Section("Claim", _lines([*full, *certificate.draw_lines()]))
    else:
        full = [certificate.head(), *certificate.draw_lines()]
        yield Section("Claim, as the file has it", _lines(full))
    yield Section("Assumed (no file can show it)", [f"- {text}" for text in certificate.assumed()])
    if meant := certificate.meanings():
        yield Section("What the words mean", [f"- {text}" for text in meant])
    # What is not verified says all of it in its own words.
    for name, member in (certificate.inside if verified else certificate.members).items():
        for part in _told(member, verified=verified):
            # The two claims of a range share its rows.
            if name in certificate.members or part.title in ("In plain words", "Claim"):
                yield Section(f"{printable(name)}: {part.title}", part.lines)


def _lines(told: Iterable[str]) -> list[str]:
    return printable_lines("\n".join(told)).strip("\n").split("\n")


def _made(certificate: Certificate) -> list[str]:
    made = certificate.provenance
    columns = [
        f"column {printable(role)}: {printable(name)}" for role, name in made.columns.items()
    ]
    named = [] if made.sample is None else [f"sample {printable(made.sample)}"]
    named += [
        f"sample {printable(text)} ({printable(name)})" for name, text in made.samples.items()
    ]
    sources = [f"source {printable(name)}" for name in made.sources[:MOST_SOURCES]]
    beyond = len(made.sources) - len(sources)
    return [
        f"by     pacbound {printable(made.version)}, {printable(made.created)}",
        f"method {printable(str(certificate.claim()['procedure']))}",
        *columns,
        *named,
        *sources,
        *([f"       and {beyond:,} more"] if beyond else []),
        *(
            f"names of {printable(role)}: {printable(taken)}"
            for role, taken in made.drawn_by.items()
        ),
        f"claim  {printable(certificate.claim_digest)}",
        f"counts {certificate.counts_digest}",
    ]


def _print(called: str, verdict: str, path: Path, sections: Iterator[Section]) -> None:
    """On a terminal in colours and wrapped at words; elsewhere a sentence is a line."""
    console, file = Console(highlight=False), f" ({printable(str(path))})"
    if not console.is_terminal:
        typer.echo(f"{called}\n{verdict}{file}")
        for part in sections:
            lines = [f"  {line}".rstrip() for line in part.lines]
            typer.echo("\n".join(["", part.title, *lines]))
        return
    console.print(Text(called, "bold"))
    console.print(Text(verdict, _COLOURS[verdict]) + Text(file))
    for part in sections:
        console.print()
        console.print(Text(part.title, "bold"))
        for line in part.lines:
            _print_wrapped(console, line)


def _print_wrapped(console: Console, line: str) -> None:
    """A line, indented as it is on all the lines that it takes; behind its dash, if it has one."""
    inner = len(line) - len(line.lstrip("- "))
    begin, text = f"  {line[:inner]}", Text(line[inner:].rstrip())
    for wrapped in text.wrap(console, max(20, console.width - len(begin))) or [text]:
        console.print(Text(begin) + wrapped, no_wrap=True, crop=False)
        begin = " " * len(begin)


def _for_programs(certificate: Certificate, verification: Verification) -> dict[str, Json]:
    told = for_programs(certificate, verification, passed=verification.ok)
    if verification:
        told |= {
            "words": certificate.words(),
            "assumptions": certificate.assumed(),
            "meanings": certificate.meanings(),
            "provenance": certificate.provenance.to_dict(),
        }
    return told
