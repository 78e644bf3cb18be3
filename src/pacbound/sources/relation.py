"""Tables in files as DuckDB relations, for counting inside DuckDB: only the columns that are
wanted, under names of their own.

Columns of text become numbers, truth values and classes by the rules of `text`, inside SQL. A value
that breaks a rule becomes null or stops the query, so whoever counts must refuse nulls; what is
wrong is then found by reading the rows in order. DuckDB takes `C` and `c` for one name, so files in
which names differ in case only are not read here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Literal, TypeVar

from pacbound.errors import InvalidTypeError, InvalidValueError
from pacbound.sources.delimited import DelimitedFile, place_of
from pacbound.sources.engine import (
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
from pacbound.sources.files import Progress, TableFile, Wanted, part_of
from pacbound.sources.json_lines import JsonFile
from pacbound.sources.parquet import ParquetFile
from pacbound.sources.paths import partitions_beside, partitions_of
from pacbound.sources.text_sql import typed

Result = TypeVar("Result")


class NotPlainError(Exception):
    """The tables are not laid out so that DuckDB reads exactly the columns that are meant: read
    them another way.
    """


@dataclass(frozen=True)
class _Layout:
    """What files must have in common to be read together: the call that reads them, the columns'
    types, and constants.
    """

    format: Literal["delimited", "json", "parquet"]
    options: str
    columns: tuple[tuple[str, str], ...]
    constants: tuple[tuple[str, str | None], ...]


def counted_inside(
    tables: Sequence[TableFile],
    wanted: Mapping[str, Wanted],
    count: Callable[[Relation], Result],
    *,
    memory_limit: str | None = None,
    progress: Progress | None = None,
) -> list[Result] | None:
    """What `count` makes of the rows inside DuckDB, files that are laid out alike together; the
    columns are the keys of `wanted`.

    None if anything is wrong or not plain: reading the rows in order then tells what it is, and in
    which file.
    """
    try:
        with connected(memory_limit) as connection:
            relations = list(_relations(connection, tables, wanted))
            shares = [
                part_of(progress, place / len(relations), 1 / len(relations))
                for place in range(len(relations))
            ]
            return [
                run(connection, partial(count, one), share)
                for one, share in zip(relations, shares, strict=True)
            ]
    except OutOfMemory as error:
        raise out_of_memory(str(tables[0].path), error) from None
    except (QueryError, NotPlainError, InvalidValueError, InvalidTypeError):
        return None


def _relations(
    connection: Connection, tables: Sequence[TableFile], wanted: Mapping[str, Wanted]
) -> Iterator[Relation]:
    """The rows of the tables, a relation for all files that are laid out alike; its columns are the
    keys of `wanted`.
    """
    alike: dict[_Layout, list[Path]] = {}
    names = list(dict.fromkeys(want.column for want in wanted.values()))
    schemas = _parquet_schemas(
        connection, [table.path for table in tables if isinstance(table, ParquetFile)]
    )
    for table in tables:
        alike.setdefault(_layout(table, schemas, names), []).append(table.path)
    for layout, paths in alike.items():
        selected = ", ".join(
            f"{_value(layout, want)} AS {identifier(name)}" for name, want in wanted.items()
        )
        yield connection.sql(select(selected, _scan(layout, paths)))


def _layout(
    table: TableFile, schemas: Mapping[Path, dict[str, str]], names: Sequence[str]
) -> _Layout:
    if isinstance(table, DelimitedFile):
        found = {name: place_of(place) for place, name in enumerate(table.header)}
        if any(list(table.header).count(name) > 1 for name in names):
            raise NotPlainError
        stored, constants = _split(table.path, found, names)
        return _Layout("delimited", table.options, stored, constants)
    if isinstance(table, JsonFile):
        stored, constants = _split(table.path, {name: name for name in _keys(table, names)}, names)
        _refuse_same_but_for_case([name for name, _ in stored])
        wanted = ", ".join(f"{literal(name)}: 'VARCHAR'" for name, _ in stored)
        return _Layout(
            "json",
            f"format={literal(table.layout)}, records='true', columns={{{wanted}}}",
            stored,
            constants,
        )
    stored, constants = _split(table.path, schemas[table.path], names)
    return _Layout("parquet", "", stored, constants)


def _keys(table: JsonFile, names: Sequence[str]) -> Sequence[str]:
    """The keys of the first rows, or of all where a name would be taken from the path, which a
    later row may hold itself.
    """
    first = table.first_keys
    return (
        table.keys
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
    return value if layout.format == "parquet" else typed(value, want.kind)


def _scan(layout: _Layout, paths: list[Path]) -> str:
    if layout.format == "parquet":
        return f"read_parquet({file_list(paths)}, hive_partitioning=false)"
    if layout.format == "json":
        return f"read_json({file_list(paths)}, hive_partitioning=false, {layout.options})"
    return f"read_csv({file_list(paths)}, hive_partitioning=false, {layout.options})"


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
    """The columns among the elements of a Parquet schema, which lists what is inside of each after
    it, the whole first.
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
