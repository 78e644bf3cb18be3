"""`pacbound batch`: answer a table of records, asking the expert about as few as can be."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray

from pacbound.atomic_files import is_standard_output, refuse_overwriting
from pacbound.cascade.answers import read_header
from pacbound.cascade.batch import BatchStep, OpenBatch, limits_of
from pacbound.cascade.records import records_of_files
from pacbound.cascade.rows import Fill, ReadingOptions, rows_asked_for
from pacbound.claims.provenance import SCALE
from pacbound.cli.delivery import AboutOption, about_of, progress_bar, say
from pacbound.cli.exit_codes import ending_well
from pacbound.cli.options import ROWS, JsonOption, Reads, Writes, names, option
from pacbound.cli.rows import PIPED, FilesArgument, RowChoices
from pacbound.errors import InvalidTypeError, InvalidValueError
from pacbound.sources.batches import Batch, located, require_columns
from pacbound.sources.notation import Notation
from pacbound.sources.opening import open_tables
from pacbound.sources.paths import format_of
from pacbound.sources.rewriting import rewrite
from pacbound.sources.values import MISSING, Values
from pacbound.tally.returned_labels import identified, open_answers
from pacbound.tally.row_ids import ANSWER, ID, RowIds, refuse_reserved

# The end of the name of the answers' file, behind that of the table.
ANSWERS = ".answers.jsonl"

# The answer to each row, and who gave it: "fast", "expert", or "none" where the expert had to
# answer and could not. The answers are then text, empty where there is none.
ADDED = ("pac_prediction", "pac_source")

# What a batch is begun with, and what is usual.
_FIXED = ("confidence", "prediction", "xi", "delta", "sample", "looks", "whole_ties")
_USUAL = {"looks": 1, "whole_ties": False}


@ending_well
def batch(
    files: FilesArgument,
    confidence: Annotated[
        str | None, option("Column with the fast model's confidence, 0 to 1.")
    ] = None,
    prediction: Annotated[str | None, option("Column with the fast model's answers.")] = None,
    xi: Annotated[
        float | None, option("The share of the answers that may differ from the expert's.")
    ] = None,
    delta: Annotated[float | None, option("Chance that more differ, for example 0.1.")] = None,
    ask: Annotated[
        Path | None, option("Where the rows go that the expert has to answer next."), Writes()
    ] = None,
    take: Annotated[
        list[Path] | None,
        option("What the expert filled in: a file that --ask wrote. May be repeated."),
        Reads(),
    ] = None,
    answers: Annotated[
        Path | None,
        option("Keeps the key of the sample and all answers; FILE.answers.jsonl if left out."),
        Writes(),
    ] = None,
    output: Annotated[
        str | None,
        option("--output", "-o", "Where all rows go in the end, with their answers."),
        Writes(),
    ] = None,
    certificate: Annotated[
        Path | None, option("Where the certificate goes; beside --output if left out."), Writes()
    ] = None,
    cannot_tell: Annotated[
        str | None, option("What stands for 'there is no answer' in --take, for example '?'.")
    ] = None,
    show: Annotated[
        str | None,
        option("Columns that the expert sees: text,image; all but the model's if left out."),
    ] = None,
    sample: Annotated[
        int | None,
        option("The size of the sample; chosen by a rule if left out.", rich_help_panel=ROWS),
    ] = None,
    looks: Annotated[
        int | None, option("2 for a second, larger sample, where many scores are equal.")
    ] = None,
    whole_ties: Annotated[
        bool | None, option("--whole-ties", "Keep rows of one score together, above a threshold.")
    ] = None,
    key: Annotated[
        str | None,
        option("For the same sample again in a test; drawn if left out.", rich_help_panel=ROWS),
    ] = None,
    about: AboutOption = None,
    *,
    rows: Annotated[RowChoices, ("classes", "missing", *PIPED)],
    as_json: JsonOption = False,
) -> int:
    """Answer a table of records so that at most a share xi of the answers differ from the expert's,
    asking it about as few as can be.

    Begin with --ask ask1.csv; the expert fills in the column expert_answer; pass the file with
    --take, another --ask and -o. It takes two rounds. A batch may be taken up again at any time,
    and no row is asked about twice.
    """
    if ask is None and output is None:
        raise InvalidTypeError(
            "Pass --ask FILE for the rows that need an answer, or -o FILE for all answers."
        )
    if ask is not None and ask.exists():
        raise InvalidValueError(
            f"--ask {ask} is there, and may hold answers: take them in with --take {ask}, and name "
            "another file."
        )
    target = _answers_of(files) if answers is None else answers
    given = {
        "confidence": confidence,
        "prediction": prediction,
        "xi": xi,
        "delta": delta,
        "sample": sample,
        "looks": looks,
        "whole_ties": whole_ties,
        "scale": rows.notation().scale,
    }
    fixed = _completed(given, target, take or ())
    tables, goes_to = rows.tables(files), certificate or _beside(output)
    rows = rows.scaled(fixed["scale"])
    notation, columns = rows.notation(), {name: str(fixed[name]) for name in _FIXED[:2]}
    columns |= {} if notation.scale is None else {SCALE: repr(notation.scale)}
    refuse_overwriting(
        {
            "the answers": target,
            "the rows to ask about": ask,
            "the output": output,
            "the certificate": goes_to,
        },
        {"the rows": tables},
    )
    stored = _columns_of(tables, notation)
    with progress_bar("reading") as progress:
        options = {**rows.options(), "progress": progress}
        reading = ReadingOptions.of(options, tables, ("classes", "missing"), "a batch")
        records = records_of_files(tables, columns["confidence"], columns["prediction"], reading)
    limits = limits_of({name: fixed[name] for name in _FIXED[2:]})
    with OpenBatch(records, limits, target, key=key, columns=columns) as going:
        ids = RowIds(records.table, going.file.key)
        empty = sum(_taken(going, file, ids, cannot_tell, notation) for file in take or ())
        step = going.step(about_of(about) or None)
        if len(step.ask) and ask is not None:
            shown = [name for name in stored if name not in columns.values()]
            rows_asked_for(
                tables,
                ask,
                step.ask,
                shown=shown if show is None else names(show),
                added={ANSWER: _nothing(ask, going), ID: lambda at: _ids_of(ids, at)},
                notation=notation,
            )
        answered, total = going.answered, len(records)
    # What was read of many records would be in memory while they are written.
    del going, records
    if step.certificate is not None and output is not None:
        _write_all(tables, output, step, notation)
        if goes_to is not None:
            step.certificate.save(goes_to)
    found = {"ask": ask, "output": output, "certificate": goes_to}
    words = _in_words(step, answered, empty, found, total)
    say(words, _for_programs(step, answered, empty, found), as_json=as_json, rows_to=output)
    return 0


def _answers_of(files: list[str]) -> Path:
    if len(files) != 1 or not Path(files[0]).is_file():
        raise InvalidValueError(
            f"{', '.join(files[:3])}: name the file that keeps the answers to several files with "
            "--answers."
        )
    return Path(files[0] + ANSWERS)


def _beside(output: str | None) -> Path | None:
    """all.csv gives all.certificate.json; a stream has nothing beside it."""
    if output is None or is_standard_output(output):
        return None
    return Path(output).with_suffix(".certificate.json")


def _completed(given: Mapping[str, Any], target: Path, take: Sequence[Path]) -> dict[str, Any]:
    """The options given now, completed by those that the batch was begun with."""
    stored = read_header(target)
    if stored is None and take:
        raise InvalidValueError(
            f"{target} is not there, so nothing was asked yet: begin with --ask, or name the file "
            "that keeps the answers with --answers."
        )
    known = {} if stored is None else {**stored, **dict(stored.get("columns", {}))}
    options = {
        name: known.get(name, _USUAL.get(name)) if value is None else value
        for name, value in given.items()
    }
    absent = [name for name in _FIXED[:4] if options[name] is None]
    if absent:
        raise InvalidTypeError(
            f"A batch is begun with --confidence, --prediction, --xi and --delta: --{absent[0]} is "
            "missing."
        )
    return options


def _columns_of(tables: list[str], notation: Notation) -> list[str]:
    """The columns of the table, none of which may be taken for one that is filled in."""
    opened = open_tables(tables, notation)
    for table in opened:
        refuse_reserved(table.columns, table.path)
    return list(opened[0].columns)


def _taken(
    going: OpenBatch, path: Path, ids: RowIds, cannot_tell: str | None, notation: Notation
) -> int:
    """Take in what the expert filled in, and return how many rows came back empty."""
    empty = 0
    for table in open_answers(path, notation):
        require_columns(table, [ANSWER, ID])
        for part in table.batches([ANSWER, ID]):
            with located(table.path):
                rows, found = identified(part)
                strange = ids.strange(found)
                if strange:
                    raise InvalidValueError(
                        f"{strange[0]} was not asked for in this batch, or the line was cut short: "
                        "pass the file that --ask wrote for this table and this file of answers."
                    )
                values, left = _told(part.values(ANSWER), cannot_tell)
                going.add(rows[~left], values.at(np.flatnonzero(~left)))
                empty += int(left.sum())
    return empty


def _told(values: Values, cannot_tell: str | None) -> tuple[Values, NDArray[np.bool_]]:
    """The answers, missing where there is none for good, and which rows came back empty."""
    texts = [str(value).strip() for value in values.distinct]
    blank = np.array([*(text == "" for text in texts), True])[values.places]
    unknown = np.array([*(text == cannot_tell for text in texts), False])[values.places]
    places = np.where(unknown, MISSING, values.places)
    return Values(values.distinct, places, values.typed), blank


def _nothing(target: Path, going: OpenBatch) -> Fill:
    """The column for the answers that are not there yet. Where answers are numbers it has their
    type in formats that have types.
    """
    numbers = not any(isinstance(name, str) for name in going.records.vocabulary)
    nothing = np.nan if numbers and format_of(target) != "delimited" else ""
    return lambda rows: np.full(len(rows), nothing)


def _ids_of(ids: RowIds, rows: NDArray[np.int64]) -> NDArray[Any]:
    # Of no ids at all a writer could not tell that they are text.
    return np.array([ids.of(row) for row in rows.tolist()], dtype=str if len(rows) else object)


def _write_all(tables: list[str], target: str, step: BatchStep, notation: Notation) -> None:
    answers, who, start = np.asarray(step.predictions), np.asarray(step.who), 0

    def with_answer(part: Batch) -> tuple[Batch, dict[str, NDArray[Any]]]:
        nonlocal start
        some = slice(start, start + part.rows)
        start += part.rows
        by = np.array(["fast", "expert", "none"])[who[some]]
        return part, {ADDED[0]: _written(answers[some]), ADDED[1]: by}

    rewrite(tables, target, with_answer, needed=[], added=ADDED, notation=notation)


def _written(answers: NDArray[Any]) -> NDArray[Any]:
    """Some answers as a column of the type that all have; text, where some are missing or of
    another type.
    """
    if answers.dtype != object:
        return answers
    text = ["" if answer is None else str(answer) for answer in answers.tolist()]
    # Of no answers at all a writer could not tell that they are text.
    return np.array(text, dtype=object if text else str)


def _for_programs(
    step: BatchStep, answered: int, empty: int, found: Mapping[str, Any]
) -> dict[str, object]:
    done = step.certificate is not None
    kept = {"output", "certificate"} if done else {"ask"}
    named = {
        name: str(path) if path is not None and name in kept else None
        for name, path in found.items()
    }
    return {
        "done": done,
        "answered": answered,
        "to_ask": len(step.ask),
        "sampling": step.sampling,
        "left_empty": empty,
        **named,
        "claim": None if step.certificate is None else step.certificate.to_dict(),
    }


def _in_words(
    step: BatchStep, answered: int, empty: int, found: Mapping[str, Any], rows: int
) -> str:
    ask, output, certificate = found["ask"], found["output"], found["certificate"]
    if step.certificate is not None:
        said = step.certificate.summary()
        if output is None:
            return f"{said}\n\nEvery row has its answer. Pass -o FILE to write them."
        beside = "" if certificate is None else f" The certificate is in {certificate}."
        return f"{said}\n\n{rows:,} rows written to {output} with {', '.join(ADDED)}.{beside}"
    what = (
        "sampled rows still need the expert's answer"
        if step.sampling
        else "rows still need the expert's answer; then the batch is done"
    )
    lines = [f"{len(step.ask):,} {what}. {answered:,} of {rows:,} rows are answered."]
    if empty:
        lines.append(f"{empty:,} rows came back empty and are asked again.")
    lines.append(
        f"They are in {ask}: fill in {ANSWER}, leave {ID} as it is, and pass --take {ask}."
        if ask is not None
        else "Every answer is kept. Pass --ask FILE for the rows to ask next."
    )
    return "\n".join(lines)
