"""Every condition of a claim has a pair: whoever does all that the sentences allow makes a false
claim with probability at most delta, and without the sentence somebody makes them more often.
"""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

import pytest
from tests.guarantees.conditions.pairs import PAIRS, Pair

from pacbound.claims.assumptions import CONDITIONS

for module in sorted((Path(__file__).parent / "conditions").glob("*.py")):
    import_module(f"tests.guarantees.conditions.{module.stem}")

# Those of kinds that are on their way out.
LEAVING = {
    *("strata-beforehand", "starts-from-elsewhere", "graded-by-coins", "claims-beforehand"),
    *("drives-beforehand", "rollouts-under-shield", "every-driven-rollout-counts"),
}
SHORT, LONG = 22, 60
each = pytest.mark.parametrize("pair", PAIRS, ids=lambda pair: f"{pair.conditions[0]}: {pair.what}")


@each
@pytest.mark.parametrize("rows", [SHORT, pytest.param(LONG, marks=pytest.mark.slow)])
def test_whoever_does_all_that_the_sentences_allow_keeps_delta(pair: Pair, rows: int) -> None:
    assert pair.law(True, rows) <= pair.delta * (1 + 1e-9)


@each
def test_without_the_sentence_a_claim_is_false_more_often_than_delta(pair: Pair) -> None:
    assert pair.law(False, SHORT) > 1.05 * pair.delta


def test_every_condition_has_a_pair_and_every_pair_a_condition() -> None:
    assert {name for pair in PAIRS for name in pair.conditions} == CONDITIONS.keys() - LEAVING
