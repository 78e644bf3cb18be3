"""What documents name as assumed is explained, in the package and on the page of proofs."""

from __future__ import annotations

from pathlib import Path
from runpy import run_path

import pytest
from tests.certificate.conftest import MAKERS, made

from pacbound.claims import KINDS, claim_of
from pacbound.claims.assumptions import ASSUMED, assumed_of_drawn
from pacbound.tally.draws import Drawn

DOCS = Path(__file__).parents[2] / "docs"
DRAWS = [
    Drawn("strata", 3, 3),
    Drawn("weights", 3, 3, 0, 1.0),
    Drawn("clusters", 3, 3, 0),
    Drawn("clusters", 3, 3, 0, 2.0),
    Drawn("clusters", 3, 3, 0, among=(("positive", 2),)),
    Drawn("clusters", 3, 3, 0, 2.0, among=(("negative", 1), ("positive", 2))),
]


def _names() -> set[str]:
    claims = [claim_of(kind) for kind in KINDS]
    procedures = [one for claim in claims for one in claim.procedures.values()]
    ids = [(*procedure.assumes, "groups-beforehand") for procedure in procedures]
    ids += [claim.may_assume for claim in claims]
    drawn = {name for one in ids for draw in DRAWS for name in assumed_of_drawn(one, draw)}
    return drawn.union(*ids)


def test_every_name_has_its_sentence_and_every_sentence_is_used() -> None:
    assert _names() == ASSUMED.keys()


def test_the_page_of_proofs_has_every_sentence() -> None:
    page = (DOCS / "proofs.md").read_text(encoding="utf-8")
    built = run_path(str(DOCS / "site_hooks.py"))["on_page_markdown"](page)
    rows = [f"| `{name}` | {sentence} |" for name, sentence in ASSUMED.items()]
    assert [row for row in rows if row not in built.splitlines()] == []


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("draw", [draw for draw in DRAWS if draw.by == "clusters"])
def test_beside_independent_clusters_no_rows_are_said_to_be_independent(
    kind: str, draw: Drawn
) -> None:
    for procedure in claim_of(kind).procedures.values():
        assumed = assumed_of_drawn(procedure.assumes, draw)
        assert [name for name in assumed if "independent" in name] == ["independent-clusters"]


@pytest.mark.parametrize("name", [name for name in MAKERS if "clusters" in name])
def test_a_certificate_of_clusters_assumes_independence_once(name: str) -> None:
    independent = [line for line in made(name).assumed() if "independent draws" in line]
    assert independent == [ASSUMED["independent-clusters"]]
