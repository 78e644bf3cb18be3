"""What a section of the page says in words: the claim, its numbers, and where it comes from.

The sentences are those of the certificate itself. The numbers are those of its claim.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pacbound.claims.certificate import Certificate
from pacbound.documents import Json
from pacbound.report.page.markup import in_short


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
    said = certificate.says
    claimed = [part for part in (said.rule, said.promise) if part is not None]
    return Words(
        str(said.title),
        tuple(map(str, (*said.refused, *claimed))),
        tuple(map(str, said.seen)),
        tuple(map(str, said.groups)),
        (*map(str, said.notes), *certificate.draw_lines()),
    )


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
