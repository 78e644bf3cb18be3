"""Labelling on a terminal: a row is shown, its class is typed, and it is in the file before the
next is shown.

What is typed counts when Enter is pressed, and is then stored for good: a label that could be taken
back after its effect is seen would void the guarantee. Before Enter it can be erased, or taken back
by a `:u` at its end. What begins with a colon is a command, so that every letter can be a class;
the name of a class that begins with one is typed with another colon before it. The models' own
columns are not shown unless that is asked for, so that the label does not depend on them.
"""

from __future__ import annotations

import os
import select
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import typer

from pacbound.cascade.labelling import LabelSession
from pacbound.documents import printable
from pacbound.errors import InvalidTypeError, InvalidValueError
from pacbound.sources import TableFile
from pacbound.tally.classes import Class, NotAClassError, class_of_text

# So many rows are read at once, because reading one takes as long as reading all.
_AHEAD = 200

_MENU = 30
_MARK = ":"
SKIP, UNDO, QUIT = ":s", ":u", ":q"


def label_by_hand(
    session: LabelSession, path: Path, table: TableFile, *, hidden: set[str | None]
) -> None:
    """Ask for one label after the other, until none matters or the user quits.

    `path` is where the session is saved after each; `hidden` columns are not shown.
    """
    rows = _Shown(session, table, [name for name in table.columns if name not in hidden])
    menu = _Menu(session.classes)
    if not session.done:
        typer.echo(menu.explained())
    while not session.done:
        typer.echo(f"\n{session.progress}")
        row = int(session.ask(1)[0])
        typer.echo("\n".join(rows.lines(row)))
        for answer in _answers(row):
            if answer == QUIT:
                return
            if _stored(session, menu, row, answer):
                session.save(path)
                break
        else:
            return


def _answers(row: int) -> Iterator[str]:
    """What is typed for a row, line by line, until the input ends."""
    while True:
        typer.echo(f"label of row {row}> ", nl=False)
        line = _line()
        if not line:
            typer.echo()
            return
        yield line.strip()


def _line() -> str:
    """The next line that is typed; empty where the input ends."""
    # A signal that comes just before a read blocks is noticed only after it: Ctrl-C would wait for
    # the next key. A terminal hands over a line at a time, so none waits in a buffer unseen.
    while os.name == "posix" and not select.select([sys.stdin], [], [], 0.5)[0]:
        pass
    return sys.stdin.readline()


def _stored(session: LabelSession, menu: _Menu, row: int, answer: str) -> bool:
    """Whether the answer was one, and the session was told it."""
    if answer == SKIP:
        session.decline([row])
        return True
    if answer == UNDO:
        typer.echo("Nothing is typed yet, and what was stored before stays as it is.")
        return False
    found = menu.meant(answer)
    if found is None:
        if answer:
            typer.echo(menu.refused(answer))
        return False
    try:
        session.tell([row], [found])
    except (InvalidTypeError, InvalidValueError) as error:
        typer.echo(str(error))
        return False
    return True


class _Menu:
    """What may be typed, and the class that it stands for."""

    def __init__(self, classes: Sequence[Class]) -> None:
        # Numbers stand for themselves. Names get a number each, unless one of them is such a
        # number itself: then each is typed in full.
        self._is_numbers = not any(isinstance(found, str) for found in classes)
        self._names = {str(found): found for found in classes}
        numbered = {str(place): found for place, found in enumerate(classes, 1)}
        is_named = self._is_numbers or not self._names.keys().isdisjoint(numbered)
        self._keys = self._names if is_named else numbered

    def meant(self, answer: str) -> Class | None:
        """The class that is meant; None if none is."""
        if answer.startswith(_MARK):
            return self._names.get(answer[1:]) if answer.startswith(2 * _MARK) else None
        return self._keys.get(answer, self._names.get(answer, self._new(answer)))

    def refused(self, answer: str) -> str:
        """What to say to an answer that is not a class."""
        if answer.endswith(UNDO):
            return "Taken back."
        if answer.startswith(_MARK) and answer in self._names:
            return f"The class {answer} begins as commands do: type {_MARK}{answer}."
        what = "a command" if answer.startswith(_MARK) else "one of the classes"
        return f"{printable(answer)} is not {what}. {self.explained()}"

    def explained(self) -> str:
        listed = list(self._keys.items())
        shown = [
            _typed(key) if self._keys is self._names else f"{key} = {found}"
            for key, found in listed[:_MENU]
        ]
        more = f", … ({len(listed)} in all)" if len(listed) > _MENU else ""
        return (
            f"Type the class and Enter: {', '.join(shown)}{more}. {SKIP}: cannot tell, counts as a "
            f"loss. {QUIT}: stop here. Until Enter, erase what you typed or end it with {UNDO}; "
            "after it, a label stays."
        )

    def _new(self, answer: str) -> Class | None:
        """A number that is not in the menu: whether it can be a label is for the session to say."""
        try:
            found = class_of_text(answer) if self._is_numbers else None
        except NotAClassError:
            return None
        return found if isinstance(found, int) else None


def _typed(name: str) -> str:
    """How the name of a class is typed."""
    return f"{_MARK}{name}" if name.startswith(_MARK) else name


class _Shown:
    """The columns of rows, as lines of text."""

    def __init__(self, session: LabelSession, table: TableFile, columns: Sequence[str]) -> None:
        self._session, self._table, self._columns = session, table, columns
        self._read: dict[int, dict[str, str]] = {}

    def lines(self, row: int) -> list[str]:
        if row not in self._read:
            self._read = dict(self._rows(self._session.ask(_AHEAD)))
        width = max(map(len, self._columns), default=0)
        shown = self._read[row]
        return [f"row {row}", *(f"  {name:{width}}  {shown[name]}" for name in self._columns)]

    def _rows(self, rows: Any) -> Iterator[tuple[int, dict[str, str]]]:
        for batch in self._table.batches():
            chosen = np.isin(np.arange(batch.start, batch.start + batch.rows), rows)
            if not chosen.any():
                continue
            part = batch.where(chosen)
            texts = {name: _texts(part, name) for name in self._columns}
            for place, row in enumerate((batch.start + np.flatnonzero(chosen)).tolist()):
                yield row, {name: column[place] for name, column in texts.items()}


def _texts(batch: Any, name: str) -> list[str]:
    try:
        values = batch.values(name)
    except (InvalidTypeError, InvalidValueError):
        # An image, or a list: nothing that a line of a terminal can show.
        return ["(not shown)"] * batch.rows
    texts = [*(_harmless(str(found)) for found in values.distinct), ""]
    return [texts[place] for place in values.places.tolist()]


def _harmless(text: str) -> str:
    """Text of the data as a terminal may show it: what would move the cursor or change colours is
    replaced, and further lines are indented.
    """
    lines = text.expandtabs(4).splitlines() or [""]
    return "\n    ".join(
        "".join(letter if letter.isprintable() else "\N{REPLACEMENT CHARACTER}" for letter in line)
        for line in lines
    )
