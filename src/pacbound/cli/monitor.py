"""`pacbound monitor`: raise the alarm once the claim of a certificate no longer holds in use."""

from __future__ import annotations

import select
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from pacbound.atomic_files import atomic_file
from pacbound.claims.certificate import Certificate, load_certificate
from pacbound.cli.delivery import draw, progress_bar, require_drawable, say, text_of
from pacbound.cli.exit_codes import ALARM, decided, ending_well
from pacbound.cli.options import ColumnOption, JsonOption, Reads, Writes, option
from pacbound.cli.rows import (
    CLASSES,
    WRITTEN,
    RowChoices,
    chosen,
    for_question,
    named_columns,
    readable_roles,
)
from pacbound.documents import encode_float
from pacbound.errors import InvalidTypeError, InvalidValueError, PacboundError
from pacbound.file_locks import locked
from pacbound.monitor import Alarm, BundleMonitor, Monitor, prometheus_text, update_from_files
from pacbound.monitor.monitor import CLUSTERS
from pacbound.monitor.state import Promise, watch_of
from pacbound.sources.notation import Notation
from pacbound.sources.standard_input import STANDARD_INPUT, read_when_there, stream_batches
from pacbound.tally.columns import Rows, stored
from pacbound.tally.questions import with_article

# Seconds after which the state of a stream that does not pause is saved again.
FLUSHED = 1.0


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
    delta: Annotated[float, option("Chance of any false alarm, however long you watch: 1e-3")],
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
    notation = rows.notation()
    if loaded.inside:
        _refuse_with_several({"column": column, **vars(notation), "figure": figure}, files)
    elif STANDARD_INPUT in files and len(files) > 1:
        raise InvalidValueError(
            "- stands for standard input, and files were named too: feed them one after the other."
        )
    # From before the state is read until after it is written: no other process may do so between.
    with nullcontext() if state is None else locked(state, wait=False):
        watching = _begun_or_resumed(loaded, state, delta, false_alarms, options)
        save = partial(_save, watching, state, prometheus)
        if STANDARD_INPUT in files:
            columns = _columns(loaded, named)
            if CLUSTERS in columns:
                raise InvalidTypeError(
                    "A row is drawn from a cluster once all of its rows are there, and over "
                    "standard input they come one by one: pass files with whole clusters."
                )
            found = _from_stream(watching, columns, notation, save, as_json=as_json)
        else:
            found = _from_files(watching, files, named, notation)
        code = decided(ALARM if found else 0)
        if STANDARD_INPUT not in files:
            save()
    draw(watching, figure)
    say(watching.summary(), _document(watching, found, state), as_json=as_json)
    return code


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


def _refuse_with_several(given: Mapping[str, object], files: list[str]) -> None:
    """Raise if something was asked for that goes with one claim only."""
    named = [f"--{name}" for name, value in given.items() if value is not None]
    named += ["standard input"] if STANDARD_INPUT in files else []
    if named:
        raise InvalidTypeError(
            f"{named[-1]} goes with one claim, and this certificate has several: name one with "
            "--claim, and give each a state file of its own."
        )


def _from_files(watching: Any, files: list[str], named: Mapping[str, str], notation: Any) -> Any:
    """The alarm, if it rang; for a bundle those of its claims by their names: all of them take in
    the rows, or none.
    """
    if not isinstance(watching, BundleMonitor):
        columns = _columns(watching.certificate, named)
        with progress_bar("taking in") as progress:
            return update_from_files(
                watching, files, columns=columns, notation=notation, progress=progress
            )
    found: dict[str, Alarm] = {}
    with watching.all_or_nothing():
        for name, one in watching.monitors.items():
            columns = _columns(one.certificate, {})
            with progress_bar(f"taking in {name}") as progress:
                alarm = update_from_files(one, files, columns=columns, progress=progress)
            found |= {} if alarm is None else {name: alarm}
    return found


def _begun_or_resumed(
    certificate: Certificate,
    state: Path | None,
    delta: float,
    false_alarms: str,
    options: Mapping[str, Any],
) -> Any:
    """The monitor of a certificate, or of all claims of a bundle."""
    kind: Any = BundleMonitor if certificate.inside else Monitor
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
    roles, drawn = watch_of(certificate).roles, certificate.draw
    clusters = [CLUSTERS] if drawn is not None and drawn.by == "clusters" else []
    question = certificate.by.question_of(certificate)
    found = chosen(certificate, readable_roles(question, [*roles, *clusters]), named)
    if not found:
        raise InvalidTypeError(
            "The certificate names no columns: name those of the rows with --column ROLE=NAME. Its "
            f"roles are {', '.join(roles)}."
        )
    return for_question(question, found)


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
    reading = watching.reading_of(**columns)
    reading.require_scores(notation.scale)
    reading = reading.written(watching.certificate.scale_of(notation.scale))
    wanted = list(dict.fromkeys(slot.name for slot in stored(reading.slots).values()))
    rung: list[Alarm] = []
    before = kept = watching.rows
    saved = time.monotonic()

    def arrived() -> bytes:
        """Waits for new bytes and returns them. Saves the state before the stream pauses, and every
        second.
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
    """Whether nothing has arrived yet; True where the system cannot tell."""
    try:
        return not select.select([sys.stdin.fileno()], [], [], 0)[0]
    except (OSError, ValueError):
        return True


def _save(watching: Any, state: Path | None, prometheus: Path | None) -> None:
    if state is not None:
        watching.save(state)
    if prometheus is not None:
        with atomic_file(prometheus) as file:
            file.write(prometheus_text(watching).encode())


def _document(watching: Monitor | BundleMonitor, found: Any, state: Path | None) -> dict[str, Any]:
    """The result for programs; `found` is the alarm, or those of a bundle's claims by name."""
    shared = {
        "delta": watching.delta,
        "false_alarms": watching.false_alarms,
        "promise": watching.promise,
        "certificate": watching.certificate.claim_digest,
        "state": text_of(state),
    }
    if isinstance(watching, BundleMonitor):
        return {
            "alarms": {name: str(alarm) for name, alarm in found.items()},
            "claims": {
                name: _document(one, found.get(name), state)
                for name, one in watching.monitors.items()
            },
            "unwatched": dict(watching.unwatched),
            **shared,
        }
    alarm = found and {
        "label": found.label,
        "evidence": encode_float(found.evidence),
        "where": found.where,
        "message": str(found),
    }
    return {
        "alarm": alarm,
        "alarms": [one.label for one in watching.alarms],
        "evidence": encode_float(watching.evidence),
        "limit": watching.limit,
        "rows": watching.rows,
        "labels": watching.labels,
        "seen": watching.seen,
        **shared,
    }
