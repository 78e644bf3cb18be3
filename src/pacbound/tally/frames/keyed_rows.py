"""Rows that are drawn in the engine that holds them: the keyed numbers of
`pacbound.tally.keyed_numbers` as expressions, and the draws of `pacbound.tally.draws` made of them.

DuckDB and Spark hash a name themselves; Polars hands its names over in batches. Counts come back,
and 8 bytes of the hash of each name, in buckets: hashes are all of one length, so that they are in
order where their hexadecimal digits are. Whole numbers below 2^53 are exact as floats, and nothing
is computed that has other steps, so that every engine draws the very rows that arrays give. Rows in
an engine have no order, and each needs an id. Nothing is said here about a row's place, but an
error names a value, and how many there are.
"""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import reduce
from typing import Any, Final

import narwhals as nw
import numpy as np

from pacbound.errors import InvalidValueError
from pacbound.tally.classes import MISSING_CODES, ClassRule
from pacbound.tally.columns import Slot, stored
from pacbound.tally.draws import (
    BUCKET_DIGITS,
    Draw,
    Drawn,
    Numbers,
    cluster_too_large,
    no_name,
    not_a_weight,
    repeated_id,
    require_some_kept,
    weight_too_large,
)
from pacbound.tally.frames.counting import computed_once, counted, extreme
from pacbound.tally.frames.engine_rows import MOST_BINS, EngineRows, bin_of
from pacbound.tally.frames.opening import (
    Frame,
    as_text,
    is_number,
    is_text,
    known_frame,
    one_where,
    typed,
    unscaled,
)
from pacbound.tally.keyed_numbers import Purpose, keyed_prefix
from pacbound.tally.questions.question import Question

# So many names come back from an engine; of more only a digest does.
MOST_NAMES: Final = 2**22

# Columns that are there for the time of a draw.
_CLUSTER, _ROW, _HASH, _ROWS, _BUCKET, _NAMES, _DIGEST = (
    f"pac_draw_{name}" for name in ("cluster", "row", "hash", "rows", "bucket", "names", "digest")
)
_UNITS, _NULL, _STRANGE, _DOUBLED = (
    f"pac_draw_{name}" for name in ("units", "null", "strange", "doubled")
)
_HIGH, _LOW, _UNIFORM = "pac_draw_high", "pac_draw_low", "pac_draw_uniform"
_GROUP, _BIN, _FIRST, _LAST = (f"pac_draw_{name}" for name in ("group", "bin", "first", "last"))

# All that Python takes for a space, and text that usually stands for a missing name.
_SPACES: Final = "[\t-\r\x1c-\x20\x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]*"
_CODES: Final = "|".join(sorted(MISSING_CODES)).replace("?", "[?]")
_NO_NAME: Final = f"^{_SPACES}(?i:{_CODES})?{_SPACES}$"

# Hexadecimal digits of a number of 64 bits, and of half of it.
_DIGITS, _HALF = 16, 8


@dataclass(frozen=True)
class Hashed:
    """What the text in a column is hashed for."""

    seed: int
    purpose: Purpose
    column: str

    @property
    def prefix(self) -> str:
        """What stands before the name."""
        return keyed_prefix(self.seed, self.purpose)


def with_hashes(frame: Frame, hashes: Mapping[str, Hashed]) -> Frame:
    """The frame with the SHA-256 of names in new columns, in hexadecimal digits; null for null."""
    engine, native = frame.implementation, frame.to_native()
    if engine.is_spark_like():
        made = native.withColumns({new: _by_spark(each) for new, each in hashes.items()})
    elif engine.is_duckdb():
        listed = ", ".join(f"{_by_duckdb(each)} AS {new}" for new, each in hashes.items())
        made = native.project(f"*, {listed}")
    else:
        made = native.with_columns(**{new: _by_polars(each) for new, each in hashes.items()})
    found: Frame = nw.from_native(made)
    return found


def _by_spark(hashed: Hashed) -> Any:
    from pyspark.sql import functions as f  # noqa: PLC0415

    return f.sha2(f.concat(f.lit(hashed.prefix), f.col(hashed.column)).cast("binary"), 256)


def _by_duckdb(hashed: Hashed) -> str:
    return f"sha256('{hashed.prefix}' || {hashed.column})"


def _by_polars(hashed: Hashed) -> Any:
    import polars as pl  # noqa: PLC0415

    begun = hashlib.sha256(hashed.prefix.encode())

    def digits(name: str | None) -> str | None:
        if name is None:
            return None
        state = begun.copy()
        state.update(name.encode())
        return state.hexdigest()

    def batch(names: Any) -> Any:
        return pl.Series([digits(name) for name in names.to_list()], dtype=pl.String)

    return pl.col(hashed.column).map_batches(batch, return_dtype=pl.String, is_elementwise=True)


def with_numbers(frame: Frame, column: str, numbers: Mapping[str, int]) -> Frame:
    """The frame with 32 bits each of a hash in new columns, as floats: those from a digit on."""
    engine, native = frame.implementation, frame.to_native()
    if engine.is_spark_like():
        from pyspark.sql import functions as f  # noqa: PLC0415

        made = native.withColumns(
            {
                new: f.conv(f.substring(f.col(column), start + 1, _HALF), 16, 10).cast("double")
                for new, start in numbers.items()
            }
        )
    elif engine.is_duckdb():
        listed = ", ".join(
            f"('0x' || substr({column}, {start + 1}, {_HALF}))::BIGINT::DOUBLE AS {new}"
            for new, start in numbers.items()
        )
        made = native.project(f"*, {listed}")
    else:
        import polars as pl  # noqa: PLC0415

        digits = {new: pl.col(column).str.slice(start, _HALF) for new, start in numbers.items()}
        made = native.with_columns(
            **{
                new: each.str.to_integer(base=16, dtype=pl.Int64).cast(pl.Float64)
                for new, each in digits.items()
            }
        )
    found: Frame = nw.from_native(made)
    return found


def share_of(high: nw.Expr, low: nw.Expr, whole: nw.Expr) -> nw.Expr:
    """The whole part of `whole` times a number of 64 bits, divided by 2^64; by 16 bits each, so
    that no step is 2^53 or more while `whole` is below 2^37.
    """
    done = nw.lit(0.0)
    for half in (low, high):
        top = (half * 2.0**-16).floor()
        for part in (half - top * 2.0**16, top):
            done = ((part * whole + done) * 2.0**-16).floor()
    return done


@dataclass(frozen=True)
class NamesSeen:
    """What came back of names: sums and maxima over all of them, their hashes in order, None if
    they are too many, and the digest of these.
    """

    sums: Mapping[str, int]
    most: Mapping[str, int]
    numbers: Numbers | None
    digest: str


def names_seen(frame: Frame, sums: Sequence[str], most: Sequence[str] = ()) -> NamesSeen:
    """What a frame of names says, in which `_HASH` is the hash of each."""
    totals, largest = dict.fromkeys(sums, 0), dict.fromkeys(most, 0)
    digests: dict[str, bytes] = {}
    # One buffer for all: many names are most of the memory that a draw takes here.
    held, whole = bytearray(), True
    for bucket, names, digest, *rest in _buckets(frame, sums, most):
        for place, name in enumerate(sums):
            totals[name] += int(rest[place])
        for place, name in enumerate(most, len(sums)):
            largest[name] = max(largest[name], int(rest[place]))
        if bucket is not None:
            digests[bucket] = bytes.fromhex(digest)
            whole = whole and names is not None and len(held) + len(names) <= 8 * MOST_NAMES
            held += names if whole else b""
    numbers = np.frombuffer(held, dtype=np.uint64) if whole else None
    if numbers is not None:
        if sys.byteorder == "little":
            numbers.byteswap(inplace=True)
        numbers.sort()
    digest = hashlib.sha256(b"".join(digests[bucket] for bucket in sorted(digests))).hexdigest()
    return NamesSeen(totals, largest, numbers, f"sha256:{digest}")


def _buckets(frame: Frame, sums: Sequence[str], most: Sequence[str]) -> Iterator[Sequence[Any]]:
    """For each bucket: its digits, the hashes of its names in order, null if they are too many,
    their digest, and the sums and maxima.
    """
    engine, native = frame.implementation, frame.to_native()
    # Buckets differ a little. Whether all names together are too many is seen when they are here.
    enough = 2 * MOST_NAMES >> 4 * BUCKET_DIGITS
    if engine.is_spark_like():
        from pyspark.sql import functions as f  # noqa: PLC0415

        listed = f.sort_array(f.collect_list(f.substring(f.col(_HASH), 1, _DIGITS)))
        of_all = native.groupBy(f.substring(f.col(_HASH), 1, BUCKET_DIGITS).alias(_BUCKET)).agg(
            f.unhex(f.array_join(listed, "")).alias(_NAMES),
            *(f.sum(name).alias(name) for name in sums),
            *(f.max(name).alias(f"most {name}") for name in most),
        )
        few = f.octet_length(f.col(_NAMES)) <= 8 * enough
        yield from of_all.select(
            _BUCKET,
            f.when(few, f.col(_NAMES)).alias(_NAMES),
            f.sha2(f.col(_NAMES), 256),
            *sums,
            *(f"most {name}" for name in most),
        ).toLocalIterator()
    elif engine.is_duckdb():
        digits = f"substr({_HASH}, 1, {BUCKET_DIGITS})"
        names = f"unhex(string_agg(substr({_HASH}, 1, {_DIGITS}), '' ORDER BY {_HASH}))"
        summed = "".join(
            f", {function}({name})"
            for function, each in (("sum", sums), ("max", most))
            for name in each
        )
        some = f"CASE WHEN count({_HASH}) <= {enough} THEN {names} END"
        yield from native.aggregate(f"{digits}, {some}, sha256({names}){summed}", digits).fetchall()
    else:
        import polars as pl  # noqa: PLC0415

        in_order = pl.col(_HASH).str.slice(0, _DIGITS).drop_nulls().sort().str.join("")
        of_all = (
            native.group_by(pl.col(_HASH).str.slice(0, BUCKET_DIGITS).alias(_BUCKET))
            .agg(
                in_order.alias(_NAMES),
                *(pl.col(name).sum() for name in sums),
                *(pl.col(name).max().alias(f"most {name}") for name in most),
            )
            .collect()
        )
        for bucket, names, *rest in of_all.iter_rows():
            held = bytes.fromhex(names)
            few_names = held if len(held) <= 8 * enough else None
            yield bucket, few_names, hashlib.sha256(held).hexdigest(), *rest


class KeyedRows:
    """The rows of a frame with the names of their clusters and their own, as text."""

    def __init__(self, native: Any, slots: Mapping[str, Slot], rule: ClassRule) -> None:
        self.rows = EngineRows(native, slots, rule)
        self._slots = slots
        taken = [name for name in self.rows.frame.collect_schema() if name.startswith("pac_draw_")]
        if taken:
            raise InvalidValueError(
                f"The frame has a column {taken[0]}, a name that is kept for a draw: rename it."
            )
        named = {"clusters": _CLUSTER, "row_ids": _ROW}
        self.named = {role: column for role, column in named.items() if role in slots}
        columns = {**named, "groups": _GROUP}
        self.frame = self.rows.frame.with_columns(
            as_text(self.rows.frame, slots[role].name).alias(column)
            for role, column in columns.items()
            if role in slots
        )

    def _strange(self, role: str) -> nw.Expr:
        """Where text usually stands for a missing name."""
        if not is_text(typed(self.rows.frame, self._slots[role].name)[0]):
            return nw.lit(0) == nw.lit(1)
        return nw.col(self.named[role]).str.contains(_NO_NAME)

    def _tallied(self, role: str, keys: Sequence[str], *sums: str) -> Frame:
        """How many rows have each name, and the sums of other columns over them; and how many rows
        have no name, a strange one, or one that is there twice.
        """
        name, many = nw.col(self.named[role]), nw.col(_ROWS)
        named = self.frame.select(*keys, *sums).group_by(*keys)
        grouped = named.agg(nw.len().cast(nw.Int64).alias(_ROWS), *(nw.col(s).sum() for s in sums))
        null, strange = one_where(name.is_null()), one_where(self._strange(role))
        return grouped.with_columns(
            one_where(~name.is_null()).alias(_UNITS),
            (null * many).alias(_NULL),
            (strange * many).alias(_STRANGE),
            one_where(many > 1).alias(_DOUBLED),
        )

    def _check_names(self, role: str, seen: NamesSeen) -> None:
        name = self._slots[role].name
        if seen.sums[_NULL]:
            raise InvalidValueError(
                f"{name} has {seen.sums[_NULL]} values that are not names: missing ones (null or "
                "NaN), numbers that are not whole or not below 2**53, or text that ends in NUL. "
                "Expected an integer or a string in every row: name the missing ones."
            )
        if seen.sums[_STRANGE]:
            column = nw.col(self.named[role])
            value = extreme(self.frame, column, self._strange(role), greatest=True)
            raise no_name(f"{name} holds {str(value)!r}", seen.sums[_STRANGE])

    def ids(self, hashed: Hashed) -> NamesSeen:
        """What is seen of the ids of all rows, by some hash of each, if all are different, within a
        cluster where there are clusters.
        """
        keys = list(self.named.values())
        found = self._tallied("row_ids", keys)
        seen = names_seen(with_hashes(found, {_HASH: hashed}), [_ROWS, _NULL, _STRANGE, _DOUBLED])
        self._check_names("row_ids", seen)
        if seen.sums[_DOUBLED]:
            twice = nw.col(_ROWS) > 1
            name = extreme(found, nw.col(_ROW), twice, greatest=False)
            times = extreme(found, nw.col(_ROWS), twice & (nw.col(_ROW) == name), greatest=True)
            where = " in one cluster" if len(keys) > 1 else ""
            column = self._slots["row_ids"].name
            raise repeated_id(column, str(name), int(times), where, seen.sums[_DOUBLED])
        return seen

    def by_cluster(self, draw: Draw, trials: Mapping[str, nw.Expr]) -> tuple[Frame, Drawn]:
        """The rows that are drawn, one of each cluster, or of its rows in each group or bin, or of
        each outcome that clusters are drawn among, and all rows of others; and what they were drawn
        from.
        """
        flags = {
            f"pac_draw_trial_{place}": one_where(is_one)
            for place, is_one in enumerate(trials.values())
        }
        if flags:
            self.frame = self.frame.with_columns(**flags)
        named = with_hashes(
            self._tallied("clusters", [_CLUSTER], *flags), {_HASH: Hashed(0, "name", _CLUSTER)}
        )
        sums = [_ROWS, _UNITS, _NULL, _STRANGE, *flags]
        seen = names_seen(named, sums, [_ROWS, *flags])
        self._check_names("clusters", seen)
        if draw.bound is not None:
            self._check_sizes(named, seen, draw.bound, dict(zip(flags, trials, strict=True)))
        ids = self.ids(Hashed(0, "name", _ROW))
        spanning = self._spanning(list(flags)) if "groups" in draw.slots else None
        among = tuple(sorted(zip(trials, (seen.sums[flag] for flag in flags), strict=True)))
        stayed = {"cluster": seen, "row_id": ids}
        drawn = Drawn(
            "clusters",
            seen.sums[_ROWS],
            seen.sums[_UNITS],
            draw.seed,
            draw.bound,
            _NO_NUMBERS if seen.numbers is None else seen.numbers,
            _NO_NUMBERS if ids.numbers is None else ids.numbers,
            among,
            tuple((role, each.digest) for role, each in stayed.items() if each.numbers is None),
            each=draw.each,
            spanning=spanning,
        )
        return self._one_each(draw, list(flags)), drawn

    def _spanning(self, flags: Sequence[str]) -> int:
        """How many clusters could give rows in more than one group."""
        rows = self.frame
        if flags:
            rows = rows.filter(reduce(nw.Expr.__or__, (nw.col(flag) == 1 for flag in flags)))
        ends = [nw.col(_GROUP).min().alias(_FIRST), nw.col(_GROUP).max().alias(_LAST)]
        clusters = rows.group_by(_CLUSTER).agg(*ends)
        several = one_where(nw.col(_FIRST) != nw.col(_LAST))
        found = counted(clusters, {"several": several})
        return found.rows_where(found.numbers("several") == 1)

    def _check_sizes(
        self, named: Frame, seen: NamesSeen, bound: float, outcomes: Mapping[str, str]
    ) -> None:
        """Refuse a cluster with more rows than its bound, of an outcome that is drawn among."""
        for column in outcomes or {_ROWS: ""}:
            largest = seen.most[column]
            if largest > bound:
                name = extreme(named, nw.col(_CLUSTER), nw.col(column) == largest, greatest=False)
                what = f"{outcomes[column]} " if outcomes else ""
                raise cluster_too_large(str(name), largest, what, bound)

    def _one_each(self, draw: Draw, flags: Sequence[str]) -> Frame:
        hashes = {
            _HASH: Hashed(draw.seed, "cluster", _CLUSTER),
            _ROWS: Hashed(draw.seed, "row", _ROW),
        }
        halves = {_HIGH: 0, _LOW: _HALF}
        if draw.bound is not None:
            halves |= {f"{_HIGH}_2": _DIGITS, f"{_LOW}_2": _DIGITS + _HALF}
        keyed = with_numbers(with_hashes(self.frame, hashes), _HASH, halves)
        if not flags:
            keyed, flags = keyed.with_columns(nw.lit(1).alias(_UNITS)), [_UNITS]
        unit = [_CLUSTER, *([_GROUP] if "group" in draw.each else [])]
        if draw.bins is not None:
            binned = bin_of(self.rows.number("confidence"), draw.bins).alias(_BIN)
            keyed, unit = keyed.with_columns(binned), [*unit, _BIN]
        keyed = keyed.with_columns(
            *(nw.col(flag).sum().over(*unit).alias(f"{flag}_size") for flag in flags),
            *(
                nw.col(flag).cum_sum().over(*unit, order_by=_ROWS).alias(f"{flag}_place")
                for flag in flags
            ),
        )
        chosen = [self._is_chosen(flag, draw.bound) for flag in flags]
        other = reduce(nw.Expr.__and__, (nw.col(flag) == 0 for flag in flags))
        return keyed.filter(reduce(nw.Expr.__or__, chosen, other))

    def _is_chosen(self, flag: str, bound: float | None) -> nw.Expr:
        """Whether a row is the one of its cluster, among those that have a flag."""
        size = nw.col(f"{flag}_size").cast(nw.Float64)
        place = nw.col(f"{flag}_place").cast(nw.Float64) - 1.0
        chosen = (nw.col(flag) == 1) & (place == share_of(nw.col(_HIGH), nw.col(_LOW), size))
        if bound is None:
            return chosen
        high, low = nw.col(f"{_HIGH}_2"), nw.col(f"{_LOW}_2")
        # n * bound / 2^64 is below the size where its whole part is.
        return chosen & (share_of(high, low, nw.lit(float(bound))) < size)

    def by_weight(self, draw: Draw) -> tuple[Frame, Drawn]:
        """The rows that are kept by their weights, and what they were drawn from."""
        bound, weight = float(draw.bound or 0.0), self.rows.number("weights")
        weightless = self._check_weights(weight, bound)
        ids = self.ids(Hashed(0, "name", _ROW))
        keyed = with_uniform(self.frame, Hashed(draw.seed, "row", _ROW))
        kept = keyed.filter(nw.col(_UNIFORM) < unscaled(weight, bound))
        rows, missing = ids.sums[_ROWS], ids.numbers is None
        stayed = (("row_id", ids.digest),) if missing else ()
        names = _NO_NUMBERS if ids.numbers is None else ids.numbers
        drawn = Drawn("weights", rows, rows, draw.seed, draw.bound, names, stayed=stayed)
        if weightless:
            require_some_kept(drawn, 0, weightless=True)
        return kept, drawn

    def _check_weights(self, weight: nw.Expr, bound: float) -> bool:
        """Whether all weights are 0, if all are weights."""
        legal, name = (
            is_number(weight) & (weight >= 0.0) & (weight < np.inf),
            self._slots["weights"],
        )
        state = one_where(weight > 0.0) + one_where(weight > bound)
        found = counted(self.frame, {"state": nw.when(legal).then(state).otherwise(nw.lit(3))})
        some, above, wrong = (found.rows_where(found.numbers("state") == n) for n in (1, 2, 3))
        if wrong:
            bad = is_number(weight) & ((weight < 0.0) | (weight == np.inf))
            value = extreme(self.frame, weight, bad, greatest=False)
            raise not_a_weight(f"{name.name} holds {'nothing' if value is None else value}", wrong)
        if above:
            value = extreme(self.frame, weight, legal & (weight > bound), greatest=True)
            raise weight_too_large(f"{name.name} holds {value:g}", bound, above)
        return not some


_NO_NUMBERS: Final[Numbers] = np.zeros(0, dtype=np.uint64)


def with_uniform(frame: Frame, hashed: Hashed) -> Frame:
    """The frame with a number from 0 up to but not including 1 for each name, exact to 53 bits."""
    keyed = with_numbers(with_hashes(frame, {_HASH: hashed}), _HASH, {_HIGH: 0, _LOW: _HALF})
    low = (nw.col(_LOW) * 2.0**-11).floor()
    return keyed.with_columns(((nw.col(_HIGH) * 2.0**21 + low) * 2.0**-53).alias(_UNIFORM))


def draws_inside(native: Any, draw: Draw) -> bool:
    """Whether these rows are in an engine that can draw them by their ids."""
    few = draw.bins is None or draw.bins.n_cells <= MOST_BINS
    return few and "row_ids" in draw.slots and isinstance(known_frame(native), nw.LazyFrame)


def ids_inside(native: Any, draw: Draw) -> Numbers | str:
    """A hash of the id of each row, in order, if all are different; their digest if they are too
    many to leave their engine.
    """
    slots = {role: draw.slots[role] for role in ("row_ids",)}
    rows = KeyedRows(native, slots, ClassRule())
    seen = rows.ids(Hashed(draw.seed, "row", _ROW))
    return seen.digest if seen.numbers is None else seen.numbers


@contextmanager
def drawn_inside(
    native: Any, question: Question, draw: Draw, rule: ClassRule
) -> Iterator[tuple[Any, Drawn]]:
    """The rows that are drawn, as a frame of their engine with the columns of the question; and
    what they were drawn from.
    """
    slots = stored(question.slots)
    rows = KeyedRows(native, {**slots, **draw.slots}, rule)
    rows.rows.look_at_classes()
    if draw.by == "clusters":
        trials = {} if draw.trials is None else question.trials_inside(rows.rows)
        chosen, drawn = rows.by_cluster(draw, trials)
    else:
        chosen, drawn = rows.by_weight(draw)
    columns = dict.fromkeys(slot.name for slot in slots.values())
    with computed_once(chosen.select(*columns)) as kept:
        yield kept.to_native(), drawn
