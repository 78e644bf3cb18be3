"""Rows that come over a pipe, line by line: CSV with a heading, or JSON objects.

They are delivered as they arrive, so that whoever reads them can act at once. Values are text, as
in the files of these formats, and read by the same rules.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Iterator, Sequence
from difflib import get_close_matches
from typing import Any

from pacbound.errors import InvalidValueError
from pacbound.sources.notation import PLAIN, Notation, delimiter_hint, likely_delimiter

NAME = "standard input"


def stream_batches(
    read: Callable[[], bytes], columns: Sequence[str], notation: Notation = PLAIN
) -> Iterator[Any]:
    """The rows of a stream in batches, whatever has arrived at a time.

    The first line decides: a stream that begins with `{` is JSON, one object on each line; else it
    is CSV, and its first line names the columns. A row stands on one line.

    Parameters
    ----------
    read
        Gives some bytes as soon as there are any, and none at the end.
    columns
        The columns that are needed.
    notation
        How the rows are written.

    Yields
    ------
    Batch
        Consecutive rows.

    Raises
    ------
    InvalidValueError
        If a line is not a row, or a column is not there. All rows before it were delivered.
    MissingDependencyError
        If PyArrow is not installed.
    """
    # Loaded here, because whoever reads arrays needs no Arrow.
    import pyarrow  # noqa: PLC0415

    from pacbound.sources.formats.records import RecordRows  # noqa: PLC0415

    parse: Callable[[str], list[str | None]] | None = None
    start, number = 0, 0
    for lines in _lines(read):
        rows: list[list[str | None]] = []
        problem: InvalidValueError | None = None
        for line in lines:
            number += 1
            if not line.strip():
                continue
            try:
                if parse is None:
                    is_json = line.lstrip().startswith("{")
                    parse = (
                        _objects(columns, notation)
                        if is_json
                        else _delimited(line, columns, notation)
                    )
                    if not is_json:
                        continue
                rows.append(parse(line))
            except (InvalidValueError, ValueError, csv.Error) as error:
                problem = InvalidValueError(f"{NAME}, line {number}: {error}")
                break
        if rows:
            arrays = [
                pyarrow.array(list(column), pyarrow.string()) for column in zip(*rows, strict=False)
            ]
            record = pyarrow.RecordBatch.from_arrays(arrays, names=list(columns))
            yield RecordRows(start, record, is_text=True, decimal=notation.decimal or ".")
            start += len(rows)
        if problem is not None:
            raise problem


def _lines(read: Callable[[], bytes]) -> Iterator[list[str]]:
    """Whole lines, as they arrive."""
    rest, first = b"", True
    while chunk := read():
        *whole, rest = (rest + chunk).split(b"\n")
        if whole:
            if first:
                whole[0], first = whole[0].removeprefix(b"\xef\xbb\xbf"), False
            yield [_text(line) for line in whole]
    if rest:
        yield [_text(rest.removeprefix(b"\xef\xbb\xbf") if first else rest)]


def _text(line: bytes) -> str:
    # What is not UTF-8 cannot be a number, a truth value or a known class, and is refused later.
    return line.removesuffix(b"\r").decode("utf-8", "replace")


def _delimited(
    heading: str, columns: Sequence[str], notation: Notation
) -> Callable[[str], list[str | None]]:
    usual = "\t" if "\t" in heading and "," not in heading else ","
    separator = notation.delimiter or usual
    names = _fields(heading, separator)
    for name in columns:
        if names.count(name) != 1:
            close = get_close_matches(name, names, n=1)
            hint = f" Did you mean {close[0]!r}?" if close else ""
            sign = likely_delimiter(names, separator)
            hint = hint if sign is None else f" {delimiter_hint(sign)}"
            times = "no column" if name not in names else "several columns"
            raise InvalidValueError(
                f"{times} {name!r} in the heading {', '.join(map(repr, names[:20]))}.{hint}"
            )
    places = [names.index(name) for name in columns]

    def parse(line: str) -> list[str | None]:
        fields = _fields(line, separator)
        if len(fields) != len(names):
            raise InvalidValueError(
                f"{len(fields)} values where the heading has {len(names)}: expected a row on each "
                "line."
            )
        return [fields[place] for place in places]

    return parse


def _fields(line: str, separator: str) -> list[str]:
    return next(csv.reader([line], delimiter=separator, strict=True))


def _objects(columns: Sequence[str], notation: Notation) -> Callable[[str], list[str | None]]:
    if notation.is_about_text:
        raise InvalidValueError(
            "delimiter and decimal are about delimited text, and this is JSON: leave them out."
        )

    def parse(line: str) -> list[str | None]:
        # Numbers stay the text that they are: it is read by the one rule for text.
        row = json.loads(
            line, object_pairs_hook=_unique, parse_float=str, parse_int=str, parse_constant=str
        )
        if not isinstance(row, dict):
            raise InvalidValueError("expected one JSON object on each line.")
        return [_value(row.get(name), name) for name in columns]

    return parse


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    row = dict(pairs)
    if len(row) < len(pairs):
        raise InvalidValueError("a key stands there twice.")
    return row


def _value(value: Any, name: str) -> str | None:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (dict, list)):
        raise InvalidValueError(f"{name} is a list or an object: expected one value.")
    return None if value is None else str(value)
