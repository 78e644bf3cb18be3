"""Labelling on a terminal: a row is shown, its class is typed, and it is in the file before the
next is shown.

What is typed counts when Enter is pressed. Until the next label it can be taken back with `:u`, and
nothing that anybody sees depends on it by then: the row that is shown next was chosen without it,
the progress is the one before it, and who loads the file meanwhile does not get it. The next label
uses it, and then it stays: a label that could be taken back after its effect is seen would void the
guarantee. What begins with a colon is a command, so that every letter can be a class; the name of a
class that begins with one is typed with another colon before it. The models' own columns are not
shown unless they are named, so that the label does not depend on them.

Where answers are graded, a number on the scale is typed for each of them; the answers are shown.
"""

from __future__ import annotations

import os
import select
import sys
from collections.abc import Iterator, Sequence
from difflib import get_close_matches
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

# A forecast is shown after so many labels each.
_FORECAST = 10

_MENU = 30
_MARK = ":"
SKIP, UNDO, QUIT = ":s", ":u", ":q"


def label_by_hand(
    session: LabelSession,
    path: Path,
    table: TableFile,
    shown: Sequence[str],
    grades: Sequence[str] = (),
) -> None:
    """Ask for one label after the other, until none matters or the user quits.

    `path` is where the session is saved after each; only `shown` columns are shown. `grades` are
    the names of what is typed where answers are graded.
    """
    if not session.done:
        _ByHand(session, path, _Shown(table, shown), grades).run()


class _ByHand:
    """Rows one after the other. The last label is stored, but nothing has looked at it."""

    def __init__(
        self, session: LabelSession, path: Path, shown: _Shown, grades: Sequence[str]
    ) -> None:
        self._session, self._path, self._shown = session, path, shown
        self._menu: _Menu | _Grades = (
            _Menu(session.classes)
            if session.graded is None
            else _Grades(session.graded.scale, grades)
        )
        self._rows: list[int] = []
        self._last: int | None = None
        self._is_over = False

    def run(self) -> None:
        typer.echo(self._menu.explained())
        self._look()
        while not self._is_over:
            row = self._rows[0]
            typer.echo("\n".join(["", *self._shown.lines(row)]))
            if not self._is_answered(row):
                return

    def _look(self, row: int | None = None) -> None:
        """Use all labels so far: is it over, how far has it come, and what comes after `row`?"""
        session, now = self._session, self._session.progress
        self._is_over, self._last = now.done, None
        ahead = session.ask(_AHEAD).tolist()
        if row is not None:
            ahead = [row, *(found for found in ahead if found != row)]
        self._rows = ahead[:2]
        self._shown.read(self._rows, ahead)
        typer.echo(f"\n{now}")
        forecast = None if (now.labels + now.declined) % _FORECAST else session.forecast()
        if forecast is not None and not now.done:
            typer.echo(str(forecast))

    def _is_answered(self, row: int) -> bool:
        """Whether the row was answered, or the one before it taken back; not if the user quits."""
        for answer in _answers(f"{self._menu.wanted} of row {row}> "):
            if answer == QUIT:
                return False
            if answer == UNDO and self._last is not None:
                self._undo()
                return True
            label = None if answer == SKIP else self._meant(answer)
            if (answer == SKIP or label is not None) and self._is_stored(row, label):
                return True
        return False

    def _meant(self, answer: str) -> Any:
        """The class or the grades that were typed; None, after a message, if they are not valid."""
        if answer == UNDO:
            what = self._menu.what
            typer.echo(f"There is nothing to take back: a {what} stays once the next one is typed.")
            return None
        found = self._menu.meant(answer)
        if found is None and answer:
            typer.echo(self._menu.refused(answer))
        return found

    def _is_stored(self, row: int, label: Any) -> bool:
        """Whether the session took the label; the one before it is used first."""
        if self._last is not None:
            self._look(row)
        try:
            if label is None:
                self._session.decline([row])
            else:
                self._session.tell([row], **{self._menu.told_as: [label]})
        except (InvalidTypeError, InvalidValueError) as error:
            typer.echo(str(error))
            return False
        self._session._save_undoable(self._path)
        self._last, self._rows = row, self._rows[1:]
        said = "cannot tell" if label is None else printable(self._menu.said(label))
        typer.echo(f"Row {row}: {said}. Until the next {self._menu.what}, {UNDO} takes it back.")
        if not self._rows and not self._is_over:
            self._confirm()
        return True

    def _confirm(self) -> None:
        """No other row is worth asking for without looking at the last label."""
        for answer in _answers(f"Enter to go on, {UNDO} to take it back> "):
            if answer == UNDO:
                self._undo()
                return
            if not answer:
                break
        self._look()

    def _undo(self) -> None:
        self._session.undo()
        self._session._save_undoable(self._path)
        typer.echo(f"Taken back: the {self._menu.what} of row {self._last}.")
        self._rows = [int(self._last or 0), *self._rows]
        self._last = None


def _answers(prompt: str) -> Iterator[str]:
    """What is typed, line by line, until the input ends."""
    while True:
        typer.echo(prompt, nl=False)
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


class _Menu:
    """What may be typed, and the class that it stands for."""

    what, wanted, told_as = "label", "label", "labels"

    def __init__(self, classes: Sequence[Class]) -> None:
        # Numbers stand for themselves. Names get a number each, unless one of them is such a
        # number itself: then each is typed in full.
        self._is_numbers = not any(isinstance(found, str) for found in classes)
        self._names = {str(found): found for found in classes}
        numbered = {str(place): found for place, found in enumerate(classes, 1)}
        is_named = self._is_numbers or not self._names.keys().isdisjoint(numbered)
        self._keys = self._names if is_named else numbered

    def meant(self, answer: str) -> Class | None:
        """The class that was typed; None if there is no such class."""
        if answer.startswith(_MARK):
            return self._names.get(answer[1:]) if answer.startswith(2 * _MARK) else None
        return self._keys.get(answer, self._names.get(answer, self._new(answer)))

    def refused(self, answer: str) -> str:
        """What to say to an answer that is not a class."""
        if answer.endswith(UNDO):
            return "Taken back."
        if answer.startswith(_MARK) and answer in self._names:
            return f"The class {answer} begins as commands do: type {_MARK}{answer}."
        if answer.startswith(_MARK):
            return f"{printable(answer)} is not a command. {self.explained()}"
        near = get_close_matches(answer, self._names, n=1)
        meant = f" Did you mean {printable(near[0])}?" if near else f" {self.explained()}"
        return f"{printable(answer)} is not one of the classes.{meant}"

    def explained(self) -> str:
        listed = list(self._keys.items())
        shown = [
            _typed(key) if self._keys is self._names else f"{key} = {found}"
            for key, found in listed[:_MENU]
        ]
        more = f", … ({len(listed)} in all)" if len(listed) > _MENU else ""
        return (
            f"Type the class and Enter: {', '.join(shown)}{more}. {SKIP}: cannot tell, counts as a "
            f"loss. {UNDO}: take the last label back; once the next one is typed, it stays. "
            f"{QUIT}: stop here."
        )

    def said(self, label: Class) -> str:
        """The class, as it is said when it was stored."""
        return str(label)

    def _new(self, answer: str) -> Class | None:
        """A number that is not in the menu: whether it can be a label is for the session to say."""
        try:
            found = class_of_text(answer) if self._is_numbers else None
        except NotAClassError:
            return None
        return found if isinstance(found, int) else None


class _Grades:
    """What may be typed where answers are graded: a number for each, on the scale."""

    what, told_as = "grade", "quality"

    def __init__(self, scale: tuple[float, float], names: Sequence[str]) -> None:
        self._scale, self._names = scale, names
        self.wanted = " ".join(names)

    def meant(self, answer: str) -> Any:
        """The grades that were typed; None if not all of them are on the scale."""
        try:
            found = [float(part) for part in answer.replace(",", " ").split()]
        except ValueError:
            return None
        worst, best = self._scale
        if len(found) != len(self._names) or not all(worst <= one <= best for one in found):
            return None
        return found if len(found) > 1 else found[0]

    def refused(self, answer: str) -> str:
        """What to say to an answer that is not grades."""
        if answer.startswith(_MARK):
            return f"{printable(answer)} is not a command. {self.explained()}"
        some = "a grade" if len(self._names) == 1 else f"{len(self._names)} grades"
        return f"{printable(answer)} is not {some} {self._from_to}. {self.explained()}"

    def said(self, label: Any) -> str:
        """The grades, as they are said when they were stored."""
        found = label if isinstance(label, list) else [label]
        return ", ".join(f"{name} {one:g}" for name, one in zip(self._names, found, strict=True))

    def explained(self) -> str:
        each = " ".join(self._names)
        return (
            f"Type {each}, {'each ' * (len(self._names) > 1)}{self._from_to}, and Enter. {SKIP}: "
            f"cannot tell, counts as a loss. {UNDO}: take the last grade back; once the next one "
            f"is typed, it stays. {QUIT}: stop here."
        )

    @property
    def _from_to(self) -> str:
        worst, best = self._scale
        return f"from {worst:g} to {best:g}"


def _typed(name: str) -> str:
    """How the name of a class is typed."""
    return f"{_MARK}{name}" if name.startswith(_MARK) else name


class _Shown:
    """The columns of rows, as lines of text."""

    def __init__(self, table: TableFile, columns: Sequence[str]) -> None:
        self._table, self._columns = table, columns
        self._read: dict[int, dict[str, str]] = {}

    def read(self, rows: Sequence[int], ahead: Sequence[int]) -> None:
        """Have these rows at hand; if one is not, those ahead are read with it."""
        if not self._read.keys() >= {*rows}:
            self._read = dict(self._rows(ahead))

    def lines(self, row: int) -> list[str]:
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
