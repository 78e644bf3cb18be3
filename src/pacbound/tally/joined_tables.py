"""Tables of several models, one for each, joined by an id into the rows of one table.

What people have is read as it is: a table of any format, the lines of lm-evaluation-harness, one
for each sample, and the samples of inspect_ai, in a JSON log or in a frame. Fields inside others
are named with a point: `metrics.acc`. The tables are held in memory. Every id must be in each table
once: to leave out rows that one model has not answered would compare it on the easier ones.
"""

from __future__ import annotations

import gzip
import json
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

import numpy as np

from pacbound.errors import InvalidTypeError, InvalidValueError
from pacbound.sources.batches import Wanted, rows_at
from pacbound.sources.fingerprints import file_fingerprint
from pacbound.sources.notation import PLAIN, Notation
from pacbound.sources.opening import open_table, open_tables
from pacbound.sources.paths import are_paths, format_of
from pacbound.sources.values import Values, is_missing
from pacbound.tally.classes import NotAClassError, class_of_text
from pacbound.tally.columns import Integers
from pacbound.tally.row_ids import refuse_reserved

# What inspect_ai writes for correct, partly correct, incorrect and no answer.
GRADES: Final = {"C": 1.0, "P": 0.5, "I": 0.0, "N": 0.0}
# How often a question was asked: its rows are a cluster.
_EPOCH: Final = "epoch"
# A hash of the question, which must be the same for all models.
_HASH: Final = "doc_hash"
_MOST_VALUES: Final = 20
Row = Mapping[str, Any]


@dataclass(frozen=True)
class TableOfModel:
    """The rows of one model, and what the table is called in messages."""

    name: str
    rows: Sequence[Row]

    def column(self, name: str) -> list[Any]:
        """A column, or a field inside one; None where a row does not have it."""
        found = [field_of(row, name) for row in self.rows]
        if all(value is None for value in found):
            known = sorted({key for row in self.rows[:100] for key in row})
            raise InvalidValueError(
                f"{self.name} has no column {name!r}: expected one of {', '.join(known[:30])}. A "
                "field inside another is named with a point, such as scores.match.value."
            )
        return found

    def has(self, name: str) -> bool:
        """Whether some row has the column."""
        return any(field_of(row, name) is not None for row in self.rows)

    def where(self, column: str, value: str) -> TableOfModel:
        """Only the rows in which the column has the value."""
        kept = [row for row in self.rows if written(field_of(row, column)) == value]
        if not kept:
            known = sorted(set(map(written, self.column(column))))[:_MOST_VALUES]
            raise InvalidValueError(
                f"{self.name} has no row where {column} is {value!r}: expected one of "
                f"{', '.join(known)}."
            )
        return TableOfModel(self.name, kept)

    def places(self, ids: Sequence[str]) -> dict[tuple[str, ...], int]:
        """The place of each row by its id, if no id is there twice."""
        columns = [self.column(name) for name in ids]
        keys = [tuple(map(written, key)) for key in zip(*columns, strict=True)]
        if any(is_missing(value) for column in columns for value in column):
            raise InvalidValueError(f"{self.name} has rows without {', '.join(ids)}.")
        twice = [key for key, rows in Counter(keys).items() if rows > 1]
        if twice:
            raise InvalidValueError(
                f"{self.name} has {len(twice)} ids in {', '.join(ids)} more than once, such as "
                f"{_some(twice)}. {self._remedy(keys)}"
            )
        return {key: place for place, key in enumerate(keys)}

    def _remedy(self, keys: Sequence[tuple[str, ...]]) -> str:
        """Suggests a column that tells rows with the same id apart."""
        found: dict[str, list[str]] = {}
        for name in dict.fromkeys(key for row in self.rows for key in row):
            values = [row.get(name) for row in self.rows]
            plain = all(isinstance(value, (str, int)) for value in values)
            if plain and len(set(zip(keys, values, strict=True))) == len(keys):
                found[name] = sorted(set(map(written, values)))
        name = min(found, key=lambda name: len(found[name]), default="")
        if name and len(found[name]) <= _MOST_VALUES:
            return f"Pick one by its {name}: --where {name}={found[name][0]}"
        return "Name columns that tell rows apart: --id document,question"


@dataclass(frozen=True)
class JoinedTables:
    """The rows that several tables share, in the order of the first; `ids` are the columns that
    they were joined by.
    """

    tables: Sequence[TableOfModel]
    ids: tuple[str, ...]
    sources: tuple[str, ...] | None

    @property
    def known_by(self) -> dict[str, str]:
        """What a draw knows rows by: the id; the question and the epoch where each was asked
        several times.
        """
        if self.ids[1:] == (_EPOCH,):
            return {"clusters": self.ids[0], "row_ids": _EPOCH}
        return {"row_ids": self.ids[0]} if len(self.ids) == 1 else {}

    @cached_property
    def _order(self) -> list[list[int]]:
        """For each table the places of its rows, in the order of the first table."""
        found = [table.places(self.ids) for table in self.tables]
        for one, other in pairwise([*zip(self.tables, found, strict=True)]):
            for (table, here), (against, there) in ((one, other), (other, one)):
                lacking = [key for key in here if key not in there]
                if lacking:
                    raise InvalidValueError(
                        f"{len(lacking)} of {len(here)} ids of {table.name} are not in "
                        f"{against.name}, such as {_some(lacking)}: compare models on the same "
                        "rows. If one gave no answer, keep its row: what is empty counts against "
                        "the new model of a comparison; for a cascade write a class of its own, "
                        "such as 'no answer' or -1."
                    )
        return [[places[key] for key in found[0]] for places in found]

    def for_each(self, names: Any, role: str) -> list[str]:
        """The column of a role in each of the tables: one name for all, or one for each. The
        confidence of the slow model, whose table is the last, plays no part.
        """
        listed = [names] if isinstance(names, str) else list(names)
        models = len(self.tables) - (role == "confidence")
        if len(listed) not in (1, models):
            raise InvalidTypeError(
                f"{role} names {len(listed)} columns, and there are {models} tables that bring it: "
                "name one for all of them, or one for each."
            )
        return listed if len(listed) == models else listed * models

    def column(self, model: int, name: str) -> list[Any]:
        """A column of a model's table."""
        column = self.tables[model].column(name)
        return [column[place] for place in self._order[model]]

    def have(self, name: str) -> bool:
        """Whether some table has the column."""
        return any(table.has(name) for table in self.tables)

    def same(self) -> list[str]:
        """The columns that every table has, and that say the same in all of them."""
        names = dict.fromkeys(key for row in self.tables[0].rows for key in row)
        others = range(1, len(self.tables))
        return [
            name
            for name in names
            if all(table.has(name) for table in self.tables)
            and all(self.column(model, name) == self.column(0, name) for model in others)
        ]

    def shared(self, name: str) -> list[Any]:
        """A column that says the same in every table that has it."""
        having = [model for model, table in enumerate(self.tables) if table.has(name)] or [0]
        first, *others = [self.column(model, name) for model in having]
        for model, other in zip(having[1:], others, strict=True):
            differ = [
                place
                for place, (a, b) in enumerate(zip(first, other, strict=True))
                if written(a) != written(b)
            ]
            if differ:
                ids = self.column(having[0], self.ids[0])
                raise InvalidValueError(
                    f"{name} is not the same in {self.tables[having[0]].name} and "
                    f"{self.tables[model].name} ({len(differ)} rows), such as for "
                    f"{self.ids[0]} {_some([(written(ids[place]),) for place in differ])}: these "
                    "are not the same questions."
                )
        return first


def rows_to_ask(
    files: Sequence[Any],
    rows: Integers,
    fill: Sequence[str],
    *,
    shown: Sequence[str] | None = None,
    hidden: Collection[str] = (),
    by: Any = None,
    where: Any = None,
    notation: Notation = PLAIN,
) -> dict[str, list[Any]]:
    """Columns of these rows that a labeller may see, and empty ones to `fill`: those that are
    `shown` or, without it, all that are not `hidden`; of joined tables only those that say the same
    in all of them.
    """
    if by is None:
        tables = open_tables(files, notation)
        columns = list(dict.fromkeys(name for table in tables for name in table.columns))
        refuse_reserved(columns, files[0])
    else:
        models = joined(files, by=by, where=where, notation=notation)
        for model in models.tables:
            refuse_reserved(dict.fromkeys(key for row in model.rows for key in row), model.name)
        columns = models.same()
    seen = [name for name in columns if name not in hidden] if shown is None else list(shown)
    strange = [name for name in seen if name not in columns]
    if strange:
        raise InvalidValueError(
            f"{files[0]} has no column {strange[0]!r} to show: expected some of "
            f"{', '.join(columns[:30])}."
        )
    found: dict[str, list[Any]] = {name: [] for name in seen}
    if by is None:
        # Text goes out as it stood.
        slots = {name: Wanted(name, "class") for name in seen}
        for _, batch in rows_at(np.sort(rows), tables, slots, None) if seen else ():
            for name in seen:
                found[name] += batch.values(name).column.tolist()
        places = np.argsort(np.argsort(rows))
    else:
        found, places = {name: models.column(0, name) for name in seen}, rows
    chosen = {name: [column[place] for place in places] for name, column in found.items()}
    return {**chosen, **{name: [None] * len(rows) for name in fill}}


def joined(data: Any, *, by: Any, where: Any = None, notation: Notation = PLAIN) -> JoinedTables:
    """The tables of several models joined by the columns `by`; `where` picks some of their rows."""
    listed = list(data) if isinstance(data, (list, tuple)) else [data]
    if len(listed) < 2:
        raise InvalidTypeError(
            "id joins the tables of several models, and there is one table: pass data=(old, new), "
            "or for a cascade (fast, slow), or leave id out."
        )
    ids = tuple(_names(by))
    if any(type(one).__module__.startswith("pyspark.") for one in listed):
        raise InvalidTypeError(
            "id joins tables in memory, and the rows of a frame of Spark stay there: rename what "
            f"both have, join them in Spark first, old.join(new, {list(ids)}), and pass the one "
            "frame without id."
        )
    _require_files(listed)
    tables = [_read(one, place, notation) for place, one in enumerate(listed)]
    for column, value in _conditions(where):
        tables = [table.where(column, value) for table in tables]
    if len(ids) == 1 and all(table.has(_EPOCH) for table in tables) and _repeat(tables, ids[0]):
        ids = (*ids, _EPOCH)
    sources = [file_fingerprint(one) if are_paths(one) else None for one in listed]
    known = tuple(name for name in sources if name is not None)
    for place, source in enumerate(sources):
        if source is not None and source in sources[:place]:
            raise InvalidValueError(
                f"{listed[place]} holds the same bytes as {listed[sources.index(source)]}: these "
                "are the answers of one model. Name a file of each model."
            )
    found = JoinedTables(tables, ids, known if len(known) == len(listed) else None)
    if all(table.has(_HASH) for table in tables):
        found.shared(_HASH)
    return found


def _require_files(listed: Sequence[Any]) -> None:
    """Raise if a path is not one file: in which order the models stand is for the user to say."""
    for one in listed:
        if are_paths(one) and (isinstance(one, (list, tuple)) or not Path(one).is_file()):
            raise InvalidValueError(
                f"{one} is not a file, and id joins one file for each model, in their order: name "
                "them one by one, the old model's (of a cascade, the fast one's) first."
            )


def quality_of(values: Iterable[Any], name: str) -> list[Any]:
    """Qualities as numbers: truth values and the letters of inspect_ai count as what they mean."""
    found: list[Any] = []
    for row, value in enumerate(values):
        if isinstance(value, str) and value in GRADES:
            found.append(GRADES[value])
        elif is_missing(value) or isinstance(value, (bool, int, float)):
            found.append(float("nan") if is_missing(value) else float(value))
        else:
            raise InvalidTypeError(
                f"{name} holds {value!r} in row {row}: expected a number from 0 to 1, true or "
                f"false, or one of {', '.join(GRADES)}."
            )
    return found


def field_of(row: Row, name: str) -> Any:
    """A value of a row, by its key, or by the keys of fields inside each other."""
    if name in row:
        return None if is_missing(row[name]) else row[name]
    first, _, rest = name.partition(".")
    inner = row.get(first)
    return field_of(inner, rest) if rest and isinstance(inner, Mapping) else None


def written(value: Any) -> str:
    """A value as text: 7, 7.0 and "7" are one."""
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return "" if value is None else str(value)


def _read(data: Any, place: int, notation: Notation) -> TableOfModel:
    name = str(data) if are_paths(data) else ("the first table", "the second table")[min(place, 1)]
    if isinstance(data, (list, tuple)):
        rows: Any = data
    elif are_paths(data) and format_of(Path(data)) == "json":
        rows = _records(Path(data))
    elif are_paths(data):
        table = open_table(data, notation)
        rows = [
            row
            for batch in table.batches()
            for row in _rows_of({name: _values(batch.values(name)) for name in table.columns})
        ]
    else:
        # Loaded here, because files need no narwhals.
        from pacbound.tally.frames.counting import eager_columns  # noqa: PLC0415

        rows = _rows_of(eager_columns(data))
    if not rows or not all(isinstance(row, Mapping) for row in rows):
        raise InvalidValueError(f"{name} has no rows: expected one for each id.")
    return TableOfModel(name, rows)


def _records(path: Path) -> list[Any]:
    """The objects of a JSON file: one on each line, all in one array, or the samples of a log."""
    opened = gzip.open if path.suffix.lower() == ".gz" else open
    try:
        with opened(path, "rt", encoding="utf-8") as file:
            text = file.read().lstrip("\ufeff")
        try:
            found = json.loads(text)
        except json.JSONDecodeError:
            return [json.loads(line) for line in text.split("\n") if line.strip()]
    except (OSError, UnicodeDecodeError, json.JSONDecodeError, EOFError) as error:
        raise InvalidValueError(f"{path} cannot be read as JSON: {error}.") from None
    if isinstance(found, dict) and isinstance(found.get("samples"), list):
        return list(found["samples"])
    return found if isinstance(found, list) else [found]


def _values(column: Values) -> list[Any]:
    """The values of a column of a file; text in a file without types may stand for numbers."""
    found = column if column.typed else replace(column, distinct=[*map(_untyped, column.distinct)])
    return list(found.column)


def _untyped(text: str) -> Any:
    try:
        return class_of_text(text)
    except NotAClassError:
        try:
            return float(text)
        except ValueError:
            return text


def _rows_of(columns: Mapping[str, Sequence[Any]]) -> list[Row]:
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


def _repeat(tables: Sequence[TableOfModel], name: str) -> bool:
    return any(len(set(map(written, t.column(name)))) < len(t.rows) for t in tables)


def _names(by: Any) -> list[str]:
    named = by.split(",") if isinstance(by, str) else by
    names = list(named) if isinstance(named, (list, tuple)) else []
    if not names or not all(isinstance(name, str) and name for name in names):
        raise InvalidTypeError(f"id={by!r} names no column: expected a name such as 'doc_id'.")
    return [name.strip() for name in names]


def _conditions(where: Any) -> list[tuple[str, str]]:
    """The columns and the values that pick rows, from a mapping or from text."""
    if where is None:
        return []
    if isinstance(where, Mapping):
        return [(str(column), written(value)) for column, value in where.items()]
    pairs = [pair.partition("=") for pair in str(where).split(",")]
    if not all(column and sign for column, sign, _ in pairs):
        raise InvalidValueError(
            f"where={where!r} picks no rows: expected COLUMN=VALUE, such as filter=strict-match."
        )
    return [(column.strip(), value.strip()) for column, _, value in pairs]


def _some(keys: Sequence[tuple[str, ...]]) -> str:
    return ", ".join(" / ".join(key) for key in keys[:3])
