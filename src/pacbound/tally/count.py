"""The one way from any data to counts: a question is asked of rows, and what it says is counted.

Arrays, frames, files and engines differ in where the rows are judged: here, in blocks or batches of
arrays, or inside the engine that holds them. Everything after that is the same.

Where rows are drawn first (`pacbound.tally.draws`), the columns that the draw goes by are read, and
then only the rows that were drawn are judged, here: files are read twice, and of a frame the wanted
columns leave their engine.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from pacbound.errors import InvalidTypeError, InvalidValueError
from pacbound.sources import PLAIN, Engine, Notation, Paths, Progress, Wanted, opened
from pacbound.sources.batches import CannotCountError, Part, TableFile, in_order, part_of
from pacbound.sources.paths import are_paths
from pacbound.tally.classes import ClassRule, Evidence, Vocabulary
from pacbound.tally.columns import Floats, require_whole_text, same_length, same_rows
from pacbound.tally.draws import Candidates, Draw, Drawn, NameAt, Numbers, RowIds
from pacbound.tally.grids import DEFAULT_BINS, equal_mass_cells, is_equal_mass
from pacbound.tally.label_matches import LabelMatches
from pacbound.tally.questions import CASCADE, Judged, Question
from pacbound.tally.returned_labels import ROW, ReturnedLabels
from pacbound.tally.row_options import DRAWN_BY, ROWS, options_about
from pacbound.tally.rows import Integers, Rows, Slot, batch_scores, reading_frame, scaled
from pacbound.tally.table import CountTable, Fingerprint, histogram_names, own_name, together


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
    ids: Numbers | None = None


class Counting:
    """A count in the making, with the classes that it has met and what it has seen of them."""

    def __init__(self, question: Question, rule: ClassRule | None = None) -> None:
        self._question = question
        self.rule = rule or ClassRule()
        self.vocabulary = Vocabulary(self.rule)
        self.evidence = Evidence()
        self._fingerprint = Fingerprint()
        self.ids: Numbers | None = None
        self.rows = 0
        self._table = CountTable(
            question.grid,
            scores=_scores(question),
            outcomes=len(question.outcomes),
            grouped=question.scope != "top",
        )

    @property
    def block(self) -> int:
        """How many rows to take at a time."""
        return self._table.block

    def ask(self, rows: Rows) -> None:
        """Judge rows of arrays here."""
        self.add(self._question.judge(rows, self.vocabulary, self.evidence))

    def ask_inside(self, native: Any, *, keyed: bool = False, read_again: bool = False) -> None:
        """Judge the rows of a frame inside its engine; `keyed` columns go by their slots."""
        # Loaded here, because arrays need no narwhals.
        from pacbound.tally.frames.engine_rows import EngineRows  # noqa: PLC0415

        rows = EngineRows(
            native, self._question.slots, self.rule, keyed=keyed, read_again=read_again
        )
        # Taken in only when all went well, so that rows may be read in another way if it does not.
        evidence = Evidence()
        judged = self._question.judge_inside(rows, evidence)
        self.evidence.add(evidence)
        self.add(judged)

    def add(self, judged: Judged) -> None:
        """Count rows that were judged."""
        require_whole_text(judged.groups, "groups")
        self._table.add(judged)
        self.rows += judged.rows
        if judged.told is not None:
            self._fingerprint.update(*judged.told)

    @property
    def _labels(self) -> str | None:
        """What the column of true classes is called, if there is one."""
        slots = self._question.slots
        return next((slots[key].name for key in ("label", "labels") if key in slots), None)

    def result(self, sources: Iterable[str] | None = None) -> Counted:
        """What was counted, if its classes can be right; its name where `sources` have none."""
        if has_classes(self._question):
            self.evidence.check(self.rule, self.rows, self._labels)
        matches = self.evidence.matches(self.rule)
        if matches is not None:
            matches.require_related(self.rows, self._labels or "label", self.evidence.slow)
        cells, counts, groups = self._table.result()
        if sources is None:
            sources = [self._fingerprint.name() or own_name()] if self.rows else []
        names = frozenset(sources)
        known_by = self._question.known_again_by(counts, cells.shape[1])
        if known_by is not None:
            # Labels come later, and make other files of the same rows; so do other groups.
            table = together(self._question.scope, cells, known_by, groups)
            names |= histogram_names(*table)
        return Counted(self.rows, cells, counts, groups, names, matches=matches)


def count_rows(question: Question, given: Mapping[str, Any], data: Any) -> tuple[Question, Counted]:
    """What a question found in arrays, a frame, or files; and the question about these columns.

    `given` are columns and options by name. Whatever does not fit together raises before a row is
    read.
    """
    options = {name: value for name, value in given.items() if name in ROWS}
    columns = {name: value for name, value in given.items() if name not in ROWS}
    _require_fitting(question, columns, options, data)
    if data is None:
        by = {name: options[name] for name in DRAWN_BY if name in options}
        same_rows(**columns, **by)
        own, arrays = question.of_arrays(**columns)
        draw, rule = Draw.of(options, own, columns=False), _class_rule(options, own)
        return own, count_arrays(own, {**arrays, **by}, rule, draw)
    notation = Notation.of(**options_about("notation", options))
    if notation.is_about_text and not are_paths(data):
        raise InvalidTypeError(
            "delimiter and decimal are about files of text, and a frame was passed: leave them out."
        )
    if is_equal_mass(columns.get("edges")):
        scores = scores_in(columns["confidence"], data, options)
        columns["edges"] = equal_mass_cells(scores, columns.get("n_bins", DEFAULT_BINS))
    own = question.of_columns(**columns)
    if notation.scale is not None:
        own = replace(own, slots=scaled(own.slots, notation.scale))
    draw, rule = Draw.of(options, own, columns=True), _class_rule(options, own)
    answers = options.get("answers")
    if not are_paths(data):
        return own, count_frame(own, data, rule, draw, answers=answers)
    reading = options_about("reading", options)
    found = count_files(own, data, rule, draw, answers=answers, notation=notation, **reading)
    return own, found


def count_arrays(
    question: Question,
    arrays: Mapping[str, Any],
    rule: ClassRule | None = None,
    draw: Draw | None = None,
) -> Counted:
    """Count columns of arrays, block by block: beyond the arrays, memory stays small."""
    counting = Counting(question, rule)
    drawn, name = _ask_arrays(counting, question, arrays, draw)
    return replace(counting.result(name and [name]), drawn=drawn, ids=counting.ids)


@reading_frame()
def count_frame(
    question: Question,
    native: Any,
    rule: ClassRule | None = None,
    draw: Draw | None = None,
    *,
    answers: Any = None,
) -> Counted:
    """Count a dataframe inside its own engine. Its rows have no order, so they get an own name.

    Where labels come back in `answers`, the columns leave the engine.
    """
    counting = Counting(question, rule)
    joined = None if answers is None else ReturnedLabels.of(answers, question, counting.rule)
    outside = joined is not None or not question.counts_inside
    if outside or (draw is not None and draw.chooses):
        columns = _columns_of(question, native, draw, joined)
        drawn, _ = _ask_arrays(counting, question, columns, draw)
        names = [own_name()] if counting.rows else []
        return replace(counting.result(names), drawn=drawn, ids=counting.ids)
    if draw is not None and draw.looks_at_ids:
        counting.ids = _ids_of_frame(draw, native)
    counting.ask_inside(native)
    return replace(counting.result(), drawn=_as_they_are(draw, counting), ids=counting.ids)


def count_files(  # noqa: PLR0913
    question: Question,
    paths: Paths,
    rule: ClassRule | None = None,
    draw: Draw | None = None,
    *,
    answers: Any = None,
    notation: Notation = PLAIN,
    engine: Engine = "duckdb",
    master: str | None = None,
    memory_limit: str | None = None,
    progress: Progress | None = None,
) -> Counted:
    """Count the rows of files, inside an engine where it can be done, and else in batches, in
    order.

    Counting inside does not say what is wrong with a file. Reading in order does, and has the last
    word. Where labels come back in `answers`, rows are read in order, too.
    """
    counting = Counting(question, rule)
    joined = (
        None if answers is None else ReturnedLabels.of(answers, question, counting.rule, notation)
    )
    with opened(
        paths,
        _wanted({**question.slots, **(draw.slots if draw is not None else {})}),
        notation=notation,
        engine=engine,
        master=master,
        memory_limit=memory_limit,
        progress=progress,
    ) as tables:
        listed, parts = tables.tables, tables.parts
        if joined is not None and listed:
            listed = joined.tables(listed)
            wanted = _wanted(question.slots)
            parts = [Part(batches=partial(in_order, listed, wanted, progress))]
        if joined is not None and not listed:
            (part,) = parts
            columns = part.run(partial(_columns_of, question, part.frame, draw, joined))
            drawn, _ = _ask_arrays(counting, question, columns, draw)
        elif draw is None or not draw.chooses:
            counting.ids = _ids_of_parts(draw, tables.tables, parts)
            for part in parts:
                _count_part(counting, question, part)
            drawn = _as_they_are(draw, counting)
        elif listed:
            drawn = _ask_in_order(counting, question, listed, draw, progress)
        else:
            (part,) = parts
            columns = part.run(partial(_columns_of, question, part.frame, draw))
            drawn, _ = _ask_arrays(counting, question, columns, draw)
        if joined is not None:
            joined.require_all_met(tables.listed)
        if not counting.rows:
            raise InvalidValueError(
                f"{tables.listed}: no rows. A guarantee needs at least one labelled row."
            )
    try:
        names = tables.fingerprints
        if names is not None and joined is not None:
            # Labels in a frame have no name that they could be recognised by.
            names = [*names, *(joined.sources or [own_name()])]
        return replace(counting.result(names), drawn=drawn, ids=counting.ids)
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
    wanted = {"scores": Wanted(slot.name, slot.kind)}
    reading = {**options_about("reading", options), "progress": None}
    with opened(data, wanted, notation=notation, **reading) as tables:
        for part in tables.parts:
            if part.batches is None:
                found.append(part.run(partial(_scores_in_frame, slot, part.frame)))
                continue
            for path, batch in part.batches():
                with _in_file(path):
                    found.append(batch_scores(batch, slot.name, slot.scale))
    return np.concatenate(found)


def _scores_in_frame(slot: Slot, native: Any) -> Floats:
    # Loaded here, because arrays need no narwhals.
    from pacbound.tally.frames.counting import whole_columns  # noqa: PLC0415

    slots = {"scores": slot}
    return Rows.of_arrays(slots, whole_columns(native, slots, in_order=False)).scores("scores")


def _ask_arrays(
    counting: Counting, question: Question, arrays: Mapping[str, Any], draw: Draw | None
) -> tuple[Drawn | None, str | None]:
    """What was drawn, and a name for the rows that it was drawn from."""
    rows = Rows.of_arrays(question.slots, arrays)
    by = Rows.of_arrays({} if draw is None else draw.slots, arrays)
    same_length(**{each.name(key): each.columns[key] for each in (rows, by) for key in each.slots})
    if draw is None or not draw.chooses:
        if draw is not None and draw.looks_at_ids:
            counting.ids = _ids_of_rows(draw, by)
        _ask_in_blocks(counting, question, rows)
        return _as_they_are(draw, counting), None
    candidates = Candidates(draw, _name_in(by))
    candidates.take(by)
    places, drawn = candidates.chosen()
    with _numbered_among(len(places)):
        _ask_in_blocks(counting, question, rows.at(places))
    return drawn, candidates.name if len(rows) else None


def _ids_of_rows(draw: Draw, by: Rows) -> Numbers:
    ids = RowIds(draw, _name_in(by))
    ids.take(by)
    return ids.names()


def _ids_of_frame(draw: Draw, native: Any) -> Numbers:
    """The ids of a frame's rows, the only column that leaves its engine."""
    # Loaded here, because arrays need no narwhals.
    from pacbound.tally.frames.counting import whole_columns  # noqa: PLC0415

    slots = {"row_ids": draw.slots["row_ids"]}
    return _ids_of_rows(draw, Rows.of_arrays(slots, whole_columns(native, slots, in_order=False)))


def _ids_of_parts(
    draw: Draw | None, tables: Sequence[TableFile], parts: Sequence[Part]
) -> Numbers | None:
    """The ids of the rows of files, which are read once more for them; None if nobody asks."""
    if draw is None or not draw.looks_at_ids:
        return None
    if not tables:
        (part,) = parts
        found: Numbers = part.run(partial(_ids_of_frame, draw, part.frame))
        return found
    slots = {"row_ids": draw.slots["row_ids"]}
    ids = RowIds(draw, partial(_name_in_order, draw, tables))
    for path, batch in in_order(tables, _wanted(slots), None):
        with _in_file(path):
            ids.take(Rows.of_batch(slots, batch))
    return ids.names()


def _name_in(by: Rows) -> NameAt:
    return lambda place: str(by.columns["row_ids"][place])


def _name_in_order(draw: Draw, tables: Sequence[TableFile], place: int) -> str:
    """The id of a row of files, which are read again for it."""
    slots, done = {"row_ids": draw.slots["row_ids"]}, 0
    for _, batch in in_order(tables, _wanted(slots), None):
        if place < done + batch.rows:
            return str(Rows.of_batch(slots, batch).columns["row_ids"][place - done])
        done += batch.rows
    return "an id"


def _ask_in_blocks(counting: Counting, question: Question, rows: Rows) -> None:
    # Classes are numbered over a whole column, which blocks would do again and again.
    block = max(1, len(rows)) if has_classes(question) else counting.block
    for start in range(0, len(rows), block):
        counting.ask(rows if block >= len(rows) else rows.part(start, start + block))


def _ask_in_order(
    counting: Counting,
    question: Question,
    tables: Sequence[TableFile],
    draw: Draw,
    progress: Progress | None,
) -> Drawn:
    """Read the rows of files in order, twice: for the draw, and for the rows that are drawn."""
    candidates = Candidates(draw, partial(_name_in_order, draw, tables))
    for path, batch in in_order(tables, _wanted(draw.slots), part_of(progress, 0.0, 0.5)):
        with _in_file(path):
            candidates.take(Rows.of_batch(draw.slots, batch))
    places, drawn = candidates.chosen()
    done = 0
    for path, batch in in_order(tables, _wanted(question.slots), part_of(progress, 0.5, 0.5)):
        first, last = np.searchsorted(places, [done, done + batch.rows])
        chosen = np.zeros(batch.rows, dtype=bool)
        chosen[places[first:last] - done] = True
        done += batch.rows
        if first < last:
            with _in_file(path), _numbered_among(int(last - first)):
                counting.ask(Rows.of_batch(question.slots, batch.where(chosen)))
    return drawn


def _count_part(counting: Counting, question: Question, part: Part) -> None:
    inside = question.counts_inside
    if part.frame is not None and not inside and part.batches is None:
        columns = part.run(partial(_columns_of, question, part.frame, None))
        _ask_arrays(counting, question, columns, None)
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
        with _in_file(path):
            counting.ask(Rows.of_batch(question.slots, batch))


def _columns_of(
    question: Question, native: Any, draw: Draw | None, joined: ReturnedLabels | None = None
) -> dict[str, Any]:
    """The columns of a frame that the draw and the question need, outside of its engine, with the
    labels that came back among them.
    """
    # Loaded here, because arrays need no narwhals.
    from pacbound.tally.frames.counting import (  # noqa: PLC0415
        column_names,
        has_order,
        whole_columns,
    )

    chooses = draw is not None and draw.chooses
    looks = draw is not None and (chooses or draw.looks_at_ids)
    slots = {**question.slots, **(draw.slots if draw is not None and looks else {})}
    by_place = draw is not None and chooses and draw.goes_by_place
    if joined is None:
        return dict(whole_columns(native, slots, in_order=by_place))
    stored = column_names(native)
    if joined.column not in stored:
        del slots[joined.key]
    else:
        slots[joined.key] = Slot("class", joined.column)
    if ROW in stored:
        slots[ROW] = Slot("number", ROW)
    elif not has_order(native):
        raise InvalidValueError(
            f"The rows of this frame have no order, and labels are joined by the number of a row: "
            f"give it a column {ROW} with the numbers that went out."
        )
    found = dict(whole_columns(native, slots, in_order=by_place))
    return {**found, **joined.columns(found, question)}


def _as_they_are(draw: Draw | None, counting: Counting) -> Drawn | None:
    """What is known of rows all of which are counted, though they were chosen before."""
    if draw is None or draw.by == "rows":
        return None
    return Drawn(draw.by, counting.rows, counting.rows)


def _wanted(slots: Mapping[str, Slot]) -> dict[str, Wanted]:
    return {key: Wanted(slot.name, slot.kind) for key, slot in slots.items()}


@contextmanager
def _in_file(path: Path) -> Iterator[None]:
    """Say which file a bad value is in."""
    try:
        yield
    except (InvalidTypeError, InvalidValueError) as error:
        raise type(error)(f"{path}: {error}") from None


@contextmanager
def _numbered_among(rows: int) -> Iterator[None]:
    """Say what the number of a bad row means."""
    try:
        yield
    except (InvalidTypeError, InvalidValueError) as error:
        raise type(error)(
            f"{error} (Rows are numbered among the {rows:,} that were drawn here.)"
        ) from None


def has_classes(question: Question) -> bool:
    """Whether rows bring classes, which must be comparable."""
    return any(slot.kind == "class" for slot in question.slots.values())


def _scores(question: Question) -> int:
    """How many scores a row has."""
    return max(1, sum(key.startswith("confidence ") for key in question.slots))


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


def _class_rule(options: Mapping[str, Any], question: Question) -> ClassRule:
    """What is said about classes, if the question is about classes at all."""
    given = options_about("classes", options)
    rule, silent = ClassRule.of(**given), ClassRule()
    said = [name for name in given if getattr(rule, name) != getattr(silent, name)]
    if said and not has_classes(question):
        raise InvalidTypeError(
            f"{said[0]} is about classes, and none are counted here: leave it out, or pass "
            "predictions and labels."
        )
    if rule.unrelated_labels and question.kind != CASCADE.kind:
        raise InvalidTypeError(
            "unrelated_labels is about the slow model of a cascade, and there is none here: leave "
            "it out."
        )
    return rule
