"""The state of a monitor as a document: exact, digested, and bound to one certificate.

Floats are written in the digits that read back as the same bits. A document that was cut short or
changed, or that belongs to another certificate, is refused, and so is one that no labels could have
led to.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np

from pacbound import documents
from pacbound.atomic_files import as_path
from pacbound.documents import Json, Reader, encode_float
from pacbound.errors import CertificateError, InvalidValueError
from pacbound.file_locks import locked
from pacbound.monitor.classes_seen import ClassesSeen
from pacbound.monitor.history import MOST, History
from pacbound.monitor.promise import Promise
from pacbound.monitor.state import Clock, Rung, State, Wealth
from pacbound.stats.betting import Bets, Restarts, RunningSums

FORMAT: Final = "pacbound-monitor"
SCHEMA: Final = 1
WHAT: Final = "the state of a monitor"
LARGEST_FILE: Final = 2**30
"""A calibration with many groups has bets for each of their bins."""

_REMEDY: Final = "Use a copy of the state that is whole, or begin anew with another file."


class SavedFiles:
    """The files that a monitor was read from or written to, as it knows them."""

    def __init__(self) -> None:
        self._known: dict[str, str] = {}

    def read(self, path: str | os.PathLike[str], what: str) -> dict[str, Json]:
        """The document in a file."""
        # Before it is read: what is written in between is then noticed as not known.
        place = as_path(path)
        known = _bytes_digest(place)
        document = documents.read(place, what, largest=LARGEST_FILE)
        self._known[os.path.realpath(place)] = known
        return document

    def write(self, path: str | os.PathLike[str], document: Mapping[str, Json]) -> None:
        """Write a document, unless there is a file that this monitor has neither read nor written,
        or that somebody else has written since.
        """
        place = os.path.realpath(path)
        with locked(path, wait=True):
            found = _bytes_digest(path)
            if found and place not in self._known:
                raise InvalidValueError(
                    f"{os.fspath(path)} is there already, and this monitor has not read it: what "
                    "it holds would be lost. If it is a state of this monitor, load it first; else "
                    "name another file, or delete it."
                )
            if found and found != self._known[place]:
                raise InvalidValueError(
                    f"{os.fspath(path)} was written by another process since this monitor read or "
                    "wrote it, and stays as it is: what that one took in would be lost. Load it "
                    "again, and take in what is new. To keep others out, hold locked(path, "
                    "wait=True) from load to save."
                )
            documents.write(path, document)
            self._known[place] = _bytes_digest(path)


def _bytes_digest(path: str | os.PathLike[str]) -> str:
    """What names the bytes of a file; nothing where there are none."""
    found = Path(path)
    data = found.read_bytes() if found.is_file() else b""
    return hashlib.sha256(data).hexdigest() if data else ""


def document_of(
    state: State,
    promise: Promise,
    claim_digest: str,
    sources: Sequence[str],
    classes: ClassesSeen,
) -> dict[str, Json]:
    """The document, with its digest."""
    body = {
        "format": FORMAT,
        "schema": SCHEMA,
        "certificate": claim_digest,
        "delta": promise.delta,
        "false_alarms": promise.text,
        "rows": state.rows,
        "labels": state.labels,
        "seen": list(state.seen),
        "wealth": [_written(one) for one in state.wealth],
        "history": {
            "labels": state.history.labels,
            "stride": state.history.stride,
            "peaks": _numbers(state.history.peaks),
        },
        "alarms": [
            {"label": rung.label, "evidence": encode_float(rung.evidence), "place": rung.place}
            for rung in state.rung
        ],
        "sources": list(sources),
        "classes": classes.to_dict(),
    }
    return {**body, "digest": documents.digest(body)}


def promise_of(
    document: Mapping[str, Json],
    claim_digest: str,
    name: str,
    layout: tuple[str, int, str] = (FORMAT, SCHEMA, WHAT),
) -> Promise:
    """What the state in a document promises, once the document is seen to be whole and of this
    certificate; `layout` is its format, its schema, and what it is called.
    """
    expected, schema, what = layout
    if document.get("format") != expected:
        raise CertificateError(
            f"{name} is not {what}: its format is {documents.shown(document.get('format'))}."
        )
    if type(document.get("schema")) is not int or document["schema"] != schema:
        raise CertificateError(
            f"{name} has schema {documents.shown(document.get('schema'))}: this version reads "
            f"{schema}. Upgrade pacbound."
        )
    body = {key: value for key, value in document.items() if key != "digest"}
    if document.get("digest") != documents.digest(body):
        raise CertificateError(
            f"{name} was changed after it was written: its digest does not match. {_REMEDY}"
        )
    if document.get("certificate") != claim_digest:
        raise CertificateError(
            f"{name} is of another certificate ({documents.shown(document.get('certificate'))}, "
            f"not {claim_digest}): labels of one say nothing about the other. Name the certificate "
            "that it was begun with, or begin anew with another file."
        )
    part = Reader(document, name)
    return Promise.of(part.probability("delta"), part.text("false_alarms"))


def state_of(
    document: Mapping[str, Json], clock: Clock, name: str
) -> tuple[State, tuple[str, ...], ClassesSeen]:
    """The state in a document that is whole, the sources that it has taken in, and what was seen of
    classes.
    """
    part = Reader(document, name)
    watch = clock.watch
    seen, labels, rows = part.integers("seen"), part.count("labels"), part.count("rows")
    wealth = part.mappings("wealth")
    if (
        len(seen) != len(watch.outcomes)
        or min(seen) < 0
        or sum(seen) != labels
        # A row brings at most one label in each place.
        or rows * len(watch.bets) < labels
        or len(wealth) != len(watch.bets)
    ):
        raise CertificateError(f"{name} does not add up: no labels lead there. {_REMEDY}")
    ways = [_read_wealth(one, bets, clock) for one, bets in zip(wealth, watch.bets, strict=True)]
    history = _read_history(part.mapping("history"), labels)
    rung = [_read_alarm(one, labels, len(ways)) for one in part.mappings("alarms")]
    if sorted({one.label for one in rung}) != [one.label for one in rung] or (
        clock.promise.every is None and len(rung) > 1
    ):
        raise CertificateError(f"{part.place('alarms')} is not a rising list of labels. {_REMEDY}")
    state = State(rows, labels, tuple(seen), tuple(ways), history, tuple(rung))
    return state, tuple(part.texts("sources")), ClassesSeen.of(part.mapping("classes"))


def _written(wealth: Wealth) -> dict[str, Json]:
    if isinstance(wealth, Restarts):
        return {
            "restarts": wealth.restarts,
            "position": wealth.position,
            "wealth": _numbers(wealth.wealth),
        }
    return {
        "position": wealth.position,
        "product": _numbers(wealth.product),
        "total": _numbers(wealth.total),
    }


def _numbers(values: np.ndarray[Any, np.dtype[np.float64]]) -> list[Json]:
    return [encode_float(value) for value in values.tolist()]


def _read_wealth(part: Reader, bets: Bets, clock: Clock) -> Wealth:
    first = clock.promise.every is None
    position = part.count("position")
    if position >= (bets.block if first else bets.span):
        raise CertificateError(f"{part.place('position')} is {position}: beyond a block. {_REMEDY}")
    if first:
        return Restarts(part.count("restarts"), position, _read(part, "wealth", bets))
    product = _read(part, "product", bets)
    if not (product > 0).all():
        raise CertificateError(f"{part.place('product')} is not all above 0. {_REMEDY}")
    return RunningSums(position, product, _read(part, "total", bets))


def _read(part: Reader, key: str, bets: Bets) -> np.ndarray[Any, np.dtype[np.float64]]:
    values = np.array(part.numbers(key), dtype=np.float64)
    if values.size != bets.weights.size or not ((values >= 0) & (values < np.inf)).all():
        raise CertificateError(
            f"{part.place(key)} is not the wealth of {bets.weights.size} bets. {_REMEDY}"
        )
    return values


def _read_history(part: Reader, labels: int) -> History:
    known, stride = part.count("labels"), part.positive("stride")
    peaks = np.array(part.numbers("peaks"), dtype=np.float64)
    fits = peaks.size == -(-known // stride) <= MOST and known <= labels
    if not fits or stride & (stride - 1) or not (peaks >= 0).all():
        raise CertificateError(f"{part.place('peaks')} is not a history of labels. {_REMEDY}")
    return History(known, stride, peaks)


def _read_alarm(part: Reader, labels: int, places: int) -> Rung:
    rung = Rung(part.positive("label"), part.number("evidence"), part.count("place"))
    if rung.label > labels or rung.place >= places:
        raise CertificateError(f"{part.place('label')} is {rung.label} of {labels}. {_REMEDY}")
    return rung
