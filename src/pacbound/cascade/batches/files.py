"""A batch through files: rows to ask about go out, answers come in, and in the end every row goes
out with its answer.

The journal is the state: it keeps the key, the limits, the names of the columns and every answer,
so that each step needs no more than the rows and what is new.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pacbound.cascade.batches.journal import read_header
from pacbound.cascade.batches.records import joined, records_of_files
from pacbound.cascade.batches.result import BatchResult
from pacbound.cascade.batches.session import BatchSession, limits_of
from pacbound.certificate.about import about_texts
from pacbound.documents import Json
from pacbound.errors import InvalidTypeError, InvalidValueError
from pacbound.sources import PLAIN, Batch, Notation, Paths, Progress, open_tables
from pacbound.sources.batches import require_columns
from pacbound.sources.rewriting import rewrite
from pacbound.sources.values import MISSING, Values
from pacbound.tally.classes import ClassRule
from pacbound.tally.returned_labels import ROW, open_answers

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
    kept = {table.path: "where the rows come from" for table in open_tables(source, notation)}
    kept[Path(state)] = "the state of the batch"
    for target in (ask, output, certificate):
        _refuse_same(target, answers, "where the answers come from")
        for other, what in kept.items():
            _refuse_same(target, other, what)
    _refuse_same(certificate, output, "where the answers go")
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
        left_empty = (
            0 if answers is None else _told(session, answers, answer, notation, give_up=give_up)
        )
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


def _told(
    session: BatchSession,
    answers: str | os.PathLike[str],
    answer: str,
    notation: Notation,
    *,
    give_up: bool,
) -> int:
    """Tell the session what is in a file, and return how many of its rows are empty."""
    rows, values = _read_answers(answers, answer, notation)
    empty = _is_empty(values)
    told = np.ones(len(rows), dtype=bool) if give_up else ~empty
    try:
        session.tell(rows[told], Values(values.distinct, values.places[told], values.typed))
    except (InvalidValueError, InvalidTypeError) as error:
        raise type(error)(f"{answers}: {error}") from None
    return 0 if give_up else int(empty.sum())


def _is_empty(values: Values) -> NDArray[np.bool_]:
    """Which rows have no answer: nothing, or text without a character."""
    places = [place for place, value in enumerate(values.distinct) if value == ""]
    return np.asarray((values.places == MISSING) | np.isin(values.places, places))


def _read_answers(
    path: str | os.PathLike[str], answer: str, notation: Notation
) -> tuple[NDArray[np.int64], Values]:
    rows, parts = [np.zeros(0)], list[Values]()
    for table in open_answers(path, notation):
        require_columns(table, [ROW, answer])
        for batch in table.batches([ROW, answer]):
            rows.append(batch.numbers(ROW).astype(np.float64))
            parts.append(batch.values(answer))
    numbers = np.concatenate(rows)
    bad = numbers[~((numbers >= 0) & (numbers == np.floor(numbers)))]
    if bad.size:
        raise InvalidValueError(
            f"{path}: {ROW} holds {bad[0]}, which is not a row: keep the column as it was written."
        )
    return numbers.astype(np.int64), joined(parts)


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


def _refuse_same(
    target: str | os.PathLike[str] | None, other: str | os.PathLike[str] | None, what: str
) -> None:
    """Refuse to write over what must be kept."""
    if target is None or other is None:
        return
    one, two = Path(target), Path(other)
    is_same = one.samefile(two) if one.exists() and two.exists() else one.resolve() == two.resolve()
    if is_same:
        raise InvalidValueError(f"{target} is {what}: name another file for what goes out.")
