"""Every value of every frozen certificate replaced by nasty ones, and the digests mended: nothing
comes of it but a clear error, a difference, or another certificate in its own right.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.certificate.conftest import FROZEN, LAYOUTS
from tests.products import standing_for

from pacbound import documents
from pacbound.claims.certificate import certificate_from_dict
from pacbound.errors import CertificateError, PacboundError

TOO_LARGE = "written as 1e400"
NASTY: list[Any] = [
    True,
    None,
    [],
    {},
    "",
    "nan",
    "+inf",
    "\ud800",
    -1,
    0,
    2**53,
    2**63,
    2**64 + 5,
    TOO_LARGE,
    0.5,
    1e308,
    [[[1]], {}],
    {"rule": ["edges"]},
]


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The path of every value, containers too; long lists are alike between their ends."""
    yield path
    if isinstance(value, (dict, list)):
        ends = sorted({0, len(value) - 1}) if len(value) > 3 else range(len(value))
        for key in value if isinstance(value, dict) else ends:
            yield from places(value[key], (*path, key))


def replaced(document: dict[str, Any], path: tuple[Any, ...], value: Any) -> bytes:
    """The document as text with another value, every digest that can be mended, mended."""
    changed = documents.copied(document)
    place: Any = changed
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = value
    for part in ("claim", "provenance"):
        if part in changed and path != (f"{part}_digest",):
            changed[f"{part}_digest"] = documents.digest(changed[part])
    return json.dumps(changed).replace(f'"{TOO_LARGE}"', "1e400").encode()


SHARE = 8
"""Each place of a certificate gets one in so many of the nasty values, another part of them in the
next place and in the next certificate."""


@pytest.mark.slow
@pytest.mark.parametrize(
    "frozen",
    standing_for(FROZEN, [path for path in FROZEN if path.stem[:-2] in LAYOUTS]),
    ids=lambda path: path.stem,
)
def test_a_nasty_value_anywhere_is_refused_or_found(frozen: Path) -> None:
    document = json.loads(frozen.read_text())
    counts = certificate_from_dict(document).counts_digest
    turn = FROZEN.index(frozen)
    for number, path in enumerate(places(document)):
        if not path:
            continue
        for value in NASTY[(turn + number) % SHARE :: SHARE]:
            try:
                parsed = documents.parse(
                    replaced(document, path, value), what="a certificate", name="it"
                )
                certificate = certificate_from_dict(parsed)
                found = certificate.verify()
                certificate.summary()
            except PacboundError:
                continue
            old: Any = document
            for key in path:
                old = old[key]
            if not found or (type(value) is type(old) and value == old):
                continue
            # What is left follows from its counts. It answers another question (other edges,
            # another delta), and says so by its digest; or it is words about where it comes from,
            # or a descriptive number that the counts only bound.
            assert (
                certificate.counts_digest != counts
                or path[0] == "provenance"
                or path[-1] == "interventions"
                or "best_possible" in path
            ), (path, value)


@pytest.mark.parametrize(
    ("place", "value"),
    [
        (("schema",), True),
        (("schema",), 1.0),
        (("claim", "bins", "rule"), ["equal-width"]),
        (("claim", "bins", "n_bins"), 10**400),
        (("claim", "delta"), 10**400),
        (("claim", "delta"), float("inf")),
        (("claim", "extra"), float("nan")),
        (("claim", "extra"), object()),
        (("claim", "tables", 0, "group"), "day"),
        (("claim", "scope"), "groups"),
    ],
)
def test_a_value_that_equals_or_hides_another_is_refused(
    place: tuple[Any, ...], value: Any
) -> None:
    document = json.loads((FROZEN[0].parent / "calibration-1.json").read_text())
    target: Any = document
    for key in place[:-1]:
        target = target[key]
    target[place[-1]] = value
    with pytest.raises(CertificateError):
        certificate_from_dict(document).verify()


def test_groups_out_of_order_are_refused() -> None:
    document = json.loads((FROZEN[0].parent / "calibration-groups-1.json").read_text())
    document["claim"]["tables"].reverse()
    document["claim_digest"] = documents.digest(document["claim"])
    with pytest.raises(CertificateError, match="do not fit the scope"):
        certificate_from_dict(document)


def test_costs_whose_sum_is_no_float_are_refused() -> None:
    document = json.loads((FROZEN[0].parent / "cascade-paths-exact-1.json").read_text())
    document["claim"]["costs"] = [1.0, 1e307, 1e308]
    document["claim_digest"] = documents.digest(document["claim"])
    with pytest.raises(CertificateError, match="do not rise, one for each model"):
        certificate_from_dict(document)


def test_provenance_of_another_package_is_found() -> None:
    document = json.loads(FROZEN[0].read_text())
    document["provenance"]["package"] = "another"
    document["provenance_digest"] = documents.digest(document["provenance"])
    with pytest.raises(CertificateError, match=r"provenance\.package"):
        certificate_from_dict(document)
