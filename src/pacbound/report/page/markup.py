"""HTML and SVG as text that is escaped by construction.

Whatever is not `Markup` already is escaped where it enters an element, so names of classes, columns
and groups, notes and messages show as the text that they are.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from typing import Final

_VOID: Final = frozenset({"input", "link", "meta"})
_LONGEST: Final = 120


class Markup(str):
    """Text that is markup already, and is not escaped again."""

    __slots__ = ()


def tag(name: str, /, *inside: str | None, **attributes: str | float | bool | None) -> Markup:
    """An element. Underscores in the names of attributes stand for hyphens, one at the end is
    dropped (`class_`); False and None leave an attribute out, True has no value.
    """
    written = "".join(
        f" {key.rstrip('_').replace('_', '-')}"
        + ("" if value is True else f'="{escape(str(value))}"')
        for key, value in attributes.items()
        if value is not None and value is not False
    )
    if name in _VOID:
        return Markup(f"<{name}{written}>")
    return Markup(f"<{name}{written}>{joined(inside)}</{name}>")


def joined(parts: Iterable[str | None]) -> Markup:
    """The parts one after the other, each escaped unless it is markup."""
    texts = (part if isinstance(part, Markup) else _escaped(part) for part in parts if part)
    return Markup("".join(texts))


def _escaped(text: str) -> str:
    """Escaped, with no line that begins with the sign of a percentage."""
    return escape(text).replace(" %", "\N{NO-BREAK SPACE}%")


def table(
    caption: str, head: Sequence[str], rows: Iterable[Sequence[str]], *, named: bool = False
) -> Markup:
    """A table whose first column names its rows, in a box that scrolls where it is too wide; with
    `named`, each cell knows the name of its column, for phones that show it as a list.
    """
    names = head[1:] if named else [None] * (len(head) - 1)
    body = (
        tag(
            "tr",
            tag("th", row[0], scope="row"),
            *(tag("td", cell, data_name=name) for name, cell in zip(names, row[1:], strict=True)),
        )
        for row in rows
    )
    inside = tag(
        "table",
        tag("caption", caption),
        tag("thead", tag("tr", *(tag("th", name, scope="col") for name in head))),
        tag("tbody", *body),
    )
    return tag("div", inside, class_="scroll", role="group", tabindex="0", aria_label=caption)


def pairs(entries: Iterable[tuple[str, str]], *, class_: str | None = None) -> Markup:
    """A list of names and what they stand for."""
    items = (tag("div", tag("dt", name), tag("dd", value)) for name, value in entries if value)
    return tag("dl", *items, class_=class_)


def folded(summary: str, *inside: str | None) -> Markup:
    """What is shown when it is asked for, and when the page is printed."""
    return tag("details", tag("summary", summary), *inside)


def in_short(name: str) -> str:
    """`name`, cut where it is longer than anyone reads."""
    return name if len(name) <= _LONGEST else f"{name[:_LONGEST]}…"
