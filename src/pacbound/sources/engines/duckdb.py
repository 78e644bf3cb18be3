"""Tables in files as DuckDB relations: only the columns that are wanted, under names of their own.

Columns of text become numbers, truth values and names by the rules of `formats.records`, inside
SQL. A value that breaks a rule becomes null or, where null is a value, stops the query, so whoever
counts must refuse nulls; what is wrong is then found by reading the rows in order. Rare ways to
write a value, such as a truth value between tabs, may be taken for broken here. Nothing is accepted
that `formats.records` refuses, and what is accepted has the same value.

DuckDB takes `C` and `c` for one name, so files in which names differ in case only are not read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Literal, TypeVar

from pacbound.errors import InvalidTypeError, InvalidValueError
from pacbound.sources.batches import (
    CannotCountError,
    Part,
    Progress,
    TableFile,
    Wanted,
    in_order,
    part_of,
)
from pacbound.sources.embedded_duckdb import (
    Connection,
    OutOfMemory,
    QueryError,
    Relation,
    connected,
    file_list,
    identifier,
    literal,
    out_of_memory,
    run,
    select,
)
from pacbound.sources.notation import FALSE, TRUE
from pacbound.sources.paths import format_of, partitions_beside, partitions_of

Result = TypeVar("Result")
# Classes are not here: what names one is decided on distinct values, outside of SQL.
Kind = Literal["number", "number or nothing", "flag", "name"]

_SPACES = "".join(chr(code) for code in range(0x3001) if chr(code).isspace())


class NotPlainError(Exception):
    """The tables are not laid out so that DuckDB reads exactly the columns that are meant."""


@dataclass(frozen=True)
class _Layout:
    """What files must have in common to be read together."""

    format: Literal["delimited", "json", "parquet"]
    options: str
    decimal: str
    columns: tuple[tuple[str, str], ...]
    constants: tuple[tuple[str, str | None], ...]


@contextmanager
def parts(
    tables: Sequence[TableFile],
    wanted: Mapping[str, Wanted],
    *,
    memory_limit: str | None = None,
    progress: Progress | None = None,
) -> Iterator[list[Part]]:
    """The rows of tables as relations, those that are laid out alike together, or else in order.

    Text that names classes is read in order: what names a class is not decided in SQL.
    """
    with connected(memory_limit) as connection:
        try:
            found = _relations(connection, tables, wanted)
        except OutOfMemory as error:
            raise out_of_memory(str(tables[0].path), error) from None
        except (QueryError, NotPlainError, InvalidValueError, InvalidTypeError):
            # Reading the rows in order tells what is wrong, and in which file.
            yield [Part(batches=partial(in_order, tables, wanted, progress))]
            return
        share = 1 / len(found)
        yield [
            _part(connection, relation, same, wanted, part_of(progress, place * share, share))
            for place, (relation, same) in enumerate(found)
        ]


def _part(
    connection: Connection,
    relation: Relation,
    tables: Sequence[TableFile],
    wanted: Mapping[str, Wanted],
    progress: Progress | None,
) -> Part:
    batches = partial(in_order, tables, wanted, progress)
    has_types = format_of(tables[0].path) == "parquet"
    if not has_types and any(want.kind == "class" for want in wanted.values()):
        return Part(batches=batches)

    def watched(work: Callable[[], Result]) -> Result:
        try:
            return run(connection, work, progress)
        except OutOfMemory as error:
            raise out_of_memory(str(tables[0].path), error) from None
        except QueryError as error:
            raise CannotCountError(str(error)) from None

    return Part(frame=relation, keyed=True, run=watched, batches=batches)


def _relations(
    connection: Connection, tables: Sequence[TableFile], wanted: Mapping[str, Wanted]
) -> list[tuple[Relation, list[TableFile]]]:
    """A relation for all tables that are laid out alike; its columns are the keys of `wanted`."""
    alike: dict[_Layout, list[TableFile]] = {}
    names = list(dict.fromkeys(want.column for want in wanted.values()))
    stored = [table.path for table in tables if format_of(table.path) == "parquet"]
    schemas = _parquet_schemas(connection, stored)
    for table in tables:
        alike.setdefault(_layout(table, schemas, names), []).append(table)
    found = []
    for layout, same in alike.items():
        selected = ", ".join(
            f"{_value(layout, want)} AS {identifier(key)}" for key, want in wanted.items()
        )
        paths = [table.path for table in same]
        found.append((connection.sql(select(selected, _scan(layout, paths))), same))
    return found


def _layout(table: Any, schemas: Mapping[Path, dict[str, str]], names: Sequence[str]) -> _Layout:
    if format_of(table.path) == "delimited":
        found = {name: table.place_of(place) for place, name in enumerate(table.stored)}
        if any(list(table.stored).count(name) > 1 for name in names):
            raise NotPlainError
        stored, constants = _split(table.path, found, names)
        return _Layout("delimited", table.options, table.decimal, stored, constants)
    if format_of(table.path) == "json":
        stored, constants = _split(table.path, {name: name for name in _keys(table, names)}, names)
        _refuse_same_but_for_case([name for name, _ in stored])
        wanted = ", ".join(f"{literal(name)}: 'VARCHAR'" for name, _ in stored)
        return _Layout(
            "json",
            f"format={literal(table.layout)}, records='true', columns={{{wanted}}}",
            ".",
            stored,
            constants,
        )
    stored, constants = _split(table.path, schemas[table.path], names)
    return _Layout("parquet", "", ".", stored, constants)


def _keys(table: Any, names: Sequence[str]) -> Sequence[str]:
    """The keys of the first rows, or of all where a name would be taken from the path, which a
    later row may hold itself.
    """
    first: Sequence[str] = table.first_keys
    return (
        table.stored
        if any(name in partitions_of(table.path) and name not in first for name in names)
        else first
    )


def _split(
    path: Path, found: Mapping[str, str], names: Sequence[str]
) -> tuple[tuple[tuple[str, str], ...], tuple[tuple[str, str | None], ...]]:
    """The names that the file itself has, and those that its path stands for."""
    stored = tuple((name, found[name]) for name in names if name in found)
    constants = tuple(
        (name, value) for name, value in partitions_beside(path, found).items() if name in names
    )
    if len(stored) + len(constants) != len(names) or not stored:
        raise NotPlainError
    return stored, constants


def _value(layout: _Layout, want: Wanted) -> str:
    constants, stored = dict(layout.constants), dict(layout.columns)
    if want.column in constants:
        constant = constants[want.column]
        value = "CAST(NULL AS VARCHAR)" if constant is None else literal(constant)
    else:
        value = identifier(want.column if layout.format == "parquet" else stored[want.column])
    if layout.format == "parquet" or want.kind == "class":
        return value
    return typed(value, want.kind, layout.decimal)


def _scan(layout: _Layout, paths: list[Path]) -> str:
    read = {"parquet": "read_parquet", "json": "read_json", "delimited": "read_csv"}[layout.format]
    options = ", ".join(filter(None, ("hive_partitioning=false", layout.options)))
    return f"{read}({file_list(paths)}, {options})"


def _parquet_schemas(connection: Connection, paths: list[Path]) -> dict[Path, dict[str, str]]:
    """The type of each column of each file, by its exact name."""
    if not paths:
        return {}
    wanted = (
        "file_name, name, coalesce(num_children, 0), concat_ws(' ', type, converted_type, "
        "logical_type, scale, precision)"
    )
    elements: dict[str, list[tuple[str, int, str]]] = {}
    for file, *element in connection.execute(
        select(wanted, f"parquet_schema({file_list(paths)})")
    ).fetchall():
        elements.setdefault(file, []).append(tuple(element))
    if elements.keys() != {str(path.absolute()) for path in paths}:
        raise NotPlainError
    return {path: _columns(elements[str(path.absolute())]) for path in paths}


def _columns(elements: Sequence[tuple[str, int, str]]) -> dict[str, str]:
    """The columns among the elements of a Parquet schema: the table comes first, and each element
    is followed by those inside it.
    """
    found, inside = [], 0
    for name, children, kind in elements[1:]:
        if not inside:
            found.append((name, kind))
        inside += children - (inside > 0)
    _refuse_same_but_for_case([name for name, _ in found])
    return dict(found)


def _refuse_same_but_for_case(names: Sequence[str]) -> None:
    if len({name.casefold() for name in names}) != len(names):
        raise NotPlainError


def typed(column: str, kind: Kind, decimal: str = ".") -> str:
    """The expression for what the text in `column`, an expression itself, stands for."""
    trimmed = _trimmed(column)
    match kind:
        case "number":
            return _number(column, decimal)
        case "number or nothing":
            return (
                f"CASE WHEN coalesce({trimmed}, '') = '' THEN NULL ELSE "
                f"coalesce({_number(column, decimal)}, error('no number')) END"
            )
        case "flag":
            return (
                f"CASE WHEN {_one_of(column, TRUE)} THEN true WHEN {_one_of(column, FALSE)} THEN "
                "false END"
            )
        case "name":
            return f"nullif({trimmed}, '')"


def _number(column: str, decimal: str) -> str:
    # DuckDB takes 1_000 and +-1 for numbers.
    odd = f"contains({column}, '_') OR contains({column}, '+-')"
    if decimal == ",":
        odd, column = f"{odd} OR contains({column}, '.')", f"replace({column}, ',', '.')"
    return f"CASE WHEN {odd} THEN NULL ELSE try_cast({column} AS DOUBLE) END"


def _one_of(column: str, words: tuple[str, ...]) -> str:
    listed = ", ".join(f"'{word}'" for word in words)
    return f"lower({column}) IN ({listed})"


def _trimmed(column: str) -> str:
    # Trimming a set of characters is slow, and hardly any value has one of them at its ends.
    ends = f"ascii({column}) BETWEEN 33 AND 126 AND ascii(right({column}, 1)) BETWEEN 33 AND 126"
    return f"CASE WHEN {ends} THEN {column} ELSE trim({column}, '{_SPACES}') END"
