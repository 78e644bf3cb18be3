"""Tables as JSON objects, one on each line or all in one array: their keys are the columns. DuckDB
reads them.

A key that a row does not have is empty there. What goes out as JSON goes out as it stood, text for
text.
"""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any

from pacbound.errors import InvalidValueError
from pacbound.sources.embedded_duckdb import (
    Connection,
    connected,
    explained,
    file_list,
    identifier,
    in_batches,
    literal,
    select,
    share_done,
)
from pacbound.sources.fingerprints import require_sound
from pacbound.sources.formats.stored import StoredTable

_ROWS = 2**16
_FIRST_ROWS = 1000
_IS_OBJECT = "json_type(json) = 'OBJECT'"
_SOUND = f"{_IS_OBJECT} AND len(json_keys(json)) = len(list_distinct(json_keys(json)))"
_KEYS = "unnest(json_keys(json)) AS key"


class JsonFile(StoredTable):
    """A file of JSON objects."""

    @cached_property
    def layout(self) -> str:
        """How the objects lie in the file, as DuckDB calls it."""
        opened = gzip.open if self.path.suffix.lower() == ".gz" else open
        try:
            with opened(self.path, "rb") as file:
                start = file.read(4096).removeprefix(b"\xef\xbb\xbf").lstrip()
        except (gzip.BadGzipFile, EOFError, zlib.error) as error:
            raise InvalidValueError(
                f"{self.path} cannot be read ({error}). Was it cut short?"
            ) from None
        if not start:
            raise InvalidValueError(f"{self.path} is empty: expected a JSON object on each line.")
        return "array" if start.startswith(b"[") else "newline_delimited"

    @cached_property
    def first_keys(self) -> Sequence[str]:
        """The keys of the first rows, in order."""
        first = select("json", f"{self._objects} LIMIT {_FIRST_ROWS}")
        return self._found(select(_KEYS, f"({first}) WHERE {_IS_OBJECT}"))

    @cached_property
    def stored(self) -> Sequence[str]:
        """The keys of all rows, which takes reading them."""
        everywhere = select(_KEYS, f"{self._objects} WHERE {_IS_OBJECT}")
        return list(
            dict.fromkeys(
                [*self.first_keys, *sorted(self._found(select("DISTINCT key", f"({everywhere})")))]
            )
        )

    def records(
        self, columns: Sequence[str] | None
    ) -> Iterator[tuple[float, Any, Mapping[str, Any]]]:
        # Counting needs no Arrow.
        from pacbound.sources.formats.records import UnreadableError  # noqa: PLC0415

        keys, start = self.stored if columns is None else columns, 0
        require_sound(self.path)
        with connected(ordered=True) as connection, explained(str(self.path)):
            values = (
                self._typed(connection, keys)
                if columns is None
                else [*map(_text, keys), *map(_is_nested, keys)]
            )
            try:
                for record in self._reader(connection, values):
                    lines, nested = self._checked(record, start), record.columns[2 + len(keys) :]
                    rows = record.select(range(2, 2 + len(keys))).rename_columns(keys)
                    marked = dict(zip(keys, nested, strict=True)) if nested else {}
                    yield share_done(connection), rows, {"lines": lines, "nested": marked}
                    start += record.num_rows
            except UnreadableError as error:
                raise InvalidValueError(
                    f"{self.path} cannot be read ({str(error).splitlines()[0]}). Was it cut short?"
                ) from None

    @property
    def _objects(self) -> str:
        return f"read_json_objects({file_list([self.path])}, format={literal(self.layout)})"

    def _found(self, keys: str) -> list[str]:
        with connected(ordered=True) as connection, explained(str(self.path)):
            return list(dict.fromkeys(key for (key,) in connection.execute(keys).fetchall()))

    def _reader(self, connection: Connection, values: Sequence[str]) -> Any:
        # Names of their own: DuckDB takes C and c for one.
        named = [f"{value} AS {identifier(f'value {place}')}" for place, value in enumerate(values)]
        wanted = ["CAST(json AS VARCHAR) AS line", f"coalesce({_SOUND}, false) AS sound", *named]
        return in_batches(connection.sql(select(", ".join(wanted), self._objects)), _ROWS)

    def _typed(self, connection: Connection, keys: Sequence[str]) -> list[str]:
        """Each column as what all its values are: whole numbers, numbers, truth values, or else
        text.
        """
        tests = [test for key in keys for test in _type_tests(key)]
        [found] = connection.execute(select(", ".join(tests), self._objects)).fetchall()
        columns = []
        for key, whole, number, truth in zip(keys, *(found[at::3] for at in range(3)), strict=True):
            kind = "BIGINT" if whole else "DOUBLE" if number else "BOOLEAN" if truth else "VARCHAR"
            columns.append(f"CAST({_text(key)} AS {kind})")
        return columns

    def _checked(self, record: Any, start: int) -> Any:
        """The rows as they stood, if each is an object that has each key once."""
        unsound = [row for row, sound in enumerate(record.column("sound").to_pylist()) if not sound]
        if unsound:
            line = str(record.column("line")[unsound[0]].as_py())[:80]
            raise InvalidValueError(
                f"{self.path}: row {start + unsound[0]} is not an object with each key once: "
                f"{line}. Expected one JSON object a row."
            )
        return record.column("line")


def _text(key: str) -> str:
    return f"json_extract_string(json, {_pointer(key)})"


def _is_nested(key: str) -> str:
    """Whether the value is a list or an object, whose text would pass for a name."""
    listed = f"json_type(json, {_pointer(key)}) IN ('ARRAY', 'OBJECT')"
    return f"CASE WHEN left({_text(key)}, 1) IN ('[', '{{') THEN {listed} ELSE false END"


def _pointer(key: str) -> str:
    return literal("/" + key.replace("~", "~0").replace("/", "~1"))


def _type_tests(key: str) -> list[str]:
    kind = f"nullif(json_type(json, {_pointer(key)}), 'NULL')"
    whole = f"{kind} IN ('BIGINT', 'UBIGINT') AND try_cast({_text(key)} AS BIGINT) IS NOT NULL"
    tests = [whole, f"{kind} IN ('DOUBLE', 'BIGINT', 'UBIGINT')", f"{kind} = 'BOOLEAN'"]
    return [f"bool_and({test}) FILTER ({kind} IS NOT NULL)" for test in tests]
