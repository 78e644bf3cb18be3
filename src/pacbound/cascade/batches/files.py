"""A batch through files: rows to ask about go out, answers come in, and in the end every row goes
out with its answer.

The journal is the state: it keeps the key, the limits, the names of the columns and every answer,
so that each step needs no more than the rows and what is new.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pacbound.atomic_files import refuse_overwriting
from pacbound.cascade.batches.journal import read_header
from pacbound.cascade.batches.records import Records, codes_type, records_of_files
from pacbound.cascade.batches.session import BatchResult, BatchSession, limits_of
from pacbound.cascade.rows import ReadingOptions, rows_asked_for
from pacbound.claims.provenance import about_texts
from pacbound.documents import Json
from pacbound.errors import InvalidTypeError, InvalidValueError
from pacbound.sources.batches import Batch, Progress, located
from pacbound.sources.notation import PLAIN, Notation, unscaled
from pacbound.sources.opening import open_tables
from pacbound.sources.paths import Paths
from pacbound.sources.rewriting import rewrite
from pacbound.sources.values import MISSING, Values
from pacbound.tally.classes import ClassRule
from pacbound.tally.columns import numeric
from pacbound.tally.returned_labels import KnownBy, open_answers, row_numbers, texts_of
from pacbound.tally.row_ids import ID

# The answer to each row, and who gave it: "fast", "slow", or "none" where the slow model had to
# answer and could not. The answers are then text, empty where there is none.
ADDED = ("pac_prediction", "pac_source")

# In place of the number of an answer: the row came back without one.
_EMPTY = -2


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
    rule = ClassRule.of(options["classes"], options["missing"])
    reading = ReadingOptions(rule, notation, progress)
    records = records_of_files(source, options["confidence"], options["prediction"], reading)
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
            left_empty = _take_answers(
                session, records, answers, answer, columns, notation, give_up=give_up
            )
        result = session.result(about=texts) if session.done else None
        if result is not None and output is not None:
            _write_all(source, output, result, notation)
            if certificate is not None:
                result.certificate.save(certificate)
        if result is None and ask is not None:
            rows_asked_for(source, ask, session.ask(), notation=notation)
        return BatchProgress(
            rows=len(records),
            answered=session.answered,
            open=len(session.ask()),
            sampling=session.sampling,
            left_empty=left_empty,
            result=result,
        )


def _completed(given: Mapping[str, Any], stored: Mapping[str, Json] | None) -> dict[str, Any]:
    """The options given now, completed by those that the batch was begun with."""
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


def _take_answers(
    session: BatchSession,
    records: Records,
    path: str | os.PathLike[str],
    answer: str,
    columns: Mapping[str, str],
    notation: Notation,
    *,
    give_up: bool,
) -> int:
    """Tell the session what came back in a file, and return how many of its rows are empty."""
    rows, codes = _read_answers(path, answer, records, columns, notation)
    empty = codes == _EMPTY
    if give_up:
        codes[empty] = MISSING
    elif empty.any():
        rows, codes = rows[~empty], codes[~empty]
    with located(path):
        session.tell(rows, Values(list(records.vocabulary.names()), codes))
    return 0 if give_up else int(empty.sum())


def _require_own_rows(
    records: Records,
    rows: NDArray[np.int64],
    came_back: NDArray[Any],
    name: str,
    columns: Mapping[str, str],
    answers: str,
) -> None:
    """Refuse answers to other rows, by a score or a fast answer that came back with them."""
    is_number, there = name == columns["confidence"], rows < len(records)
    here, there_too = rows[there], came_back[there]
    if is_number:
        own, found = records.scores[here], there_too
    else:
        names = records.vocabulary.names()
        own, found = (texts_of(names, codes) for codes in (records.fast[here], there_too))
    KnownBy(name, found, is_number=is_number).require_same(
        own, here, answers=answers, where="the batch"
    )


def _read_answers(
    path: str | os.PathLike[str],
    answer: str,
    records: Records,
    columns: Mapping[str, str],
    notation: Notation,
) -> tuple[NDArray[np.int64], NDArray[Any]]:
    """The rows of a file of answers, and the answers by their numbers in the vocabulary. Scores and
    fast answers that came back too must be those of the batch.
    """
    tables, vocabulary = open_answers(path, notation), records.vocabulary

    def numbers(batch: Batch, name: str) -> NDArray[Any]:
        found = numeric(batch.numbers(name, missing=True), name)
        return unscaled(found, notation.scale).astype(np.float64)

    def codes(batch: Batch, name: str) -> NDArray[Any]:
        return vocabulary.codes(batch.values(name), name, batch.start)

    def answers(batch: Batch, name: str) -> NDArray[Any]:
        return np.where(_is_empty(batch.values(name)), _EMPTY, codes(batch, name))

    def rows(batch: Batch, name: str) -> NDArray[Any]:
        return row_numbers(batch.numbers(name), batch.start)

    readers = {columns["confidence"]: numbers, columns["prediction"]: codes}
    beside = {
        name: reader
        for name, reader in readers.items()
        if all(name in table.columns for table in tables)
    }
    readers = {**beside, ID: rows, answer: answers}
    asked, answered = [np.zeros(0, dtype=np.int64)], [np.zeros(0, dtype=np.int8)]
    for table in tables:
        for batch in table.batches(list(readers)):
            with located(table.path):
                found = {name: reader(batch, name) for name, reader in readers.items()}
            for name in beside:
                _require_own_rows(records, found[ID], found[name], name, columns, str(path))
            asked.append(found[ID])
            answered.append(found[answer].astype(codes_type(vocabulary)))
    return np.concatenate(asked), np.concatenate(answered)


def _is_empty(values: Values) -> NDArray[np.bool_]:
    """Which rows have no answer: nothing, or text without a character."""
    places = [place for place, value in enumerate(values.distinct) if value == ""]
    return np.asarray((values.places == MISSING) | np.isin(values.places, places))


def _write_all(
    source: Paths, target: str | os.PathLike[str], result: BatchResult, notation: Notation
) -> None:
    answers, start = result.predictions, 0

    def with_answer(batch: Batch) -> tuple[Batch, dict[str, NDArray[Any]]]:
        nonlocal start
        part = slice(start, start + batch.rows)
        start += batch.rows
        who = np.where(result.asked[part], "slow", "fast")
        who[result.failed[part]] = "none"
        return batch, {ADDED[0]: _written(answers[part]), ADDED[1]: who}

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
