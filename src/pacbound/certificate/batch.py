"""The batch certificate: of N answers at most m differ from the slow model's."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from math import isqrt, sqrt
from typing import ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from pacbound.certificate.document import Certificate, Provenance, exact, likelihood, sealed
from pacbound.certificate.draws import one_of_many
from pacbound.documents import Json, Reader, encode_float
from pacbound.errors import CertificateError
from pacbound.procedures import batch
from pacbound.procedures.batch import ASSUMPTIONS, NAMES, is_key
from pacbound.procedures.registry import require

Integers = NDArray[np.int64]


@dataclass(frozen=True)
class WholeTies:
    """What is kept where records of one score stay together: the first `stop` of the order,
    `sampled_before` of them sampled. Their scores are those at or above `threshold`.
    """

    stop: int
    sampled_before: int
    threshold: float


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class BatchCertificate(Certificate):
    """Of the `n` answers at most `tolerated` differ from the slow model's, with probability at
    least 1 - `delta` over the draw of the sample.

    The records are given and fixed. The only chance is which of them were sampled, by a permutation
    that was drawn once and that `key` gives. `answer_batch` makes such a certificate, and
    `load_certificate` reads one. There is no refusal: where nothing can be kept, every record is
    sent to the slow model, which is always right, and the summary says so.

    Attributes
    ----------
    n : int
        The number of records.
    xi : float
        The share of the answers that may differ.
    delta : float
        The chance that more do.
    scored : int
        How many records have a score; the others were sent to the slow model.
    key : str
        What the permutation follows from.
    drawn : tuple of int
        How many records each look samples, as it was planned; empty if nothing had to be sampled.
    allowed : tuple of int
        How many sampled disagreements each look allows; -1 if even none are too many.
    disagreements : tuple of ndarray
        For each look that was taken, the places of the sampled disagreements in the order of the
        scores, counted from 0, down to the first that is too many.
    stop, sampled_before : int
        How many records stand before the disagreement that stopped the longest look, and how many
        of these were sampled.
    ties : WholeTies or None
        What is kept if records of one score stay together; None where ties may be split.
    differing : int
        How many answers of the fast model differed on the whole sample; descriptive.
    unanswered : int
        How many records have no answer, because the slow model gave none.
    provenance : Provenance
        Where the certificate comes from.
    draw : None
        The records of a batch are given, and not drawn from others.
    loaded : mapping or None
        The document that it was read from; None if it was made in this process.

    Examples
    --------
    >>> import numpy as np
    >>> from pacbound import answer_batch
    >>> confidence = np.linspace(0, 1, 2000)
    >>> fast = np.where(confidence < 0.2, "cat", "dog")
    >>> result = answer_batch(
    ...     confidence, fast, lambda rows: ["dog"] * len(rows), xi=0.05, delta=0.1,
    ...     rng=np.random.default_rng(0),
    ... )
    >>> certificate = result.certificate
    >>> certificate.n, certificate.tolerated, certificate.exits, certificate.verify().ok
    (2000, 100, 1554, True)
    """

    kind: ClassVar[str] = "batch"
    n: int
    xi: float
    delta: float
    scored: int
    key: str
    drawn: tuple[int, ...]
    allowed: tuple[int, ...]
    disagreements: tuple[Integers, ...]
    stop: int
    sampled_before: int
    ties: WholeTies | None
    differing: int
    unanswered: int

    def __post_init__(self) -> None:
        ranks = tuple(sealed(ranks) for ranks in self.disagreements)
        object.__setattr__(self, "disagreements", ranks)

    @property
    def certified(self) -> bool:
        """Always True: sending everything to the slow model is a correct answer."""
        return True

    @property
    def tolerated(self) -> int:
        """How many answers may differ from the slow model's: floor(xi n)."""
        return batch.tolerated_answers(self.n, self.xi)

    @property
    def sampled(self) -> int:
        """How many records were sampled, over all looks that were taken."""
        return self.drawn[len(self.disagreements) - 1] if self.disagreements else 0

    @property
    def exits(self) -> int:
        """How many records kept the fast model's answer."""
        return self._most_exits if self.ties is None else self.ties.stop - self.ties.sampled_before

    @property
    def asked(self) -> int:
        """How many records were sent to the slow model, the sample included."""
        return self.n - self.exits

    @property
    def threshold(self) -> float | None:
        """Records at or above it that were not sampled kept the fast answer; +inf if none did, None
        if ties were split, so that no threshold says it.
        """
        self.require_intact()
        return None if self.ties is None else self.ties.threshold

    @property
    def _most_exits(self) -> int:
        return batch.kept(
            self.stop,
            self.sampled_before,
            scored=self.scored,
            sampled=self.sampled,
            tolerated=self.tolerated,
        )

    def claimed(self) -> dict[str, Json]:
        return {
            "kind": self.kind,
            "procedure": self._procedure,
            "assumptions": list(ASSUMPTIONS),
            "certified": True,
            "n": self.n,
            "xi": self.xi,
            "delta": self.delta,
            "tolerated": self.tolerated,
            "scored": self.scored,
            "key": self.key,
            "looks": [
                {
                    "sampled": self.drawn[look],
                    "allowed": self.allowed[look],
                    "disagreements": (
                        self.disagreements[look].tolist()
                        if look < len(self.disagreements)
                        else None
                    ),
                }
                for look in range(len(self.drawn))
            ],
            "stop": self.stop,
            "sampled_before": self.sampled_before,
            "whole_ties": (
                None
                if self.ties is None
                else {
                    "stop": self.ties.stop,
                    "sampled_before": self.ties.sampled_before,
                    "threshold": encode_float(self.ties.threshold),
                }
            ),
            "exits": self.exits,
            "asked": self.asked,
            "unanswered": self.unanswered,
            "descriptive": {
                "asked_share": self.asked / self.n,
                "sampled_differing": self.differing,
            },
        }

    @property
    def _procedure(self) -> str:
        return NAMES[max(1, len(self.drawn))]

    def counted(self) -> dict[str, Json]:
        claim = self.claimed()
        keys = (
            "kind",
            "procedure",
            "n",
            "xi",
            "delta",
            "scored",
            "key",
            "stop",
            "sampled_before",
            "whole_ties",
            "unanswered",
        )
        looks = [
            {key: look[key] for key in ("sampled", "disagreements")} for look in claim["looks"]
        ]
        return {**{key: claim[key] for key in keys}, "looks": looks}

    def recomputed(self) -> BatchCertificate:
        allowed = batch.allowed(self.scored, self.tolerated, self.drawn, delta=self.delta)
        ranks = tuple(
            places[: max(0, count + 1)]
            for places, count in zip(self.disagreements, allowed, strict=False)
        )
        stops = [
            batch.stop(places, count, self.scored)
            for places, count in zip(ranks, allowed, strict=False)
        ]
        again = replace(
            self, allowed=allowed, disagreements=ranks, stop=max(stops, default=0), loaded=None
        )
        ties = again.ties
        if ties is not None and ties.stop - ties.sampled_before > again._most_exits:
            # A longer beginning than the looks allow: say what the most is.
            ties = replace(ties, sampled_before=ties.stop - again._most_exits)
        again = replace(again, ties=ties, differing=again._differing_implied())
        return replace(again, unanswered=min(self.unanswered, again.asked))

    def _differing_implied(self) -> int:
        """The number of sampled disagreements as near to the stored one as the listed ones
        allow.
        """
        looks = len(self.disagreements)
        listed = len(self.disagreements[-1]) if looks else 0
        # A list that ends before the disagreement that would be one too many holds all there are.
        is_whole = not looks or listed <= self.allowed[looks - 1]
        return min(max(self.differing, listed), listed if is_whole else self.sampled)

    def work(self) -> float:
        marked = self.tolerated + 1 + max(self.drawn, default=0)
        reach = isqrt(360 * min(max(self.drawn, default=0), marked)) + 2
        tails = 2e-6 * reach
        if len(self.drawn) == 1:
            return tails
        states = 25.0 * sqrt(min(max(self.drawn, default=0), marked)) + 2
        return tails + 4e-8 * states * reach

    @classmethod
    def from_claim(cls, claim: Reader, provenance: Provenance, loaded: Mapping[str, Json]) -> Self:
        procedure = require(claim.text("procedure"), *NAMES.values())
        n, scored = claim.positive("n"), claim.count("scored")
        if scored > n:
            raise CertificateError(f"{claim.place('scored')} is {scored}: there are {n} records.")
        looks = claim.mappings("looks")
        drawn = tuple(look.positive("sampled") for look in looks)
        if list(drawn) != sorted(set(drawn)) or (drawn and drawn[-1] > scored):
            raise CertificateError(
                f"{claim.place('looks')}: the samples do not grow up to at most {scored} records."
            )
        if procedure != NAMES.get(max(1, len(drawn))):
            raise CertificateError(
                f"{claim.place('looks')} has {len(drawn)} looks, and the procedure is {procedure}."
            )
        xi = claim.rate("xi")
        tolerated = batch.tolerated_answers(n, xi)
        if drawn and not 0 < tolerated < scored:
            raise CertificateError(
                f"{claim.place('looks')}: nothing is sampled where {tolerated} of {scored} scored "
                "records may differ."
            )
        ranks = _read_disagreements(looks, scored)
        if drawn and not ranks:
            raise CertificateError(f"{claim.place('looks')}: no look was taken.")
        sampled = drawn[len(ranks) - 1] if ranks else 0
        stop, before = _read_stop(claim, scored, sampled, ranks[-1] if ranks else None)
        unanswered = claim.count("unanswered")
        differing = claim.mapping("descriptive").count("sampled_differing")
        if unanswered > n or differing > sampled:
            raise CertificateError(
                f"{claim.place('unanswered')} is {unanswered} and {differing} of the sample "
                f"differ: there are {n} records, and {sampled} were sampled."
            )
        return cls(
            n=n,
            xi=xi,
            delta=claim.probability("delta"),
            scored=scored,
            key=_read_key(claim),
            drawn=drawn,
            allowed=tuple(look.integer("allowed") for look in looks),
            disagreements=ranks,
            stop=stop,
            sampled_before=before,
            ties=_read_ties(claim, scored, sampled),
            differing=differing,
            unanswered=unanswered,
            provenance=provenance,
            loaded=loaded,
        )

    def words(self) -> str:
        """The claim in words."""
        lines = [
            (
                f"Batch certificate: {self.n:,} records, xi = {exact(self.xi)}, delta = "
                f"{exact(self.delta)}"
            ),
            (
                f"Of the {self.n:,} answers at most {self.tolerated:,} differ from the slow "
                f"model's, with probability at least {likelihood(self.delta)} over the draw of the "
                "sample."
            ),
            *self._saved(),
        ]
        if self.unanswered:
            lines.append(
                f"{self.unanswered:,} records have no answer, because the slow model gave none."
            )
        return "\n".join(lines)

    def draw_lines(self) -> list[str]:
        return [one_of_many(f"Key {self.key}", "key", "sample")] if self.sampled else []

    def _saved(self) -> list[str]:
        if not self.tolerated:
            return [
                (
                    f"{exact(self.xi)} of {self.n:,} records is less than one, so no answer may "
                    "differ: all records were sent to the slow model. Nothing was saved."
                )
            ]
        share = f"{self.asked:,} ({self.asked / self.n:.1%})"
        lines = [
            (
                f"The fast model answered {self.exits:,} records, the slow model {share}, "
                f"{self.sampled:,} of them as the sample."
            )
        ]
        if self.ties is not None:
            lines.append(
                "No record kept the fast answer."
                if self.ties.threshold == np.inf
                else f"What was not sampled kept it from a score of {self.ties.threshold!r} on."
            )
        if self.sampled:
            lines.append(
                f"On the sample (descriptive): {self.differing:,} of {self.sampled:,} fast answers "
                "differ from the slow model's."
            )
        if self.scored < self.n:
            lines.append(
                f"{self.n - self.scored:,} records without a score were sent to the slow model."
            )
        if not self.exits:
            lines.append("Nothing was kept, so this is certified but of no use.")
        return lines


def _read_key(claim: Reader) -> str:
    key = claim.text("key")
    if not is_key(key):
        raise CertificateError(f"{claim.place('key')} is {key!r}: expected 32 hexadecimal digits.")
    return key


def _read_disagreements(looks: Sequence[Reader], scored: int) -> tuple[Integers, ...]:
    found: list[Integers] = []
    for place, look in enumerate(looks):
        if look.raw("disagreements") is None:
            continue
        ranks = np.array(look.integers("disagreements"), dtype=np.int64)
        rises = not ranks.size or (ranks[0] >= 0 and ranks[-1] < scored)
        if not rises or (np.diff(ranks) <= 0).any() or len(found) != place:
            raise CertificateError(
                f"{look.place('disagreements')} does not rise from 0 to below {scored}, or an "
                "earlier look was not taken."
            )
        found.append(ranks)
    for place, (one, two) in enumerate(pairwise(found), start=1):
        # A later look holds what an earlier one sampled, as far down as its own list goes: to the
        # end, if it stops before the disagreement that would be one too many.
        is_whole = len(two) <= looks[place].integer("allowed")
        listed = one if is_whole else one[one <= max(two, default=-1)]
        if not np.isin(listed, two).all():
            raise CertificateError(
                f"{looks[place].place('disagreements')} lacks some that the look before found."
            )
    return tuple(found)


def _read_stop(claim: Reader, scored: int, sampled: int, ranks: Integers | None) -> tuple[int, int]:
    stop, before = _read_beginning(claim, scored, sampled)
    listed = 0 if ranks is None else int((ranks < stop).sum())
    if before < listed:
        raise CertificateError(
            f"{claim.place('sampled_before')} is {before}, but {listed} sampled disagreements "
            "stand there."
        )
    return stop, before


def _read_beginning(part: Reader, scored: int, sampled: int) -> tuple[int, int]:
    """How many records stand at the beginning of the order, and how many of them were sampled."""
    stop, before = part.count("stop"), part.count("sampled_before")
    fewest = max(0, stop - (scored - sampled))
    if stop > scored or not fewest <= before <= min(stop, sampled):
        raise CertificateError(
            f"{part.place('sampled_before')} is {before} of the first {stop} records, which does "
            f"not fit {sampled} sampled of {scored}."
        )
    return stop, before


def _read_ties(claim: Reader, scored: int, sampled: int) -> WholeTies | None:
    if claim.raw("whole_ties") is None:
        return None
    part = claim.mapping("whole_ties")
    stop, before = _read_beginning(part, scored, sampled)
    threshold = part.number("threshold")
    is_score = (0 <= threshold <= 1 and stop > 0) or (threshold == np.inf and stop == 0)
    # No score is below 0, so that at 0 all records stand there.
    if not is_score or (threshold == 0 and stop < scored):
        raise CertificateError(
            f"{part.place('threshold')} is {threshold}, which is not a score of the {stop} records "
            "that stand there."
        )
    return WholeTies(stop, before, threshold)
