"""Every way in which one value of a certificate is changed, and certificates glued from others.

A change leaves a document whose digests fit it, so that only what the values say can give it away.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from itertools import combinations
from typing import Any

from pacbound import documents, exact_verifier
from pacbound.claims.certificate import certificate_from_dict
from pacbound.errors import CertificateError

Document = dict[str, Any]
Place = tuple[Any, ...]
DROPPED = object()
"""In place of a value: its key, or its item of a list, is left out."""


def copied(document: Document) -> Document:
    found: Document = json.loads(json.dumps(document))
    return found


def mended(document: Document) -> Document:
    """The document with digests that fit it, where it has them and they can be taken."""
    for part in ("claim", "provenance"):
        if f"{part}_digest" in document and part in document:
            document[f"{part}_digest"] = exact_verifier.digest(document[part])
    if "counts_digest" in document:
        try:
            claim = exact_verifier.Part(document["claim"], "claim")
            document["counts_digest"] = exact_verifier.counts_digest(claim)
        except (exact_verifier.UnreadableError, KeyError, TypeError):
            pass  # Such a claim has no counts to take a digest of, and is unreadable.
    return document


def said_by_package(document: Document) -> list[str]:
    """What the package finds wrong, or why it does not read the document."""
    try:
        read = documents.parse(json.dumps(document).encode(), what="a certificate", name="it")
        return list(certificate_from_dict(read).verify().differences)
    except CertificateError as error:
        return [str(error)]


def said_by_verifier(document: Document) -> list[str]:
    """What the verifier of the standard library finds wrong, or why it does not read it."""
    try:
        read = exact_verifier.parse(json.dumps(document).encode())
        return exact_verifier.check_document(read).wrong
    except exact_verifier.UnreadableError as error:
        return [str(error)]


def places(value: Any, *place: Any, items: int) -> Iterator[Place]:
    """The places of all values, also of objects and lists; of a list at most so many items, evenly
    spaced, the first and the last among them.
    """
    if place:
        yield place
    if isinstance(value, dict):
        for key in value:
            yield from places(value[key], *place, key, items=items)
    elif isinstance(value, list):
        last = len(value) - 1
        for i in sorted(
            {round(last * j / max(items - 1, 1)) for j in range(items)} if value else ()
        ):
            yield from places(value[i], *place, i, items=items)


def at(document: Any, place: Place) -> Any:
    for key in place:
        document = document[key]
    return document


def others(value: Any) -> Iterator[Any]:
    """What a value is changed to."""
    yield from (DROPPED, None)
    if isinstance(value, bool):
        yield from (not value, int(value), str(value).lower())
    elif isinstance(value, int):
        yield from (
            value + 1,
            value - 1,
            -value,
            2 * value + 7,
            float(value),
            value > 0,
            str(value),
        )
        yield from (2**53, 2**53 + 1, 10**19, math.nextafter(value, math.inf), "+inf")
    elif isinstance(value, float):
        yield from (math.nextafter(value, math.inf), math.nextafter(value, -math.inf))
        yield from (value * (1 + 1e-7), value * (1 - 1e-7), value * (1 + 2e-8), value * 0.99)
        yield from (-value, value + 1.0, 1e300, 5e-324, 0.0, 1.0, "+inf", "-inf", repr(value))
        yield from (round(value), True)
    elif isinstance(value, str):
        yield from ("", value + "x", value[:-1], value.upper(), value.replace("a", "\u0430"))
        yield from (value + "\ud800", "+inf", "-inf", "inf", 0.5, 1, [value])
    elif value is None:
        yield from (0, 1, 0.5, "", "none", False, {}, [])
    elif isinstance(value, list):
        yield from ([], {}, value + value[-1:], value[::-1], value[1:], [value], "list")
        yield value[:1] * len(value)
    elif isinstance(value, dict):
        yield from ({}, [], {**value, "more": 1}, [value], "object")


def same(one: Any, two: Any) -> bool:
    """Whether both are written the same."""
    return json.dumps(one, sort_keys=True) == json.dumps(two, sort_keys=True)


def changed(document: Document, place: Place, value: Any) -> Document:
    """The document with another value at a place, and digests that fit it."""
    found = copied(document)
    holder = at(found, place[:-1])
    if value is DROPPED:
        del holder[place[-1]]
    else:
        holder[place[-1]] = copied(value) if isinstance(value, dict) else value
    return found if place[0] not in ("claim", "provenance") else mended(found)


def changes(document: Document, *, items: int) -> Iterator[tuple[Place, Any]]:
    """Every place and what it is changed to."""
    for place in places(document, items=items):
        value = at(document, place)
        for other in others(value):
            if other is DROPPED or not same(value, other):
                yield place, other


def glued(one: Document, two: Document) -> Iterator[tuple[Place, Document]]:
    """The first certificate with a part of the second in place of its own, part by part."""
    for place in places(one, items=3):
        if place[0] != "claim" and place != ("provenance",):
            continue
        try:
            part = at(two, place)
        except (KeyError, IndexError, TypeError):
            continue
        if isinstance(part, (dict, list)) and not same(part, at(one, place)):
            yield place, changed(one, place, part)


def exchanged(document: Document) -> Iterator[tuple[Place, Document]]:
    """A certificate two parts of which, in one list or one object, have changed places."""
    for place in places(document["claim"], "claim", items=4):
        value = at(document, place)
        keys: list[Any] = list(value) if isinstance(value, dict) else []
        if isinstance(value, list):
            keys = list(range(len(value)))
        for first, second in combinations(keys[:8], 2):
            a, b = value[first], value[second]
            if isinstance(a, (dict, list)) and type(a) is type(b) and not same(a, b):
                found = copied(document)
                holder = at(found, place)
                holder[first], holder[second] = holder[second], holder[first]
                yield (*place, first, second), mended(found)
