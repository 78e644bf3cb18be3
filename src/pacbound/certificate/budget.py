"""A budget of delta for each data set: how much of it claims have spent, kept in a file.

Every claim on the same rows is another chance to be wrong. If a data set may be wrong about with
probability delta in all, the shares of all claims that were ever made on it must add up to no more
than that (see `pacbound.procedures.union`). The file remembers what was spent on which rows, which
are known by their fingerprints, and is locked while it is read and written.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from math import nextafter
from pathlib import Path
from typing import Any

from pacbound import documents
from pacbound.certificate.document import Certificate, Provenance, exact
from pacbound.documents import Json, Reader
from pacbound.errors import CertificateError, InvalidTypeError, InvalidValueError, OverspentError
from pacbound.file_locks import locked
from pacbound.procedures import union
from pacbound.stats.arguments import failure_probability
from pacbound.tally.tally import Tally

FORMAT = "pacbound-budget"
_FINGERPRINT = "sha256:"


@dataclass(frozen=True)
class Look:
    """One claim that was paid for.

    Attributes
    ----------
    delta : float
        What it cost.
    sources : tuple of str
        The fingerprints of its rows.
    claim : str
        The digest that it is known by again; empty for a tally, each of whose spendings is a look
        of its own.
    what : str or None
        The kind of certificate, or that it was a tally; None in files of older versions.
    """

    delta: float
    sources: tuple[str, ...]
    claim: str
    what: str | None = None

    def to_dict(self) -> dict[str, Json]:
        """As the file holds it."""
        named = {} if self.what is None else {"what": self.what}
        return {"delta": self.delta, "sources": list(self.sources), "claim": self.claim, **named}


@dataclass(frozen=True)
class SpentOnRows:
    """What was spent on the rows of one source, and what is left for them.

    Attributes
    ----------
    source : str
        The fingerprint of the rows.
    spent, left : float
        The sum of what was spent, and what may still be, rounded down.
    looks : tuple of Look
        The claims that it was spent on, the oldest first.
    """

    source: str
    spent: float
    left: float
    looks: tuple[Look, ...]


class Budget:
    """Refuses claims that would spend more than `delta` on the same rows.

    If every claim on some rows is spent from one budget before it is used, and what each claim
    assumes holds, then all claims on these rows are right at once with probability at least 1 -
    `delta`. It can only know of what is spent: a look that is not counted is not noticed.

    Rows are known by the fingerprints of their files or arrays. Frames have none, and are refused.
    The same claim again, with the same counts, costs nothing: it is the same look.

    Parameters
    ----------
    path
        The file. It is made if it is not there, and locked while something is spent: several
        processes may use it at once.
    delta
        What may be spent on the same rows in all; may be left out if the file is there, and must
        agree with it.

    Raises
    ------
    InvalidValueError
        If the file is there and has another `delta`, or is not there and none is passed.
    CertificateError
        If the file is not a budget.

    Examples
    --------
    >>> import numpy as np
    >>> from pacbound import calibrate
    >>> rng = np.random.default_rng(0)
    >>> confidence = rng.uniform(size=500)
    >>> correct = rng.random(500) < confidence
    >>> budget = Budget("budget.json", delta=0.05)
    >>> first = calibrate(confidence, correct, delta=0.03)
    >>> budget.spend(first)
    0.02
    >>> budget.spend(calibrate(confidence, correct, delta=0.03, n_bins=10))
    Traceback (most recent call last):
        ...
    pacbound.errors.OverspentError: 0.03 of 0.05 is spent on the rows ..., and 0.03 more ...
    >>> budget.spend(first)  # the same claim is the same look
    0.02
    """

    def __init__(self, path: str | os.PathLike[str], *, delta: float | None = None) -> None:
        self._path = Path(path)
        level = None if delta is None else failure_probability(delta)
        with locked(self._path, wait=True):
            if not self._path.exists():
                if level is None:
                    raise InvalidValueError(
                        f"There is no budget {path}: pass delta, what may be spent in all."
                    )
                self._write(level, ())
            self.delta, _ = self._read()
        if level is not None and level != self.delta:
            raise InvalidValueError(
                f"The budget {path} is of delta = {exact(self.delta)}, not {exact(level)}: leave "
                "it out, or use another file for other data. To raise it after a look voids it."
            )

    def spend(self, what: Certificate | Tally, delta: float | None = None) -> float:
        """Spend the delta of a claim, or refuse it.

        Parameters
        ----------
        what
            A certificate, whose own delta is spent; or a tally, before it is certified.
        delta
            For a tally: what the claims on it will spend.

        Returns
        -------
        float
            What is left for these rows, rounded down. For rows of several sources, of the one that
            most was spent on.

        Raises
        ------
        OverspentError
            If more than the budget would be spent on the rows of one source. Nothing is spent then,
            and the claim must not be used.
        InvalidValueError
            If the rows have no fingerprint, or too many to be listed.
        InvalidTypeError
            If `what` is neither, or `delta` is missing or not wanted.
        """
        look = _look(what, delta)
        with locked(self._path, wait=True):
            total, looks = self._read()
            if not any(_is_same(look, other) for other in looks):
                self._require_room(look, total, looks)
                looks = (*looks, look)
                self._write(total, looks)
        return _rounded_down(
            min(union.written(total) - _spent(source, looks) for source in look.sources)
        )

    def spent(self, what: Certificate | Tally) -> float:
        """What was spent on the rows of a certificate or a tally; of several sources, on the one
        that most was spent on.

        Parameters
        ----------
        what
            A certificate or a tally.

        Returns
        -------
        float
            The sum of what was spent.
        """
        with locked(self._path, wait=True):
            _, looks = self._read()
        return float(max(_spent(source, looks) for source in _sources(what)))

    def by_source(self) -> tuple[SpentOnRows, ...]:
        """What was spent on the rows of each source, and what is left for them.

        Returns
        -------
        tuple of SpentOnRows
            One for each source that something was spent on, the oldest first.
        """
        with locked(self._path, wait=True):
            total, looks = self._read()
        sources = dict.fromkeys(source for look in looks for source in look.sources)
        return tuple(
            SpentOnRows(
                source,
                float(_spent(source, looks)),
                _rounded_down(union.written(total) - _spent(source, looks)),
                tuple(look for look in looks if source in look.sources),
            )
            for source in sources
        )

    def _require_room(self, look: Look, total: float, looks: Sequence[Look]) -> None:
        for source in look.sources:
            before = _spent(source, looks)
            if before + union.written(look.delta) > union.written(total):
                raise OverspentError(
                    f"{exact(float(before))} of {exact(total)} is spent on the rows "
                    f"{source[:19]}…, and {exact(look.delta)} more would be too much: this claim "
                    "must not be used. Claim less, or collect new rows."
                )

    def _read(self) -> tuple[float, tuple[Look, ...]]:
        document = documents.read(self._path, "a pacbound budget")
        body = {key: value for key, value in document.items() if key != "digest"}
        part = Reader(document, str(self._path))
        if part.text("format") != FORMAT or part.integer("schema") != 1:
            raise CertificateError(f"{self._path} is not a budget that this version reads.")
        if part.text("digest") != documents.digest(body):
            raise CertificateError(
                f"{self._path} was changed after it was written: its digest does not match."
            )
        looks = tuple(
            Look(
                look.probability("delta"),
                tuple(look.texts("sources")),
                look.text("claim"),
                look.text("what") if "what" in look.names() else None,
            )
            for look in part.mappings("looks")
        )
        return part.probability("delta"), looks

    def _write(self, delta: float, looks: Sequence[Look]) -> None:
        body: dict[str, Json] = {
            "format": FORMAT,
            "schema": 1,
            "delta": delta,
            "looks": [look.to_dict() for look in looks],
        }
        documents.write(self._path, {**body, "digest": documents.digest(body)})


def _look(what: Any, delta: float | None) -> Look:
    if isinstance(what, Certificate):
        if delta is not None:
            raise InvalidTypeError(
                "delta stands beside a certificate, which has one: leave it out."
            )
        what.require_intact()
        level = float(what.claim()["delta"])
        return Look(level, _sources(what), what.counts_digest, what.kind)
    if not isinstance(what, Tally):
        raise InvalidTypeError(
            f"A {type(what).__name__} is nothing to spend on: expected a certificate or a tally."
        )
    if delta is None:
        raise InvalidTypeError("A tally has no delta of its own: pass what will be spent on it.")
    # Several claims may be made on a tally: each spending is a look of its own.
    return Look(failure_probability(delta), _sources(what), "", f"tally of {what.kind}")


def _sources(what: Certificate | Tally) -> tuple[str, ...]:
    """The fingerprints of the rows, if they have any."""
    named = what.provenance if isinstance(what, Certificate) else Provenance.now(what.sources)
    if not named.sources or not all(name.startswith(_FINGERPRINT) for name in named.sources):
        raise InvalidValueError(
            "These rows have no fingerprint that they could be known by again, as files and arrays "
            "have, or more than a thousand: a budget cannot tell what was spent on them."
        )
    return named.sources


def _is_same(one: Look, other: Look) -> bool:
    return bool(one.claim) and (one.claim, set(one.sources)) == (other.claim, set(other.sources))


def _rounded_down(left: Any) -> float:
    near = float(left)
    return near if union.written(near) <= left else nextafter(near, 0.0)


def _spent(source: str, looks: Sequence[Look]) -> Any:
    return union.total(look.delta for look in looks if source in look.sources)
