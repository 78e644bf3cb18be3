"""`pacbound label`: pay for the labels, or the grades, of a cascade that matter, and stop at any
time.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from pacbound.cascade.labelling import LabelSession
from pacbound.cascade.labelling.session import GRADING, Outcome, require_loss
from pacbound.cascade.rows import CHECK, LABEL, Fill, no_label, rows_asked_for
from pacbound.claims.cascade import CascadeCertificate
from pacbound.claims.provenance import about_texts, sample_name
from pacbound.cli.delivery import (
    AboutOption,
    OutputOption,
    about_of,
    deliver,
    progress_bar,
    text_of,
)
from pacbound.cli.exit_codes import REFUSED, decided, ending_well
from pacbound.cli.label_by_hand import label_by_hand
from pacbound.cli.options import ROWS, JsonOption, Reads, Writes, names, numbers, option
from pacbound.cli.rows import CLASSES, GRADED, PIPED, RELATED, WRITTEN, RowChoices
from pacbound.cli.streams import print_json
from pacbound.documents import encode_float
from pacbound.errors import InvalidTypeError, InvalidValueError
from pacbound.file_locks import locked
from pacbound.procedures.cascade import Bound
from pacbound.procedures.cascade_partial import Claim
from pacbound.sources import Notation, TableFile, open_table
from pacbound.sources.batches import Batch, require_columns
from pacbound.sources.notation import unscaled
from pacbound.sources.values import MISSING, Values
from pacbound.tally.classes import ClassRule, Evidence, Vocabulary, is_missing_code
from pacbound.tally.columns import numeric
from pacbound.tally.questions.cascade import witness
from pacbound.tally.returned_labels import ROW, answers_notation


@ending_well
def label(
    file: Annotated[
        str,
        typer.Argument(help="CSV, Parquet, JSON lines, Arrow or .npz: all rows, one file."),
        Reads(),
    ],
    confidence: Annotated[
        str, option("Columns with the confidence of each model but the last: c1")
    ],
    session: Annotated[
        Path,
        option("The session's file: created if it is missing, continued if it is there."),
        Writes(is_locked=True),
    ],
    prediction: Annotated[
        str | None,
        option("Columns with each model's prediction, the slow model's last: p1,p2"),
    ] = None,
    xi: Annotated[float | None, option("The accuracy that may be lost, for example 0.01.")] = None,
    delta: Annotated[float | None, option("Chance that more is lost, for example 0.01.")] = None,
    costs: Annotated[
        str | None,
        option("What a row costs that each model answers, those before it included: 1,10"),
    ] = None,
    bound: Annotated[
        Bound | None, option("exact if left out, the pair, or the paper's product.")
    ] = None,
    claim: Annotated[
        Claim | None, option("loss, the only claim that holds at every look; differ is refused.")
    ] = None,
    slow_confidence: Annotated[
        str | None,
        option(
            "Column with the slow model's confidence: its doubts are asked first.",
            rich_help_panel=ROWS,
        ),
    ] = None,
    label: Annotated[
        str | None, option("Column of FILE with the labels that are there already.")
    ] = None,
    quality: Annotated[
        str | None,
        option(
            "Answers are graded: the columns for the quality of each model's answer, in FILE or to "
            "be filled in, the slow model's last: g1,g2. For two models the slow one's will do.",
            rich_help_panel=ROWS,
        ),
    ] = None,
    ask: Annotated[
        Path | None,
        option("Write the rows to label here, with an empty column for each answer."),
        Writes(),
    ] = None,
    count: Annotated[int, option("The most rows to write.", min=1)] = 50,
    answers: Annotated[
        Path | None,
        option("Take in labels: what --ask wrote, filled in.", rich_help_panel=ROWS),
        Reads(),
    ] = None,
    cannot_tell: Annotated[
        str | None,
        option(
            "What stands for 'nobody can tell' in the answers, for example '?'.",
            rich_help_panel=ROWS,
        ),
    ] = None,
    show: Annotated[
        str | None,
        option(
            "Columns that a labeller sees: text,image. If left out, all but those of the models; "
            "to grade, predictions are shown.",
            rich_help_panel=ROWS,
        ),
    ] = None,
    *,
    rows: Annotated[RowChoices, (*RELATED, *GRADED, "row_ids", "seed", *PIPED, "sample")],
    output: OutputOption = None,
    about: AboutOption = None,
    as_json: JsonOption = False,
) -> int:
    """Certify a cascade while its labels come in: ask for those that matter, stop at any time.

    --ask writes rows to label, --answers takes them back; both may stand in one call. Without
    either, on a terminal, rows are shown one by one and labelled by hand. Every label is in the
    session file before the next is asked for. Labellers do not see what the models say, unless
    --show names these columns. Rows without a label count as losses, so what is certified holds
    whenever you stop: that at most xi of the accuracy is lost.

    With --quality answers are graded in place of labels, and the claim is about mean quality. Who
    grades sees the predictions, and no scores.

    Exit code 0: certified. 3: not yet.
    """
    said = rows.options()
    told, named = about_texts(about_of(about)), sample_name(said.pop("sample", None))
    insisted = said.pop("unrelated_labels", False)
    answer = _Answer(label, quality, cannot_tell)
    fixed = {
        "xi": xi,
        "delta": delta,
        "bound": bound,
        "claim": claim,
        "costs": None if costs is None else tuple(numbers(costs, "--costs")),
        **{name: said.get(name) for name in CLASSES},
    }
    columns: Any = {"confidence": names(confidence)}
    if prediction is not None:
        columns["prediction"] = names(prediction)
    predictions = columns.get("prediction", [])
    (file,) = rows.tables([file])
    notation = rows.notation()
    models = [*columns["confidence"], slow_confidence]
    models += [] if answer.grades else predictions
    table = open_table(file, notation)
    shown = _shown(table, show, hidden={label, *models, *answer.grades})
    reading: dict[str, Any] = {
        **columns,
        "slow_confidence": slow_confidence,
        **{name: said.get(name) for name in WRITTEN},
        **{name: said[name] for name in GRADING if name in said},
    }
    # From before the session is read until after it is written: no other process may do so between.
    with locked(session, wait=True, waiting=lambda: _say_waiting(session)):
        with progress_bar("reading") as progress:
            reading["progress"] = progress
            going = _session(file, session, fixed, reading, graded=bool(answer.grades))
        if label is not None and not insisted:
            _require_related(going, file, label, predictions, notation)
        there = answer.stored(table)
        taken = _tell_file(going, table, answer) if there else 0
        if answers is not None:
            told_by = columns["confidence"], predictions
            taken += _tell_answers(going, answers, answer, *told_by, notation)
        _save(going, session)
        asked = None
        if ask is not None:
            asked = going.ask(count)
            _require_taken_in(going, ask, answer, notation)
            added: dict[str, Fill] = {CHECK: going.checks}
            if not there:
                added |= dict.fromkeys(answer.columns, _nothing(going, ask))
            decided(0 if going.progress.certified else REFUSED)
            seen = [*shown, *answer.columns] if there else shown
            rows_asked_for(file, ask, asked, shown=seen, added=added, notation=notation)
        elif answers is None and not as_json and _is_by_hand():
            label_by_hand(going, session, table, shown, answer.grades)
            _save(going, session)
        certificate = None if output is None else going.certificate(about=told, sample=named)
        written = None if ask is None or asked is None else (ask, len(asked))
        return _report(going, session, taken, written, answer, certificate, output, as_json=as_json)


@dataclass(frozen=True)
class _Answer:
    """The columns that an answer to a row stands in: its label, or the grades of models' answers;
    and what stands for "nobody can tell" there.
    """

    label: str | None
    quality: str | None
    cannot_tell: str | None

    def __post_init__(self) -> None:
        if self.label is not None and self.quality is not None:
            raise InvalidTypeError(
                "--label and --quality both say how good answers are: pass one of them."
            )

    @property
    def grades(self) -> list[str]:
        """The columns of grades; none where rows get labels."""
        return [] if self.quality is None else names(self.quality)

    @property
    def columns(self) -> list[str]:
        """All columns of an answer."""
        return self.grades or [self.label or LABEL]

    def stored(self, table: TableFile) -> bool:
        """Whether the table of the rows has answers already; then it has all of their columns."""
        if self.label is not None or any(name in table.columns for name in self.grades):
            require_columns(table, self.columns)
            return True
        return False

    def of(self, batch: Batch) -> tuple[Any, Any]:
        """The answers of a batch as a session takes them, and which rows nobody can label."""
        if not self.grades:
            return _without(batch.values(self.columns[0]), self.cannot_tell)
        declined, told = np.zeros(batch.rows, dtype=np.bool_), {}
        for name in self.grades:
            told[name] = np.full(batch.rows, np.nan)
            cannot = np.zeros(batch.rows, dtype=np.bool_)
            if self.cannot_tell is not None:
                _, cannot = _without(batch.values(name), self.cannot_tell)
            graded = batch if not cannot.any() else batch.where(~cannot)
            found = numeric(graded.numbers(name, missing=True), name)
            told[name][~cannot] = found
            declined |= cannot
        return told, declined


def _nothing(session: LabelSession, path: Path) -> Fill:
    """What a column of answers holds as long as there are none."""
    is_numbers = not any(isinstance(found, str) for found in session.classes)
    return no_label(path, numbers=is_numbers or session.graded is not None)


def _shown(table: TableFile, show: str | None, hidden: set[str | None]) -> list[str]:
    """The columns that a labeller sees: those named, or all that are not hidden."""
    if show is None:
        return [name for name in table.columns if name not in hidden]
    require_columns(table, names(show))
    return names(show)


def _save(session: LabelSession, path: Path) -> None:
    """Use all labels of the session, since the report depends on them, and store it."""
    session.progress  # noqa: B018
    session.save(path)


def _is_by_hand() -> bool:
    """Whether a person at a terminal is shown rows and types their classes."""
    return sys.stdin is not None and sys.stdin.isatty() and sys.stdout.isatty()


def _say_waiting(session: Path) -> None:
    typer.echo(f"{session} is in use by another process: waiting for it.", err=True)


def _session(
    file: str, path: Path, fixed: dict[str, Any], reading: dict[str, Any], *, graded: bool
) -> LabelSession:
    if path.exists():
        found = LabelSession.load(path, data=file, **reading)
        _require_as_fixed(found, fixed, path)
        if (found.graded is not None) != graded:
            raise InvalidTypeError(
                f"{path} is a session of labels: leave --quality out."
                if graded
                else f"{path} is a session of graded answers: name their columns with --quality."
            )
        return found
    if fixed["xi"] is None or fixed["delta"] is None:
        raise InvalidTypeError(f"{path} is not there yet: a new session needs --xi and --delta.")
    given = {name: value for name, value in fixed.items() if value is not None}
    outcome: Outcome = "quality" if graded else "label"
    return LabelSession(data=file, outcome=outcome, **given, **reading)


def _require_as_fixed(session: LabelSession, fixed: dict[str, Any], path: Path) -> None:
    """Refuse options that differ from what the session was begun with."""
    if fixed["claim"] is not None:
        require_loss(fixed["claim"])
    asked = {name: getattr(session, name) for name in ("xi", "delta", "bound", "costs")}
    for name, value in asked.items():
        if fixed[name] is not None and fixed[name] != value:
            raise InvalidValueError(
                f"{path} was begun with {name} = {value}, not {fixed[name]}: what is asked for may "
                "not change once labels were seen. Leave the option out."
            )
    options = ("classes", "missing", "unseen_labels")
    given = {name: fixed[name] for name in options if fixed[name] is not None}
    rule = ClassRule.of(**given)
    if any(getattr(rule, name) != getattr(session.rule, name) for name in given):
        raise InvalidValueError(
            f"{path} was begun with other {', '.join(given)}: leave the options out."
        )


def _require_related(
    session: LabelSession, file: str, label: str, predictions: list[str], notation: Notation
) -> None:
    """Refuse labels that seem to be of other rows. Labels of rows on which all models agree show
    it, though the session has no other use for them.
    """
    table, vocabulary = open_table(file, notation), Vocabulary(session.rule)
    evidence, rows = Evidence(), 0
    require_columns(table, [label, *predictions])
    for batch in table.batches(list(dict.fromkeys([label, *predictions]))):
        truth, *answers = (
            vocabulary.codes(batch.values(name), name, batch.start)
            for name in (label, *predictions)
        )
        witness(answers, truth, vocabulary, evidence)
        rows += batch.rows
    matches = evidence.matches(session.rule)
    if matches is not None:
        matches.require_related(rows, label, predictions[-1])


def _tell_file(session: LabelSession, table: TableFile, answer: _Answer) -> int:
    """Take in the answers that the table of the rows has."""
    taken = 0
    for batch in table.batches(answer.columns):
        rows = np.arange(batch.start, batch.start + batch.rows)
        told, declined = answer.of(batch)
        taken += session.tell_column(rows, told, name=answer.columns[0], start=batch.start)
        taken += session.decline(rows[declined]) if answer.grades else 0
    return taken


def _tell_answers(
    session: LabelSession,
    path: Path,
    answer: _Answer,
    confidences: list[str],
    predictions: list[str],
    notation: Notation,
) -> int:
    """Take in what was filled in, all of it or nothing. Predictions and scores that came back, too,
    must be those of the rows.
    """
    table, taken = open_table(path, answers_notation(path, notation)), 0
    require_columns(table, [ROW, *answer.columns])
    scored, told = (
        {place: name for place, name in enumerate(names) if name in table.columns}
        for names in (confidences, predictions)
    )
    checked = [CHECK] if CHECK in table.columns else []
    wanted = [ROW, *answer.columns, *checked, *scored.values(), *told.values()]
    for batch in table.batches(list(dict.fromkeys(wanted))):
        try:
            rows, (known, declined) = _rows(batch), answer.of(batch)
            if not answer.grades:
                _require_told_apart(session, path, known)
            taken += session.tell_column(
                rows,
                known,
                name=answer.columns[0],
                start=batch.start,
                predictions={place: batch.values(name) for place, name in told.items()},
                scores={place: _came_back(batch, name, notation) for place, name in scored.items()},
                checks=batch.names(CHECK) if checked else None,
            )
            taken += session.decline(rows[declined])
        except (InvalidTypeError, InvalidValueError) as error:
            raise type(error)(f"{path}: {error}") from None
    return taken


def _came_back(batch: Batch, name: str, notation: Notation) -> Any:
    """A column of scores that came back, NaN where one did not."""
    found = numeric(batch.numbers(name, missing=True), name)
    return unscaled(found, notation.scale).astype(np.float64)


def _rows(batch: Batch) -> Any:
    """The numbers of the rows that answers are for."""
    found = batch.numbers(ROW)
    if not (np.isfinite(found) & (found == np.floor(found))).all():
        raise InvalidValueError(
            f"{ROW} holds something that is not the number of a row: leave it as it was."
        )
    return found.astype(np.int64)


def _without(values: Values, text: str | None) -> tuple[Values, Any]:
    """The values without those that read as `text`, and which rows these are."""
    meant = [place for place, found in enumerate(values.distinct) if str(found) == text]
    declined = np.isin(values.places, meant)
    return Values(
        values.distinct, np.where(declined, MISSING, values.places), values.typed
    ), declined


def _require_told_apart(session: LabelSession, path: Path, values: Values) -> None:
    """Refuse a value that may mean "no label yet" or "nobody can tell"."""
    rule = session.rule
    for place in np.unique(values.places[values.places != MISSING]).tolist():
        found = values.distinct[place]
        is_named = found in rule.missing or found in (rule.classes or ())
        if isinstance(found, str) and found.strip() and is_missing_code(found) and not is_named:
            raise InvalidValueError(
                f"{path} holds {found!r} for a label. If nobody can tell the class, pass "
                f"--cannot-tell {found!r}: such rows stay losses and are not asked for again. If "
                "it is not known yet, leave it empty."
            )


def _require_taken_in(
    session: LabelSession, path: Path, answer: _Answer, notation: Notation
) -> None:
    """Refuse to replace a file with answers that the session does not have."""
    if not path.is_file():
        return
    try:
        table = open_table(path, answers_notation(path, notation))
        require_columns(table, [ROW, *answer.columns])
        batches = list(table.batches([ROW, *answer.columns]))
    except (InvalidTypeError, InvalidValueError):
        return
    known = dict.fromkeys(session.labels, 1) | {
        row: sum(one is not None for one in told) for row, told in session.qualities.items()
    }
    known |= dict.fromkeys(session.declined.tolist(), len(answer.columns))
    for batch in batches:
        filled = np.sum([_filled(batch.values(name)) for name in answer.columns], axis=0)
        open_ = filled > [known.get(row, 0) for row in _rows(batch).tolist()]
        if open_.any():
            what = "grades" if answer.grades else "labels"
            raise InvalidValueError(
                f"{path} holds {open_.sum()} {what} that the session does not have, so it is not "
                f"replaced: take them in with --answers {path}, or name another file."
            )


def _filled(answered: Values) -> Any:
    """Which values are not empty."""
    filled = np.array([bool(str(found).strip()) for found in answered.distinct] + [False])
    return filled[answered.places]


def _report(
    session: LabelSession,
    path: Path,
    taken: int,
    written: tuple[Path, int] | None,
    answer: _Answer,
    certificate: CascadeCertificate | None,
    output: Path | None,
    *,
    as_json: bool,
) -> int:
    now, ahead = session.progress, session.forecast()
    code = decided(0 if now.certified else REFUSED)
    if as_json:
        if certificate is not None and output is not None:
            certificate.save(output)
        print_json(
            {
                "session": str(path),
                "taken": taken,
                "labels": now.labels,
                "declined": now.declined,
                "open": now.open,
                "differ": now.differ,
                "rows": now.rows,
                "done": now.done,
                "forecast": None
                if ahead is None
                else {"labels": ahead.labels, "exit_rates": ahead.exit_rates.tolist()},
                "certified": now.certified,
                "thresholds": [encode_float(value) for value in now.thresholds.tolist()],
                "exit_rates": now.exit_rates.tolist(),
                "expected_cost": now.expected_cost,
                "best_possible": {
                    "thresholds": [
                        encode_float(value) for value in now.best_possible.thresholds.tolist()
                    ],
                    "exit_rates": now.best_possible.exit_rates.tolist(),
                    "expected_cost": now.best_possible.expected_cost,
                },
                "ask": None if written is None else text_of(written[0]),
                "asked": None if written is None else written[1],
                "certificate": text_of(output),
            }
        )
        return code
    typer.echo(f"{path}: {now}.")
    if ahead is not None and ahead.labels:
        typer.echo(f"{str(ahead).capitalize()}.")
    if written is not None:
        typer.echo(_how_to_fill_in(session, *written, answer))
    if certificate is not None:
        return deliver(certificate, output, as_json=False)
    return code


def _how_to_fill_in(session: LabelSession, ask: Path, asked: int, answer: _Answer) -> str:
    """What to do with the rows that were written to `ask`."""
    what = "label" if session.graded is None else "grade"
    if not asked:
        return f"No {what} can change the thresholds any more; {ask} has no rows."
    columns = "the label column"
    if session.graded is not None:
        worst, best = session.graded.scale
        columns = f"{' and '.join(answer.columns)}, from {worst:g} to {best:g}"
    return (
        f"{asked:,} rows to {what} are in {ask}: fill in {columns}, leave the others as they are, "
        f"and pass it with --answers {ask}."
    )
