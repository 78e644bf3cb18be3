"""A session as a file: what was fixed, whose rows they are, and the labels in the order in which
they came.

The file is written whole at each save, in one step, so a crash leaves the labels of the last save.
It holds no rows, only a digest of them: labels go with the rows that they were given for.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pacbound import documents
from pacbound.cascade.labelling.walks import SessionClaim
from pacbound.documents import Json, Reader
from pacbound.errors import CertificateError, InvalidValueError
from pacbound.file_locks import locked
from pacbound.procedures.cascade import NAMES
from pacbound.tally.classes import Class, ClassRule

FORMAT = "pacbound-label-session"
SCHEMA = 1
WHAT = "a pacbound label session"
LARGEST_FILE = 2**28
_LARGEST_CLASS = 2**63


@dataclass(frozen=True)
class SessionDocument:
    """All that a session file says."""

    rows: int
    digest: str
    sources: frozenset[str]
    asked: SessionClaim
    costs: tuple[float, ...] | None
    rule: ClassRule
    labels: Mapping[int, Class]
    declined: tuple[int, ...]

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write it to `path`, unless another session is there, or one that knows more."""
        body = self._body()
        with locked(path, wait=True):
            if Path(path).exists() and Path(path).is_file():
                self._require_same(SessionDocument.read(path), path)
            documents.write(path, documents.sealed(body))

    @classmethod
    def read(cls, path: str | os.PathLike[str]) -> SessionDocument:
        """The session in `path`, or a `CertificateError` that says why it cannot be read."""
        found = documents.read(path, WHAT, largest=LARGEST_FILE)
        remedy = "A session is changed only by telling it labels."
        documents.require_seal(found, str(path), WHAT, FORMAT, SCHEMA, remedy)
        return cls._of(Reader(found, str(path)))

    @classmethod
    def _of(cls, body: Reader) -> SessionDocument:
        asked, rows = body.mapping("asked"), body.mapping("rows")
        told, classes = body.integers("labelled"), _classes(body, "labels")
        if len(told) != len(classes) or len(set(told)) != len(told):
            raise CertificateError(f"{body.place('labels')} does not fit the rows with a label.")
        costs = None if asked.raw("costs") is None else tuple(asked.numbers("costs"))
        listed = None if asked.raw("classes") is None else _classes(asked, "classes")
        return cls(
            rows=rows.positive("count"),
            digest=rows.text("digest"),
            sources=frozenset(rows.texts("sources")),
            asked={
                "xi": asked.rate("xi"),
                "delta": asked.probability("delta"),
                "bound": asked.choice("bound", tuple(NAMES)),
            },
            costs=costs,
            rule=ClassRule.of(listed, _classes(asked, "missing"), asked.number("unseen_labels")),
            labels=dict(zip(told, classes, strict=True)),
            declined=tuple(body.integers("declined")),
        )

    def _body(self) -> dict[str, Json]:
        for row, label in self.labels.items():
            if isinstance(label, int) and abs(label) >= _LARGEST_CLASS:
                raise InvalidValueError(
                    f"The label of row {row} is {label}, which is too large for a file: expected "
                    "classes below 2**63."
                )
        rule = self.rule
        return {
            "format": FORMAT,
            "schema": SCHEMA,
            "rows": {"count": self.rows, "digest": self.digest, "sources": sorted(self.sources)},
            "asked": {
                **self.asked,
                "costs": None if self.costs is None else list(self.costs),
                "classes": None if rule.classes is None else _ordered(rule.classes),
                "missing": _ordered(rule.missing),
                "unseen_labels": rule.unseen_labels,
            },
            "labelled": list(self.labels),
            "labels": list(self.labels.values()),
            "declined": list(self.declined),
        }

    def _require_same(self, there: SessionDocument, path: str | os.PathLike[str]) -> None:
        """Refuse to replace a session of other rows or another claim, or labels that this one does
        not have.
        """
        if there.digest != self.digest:
            raise InvalidValueError(
                f"{path} holds the session of other rows, and stays as it is: name another file."
            )
        if there.fixed != self.fixed:
            raise InvalidValueError(
                f"{path} holds a session of the same rows that asked for something else "
                f"({_shown(there.asked)}; here {_shown(self.asked)}), and stays as it is. What is "
                "asked for may not change once labels were seen."
            )
        known = {*self.declined, *self.labels}
        if not there.labels.items() <= self.labels.items() or not known.issuperset(there.declined):
            raise InvalidValueError(
                f"{path} holds labels that this session does not have, and stays as it is: another "
                "process may be telling it labels. Load it, and tell it these."
            )

    @property
    def fixed(self) -> tuple[Any, ...]:
        """What was fixed before any label was seen."""
        return self.asked, self.costs, self.rule


def _classes(reader: Reader, key: str) -> list[Class]:
    found = reader.raw(key)
    if not isinstance(found, list) or not all(type(value) in (int, str) for value in found):
        raise CertificateError(f"{reader.place(key)}: expected a list of numbers and names.")
    return found


def _ordered(classes: frozenset[Class]) -> list[Class]:
    return sorted(classes, key=lambda found: (isinstance(found, str), found))


def _shown(asked: SessionClaim) -> str:
    return f"xi = {asked['xi']}, delta = {asked['delta']}, bound {asked['bound']!r}"
