"""From what a verb was given to a tally: arrays, or `data` and the names of its columns."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pacbound.errors import InvalidTypeError, InvalidValueError
from pacbound.sources.paths import are_paths
from pacbound.tally.row_options import ROWS
from pacbound.tally.tally import Tally


def tally_of(
    question: Any,
    columns: Mapping[str, Any],
    data: Any,
    rows: Mapping[str, Any],
    counting: Mapping[str, Any] | None = None,
) -> Tally:
    """The tally of a question; whatever does not fit together raises before a row is read.

    `columns` is what rows bring, by name; `data` a frame, paths, a Tally, or None; `rows` are
    options of `RowOptions`, without those that are about the certificate; `counting` is what else
    the question takes, such as bins.
    """
    given = {name: value for name, value in columns.items() if value is not None}
    options = {name: value for name, value in rows.items() if value is not None}
    if isinstance(data, Tally):
        return _as_it_is(question, data, {**given, **options})
    for name, value in given.items():
        if isinstance(value, Tally):
            raise InvalidTypeError(f"{name} is a Tally: pass it as data=, and leave {name} out.")
    _require_columns(question, given, data)
    named = {name: value for name, value in options.items() if ROWS[name].column}
    several = {column.name for column in question.columns if column.several}
    for name, value in {**given, **named}.items():
        _require_fitting(name, value, data, several=name in several)
    passed = "arrays" if data is None else "files" if are_paths(data) else "a frame"
    for name in options:
        needs = ROWS[name].needs
        if (needs == "files" and passed != "files") or (needs and data is None):
            remedy = "pass the scores divided by it" if name == "scale" else "leave it out"
            raise InvalidTypeError(f"{name} is about {needs}s, and {passed} were passed: {remedy}.")
    binned = {name: value for name, value in (counting or {}).items() if value is not None}
    return Tally.count(question, data=data, **given, **binned, **options)


def recorded_columns(columns: Mapping[str, Any], data: Any) -> dict[str, str]:
    """The names of a table's columns as a certificate keeps them; none for arrays, and none where
    several stand in one text and one holds a comma: they could be those of other columns.
    """
    if data is None or isinstance(data, Tally):
        return {}
    lists = (value for value in columns.values() if isinstance(value, (list, tuple)))
    if any("," in name for several in lists for name in several):
        return {}
    return {
        name: value if isinstance(value, str) else ",".join(value)
        for name, value in columns.items()
        if value is not None
    }


def _as_it_is(question: Any, tally: Tally, beside: Mapping[str, Any]) -> Tally:
    for name in beside:
        raise InvalidTypeError(
            f"{name} was passed beside a Tally, which is already counted: pass one of them."
        )
    if tally.kind != question.kind:
        needed = ", ".join(name for name, must in question.roles.items() if must)
        raise InvalidValueError(f"{tally!r} counts something else: count with {needed}.")
    return tally


def _require_columns(question: Any, given: Mapping[str, Any], data: Any) -> None:
    absent = next(
        (name for name, must in question.roles.items() if must and name not in given), None
    )
    if absent is not None:
        what = "an array, or data= and the name of a column" if data is None else "its column"
        raise InvalidTypeError(f"{absent} is missing: pass {what}.")


def _require_fitting(name: str, value: Any, data: Any, *, several: bool) -> None:
    """Strings name columns of `data`; without it there are arrays."""
    is_name = isinstance(value, str) or (
        isinstance(value, (list, tuple))
        and bool(value)
        and all(isinstance(part, str) for part in value)
    )
    # A list of texts is a column of classes, unless it names the columns of a matrix.
    if is_name and data is None and (several or isinstance(value, str)):
        raise InvalidTypeError(
            f"{name}={value!r} names a column, and there is no table: add data=frame or "
            "data='rows.parquet'."
        )
    if not is_name and data is not None:
        raise InvalidTypeError(
            f"{name} is of type {type(value).__name__} beside data=: name its column, or leave "
            "data out."
        )
