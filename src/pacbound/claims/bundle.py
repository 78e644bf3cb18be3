"""A bundle: several claims in one certificate, all right at once. Each spends a share of delta."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from math import inf
from typing import Any, Never, Self

from pacbound.claims.certificate import Certificate, certificate_from_dict, document_of
from pacbound.claims.claim import Cells, Claim, Procedure, Values
from pacbound.claims.provenance import Provenance, about_texts, sample_name
from pacbound.claims.rates import common_threshold, rate_of
from pacbound.claims.threshold import ThresholdClaim
from pacbound.documents import Json, Reader, printable
from pacbound.errors import InvalidTypeError, InvalidValueError
from pacbound.fields import Field, Fields
from pacbound.forms import CHANCE, DELTA, Choice, Form, Shares, TruthValue
from pacbound.procedures import union
from pacbound.says import Quantity, Says, Sentence, Value, confidence, count, in_unit, share
from pacbound.stats.arguments import claimed_delta
from pacbound.tally.columns import require_whole_text
from pacbound.tally.row_rules import RowRule, RowSteps

# Stands between the name of a claim and the role of a column, in the provenance.
_BETWEEN = "."


class CertificateBundle(Certificate):
    """Several claims that are all right at once, with probability at least 1 - `delta`.

    Each claim has a share of `delta`, and the shares add up to no more than it, so that the claims
    may be about the same rows. Which claims are made, and their shares, must be fixed before the
    data are looked at. `certify_together` makes a bundle, and `load_certificate` reads one.

    A bundle is certified if all its claims are. One that is refused takes nothing from the others:
    `bundle["name"]` gives each certificate, and it acts as it does alone.

    Attributes
    ----------
    by : Claim
        What is claimed, and how it is decided and said.
    values : mapping
        Everything that the document holds of it, by name; "claims" are the certificates.
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
        _require_covered(members, level)
        values = CLAIM.together(CLAIM.counted(members, {"delta": level}))
        return cls(by=CLAIM, values=values, provenance=provenance_together(members))

    @property
    def members(self) -> Mapping[str, Certificate]:
        """The certificates by their names, as the file has them. Use `bundle[name]`, which raises
        if the file was changed.
        """
        found: Mapping[str, Certificate] = self.values["claims"]
        return found

    @property
    def inside(self) -> Mapping[str, Certificate]:
        """The certificates by their names, as the file has them."""
        return self.members

    @property
    def n(self) -> Never:
        """A bundle counts no rows of its own."""
        raise AttributeError("a bundle counts no rows of its own: ask the certificates in it")

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
    def thresholds(self) -> tuple[float, float] | None:
        """The lowest and the highest threshold at which all of its claims hold, where some hold
        from a threshold on and others up to one, of one score of the same rows: a range of alarms
        that are rarely false and rarely missing. None if no threshold keeps all, if one is refused,
        or if there are no such claims.
        """
        self.require_intact()
        found = _ends(self.members)
        return None if found is None or found[0] > found[1] else found

    @property
    def scale(self) -> float | None:
        """What a score of 1 was written as, where all claims were counted by the same scale."""
        scales = {member.scale for member in self.members.values()}
        return scales.pop() if len(scales) == 1 else None

    @property
    def row_columns(self) -> Mapping[str, str]:
        """The columns that applying reads: those that all claims name alike."""
        named = [member.row_columns for member in self.members.values()]
        return dict(set.intersection(*(set(one.items()) for one in named)))

    def own_about(self) -> Mapping[str, str]:
        """What the bundle as a whole is about."""
        about = self.provenance.about
        return {name: text for name, text in about.items() if _BETWEEN not in name}

    def head(self) -> str:
        """What is claimed of all certificates together, and the verdict of each."""
        return super().words()

    def words(self) -> str:
        """The claim in words, and those of each certificate."""
        members = (f"\n{printable(name)}: {one.summary()}" for name, one in self.members.items())
        return "\n".join([self.head(), *members])


class Members(Form):
    """Claims by their names; none of them is a bundle."""

    def read(self, part: Reader, key: str) -> dict[str, Json]:
        """The claims as they are written: `BundleClaim.read` makes certificates of them."""
        return dict(part.raw(key))

    def write(self, value: Mapping[str, Certificate]) -> Json:
        """The claim of each."""
        return {name: member.claim() for name, member in value.items()}

    def counted(self, value: Mapping[str, Certificate]) -> Json:
        """The digest of what was counted for each."""
        return {name: member.counts_digest for name, member in value.items()}


class BundleClaim(Claim[CertificateBundle]):
    """Several claims that share one delta."""

    kind = "bundle"
    command = "together"
    help = "Certify several claims that are all right at once."
    question = None
    asks = (DELTA,)
    procedures: Mapping[str, Procedure] = {
        union.NAME: Procedure(union.NAME, ("all-of-each-claim", "claims-and-shares-beforehand"))
    }
    certificate = CertificateBundle

    def fields(self, procedure: Procedure) -> Fields:
        """The claims, and the delta that they share."""
        return Fields(
            (
                Field("kind", Choice((self.kind,)), counted=True),
                Field("procedure", Choice((procedure.name,)), counted=True),
                Field("assumes", Form()),
                Field("certified", TruthValue()),
                Field("delta", CHANCE, counted=True),
                Field("claims", Members(), counted=True),
            )
        )

    def counted(self, evidence: Mapping[str, Certificate], wishes: Values) -> dict[str, Any]:
        """The certificates."""
        named = {"kind": self.kind, "procedure": union.NAME}
        return {**named, **wishes, "claims": dict(evidence)}

    def decided(self, values: Values) -> dict[str, Any]:
        """Each claim again, and whether all of them are certified."""
        again = {name: member.recomputed() for name, member in values["claims"].items()}
        return self.together({**values, "claims": again})

    def together(self, values: Values) -> dict[str, Any]:
        """Whether all claims are certified, as they are."""
        return {
            **values,
            "assumes": self.procedures[values["procedure"]].assumes,
            "certified": all(member.certified for member in values["claims"].values()),
        }

    def read(
        self, claim: Reader, provenance: Provenance, loaded: Mapping[str, Json]
    ) -> CertificateBundle:
        """The bundle that a document holds. Its own digests cover its claims, too."""
        read = super().read(claim, provenance, loaded)
        members = {
            name: _member(claim.place(f"claims.{name}"), part, _provenance_of(name, provenance))
            for name, part in read.values["claims"].items()
        }
        return replace(read, values={**read.values, "claims": members})

    def says(self, certificate: CertificateBundle) -> Says:
        """That all are right at once, and the verdict of each."""
        delta = share(certificate.delta, "up")
        right = sum(member.certified for member in certificate.members.values())
        filled: dict[str, Value] = {
            "claims": count(len(certificate)),
            "right": count(right),
            "delta": delta,
            "confidence": confidence(certificate.delta),
        }
        plain = Sentence(
            "{claims} claims are certified, and all of them are right at once ({confidence} "
            "confidence)."
            if certificate.certified
            else "Only {right} of {claims} claims can be certified ({confidence} confidence for "
            "all of these at once)."
            if right
            else "None of {claims} claims can be certified.",
            filled,
        )
        title, heading = "{claims} claims together, delta {delta}", "{claims} claims together"
        held = "all claims that are certified are right at once"
        called = Sentence(heading, filled)
        if len(certificate) == 1:
            # Of a single claim, say what it says.
            (only,) = (member.says for member in certificate.members.values())
            plain, called = only.plain, only.heading
            title, held = "{claims} claim, delta {delta}", "it is right, if it is certified"
        return Says(
            Sentence(title, filled),
            called,
            plain,
            promise=Sentence(
                f"With probability at least {{confidence}} over the draw of the data, {held}.",
                filled,
            ),
            groups=tuple(
                Sentence(
                    "{name} ({kind}, delta {delta}): {verdict}",
                    {
                        "name": printable(name),
                        "kind": member.kind,
                        "delta": share(member.delta, "up"),
                        "verdict": "certified" if member.certified else "REFUSED",
                    },
                )
                for name, member in certificate.members.items()
            ),
            notes=tuple(_said_of_ends(certificate)),
        )

    def watch(self, certificate: CertificateBundle) -> str:  # noqa: ARG002
        """Its claims are watched."""
        return "its claims are watched together by BundleMonitor, or one by one, as bundle[name]"

    def row_rule(self, certificate: CertificateBundle) -> RowRule | None:
        """A column for each claim, where all of them go by one score without groups."""
        steps: dict[str, RowSteps] = {}
        roles = set[str]()
        if len({member.scale for member in certificate.members.values()}) > 1:
            return None
        for name, member in certificate.members.items():
            rule = member.by.row_rule(member)
            if rule is None or rule.groups is not None or not isinstance(rule.whole, RowSteps):
                return None
            roles.add(rule.role)
            steps |= {name: rule.whole}
        return RowRule(1, RowSteps.together(steps), role=roles.pop()) if len(roles) == 1 else None

    def recounting(self, certificate: CertificateBundle) -> dict[str, Any]:  # noqa: ARG002
        """Its claims are counted again."""
        raise InvalidTypeError(
            "The data of a bundle cannot be counted again by --data: do so for the certificate of "
            "each of its claims."
        )

    def cells(self, certificate: CertificateBundle) -> Cells:  # noqa: ARG002
        """None of its own."""
        return {}

    def numbers(self, certificate: CertificateBundle) -> list[tuple[str, str]]:
        """What was asked for."""
        return self.numbers_asked(certificate)

    def work(self, values: Values) -> float:
        """That of all claims."""
        return sum((member.work() for member in values["claims"].values()), 0.0)


CLAIM = BundleClaim()


def _ends(members: Mapping[str, Certificate]) -> tuple[float, float] | None:
    """From which threshold on claims hold that hold at all higher ones, and up to which those that
    hold at all lower ones; None unless there are both, certified, of one score of the same rows.
    """
    sides: dict[str, list[float]] = {"from": [], "below": []}
    seen = set[tuple[Any, ...]]()
    for member in members.values():
        if not isinstance(member.by, ThresholdClaim) or not member.by.scored:
            continue
        rate = rate_of(member)
        if rate.reached:
            continue
        if not member.certified or member.values["scope"] != "top" or rate.turns:
            return None
        seen.add((member.provenance.sources, member.provenance.columns.get("score"), member.scale))
        sides[rate.side].append(common_threshold(member))
    if len(seen) != 1 or not all(sides.values()):
        return None
    return max(sides["from"]), min(sides["below"])


def _said_of_ends(bundle: CertificateBundle) -> Iterator[Sentence]:
    """Which thresholds keep all claims about one score."""
    ends = _ends(bundle.members)
    if ends is None:
        return
    lowest, highest = ends
    kept = lowest <= highest
    filled: dict[str, Value] = {
        "lowest": in_unit(Quantity(lowest, "threshold", "up" if kept else "exact"), bundle.scale),
        "highest": in_unit(
            Quantity(highest, "threshold", "down" if kept else "exact"), bundle.scale
        ),
    }
    if not kept:
        text = "No threshold keeps both: one claim needs at least {lowest}, the other at most "
        yield Sentence(f"{text}{{highest}}.", filled)
    elif highest == inf:
        yield Sentence("Both hold from {lowest} on, and without any alarm.", filled)
    else:
        yield Sentence("Both hold from {lowest} to {highest}.", filled)


def _member(place: str, claim: Json, provenance: Provenance) -> Certificate:
    """A claim of a bundle, as a document of its own has it."""
    document = {**document_of(claim, provenance.to_dict()), "counts_digest": ""}
    member = certificate_from_dict(document, place)
    return replace(member, loaded={**document, "counts_digest": member.counts_digest})


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
    weights = dict.fromkeys(claims, 1.0)
    if shares is not None:
        weights = Shares(tuple(claims)).check(shares, "shares")
    spent = union.shares(level, list(weights.values()))
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


def _require_covered(members: Mapping[str, Certificate], delta: float) -> None:
    """Raise unless there are claims, and `delta` covers what they spend."""
    spent = union.total(member.delta for member in members.values())
    if not members or spent > union.written(delta):
        raise InvalidValueError(
            f"{len(members)} claims spend {float(spent):g} together, and delta={delta:g}: expected "
            "at least one claim, and a delta of at least the sum of theirs."
        )


# What of a provenance has names, which begin with that of the claim in the one of a bundle.
_NAMED = ("columns", "about", "notes", "drawn_by")


def provenance_together(members: Mapping[str, Certificate]) -> Provenance:
    """Where several certificates come from; columns are named as "claim.role"."""
    origins = {name: member.provenance for name, member in members.items()}
    named: dict[str, Any] = {
        part: {
            f"{name}{_BETWEEN}{key}": text
            for name, origin in origins.items()
            for key, text in getattr(origin, part).items()
        }
        for part in _NAMED
    }
    samples = {name: one.sample for name, one in origins.items() if one.sample is not None}
    sources = frozenset(source for origin in origins.values() for source in origin.sources)
    return replace(Provenance.now(sources), **named, samples=samples)


def _provenance_of(name: str, provenance: Provenance) -> Provenance:
    """That of one claim of a bundle."""
    start = f"{name}{_BETWEEN}"
    named: dict[str, Any] = {
        part: {
            key.removeprefix(start): text
            for key, text in getattr(provenance, part).items()
            if key.startswith(start)
        }
        for part in _NAMED
    }
    return replace(provenance, **named, sample=provenance.samples.get(name), samples={})
