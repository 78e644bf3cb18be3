"""What a certificate says of rows that were drawn from others: what the claim is then about.

The claim keeps the seed, the bound, and of how many rows and clusters the counted ones were drawn.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from pacbound.documents import Json, Reader, printable, shown
from pacbound.errors import CertificateError
from pacbound.tally.draws import Drawn, drawn_from

_DIGEST = re.compile(r"sha256:[0-9a-f]{64}")
_ONE_SEED = (
    "the draw used nothing but the seed and names of {}, not scores or labels, and no other seed "
    "was tried"
)


def claimed_draw(drawn: Drawn) -> dict[str, Json]:
    """How the rows were drawn, as the claim holds it."""
    clusters = {"clusters": drawn.units} if drawn.by == "clusters" else {}
    return {
        "by": drawn.by,
        "seed": drawn.seed,
        "bound": drawn.bound,
        "rows": drawn.rows,
        **clusters,
    }


def read_draw(claim: Reader) -> Drawn | None:
    """How the rows of a claim were drawn; None if it says nothing of it."""
    if not claim.has("drawn"):
        return None
    part = claim.mapping("drawn")
    drawn = drawn_from(part, units="clusters" if part.has("clusters") else None)
    if not drawn.fits(claim.count("n")):
        raise CertificateError(
            f"{claim.place('drawn')}: {claim.count('n')} rows cannot have been drawn as it says."
        )
    return drawn


def read_names(provenance: Reader) -> dict[str, str]:
    """The digests of the names that a draw went by, as a document holds them."""
    if not provenance.has("drawn_by"):
        return {}
    found = provenance.mapping("drawn_by").all_texts()
    for role, digest in found.items():
        if not _DIGEST.fullmatch(digest):
            raise CertificateError(
                f"{provenance.place('drawn_by')}.{printable(role)} is {shown(digest)}: expected a "
                "digest."
            )
    return found


def drawn_assumptions(drawn: Drawn) -> tuple[str, ...]:
    """What must hold beside what is assumed of the counted rows."""
    if drawn.by == "strata":
        return (
            "how many rows of each bin were labelled was fixed before any label was seen, and the "
            "rows of a bin were chosen by a key alone",
            "shares of rows, and averages over rows, are those of the labels bought, not of use",
        )
    if drawn.by == "weights":
        return (
            "the counted rows were kept from others, each with probability weight / bound; the "
            "claim is about the distribution that the weights describe",
            "the weights are exactly proportional to its density over that of the rows, depend on "
            "inputs only, and nowhere exceed the bound, which was fixed beforehand; estimated "
            "weights carry no guarantee",
            "labels given inputs are distributed alike in both",
            _ONE_SEED.format("rows"),
        )
    per_row = () if drawn.bound is None else _PER_ROW
    return (
        "clusters are independent draws from the distribution of use; rows of one cluster may "
        "depend on each other, and all its rows were in one count",
        *(per_row or _PER_CLUSTER),
        _ONE_SEED.format("clusters and rows"),
    )


_PER_CLUSTER = (
    "one row was drawn from each cluster; the claim is about a random row of a random cluster, in "
    "which clusters count alike, whatever their size",
)
_PER_ROW = (
    "one row was drawn from each cluster and kept with probability size / bound, where no cluster "
    "can have more rows than the bound, which was fixed beforehand; the claim is about a random "
    "row",
)


def described_draw(drawn: Drawn | None) -> list[str]:
    """The lines of a summary that say what the claim is about."""
    if drawn is None:
        return []
    if drawn.by == "strata":
        return ["Rows were chosen per bin (strata): averages over rows would not be those of use."]
    said = _WORDS[drawn.by, drawn.bound is None].format(**_numbers(drawn))
    return [said, one_of_many(f"Seed {drawn.seed}", "seed", "draw")]


def one_of_many(used: str, key: str, what: str) -> str:
    """The warning beside a claim that rows were drawn for."""
    return f"{used}: another {key} gives another {what}; trying several voids the claim."


def rows_to_take_in(drawn: Drawn | None) -> str | None:
    """What a monitor must be fed where the claim is about rows that were drawn; None if about all
    rows in use, as they come.
    """
    if drawn is None or drawn.by == "strata":
        return None
    return _TO_TAKE_IN[drawn.by, drawn.bound is None].format(**_numbers(drawn))


def _numbers(drawn: Drawn) -> Mapping[str, str]:
    return {
        "rows": f"{drawn.rows:,}",
        "units": f"{drawn.units:,}",
        "bound": "" if drawn.bound is None else f"{drawn.bound:g}",
    }


_WORDS = {
    ("clusters", True): (
        "Drawn: one row from each of {units} clusters, of {rows} rows. The claim is about a random "
        "row of a random cluster, not about the rate per row."
    ),
    ("clusters", False): (
        "Drawn: one row from each of {units} clusters, of {rows} rows, kept with probability size "
        "/ {bound}. The claim is about a random row."
    ),
    ("weights", False): (
        "Drawn: these rows from {rows}, each kept with probability weight / {bound}. The claim is "
        "about the distribution that the weights describe, and holds only if they are exact: "
        "estimated weights carry no guarantee."
    ),
}

_ONE_EACH = (
    "one row of each cluster, drawn before its outcome is known{}, and no cluster twice. Rows of "
    "one cluster depend on each other: all of them would ring falsely."
)

_TO_TAKE_IN = {
    ("clusters", True): "The claim is about a random row of a random cluster: take in "
    + _ONE_EACH.format(""),
    ("clusters", False): "The claim is about a random row, counted by clusters: take in "
    + _ONE_EACH.format(" and kept with probability size / {bound}"),
    ("weights", False): (
        "The claim is about the distribution that the weights describe: take in rows of that one."
    ),
}
