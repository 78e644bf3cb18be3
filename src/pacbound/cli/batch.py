"""`pacbound batch`: answer a table of records, asking the slow model about as few as can be."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import numpy as np
import typer

from pacbound.atomic_files import is_standard_output
from pacbound.cascade.batches import BatchResult
from pacbound.cascade.batches.files import ADDED, BatchProgress, begin_or_go_on
from pacbound.cli.delivery import AboutOption, about_of, progress_bar
from pacbound.cli.exit_codes import ending_well
from pacbound.cli.options import ROWS, JsonOption, Reads, Writes, option
from pacbound.cli.rows import PIPED, FilesArgument, RowChoices
from pacbound.cli.streams import json_line
from pacbound.errors import InvalidTypeError, InvalidValueError

# The end of the state's name, behind that of the table.
STATE = ".batch"


@ending_well
def batch(
    files: FilesArgument,
    confidence: Annotated[
        str | None, option("Column with the fast model's confidence, 0 to 1.")
    ] = None,
    prediction: Annotated[str | None, option("Column with the fast model's answers.")] = None,
    xi: Annotated[
        float | None, option("The share of the answers that may differ from the slow model's.")
    ] = None,
    delta: Annotated[float | None, option("Chance that more differ, for example 0.1.")] = None,
    ask: Annotated[
        str | None, option("Where the rows go that the slow model has to answer next."), Writes()
    ] = None,
    answers: Annotated[
        str | None,
        option("What it answered: the rows that were asked, with a column added."),
        Reads(),
    ] = None,
    answer: Annotated[str, option("The column of --answers with the answer.")] = ("answer"),
    output: Annotated[
        str | None,
        option("--output", "-o", "Where all rows go in the end, with their answers."),
        Writes(),
    ] = None,
    certificate: Annotated[
        Path | None, option("Where the certificate goes; beside --output if left out."), Writes()
    ] = None,
    state: Annotated[
        Path | None,
        option("What keeps the sample and all answers; FILE.batch if left out."),
        Writes(),
    ] = None,
    give_up: Annotated[
        bool, option("--give-up", "Take empty answers for records that can never be answered.")
    ] = False,
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
    seed: Annotated[
        int | None,
        option("For the same sample again in a test; drawn if left out.", rich_help_panel=ROWS),
    ] = None,
    about: AboutOption = None,
    *,
    rows: Annotated[RowChoices, ("classes", "missing", *PIPED)],
    as_json: JsonOption = False,
) -> int:
    """Answer a table of records so that at most a share xi of the answers differ from the slow
    model's, asking it about as few as can be.

    Begin with --ask ask.csv; let the slow model answer these rows in a column `answer`; pass them
    with --answers, another --ask and -o. It takes two rounds. The state file keeps every answer: a
    batch may be taken up again at any time, and no row is asked about twice.
    """
    if ask is None and output is None:
        raise InvalidTypeError(
            "Pass --ask FILE for the rows that need an answer, or -o FILE for all answers."
        )
    target = _state_of(files) if state is None else state
    goes_to = certificate or (None if output is None else _beside(Path(output)))
    options = rows.options()
    with progress_bar("reading") as progress:
        step = begin_or_go_on(
            rows.tables(files),
            target,
            given={
                "confidence": confidence,
                "prediction": prediction,
                "xi": xi,
                "delta": delta,
                "sample": sample,
                "looks": looks,
                "whole_ties": whole_ties,
                "classes": options.get("classes"),
                "missing": options.get("missing"),
            },
            rng=np.random.default_rng(seed),
            answers=answers,
            answer=answer,
            give_up=give_up,
            ask=ask,
            output=output,
            certificate=goes_to,
            about=about_of(about),
            notation=rows.notation(),
            progress=progress,
        )
    said = (
        json_line(_for_programs(step, ask, output, goes_to))
        if as_json
        else _in_words(step, ask, output, goes_to)
    )
    # What is said must not be among the rows.
    typer.echo(said, err=any(is_standard_output(name) for name in (ask, output) if name))
    return 0


def _state_of(files: list[str]) -> Path:
    if len(files) != 1 or not Path(files[0]).is_file():
        raise InvalidValueError(
            f"{', '.join(files[:3])}: name the state of a batch of several files with --state."
        )
    return Path(files[0] + STATE)


def _beside(output: Path) -> Path | None:
    """all.csv gives all.certificate.json; a stream has nothing beside it."""
    return None if is_standard_output(output) else output.with_suffix(".certificate.json")


def _for_programs(
    step: BatchProgress, ask: str | None, output: str | None, certificate: Path | None
) -> dict[str, object]:
    is_done = step.result is not None
    return {
        "done": is_done,
        "rows": step.rows,
        "answered": step.answered,
        "to_ask": step.open,
        "sampling": step.sampling,
        "left_empty": step.left_empty,
        "ask": None if is_done else ask,
        "output": output if is_done else None,
        "certificate": str(certificate) if is_done and certificate is not None else None,
        "claim": None if step.result is None else step.result.certificate.to_dict(),
    }


def _in_words(
    step: BatchProgress, ask: str | None, output: str | None, certificate: Path | None
) -> str:
    if step.result is not None:
        return _when_done(step, step.result, output, certificate)
    what = (
        "sampled rows still need the slow model's answer"
        if step.sampling
        else "rows still need the slow model's answer; then the batch is done"
    )
    lines = [
        f"{step.open:,} {what}. {step.answered:,} of {step.rows:,} rows are answered.",
        (
            f"They are in {ask}: add a column with the slow model's answers, and pass the file "
            "with --answers."
            if ask is not None
            else "Every answer is kept. Pass --ask FILE for the rows to ask next."
        ),
    ]
    if step.left_empty:
        lines.append(
            f"{step.left_empty:,} rows came back empty and are asked again; --give-up takes them "
            "for records that can never be answered."
        )
    return "\n".join(lines)


def _when_done(
    step: BatchProgress, result: BatchResult, output: str | None, certificate: Path | None
) -> str:
    said = result.certificate.summary()
    if output is None:
        return f"{said}\n\nEvery row has its answer. Pass -o FILE to write them."
    beside = "" if certificate is None else f" The certificate is in {certificate}."
    return f"{said}\n\n{step.rows:,} rows written to {output} with {', '.join(ADDED)}.{beside}"
