"""The certificate as a document: a claim with its digest, its provenance with another, and how they
are verified.

The claim holds the integer counts that the decision follows from, so anyone can recompute it
without the data. The digest detects change; it is not a signature.
"""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cached_property
from html import escape
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from pacbound import documents
from pacbound.documents import Json
from pacbound.errors import CertificateError, PacboundError
from pacbound.stats.arguments import LARGEST_COUNT
from pacbound.version import VERSION

FORMAT = "pacbound-certificate"
SCHEMA = 1
TOLERANCE = 1e-7
"""Bounds recomputed elsewhere, by another SciPy, may differ in their last digits; integers and
thresholds may not."""

_LISTED_SOURCES = 1000


@dataclass(frozen=True)
class Verification:
    """What recomputing a certificate from its own counts found; true if it found nothing."""

    differences: tuple[str, ...] = ()

    @property
    def ok(self) -> bool:
        """Whether every value is what the counts imply and no digest is off."""
        return not self.differences

    def __bool__(self) -> bool:
        return self.ok

    def __str__(self) -> str:
        return (
            "verified"
            if self.ok
            else "NOT VERIFIED\n" + "\n".join(f"  {line}" for line in self.differences)
        )


@dataclass(frozen=True)
class Provenance:
    """Where a certificate comes from: no part of the claim, and not needed to verify it."""

    version: str
    created: str
    columns: Mapping[str, str] = field(default_factory=dict)
    sources: tuple[str, ...] = ()

    @classmethod
    def now(
        cls, sources: frozenset[str] = frozenset(), columns: Mapping[str, str] | None = None
    ) -> Self:
        """The provenance of a certificate made now from `sources`."""
        created = datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
        return cls(VERSION, created, dict(columns or {}), _listed(sources))

    def to_dict(self) -> dict[str, Json]:
        return {
            "package": "pacbound",
            "version": self.version,
            "created": self.created,
            "columns": dict(self.columns),
            "sources": list(self.sources),
        }

    @classmethod
    def from_dict(cls, document: Json) -> Self:
        """The provenance that a document holds."""
        part = Reader(document, "provenance")
        columns = part.mapping("columns")
        return cls(
            part.text("version"),
            part.text("created"),
            columns.all_texts(),
            tuple(part.texts("sources")),
        )


@dataclass(frozen=True, eq=False, kw_only=True)
class Certificate(ABC):
    """A claim about a classifier that can be recomputed from the counts it carries."""

    kind: ClassVar[str]
    provenance: Provenance
    loaded: Mapping[str, Json] | None = field(default=None, repr=False)

    @property
    @abstractmethod
    def certified(self) -> bool:
        """Whether the data support the claim; False is a refusal, and `summary` says what it would
        take.
        """

    @abstractmethod
    def claim(self) -> dict[str, Json]:
        """What is certified, with the counts it follows from; equal whichever engine counted."""

    @abstractmethod
    def recomputed(self) -> Certificate:
        """The certificate that the counts in this one imply, by the procedure it names."""

    @abstractmethod
    def summary(self) -> str:
        """The claim in words, for people."""

    @classmethod
    @abstractmethod
    def from_claim(cls, claim: Reader, provenance: Provenance, loaded: Mapping[str, Json]) -> Self:
        """The certificate that a document describes."""

    def to_dict(self) -> dict[str, Json]:
        """The whole document, as `save` writes it."""
        if self.loaded is not None:
            return dict(self.loaded)
        claim, provenance = self.claim(), self.provenance.to_dict()
        return {
            "format": FORMAT,
            "schema": SCHEMA,
            "claim": claim,
            "claim_digest": documents.digest(claim),
            "provenance": provenance,
            "provenance_digest": documents.digest(provenance),
        }

    @property
    def claim_digest(self) -> str:
        """SHA-256 of the claim: equal for equal counts, wherever and whenever they were counted."""
        return str(self.to_dict()["claim_digest"])

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the certificate to `path`; a crash leaves the old file or the new one, never half
        of one.
        """
        documents.write(path, self.to_dict())

    def verify(self) -> Verification:
        """Recompute every claim from the counts and list each difference.

        A changed value anywhere fails: either its recomputed value differs, or the digest of its
        part does. Verifying shows that the claim follows from the counts. It cannot show that the
        counts are those of the data.
        """
        document = self.to_dict()
        lines = []
        for part in ("claim", "provenance"):
            actual = documents.digest(document[part])
            if document[f"{part}_digest"] != actual:
                lines.append(
                    f"{part}_digest: stored {document[f'{part}_digest']}, but the {part} has "
                    f"{actual}: it was changed"
                )
        try:
            expected = self.recomputed().claim()
        except PacboundError as error:
            return Verification((*lines, f"claim: cannot be recomputed: {error}"))
        return Verification(
            tuple(
                lines
                + documents.differences(document["claim"], expected, "claim", tolerance=TOLERANCE)
            )
        )

    def require_intact(self) -> None:
        """Raise if the document was changed after it was written; look-ups call this, so that a
        changed file is never used.
        """
        if not self._intact:
            raise CertificateError(
                "This certificate was changed after it was written; verify() lists what differs. "
                "Do not use it."
            )

    @cached_property
    def _intact(self) -> bool:
        return self.loaded is None or self.loaded["claim_digest"] == documents.digest(
            self.loaded["claim"]
        )

    def __repr__(self) -> str:
        return (
            self.summary()
            if self._intact
            else f"CHANGED AFTER IT WAS WRITTEN, not to be used:\n{self.summary()}"
        )

    def _repr_html_(self) -> str:
        return f"<pre>{escape(self.summary())}</pre>"


class Reader:
    """Takes values out of a parsed document, naming the place of anything that is not what it
    should be.
    """

    def __init__(self, document: Json, where: str) -> None:
        if not isinstance(document, dict):
            raise CertificateError(
                f"{where} is {documents.shown(document)}: expected a JSON object."
            )
        self._document = document
        self._where = where

    def all_texts(self) -> dict[str, str]:
        """Every value, each of which must be a string."""
        return {key: self.text(key) for key in self._document}

    def place(self, key: str) -> str:
        """Where `key` stands in the document."""
        return f"{self._where}.{key}"

    def raw(self, key: str) -> Json:
        """The value of `key`, whatever it is."""
        if key not in self._document:
            raise CertificateError(f"{self.place(key)} is missing.")
        return self._document[key]

    def mapping(self, key: str) -> Reader:
        return Reader(self.raw(key), self.place(key))

    def mappings(self, key: str) -> list[Reader]:
        return [Reader(item, f"{self.place(key)}[{i}]") for i, item in enumerate(self._list(key))]

    def text(self, key: str) -> str:
        return str(self._typed(self.raw(key), str, self.place(key)))

    def texts(self, key: str) -> list[str]:
        return [
            str(self._typed(item, str, f"{self.place(key)}[{i}]"))
            for i, item in enumerate(self._list(key))
        ]

    def flag(self, key: str) -> bool:
        return bool(self._typed(self.raw(key), bool, self.place(key)))

    def integer(self, key: str) -> int:
        return int(self._typed(self.raw(key), int, self.place(key)))

    def optional_integer(self, key: str) -> int | None:
        return None if self.raw(key) is None else self.integer(key)

    def count(self, key: str) -> int:
        """An integer from 0."""
        value = self._bounded(self.integer(key), self.place(key))
        if value < 0:
            raise CertificateError(f"{self.place(key)} is {value}: expected at least 0.")
        return value

    def positive(self, key: str) -> int:
        """A count of at least one."""
        value = self.count(key)
        if value < 1:
            raise CertificateError(f"{self.place(key)} is {value}: expected at least 1.")
        return value

    def table(self, key: str) -> NDArray[np.int64]:
        """A list of lists of integers, all of one length."""
        rows = [
            Reader({"row": row}, f"{self.place(key)}[{i}]").integers("row")
            for i, row in enumerate(self._list(key))
        ]
        if not rows or len({len(row) for row in rows}) != 1:
            raise CertificateError(
                f"{self.place(key)} is not a table: expected lists of one length."
            )
        return np.array(rows, dtype=np.int64)

    def probability(self, key: str) -> float:
        """A number strictly between 0 and 1."""
        return self._between(
            key, "a failure probability, 0 < value < 1", lambda value: 0 < value < 1
        )

    def rate(self, key: str) -> float:
        """A number from 0 up to but not including 1."""
        return self._between(key, "a rate, 0 <= value < 1", lambda value: 0 <= value < 1)

    def integers(self, key: str) -> list[int]:
        """A list of integers that int64 and float64 hold exactly."""
        places = ((f"{self.place(key)}[{i}]", item) for i, item in enumerate(self._list(key)))
        return [self._bounded(int(self._typed(item, int, where)), where) for where, item in places]

    def number(self, key: str) -> float:
        return documents.decode_float(self.raw(key), self.place(key))

    def numbers(self, key: str) -> list[float]:
        return [
            documents.decode_float(item, f"{self.place(key)}[{i}]")
            for i, item in enumerate(self._list(key))
        ]

    def choice(self, key: str, allowed: tuple[str, ...]) -> Any:
        value = self.text(key)
        if value not in allowed:
            raise CertificateError(
                f"{self.place(key)} is {value!r}: expected one of {', '.join(allowed)}."
            )
        return value

    def _between(self, key: str, what: str, legal: Callable[[float], bool]) -> float:
        value = self.number(key)
        if not legal(value):
            raise CertificateError(f"{self.place(key)} is {value}: expected {what}.")
        return value

    @staticmethod
    def _bounded(value: int, where: str) -> int:
        if abs(value) > LARGEST_COUNT:
            raise CertificateError(f"{where} is {value}: expected at most 2**53.")
        return value

    def _list(self, key: str) -> list[Json]:
        value = self.raw(key)
        if not isinstance(value, list):
            raise CertificateError(
                f"{self.place(key)} is {documents.shown(value)}: expected a list."
            )
        return value

    @staticmethod
    def _typed(value: Json, kind: type, where: str) -> Json:
        if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
            raise CertificateError(
                f"{where} is {documents.shown(value)}: expected {kind.__name__}."
            )
        return value


def likelihood(delta: float) -> str:
    """1 - `delta` as people read it: in digits where few of them are exact, never rounded up."""
    text = f"{1 - delta:.6g}"
    return text if float(text) == 1 - delta else f"1 - {delta:g}"


def _listed(sources: frozenset[str]) -> tuple[str, ...]:
    """All sources, or, where they are too many to list, one digest over them."""
    names = sorted(sources)
    return (
        tuple(names)
        if len(names) <= _LISTED_SOURCES
        else (f"{len(names)} sources, {documents.digest(names)}",)
    )
