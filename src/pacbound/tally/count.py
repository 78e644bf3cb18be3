"""The one way from any data to counts: a question is asked of rows, and what it says is counted.

Arrays, frames, files and engines differ in where the rows are judged: here, in blocks or batches of
arrays, or inside the engine that holds them. Everything after that is the same.

Where rows are drawn first (`pacbound.tally.draws`), the columns that the draw goes by are read, and
then only the rows that were drawn are judged, here: files are read twice, and of a frame the wanted
columns leave their engine.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from itertools import product
from typing import Any

import numpy as np

from pacbound.atomic_files import ADDRESS
from pacbound.errors import InvalidTypeError, InvalidValueError
from pacbound.sources.batches import (
    CannotCountError,
    Part,
    Progress,
    TableFile,
    Wanted,
    in_order,
    located,
    part_of,
    rows_at,
)
from pacbound.sources.engines import reading_frame
from pacbound.sources.notation import Notation
from pacbound.sources.opening import open_tables, opened
from pacbound.sources.paths import Paths, are_paths, as_list
from pacbound.tally.classes import ClassRule, Evidence, Vocabulary, by_class
from pacbound.tally.columns import (
    Floats,
    Integers,
    Rows,
    Slot,
    as_array,
    ask_about_spaces,
    batch_scores,
    refuse_spark_column,
    require_whole_text,
    same_length,
    same_rows,
    scaled,
    wanted,
)
from pacbound.tally.draws import (
    EVERY_ROW,
    Candidates,
    Draw,
    Drawn,
    Numbers,
    forecast,
    refuse_fresh_seed,
    require_some_kept,
)
from pacbound.tally.grades import Graded
from pacbound.tally.grids import DEFAULT_BINS, equal_mass_cells, is_equal_mass
from pacbound.tally.joined_tables import joined, quality_of
from pacbound.tally.label_matches import LabelMatches
from pacbound.tally.questions import Judged, Question
from pacbound.tally.questions.question import GRADED_SLOTS
from pacbound.tally.returned_labels import ReturnedLabels, stored_as
from pacbound.tally.rollout_rows import LOOKED_AT, RolloutRows
from pacbound.tally.row_ids import ID, LABEL, Returned, TableDigest
from pacbound.tally.row_options import DRAWN_BY, POSITIVE, ROWS, options_about
from pacbound.tally.table import (
    CountTable,
    Fingerprint,
    histogram_names,
    named_by,
    own_name,
    together,
)


@dataclass(frozen=True)
class Counted:
    """What a question found: the cells that were hit, how often, in how many rows, and whose."""

    rows: int
    cells: Integers
    counts: Integers
    groups: tuple[str, ...]
    sources: frozenset[str]
    drawn: Drawn | None = None
    matches: LabelMatches | None = None
    ids: Numbers | str | None = None
    graded: Graded | None = None
    scale: float | None = None


@dataclass
class Kept:
    """Rows as they were judged, in order, for whoever needs more of them than counts; `places` are
    those among all rows, where some were drawn. `table` is the digest by which they get their ids,
    and `declined` are those that nobody can tell the label of.
    """

    judged: list[Judged] = field(default_factory=list)
    places: Integers | None = None
    table: str = ""
    declined: Integers = field(default_factory=lambda: np.zeros(0, dtype=np.int64))


class Counting:
    """A count in the making, with the classes that it has met and what it has seen of them."""

    def __init__(
        self,
        question: Question,
        rule: ClassRule | None = None,
        draw: Draw = EVERY_ROW,
        progress: Progress | None = None,
        kept: Kept | None = None,
        source: str | None = None,
    ) -> None:
        self._source = source
        self.question, self.rule, self.draw = question, rule or ClassRule(), draw
        self._kept = kept
        self._came: ReturnedLabels | None = None
        self._digest = None if kept is None else _digest_of(question)
        self._progress = progress
        self.vocabulary = Vocabulary(self.rule)
        self.evidence = Evidence()
        self.drawn: Drawn | None = None
        self.ids: Numbers | str | None = None
        self.rows = 0
        # Rows that are looked at together, until all are there.
        self._waiting: list[Rows] = []
        self._fingerprint = Fingerprint()
        self._table = CountTable(
            question.grid,
            scores=question.cell_columns,
            outcomes=len(question.outcomes),
            grouped=question.scope != "top",
        )

    @property
    def block(self) -> int:
        """How many rows to take at a time."""
        return self._table.block

    def choose(self, candidates: Candidates) -> Integers:
        """The places of the rows that are drawn; whoever shows progress is told beforehand how many
        will be left, where a bound makes them few.
        """
        self._say(candidates.forecast)
        places, self.drawn = candidates.chosen()
        if self._kept is not None:
            self._kept.places = places
        if self._digest is not None:
            self._digest.choose(places)
        return places

    def join(self, came: ReturnedLabels) -> ReturnedLabels:
        """Check in the end that labels which came back are those of the rows that are counted."""
        self._came, self._digest = came, self._digest or _digest_of(self.question)
        return came

    def drew(self, drawn: Drawn) -> None:
        """Take in what an engine drew rows from, and say what is left of them."""
        self.drawn = drawn
        self._say(forecast(self.draw, dict(drawn.among), drawn.rows, drawn.units))

    def _say(self, said: str | None) -> None:
        note = getattr(self._progress, "note", None)
        if said is not None and note is not None:
            note(said)

    @property
    def keeps_rows(self) -> bool:
        """Whether somebody needs more of the rows than counts."""
        return self._kept is not None

    def require_order(self, has_order: Callable[[], bool]) -> None:
        """Refuse rows without an order where somebody needs to know their places."""
        if self.keeps_rows and not has_order():
            raise InvalidValueError(
                "These rows have no order, and rows are asked for by their place: pass files, "
                "without engine='spark', or a pandas or Polars frame."
            )

    @property
    def counts_inside(self) -> bool:
        """Whether an engine may judge the rows, and hand over counts alone."""
        return self.question.counts_inside and not self.keeps_rows

    def counts_in(self, native: Any) -> bool:
        """Whether the engine of this frame may: Spark puts rows together that belong together."""
        if not self.question.judged_at_once or self.keeps_rows:
            return self.counts_inside
        # Loaded here, because arrays need no narwhals.
        from pacbound.tally.frames.joined_labels import is_in_spark  # noqa: PLC0415

        return is_in_spark(native)

    def ask(self, rows: Rows) -> None:
        """Judge rows of arrays here."""
        if self._digest is not None:
            self._digest.take(rows)
        if self.question.judged_at_once:
            self._waiting.append(rows)
            self.rows += len(rows)
            return
        self.add(self.question.judge(rows, self.vocabulary, self.evidence))

    def ask_inside(
        self,
        native: Any,
        *,
        keyed: bool = False,
        read_again: bool = False,
    ) -> None:
        """Judge the rows of a frame inside its engine; `keyed` columns go by their slots."""
        question = self.question
        # Loaded here, because arrays need no narwhals.
        from pacbound.tally.frames.engine_rows import EngineRows  # noqa: PLC0415

        rows = EngineRows(native, question.slots, self.rule, keyed=keyed, read_again=read_again)
        # Taken in only when all went well, so that rows may be read in another way if it does not.
        evidence = Evidence()
        judged = question.judge_inside(rows, evidence)
        self.evidence.add(evidence)
        self.add(judged)

    def add(self, judged: Judged) -> None:
        """Count rows that were judged."""
        require_whole_text(judged.groups, "groups")
        self._table.add(judged)
        self.rows += judged.rows
        if self._kept is not None:
            self._kept.judged.append(judged)
        if judged.told is not None:
            self._fingerprint.update(*judged.told)

    @property
    def _labels(self) -> str | None:
        """What the column of true classes is called, if there is one."""
        slots = self.question.slots
        return next((slots[key].name for key in ("label", "labels") if key in slots), None)

    def _check_ids(self) -> None:
        """Require that labels came back to these rows, and say by what they get their ids."""
        if self._digest is None:
            return
        if self._came is not None:
            self._came.require_ids_of(self._digest.value)
        if self._kept is not None:
            self._kept.table = self._digest.value
            self._kept.declined = self._kept.declined if self._came is None else self._came.declined

    def result(self, sources: Iterable[str] | None = None) -> Counted:
        """What was counted, if its classes can be right; its name where `sources` have none."""
        if self._waiting:
            self.rows = 0
            whole = Rows.joined(self._waiting)
            self.add(self.question.judge(whole, self.vocabulary, self.evidence))
        self._check_ids()
        for slot in self.question.slots.values():
            if slot.positive is not None:
                slot.positive.require_seen(slot.name)
        self.question.require_possible(self.evidence)
        if has_classes(self.question):
            self.evidence.check(self.rule, self.rows, self._labels)
        matches = self.evidence.matches(self.rule)
        if matches is not None:
            matches.require_related(
                self.rows, self._labels or "label", self.evidence.slow, self.question.reference
            )
        cells, counts, groups = self._table.result()
        ask_about_spaces(groups, "groups")
        if sources is None:
            sources = [self._fingerprint.name() or own_name()] if self.rows else []
        names = named_by(self._source, frozenset(sources))
        known_by = self.question.known_again_by(counts, cells.shape[1])
        if known_by is not None:
            # Labels come later, and make other files of the same rows; so do other groups.
            table = together(self.question.scope, cells, known_by, groups)
            names |= histogram_names(*table)
        graded = self.question.graded
        drawn = self.drawn
        if drawn is not None and self.draw.fresh:
            drawn = replace(drawn, fresh=True)
        if (drawn or graded) and self.question.lacks_labels(cells, counts):
            refuse_fresh_seed(drawn, graded)
        return Counted(self.rows, cells, counts, groups, names, drawn, matches, self.ids, graded)


def _digest_of(question: Question) -> TableDigest:
    answers = (*question.labelled_by, *(k for k in question.slots if k.startswith(GRADED_SLOTS)))
    return TableDigest(question.slots, answers)


def count_rows(
    question: Question, given: Mapping[str, Any], data: Any, kept: Kept | None = None
) -> tuple[Question, Counted]:
    """What a question found in arrays, a frame, or files; and the question about these columns.

    `given` are columns and options by name. Whatever does not fit together raises before a row is
    read. `kept` takes the rows as they were judged.
    """
    own, counted = _count_rows(question, given, data, kept)
    scale = next((slot.scale for slot in own.slots.values() if slot.scale is not None), None)
    counted = replace(counted, scale=scale)
    if own.of_rollouts:
        _require_rollouts(own, given, data)
    if data is None:
        _ask_about_outcome_as_score(given)
    return own, counted


_SCORES, _FLAGS = {"score", "confidence"}, {"positive", "unsafe", "correct"}


def _ask_about_outcome_as_score(given: Mapping[str, Any]) -> None:
    """Say where two arrays hold the same, which named columns may not."""
    arrays = {name: as_array(given[name], name) for name in (*_SCORES, *_FLAGS) if name in given}
    for score, flag in product(_SCORES & arrays.keys(), _FLAGS & arrays.keys()):
        if np.array_equal(arrays[score], arrays[flag]) and len(np.unique(arrays[flag])) > 1:
            warnings.warn(
                f"{score} and {flag} are equal in every row: is the outcome taken for its score?",
                stacklevel=2,
            )


def _require_rollouts(question: Question, given: Mapping[str, Any], data: Any) -> None:
    """Refuse steps where rollouts belong. What addresses stand for is not looked at."""
    seen = RolloutRows.of(question.slots)
    if data is None:
        named = [name for name in ("clusters", "groups") if name in given]
        by = {name: given[name] for name in named if not isinstance(given[name], Mapping)}
        seen.take_arrays({seen.unsafe.name: given[seen.unsafe.name], **by})
    elif not are_paths(data):
        # Loaded here, because files need no narwhals.
        from pacbound.tally.frames.counting import first_columns  # noqa: PLC0415

        with reading_frame():
            seen.take_arrays(first_columns(data, LOOKED_AT))
    elif not any(ADDRESS.match(str(path)) for path in as_list(data)):
        options = {name: value for name, value in given.items() if name in ROWS}
        seen.take_files(open_tables(data, Notation.of(**options_about("notation", options))))
    seen.refuse_steps()
    seen.ask()


def _count_rows(
    question: Question, given: Mapping[str, Any], data: Any, kept: Kept | None
) -> tuple[Question, Counted]:
    options = {name: value for name, value in given.items() if name in ROWS}
    columns = {name: value for name, value in given.items() if name not in ROWS}
    _require_fitting(question, columns, options, data)
    if "answers" in options and "label" in question.labelled_by:
        named = {"label", "quality", "preferred", "correct"} & columns.keys()
        columns |= {} if named else {"label": LABEL}
    if data is None:
        by = {name: options[name] for name in DRAWN_BY if name in options}
        same_rows(**columns, **by)
        own, arrays = question.of_arrays(**columns)
        own = _by_class(own, options)
        own = _graded(own, options)
        counting = _counting(own, options, columns=False, kept=kept)
        names = _ask_arrays(counting, {**arrays, **by})
        return own, counting.result(names)
    notation = Notation.of(**options_about("notation", options))
    if notation.is_about_text and not are_paths(data):
        raise InvalidTypeError(
            "delimiter and decimal are about files of text, and a frame was passed: leave them out."
        )
    if is_equal_mass(columns.get("edges")) and columns.get("confidence") is not None:
        scores = scores_in(columns["confidence"], data, options)
        columns["edges"] = equal_mass_cells(scores, columns.get("n_bins", DEFAULT_BINS))
    if "id" in options or "where" in options:
        return _count_joined(question, columns, options, data, notation, kept)
    question.refuse_one_model_twice(columns)
    own = _by_class(question.of_columns(**columns), options)
    own = _graded(own, options)
    if notation.scale is not None:
        own = replace(own, slots=scaled(own.slots, notation.scale))
    counting = _counting(own, options, columns=True, kept=kept)
    reading = options_about("reading", options)
    came = _Came(options.get("answers"), counting, notation, options.get("cannot_tell"))
    if are_paths(data):
        return own, _count_files(counting, came, data, notation, reading)
    with reading_frame():
        return own, _count_frame(counting, came, data)


@dataclass
class _Came:
    """Labels that came back, if any did: they are read once somebody asks for them, or stay in
    Spark where that holds them and the rows.
    """

    given: Any
    counting: Counting
    notation: Notation
    cannot_tell: str | None

    def __bool__(self) -> bool:
        return self.given is not None

    @property
    def source(self) -> Any:
        """The files or the frame that they are in; None if nothing came back yet."""
        return self.given.source if isinstance(self.given, Returned) else self.given

    @cached_property
    def labels(self) -> ReturnedLabels:
        """What came back, in memory."""
        given = self.given if isinstance(self.given, Returned) else Returned(self.given)
        question, rule = self.counting.question, self.counting.rule
        return self.counting.join(
            ReturnedLabels.of(given, question, rule, self.notation, self.cannot_tell)
        )

    @property
    def sources(self) -> tuple[str, ...]:
        """Names for what it came back in; one of its own for a frame, which has none."""
        if self.source is None:
            return ()
        named = self.labels.sources if are_paths(self.source) else ()
        return named or (own_name(),)

    def joined_to(self, native: Any) -> Any:
        """The frame with the labels in it, where Spark can join them; None where it cannot."""
        if not self:
            return native
        # Loaded here, because arrays need no narwhals.
        from pacbound.tally.frames.joined_labels import (  # noqa: PLC0415
            CannotJoinError,
            is_in_spark,
            joined_inside,
        )

        if not is_in_spark(native):
            return None
        source, counting = self.source, self.counting
        is_frame = source is not None and not are_paths(source)
        stays = is_frame and self.cannot_tell is None and is_in_spark(source)
        try:
            answers = source if stays else self.labels
            return joined_inside(native, answers, counting.question, counting.rule)
        except CannotJoinError:
            return None


def _graded(question: Question, options: Mapping[str, Any]) -> Question:
    """The question with how its outcomes are graded."""
    if not question.takes_quality:
        for name in options and options_about("grading", options):
            raise InvalidTypeError(
                f"{name} says how outcomes were graded, and none were: pass quality, or leave it "
                "out."
            )
        return question
    return question.counting_grades(Graded.of(options, question.usual_scale))


def _by_class(question: Question, options: Mapping[str, Any]) -> Question:
    """The question, where its truth values are written as classes."""
    given = options.get(POSITIVE)
    if given is None:
        return question
    flags = [column.name for column in question.columns if column.holds == "flag"]
    return replace(question, slots=by_class(question.slots, flags, given, _class_rule(options)))


def _class_rule(options: Mapping[str, Any]) -> ClassRule:
    given = options_about("classes", options)
    given.pop(POSITIVE, None)
    return ClassRule.of(**given)


def _count_joined(
    question: Question,
    columns: Mapping[str, Any],
    options: Mapping[str, Any],
    data: Any,
    notation: Notation,
    kept: Kept | None,
) -> tuple[Question, Counted]:
    """Count the rows of several models' tables, joined by an id, in memory. Labels that came back
    are those of the rows in the order of the first table, and must have their ids.
    """
    if not question.joins or options.get("id") is None:
        raise InvalidTypeError(
            "id joins the tables of several models, for a cascade or a replacement, and where "
            "needs id: leave them out."
        )
    tables = joined(data, by=options["id"], where=options.get("where"), notation=notation)
    several = {column.name for column in question.columns if column.several}
    named = {
        role: tables.for_each(names, role) if role in several else names
        for role, names in columns.items()
    }
    drawn = {**tables.known_by, **options}
    own = _graded(question.of_columns(**named), drawn)
    counting, arrays = _counting(own, drawn, columns=True, kept=kept), dict[str, Any]()
    answers = options.get("answers")
    if answers is not None and own.takes_quality:
        raise InvalidTypeError(
            "answers brings labels to joined tables, and these are graded: put the grades into the "
            "tables, and leave answers out."
        )
    known_by = {} if answers is None else {f"id {name}": Slot("class", name) for name in tables.ids}
    asked = replace(own, slots={**own.slots, **known_by})
    came = None
    if answers is not None:
        given = answers if isinstance(answers, Returned) else Returned(answers)
        word = options.get("cannot_tell")
        came = counting.join(ReturnedLabels.of(given, asked, counting.rule, notation, word))
    back = set() if came is None else {column.key for column in came.columns}
    for key, slot in {**asked.slots, **counting.draw.slots}.items():
        role, _, model = key.partition(" ")
        if key in back and not tables.have(slot.name):
            continue
        if role not in several:
            arrays[key] = tables.shared(slot.name)
        else:
            column = tables.column(int(model), slot.name)
            arrays[key] = quality_of(column, slot.name) if role == "quality" else column
    if came is not None:
        compared = (back | known_by.keys()) & arrays.keys()
        objects = {key: np.array(arrays[key], dtype=object) for key in compared}
        arrays |= came.joined({**arrays, **objects}, asked)
    names = _ask_arrays(counting, arrays)
    sources = [*(tables.sources or names or [own_name()]), *(came.sources if came else ())]
    return own, counting.result(sources)


def _counting(
    question: Question, options: Mapping[str, Any], *, columns: bool, kept: Kept | None
) -> Counting:
    """A count that has not begun, if what is said about classes goes with the question."""
    if not options:
        return Counting(question, kept=kept)
    given = options_about("classes", options)
    rule, silent = _class_rule(options), ClassRule()
    given.pop(POSITIVE, None)
    said = [name for name in given if getattr(rule, name) != getattr(silent, name)]
    if said and not has_classes(question):
        raise InvalidTypeError(
            f"{said[0]} is about classes, and none are counted here: leave it out, or pass "
            "predictions and labels."
        )
    if rule.unrelated_labels and not question.compares_models:
        raise InvalidTypeError(
            "unrelated_labels is about the slow model of a cascade, or the old one that is to be "
            "replaced, and there is none here: leave it out."
        )
    draw = Draw.of(options, question, columns=columns)
    return Counting(question, rule, draw, options.get("progress"), kept, options.get("source"))


def _count_frame(counting: Counting, came: _Came, native: Any) -> Counted:
    """Count a dataframe inside its own engine. Its rows have no order, so they get an own name.

    Where labels came back, but to rows in Spark, and where rows are drawn by their place, the
    columns leave the engine.
    """
    counting.require_order(has_order=partial(_has_order, native))
    draw, rows = counting.draw, came.joined_to(native)
    joined = None if rows is not None else came.labels
    native = native if rows is None else rows
    if joined is None and _asks_inside(counting, native):
        _ask_engine(counting, native)
        return counting.result([own_name()] if draw.chooses and counting.rows else None)
    if joined is not None or draw.chooses or not counting.counts_in(native):
        _ask_arrays(counting, _columns_of(counting, native, joined))
        return counting.result([own_name()] if counting.rows else [])
    if draw.looks_at_ids:
        counting.ids = _ids_of_frame(draw, native)
    counting.ask_inside(native)
    return counting.result()


def _count_files(
    counting: Counting,
    came: _Came,
    paths: Paths,
    notation: Notation,
    reading: Mapping[str, Any],
) -> Counted:
    """Count the rows of files, inside an engine where it can be done, and else in batches, in
    order.

    Counting inside does not say what is wrong with a file. Reading in order does, and has the last
    word. Where labels came back, rows are read in order, too.
    """
    question, draw, progress = counting.question, counting.draw, reading.get("progress")
    slots = {**question.slots, **draw.slots}
    with opened(paths, wanted(slots), notation=notation, **reading) as tables:
        counting.require_order(has_order=lambda: bool(tables.tables))
        joined = came.labels if came and tables.tables else None
        listed = tables.tables if joined is None else joined.tables(tables.tables)
        if draw.chooses and listed:
            _ask_drawn(counting, listed, progress)
        elif not listed and (came or draw.slots):
            (part,) = tables.parts
            part.run(partial(_ask_part, counting, came, part.frame))
        else:
            counting.ids = _ids_of_parts(draw, tables.tables, tables.parts)
            again = Part(batches=partial(in_order, listed, wanted(question.slots), progress))
            for part in tables.parts if joined is None else [again]:
                _count_part(counting, part)
        if joined is not None:
            joined.require_all_met(tables.listed)
        if not counting.rows:
            raise InvalidValueError(
                f"{tables.listed}: no rows. A guarantee needs at least one labelled row."
            )
    try:
        names = tables.fingerprints
        if names is not None and came:
            names = [*names, *came.sources]
        return counting.result(names)
    except InvalidValueError as error:
        raise InvalidValueError(f"{tables.listed}: {error}") from None


def scores_in(column: str, data: Any, options: Mapping[str, Any]) -> Floats:
    """All scores in a column of files or of a frame, in memory: eight bytes a row."""
    notation = Notation.of(**options_about("notation", options))
    slot = Slot("number", column, notation.scale)
    if not are_paths(data):
        with reading_frame():
            return _scores_in_frame(slot, data)
    found = [np.empty(0)]
    wanted = {"scores": Wanted(slot.name, slot.read_as)}
    reading = {**options_about("reading", options), "progress": None}
    with opened(data, wanted, notation=notation, **reading) as tables:
        for part in tables.parts:
            if part.batches is None:
                found.append(part.run(partial(_scores_in_frame, slot, part.frame)))
                continue
            for path, batch in part.batches():
                with located(path):
                    found.append(batch_scores(batch, slot.name, slot.scale))
    return np.concatenate(found)


def _scores_in_frame(slot: Slot, native: Any) -> Floats:
    # Loaded here, because arrays need no narwhals.
    from pacbound.tally.frames.counting import whole_columns  # noqa: PLC0415

    slots = {"scores": slot}
    return Rows.of_arrays(slots, whole_columns(native, slots, in_order=False)).scores("scores")


def _ask_arrays(counting: Counting, arrays: Mapping[str, Any]) -> list[str] | None:
    """Count columns of arrays, block by block: beyond the arrays, memory stays small. Rows that are
    drawn are named by what the draw goes by.
    """
    draw = counting.draw
    rows = Rows.of_arrays(counting.question.slots, arrays)
    by = Rows.of_arrays(draw.slots, arrays)
    same_length(**{each.name(key): each.columns[key] for each in (rows, by) for key in each.slots})
    if not draw.slots:
        _ask_in_blocks(counting, rows)
        return None
    candidates = _candidates_in(draw, by)
    if not draw.chooses:
        counting.ids = candidates.ids()
        _ask_in_blocks(counting, rows)
        return None
    places = counting.choose(candidates)
    with _numbered_among(len(places), draw.seed):
        _ask_in_blocks(counting, rows.at(places))
    return [candidates.name] if len(rows) else None


def _ask_in_blocks(counting: Counting, rows: Rows) -> None:
    # Classes are numbered over a whole column, which blocks would do again and again.
    block = max(1, len(rows)) if has_classes(counting.question) else counting.block
    for start in range(0, len(rows), block):
        counting.ask(rows if block >= len(rows) else rows.part(start, start + block))


def _ask_drawn(counting: Counting, tables: Sequence[TableFile], progress: Progress | None) -> None:
    """Read the rows of files in order, twice: for the draw, and for the rows that are drawn."""
    slots = counting.question.slots
    candidates = _candidates_in_order(counting.draw, tables, part_of(progress, 0.0, 0.5))
    places = counting.choose(candidates)
    for path, batch in rows_at(places, tables, wanted(slots), part_of(progress, 0.5, 0.5)):
        with located(path), _numbered_among(batch.rows, counting.draw.seed):
            counting.ask(Rows.of_batch(slots, batch))


def _candidates_in(draw: Draw, by: Rows) -> Candidates:
    candidates = Candidates(draw, lambda place: str(by.columns["row_ids"][place]))
    candidates.take(by)
    return candidates


def _candidates_in_order(
    draw: Draw, tables: Sequence[TableFile], progress: Progress | None
) -> Candidates:
    def name_at(place: int) -> str:
        """The id of a row, for which the files are read again."""
        done = 0
        for _, batch in in_order(tables, wanted(draw.slots), None):
            if place < done + batch.rows:
                return str(Rows.of_batch(draw.slots, batch).columns["row_ids"][place - done])
            done += batch.rows
        return "an id"

    candidates = Candidates(draw, name_at)
    for path, batch in in_order(tables, wanted(draw.slots), progress):
        with located(path):
            candidates.take(Rows.of_batch(draw.slots, batch))
    return candidates


def _has_order(native: Any) -> bool:
    # Loaded here, because arrays need no narwhals.
    from pacbound.tally.frames.counting import has_order  # noqa: PLC0415

    return bool(has_order(native))


def _ids_of_frame(draw: Draw, native: Any) -> Numbers:
    """The ids of a frame's rows, the only column that leaves its engine."""
    # Loaded here, because arrays need no narwhals.
    from pacbound.tally.frames.counting import whole_columns  # noqa: PLC0415

    columns = whole_columns(native, draw.slots, in_order=False)
    return _candidates_in(draw, Rows.of_arrays(draw.slots, columns)).ids()


def _ids_of_parts(draw: Draw, tables: Sequence[TableFile], parts: Sequence[Part]) -> Numbers | None:
    """The ids of the rows of files, which are read once more for them; None if nobody asks."""
    if not draw.looks_at_ids:
        return None
    if tables:
        return _candidates_in_order(draw, tables, None).ids()
    (part,) = parts
    found: Numbers = part.run(partial(_ids_of_frame, draw, part.frame))
    return found


def _ask_part(counting: Counting, came: _Came, native: Any) -> None:
    """Draw and judge the rows of files that an engine holds, with the labels that came back."""
    rows, draw = came.joined_to(native), counting.draw
    if rows is not None and _asks_inside(counting, rows):
        _ask_engine(counting, rows, read_again=True)
    elif rows is not None and not draw.slots and counting.counts_inside:
        counting.ask_inside(rows, read_again=True)
    else:
        joined = came.labels if rows is None else None
        _ask_arrays(counting, _columns_of(counting, native if rows is None else rows, joined))


def _asks_inside(counting: Counting, native: Any) -> bool:
    """Whether an engine holds these rows that can draw them by their ids."""
    if counting.keeps_rows or not counting.draw.slots:
        return False
    # Loaded here, because arrays need no narwhals.
    from pacbound.tally.frames.keyed_rows import draws_inside  # noqa: PLC0415

    return draws_inside(native, counting.draw)


def _ask_engine(counting: Counting, native: Any, *, read_again: bool = False) -> None:
    """Draw and judge rows in the engine that holds them. Where it cannot judge them, the rows that
    are drawn leave it.
    """
    from pacbound.tally.frames.keyed_rows import drawn_inside, ids_inside  # noqa: PLC0415

    draw = counting.draw
    if not draw.chooses:
        counting.ids = ids_inside(native, draw)
        _ask_frame(counting, native, read_again=read_again)
        return
    with drawn_inside(native, counting.question, draw, counting.rule) as (rows, drawn):
        counting.drew(drawn)
        _ask_frame(counting, rows, read_again=True)
    require_some_kept(drawn, counting.rows, weightless=False)


def _ask_frame(counting: Counting, native: Any, *, read_again: bool) -> None:
    """Judge all rows of a frame in its engine, or here where the question says so."""
    from pacbound.tally.frames.counting import whole_columns  # noqa: PLC0415

    question = counting.question
    if not question.counts_inside:
        columns = whole_columns(native, question.slots, in_order=False)
        _ask_in_blocks(counting, Rows.of_arrays(question.slots, columns))
        return
    counting.ask_inside(native, read_again=read_again)


def _count_part(counting: Counting, part: Part) -> None:
    inside = part.frame is not None and counting.counts_in(part.frame)
    if part.frame is not None and not inside and part.batches is None:
        _ask_arrays(counting, part.run(partial(_columns_of, counting, part.frame, None)))
        return
    if part.frame is not None and inside:
        try:
            part.run(partial(counting.ask_inside, part.frame, keyed=part.keyed, read_again=True))
        except (CannotCountError, InvalidTypeError, InvalidValueError):
            if part.batches is None:
                raise
        else:
            return
    if part.batches is None:
        raise InvalidValueError("These rows can be read neither inside an engine nor in order.")
    for path, batch in part.batches():
        with located(path):
            counting.ask(Rows.of_batch(counting.question.slots, batch))


def _columns_of(counting: Counting, native: Any, joined: ReturnedLabels | None) -> dict[str, Any]:
    """The columns of a frame that the draw and the question need, outside of its engine, with the
    labels that came back among them.
    """
    # Loaded here, because arrays need no narwhals.
    from pacbound.tally.frames.counting import (  # noqa: PLC0415
        column_names,
        has_order,
        whole_columns,
    )

    question, draw = counting.question, counting.draw
    slots = {**question.slots, **draw.slots}
    by_place = draw.chooses and draw.goes_by_place
    if joined is None:
        return whole_columns(native, slots, in_order=by_place)
    stored = column_names(native)
    for column in joined.columns:
        if column.name not in stored:
            del slots[column.key]
        else:
            slots[column.key] = stored_as(column.slot)
    if ID in stored:
        slots[ID] = Slot("number", ID)
    elif not has_order(native):
        raise InvalidValueError(
            f"The rows of this frame have no order, and labels are joined by the number of a row: "
            f"give it a column {ID} with the numbers that went out."
        )
    found = whole_columns(native, slots, in_order=by_place)
    return {**found, **joined.joined(found, question)}


@contextmanager
def _numbered_among(rows: int, seed: int) -> Iterator[None]:
    """Say what the number of a bad row means, and how to draw the same rows again."""
    try:
        yield
    except (InvalidTypeError, InvalidValueError) as error:
        raise type(error)(
            f"{error} (Rows are numbered among the {rows:,} that were drawn here: pass seed={seed} "
            "to draw the same again.)"
        ) from None


def has_classes(question: Question) -> bool:
    """Whether rows bring classes, which must be comparable."""
    slots = question.slots.values()
    return any(slot.kind == "class" or slot.positive is not None for slot in slots)


def _require_fitting(
    question: Question, columns: Mapping[str, Any], options: Mapping[str, Any], data: Any
) -> None:
    """Raise if a column is missing, or does not go with `data`, or an option does not."""
    for name, must in question.roles.items():
        if must and name not in columns:
            what = "an array, or data= and the name of a column" if data is None else "its column"
            raise InvalidTypeError(f"{name} is missing: pass {what}.")
    several = {column.name for column in question.columns if column.several}
    for name, value in {**columns, **options}.items():
        if name in question.roles or name in DRAWN_BY:
            _require_names_or_arrays(name, value, data, several=name in several)
    passed = "arrays were" if data is None else "files were" if are_paths(data) else "a frame was"
    for name in options:
        part = ROWS[name].part
        if part == "certificate":
            raise InvalidTypeError(f"{name} is about a certificate: pass it to what certifies.")
        if part == "reading" and passed != "files were":
            raise InvalidTypeError(f"{name} is about files, and {passed} passed: leave it out.")
        if part in ("notation", "answers") and data is None:
            remedy = "pass the scores divided by it" if name == "scale" else "leave it out"
            raise InvalidTypeError(f"{name} is about tables, and arrays were passed: {remedy}.")


def _require_names_or_arrays(name: str, value: Any, data: Any, *, several: bool) -> None:
    """Strings name columns of `data`; without it there are arrays."""
    refuse_spark_column(value, name)
    is_name = isinstance(value, str) or (
        isinstance(value, (list, tuple))
        and (bool(value) or data is not None)
        and all(isinstance(part, str) for part in value)
    )
    # A list of texts is a column of classes, unless it names the columns of a matrix.
    if is_name and data is None and (several or isinstance(value, str)):
        raise InvalidTypeError(
            f"{name}={value!r} names a column, and there is no table: add data=frame or "
            "data='rows.parquet'."
        )
    if isinstance(value, int) and data is not None:
        raise InvalidTypeError(
            f"{name}={value!r} does not name a column: expected text. If the frame's names are "
            "numbers, rename them first: frame.rename(columns=str)."
        )
    if not is_name and data is not None:
        raise InvalidTypeError(
            f"{name} is of type {type(value).__name__} beside data=: name its column, or leave "
            "data out."
        )
