"""A batch through files: rows to ask about go out, answers come in, and in the end every row goes
out with its answer.

The journal is the state: it keeps the key, the limits, the names of the columns and every answer,
so that each step needs no more than the rows and what is new.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pacbound.cascade.batches.journal import read_header
from pacbound.cascade.batches.records import Records, joined, records_of_files
from pacbound.cascade.batches.result import BatchResult
from pacbound.cascade.batches.session import BatchSession, limits_of
from pacbound.claims.provenance import about_texts
from pacbound.documents import Json
from pacbound.errors import InvalidTypeError, InvalidValueError
from pacbound.output_files import refuse_overwriting
from pacbound.sources import PLAIN, Batch, Notation, Paths, Progress, open_tables
from pacbound.sources.batches import require_columns
from pacbound.sources.notation import unscaled
from pacbound.sources.rewriting import rewrite
from pacbound.sources.values import MISSING, Values
from pacbound.tally.classes import ClassRule, Vocabulary
from pacbound.tally.columns import numeric
from pacbound.tally.returned_labels import ROW, KnownBy, open_answers, texts_of

ADDED = ("pac_prediction", "pac_source")
"""The answer to each row, and who gave it: "fast", "slow", or "none" where the slow model had to
answer and could not. The answers are then text, empty where there is none."""


@dataclass(frozen=True)
class BatchProgress:
    """Where a batch stands: `open` rows have to be asked about, and more may follow if it is still
    the sample; `left_empty` rows came back without an answer. `result` is there when it is done.
    """

    rows: int
    answered: int
    open: int
    sampling: bool
    left_empty: int
    result: BatchResult | None


def begin_or_go_on(  # noqa: PLR0913
    source: Paths,
    state: str | os.PathLike[str],
    *,
    given: Mapping[str, Any],
    rng: np.random.Generator,
    answers: str | os.PathLike[str] | None = None,
    answer: str = "answer",
    give_up: bool = False,
    ask: str | os.PathLike[str] | None = None,
    output: str | os.PathLike[str] | None = None,
    certificate: str | os.PathLike[str] | None = None,
    about: Mapping[str, Any] | None = None,
    notation: Notation = PLAIN,
    progress: Progress | None = None,
) -> BatchProgress:
    """Take up the batch of `source` whose journal is `state`, or begin it; take in `answers`; write
    the rows to ask about next to `ask`, or all rows with their answers to `output` and what is
    certified of them to `certificate`.

    `given` has the names of the columns and the limits; what is None was fixed when the batch was
    begun. With `give_up`, rows of `answers` that are empty are taken for records that the slow
    model can never answer; otherwise they are asked about again. `about` is what the certificate
    says of itself.
    """
    texts, stored = about_texts(about), read_header(state)
    if stored is None and answers is not None:
        raise InvalidValueError(
            f"{state} is not there, so nothing was asked yet: begin with --ask, or name the state "
            "that was kept with --state."
        )
    options = _completed(given, stored)
    refuse_overwriting(
        {
            "the state": state,
            "the rows to ask about": ask,
            "the output": output,
            "the certificate": certificate,
        },
        {
            "the rows": [table.path for table in open_tables(source, notation)],
            "the answers": answers,
        },
    )
    records = records_of_files(
        source,
        confidence=options["confidence"],
        prediction=options["prediction"],
        rule=ClassRule.of(options["classes"], options["missing"]),
        notation=notation,
        progress=progress,
    )
    limits = limits_of(
        options["xi"], options["delta"], options["sample"], options["looks"], options["whole_ties"]
    )
    columns = {name: str(options[name]) for name in ("confidence", "prediction")}
    with BatchSession.of_records(
        records,
        limits,
        rng=rng,
        journal=state,
        on_missing="leave" if give_up else "raise",
        columns=columns,
    ) as session:
        left_empty = 0
        if answers is not None:
            read = _read_answers(answers, answer, columns, notation, records.rule)
            left_empty = _told(session, records, read, str(answers), give_up=give_up)
        result = session.result(about=texts) if session.done else None
        if result is not None and output is not None:
            _write_all(source, output, result, notation)
            if certificate is not None:
                result.certificate.save(certificate)
        if result is None and ask is not None:
            _write_open(source, ask, session.ask(), notation)
        return BatchProgress(
            rows=len(records),
            answered=session.answered,
            open=len(session.ask()),
            sampling=session.sampling,
            left_empty=left_empty,
            result=result,
        )


def _completed(given: Mapping[str, Any], stored: Mapping[str, Json] | None) -> dict[str, Any]:
    """What was said now, completed by what was said when the batch was begun."""
    known = {} if stored is None else {**stored, **dict(stored.get("columns", {}))}
    usual = {"looks": 1, "whole_ties": False}
    options = {
        name: known.get(name, usual.get(name)) if value is None else value
        for name, value in given.items()
    }
    absent = [name for name in ("confidence", "prediction", "xi", "delta") if options[name] is None]
    if absent:
        raise InvalidTypeError(
            f"A batch is begun with --confidence, --prediction, --xi and --delta: --{absent[0]} is "
            "missing."
        )
    return options


@dataclass(frozen=True)
class _Answers:
    """What came back: rows and their answers, and the columns that came back beside them."""

    rows: NDArray[np.int64]
    values: Values
    beside: tuple[KnownBy, ...]


def _told(
    session: BatchSession, records: Records, read: _Answers, answers: str, *, give_up: bool
) -> int:
    """Tell the session what came back in the file `answers`, and return how many of its rows are
    empty.
    """
    empty = _is_empty(read.values)
    told = np.ones(len(read.rows), dtype=bool) if give_up else ~empty
    _require_own_rows(records, read, answers)
    values = Values(read.values.distinct, read.values.places[told], read.values.typed)
    try:
        session.tell(read.rows[told], values)
    except (InvalidValueError, InvalidTypeError) as error:
        raise type(error)(f"{answers}: {error}") from None
    return 0 if give_up else int(empty.sum())


def _require_own_rows(records: Records, read: _Answers, answers: str) -> None:
    """Refuse answers to other rows, by the scores and fast answers that came back with them."""
    there = read.rows < len(records)
    rows = read.rows[there]
    for column in read.beside:
        here = (
            records.scores[rows]
            if column.is_number
            else texts_of(records.vocabulary.names(), records.fast[rows])
        )
        came_back = replace(column, values=column.values[there])
        came_back.require_same(here, rows, answers=answers, where="the batch")


def _is_empty(values: Values) -> NDArray[np.bool_]:
    """Which rows have no answer: nothing, or text without a character."""
    places = [place for place, value in enumerate(values.distinct) if value == ""]
    return np.asarray((values.places == MISSING) | np.isin(values.places, places))


def _read_answers(
    path: str | os.PathLike[str],
    answer: str,
    columns: Mapping[str, str],
    notation: Notation,
    rule: ClassRule,
) -> _Answers:
    """The answers in a file. Scores and fast answers that came back too are read as those of the
    batch are.
    """
    tables, vocabulary = open_answers(path, notation), Vocabulary(rule)
    confidence, prediction = columns["confidence"], columns["prediction"]
    beside = [
        name
        for name in (confidence, prediction)
        if name != answer and all(name in table.columns for table in tables)
    ]
    rows, scores, fast = [np.zeros(0)], [np.zeros(0)], [np.zeros(0, dtype=np.int64)]
    parts = list[Values]()
    for table in tables:
        require_columns(table, [ROW, answer])
        for batch in table.batches([ROW, answer, *beside]):
            rows.append(batch.numbers(ROW).astype(np.float64))
            parts.append(batch.values(answer))
            try:
                if confidence in beside:
                    found = numeric(batch.numbers(confidence, missing=True), confidence)
                    scores.append(unscaled(found, notation.scale).astype(np.float64))
                if prediction in beside:
                    fast.append(vocabulary.codes(batch.values(prediction), prediction, batch.start))
            except (InvalidValueError, InvalidTypeError) as error:
                raise type(error)(f"{table.path}: {error}") from None
    numbers = np.concatenate(rows)
    bad = numbers[~((numbers >= 0) & (numbers == np.floor(numbers)))]
    if bad.size:
        raise InvalidValueError(
            f"{path}: {ROW} holds {bad[0]}, which is not a row: keep the column as it was written."
        )
    known_by = {
        confidence: KnownBy(confidence, np.concatenate(scores), is_number=True),
        prediction: KnownBy(
            prediction, texts_of(vocabulary.names(), np.concatenate(fast)), is_number=False
        ),
    }
    return _Answers(
        numbers.astype(np.int64), joined(parts), tuple(known_by[name] for name in beside)
    )


def _write_open(
    source: Paths, target: str | os.PathLike[str], rows: NDArray[np.int64], notation: Notation
) -> None:
    start = 0

    def to_ask(batch: Batch) -> tuple[Batch, dict[str, NDArray[np.int64]]]:
        nonlocal start
        begin, end = np.searchsorted(rows, [start, start + batch.rows])
        chosen = np.zeros(batch.rows, dtype=bool)
        chosen[rows[begin:end] - start] = True
        start += batch.rows
        return batch.where(chosen), {ROW: rows[begin:end]}

    rewrite(source, target, to_ask, needed=[], added=[ROW], notation=notation)


def _write_all(
    source: Paths, target: str | os.PathLike[str], result: BatchResult, notation: Notation
) -> None:
    answers, who = result.predictions, np.where(result.asked, "slow", "fast")
    who[result.failed] = "none"
    start = 0

    def with_answer(batch: Batch) -> tuple[Batch, dict[str, NDArray[Any]]]:
        nonlocal start
        part = slice(start, start + batch.rows)
        start += batch.rows
        return batch, {ADDED[0]: _written(answers[part]), ADDED[1]: who[part]}

    rewrite(source, target, with_answer, needed=[], added=ADDED, notation=notation)


def _written(answers: NDArray[Any]) -> NDArray[Any]:
    """Some answers as a column of the type that all have; text, where some are missing or of
    another type.
    """
    if answers.dtype != object:
        return answers
    text = ["" if answer is None else str(answer) for answer in answers.tolist()]
    # Of no answers at all a writer could not tell that they are text.
    return np.array(text, dtype=object if text else str)
