"""The page as a whole: its head, the summary of all certificates, and a section for each.

Style and script are inside, and a policy that names them by their digests lets nothing else run and
nothing be fetched: a page that was given a hostile name shows it, and does no more.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Sequence
from functools import cache
from hashlib import sha256
from importlib.resources import files
from typing import Final

from pacbound.report import palette
from pacbound.report.page.entries import Entry
from pacbound.report.page.markup import Markup, in_short, joined, table, tag
from pacbound.report.page.section import Detail, alarms, claim_of, section, status, verdict
from pacbound.says import exact
from pacbound.version import VERSION

_COLOURS: Final = {
    "certified": palette.CERTIFIED,
    "certified-dark": palette.ROWS,
    "seen": palette.OBSERVED,
    "seen-dark": palette.BACKUP,
    "rows": palette.ROWS,
    "unknown": palette.UNKNOWN,
}
"""The colours of the figures by what they mean; on a dark page blue is sky blue, and vermilion
orange, which are as easy to tell apart."""


def document(entries: Sequence[Entry], detail: Detail, *, title: str, made: str) -> str:
    """The whole page."""
    places = [f"certificate-{number}" for number in range(1, len(entries) + 1)]
    sections = [
        section(entry, place, detail, made) for entry, place in zip(entries, places, strict=True)
    ]
    body = [
        tag("a", "Skip to the certificates", href="#certificates", class_="skip"),
        tag("header", _heading(title, made, len(entries)), _theme()),
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


def _heading(title: str, made: str, count: int) -> Markup:
    of = "one certificate" if count == 1 else f"{count:,} certificates"
    said = f"A report on {of}, made {made} by pacbound {VERSION}."
    return tag("div", tag("h1", title), tag("p", said, class_="aside"))


def _theme() -> Markup:
    choices = [tag("option", name, value=name) for name in ("auto", "light", "dark")]
    # It works by the script, which shows it.
    return tag("label", "Theme ", tag("select", *choices, id="theme"), hidden=True)


def _summary(entries: Sequence[Entry], places: Sequence[str]) -> Markup | None:
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
    rows = [
        (
            tag("a", in_short(entry.name), href=f"#{place}"),
            entry.kind or "unknown",
            joined([verdict(entry), _alarm(entry)]),
            _delta(entry),
            _in_a_sentence(entry),
        )
        for entry, place in zip(entries, places, strict=True)
    ]
    head = ("Certificate", "Kind", "Verdict", "delta", "In short")
    return tag(
        "section",
        tag("h2", "Summary", id="summary"),
        tag("p", tag("strong", said)),
        table("All certificates of this page", head, rows, named=True),
        tag(
            "p",
            "Each claim fails with probability at most its delta. For all of them together, add "
            "the deltas.",
            class_="aside",
        ),
        class_="summary",
        aria_labelledby="summary",
    )


def _delta(entry: Entry) -> str:
    return exact(float(entry.claim["delta"])) if entry.claim else ""


def _alarm(entry: Entry) -> Markup | None:
    rung = any(alarms(part) for part in entry.all())
    return tag("strong", " ALARM", class_="verdict bad") if rung else None


def _in_a_sentence(entry: Entry) -> Markup:
    if entry.certificate is None:
        return joined([in_short(entry.problems[0])])
    return joined([" ".join(claim_of(entry.certificate)[:2])])


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
