"""What a monitor has seen of the classes of its rows, so that labels which cannot be right are
refused.

A misspelt label makes every model wrong, so that nothing is lost, and the alarm would never ring.
In few rows a label that no model predicts is mostly a rare class. So labels are judged once there
are enough rows, by all rows since the monitor was begun.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

from pacbound.documents import Json, Reader
from pacbound.errors import CertificateError
from pacbound.tally.classes import Class, ClassRule, Evidence

ENOUGH: Final = 200
"""Rows from which on labels are judged."""


@dataclass(frozen=True)
class ClassesSeen:
    """What `rows` rows have shown."""

    rows: int = 0
    evidence: Evidence = field(default_factory=Evidence)

    def after(self, fresh: Evidence, rows: int, rule: ClassRule, labels: str) -> ClassesSeen:
        """With what more rows have shown, if their labels can be right."""
        together = Evidence()
        together.add(self.evidence)
        together.add(fresh)
        if self.rows + rows >= ENOUGH:
            together.check(rule, self.rows + rows, labels)
        return ClassesSeen(self.rows + rows, together)

    def to_dict(self) -> dict[str, Json]:
        """As strict JSON holds it."""
        seen = self.evidence
        return {
            "rows": self.rows,
            "predicted": {model: _listed(found) for model, found in seen.predicted.items()},
            "labelled": _listed(seen.labelled),
            "unmatched": [[found, seen.unmatched[found]] for found in _listed(seen.unmatched)],
            "gained": [[found, seen.gained[found]] for found in _listed(seen.gained)],
            "slow": seen.slow,
        }

    @classmethod
    def of(cls, part: Reader) -> ClassesSeen:
        """From a document."""
        predicted = part.mapping("predicted")
        evidence = Evidence(
            {model: _read(predicted, model) for model in part.raw("predicted")},
            _read(part, "labelled"),
            _counts(part, "unmatched"),
            _counts(part, "gained"),
            part.optional_text("slow"),
        )
        return cls(part.count("rows"), evidence)


def _listed(classes: Iterable[Class]) -> list[Class]:
    return sorted(classes, key=lambda found: (isinstance(found, str), found))


def _read(part: Reader, key: str) -> set[Class]:
    found = part.raw(key)
    if not isinstance(found, list) or not all(type(one) in (int, str) for one in found):
        raise CertificateError(f"{part.place(key)} is not a list of classes.")
    return set(found)


def _counts(part: Reader, key: str) -> Counter[Class]:
    pairs = part.raw(key)
    if not isinstance(pairs, list) or not all(
        isinstance(pair, list)
        and len(pair) == 2
        and type(pair[0]) in (int, str)
        and type(pair[1]) is int
        for pair in pairs
    ):
        raise CertificateError(f"{part.place(key)} is not a list of classes and their counts.")
    return Counter(dict(map(tuple, pairs)))
