"""A batch: of N answers at most m differ from the slow model's.

The records are given, and the only chance is which of them were sampled. So a batch is not counted
from a table: a session asks the slow model (`pacbound.cascade`), and brings what it found.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from math import inf, isqrt, sqrt
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pacbound.claims.assumptions import one_of_many
from pacbound.claims.certificate import Certificate
from pacbound.claims.claim import Cells, Claim, Procedure, Values
from pacbound.claims.tables import head
from pacbound.documents import Reader
from pacbound.errors import InvalidTypeError
from pacbound.fields import Field, Fields, Record, Tables, column_of
from pacbound.figure import Figure
from pacbound.figures.batch import sampled_disagreements
from pacbound.forms import DELTA, RATE, Ask, Form, Number, Text, Threshold, Whole
from pacbound.procedures import batch
from pacbound.procedures.batch import NAMES
from pacbound.says import Quantity, Says, Sentence, confidence, count, share

Integers = NDArray[np.int64]


class WholeTies(NamedTuple):
    """What is kept where records of one score stay together: the first `stop` of the order,
    `sampled_before` of them sampled. Their scores are those at or above `threshold`.
    """

    stop: int
    sampled_before: int
    threshold: float


class BatchCertificate(Certificate):
    """Of the `n` answers at most `tolerated` differ from the slow model's, with probability at
    least 1 - `delta` over the draw of the sample.

    The records are given and fixed. The only chance is which of them were sampled, by a permutation
    that was drawn once and that `key` gives. `answer_batch` makes such a certificate, and
    `load_certificate` reads one. There is no refusal: where nothing can be kept, every record is
    sent to the slow model, which is always right, and the summary says so.

    Attributes
    ----------
    by : Claim
        What is claimed, and how it is decided and said.
    values : mapping
        Everything that the document holds of it, by name.
    provenance : Provenance
        Where the certificate comes from.
    draw : None
        The records of a batch are given, and not drawn from others.
    loaded : mapping or None
        The document that it was read from; None if it was made in this process.
    tolerated : int
        How many answers may differ from the slow model's: floor(xi n).
    scored : int
        How many records have a score; the others were sent to the slow model.
    key : str
        What the permutation follows from.
    stop : int
        How many records stand before the disagreement that stopped the longest look.
    sampled_before : int
        How many of these were sampled.
    exits : int
        How many records kept the fast model's answer.
    asked : int
        How many records were sent to the slow model, the sample included.
    unanswered : int
        How many records have no answer, because the slow model gave none.

    Examples
    --------
    >>> import numpy as np
    >>> from pacbound import answer_batch
    >>> confidence = np.linspace(0, 1, 2000)
    >>> fast = np.where(confidence < 0.2, "cat", "dog")
    >>> done = answer_batch(
    ...     confidence, fast, lambda rows: ["dog"] * len(rows), xi=0.05, delta=0.1,
    ...     answers=None, key="5f82c2d9cfeb0fa321d7d982f8bd1045",
    ... )
    >>> certificate = done.certificate
    >>> certificate.n, certificate.tolerated, certificate.exits, certificate.verify().ok
    (2000, 100, 1554, True)
    """

    xi: float
    tolerated: int
    scored: int
    key: str
    stop: int
    sampled_before: int
    exits: int
    asked: int
    unanswered: int

    @property
    def drawn(self) -> tuple[int, ...]:
        """How many records each look samples, as it was planned; empty if nothing had to be
        sampled.
        """
        return tuple(look["sampled"] for look in self.values["looks"])

    @property
    def allowed(self) -> tuple[int, ...]:
        """How many sampled disagreements each look allows; -1 if not even zero pass."""
        return tuple(look["allowed"] for look in self.values["looks"])

    @property
    def disagreements(self) -> tuple[Integers, ...]:
        """For each look that was taken, the places of the sampled disagreements in the order of the
        scores, counted from 0, down to the first that is too many.
        """
        return tuple(look["disagreements"] for look in _taken(self.values["looks"]))

    @property
    def sampled(self) -> int:
        """How many records were sampled, over all looks that were taken."""
        return _sampled(self.values["looks"])

    @property
    def ties(self) -> WholeTies | None:
        """What is kept if records of one score stay together; None where ties may be split."""
        found = self.values["whole_ties"]
        return None if found is None else WholeTies(**found)

    @property
    def differing(self) -> int:
        """How many answers of the fast model differed on the whole sample; descriptive."""
        return int(self.values["descriptive"]["sampled_differing"])

    @property
    def threshold(self) -> float | None:
        """Records at or above it that were not sampled kept the fast answer; +inf if none did, None
        if ties were split, so that no threshold says it.
        """
        self.require_intact()
        return None if self.ties is None else self.ties.threshold

    def draw_lines(self) -> list[str]:
        """That another key would give another sample."""
        return [one_of_many(f"Key {self.key}", "key", "sample")] if self.sampled else []


class Places(Form):
    """Places in the order of the scores, which rise from 0 on."""

    def read(self, part: Reader, key: str) -> Integers:
        """The places."""
        return column_of(part, key)


_LOOKS = Tables(
    Fields(
        (
            Field("sampled", Whole(1), counted=True),
            Field("allowed", Whole(-1)),
            Field("disagreements", Places(), counted=True),
        )
    ),
)
_TIES = Record(
    Fields(
        (
            Field("stop", Whole()),
            Field("sampled_before", Whole()),
            Field("threshold", Threshold()),
        )
    )
)
_SEEN = Record(
    Fields(
        (Field("asked_share", Number("a share", 0, 1, "[]")), Field("sampled_differing", Whole()))
    )
)
_ASSUMES = (
    "records-before-the-sample",
    "one-permutation",
    "answers-whatever-is-asked",
    "sample-before-asking",
)


class BatchClaim(Claim[BatchCertificate]):
    """Answers of a batch that differ from the slow model's."""

    kind = "batch"
    command = "batch"
    help = "Answer records with a fast model where few answers then differ from a slow one's."
    question = None
    asks = (Ask("xi", RATE, "The share of the answers that may differ: 0.01", side="up"), DELTA)
    procedures: Mapping[str, Procedure] = {
        name: Procedure(name, _ASSUMES) for name in NAMES.values()
    }
    certificate = BatchCertificate

    def fields(self, procedure: Procedure) -> Fields:
        """What was sampled and found at each look, and what was kept."""
        return Fields(
            (
                *head(self, procedure, self.asks),
                Field("tolerated", Whole()),
                Field("scored", Whole(), counted=True),
                Field("key", Text(), counted=True),
                Field("looks", _LOOKS, counted=True),
                Field("stop", Whole(), counted=True),
                Field("sampled_before", Whole(), counted=True),
                Field("whole_ties", _TIES, counted=True),
                Field("exits", Whole()),
                Field("asked", Whole()),
                Field("unanswered", Whole(), counted=True),
                Field("descriptive", _SEEN),
            ),
        )

    def counted(self, evidence: Values, wishes: Values) -> dict[str, Any]:
        """What a session has found: `looks`, each with the places of the disagreements, and the
        numbers of records.
        """
        procedure = NAMES[max(1, len(evidence["looks"]))]
        return {**evidence, **wishes, "kind": self.kind, "procedure": procedure}

    def decided(self, values: Values) -> dict[str, Any]:
        """What each look allows, and which records that leaves to the fast model."""
        n, scored = values["n"], values["scored"]
        tolerated = batch.tolerated_answers(n, values["xi"])
        drawn = [look["sampled"] for look in values["looks"]]
        allowed = batch.allowed(scored, tolerated, drawn, delta=values["delta"])
        looks = [
            {**look, "allowed": most, "disagreements": _listed(look["disagreements"], most)}
            for look, most in zip(values["looks"], allowed, strict=True)
        ]
        taken = _taken(looks)
        stops = [batch.stop(look["disagreements"], look["allowed"], scored) for look in taken]
        stop, sampled = max(stops, default=0), _sampled(looks)
        most = batch.kept(
            stop, values["sampled_before"], scored=scored, sampled=sampled, tolerated=tolerated
        )
        ties = values["whole_ties"]
        if ties is not None and ties["stop"] - ties["sampled_before"] > most:
            # A longer beginning than the looks allow: say what the most is.
            ties = {**ties, "sampled_before": ties["stop"] - most}
        exits = most if ties is None else ties["stop"] - ties["sampled_before"]
        return {
            **values,
            "assumes": self.procedures[values["procedure"]].assumes,
            "certified": True,
            "tolerated": tolerated,
            "looks": looks,
            "stop": stop,
            "whole_ties": ties,
            "exits": exits,
            "asked": n - exits,
            "unanswered": min(values["unanswered"], n - exits),
            "descriptive": {
                "asked_share": (n - exits) / n,
                "sampled_differing": _differing(
                    values["descriptive"]["sampled_differing"], taken, sampled
                ),
            },
        }

    def says(self, certificate: BatchCertificate) -> Says:
        """How many answers may differ, and who answered."""
        quantities = _quantities(certificate)

        def said(names: Iterable[str]) -> tuple[Sentence, ...]:
            return tuple(Sentence(_SENTENCES[name], quantities) for name in names)

        plainly = "plain" if certificate.tolerated else "none differ"
        title, heading, plain, costs, promise = said(
            ["title", "heading", plainly, "costs", "promise"]
        )
        seen, notes = said(_seen(certificate)), said(_notes(certificate))
        return Says(title, heading, plain, costs, promise=promise, seen=seen, notes=notes)

    def figures(self, certificate: BatchCertificate) -> Iterable[Figure]:
        """The disagreements of the last look that was taken."""
        taken = _taken(certificate.values["looks"])
        if taken:
            yield sampled_disagreements(
                taken[-1]["disagreements"],
                records=certificate.scored,
                allowed=taken[-1]["allowed"],
                kept=certificate.stop,
            )

    def watch(self, certificate: BatchCertificate) -> str:  # noqa: ARG002
        """Nothing in use can break it."""
        return (
            "it is about records that are all there and all answered, so that no row in use can "
            "break it. To notice that later records are of another kind, certify a cascade on "
            "labelled rows and monitor that"
        )

    def names_in_columns(self, certificate: BatchCertificate) -> None:
        """The answers that the batch was compared with are in no column."""

    def recounting(self, certificate: BatchCertificate) -> dict[str, Any]:  # noqa: ARG002
        """A batch is counted again from its rows and the answers of the expert."""
        raise InvalidTypeError(
            "A batch is counted again from its rows and from the file of the expert's answers: add "
            "--answers FILE."
        )

    def cells(self, certificate: BatchCertificate) -> Cells:
        """What was found at each look, and what was kept."""
        names = ("scored", "stop", "sampled_before", "exits", "unanswered")
        counts = {name: int(certificate.values[name]) for name in names}
        found: Cells = {"records": {**counts, "sampled differing": certificate.differing}}
        for place, look in enumerate(_taken(certificate.values["looks"]), start=1):
            ranks = {f"at {rank}": 1 for rank in look["disagreements"].tolist()}
            found[f"look {place}, disagreements"] = {"sampled": int(look["sampled"]), **ranks}
        return found

    def numbers(self, certificate: BatchCertificate) -> list[tuple[str, str]]:
        """What was asked for, sampled and kept."""
        rows, *asked = super().numbers(certificate)
        found = {
            "Records sampled": certificate.sampled,
            "Answers that may differ": certificate.tolerated,
            "Records with a score": certificate.scored,
            "Answered by the fast model": certificate.exits,
            "Sent to the slow model": certificate.asked,
            "Without an answer": certificate.unanswered,
        }
        counts = [(name, f"{number:,}") for name, number in found.items()]
        return [("Records", rows[1]), *asked, *counts]

    def work(self, values: Values) -> float:
        """The tails of the looks."""
        most = max((look["sampled"] for look in values["looks"]), default=0)
        reach = isqrt(360 * most) + 2
        tails = 2e-6 * reach
        if len(values["looks"]) == 1:
            return tails
        return tails + 4e-8 * (25.0 * sqrt(most) + 2) * reach


CLAIM = BatchClaim()


def _taken(looks: Sequence[Values]) -> list[Values]:
    return [look for look in looks if look["disagreements"] is not None]


def _sampled(looks: Sequence[Values]) -> int:
    """How many records the looks that were taken have sampled."""
    return max((look["sampled"] for look in _taken(looks)), default=0)


def _listed(places: Integers | None, allowed: int) -> Integers | None:
    """The disagreements down to the first that is too many."""
    return None if places is None else places[: max(0, allowed + 1)]


def _differing(stored: int, taken: Sequence[Values], sampled: int) -> int:
    """The number of sampled disagreements as near to the stored one as the listed ones allow."""
    listed = len(taken[-1]["disagreements"]) if taken else 0
    # A list that ends before the disagreement that would be one too many holds all there are.
    is_whole = not taken or listed <= taken[-1]["allowed"]
    return min(max(stored, listed), listed if is_whole else sampled)


_SENTENCES = {
    "title": "Batch certificate: {n} records, xi {xi}, delta {delta}",
    "heading": "Batch of which at most {xi} of the answers differ",
    "plain": (
        "Of these {n} answers at most {tolerated} differ from what the slow model says "
        "({confidence} confidence)."
    ),
    "none differ": "All {n} answers are those of the slow model.",
    "costs": "The slow model answered {asked} of them.",
    "promise": (
        "Of the {n} answers at most {tolerated} differ from the slow model's, with probability at "
        "least {confidence} over the draw of the sample."
    ),
    "all asked": (
        "{xi} of {n} records is less than one, so no answer may differ: all records were sent to "
        "the slow model. Nothing was saved."
    ),
    "answered": (
        "The fast model answered {exits} records, the slow model {asked} ({share}), {sampled} of "
        "them as the sample."
    ),
    "sample": (
        "On the sample (descriptive): {differing} of {sampled} fast answers differ from the slow "
        "model's."
    ),
    "kept": "Outside the sample, records scored {threshold} or higher kept the fast answer.",
    "none kept": "No record kept the fast answer.",
    "unscored": "{unscored} records without a score were sent to the slow model.",
    "no use": "Nothing was kept, so this is certified but of no use.",
    "unanswered": "{unanswered} records have no answer, because the slow model gave none.",
}


def _quantities(certificate: BatchCertificate) -> dict[str, Quantity]:
    counts = ("n", "tolerated", "exits", "asked", "sampled", "differing", "unanswered")
    ties = certificate.ties
    return {
        **{name: count(getattr(certificate, name)) for name in counts},
        "unscored": count(certificate.n - certificate.scored),
        "xi": share(certificate.xi, "up"),
        "delta": share(certificate.delta, "up"),
        "confidence": confidence(certificate.delta),
        "share": share(certificate.asked / certificate.n),
        "threshold": Quantity(inf if ties is None else ties.threshold, "threshold", "exact"),
    }


def _seen(certificate: BatchCertificate) -> list[str]:
    """Which sentences say who answered, and what the sample showed."""
    if not certificate.tolerated:
        return ["all asked"]
    return ["answered", "sample"] if certificate.sampled else ["answered"]


def _notes(certificate: BatchCertificate) -> list[str]:
    ties, may_differ = certificate.ties, certificate.tolerated > 0
    found = {
        "kept": may_differ and ties is not None and ties.threshold < inf,
        "none kept": may_differ and ties is not None and ties.threshold == inf,
        "unscored": may_differ and certificate.scored < certificate.n,
        "no use": may_differ and not certificate.exits,
        "unanswered": certificate.unanswered > 0,
    }
    return [name for name, holds in found.items() if holds]
