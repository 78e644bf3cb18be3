"""A budget of delta for each sample: how much of it claims have spent, kept in a file.

Every claim on the same rows is another chance to be wrong. If claims on a sample may be wrong with
probability delta in all, the shares of all claims that were ever made on it must add up to no more
than that (see `pacbound.procedures.union`).

What is added up must hold every claim on the same rows, and rows cannot be recognised: another
model makes other arrays of them, and a table with one more column is another file. So claims are
on other rows only if both name their sample, and differently; all others are added up. Names are
believed unless files contradict them: two names for one file are names of one sample.

The file is locked while it is read and written, and carries a digest.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from fractions import Fraction
from math import nextafter
from typing import Any, Final
from unicodedata import normalize

from pacbound import documents
from pacbound.atomic_files import as_path
from pacbound.claims.certificate import Certificate
from pacbound.claims.provenance import Provenance, sample_name
from pacbound.documents import Json, Reader
from pacbound.errors import CertificateError, InvalidTypeError, InvalidValueError, OverspentError
from pacbound.file_locks import locked
from pacbound.procedures import union
from pacbound.says import exact
from pacbound.stats.arguments import claimed_delta
from pacbound.tally.columns import ARRAY
from pacbound.tally.table import unnamed
from pacbound.tally.tally import Tally

FORMAT: Final = "pacbound-budget"
_WHAT: Final = "a pacbound budget"
_FILE: Final = "sha256:"
_RESTORE: Final = (
    "Restore an intact copy of the budget. A new one would not know what was spent, and every "
    "claim on these rows would have to be spent from it again."
)


@dataclass(frozen=True)
class Look:
    """One claim that was paid for.

    Attributes
    ----------
    delta : float
        What it cost.
    what : str
        The kind of certificate, or that it was a tally.
    samples : tuple of str
        What its rows are called; empty if nobody named them, and the claim may be on any rows.
    sources : tuple of str
        What was counted, as the provenance lists it.
    claim : str
        The digest of the claim; empty for a tally, which has none yet.
    known_by : str
        A digest of the claim, the columns and the files, by which the same look is recognised;
        empty where it cannot be, as for arrays: each spending is then a look of its own.
    """

    delta: float
    what: str
    samples: tuple[str, ...] = ()
    sources: tuple[str, ...] = ()
    claim: str = ""
    known_by: str = ""


@dataclass(frozen=True)
class SpentOnSample:
    """What was spent on one sample, and what is left for it.

    Attributes
    ----------
    samples : tuple of str
        What it is called: several names if they turned out to be those of the same rows. Empty for
        the claims that name no sample, which count for every sample.
    spent : float
        The sum of what was spent on it, claims that name no sample included.
    left : float
        What may still be, rounded down: of claims that name no sample, what is left for the sample
        that most was spent on.
    looks : tuple of Look
        The claims that it was spent on, the oldest first.
    """

    samples: tuple[str, ...]
    spent: float
    left: float
    looks: tuple[Look, ...]


class Budget:
    """Refuses claims that would spend more than `delta` on the same sample.

    If every claim on some rows is spent from one budget before it is used, what each claim assumes
    holds, and no two names are given to the same rows, then all claims on these rows are right at
    once with probability at least 1 - `delta`. What a claim assumes includes that it was not chosen
    by what these rows showed in another one. A budget knows of what is spent from it, and of
    nothing else.

    All claims that are spent from a budget are added up, as if they were on the same rows, unless
    both name their sample, and differently: by `sample=` where they are certified, or here. A claim
    that names none counts for every sample. One that shares a file with a named sample belongs to
    it, and two names for one file are names of one sample. A claim on several samples, such as a
    bundle, makes them one.

    The same look again costs nothing: the same claim, with the same counts, from the same columns
    of the same files. Arrays, frames and tallies do not say which model they are of, so each
    spending of theirs is counted.

    Parameters
    ----------
    path
        The file. It is made if it is not there, and locked while something is spent: several
        processes may use it at once.
    delta
        What may be spent on one sample in all; may be left out if the file is there, and must
        agree with it.

    Raises
    ------
    InvalidValueError
        If the file is there and has another `delta`, or is not there and none is passed.
    CertificateError
        If the file is not a budget, was cut short, or was changed.

    Examples
    --------
    >>> import numpy as np
    >>> from pacbound import calibrate
    >>> rng = np.random.default_rng(0)
    >>> confidence = rng.uniform(size=500)
    >>> correct = rng.random(500) < confidence
    >>> budget = Budget("budget.json", delta=0.05)
    >>> budget.spend(calibrate(confidence, correct, delta=0.03, sample="March"))
    0.02
    >>> budget.spend(calibrate(confidence, correct, delta=0.03, n_bins=10, sample="March"))
    Traceback (most recent call last):
        ...
    pacbound.errors.OverspentError: 0.03 of 0.05 is spent on the sample 'March', and 0.03 more ...
    >>> other = rng.uniform(size=500)
    >>> budget.spend(calibrate(other, rng.random(500) < other, delta=0.03, sample="April"))
    0.02
    """

    def __init__(self, path: str | os.PathLike[str], *, delta: float | None = None) -> None:
        self._path = as_path(path)
        level = None if delta is None else claimed_delta(delta)
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

    def spend(
        self,
        what: Certificate | Tally,
        delta: float | None = None,
        *,
        sample: str | None = None,
    ) -> float:
        """Spend the delta of a claim, or refuse it.

        Parameters
        ----------
        what
            A certificate, whose own delta is spent; or a tally, before it is certified.
        delta
            For a tally: what the claims on it will spend.
        sample
            What the rows are called, such as "held-out, March", if the certificate does not say. If
            it gives them another name, both are taken for names of the same rows.

        Returns
        -------
        float
            What is left for these rows, rounded down; for a claim that names no sample, what is
            left for the sample that most was spent on.

        Raises
        ------
        OverspentError
            If more than the budget would be spent on the same sample. Nothing is spent then, and
            the claim must not be used.
        InvalidValueError
            If `sample` cannot be a name, or some claims of a bundle name their sample and others do
            not.
        InvalidTypeError
            If `what` is neither, or `delta` is missing or not wanted.
        CertificateError
            If the certificate, or the budget, was changed after it was written.
        """
        look = _look(what, delta, sample)
        with locked(self._path, wait=True):
            total, looks = self._read()
            known = next((place for place, old in enumerate(looks) if _is_same(old, look)), None)
            if known is None:
                added = (*looks, look)
            else:
                names = dict.fromkeys((*looks[known].samples, *look.samples))
                look = replace(looks[known], samples=tuple(names))
                added = (*looks[:known], look, *looks[known + 1 :])
            accounts = _Accounts(added)
            self._require_room(look, total, accounts)
            if added != looks:
                self._write(total, added)
        return _rounded_down(union.written(total) - _most(accounts.of(look)))

    def spent(self, what: Certificate | Tally, *, sample: str | None = None) -> float:
        """What was spent on the rows of a certificate or a tally.

        Parameters
        ----------
        what
            A certificate or a tally.
        sample
            What its rows are called, as in `spend`.

        Returns
        -------
        float
            The sum of what was spent on its sample; without a name, on the sample that most was
            spent on.
        """
        probe = replace(_look(what, 0.5 if isinstance(what, Tally) else None, sample), delta=0.0)
        with locked(self._path, wait=True):
            _, looks = self._read()
        return float(_most(_Accounts((*looks, probe)).of(probe)))

    def by_sample(self) -> tuple[SpentOnSample, ...]:
        """What was spent on each sample, and what is left for it.

        Returns
        -------
        tuple of SpentOnSample
            First the claims that name no sample, if there are any; then the named samples.
        """
        with locked(self._path, wait=True):
            total, looks = self._read()
        accounts = _Accounts(looks)
        found = []
        if accounts.everywhere:
            pool, most = union.total(look.delta for look in accounts.everywhere), accounts.of(None)
            left = _rounded_down(union.written(total) - _most(most))
            found.append(SpentOnSample((), float(pool), left, tuple(accounts.everywhere)))
        for account in accounts.named():
            left = _rounded_down(union.written(total) - account.spent)
            found.append(SpentOnSample(account.names, float(account.spent), left, account.looks))
        return tuple(found)

    def on_sample(self, sample: str) -> SpentOnSample:
        """What was spent on one sample, and what is left for it.

        Parameters
        ----------
        sample
            What it is called; nothing need have been spent on it.

        Returns
        -------
        SpentOnSample
            With the claims that count for it, those that name no sample among them.
        """
        name = sample_name(sample)
        if name is None:
            raise InvalidTypeError("sample is missing: pass the name of one, or call by_sample().")
        probe = Look(0.0, "", (name,))
        with locked(self._path, wait=True):
            total, looks = self._read()
        (account,) = _Accounts((*looks, probe)).of(probe)
        counted = tuple(look for look in account.looks if look is not probe)
        left = _rounded_down(union.written(total) - account.spent)
        return SpentOnSample(account.names, float(account.spent), left, counted)

    def _require_room(self, look: Look, total: float, accounts: _Accounts) -> None:
        full = max(accounts.of(look), key=lambda account: account.spent)
        if full.spent <= union.written(total):
            return
        before = full.spent - union.written(look.delta)
        raise OverspentError(
            f"{exact(float(before))} of {exact(total)} is spent on {_described(full.names)}, and "
            f"{exact(look.delta)} more would be too much: this claim must not be used. Claim less, "
            "or collect new rows. Claims on other rows are counted apart if both name their sample "
            "(sample=, --sample)."
        )

    def _read(self) -> tuple[float, tuple[Look, ...]]:
        try:
            document = documents.read(self._path, _WHAT)
            documents.require_seal(document, str(self._path), _WHAT, FORMAT, 1)
            part = Reader(document, str(self._path))
            return part.probability("delta"), tuple(map(_read_look, part.mappings("looks")))
        except CertificateError as error:
            raise CertificateError(f"{error} {_RESTORE}") from None

    def _write(self, delta: float, looks: Sequence[Look]) -> None:
        kept: dict[str, Json] = {"delta": delta, "looks": [asdict(look) for look in looks]}
        documents.write(self._path, documents.sealed({"format": FORMAT, "schema": 1, **kept}))


def _read_look(part: Reader) -> Look:
    return Look(
        part.probability("delta"),
        part.text("what"),
        tuple(part.texts("samples")),
        tuple(part.texts("sources")),
        part.text("claim"),
        part.text("known_by"),
    )


@dataclass(frozen=True)
class _Account:
    """The looks that count for the rows of some names."""

    names: tuple[str, ...]
    looks: tuple[Look, ...]

    @property
    def spent(self) -> Fraction:
        return union.total(look.delta for look in self.looks)


class _Accounts:
    """Which looks count for which sample."""

    def __init__(self, looks: Sequence[Look]) -> None:
        self._looks = looks
        self._above: dict[str, str] = {}
        self._spelt: dict[str, str] = {}
        self._owner: dict[str, str] = {}
        for look in looks:
            self._name(look)
        self.everywhere = [look for look in looks if self._keys(look) is None]
        """The looks that may be on any rows."""

    def of(self, look: Look | None) -> list[_Account]:
        """The accounts that a look counts for, at least one; all of them if it may be on any rows,
        or is None.
        """
        keys = None if look is None else self._keys(look)
        if keys is None:
            return list(self.named()) or [_Account((), tuple(self._looks))]
        return [self._account(key) for key in keys]

    def named(self) -> Iterator[_Account]:
        """The accounts of all samples that have a name, the oldest first."""
        return map(self._account, dict.fromkeys(map(self._top, self._spelt)))

    def _account(self, key: str) -> _Account:
        names = tuple(name for found, name in self._spelt.items() if self._top(found) == key)
        counted = (
            look for look in self._looks if (keys := self._keys(look)) is None or key in keys
        )
        return _Account(names, tuple(counted))

    def _keys(self, look: Look) -> list[str] | None:
        """The samples that a look is on; None if that is not known."""
        if look.samples:
            return [self._top(_sample_key(look.samples[0]))]
        files = [source for source in look.sources if source.startswith(_FILE)]
        owners = [self._top(self._owner[file]) for file in files if file in self._owner]
        is_known = owners and len(owners) == len(unnamed(look.sources))
        return list(dict.fromkeys(owners)) if is_known else None

    def _name(self, look: Look) -> None:
        """Take in which names are names of the same rows."""
        if not look.samples:
            return
        for name in look.samples:
            self._spelt.setdefault(_sample_key(name), name)
        first, *others = map(_sample_key, look.samples)
        for key in others:
            self._join(first, key)
        for source in filter(_tells_rows, look.sources):
            self._join(self._owner.setdefault(source, first), first)

    def _join(self, one: str, other: str) -> None:
        one, other = self._top(one), self._top(other)
        if one != other:
            self._above[other] = one

    def _top(self, key: str) -> str:
        while key in self._above:
            key = self._above[key]
        return key


def _look(what: Any, delta: float | None, sample: str | None) -> Look:
    declared = sample_name(sample)
    names = [] if declared is None else [declared]
    if isinstance(what, Certificate):
        if delta is not None:
            raise InvalidTypeError("A certificate has its own delta: leave delta out.")
        _require_unchanged(what)
        return Look(
            what.delta,
            what.kind,
            tuple(dict.fromkeys([*names, *_samples_of(what, all_named=bool(names))])),
            what.provenance.sources,
            what.claim_digest,
            _known_by(what),
        )
    if not isinstance(what, Tally):
        raise InvalidTypeError(
            f"A {type(what).__name__} is nothing to spend on: expected a certificate or a tally."
        )
    if delta is None:
        raise InvalidTypeError("A tally has no delta of its own: pass what will be spent on it.")
    sources = Provenance.now(what.sources).sources
    return Look(claimed_delta(delta), f"tally of {what.kind}", tuple(names), sources)


def _require_unchanged(certificate: Certificate) -> None:
    certificate.require_intact()
    loaded = certificate.loaded
    if loaded is not None and loaded["provenance_digest"] != documents.digest(loaded["provenance"]):
        raise CertificateError(
            "The provenance of this certificate was changed after it was written, so that its rows "
            "are not known. Spend the certificate as it was written."
        )


def _samples_of(certificate: Certificate, *, all_named: bool) -> list[str]:
    """What the rows of a certificate are called, those of all claims inside it; none if none of
    them has a name. With `all_named`, another name stands for those that have none.
    """
    names = list(dict.fromkeys(_names_within(certificate)))
    if None not in names or all_named or len(names) == 1:
        return [name for name in names if name is not None]
    named = next(name for name in names if name is not None)
    raise InvalidValueError(
        f"One claim of this {certificate.kind} is on the sample {named!r}, and another does not "
        "name its sample. Name the rows of each claim, or spend with sample= for all others."
    )


def _names_within(certificate: Certificate) -> Iterator[str | None]:
    own = certificate.provenance.sample
    if not certificate.inside:
        yield own
        return
    inside = [name for each in certificate.inside.values() for name in _names_within(each)]
    yield from inside if own is None else [own, *filter(None, inside)]


def _known_by(certificate: Certificate) -> str:
    """What the same look is recognised by; empty if another model could have made the very same
    certificate.
    """
    made = certificate.provenance
    told = unnamed(made.sources)
    are_files = bool(told) and all(source.startswith(_FILE) for source in told)
    if not are_files or not all(map(_names_its_columns, _claims_in(certificate))):
        return ""
    looked_at = {
        "claim": certificate.claim_digest,
        "columns": dict(made.columns),
        "sources": told,
    }
    return documents.digest(looked_at)


def _claims_in(certificate: Certificate) -> Iterator[Certificate]:
    if not certificate.inside:
        yield certificate
        return
    for member in certificate.inside.values():
        yield from _claims_in(member)


def _names_its_columns(certificate: Certificate) -> bool:
    """Whether the provenance says which columns were counted, and can say it of no others: several
    names stand in one text, and a name may hold a comma. The answers that a batch was compared with
    are in none.
    """
    columns, several = certificate.provenance.columns, certificate.by.names_in_columns(certificate)
    return (
        bool(columns)
        and several is not None
        and all(columns.get(role, "").count(",") == count - 1 for role, count in several.items())
    )


def _tells_rows(source: str) -> bool:
    """Whether a source is a name of rows: the digest of a file, or of arrays."""
    return source.startswith((_FILE, ARRAY))


def _is_same(one: Look, other: Look) -> bool:
    return bool(one.known_by) and one.known_by == other.known_by


def _described(names: Sequence[str]) -> str:
    if not names:
        return "claims that name no sample"
    listed = ", ".join(repr(documents.printable(name)) for name in names)
    one = f"the sample {listed}"
    return one if len(names) == 1 else f"the samples {listed}, which are the same rows"


def _most(accounts: Iterable[_Account]) -> Fraction:
    return max(account.spent for account in accounts)


def _rounded_down(left: Fraction) -> float:
    near = float(left)
    return near if union.written(near) <= left else nextafter(near, 0.0)


def _sample_key(name: str) -> str:
    """What two spellings of one name have in common: case, width and spaces make no difference."""
    return " ".join(normalize("NFKC", name).casefold().split())
