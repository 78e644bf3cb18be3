"""The state of a monitor as a document: exact, digested, and bound to one certificate.

Floats are written in the digits that read back as the same bits. A document that was cut short or
changed, or that belongs to another certificate, is refused, and so is one that no labels could have
led to.
"""

from __future__ import annotations

import hashlib
import os
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any, Final

import numpy as np

from pacbound import documents
from pacbound.documents import Json, Reader, encode_float
from pacbound.errors import CertificateError, InvalidValueError
from pacbound.file_locks import locked
from pacbound.monitor.state import (
    MOST_STRETCHES,
    ClassesSeen,
    Clock,
    Floats,
    History,
    Promise,
    Rung,
    State,
    Wealth,
)
from pacbound.stats.betting import Bets, Restarts, RunningSums
from pacbound.tally.classes import Class, Evidence
from pacbound.tally.document import names_from_text, names_to_text
from pacbound.tally.draws import Numbers
from pacbound.tally.keyed_numbers import seed_from, seed_to_json

ONE: Final = "pacbound-monitor"
SEVERAL: Final = "pacbound-monitor-bundle"
# The formats of a state, and what a message calls them.
CALLED: Final = {ONE: "the state of a monitor", SEVERAL: "the state of the monitors of a bundle"}

_SCHEMA: Final = 1
# A calibration with many groups has bets for each of their bins.
_LARGEST_FILE: Final = 2**30
_REMEDY: Final = "Restore an intact copy of the state, or begin anew with another file."


# ---- files


def read(path: str | os.PathLike[str], layout: str) -> dict[str, Json]:
    """The document in a file, of a format."""
    return documents.read(path, CALLED[layout], largest=_LARGEST_FILE)


def certificate_of_state(path: str | os.PathLike[str]) -> tuple[str, str]:
    """The digest of the certificate that the state of a monitor, in a file, belongs to; and whether
    it is that of one claim, or of several.
    """
    document = read(path, ONE)
    layout = SEVERAL if document.get("format") == SEVERAL else ONE
    promise_of(document, layout, os.fspath(path))
    return str(document.get("certificate")), layout


def replace_known(
    path: str | os.PathLike[str],
    document: Mapping[str, Json],
    known: dict[str, str],
    read_back: Callable[[dict[str, Json]], object],
) -> None:
    """Write a document, unless there is a file that this monitor has neither read nor written, or
    that somebody else has written since; `known` has the digests of the others, by their places;
    and `read_back` raises if the document cannot be read again.
    """
    place = os.path.realpath(path)
    with locked(path, wait=True):
        found = bytes_digest(path)
        if found and place not in known:
            raise InvalidValueError(
                f"{os.fspath(path)} is there already, and this monitor has not read it: what "
                "it holds would be lost. If it is a state of this monitor, load it first; else "
                "name another file, or delete it."
            )
        if found and found != known[place]:
            raise InvalidValueError(
                f"{os.fspath(path)} was written by another process since this monitor read or "
                "wrote it, and stays as it is: what that one took in would be lost. Load it "
                "again, and take in what is new. To keep others out, hold locked(path, "
                "wait=True) from load to save."
            )
        documents.write(path, document, read=read_back, largest=_LARGEST_FILE)
        known[place] = bytes_digest(path)


def bytes_digest(path: str | os.PathLike[str]) -> str:
    """What names the bytes of a file; nothing where there are none."""
    found = Path(path)
    data = found.read_bytes() if found.is_file() else b""
    return hashlib.sha256(data).hexdigest() if data else ""


# ---- documents


def document_of(
    layout: str, claim_digest: str, promise: Promise, state: Mapping[str, Json]
) -> dict[str, Json]:
    """The document of a state, with its digest."""
    body = {
        "format": layout,
        "schema": _SCHEMA,
        "certificate": claim_digest,
        "delta": promise.delta,
        "false_alarms": promise.text,
        **state,
    }
    return documents.sealed(body)


def promise_of(document: Mapping[str, Json], layout: str, name: str) -> Promise:
    """What the state in a document promises, once the document is seen to be whole."""
    what = CALLED[layout]
    if not isinstance(document, Mapping):
        raise CertificateError(f"{name} is not {what}.")
    documents.require_seal(document, name, what, layout, _SCHEMA, _REMEDY)
    part = Reader(document, name)
    return Promise.of(part.probability("delta"), part.text("false_alarms"))


def require_same_certificate(document: Mapping[str, Json], claim_digest: str, name: str) -> None:
    """Raise if a document belongs to another certificate."""
    if document.get("certificate") != claim_digest:
        raise CertificateError(
            f"{name} is of another certificate ({documents.shown(document.get('certificate'))}, "
            f"not {claim_digest}): labels of one say nothing about the other. Name the certificate "
            "that it was begun with, or begin anew with another file."
        )


# ---- states


def written(state: State) -> dict[str, Json]:
    """A state as strict JSON holds it."""
    return {
        "rows": state.rows,
        "labels": state.labels,
        "seen": list(state.seen),
        "wealth": list(map(_plain, state.wealth)),
        "history": _plain(state.history),
        "alarms": list(map(_plain, state.rung)),
        "sources": list(state.sources),
        "classes": _written_classes(state.classes),
        **({"clusters": names_to_text(state.used)} if state.used.size else {}),
        **({} if state.seed is None else {"seed": seed_to_json(state.seed)}),
    }


def read_state(part: Reader, clock: Clock) -> State:
    """The state in a document that is whole."""
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
        raise CertificateError(
            f"{part.place('labels')} does not add up: no labels lead there. {_REMEDY}"
        )
    rung = [_read_alarm(one, labels, len(wealth)) for one in part.mappings("alarms")]
    at = [one.label for one in rung]
    if sorted(set(at)) != at or (clock.promise.every is None and len(rung) > 1):
        raise CertificateError(f"{part.place('alarms')} is not a rising list of labels. {_REMEDY}")
    return State(
        rows,
        labels,
        tuple(seen),
        tuple(_read_wealth(one, bets, clock) for one, bets in zip(wealth, watch.bets, strict=True)),
        _read_history(part.mapping("history"), labels),
        tuple(rung),
        tuple(part.texts("sources")),
        _read_classes(part.mapping("classes")),
        _read_clusters(part),
        _read_seed(part, clock),
    )


def _read_seed(part: Reader, clock: Clock) -> int | None:
    if part.has("seed") != (clock.seed is not None):
        raise CertificateError(
            f"{part.place('seed')} is there for a certificate about clusters, and only then: it "
            f"draws one row of each. {_REMEDY}"
        )
    return seed_from(part) if part.has("seed") else None


def _read_clusters(part: Reader) -> Numbers:
    try:
        used = names_from_text(part.text("clusters") if part.has("clusters") else "")
    except ValueError:
        used = np.zeros(2, dtype=np.uint64)
    if (used[1:] == used[:-1]).any():
        raise CertificateError(
            f"{part.place('clusters')} are not the clusters that were used, each once and in "
            f"order. {_REMEDY}"
        )
    return used


def _plain(part: Wealth | History | Rung) -> dict[str, Json]:
    """The fields of a part of the state, by their names."""
    return {one.name: _plain_value(getattr(part, one.name)) for one in fields(part)}


def _plain_value(value: Any) -> Json:
    if isinstance(value, np.ndarray):
        return [encode_float(one) for one in value.tolist()]
    return encode_float(value) if isinstance(value, float) else value


def _read_wealth(part: Reader, bets: Bets, clock: Clock) -> Wealth:
    first = clock.promise.every is None
    position = part.count("position")
    if position >= (bets.block if first else bets.span):
        raise CertificateError(f"{part.place('position')} is {position}: beyond a block. {_REMEDY}")
    if first:
        return Restarts(part.count("restarts"), position, _read_bets(part, "wealth", bets))
    product = _read_bets(part, "product", bets)
    if not (product > 0).all():
        raise CertificateError(f"{part.place('product')} is not all above 0. {_REMEDY}")
    return RunningSums(position, product, _read_bets(part, "total", bets))


def _read_bets(part: Reader, key: str, bets: Bets) -> Floats:
    values = np.array(part.numbers(key), dtype=np.float64)
    if values.size != bets.weights.size or not ((values >= 0) & (values < np.inf)).all():
        raise CertificateError(
            f"{part.place(key)} is not the wealth of {bets.weights.size} bets. {_REMEDY}"
        )
    return values


def _read_history(part: Reader, labels: int) -> History:
    known, stride = part.count("labels"), part.positive("stride")
    peaks = np.array(part.numbers("peaks"), dtype=np.float64)
    fits = peaks.size == -(-known // stride) <= MOST_STRETCHES and known <= labels
    if not fits or stride & (stride - 1) or not (peaks >= 0).all():
        raise CertificateError(f"{part.place('peaks')} is not a history of labels. {_REMEDY}")
    return History(known, stride, peaks)


def _read_alarm(part: Reader, labels: int, places: int) -> Rung:
    rung = Rung(part.positive("label"), part.number("evidence"), part.count("place"))
    if rung.label > labels or rung.place >= places:
        raise CertificateError(f"{part.place('label')} is {rung.label} of {labels}. {_REMEDY}")
    return rung


def _written_classes(classes: ClassesSeen) -> dict[str, Json]:
    seen = classes.evidence
    return {
        "rows": classes.rows,
        "predicted": {model: _sorted(found) for model, found in seen.predicted.items()},
        "labelled": _sorted(seen.labelled),
        "unmatched": [[found, seen.unmatched[found]] for found in _sorted(seen.unmatched)],
        "gained": [[found, seen.gained[found]] for found in _sorted(seen.gained)],
        "slow": seen.slow,
    }


def _sorted(classes: Iterable[Class]) -> list[Class]:
    return sorted(classes, key=lambda found: (isinstance(found, str), found))


def _read_classes(part: Reader) -> ClassesSeen:
    predicted = part.mapping("predicted")
    evidence = Evidence(
        {model: set(predicted.classes(model)) for model in predicted.names()},
        set(part.classes("labelled")),
        _counts_at(part, "unmatched"),
        _counts_at(part, "gained"),
        part.optional_text("slow"),
    )
    return ClassesSeen(part.count("rows"), evidence)


def _counts_at(part: Reader, key: str) -> Counter[Class]:
    pairs: Any = part.raw(key)
    if not isinstance(pairs, list) or not all(map(_is_counted, pairs)):
        raise CertificateError(f"{part.place(key)} is not a list of classes and their counts.")
    return Counter(dict(map(tuple, pairs)))


def _is_counted(pair: Any) -> bool:
    types = [type(one) for one in pair] if isinstance(pair, list) else []
    return types in ([int, int], [str, int])
