"""What a certifying function was given: a tally, arrays, a frame, or files. Either way, a tally."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pacbound.errors import InvalidTypeError, InvalidValueError
from pacbound.sources.paths import are_paths
from pacbound.tally.draws import COLUMNS, refuse_unknown, taken_apart
from pacbound.tally.questions import QUESTIONS, Kind, with_article
from pacbound.tally.tally import Tally


def tally_of(
    kind: Kind,
    first: tuple[str, Any],
    *,
    arrays: Mapping[str, Any],
    columns: Mapping[str, Any] | None,
    options: Mapping[str, Any],
    reading: Mapping[str, Any],
    draw: Mapping[str, Any] | None = None,
) -> Tally:
    """The tally for a question of the `kind`.

    `first` is the name and value of the first argument, which may be a tally or, with `columns`, a
    table. `arrays` are the others, `options` say how to count, `reading` how to read files, and
    `draw` how rows are drawn before they are counted.
    """
    name, data = first
    draw = draw or {}
    refuse_unknown(draw, (name, *arrays, *options, *reading))
    arrays = {**arrays, **{role: draw[role] for role in COLUMNS if role in draw}}
    options = {**options, **{role: draw[role] for role in draw if role not in COLUMNS}}
    if isinstance(data, Tally):
        return _as_it_is(kind, data, arrays, columns, {**options, **reading})
    if columns is None:
        _refuse(reading, "is about files, and arrays were passed: leave it out")
        needed = QUESTIONS[kind].roles
        absent = [
            role
            for role, must in needed.items()
            if must and role != name and arrays.get(role) is None
        ]
        asks_about_answers = "correct" in needed
        if absent or (asks_about_answers and not _says_what_is_right(arrays)):
            said = absent[0] if absent else "correct"
            raise InvalidTypeError(
                f"{said} is missing: pass all arrays; or a Tally in place of them; or a table and "
                "its columns."
            )
        given = {name: data, **_present(arrays), **_present(options)}
        return Tally.from_arrays(**{"kind": kind, **given})
    _refuse(
        arrays, "stands beside columns, which say where the table holds everything: leave it out"
    )
    require_mapping(columns)
    # Here, so that a column that belongs to another question is refused before anything is read.
    QUESTIONS[kind].of_columns(**taken_apart(columns)[0])
    given = {**columns, **_present(options)}
    if are_paths(data):
        return Tally.from_files(data, **{"kind": kind, **given}, **_present(reading))
    _refuse(reading, "is about files, and a frame was passed: leave it out")
    return Tally.from_frame(data, **{"kind": kind, **given})


def require_mapping(columns: Any) -> None:
    """Raise unless `columns` say what each column is for, if there are any."""
    if columns is not None and not isinstance(columns, Mapping):
        raise InvalidTypeError(
            f"columns={columns!r} is not a mapping: expected what each column is for, and its name."
        )


def recorded_columns(columns: Mapping[str, Any] | None) -> dict[str, str]:
    """The names of the columns as a certificate keeps them: several of one role in one text."""
    return {
        recorded_role(role): name if isinstance(name, str) else ",".join(name)
        for role, name in (columns or {}).items()
        if name is not None
    }


def recorded_role(role: str) -> str:
    """What a column is for, as certificates and the command line say it, which speak of one row:
    `label`, where arrays are called `labels`.
    """
    return role if role.endswith("ss") else role.removesuffix("s")


def _as_it_is(
    kind: Kind,
    tally: Tally,
    arrays: Mapping[str, Any],
    columns: Any,
    options: Mapping[str, Any],
) -> Tally:
    if tally.kind != kind:
        raise InvalidValueError(
            f"{tally!r} is not a tally of {with_article(kind)}: count with "
            f"{', '.join(QUESTIONS[kind].roles)}."
        )
    _refuse(arrays, "stands beside a tally, which already holds it: leave it out")
    _refuse({"columns": columns}, "stands beside a tally, which is already counted: leave it out")
    _refuse(options, "stands beside a tally, which is already counted: leave it out")
    return tally


def _says_what_is_right(arrays: Mapping[str, Any]) -> bool:
    return arrays.get("correct") is not None or arrays.get("labels") is not None


def _present(values: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value is not None}


def _refuse(values: Mapping[str, Any], why: str) -> None:
    for name in _present(values):
        raise InvalidTypeError(f"{name} {why}.")
