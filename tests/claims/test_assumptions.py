"""What documents name as assumed is explained, in the package and on the page of proofs."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from runpy import run_path
from typing import Any

import numpy as np
import pytest
from tests.certificate.conftest import MAKERS, made

from pacbound import calibrate, certify_abstention, certify_rate, certify_recall, certify_shield
from pacbound.claims import KINDS, claim_of
from pacbound.claims.assumptions import assumed_of_drawn, assumed_of_groups
from pacbound.claims.certificate import Certificate
from pacbound.exact_verifier import CONDITIONS, MEANINGS
from pacbound.tally.draws import Drawn
from pacbound.tally.questions.question import Scope

ASSUMED = {**CONDITIONS, **MEANINGS}

DOCS = Path(__file__).parents[2] / "docs"
DRAWS = [
    Drawn("weights", 3, 3, 0, 1.0),
    Drawn("clusters", 3, 3, 0),
    Drawn("clusters", 3, 3, 0, 2.0),
    Drawn("clusters", 3, 3, 0, among=(("positive", 2),)),
    Drawn("clusters", 3, 3, 0, 2.0, among=(("negative", 1), ("positive", 2))),
    Drawn("clusters", 3, 3, 0, each="cluster-and-group", spanning=0),
    Drawn("clusters", 3, 3, 0, each="cluster-group-and-bin", spanning=0),
    Drawn("clusters", 3, 3, 0, among=(("positive", 2),), each="cluster-and-group", spanning=0),
]

SCORE, RIGHT = np.linspace(0, 1, 40), np.arange(40) % 4 > 0
SITE, CLUSTER = np.arange(40) % 2, np.arange(40) // 2
HALF: Any = {"delta": 0.5, "n_bins": 2}
AIM: Any = {"target": 0.5, "delta": 0.5}
NUMBERED = {
    name
    for name in CONDITIONS
    if name.startswith(("rows-by", "stopped-by")) or name.endswith("-unseen")
}
SCOPES: tuple[Scope, ...] = ("groups", "overlapping-groups")


def _names() -> set[str]:
    claims = [claim_of(kind) for kind in KINDS]
    procedures = [one for claim in claims for one in claim.procedures.values()]
    ids = [one.assumes for one in procedures]
    ids += [assumed_of_groups(one.assumes, scope) for one in procedures for scope in SCOPES]
    ids += [claim.may_assume for claim in claims]
    drawn = {
        name for one in ids for draw in DRAWS for name in assumed_of_drawn(one, draw, "answered")
    }
    return drawn.union(*ids)


def test_every_name_has_its_sentence_and_every_sentence_is_used() -> None:
    assert _names() == ASSUMED.keys()


def test_every_name_is_a_condition_or_a_meaning() -> None:
    assert CONDITIONS.keys() & MEANINGS.keys() == set()


def test_the_page_of_proofs_has_every_sentence() -> None:
    page = (DOCS / "proofs.md").read_text(encoding="utf-8")
    built = run_path(str(DOCS / "site_hooks.py"))["on_page_markdown"](page)
    rows = [f"| `{name}` | condition | {sentence} |" for name, sentence in CONDITIONS.items()]
    rows += [f"| `{name}` | meaning | {sentence} |" for name, sentence in MEANINGS.items()]
    assert [row for row in rows if row not in built.splitlines()] == []


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("draw", [draw for draw in DRAWS if draw.by == "clusters"])
def test_beside_independent_clusters_no_rows_are_said_to_be_independent(
    kind: str, draw: Drawn
) -> None:
    for procedure in claim_of(kind).procedures.values():
        assumed = assumed_of_drawn(procedure.assumes, draw)
        drawn = [name for name in assumed if "independent draws" in ASSUMED[name]]
        assert drawn == ["independent-clusters"]


@pytest.mark.parametrize(
    ("made", "seen"),
    [
        (lambda: calibrate(SCORE, RIGHT, **HALF), "rows-by-bin"),
        (lambda: calibrate(SCORE, RIGHT, groups=SITE, **HALF), "rows-by-bin-and-group"),
        (lambda: calibrate(SCORE, RIGHT, groups={"all": RIGHT}, **HALF), "rows-unseen"),
        (lambda: calibrate(SCORE, RIGHT, delta=0.5, edges="equal-mass"), "rows-unseen"),
        (lambda: calibrate(SCORE, RIGHT, clusters=CLUSTER, **HALF), "clusters-unseen"),
        (lambda: certify_abstention(SCORE, RIGHT, xi=0.5, delta=0.5), "rows-unseen"),
        (lambda: certify_rate(RIGHT, groups=SITE, **AIM), "rows-by-group"),
        (lambda: certify_abstention(SCORE, RIGHT, groups=SITE, xi=0.5, delta=0.5), "rows-by-group"),
        (lambda: certify_recall(SCORE, RIGHT, **AIM), "stopped-by-outcome"),
        (
            lambda: certify_recall(SCORE, RIGHT, groups=SITE, **AIM),
            "stopped-by-outcome-and-group",
        ),
        (lambda: certify_recall(SCORE, RIGHT, groups={"all": RIGHT}, **AIM), "stopped-by-outcome"),
        (lambda: certify_recall(SCORE, RIGHT, clusters=CLUSTER, **AIM), "stopped-by-clusters"),
        (lambda: certify_shield(SCORE, RIGHT, groups=SITE, xi=0.5, delta=0.5), "rollouts-unseen"),
        (
            lambda: certify_shield(SCORE, RIGHT, clusters=CLUSTER, xi=0.5, delta=0.5),
            "clusters-unseen",
        ),
    ],
)
def test_a_rule_for_the_number_of_rows_may_see_of_which_test_a_row_is_a_trial(
    made: Callable[[], Certificate], seen: str
) -> None:
    assumed = made().values["assumes"]
    assert [name for name in assumed if name in NUMBERED] == [seen]


@pytest.mark.parametrize("name", [name for name in MAKERS if "clusters" in name])
def test_a_certificate_of_clusters_assumes_independence_once(name: str) -> None:
    independent = [line for line in made(name).assumed() if "independent draws" in line]
    assert independent == [ASSUMED["independent-clusters"]]
