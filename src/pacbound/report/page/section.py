"""The section of one certificate: what it is about, the verdict, the claim in a plain sentence and
in figures; then the claim in full, what it assumes, and checksums at the end.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from pacbound.claims.certificate import Certificate
from pacbound.monitor import Monitor
from pacbound.report.page.entries import ReportedCertificate
from pacbound.report.page.markup import Markup, in_short, joined, pairs, table, tag
from pacbound.report.plotting import evidence_over_time
from pacbound.report.svg import figure_html


@dataclass(frozen=True)
class Detail:
    """How much of a certificate is shown: figures of so many groups, so many rows of numbers with
    each, and so many lines of groups.
    """

    figures: int
    rows: int
    groups: int


def section(entry: ReportedCertificate, place: str, detail: Detail, made: str) -> Markup:
    """What the page says about one entry; `place` is the name of the section for links."""
    inside: list[Markup | None] = [_banner(entry)]
    if entry.certificate is not None:
        about = sorted(entry.certificate.own_about().items())
        # The heading names the model; of a file, the fingerprint stands here.
        about = [(name, text) for name, text in about if not entry.title.startswith(f"{text}: ")]
        inside = [_about(about), *inside, *_parts(entry, entry.certificate, place, detail)]
    members = [
        section(member, f"{place}-{number}", detail, made)
        for number, member in enumerate(entry.members, start=1)
    ]
    return tag(
        "section",
        tag("h2", in_short(entry.title), id=f"{place}-name"),
        *inside,
        *members,
        *([] if entry.certificate is None else _sources(entry, entry.certificate, made)),
        id=place,
        class_=f"certificate is-{status(entry)}{' is-rung' if alarms(entry) else ''}",
        aria_labelledby=f"{place}-name",
    )


def status(entry: ReportedCertificate) -> str:
    """How an entry stands, in one word for the style sheet."""
    return "failed" if not entry.verified else "certified" if entry.certified else "refused"


# A sign and a word for each, so that nobody needs the colour.
VERDICTS = {
    "failed": ("✕", "NOT VERIFIED"),
    "refused": ("⚠", "REFUSED"),
    "certified": ("✓", "CERTIFIED"),
}


def verdict(entry: ReportedCertificate) -> Markup:
    """The sign and the word."""
    sign, word = VERDICTS[status(entry)]
    if not entry.readable:
        word = "NOT READABLE"
    class_ = "verdict" if entry.certified else "verdict bad"
    return tag("strong", tag("span", sign, aria_hidden="true"), f" {word}", class_=class_)


def _about(about: Sequence[tuple[str, str]]) -> Markup | None:
    """What a certificate is about, as its maker says."""
    return pairs([(in_short(name), text) for name, text in about], class_="wide") if about else None


def _banner(entry: ReportedCertificate) -> Markup:
    if not entry.verified:
        said = (
            "This file is not a certificate that can be read. Nothing of it is shown."
            if not entry.readable
            else "This certificate does not follow from its own counts, or was changed. Do not use "
            "it. Nothing that it claims is shown."
        )
        shown = entry.problems[:20]
        more = len(entry.problems) - len(shown)
        lines = [tag("li", line) for line in shown]
        lines += [tag("li", f"and {more:,} more differences")] if more else []
        return tag("div", verdict(entry), tag("p", said), tag("ul", *lines), class_="banner")
    rung = [
        tag("p", tag("strong", f"The monitor rang: {text}"), class_="alarm")
        for text in alarms(entry)
    ]
    return tag("div", verdict(entry), _reservation(entry), *rung, class_="banner")


def _reservation(entry: ReportedCertificate) -> Markup | None:
    """What is not certified, beside the verdict."""
    if entry.members and not entry.certified:
        return tag(
            "p",
            "Not all of its claims are certified together. Each says below whether it is alone.",
        )
    if not entry.certified:
        if entry.certificate is not None and entry.certificate.says.promise is not None:
            return tag("p", "Only a part of this is certified, as it says below.")
        return tag("p", "Nothing is certified here. The claim must not be relied on.")
    if entry.certificate is None:
        return None
    left_out = list(entry.certificate.by.refused_groups(entry.certificate))
    if not left_out:
        return None
    listed = ", ".join(map(in_short, left_out[:5])) + (", …" if len(left_out) > 5 else "")
    return tag(
        "p",
        tag("strong", f"Not certified for {len(left_out):,} of the groups: {listed}."),
        class_="warning",
    )


def alarms(entry: ReportedCertificate) -> list[str]:
    """What the monitors of a certificate have rung for, the last of each; and those of its claims,
    by their names.
    """
    own = [str(monitor.alarms[-1]) for monitor in entry.monitors if monitor.alarms]
    return own + [f"{one.name}: {said}" for one in entry.members for said in alarms(one)]


def _parts(
    entry: ReportedCertificate, certificate: Certificate, place: str, detail: Detail
) -> Iterator[Markup | None]:
    said = certificate.says
    plain = [part for part in (said.plain, said.costs, *said.refused) if part is not None]
    yield tag("div", *_paragraphs(plain), class_="claim")
    if entry.members and said.groups:
        yield _contents(list(map(str, said.groups)), entry.members, place)
    if said.table and detail.rows:
        head, *rows = said.table
        caption = str(said.caption) if said.caption else "The interval of each bin that holds rows"
        yield table(caption, head, rows[: detail.rows])
    if shown := entry.figures[: detail.figures]:
        figures = [figure_html(figure, rows=detail.rows) for figure in shown]
        yield tag("div", *figures, class_="figures")
        left = _groups(certificate) - detail.figures
        if left > 0:
            yield tag("p", f"{left:,} more groups have no figure here; the file has them all.")
    for monitor in entry.monitors:
        yield from _monitor(monitor, detail)
    yield _heading("The claim in full")
    exact = [part for part in (said.rule, said.promise) if part is not None]
    yield tag("div", *_paragraphs([said.title, *exact, *said.seen]))
    if said.groups and not entry.members:
        yield _lines(list(map(str, said.groups)), detail.groups)
    yield tag("div", *_paragraphs([*said.notes, *certificate.draw_lines()]))
    yield pairs([*certificate.by.numbers(certificate), *_seeds(certificate)])
    yield _checklist(certificate.assumed(), place)
    if meant := certificate.meanings():
        yield _heading("What the words mean")
        yield _lines(meant, len(meant))


def _sources(entry: ReportedCertificate, certificate: Certificate, made: str) -> Iterator[Markup]:
    """Where it comes from; of a bundle, after the figures of its claims."""
    yield _heading("Where all of it comes from" if entry.members else "Where it comes from")
    yield tag(
        "p",
        f"Verified when this page was made, {made}: recomputed from its own counts, without a "
        "difference. That does not show that the counts are those of the data, nor that this page "
        "is genuine.",
        tag("code", f" {to_verify([entry])}") if entry.source is not None else None,
    )
    yield pairs(_origin(entry, certificate), class_="wide")


def to_verify(entries: Sequence[ReportedCertificate]) -> str:
    """The command that verifies the files of a page."""
    named = [shlex.quote(str(one.source)) for one in entries if one.source is not None]
    return "pacbound verify " + (" ".join(named) if 0 < len(named) <= 3 else "CERTIFICATE...")


def _seeds(certificate: Certificate) -> list[tuple[str, str]]:
    """What was drawn by which seed."""
    drawn = certificate.draw
    return [] if drawn is None or drawn.seed is None else [("Seed of the draw", f"{drawn.seed}")]


def _origin(entry: ReportedCertificate, certificate: Certificate) -> list[tuple[str, str]]:
    """Who made the certificate, of what, and when; and at the end what tells it from others."""
    origin = certificate.provenance.to_dict()
    sources = list(origin["sources"])
    listed = ", ".join(sources[:5]) + (
        f" and {len(sources) - 5:,} more" if len(sources) > 5 else ""
    )
    columns = ", ".join(f"{role}: {name}" for role, name in origin["columns"].items())
    samples = [origin["sample"]] if "sample" in origin else []
    samples += [f"{name} ({claim})" for claim, name in origin.get("samples", {}).items()]
    return [
        ("File", "" if entry.source is None else str(entry.source)),
        ("Made", f"{origin['created']}, by pacbound {origin['version']}"),
        ("Columns", columns),
        *([("Sample, as its maker calls it", ", ".join(samples))] if samples else []),
        ("Procedure", str(entry.claim["procedure"])),
        ("Sources", listed),
        *(
            (f"Digest of the {role} names", taken)
            for role, taken in origin.get("drawn_by", {}).items()
        ),
        ("Digest of the claim", certificate.claim_digest),
        ("Digest of the counts", certificate.counts_digest),
    ]


def _paragraphs(sentences: Iterable[Any]) -> Iterator[Markup]:
    return (tag("p", str(sentence)) for sentence in sentences)


def _checklist(assumptions: Sequence[str], place: str) -> Markup:
    items = [
        tag(
            "li",
            tag("input", type="checkbox", id=f"{place}-assumed-{number}"),
            tag("label", _sentence(text), for_=f"{place}-assumed-{number}"),
        )
        for number, text in enumerate(assumptions, start=1)
    ]
    return joined(
        [
            _heading("What must hold"),
            tag(
                "p",
                "The claim rests on these. The data cannot prove them: tick what you have checked.",
            ),
            tag("ul", *items, class_="checklist"),
        ]
    )


def _sentence(text: str) -> str:
    # Symbols such as xi stay small.
    begun = text if text.startswith(("xi", "delta")) else text[:1].upper() + text[1:]
    return begun if begun.endswith(".") else f"{begun}."


def _lines(lines: Sequence[str], most: int) -> Markup:
    items = [tag("li", line) for line in lines[:most]]
    if len(lines) > most:
        items.append(tag("li", f"and {len(lines) - most:,} more, which the file has"))
    return tag("ul", *items, class_="groups")


def _contents(lines: Sequence[str], members: Sequence[ReportedCertificate], place: str) -> Markup:
    """The claims of a bundle in plain words, each with a link to its section."""
    items = [
        tag(
            "li",
            tag("a", line, href=f"#{place}-{number}"),
            "" if member.certificate is None else f". {member.certificate.says.in_short}",
        )
        for number, (line, member) in enumerate(zip(lines, members, strict=True), start=1)
    ]
    return tag("ul", *items, class_="groups")


def _heading(text: str) -> Markup:
    return tag("h3", text)


def _groups(certificate: Certificate) -> int:
    """How many groups the certificate has; none for kinds that have no groups."""
    return len(getattr(certificate, "groups", ()))


def _monitor(monitor: Monitor, detail: Detail) -> Iterator[Markup]:
    yield _heading("Monitor")
    yield tag("div", *(tag("p", line) for line in monitor.summary().split("\n")))
    if monitor.labels:
        figure = replace(evidence_over_time(monitor), title="Evidence over time")
        yield tag("div", figure_html(figure, rows=max(detail.rows, 1)), class_="figures")
