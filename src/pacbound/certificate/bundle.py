"""Several claims in one certificate, all right together: each spends a share of one delta."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

from pacbound.certificate.about import about_texts
from pacbound.certificate.document import Certificate, Provenance, exact, likelihood
from pacbound.certificate.samples import sample_name
from pacbound.documents import Json, Reader, printable
from pacbound.errors import CertificateError, InvalidTypeError, InvalidValueError
from pacbound.procedures import union
from pacbound.procedures.registry import require
from pacbound.stats.arguments import claimed_delta, real_number
from pacbound.tally.columns import require_whole_text

_BETWEEN = "."
"""Stands between the name of a claim and the role of a column, in the provenance."""


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class SeveralClaims(Certificate):
    """A certificate that holds others, which share its `delta`. It is as right as all of them, and
    recomputed by recomputing each.

    Attributes
    ----------
    delta : float
        The chance that any of the claims is wrong.
    members : mapping of str to Certificate
        The certificates by their names, as the file has them.
    provenance : Provenance
        Where the certificates come from; columns are named as "claim.role".
    draw : None
        Each certificate says for itself how its rows were drawn.
    loaded : mapping or None
        The document that it was read from; None if it was made in this process.

    Examples
    --------
    >>> from pacbound import calibrate
    >>> from pacbound.certificate import CertificateBundle
    >>> rows = [0.9, 0.8], [True, False]
    >>> bundle = CertificateBundle.of({"a": calibrate(*rows, delta=0.01)}, delta=0.01)
    >>> isinstance(bundle, SeveralClaims), list(bundle.members)
    (True, ['a'])
    """

    procedure: ClassVar[str]
    delta: float
    members: Mapping[str, Certificate]

    @property
    def inside(self) -> Mapping[str, Certificate]:
        """The certificates by their names, as the file has them."""
        return self.members

    def counted(self) -> dict[str, Json]:
        claims = {name: member.counts_digest for name, member in self.members.items()}
        return {
            "kind": self.kind,
            "procedure": self.procedure,
            "delta": self.delta,
            "claims": claims,
        }

    def work(self) -> float:
        return sum(member.work() for member in self.members.values())

    def recomputed(self) -> Self:
        again = {name: member.recomputed() for name, member in self.members.items()}
        return replace(self, members=again, loaded=None)

    @classmethod
    @abstractmethod
    def from_claim(
        cls,
        claim: Reader,
        provenance: Provenance,
        loaded: Mapping[str, Json],
        members: Mapping[str, Certificate] | None = None,
    ) -> Self:
        """The certificate that a document describes; `members` are its claims, read already."""


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class CertificateBundle(SeveralClaims):
    """Several claims that are all right at once, with probability at least 1 - `delta`.

    Each claim has a share of `delta`, and the shares add up to no more than it, so that the claims
    may be about the same rows. Which claims are made, and their shares, must be fixed before the
    data are looked at. `certify_together` makes a bundle, and `load_certificate` reads one.

    A bundle is certified if all its claims are. One that is refused takes nothing from the others:
    `bundle["name"]` gives each certificate, and it acts as it does alone.

    Attributes
    ----------
    delta : float
        The chance that any of the claims is wrong.
    members : mapping of str to Certificate
        The certificates by their names, as the file has them. Use `bundle[name]`, which raises if
        the file was changed.
    provenance : Provenance
        Where the certificates come from; columns are named as "claim.role", and what each claim is
        about as "claim.model".
    draw : None
        Each certificate says for itself how its rows were drawn.
    loaded : mapping or None
        The document that it was read from; None if it was made in this process.

    Examples
    --------
    >>> from pacbound import calibrate, certify_shield
    >>> scores, unsafe = [0.1] * 950 + [0.9] * 50, [False] * 950 + [True] * 50
    >>> bundle = CertificateBundle.of(
    ...     {
    ...         "shield": certify_shield(scores, unsafe, xi=0.02, delta=0.01),
    ...         "calibration": calibrate(scores, unsafe, delta=0.02, n_bins=2),
    ...     },
    ...     delta=0.03,
    ... )
    >>> bundle.certified, list(bundle), round(bundle["shield"].threshold, 3)
    (True, ['calibration', 'shield'], 0.9)
    """

    kind: ClassVar[str] = "bundle"
    procedure: ClassVar[str] = union.NAME

    @classmethod
    def of(cls, certificates: Mapping[str, Certificate], *, delta: float) -> Self:
        """Put certificates together whose claims share `delta`.

        Parameters
        ----------
        certificates
            The certificates, each by a name of its own. None may be a bundle itself.
        delta
            The chance that any of them is wrong: at least the sum of theirs.

        Returns
        -------
        CertificateBundle
            All of them in one.

        Raises
        ------
        InvalidValueError
            If there are none, or they spend more than `delta` together.
        InvalidTypeError
            If one is not a certificate of a single claim.
        """
        level = claimed_delta(delta)
        if not isinstance(certificates, Mapping):
            raise InvalidTypeError(
                f"certificates is of type {type(certificates).__name__}: expected a mapping from "
                "the name of each claim to its certificate."
            )
        if not certificates:
            raise InvalidValueError("There is nothing to put together: pass a certificate.")
        for name, certificate in certificates.items():
            if not isinstance(certificate, Certificate) or isinstance(certificate, cls):
                raise InvalidTypeError(
                    f"{name} is a {type(certificate).__name__}: expected a certificate of one "
                    "claim, as calibrate gives."
                )
            certificate.require_verified()
        members = {str(name): certificates[name] for name in sorted(certificates, key=str)}
        if len(members) < len(certificates):
            raise InvalidValueError(
                "Two claims have one name: names are text, so that 1 and '1' are the same. Rename "
                "one."
            )
        require_whole_text(members, "certificates")
        require_covered(members, level)
        return cls(delta=level, members=members, provenance=provenance_together(members))

    def __getitem__(self, name: str) -> Certificate:
        """The certificate of one claim, if the bundle follows from its own counts."""
        self.require_verified()
        if name not in self.members:
            raise InvalidValueError(
                f"There is no claim {name!r} in this bundle: it has {', '.join(self.members)}."
            )
        return self.members[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.members)

    def __len__(self) -> int:
        return len(self.members)

    @property
    def certified(self) -> bool:
        """Whether every claim is certified; one that is refused takes nothing from the others."""
        return all(member.certified for member in self.members.values())

    def claimed(self) -> dict[str, Json]:
        return {
            "kind": self.kind,
            "procedure": self.procedure,
            "assumptions": list(union.ASSUMPTIONS),
            "certified": self.certified,
            "delta": self.delta,
            "claims": {name: member.claim() for name, member in self.members.items()},
        }

    @classmethod
    def from_claim(
        cls,
        claim: Reader,
        provenance: Provenance,
        loaded: Mapping[str, Json],
        members: Mapping[str, Certificate] | None = None,
    ) -> Self:
        """The bundle that a document describes; `members` are its claims, read already."""
        require(claim.text("procedure"), union.NAME)
        level = claim.probability("delta")
        try:
            require_covered(members or {}, level)
        except InvalidValueError as error:
            raise CertificateError(f"{claim.place('claims')}: {error}") from None
        return cls(delta=level, members=members or {}, provenance=provenance, loaded=loaded)

    def own_about(self) -> Mapping[str, str]:
        """What the bundle as a whole is about."""
        about = self.provenance.about
        return {name: text for name, text in about.items() if _BETWEEN not in name}

    def head(self) -> str:
        """What is claimed of all certificates together, and the verdict of each."""
        verdicts = [
            f"{printable(name)} ({member.kind}, delta = {exact(_delta(member))}): "
            f"{'certified' if member.certified else 'REFUSED'}"
            for name, member in self.members.items()
        ]
        return "\n".join(
            [
                f"{len(self)} claims together, delta = {exact(self.delta)}",
                f"With probability at least {likelihood(self.delta)} over the draw of the data, "
                "all of them that are certified are right at once.",
                *(f"  {line}" for line in verdicts),
            ]
        )

    def words(self) -> str:
        """The claim in words, and those of each certificate."""
        members = (f"\n{printable(name)}: {one.summary()}" for name, one in self.members.items())
        return "\n".join([self.head(), *members])


def certify_together(
    claims: Mapping[str, Callable[..., Certificate]],
    *,
    delta: float,
    shares: Mapping[str, float] | None = None,
    about: Mapping[str, Any] | None = None,
    sample: str | None = None,
) -> CertificateBundle:
    """Several claims, about the same data or not, that are all right at once with probability at
    least 1 - `delta`.

    Every claim gets a share of `delta`. What each of them assumes must hold, and which claims are
    made, and with what shares, must be fixed before the data are looked at: to leave out one that
    was refused, and give its share to the others, voids the guarantee.

    Parameters
    ----------
    claims
        What makes each certificate, by a name of its own: something that is called with `delta=`
        and nothing else, such as `functools.partial(certify_shield, scores, unsafe, xi=0.1)`.
    delta
        The chance that any of the claims is wrong.
    shares
        How much of `delta` each claim gets, in proportion to the others: a positive number for each
        name. Equal shares if left out.
    about
        What the bundle is about, for people, as in `calibrate`; each claim may say more of its own.
    sample
        What the rows of all claims are called that do not name their own, as in `calibrate`.

    Returns
    -------
    CertificateBundle
        One certificate for all claims, which is saved as one file. `bundle[name]` is the
        certificate of one claim. A claim that is refused makes `certified` False, and takes nothing
        from the others.

    Raises
    ------
    InvalidValueError, InvalidTypeError
        If there are no claims, if `shares` are not one positive number for each of them, or if a
        claim raises.

    Examples
    --------
    >>> from functools import partial
    >>> from pacbound import calibrate, certify_shield
    >>> scores, unsafe = [0.1] * 950 + [0.9] * 50, [False] * 950 + [True] * 50
    >>> bundle = certify_together(
    ...     {
    ...         "brake": partial(certify_shield, scores, unsafe, xi=0.02),
    ...         "danger": partial(calibrate, scores, unsafe, n_bins=2),
    ...     },
    ...     delta=0.03,
    ...     shares={"brake": 2, "danger": 1},
    ... )
    >>> bundle["brake"].delta, bundle["danger"].delta, bundle.certified
    (0.02, 0.01, True)
    """
    level, texts, named = claimed_delta(delta), about_texts(about), sample_name(sample)
    _require_makers(claims)
    if not isinstance(shares, Mapping | None):
        raise InvalidTypeError(
            f"shares is of type {type(shares).__name__}: expected a mapping from the name of each "
            "claim to its share, such as {'brake': 2, 'danger': 1}."
        )
    weights = dict.fromkeys(claims, 1.0) if shares is None else dict(shares)
    if weights.keys() != claims.keys():
        odd = min(map(str, weights.keys() ^ claims.keys()))
        raise InvalidValueError(
            f"shares and claims do not name the same: {odd!r} is in one of them. Give each claim "
            "its share."
        )
    numbers = [real_number(weights[name], f"shares[{name!r}]", "a share") for name in claims]
    if not all(0 < number < float("inf") for number in numbers):
        raise InvalidValueError(f"shares={shares} are not shares: expected positive numbers.")
    spent = union.shares(level, numbers)
    made = {name: claims[name](delta=share) for name, share in zip(claims, spent, strict=True)}
    return CertificateBundle.of(made, delta=level).with_about(texts, sample=named)


def _require_makers(claims: Any) -> None:
    if not isinstance(claims, Mapping):
        raise InvalidTypeError(
            f"claims is of type {type(claims).__name__}: expected a mapping from the name of each "
            "claim to what makes it, such as {'brake': partial(certify_shield, …)}."
        )
    if not claims:
        raise InvalidValueError("There are no claims to make: pass at least one.")
    for name, make in claims.items():
        if isinstance(make, Certificate):
            raise InvalidTypeError(
                f"{name} is a certificate that was made already: pass what is called with delta= "
                "to make it, or put certificates together with CertificateBundle.of."
            )
        if not callable(make):
            raise InvalidTypeError(
                f"{name} is of type {type(make).__name__}: expected what is called with delta= to "
                "make the certificate, such as functools.partial(certify_shield, …)."
            )


def member_documents(
    claim: Reader, provenance: Provenance
) -> dict[str, tuple[Json, dict[str, Json]]]:
    """The claim and the provenance of each member, as documents of their own have them."""
    claims = claim.mapping("claims")
    return {
        name: (claims.raw(name), _provenance_of(name, provenance).to_dict())
        for name in claims.names()
    }


def _delta(certificate: Certificate) -> float:
    return float(certificate.claim()["delta"])


def require_covered(members: Mapping[str, Certificate], delta: float) -> None:
    """Raise unless there are claims, and `delta` covers what they spend."""
    spent = union.total(_delta(member) for member in members.values())
    if not members or spent > union.written(delta):
        raise InvalidValueError(
            f"{len(members)} claims spend {float(spent):g} together, and delta={delta:g}: expected "
            "at least one claim, and a delta of at least the sum of theirs."
        )


def provenance_together(members: Mapping[str, Certificate]) -> Provenance:
    """Where several certificates come from; columns are named as "claim.role"."""
    columns = {
        f"{name}{_BETWEEN}{role}": column
        for name, member in members.items()
        for role, column in member.provenance.columns.items()
    }
    about, notes = (
        {
            f"{name}{_BETWEEN}{key}": text
            for name, member in members.items()
            for key, text in getattr(member.provenance, part).items()
        }
        for part in ("about", "notes")
    )
    drawn_by = {
        f"{name}{_BETWEEN}{role}": digest
        for name, member in members.items()
        for role, digest in member.provenance.drawn_by.items()
    }
    samples = {
        claim: sample
        for name, member in members.items()
        for claim, sample in _samples_within(name, member.provenance).items()
    }
    sources = {source for member in members.values() for source in member.provenance.sources}
    made = Provenance.now(frozenset(sources), columns, notes)
    return replace(made, about=about, samples=samples, drawn_by=drawn_by)


def _provenance_of(name: str, provenance: Provenance) -> Provenance:
    start = f"{name}{_BETWEEN}"
    columns, about, notes, drawn_by, samples = (
        {key.removeprefix(start): text for key, text in texts.items() if key.startswith(start)}
        for texts in (
            provenance.columns,
            provenance.about,
            provenance.notes,
            provenance.drawn_by,
            provenance.samples,
        )
    )
    return replace(
        provenance,
        columns=columns,
        about=about,
        notes=notes,
        sample=provenance.samples.get(name),
        samples=samples,
        drawn_by=drawn_by,
    )


def _samples_within(name: str, provenance: Provenance) -> dict[str, str]:
    """What the rows of a claim are called, and those of the claims inside it."""
    own = {} if provenance.sample is None else {name: provenance.sample}
    inside = provenance.samples.items()
    return own | {f"{name}{_BETWEEN}{claim}": sample for claim, sample in inside}
