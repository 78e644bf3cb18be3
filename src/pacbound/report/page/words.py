"""What a section of the page says in words: the claim, its numbers, and where it comes from.

The sentences are those of the certificate itself. The numbers are those of its claim.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from pacbound.certificate import BatchCertificate, Certificate
from pacbound.certificate.document import amount, exact
from pacbound.claims.claim import ClaimCertificate
from pacbound.documents import Json
from pacbound.report.page.markup import in_short

_DESCRIPTIVE: Final = ("On these", "On the sample", "By group")
_UNITS: Final = {"batch": "Records"}
_COUNTS: Final = {
    "xi": "xi: what may be lost, missed or differ",
    "bounded": "What xi bounds",
    "delta": "delta: the chance that the claim is wrong",
    "threshold": "Threshold",
    "thresholds": "Thresholds, one for each exit",
    "costs": "Cost of a row, by the model that answers",
    "tolerated": "Answers that may differ",
    "scored": "Records with a score",
    "exits": "Answered by the fast model",
    "asked": "Sent to the slow model",
    "unanswered": "Without an answer",
    "look": "Planned look",
    "looks": "All planned looks",
    "first_threshold": "Highest threshold looked at",
}
_SEEN: Final = {
    "exit_rates": "Rows that exit early, by exit",
    "observed_error_increase": "Accuracy lost",
    "expected_cost": "Cost of a row",
    "coverage": "Rows answered",
    "observed_error": "Wrong among these",
    "asked_share": "Share sent to the slow model",
    "sampled_differing": "Sampled answers that differ",
}
_BOUNDED: Final = {
    "loss": "the accuracy lost against the slow model",
    "differ": "the share of answers that differ from the slow model's",
}
_INFINITE: Final = {"+inf": "+inf: above every score", "-inf": "-inf: below every score"}
_SHARES: Final = frozenset(
    {
        "exit_rates",
        "observed_error_increase",
        "coverage",
        "observed_error",
        "asked_share",
    }
)
_COSTS: Final = frozenset({"costs", "expected_cost"})


@dataclass(frozen=True)
class Words:
    """A certificate in words, in its own order: what it is, what is claimed or refused, what was
    only seen, a line for each of its groups, and what follows these.
    """

    head: str
    claim: tuple[str, ...]
    seen: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()
    rest: tuple[str, ...] = ()


def words_of(certificate: Certificate) -> Words:
    """The certificate's own sentences, sorted by what they are about."""
    if isinstance(certificate, ClaimCertificate):
        said = certificate.says
        claimed = [part for part in (said.rule, said.promise) if part is not None]
        return Words(
            str(said.title),
            tuple(map(str, (*said.refused, *claimed))),
            tuple(map(str, said.seen)),
            tuple(map(str, said.groups)),
            (*map(str, said.notes), *certificate.draw_lines()),
        )
    head, *lines = certificate.words().split("\n")
    drawn = tuple(certificate.draw_lines())
    places = [place for place, line in enumerate(lines) if line.startswith("  ")]
    begin, end = (places[0], places[-1] + 1) if places else (len(lines), len(lines))
    first = next(
        (place for place, line in enumerate(lines[:begin]) if line.startswith(_DESCRIPTIVE)), begin
    )
    return Words(
        head,
        tuple(lines[:first]),
        tuple(lines[first:begin]),
        tuple(line.strip() for line in lines[begin:end]),
        (*lines[end:], *drawn),
    )


def counts_of(certificate: Certificate, claim: Mapping[str, Json]) -> list[tuple[str, str]]:
    """The numbers that were asked for and counted, and what was decided from them."""
    if isinstance(certificate, ClaimCertificate):
        return certificate.by.numbers(certificate)
    claim = dict(claim)
    if "bounded" in claim:
        claim["bounded"] = _BOUNDED[claim["bounded"]]
    rows = (
        [(_UNITS.get(certificate.kind, "Rows counted"), f"{claim['n']:,}")] if "n" in claim else []
    )
    if isinstance(certificate, BatchCertificate):
        # Its looks are samples, and have a figure.
        claim["looks"] = None
        rows.append(("Records sampled", f"{certificate.sampled:,}"))
    return rows + [
        (name, _written(claim[key], cost=key in _COSTS))
        for key, name in _COUNTS.items()
        if claim.get(key) is not None
    ]


def seen_of(claim: Mapping[str, Json]) -> list[tuple[str, str]]:
    """What was seen on the rows that certified, and carries no guarantee."""
    part = claim.get("descriptive", {})
    names = dict(_SEEN)
    if claim.get("bounded") == "differ":
        names["observed_error_increase"] = "Answers that differ"
    return [
        (name, _written(part[key], share=key in _SHARES, cost=key in _COSTS))
        for key, name in names.items()
        if part.get(key) is not None
    ]


def origin_of(certificate: Certificate, claim: Mapping[str, Json]) -> list[tuple[str, str]]:
    """Who made the certificate, of what, and when; and what it is known by again."""
    origin = certificate.provenance.to_dict()
    sources = list(origin["sources"])
    listed = ", ".join(sources[:5]) + (
        f" and {len(sources) - 5:,} more" if len(sources) > 5 else ""
    )
    columns = ", ".join(f"{role}: {name}" for role, name in origin["columns"].items())
    samples = [origin["sample"]] if "sample" in origin else []
    samples += [f"{name} ({claim})" for claim, name in origin.get("samples", {}).items()]
    return [
        *((in_short(key), text) for key, text in origin.get("about", {}).items()),
        ("Made", f"{origin['created']}, by pacbound {origin['version']}"),
        ("Columns", columns),
        *([("Sample, as its maker calls it", ", ".join(samples))] if samples else []),
        ("Sources", listed),
        *(
            (f"Digest of the {role} names", taken)
            for role, taken in origin.get("drawn_by", {}).items()
        ),
        ("Procedure", str(claim["procedure"])),
        ("Digest of the claim", certificate.claim_digest),
        ("Digest of the counts", certificate.counts_digest),
    ]


def _written(value: Any, *, share: bool = False, cost: bool = False) -> str:
    if isinstance(value, list):
        return "; ".join(_written(part, share=share, cost=cost) for part in value)
    if isinstance(value, str):
        return _INFINITE.get(value, value)
    if share:
        return f"{value:.2%}"
    if cost:
        return amount(value)
    return f"{value:,}" if isinstance(value, int) else exact(value)
