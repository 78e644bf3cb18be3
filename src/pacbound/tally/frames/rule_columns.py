"""Columns that a certificate adds to a dataframe, in the engine that holds it.

A frame that is loaded gets them as arrays; one that is lazy gets them as expressions and stays
lazy. What is not a score is refused before anything is added: a lazy frame is looked through once
for that, and nothing of it leaves its engine but counts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from pacbound.errors import InvalidTypeError, InvalidValueError
from pacbound.sources.values import values_of
from pacbound.tally.classes import ClassRule
from pacbound.tally.columns import ROUNDING, Rows, Slot, as_names
from pacbound.tally.frames.counting import column_names, counted, whole_columns
from pacbound.tally.frames.engine_rows import EngineRows
from pacbound.tally.frames.opening import (
    as_text,
    is_text,
    known_frame,
    number,
    one_where,
    open_frame,
    unscaled,
    with_exact_text,
    with_fields,
)
from pacbound.tally.grids import DyadicGrid
from pacbound.tally.row_rules import EXIT, PREDICTION, Exits, Limit, RowRule, RowSteps, answers_of

# Values to choose among inside an engine, which compiles them.
_MOST: Final = 20_000

_GROUP: Final = "group"
# The group of a row while columns are added to a lazy frame.
_COPY: Final = "pac_group"


def apply_to_frame(
    native: Any,
    rule: RowRule,
    *,
    scores: Sequence[str],
    group: str | None,
    predictions: Sequence[str] | None,
    scale: float | None,
    strict: bool,
) -> Any:
    """The frame with the columns of the rule added, of the kind that it was."""
    frame = known_frame(native)
    new = [*rule.added, *([PREDICTION] if predictions else []), *([_COPY] if group else [])]
    _refuse_taken(column_names(native), new)
    slots = {_score(m): Slot("number", name, scale) for m, name in enumerate(scores)}
    if group is not None:
        slots[_GROUP] = Slot("name", group)
    if isinstance(frame, nw.DataFrame):
        return _loaded(frame, rule, slots, predictions, strict=strict)
    _check_inside(native, rule, slots, strict=strict)
    return _inside(native, rule, slots, predictions)


def _loaded(
    frame: Any,
    rule: RowRule,
    slots: Mapping[str, Slot],
    predictions: Sequence[str] | None,
    *,
    strict: bool,
) -> Any:
    native = frame.to_native()
    asked = {**slots, **{f"model {m}": Slot("class", p) for m, p in enumerate(predictions or ())}}
    columns = whole_columns(native, asked, in_order=True)
    rows = Rows.of_arrays(slots, columns)
    checked = [rows.scores(_score(m)) for m in range(rule.scores)]
    groups = None
    if _GROUP in slots:
        groups = as_names(rows.columns[_GROUP], slots[_GROUP].name).astype(np.str_)
        if strict:
            strange = sorted(set(groups[rule.strange(groups)].tolist()))
            _refuse_strange(strange, slots[_GROUP].name, rule)
    added: dict[str, NDArray[Any]] = rule.of_arrays(checked, groups)
    if predictions:
        said = [values_of(columns[f"model {m}"], name) for m, name in enumerate(predictions)]
        added[PREDICTION] = answers_of(said, added[EXIT], predictions)
    backend = frame.implementation
    return frame.with_columns(
        *(
            nw.new_series(name, values, _dtype(values), backend=backend)
            for name, values in added.items()
        )
    ).to_native()


def _dtype(values: NDArray[Any]) -> Any:
    kinds = {"f": nw.Float64, "i": nw.Int64, "u": nw.UInt64, "U": nw.String}
    return kinds[values.dtype.kind]


def _check_inside(native: Any, rule: RowRule, slots: Mapping[str, Slot], *, strict: bool) -> None:
    """Refuse what is not a score or a group, by counts alone."""
    rows = EngineRows(native, slots, ClassRule())
    grid = DyadicGrid(1)
    keys = {_score(m): rows.cell_key(_score(m), grid) for m in range(rule.scores)}
    if _GROUP in slots:
        keys[_GROUP] = rows.group_key(_GROUP)
    counts = rows.count(keys)
    for m in range(rule.scores):
        rows.cells(counts, _score(m), _score(m), grid)
    if _GROUP in slots:
        names, _ = rows.groups(counts, _GROUP, _GROUP)
        strange = [name for name in names if name not in (rule.groups or ())]
        if strict:
            _refuse_strange(strange, slots[_GROUP].name, rule)


def _inside(
    native: Any,
    rule: RowRule,
    slots: Mapping[str, Slot],
    predictions: Sequence[str] | None,
) -> Any:
    named = [*(slot.name for slot in slots.values()), *(predictions or ())]
    native, fields = with_fields(native, named)
    slots = {
        key: replace(slot, name=fields.get(slot.name, slot.name)) for key, slot in slots.items()
    }
    predictions = [fields.get(name, name) for name in predictions or ()]
    frame = known_frame(native)
    needed = open_frame(native, [slot.name for slot in slots.values()])
    scores = [
        unscaled(number(needed, slots[_score(m)].name), slots[_score(m)].scale)
        for m in range(rule.scores)
    ]
    at_most_one = [nw.when(score > 1.0).then(nw.lit(1.0)).otherwise(score) for score in scores]
    if rule.groups is None:
        added = _columns(_required(rule.whole), at_most_one)
    else:
        # A copy, because the column itself stays as its engine holds it.
        copied = frame.with_columns(as_text(frame, slots[_GROUP].name).alias(_COPY))
        frame = with_exact_text(copied, [_COPY])
        added = _by_group(rule, at_most_one)
    if predictions:
        read = open_frame(native, [*predictions, *(slot.name for slot in slots.values())])
        _refuse_silent(read, predictions, added[EXIT])
        added[PREDICTION] = _answer(read, predictions, added[EXIT])
    # All were scores when they were looked at. What becomes of a lazy frame later has null where
    # there is none.
    are_scores = nw.all_horizontal(
        *[(score >= 0.0) & (score <= 1.0 + ROUNDING) for score in scores], ignore_nulls=False
    )
    found = frame.with_columns(
        *(nw.when(are_scores).then(value).alias(name) for name, value in added.items())
    )
    beside = [*([] if rule.groups is None else [_COPY]), *fields.values()]
    return (found.drop(beside) if beside else found).to_native()


def _by_group(rule: RowRule, scores: Sequence[nw.Expr]) -> dict[str, nw.Expr]:
    groups = rule.groups or {}
    size = sum(len(row) for part in groups.values() for row in part.values.values())
    if size > _MOST:
        raise InvalidTypeError(
            f"The certificate has {size:,} values in all its groups, too many to choose among "
            f"inside an engine: expected at most {_MOST:,}. Load the frame, or write it to a file "
            "for `pacbound apply`."
        )
    parts = {group: _columns(part, scores) for group, part in groups.items()}
    found = {}
    for name, instead in _columns(_required(rule.instead), scores).items():
        chosen = [
            nw.when(nw.col(_COPY) == group).then(columns[name]) for group, columns in parts.items()
        ]
        found[name] = nw.coalesce(*chosen, instead) if chosen else instead
    return found


def _columns(part: RowSteps | Exits, scores: Sequence[nw.Expr]) -> dict[str, nw.Expr]:
    if isinstance(part, Exits):
        found: nw.Expr = nw.lit(len(part.thresholds), nw.Int64)
        for m in reversed(range(len(part.thresholds))):
            reached = scores[m] >= part.thresholds[m]
            found = nw.when(reached).then(nw.lit(m, nw.Int64)).otherwise(found)
        return {EXIT: found}
    (score,) = scores
    return {name: _chosen(score, part.limits, row) for name, row in part.values.items()}


def _chosen(score: nw.Expr, limits: Sequence[Limit], values: Sequence[float | int]) -> nw.Expr:
    """The value of the place that a score has among the limits, by bisection."""
    if not limits:
        (value,) = values
        return nw.lit(value, nw.Float64 if isinstance(value, float) else nw.Int64)
    middle = len(limits) // 2
    limit = limits[middle]
    beyond = score >= limit.value if limit.closed else score > limit.value
    above = _chosen(score, limits[middle + 1 :], values[middle + 1 :])
    return (
        nw.when(beyond).then(above).otherwise(_chosen(score, limits[:middle], values[: middle + 1]))
    )


def _answer(frame: Any, predictions: Sequence[str], exits: nw.Expr) -> nw.Expr:
    """What the answering model predicts, which has one type whoever answers."""
    schema = frame.collect_schema()
    kinds = {_kind(schema[name], name) for name in predictions}
    if len(kinds) > 1:
        raise InvalidTypeError(
            f"{', '.join(predictions)} hold numbers and text, which are never equal: name classes "
            "one way."
        )
    dtype = nw.String if kinds == {"text"} else nw.Int64
    found = nw.col(predictions[-1]).cast(dtype)
    for m in reversed(range(len(predictions) - 1)):
        found = nw.when(exits == m).then(nw.col(predictions[m]).cast(dtype)).otherwise(found)
    return found


def _refuse_silent(frame: Any, predictions: Sequence[str], exits: nw.Expr) -> None:
    """Refuse rows for which the model that answers has no prediction."""
    lacking = {
        name: one_where((exits == m) & _is_missing(frame, name))
        for m, name in enumerate(predictions)
    }
    counts = counted(frame, lacking)
    for name in predictions:
        rows = counts.rows_where(counts.numbers(name) == 1)
        if rows:
            raise InvalidValueError(
                f"{name} is missing in {rows} rows in which this model answers: every row needs "
                "the prediction of the model that answers it."
            )


def _is_missing(frame: Any, name: str) -> nw.Expr:
    column = nw.col(name)
    names = _kind(frame.collect_schema()[name], name) == "text"
    return column.is_null() | (column.cast(nw.String) == "") if names else column.is_null()


def _kind(dtype: Any, name: str) -> str:
    if is_text(dtype):
        return "text"
    if dtype.is_integer() or isinstance(dtype, nw.Boolean):
        return "number"
    raise InvalidTypeError(
        f"{name} has type {dtype}: expected integers or text, which classes are inside an engine. "
        "Cast it, or load the frame."
    )


def _refuse_strange(strange: Sequence[str], name: str, rule: RowRule) -> None:
    if strange:
        raise InvalidValueError(
            f"{name} holds {strange[0]!r} ({len(strange)} such groups), which was not certified: "
            f"nothing is known about it. Without strict=True such rows {rule.others}."
        )


def _refuse_taken(stored: Sequence[str], added: Sequence[str]) -> None:
    # pandas has names that are not text.
    known = {str(name).lower() for name in stored}
    taken = [name for name in added if name in known]
    if taken:
        raise InvalidValueError(f"The frame already has a column {taken[0]!r}: rename or drop it.")


def _required(part: RowSteps | Exits | None) -> RowSteps | Exits:
    if part is None:
        raise InvalidTypeError("The rule goes by groups: name the column of the group of each row.")
    return part


def _score(m: int) -> str:
    return f"score {m}"
