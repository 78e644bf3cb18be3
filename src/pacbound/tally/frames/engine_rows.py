"""Rows that stay in their engine: what a question asks of them, as expressions and as counts.

The cell of a score is an expression that every engine evaluates to the same number. It gives a
*key*: the cell, or what is wrong with the score. Scores so close to an edge that rounding may
decide are their own key, of which there are a few for each edge; they are put into cells where the
arrays' are, so that there is one rule for ties. Nothing is divided: engines may divide by
multiplying with a rounded reciprocal.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import inf, isinf, nan
from typing import Any, Final, NoReturn

import narwhals as nw
import numpy as np

from pacbound.errors import InvalidTypeError, InvalidValueError, PacboundError
from pacbound.sources.values import grade_hint, is_missing
from pacbound.tally.classes import Class, ClassRule, Evidence
from pacbound.tally.columns import (
    ROUNDING,
    Integers,
    Slot,
    refuse_cut_names,
    score_hint,
    stored,
)
from pacbound.tally.frames.answer_columns import AnswerColumns, ClassFlag
from pacbound.tally.frames.counting import (
    KeyCounts,
    collected,
    counted,
    counted_if,
    extreme,
)
from pacbound.tally.frames.opening import (
    Frame,
    is_boolean,
    is_number,
    known_frame,
    number,
    one_where,
    one_where_whole,
    open_frame,
    typed,
    unscaled,
    with_fields,
)
from pacbound.tally.grades import NEAR, Graded, not_preferred
from pacbound.tally.grids import (
    AtomBins,
    Bins,
    DyadicGrid,
    EqualWidthBins,
    Floats,
    GivenBins,
)

_NOT_A_FLAG: Final = -2.0


@dataclass(frozen=True)
class Flag:
    """A column of 1 and 0; a number below 0 says what is wrong with a value."""

    frame: Frame
    column: str
    name: str

    @cached_property
    def is_boolean(self) -> bool:
        """Whether the column holds booleans, and not numbers."""
        return is_boolean(self.frame, self.column, self.name)

    @cached_property
    def _is_integer(self) -> bool:
        return self.frame.collect_schema()[self.column].is_integer()

    @property
    def _value(self) -> nw.Expr:
        return nw.col(self.column) if self._is_integer else number(self.frame, self.column)

    @property
    def _is_there(self) -> nw.Expr:
        return ~self._value.is_null() if self._is_integer else is_number(self._value)

    @property
    def is_true(self) -> nw.Expr:
        """Whether the flag is set, as a condition: null where it is missing."""
        return nw.col(self.column) if self.is_boolean else self._value == 1

    @property
    def key(self) -> nw.Expr:
        """The value as a key to count by."""
        if self.is_boolean:
            return nw.col(self.column)
        neither = nw.when(self._is_there).then(nw.lit(_NOT_A_FLAG)).otherwise(nw.lit(MISSING))
        is_zero = nw.when(self._value == 0).then(nw.lit(0.0))
        return nw.when(self._value == 1).then(nw.lit(1.0)).otherwise(is_zero.otherwise(neither))

    def checked(self, counts: KeyCounts, key: str) -> Integers:
        """The values that were counted, if none is wrong."""
        codes = counts.numbers(key)
        missing = counts.rows_where(np.isnan(codes) | (codes == MISSING))
        others = counts.rows_where(codes == _NOT_A_FLAG)
        if missing:
            raise InvalidValueError(
                f"{self.name} has {missing} missing values (null or NaN): expected True or False, "
                "or 0 or 1."
            )
        if others:
            neither = self._is_there & (self._value != 0) & (self._value != 1)
            example = extreme(self.frame, number(self.frame, self.column), neither, greatest=True)
            raise InvalidValueError(
                f"{self.name} holds {example} ({others} such values): expected True or False, or 0 "
                f"or 1. For predictions and labels name both columns instead.{grade_hint(example)}"
            )
        return codes.astype(np.int64)


def _filled(value: nw.Expr, missing: float) -> nw.Expr:
    return nw.when(is_number(value)).then(value).otherwise(nw.lit(missing))


MISSING: Final = -1.0
BELOW: Final = -2.0
# The keys of what is not a score. A score in (0, 1] is its own key, and cell k has the key k + 3,
# -1 included.
ABOVE: Final = -3.0

# The key of a rollout that was lost at its start, whose score is -inf.
LOST: Final = 2.0

_FIRST: Final = 3.0
_MARGIN: Final = 2.0**-50
# Edges become a nested expression, which engines compile.
_MOST_EDGES: Final = 1025


def cell_key(score: nw.Expr, grid: Bins | DyadicGrid, *, lost: bool = False) -> nw.Expr:
    """The key of a float64 score; with `lost`, -inf is a score too."""
    within = (score >= 0.0) & (score <= 1.0)
    return (
        nw.when(within)
        .then(_key_within(score, grid))
        .otherwise(_key_beyond(score, grid, lost=lost))
    )


# Inner edges of bins that rows are put into inside an engine.
MOST_BINS: Final = _MOST_EDGES - 1


def bin_of(score: nw.Expr, grid: Bins) -> nw.Expr:
    """The bin of a float64 score itself, as arrays have it; -1 of what is not a score."""
    edges = grid.edges[1:-1].tolist() if isinstance(grid, EqualWidthBins) else _inner_edges(grid)
    within = (score >= 0.0) & (score <= 1.0 + ROUNDING)
    return (
        nw.when(within).then(_place([score > edge for edge in edges], 0.0)).otherwise(nw.lit(-1.0))
    )


def cells_of(keys: Floats, grid: Bins | DyadicGrid) -> Integers:
    """The cells that keys of scores stand for."""
    cells = keys - _FIRST
    doubtful = (keys > 0) & (keys <= 1)
    cells[doubtful] = grid.cells(keys[doubtful])
    # The expression puts a score of 0 one below the first bin, which holds it.
    return (cells if isinstance(grid, DyadicGrid) else np.maximum(cells, 0)).astype(np.int64)


def _key_within(score: nw.Expr, grid: Bins | DyadicGrid) -> nw.Expr:
    if isinstance(grid, DyadicGrid):
        whole = (score * float(1 << grid.bits)).floor()
        for width, joint in enumerate(grid.joints, 1):
            joined = (score * float(1 << (grid.bits - width))).floor() * float(1 << width)
            whole = nw.when(score >= joint).then(joined).otherwise(whole)
        return whole + _FIRST
    if isinstance(grid, EqualWidthBins):
        return _equal_width_key(score, grid.n_bins)
    return _place(_conditions(score, grid), _FIRST)


def _equal_width_key(score: nw.Expr, n_bins: int) -> nw.Expr:
    # A score p of bin j has fl((j-1)/K) < p <= fl(j/K), each edge and each product within a factor
    # 1 ± 2^-53 of the real one. So least <= j <= most, and where they meet they are j; elsewhere p
    # is within 16 floats of an edge.
    least = (score * (n_bins * (1 - _MARGIN))).ceil()
    most = (score * (n_bins * (1 + _MARGIN))).ceil()
    return nw.when(least == most).then(least + (_FIRST - 1)).otherwise(score)


def _conditions(score: nw.Expr, grid: GivenBins | AtomBins) -> list[nw.Expr]:
    """What must hold for a score to be beyond each cell; a score beyond one is beyond those
    before it. An edge that is a cell of its own is entered at it, and left beyond it.
    """
    if isinstance(grid, AtomBins):
        _refuse_many(grid)
        return [beyond for edge in grid.limits for beyond in (score >= edge, score > edge)]
    return [score > edge for edge in _inner_edges(grid)]


def _inner_edges(grid: GivenBins | AtomBins) -> tuple[float, ...]:
    _refuse_many(grid)
    return grid.limits[1:-1]


def _refuse_many(grid: GivenBins | AtomBins) -> None:
    if len(grid.limits) > _MOST_EDGES:
        raise InvalidValueError(
            f"edges has {len(grid.limits)} values, too many to be compared inside an engine: "
            f"expected at most {_MOST_EDGES}. Use bins of equal width, or pass arrays."
        )


def _place(conditions: Sequence[nw.Expr], first: float) -> nw.Expr:
    """`first` plus the number of conditions that hold, by bisection."""
    if not conditions:
        return nw.lit(first)
    middle = len(conditions) // 2
    above = _place(conditions[middle + 1 :], first + middle + 1)
    return nw.when(conditions[middle]).then(above).otherwise(_place(conditions[:middle], first))


def _key_beyond(score: nw.Expr, grid: Bins | DyadicGrid, *, lost: bool) -> nw.Expr:
    # NaN is above all numbers for some engines and above none for others, and null is neither true
    # nor false: both end up last.
    below = (
        nw.when(score == -inf).then(nw.lit(LOST)).otherwise(nw.lit(BELOW))
        if lost
        else nw.lit(BELOW)
    )
    above = (
        nw.when((score > 1.0 + ROUNDING) & (score <= inf))
        .then(nw.lit(ABOVE))
        .otherwise(nw.lit(MISSING))
    )
    rounded = nw.when((score > 1.0) & (score <= 1.0 + ROUNDING)).then(
        nw.lit(_FIRST + int(grid.cells(np.ones(1))[0]))
    )
    return nw.when(score < 0.0).then(below).otherwise(rounded.otherwise(above))


def check_scores(
    counts: KeyCounts,
    key: str,
    frame: Frame,
    score: nw.Expr,
    name: str,
    *,
    lost: bool = False,
) -> None:
    """Refuse values that are not scores, saying how many there are of each kind."""
    found = counts.numbers(key)
    # Where a condition is null, an engine may leave the key null instead of going on to the next.
    missing = counts.rows_where((found == MISSING) | np.isnan(found))
    below, above = counts.rows_where(found == BELOW), counts.rows_where(found == ABOVE)
    if not missing + below + above:
        return
    parts = [f"{missing} missing (null or NaN)"] if missing else []
    if below:
        parts.append(
            f"{below} below 0 (the least {extreme(frame, score, score < 0.0, greatest=False)})"
        )
    worst = -inf if below else nan
    if above:
        too_large = (score > 1.0 + ROUNDING) & (score <= inf)
        greatest = extreme(frame, score, too_large, greatest=True)
        parts.append(f"{above} above 1 (the greatest {greatest})")
        worst = inf if isinstance(greatest, str) else float(greatest)
    raise InvalidValueError(
        f"{name} holds {missing + below + above} values that are not scores: {', '.join(parts)}. "
        f"Expected scores from 0 to 1. {score_hint(worst, lost=lost)}"
    )


# What stands for every fraction, so that a column of scores does not make as many groups as it has
# rows.
_FRACTION: Final = inf


# The combinations of keys that may come back from an engine: 168 MB for four models.
MOST_COMBINATIONS: Final = 2**22
# The numbers of the tally that they become: 256 MB of integers.
MOST_ENTRIES: Final = 2**25


class EngineRows:
    """The columns of a frame by slot, which they are called by where the frame is `keyed`.

    Rows of files can be `read_again`, so that something may be tried first. A frame that the user
    passed may be a stream that can be read only once.
    """

    def __init__(
        self,
        native: Any,
        slots: Mapping[str, Slot],
        rule: ClassRule,
        *,
        keyed: bool = False,
        read_again: bool = False,
    ) -> None:
        self._slots = slots
        columns = {key: key if keyed else slot.name for key, slot in stored(slots).items()}
        native, fields = with_fields(native, columns.values())
        self._columns = {k: fields.get(c, c) if fields else c for k, c in columns.items()}
        self._rule = rule
        self._class_flags: dict[str, ClassFlag] = {}
        self.read_again = read_again
        self._native = native
        self.frame = open_frame(native, self._columns.values())

    def name(self, slot: str) -> str:
        """What the column of a slot is called where it comes from, and how it was scaled."""
        return self._slots[slot].shown

    def count(
        self, keys: Mapping[str, nw.Expr], *, outcomes: int = 2, frame: Frame | None = None
    ) -> KeyCounts:
        """How many rows have each combination of the keys. More than `MOST_COMBINATIONS` of them
        are refused, and so are cells whose counts of all `outcomes` are more than `MOST_ENTRIES`;
        not of files that can be read in order, nor of frames that are loaded. A `frame` that was
        made of these rows may be passed for them.
        """
        rows = self.frame if frame is None else frame
        kinds = {key: self._slots[key].kind for key in keys if key in self._slots}
        # One score alone has few enough cells in every grid.
        joint = "name" in kinds.values() or [*kinds.values()].count("number") > 1
        if not self._is_bounded or not joint:
            return counted(rows, keys)

        def few_enough(combinations: int, cells: int) -> None:
            if combinations > MOST_COMBINATIONS:
                said = f"more than {MOST_COMBINATIONS:,} combinations of a cell and an outcome"
                self._refuse_many(rows, keys, outcomes, said)
            if cells * outcomes > MOST_ENTRIES:
                self._refuse_many(rows, keys, outcomes, f"{cells:,} joint cells")

        return counted_if(rows, keys, few_enough, by=[*kinds], most=MOST_COMBINATIONS)

    @cached_property
    def _is_bounded(self) -> bool:
        if self.frame.implementation.is_spark_like():
            return True
        return not self.read_again and isinstance(known_frame(self._native), nw.LazyFrame)

    def _refuse_many(
        self, rows: Frame, keys: Mapping[str, nw.Expr], outcomes: int, said: str
    ) -> NoReturn:
        """Refuse what was met in too many cells, with steps of the scores that are always few
        enough; where there are several scores, a second look counts the groups.
        """
        kinds = {slot: self._slots[slot].kind for slot in keys if slot in self._slots}
        scores = [self.name(slot) for slot, kind in kinds.items() if kind == "number"]
        named = [slot for slot, kind in kinds.items() if kind == "name"]
        groups, steps = 1, 1
        if named and len(scores) > 1:
            by = {slot: keys[slot] for slot in named}
            groups = len(counted(rows, by, most=MOST_COMBINATIONS).rows)
        while groups * outcomes * (2 * steps + 1) ** max(1, len(scores)) <= MOST_COMBINATIONS:
            steps *= 2
        if named and (steps == 1 or len(scores) < 2):
            raise InvalidValueError(
                f"{self.name(named[0])} holds so many groups that {said} were met: expected fewer "
                "groups. Name a column with fewer values, or count the groups in several tallies."
            )
        within = f" in {groups:,} groups" if named else ""
        raise InvalidValueError(
            f"{', '.join(scores)} were met in {said}{within}: so many are not brought back from "
            f"{self.frame.implementation.value}. Use fewer exits (design_cascade, on some of the "
            "rows, chooses models), or a coarser grid: round each confidence down to a multiple of "
            f"1/{steps}, floor({steps} * confidence) / {steps}, here and in use. With enough "
            "memory, pass the columns as arrays."
        )

    def neighbours(self, keys: Mapping[str, nw.Expr], within: str, by: str) -> Frame:
        """The keys of each row, beside those of the rows before and after it that have the same key
        `within`, in the order of the key `by`; null where there is none.
        """
        own = self.frame.select(**keys)
        return own.with_columns(
            nw.col(name).shift(step).over(within, order_by=by).alias(f"{name} {side}")
            for name in keys
            for step, side in ((1, "before"), (-1, "after"))
            if name != within
        )

    def first_where(
        self, frame: Frame, key: nw.Expr, value: float, by: Sequence[str]
    ) -> dict[str, Any]:
        """The first row, in the order of some columns, that has a value of a key: a second look,
        which only bad rows cost.
        """
        found = collected(frame.filter(key == value).sort(*by).head(1))
        return {
            name: None if is_missing(column[0]) else column[0] for name, column in found.items()
        }

    def number(self, slot: str) -> nw.Expr:
        """A column of numbers as float64, of any size."""
        return unscaled(number(self.frame, self._columns[slot]), self._slots[slot].scale)

    def plain_number(self, slot: str) -> nw.Expr:
        """The same for `count_plain`, which compares nothing."""
        return number(self._as_it_is, self._columns[slot])

    def count_plain(self, keys: Mapping[str, nw.Expr]) -> KeyCounts:
        """The counts of keys without a comparison, so that NaN stays NaN."""
        return counted(self._as_it_is, keys)

    @cached_property
    def _as_it_is(self) -> Frame:
        return open_frame(self._native, self._columns.values(), keep_nan=True)

    def cell_key(self, slot: str, grid: Bins | DyadicGrid, *, lost: bool = False) -> nw.Expr:
        """The key of a score's cell, or of what is wrong with the score."""
        return cell_key(self.number(slot), grid, lost=lost)

    def cells(self, counts: KeyCounts, key: str, slot: str, grid: Bins | DyadicGrid) -> Integers:
        """The cells that were counted under a key, if all are cells of scores."""
        check_scores(counts, key, self.frame, self.number(slot), self.name(slot))
        return cells_of(counts.numbers(key), grid)

    def keyed_cells(self, counts: KeyCounts, key: str, grid: Bins | DyadicGrid) -> Integers:
        """The cells that were counted under a key that is known to hold cells only."""
        return cells_of(counts.numbers(key), grid)

    def check_dangers(
        self,
        counts: KeyCounts,
        key: str,
        scores: str,
        outcomes: Integers,
        unsafe: Flag | ClassFlag,
        *,
        lost: bool,
    ) -> None:
        """Refuse what is not a score, and rollouts whose danger contradicts their outcome."""
        name, keys = self.name(scores), counts.numbers(key)
        saved = counts.rows_where((keys == LOST) & (outcomes == 0))
        if saved:
            raise InvalidValueError(
                f"{name} holds -inf, lost at its start, but {unsafe.name} is False there ({saved} "
                "such): a lost rollout is unsafe."
            )
        check_scores(counts, key, self.frame, self.number(scores), name, lost=lost)

    def quality(self, slot: str, graded: Graded) -> nw.Expr:
        """A column of grades as qualities from 0 to 1, null where one is missing."""
        value, worst, best = self.number(slot), graded.scale[0], graded.scale[-1]
        return nw.when(is_number(value)).then(unscaled(value - worst, best - worst))

    def refuse_beyond(self, slots: Sequence[str], graded: Graded) -> None:
        """Refuse grades beyond the scale; one look at all columns."""
        worst, best = graded.scale[0], graded.scale[-1]
        grades = {slot: self.number(slot) for slot in slots}
        # Of the grades themselves: a little above the best one, a quality may be rounded to 1.
        beyond = {
            slot: is_number(each) & ((each < worst) | (each > best))
            for slot, each in grades.items()
        }
        found = counted(self.frame, {slot: one_where(each) for slot, each in beyond.items()})
        for slot, each in beyond.items():
            values = found.rows_where(found.numbers(slot) == 1)
            if values:
                example = extreme(self.frame, self.number(slot), each, greatest=True)
                raise graded.beyond(f"{self.name(slot)} holds {example}", values)

    def level(self, slot: str, graded: Graded, fine: int) -> nw.Expr:
        """The level of each grade, -1 where there is none."""
        self.refuse_undeclared([slot], graded)
        quality = self.quality(slot, graded)
        places = quality * graded.steps(fine)
        level = (places + 0.5).floor() if graded.declared else places.floor()
        return nw.when(is_number(quality)).then(level).otherwise(nw.lit(-1.0))

    def refuse_undeclared(self, slots: Sequence[str], graded: Graded) -> None:
        """Refuse grades that the scale does not list, if it lists them."""
        for slot in slots if graded.declared else ():
            quality = self.quality(slot, graded)
            places = quality * graded.steps(0)
            strange = is_number(quality) & ((places - (places + 0.5).floor()).abs() > NEAR)
            found = counted(self.frame, {"strange": one_where(strange)})
            values = found.rows_where(found.numbers("strange") == 1)
            if values:
                example = extreme(self.frame, self.number(slot), strange, greatest=True)
                raise graded.undeclared(f"{self.name(slot)} holds {example}", values)

    def difference(
        self, old: nw.Expr, new: nw.Expr, agree: nw.Expr | None, steps: int, *, declared: bool
    ) -> nw.Expr:
        """The cell of the difference of two qualities, see `DifferenceGrid`: nothing where answers
        `agree`.
        """
        places = (_filled(old, 1.0) - _filled(new, 0.0)) * float(steps)
        known = ((places + 0.5).floor() if declared else places.ceil()) + float(steps)
        gaps = 2 - one_where(is_number(old)) - one_where(is_number(new))
        half = nw.when(gaps == 1).then(known + float(steps + 1)).otherwise(known)
        cell = nw.when(gaps == 2).then(nw.lit(float(3 * steps + 2))).otherwise(half)
        if agree is None:
            return cell
        return nw.when(one_where(agree) == 1).then(nw.lit(float(steps))).otherwise(cell)

    def preferred(self, slot: str, known: Mapping[str, float]) -> nw.Expr:
        """The quality that the preferred model of each row stands for, by its name; null where
        there is none.
        """
        named = {self.name(slot): self._columns[slot]}
        answers = AnswerColumns(self.frame, named, None, ClassRule(), Evidence())
        (column,) = answers.columns
        quality = nw.lit(None).cast(nw.Float64)
        for each in sorted(answers.predicted(column), key=str):
            preferred = column.holds(each)
            if str(each) not in known:
                found = counted(self.frame, {"strange": one_where(preferred)})
                rows = found.rows_where(found.numbers("strange") == 1)
                raise not_preferred(f"{column.name} holds {str(each)!r}", rows, known)
            quality = nw.when(preferred).then(nw.lit(known[str(each)])).otherwise(quality)
        return quality

    def label_key(
        self, label: AnswerColumns, chosen: Mapping[Class, str], grid: Bins | DyadicGrid
    ) -> nw.Expr:
        """The key of the number that stands in the column of each row's class; `LOST` where the
        class has no column, or there is no number.
        """
        score = self._of_label(label, chosen)
        return nw.when(is_number(score)).then(cell_key(score, grid)).otherwise(nw.lit(LOST))

    def _of_label(self, label: AnswerColumns, chosen: Mapping[Class, str]) -> nw.Expr:
        (column,) = label.columns
        found = [
            nw.when(column.holds(each)).then(self.number(slot)) for each, slot in chosen.items()
        ]
        return nw.coalesce(*found) if found else nw.lit(None).cast(nw.Float64)

    def label_cells(
        self,
        counts: KeyCounts,
        key: str,
        label: AnswerColumns,
        chosen: Mapping[Class, str],
        grid: Bins | DyadicGrid,
    ) -> Integers:
        """The cells that were counted under the key of a label's number, -1 where it has none."""
        keys = counts.numbers(key)
        if (keys < 0).any():
            # Another look at one column after the other: which of them holds it?
            for found, slot in chosen.items():
                one = {found: slot}
                own = counted(self.frame, {key: self.label_key(label, one, grid)})
                score = self._of_label(label, one)
                check_scores(own, key, self.frame, score, self.name(slot))
        return cells_of(keys, grid)

    def flag(self, slot: str) -> Flag | ClassFlag:
        """A column of truth values, or of classes of which one counts: these are looked at once."""
        positive = self._slots[slot].positive
        if positive is None:
            return Flag(self.frame, self._columns[slot], self.name(slot))
        if slot not in self._class_flags:
            answers = self.answers([slot], None, Evidence())
            self._class_flags[slot] = ClassFlag(answers, positive)
        return self._class_flags[slot]

    def look_at_classes(self) -> None:
        """Refuse rows without a class where one of them counts, and take in which classes there
        are.
        """
        for slot, held in self._slots.items():
            if held.positive is not None:
                self.flag(slot)

    def answers(
        self,
        predictions: Sequence[str],
        labels: str | None,
        evidence: Evidence,
        *,
        gaps: bool = False,
    ) -> AnswerColumns:
        """Columns of predictions against a column of labels, if there is one; with `gaps`, a
        prediction may be missing.
        """
        named = {self.name(slot): self._columns[slot] for slot in predictions}
        if len(named) < len(predictions):
            # One column may stand for several models.
            named = {f"{self.name(slot)} ({slot})": self._columns[slot] for slot in predictions}
        truth = None if labels is None else (self.name(labels), self._columns[labels])
        try:
            return AnswerColumns(self.frame, named, truth, self._rule, evidence, gaps=gaps)
        except PacboundError:
            raise
        except Exception as error:  # an engine's own
            if self.read_again or self.frame.implementation.is_spark_like():
                raise
            said = str(error).strip().splitlines()[0].rstrip(".")
            raise InvalidValueError(
                f"The frame cannot be read ({said}). Classes are looked at more than once, and a "
                "stream can be read only once: load it first."
            ) from None

    def group_key(self, slot: str) -> nw.Expr:
        """A column of groups as it is, except that every fraction becomes one value."""
        dtype, column = typed(self.frame, self._columns[slot])
        if isinstance(dtype, (nw.Categorical, nw.Enum)):
            return column.cast(nw.String)
        if dtype.is_float():
            value = column.cast(nw.Float64)
            fraction = nw.when(is_number(value)).then(nw.lit(_FRACTION)).otherwise(value)
            return nw.when(one_where_whole(value) == 1).then(value).otherwise(fraction)
        if dtype.is_integer() or isinstance(dtype, (nw.Boolean, nw.String)):
            return column
        raise InvalidTypeError(f"{self.name(slot)} has type {dtype}: expected integers or strings.")

    def groups(self, counts: KeyCounts, key: str, slot: str) -> tuple[tuple[str, ...], Integers]:
        """The names of the groups, and the place among them of each key that was counted.

        Groups are text, as they are for arrays: 7, 7.0 and "7" are one group.
        """
        name, found = self.name(slot), counts.keys[key].tolist()
        missing = np.array([is_missing(value) for value in found], dtype=bool)
        if missing.any():
            raise InvalidValueError(
                f"{name} has {counts.rows_where(missing)} missing values (null or NaN): expected "
                "an integer or a string. Name the missing ones."
            )
        fraction = np.array(
            [isinstance(value, float) and isinf(value) for value in found], dtype=bool
        )
        if fraction.any():
            raise InvalidValueError(
                f"{name} holds {counts.rows_where(fraction)} numbers that are not whole or not "
                "below 2**53: expected an integer or a string."
            )
        texts = [value if isinstance(value, str) else str(int(value)) for value in found]
        refuse_cut_names(texts, name)
        places: dict[str, int] = {}
        codes = [places.setdefault(text, len(places)) for text in texts]
        return tuple(places), np.array(codes, dtype=np.int64)
