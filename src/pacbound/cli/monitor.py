"""`pacbound monitor`: raise the alarm once the claim of a certificate no longer holds in use."""

from __future__ import annotations

import select
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from pathlib import Path
from typing import Annotated, Any, TypeVar

import typer

from pacbound.atomic_files import atomic_file
from pacbound.claims.certificate import Certificate, load_certificate
from pacbound.cli.columns import chosen, for_question, named_columns
from pacbound.cli.delivery import draw, progress_bar, require_drawable, text_of
from pacbound.cli.exit_codes import ALARM, decided, ending_well
from pacbound.cli.options import ColumnOption, JsonOption, Reads, Writes, option
from pacbound.cli.rows import CLASSES, WRITTEN, RowChoices
from pacbound.cli.streams import print_json
from pacbound.documents import encode_float
from pacbound.errors import InvalidTypeError, InvalidValueError, PacboundError
from pacbound.file_locks import locked
from pacbound.monitor import Alarm, BundleMonitor, Monitor, prometheus_text, update_from_files
from pacbound.monitor.state import Promise, watch_of
from pacbound.sources import Notation
from pacbound.sources.standard_input import STANDARD_INPUT, read_when_there, stream_batches
from pacbound.tally.questions import with_article
from pacbound.tally.rows import Rows

Watching = TypeVar("Watching", Monitor, BundleMonitor)

FLUSHED = 1.0
"""Seconds after which the state of a stream that does not pause is saved again."""


@ending_well
def monitor(
    certificate: Annotated[
        Path, typer.Argument(metavar="CERT", help="What to watch over."), Reads()
    ],
    files: Annotated[
        list[str],
        typer.Argument(
            metavar="FILE...",
            help=(
                "The rows in the order in which they came: CSV, Parquet, JSON lines, Arrow, .npz, "
                "a folder or a quoted glob; - reads CSV or JSON lines as they arrive."
            ),
        ),
        Reads(),
    ],
    delta: Annotated[float, option("Chance that the alarm ever rings falsely, for example 1e-3.")],
    claim: Annotated[
        str | None, option("Bundle: watch over this claim alone; over all of them if left out.")
    ] = None,
    false_alarms: Annotated[
        str,
        option(
            "'ever', or the weaker promise 'one per 1e6 labels', where a row counts once for "
            "each claim and group it belongs to."
        ),
    ] = "ever",
    state: Annotated[
        Path | None,
        option(
            "Where the state is kept: it is read if it is there, and written. One process at a "
            "time may use it."
        ),
        Writes(is_locked=True),
    ] = None,
    column: ColumnOption = None,
    *,
    rows: Annotated[RowChoices, (*CLASSES, *WRITTEN)],
    prometheus: Annotated[
        Path | None, option("A .prom file for Prometheus' textfile collector."), Writes()
    ] = None,
    figure: Annotated[
        Path | None, option("A figure of the evidence: .png, .svg or .pdf."), Writes()
    ] = None,
    as_json: JsonOption = False,
) -> int:
    """Raise the alarm once what a certificate claims no longer holds: exit code 1 if it rang.

    Each run takes in new rows, and --state carries on where the last one ended. The labels must be
    those of all rows, or of a share drawn before their outcomes could be known. Silence proves
    nothing. Of a bundle each claim is watched, on its own columns of the same rows.

    Name columns with --column if they are not named as in the certificate. For a cascade, one
    column may stand for all others, --column loss=NAME: 1 where the cascade is wrong and the slow
    model right, -1 where it is the other way round, else 0.
    """
    require_drawable(figure)
    loaded = load_certificate(certificate)
    if claim is not None:
        loaded = _claim_of(loaded, claim)
    options = {name: value for name, value in rows.options().items() if name in CLASSES}
    named = named_columns(column)
    if STANDARD_INPUT in files and len(files) > 1:
        raise InvalidValueError("- stands beside files: feed them one after the other.")
    notation = rows.notation()
    # From before the state is read until after it is written: no other process may do so between.
    with nullcontext() if state is None else locked(state, wait=False):
        if loaded.inside:
            _refuse_with_several({"column": column, **vars(notation)}, files, figure)
            several = _begun_or_resumed(BundleMonitor, loaded, state, delta, false_alarms, options)
            return _watch_several(several, files, state, prometheus, as_json=as_json)
        watching = _begun_or_resumed(Monitor, loaded, state, delta, false_alarms, options)
        columns = _columns(loaded, named)

        def save() -> None:
            if state is not None:
                watching.save(state)
            if prometheus is not None:
                _write_prometheus(watching, prometheus)

        if STANDARD_INPUT in files:
            alarm = _from_stream(watching, columns, notation, save, as_json=as_json)
        else:
            with progress_bar("taking in") as progress:
                alarm = update_from_files(
                    watching, files, columns=columns, notation=notation, progress=progress
                )
            decided(0 if alarm is None else ALARM)
            save()
    if figure is not None:
        from pacbound.report import EvidenceDisplay  # noqa: PLC0415 - matplotlib is optional

        draw(EvidenceDisplay.from_monitor(watching), figure)
    if as_json:
        print_json(_document(watching, alarm, state))
    else:
        typer.echo(watching.summary())
    return 0 if alarm is None else ALARM


def _claim_of(loaded: Certificate, claim: str) -> Certificate:
    if not loaded.inside:
        raise InvalidTypeError(
            f"--claim {claim} is about a bundle, and this is {with_article(loaded.kind)} "
            "certificate: leave it out."
        )
    loaded.require_verified()
    if claim not in loaded.inside:
        raise InvalidValueError(
            f"There is no claim {claim!r} in this certificate: it has {', '.join(loaded.inside)}."
        )
    return loaded.inside[claim]


def _refuse_with_several(
    given: Mapping[str, object], files: list[str], figure: Path | None
) -> None:
    """Raise if something was asked for that goes with one claim only."""
    named = next((f"--{option}" for option, name in given.items() if name is not None), None)
    if STANDARD_INPUT in files:
        named = "standard input"
    if figure is not None:
        named = "--figure"
    if named is not None:
        raise InvalidTypeError(
            f"{named} goes with one claim, and this certificate has several: name one with "
            "--claim, and give each a state file of its own."
        )


def _watch_several(
    several: BundleMonitor,
    files: list[str],
    state: Path | None,
    prometheus: Path | None,
    *,
    as_json: bool,
) -> int:
    found: dict[str, Alarm] = {}
    with several.all_or_nothing():
        for name, watching in several.monitors.items():
            columns = _columns(watching.certificate, {})
            with progress_bar(f"taking in {name}") as progress:
                alarm = update_from_files(watching, files, columns=columns, progress=progress)
            found |= {} if alarm is None else {name: alarm}
    code = decided(ALARM if found else 0)
    if state is not None:
        several.save(state)
    if prometheus is not None:
        _write_prometheus(several, prometheus)
    if as_json:
        print_json(
            {
                "alarms": {name: str(alarm) for name, alarm in found.items()},
                "delta": several.delta,
                "false_alarms": several.false_alarms,
                "promise": several.promise,
                "claims": {
                    name: _document(watching, found.get(name), state)
                    for name, watching in several.monitors.items()
                },
                "unwatched": dict(several.unwatched),
                "certificate": several.certificate.claim_digest,
                "state": text_of(state),
            }
        )
    else:
        typer.echo(several.summary())
    return code


def _begun_or_resumed(
    kind: type[Watching],
    certificate: Any,
    state: Path | None,
    delta: float,
    false_alarms: str,
    options: Mapping[str, Any],
) -> Watching:
    wanted = Promise.of(delta, false_alarms)
    if state is None or not state.exists():
        return kind(certificate, delta=delta, false_alarms=false_alarms, **options)
    found = kind.load(state, certificate, **options)
    if (found.delta, found.false_alarms) != (wanted.delta, wanted.text):
        raise InvalidValueError(
            f"{state} was begun with delta = {found.delta:g} and false alarms {found.false_alarms}"
            ", and a promise cannot be changed on the way: pass the same, or another file."
        )
    return found


def _columns(certificate: Certificate, named: Mapping[str, str]) -> dict[str, Any]:
    """The columns as the monitor takes them: those that are named, and else those of the
    certificate.
    """
    roles = watch_of(certificate).roles
    found = chosen(certificate, roles, named)
    if not found:
        raise InvalidTypeError(
            "The certificate names no columns: name those of the rows with --column ROLE=NAME. Its "
            f"roles are {', '.join(roles)}."
        )
    return for_question(certificate.by.question_of(certificate), found)


def _from_stream(
    watching: Monitor,
    columns: Mapping[str, Any],
    notation: Notation,
    save: Callable[[], None],
    *,
    as_json: bool,
) -> Alarm | None:
    """Take in rows as they arrive, and keep the state of those that were."""
    if sys.stdin is None:
        raise InvalidValueError(
            "- stands for standard input, which is closed: add < rows.csv, or name a file."
        )
    reading = watching.reading_of(**columns).written(notation.scale)
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
        return read_when_there(sys.stdin)

    try:
        for batch in stream_batches(arrived, wanted, notation):
            known = len(watching.alarms)
            alarm = watching.update_rows(reading, Rows.of_batch(reading.slots, batch))
            rung += [] if alarm is None else [alarm]
            decided(ALARM if rung else 0)
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


def _write_prometheus(watching: Monitor | BundleMonitor, path: Path) -> None:
    with atomic_file(path) as file:
        file.write(prometheus_text(watching).encode())


def _document(watching: Monitor, alarm: Alarm | None, state: Path | None) -> dict[str, Any]:
    """The result for programs."""
    return {
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
        "state": text_of(state),
    }
