"""What documents name as assumed is explained, in the package and on the page of proofs."""

from __future__ import annotations

from pathlib import Path
from runpy import run_path

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
