"""From certificates to a page in one file: its head, the summary of all certificates, and a section
for each.

Style and script are inside, and a policy that names them by their digests lets nothing else run and
nothing be fetched: a page that was given a hostile name shows it, and does no more.
"""

from __future__ import annotations

import os
from base64 import b64encode
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from hashlib import sha256
from importlib.resources import files
from pathlib import Path
from typing import Final, TypeAlias

from pacbound.atomic_files import atomic_file, refuse_overwriting
from pacbound.errors import InvalidValueError
from pacbound.figures import palette
from pacbound.monitor import BundleMonitor, Monitor
from pacbound.procedures import union
from pacbound.report.page.entries import (
    MOST_FIGURES,
    ReportedCertificate,
    Source,
    add_monitors,
    entries_of,
)
from pacbound.report.page.markup import Markup, in_short, joined, table, tag
from pacbound.report.page.section import Detail, alarms, section, status, to_verify, verdict
from pacbound.says import in_short as in_few_digits
from pacbound.version import VERSION

# Bytes. A page is sent by mail and opened on phones.
LARGEST_PAGE: Final = 500_000

# Lines of groups in the summary of one certificate.
MOST_GROUPS: Final = 10

# A monitor, or the path of its state.
Watching: TypeAlias = Monitor | BundleMonitor | str | os.PathLike[str]

# How much is shown: the most that fits into a page.
_DETAILS: Final[tuple[Detail, ...]] = (
    Detail(figures=MOST_FIGURES, rows=40, groups=50),
    Detail(figures=2, rows=12, groups=20),
    Detail(figures=1, rows=6, groups=5),
    Detail(figures=0, rows=0, groups=3),
)

# The colours of the figures by what they mean; on a dark page blue is sky blue, and vermilion
# orange, which are as easy to tell apart.
_COLOURS: Final = {
    "certified": palette.CERTIFIED,
    "certified-dark": palette.ROWS,
    "seen": palette.OBSERVED,
    "seen-dark": palette.OBSERVED_ON_DARK,
    "rows": palette.ROWS,
    "unknown": palette.UNKNOWN,
}


@dataclass(frozen=True)
class WrittenReport:
    """A page that was written.

    Attributes
    ----------
    path : Path
        Where it is.
    size : int
        How many bytes it has, fewer than 500,000.
    certificates : tuple of ReportedCertificate
        What it says about each certificate, in order.
    delta : float
        The sum of the deltas of all that are verified, refusals too: at most this is the chance
        that any of these claims was certified and is wrong.

    Examples
    --------
    >>> from pacbound import calibrate
    >>> written = write_report(calibrate([0.9, 0.8], [True, False], delta=0.05), "report.html")
    >>> written.path.name, written.size < 500_000, written.certificates[0].verified
    ('report.html', True, True)
    """

    path: Path
    size: int
    certificates: tuple[ReportedCertificate, ...]
    delta: float


def write_report(
    certificates: Source | Iterable[Source] | Mapping[str, Source],
    path: str | os.PathLike[str],
    *,
    monitors: Watching | Iterable[Watching] = (),
    title: str = "pacbound report",
    patient: bool = False,
) -> WrittenReport:
    """Write a page about certificates: one HTML file under 500 KB that needs no network.

    Each certificate is verified while the page is made. The page repeats its claim, which holds
    under the assumptions that it lists, with probability at least 1 - delta over the draw of the
    rows; it adds no guarantee of its own. Figures are descriptive. A refusal is shown as one. Of a
    certificate that cannot be read or is not verified, the page shows the name and the reason, and
    nothing that it claims.

    Parameters
    ----------
    certificates
        One certificate, the path of one, several of these, or a mapping of names to these.
    path
        Where the page goes. A file that is there is replaced, at once and as a whole.
    monitors
        Monitors of these certificates, or the paths of their states, whose evidence is drawn; that
        of a bundle beside each of its claims.
    title
        The title of the page.
    patient
        Verify also certificates that take unusually long.

    Returns
    -------
    WrittenReport
        Where the page is, and for each certificate whether it is verified and certified. A refusal
        has `certified` False.

    Raises
    ------
    InvalidTypeError
        If something that is neither a certificate nor a path is passed.
    InvalidValueError
        If there is no certificate, if the page would take the place of one or of the state of a
        monitor, if a monitor is of none of them, or if there are so many that even a page without
        figures would have 500 KB.
    CertificateError
        If the state of a monitor cannot be read or was changed.
    UnwritableFileError
        If the file cannot be written.
    OSError
        If the state of a monitor is not there.

    Examples
    --------
    >>> from pacbound import certify_shield
    >>> certificate = certify_shield([0.1] * 500, [False] * 500, xi=0.02, delta=0.01)
    >>> written = write_report({"brake": certificate}, "report.html")
    >>> [(entry.name, entry.certified) for entry in written.certificates]
    [('brake', True)]
    """
    entries = entries_of(certificates, patient=patient)
    states = (
        [monitors]
        if isinstance(monitors, (str, os.PathLike, Monitor, BundleMonitor))
        else list(monitors)
    )
    refuse_overwriting(
        {"the page": path},
        {
            "a certificate": [entry.source for entry in entries if entry.source is not None],
            "the state of a monitor": [
                state for state in states if isinstance(state, (str, os.PathLike))
            ],
        },
    )
    add_monitors(entries, states)
    made = datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC")
    for detail in _DETAILS:
        # The name of a file need not be valid text: what is not is written as escapes.
        page = _document(entries, detail, title=title, made=made).encode(errors="replace")
        if len(page) < LARGEST_PAGE:
            break
    else:
        raise InvalidValueError(
            f"{len(entries):,} certificates make a page of {len(page):,} bytes, even without "
            f"figures: expected fewer than {LARGEST_PAGE:,}. Write several pages."
        )
    with atomic_file(path) as file:
        file.write(page)
    return WrittenReport(Path(path), len(page), tuple(entries), _sum_of_deltas(entries))


def _document(
    entries: Sequence[ReportedCertificate], detail: Detail, *, title: str, made: str
) -> str:
    """The whole page."""
    places = [f"certificate-{number}" for number in range(1, len(entries) + 1)]
    sections = [
        section(entry, place, detail, made) for entry, place in zip(entries, places, strict=True)
    ]
    body = [
        tag("a", "Skip to the certificates", href="#certificates", class_="skip"),
        tag("header", _heading(title, made, entries), _theme()),
        tag("main", _summary(entries, places), *sections, id="certificates"),
        tag("script", Markup(_script())),
    ]
    page = tag("html", tag("head", *_head(title)), tag("body", *body), lang="en")
    return f"<!doctype html>\n{page}\n"


def _head(title: str) -> list[Markup]:
    policy = (
        f"default-src 'none'; img-src data:; style-src '{_digest(_style())}'; "
        f"script-src '{_digest(_script())}'; base-uri 'none'; form-action 'none'"
    )
    return [
        tag("meta", charset="utf-8"),
        tag("meta", http_equiv="Content-Security-Policy", content=policy),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", name="color-scheme", content="light dark"),
        tag("meta", name="generator", content=f"pacbound {VERSION}"),
        tag("link", rel="icon", href="data:,"),
        tag("title", title),
        tag("style", Markup(_style())),
    ]


def _heading(title: str, made: str, entries: Sequence[ReportedCertificate]) -> Markup:
    of = "one certificate" if len(entries) == 1 else f"{len(entries):,} certificates"
    said = f"A report on {of}, made {made} by pacbound {VERSION}. "
    warned = "This page is no evidence, since anyone can write one. Verify the file itself: "
    command = tag("code", to_verify(entries))
    return tag("div", tag("h1", title), tag("p", said, warned, command, class_="aside"))


def _theme() -> Markup:
    choices = [tag("option", name, value=name) for name in ("auto", "light", "dark")]
    # It works by the script, which shows it.
    return tag("label", "Theme ", tag("select", *choices, id="theme"), hidden=True)


def _summary(entries: Sequence[ReportedCertificate], places: Sequence[str]) -> Markup | None:
    """A row for each certificate; for a single one its section says it all."""
    if len(entries) == 1:
        return None
    counted = dict.fromkeys(("certified", "refused", "failed"), 0)
    for entry in entries:
        counted[status(entry)] += 1
    said = (
        f"{counted['certified']:,} certified, {counted['refused']:,} refused, "
        f"{counted['failed']:,} not verified."
    )
    rows: list[tuple[str, ...]] = [
        (
            tag("a", in_short(entry.title), href=f"#{place}"),
            joined([verdict(entry), _alarm(entry)]),
            _delta(entry),
            _in_plain_words(entry),
            "" if entry.source is None else in_short(entry.name),
        )
        for entry, place in zip(entries, places, strict=True)
    ]
    head: tuple[str, ...] = ("Model and claim", "Verdict", "delta", "In plain words", "File")
    if not any(row[-1] for row in rows):  # certificates that were never saved
        head, rows = head[:-1], [row[:-1] for row in rows]
    return tag(
        "section",
        tag("h2", "Summary", id="summary"),
        tag("p", tag("strong", said)),
        table("All certificates of this page", head, rows, named=True),
        tag(
            "p",
            "Each claim fails with probability at most its delta. For all of them together, add "
            f"the deltas, those of refusals too: {in_few_digits(_sum_of_deltas(entries))}.",
            class_="aside",
        ),
        class_="summary",
        aria_labelledby="summary",
    )


def _sum_of_deltas(entries: Sequence[ReportedCertificate]) -> float:
    """Of refusals too: that a claim was refused was not known before the rows were looked at."""
    return float(union.total(one.claim["delta"] for one in entries if one.claim))


def _delta(entry: ReportedCertificate) -> str:
    return in_few_digits(float(entry.claim["delta"])) if entry.claim else ""


def _alarm(entry: ReportedCertificate) -> Markup | None:
    rung = any(alarms(part) for part in entry.all())
    return tag("strong", " ALARM", class_="verdict bad") if rung else None


def _in_plain_words(entry: ReportedCertificate) -> Markup:
    """What is claimed, in each group if there are some; or why nothing is."""
    if entry.certificate is None:
        return joined([in_short(entry.problems[0])])
    said = entry.certificate.says
    groups = list(map(str, said.groups))
    shown = [tag("li", line) for line in groups[:MOST_GROUPS]]
    if len(groups) > MOST_GROUPS:
        shown.append(tag("li", f"and {len(groups) - MOST_GROUPS:,} more"))
    return joined([said.in_short, tag("ul", *shown, class_="groups") if shown else None])


@cache
def _style() -> str:
    colours = "".join(f"--{name}: {value}; " for name, value in _COLOURS.items())
    return f":root {{ {colours}}}\n{_part('style.css')}"


@cache
def _script() -> str:
    return _part("script.js")


def _part(name: str) -> str:
    return files("pacbound.report.page").joinpath(name).read_text(encoding="utf-8")


def _digest(text: str) -> str:
    return "sha256-" + b64encode(sha256(text.encode()).digest()).decode()
