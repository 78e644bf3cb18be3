"""`pacbound monitor`: raise the alarm once the claim of a certificate no longer holds in use."""

from __future__ import annotations

import os
import select
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from pacbound.atomic_files import atomic_file
from pacbound.certificate import Certificate, load_certificate
from pacbound.cli.counting import ClassesOption, MissingOption, UnseenOption, class_options
from pacbound.cli.exit_codes import ALARM, ending_well
from pacbound.cli.lists import names
from pacbound.cli.terminal import print_json, progress_bar
from pacbound.documents import encode_float
from pacbound.errors import InvalidTypeError, InvalidValueError, PacboundError
from pacbound.monitor import Alarm, Monitor, prometheus_text, update_from_files
from pacbound.monitor.promise import Promise
from pacbound.sources.streams import stream_batches
from pacbound.tally.questions import with_article
from pacbound.tally.rows import Rows

STANDARD_INPUT = "-"
FLUSHED = 1.0
"""Seconds after which the state of a stream that does not pause is saved again."""

_ANSWERS = {
    "confidence": "confidence",
    "correct": "correct",
    "prediction": "prediction",
    "label": "labels",
    "group": "groups",
}

COLUMNS: dict[str, dict[str, str]] = {
    "abstention": _ANSWERS,
    "calibration": _ANSWERS,
    "cascade": {
        "loss": "loss",
        "confidence": "confidences",
        "prediction": "predictions",
        "label": "labels",
    },
    "recall": {"score": "score", "positive": "positive"},
    "shield": {"unsafe": "unsafe"},
}
"""For each kind of certificate, the options that name its columns, and what they are called where
rows are judged; in the plural they are lists."""

INSTEAD = {"correct": {"prediction", "label"}, "loss": {"confidence", "prediction", "label"}}
"""Columns that stand for others."""


@ending_well
def monitor(
    certificate: Annotated[Path, typer.Argument(metavar="CERT", help="What to watch over.")],
    files: Annotated[
        list[str],
        typer.Argument(
            metavar="FILE...",
            help=(
                "The rows in the order in which they came: CSV, Parquet, JSON lines, Arrow, .npz, "
                "a folder or a quoted glob; - reads CSV or JSON lines as they arrive."
            ),
        ),
    ],
    delta: Annotated[
        float,
        typer.Option(help="Chance that the alarm ever rings falsely, for example 1e-3."),
    ],
    false_alarms: Annotated[
        str, typer.Option(help="'ever', or the weaker promise 'one per 1e6 labels'.")
    ] = "ever",
    state: Annotated[
        Path | None,
        typer.Option(help="Where the state is kept: it is read if it is there, and written."),
    ] = None,
    confidence: Annotated[
        str | None, typer.Option(help="Confidence columns, if not named as in the certificate.")
    ] = None,
    correct: Annotated[
        str | None, typer.Option(help="Calibration, abstention: whether the prediction was right.")
    ] = None,
    prediction: Annotated[
        str | None, typer.Option(help="Prediction columns, if not named as in the certificate.")
    ] = None,
    label: Annotated[
        str | None, typer.Option(help="Column with the true class, if not named so.")
    ] = None,
    group: Annotated[
        str | None, typer.Option(help="Calibration, abstention: column with the group.")
    ] = None,
    loss: Annotated[
        str | None,
        typer.Option(
            help=(
                "Cascade, in place of all other columns: 1 where it is wrong and the slow model "
                "right, -1 where it is the other way round, else 0."
            )
        ),
    ] = None,
    unsafe: Annotated[
        str | None, typer.Option(help="Shield: whether the rollout under it was unsafe.")
    ] = None,
    score: Annotated[str | None, typer.Option(help="Recall: column with the score.")] = None,
    positive: Annotated[
        str | None, typer.Option(help="Recall: whether the row is positive.")
    ] = None,
    classes: ClassesOption = None,
    missing: MissingOption = None,
    unseen_labels: UnseenOption = None,
    prometheus: Annotated[
        Path | None, typer.Option(help="A .prom file for Prometheus' textfile collector.")
    ] = None,
    figure: Annotated[
        Path | None, typer.Option(help="A figure of the evidence: .png, .svg or .pdf.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the result for programs.")] = False,
) -> int:
    """Raise the alarm once what a certificate claims no longer holds: exit code 1 if it rang.

    Each run takes in new rows, and --state carries on where the last one ended. The labels must be
    those of all rows, or of a share drawn before their outcomes could be known. Silence proves
    nothing.
    """
    loaded = load_certificate(certificate)
    options = class_options(classes, missing, unseen_labels)
    watching = _begun_or_resumed(loaded, state, delta, false_alarms, options)
    given = {
        "confidence": confidence, "correct": correct, "prediction": prediction, "label": label,
        "group": group, "loss": loss, "unsafe": unsafe, "score": score, "positive": positive,
    }  # fmt: skip
    columns = _columns(loaded, given)

    def save() -> None:
        if state is not None:
            watching.save(state)
        if prometheus is not None:
            with atomic_file(prometheus) as file:
                file.write(prometheus_text(watching).encode())

    if STANDARD_INPUT in files:
        if len(files) > 1:
            raise InvalidValueError("- stands beside files: feed them one after the other.")
        alarm = _from_stream(watching, columns, save, as_json=as_json)
    else:
        with progress_bar("taking in") as progress:
            alarm = update_from_files(watching, files, columns=columns, progress=progress)
        save()
    if figure is not None:
        _draw(watching, figure)
    _say(watching, alarm, state, as_json=as_json)
    return 0 if alarm is None else ALARM


def _begun_or_resumed(
    certificate: Certificate,
    state: Path | None,
    delta: float,
    false_alarms: str,
    options: Mapping[str, Any],
) -> Monitor:
    wanted = Promise.of(delta, false_alarms)
    given = {name: value for name, value in options.items() if value is not None}
    if state is None or not state.exists():
        return Monitor(certificate, delta=delta, false_alarms=false_alarms, **given)
    found = Monitor.load(state, certificate, **given)
    if (found.delta, found.false_alarms) != (wanted.delta, wanted.text):
        raise InvalidValueError(
            f"{state} was begun with delta = {found.delta:g} and false alarms {found.false_alarms}"
            ", and a promise cannot be changed on the way: pass the same, or another file."
        )
    return found


def _columns(certificate: Certificate, given: Mapping[str, str | None]) -> dict[str, Any]:
    """The columns by what they are for: those that are named, and else those of the certificate."""
    roles = COLUMNS[certificate.kind]
    chosen = {option: name for option, name in given.items() if name is not None}
    strange = next((option for option in chosen if option not in roles), None)
    if strange is not None:
        raise InvalidTypeError(
            f"--{strange} says nothing about {with_article(certificate.kind)}: leave it out."
        )
    recorded = {
        option: name for option, name in certificate.provenance.columns.items() if option in roles
    }
    for option, others in INSTEAD.items():
        if option in chosen:
            recorded = {name: column for name, column in recorded.items() if name not in others}
        elif others & chosen.keys() - {"confidence"}:
            recorded.pop(option, None)
    found = {roles[option]: name for option, name in (recorded | chosen).items()}
    if not found:
        wanted = " and ".join(f"--{option}" for option in roles if option not in INSTEAD)
        raise InvalidTypeError(
            f"The certificate names no columns: name those of the rows with {wanted}."
        )
    lists = {"confidences", "predictions"}
    return {role: names(name) if role in lists else name for role, name in found.items()}


def _from_stream(
    watching: Monitor, columns: Mapping[str, Any], save: Callable[[], None], *, as_json: bool
) -> Alarm | None:
    """Take in rows as they arrive, and keep the state of those that were."""
    reading = watching.reading_of(**columns)
    wanted = list(dict.fromkeys(slot.name for slot in reading.slots.values()))
    rung: list[Alarm] = []
    before = kept = watching.rows
    saved = time.monotonic()

    def arrived() -> bytes:
        """What has arrived, as soon as there is something; what was taken in is kept before the
        stream pauses, and every second.
        """
        nonlocal kept, saved
        if watching.rows > kept and (time.monotonic() - saved > FLUSHED or _pauses()):
            save()
            kept, saved = watching.rows, time.monotonic()
        return os.read(sys.stdin.fileno(), 2**16)

    try:
        for batch in stream_batches(arrived, wanted):
            known = len(watching.alarms)
            alarm = watching.update_rows(reading, Rows.of_batch(reading.slots, batch))
            rung += [] if alarm is None else [alarm]
            if not as_json:
                for one in watching.alarms[known:]:
                    typer.echo(str(one))
                sys.stdout.flush()
    except PacboundError as error:
        raise type(error)(
            f"{error} {watching.rows - before:,} rows of the stream were taken in: go on with the "
            "one after them."
        ) from None
    finally:
        if watching.rows > kept:
            save()
    if watching.rows == before:
        raise InvalidValueError("standard input: no rows, so there is nothing to take in.")
    return rung[0] if rung else None


def _pauses() -> bool:
    """Whether nothing has arrived yet; where the system cannot tell, it may be so."""
    try:
        return not select.select([sys.stdin.fileno()], [], [], 0)[0]
    except (OSError, ValueError):
        return True


def _draw(watching: Monitor, figure: Path) -> None:
    from pacbound.report import EvidenceDisplay  # noqa: PLC0415 - matplotlib is optional

    display = EvidenceDisplay.from_monitor(watching)
    with atomic_file(figure) as file:
        display.figure_.savefig(file, format=figure.suffix.lstrip(".").lower() or "png")


def _say(watching: Monitor, alarm: Alarm | None, state: Path | None, *, as_json: bool) -> None:
    if not as_json:
        typer.echo(watching.summary())
        return
    print_json(
        {
            "alarm": None
            if alarm is None
            else {
                "label": alarm.label,
                "evidence": encode_float(alarm.evidence),
                "where": alarm.where,
                "message": str(alarm),
            },
            "alarms": [one.label for one in watching.alarms],
            "evidence": encode_float(watching.evidence),
            "limit": watching.limit,
            "rows": watching.rows,
            "labels": watching.labels,
            "seen": watching.seen,
            "delta": watching.delta,
            "false_alarms": watching.false_alarms,
            "promise": watching.promise,
            "certificate": watching.certificate.claim_digest,
            "state": None if state is None else str(state),
        }
    )
