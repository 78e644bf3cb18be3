"""Every condition of a claim has a pair: whoever does all that the sentences allow makes a false
claim with probability at most delta, and without the sentence somebody makes them more often.
"""

from __future__ import annotations

from importlib import import_module
from itertools import product
from math import prod
from pathlib import Path

import pytest
from tests.guarantees.conditions.pairs import PAIRS, Pair
from tests.guarantees.conditions.stopping import Rows, false_at_best

from pacbound.exact_verifier import CONDITIONS

for module in sorted((Path(__file__).parent / "conditions").glob("*.py")):
    import_module(f"tests.guarantees.conditions.{module.stem}")

SHORT, LONG = 30, 60
each = pytest.mark.parametrize("pair", PAIRS, ids=lambda pair: f"{pair.conditions[0]}: {pair.what}")


@each
@pytest.mark.parametrize("rows", [SHORT, pytest.param(LONG, marks=pytest.mark.long)])
def test_whoever_does_all_that_the_sentences_allow_keeps_delta(pair: Pair, rows: int) -> None:
    assert pair.law(True, rows) <= pair.delta * (1 + 1e-9)


@each
def test_without_the_sentence_a_claim_is_false_more_often_than_delta(pair: Pair) -> None:
    assert pair.law(False, SHORT) > 1.05 * pair.delta


def test_the_best_rule_is_the_best_of_all_rules_over_all_samples() -> None:
    """Without Lemma R: every rule that decides after each row by what it saw so far, and every
    sample of three rows.
    """
    law = [Rows(0.6, "easy", 0.3), Rows(0.4, "hard", 0.8)]
    kinds_of_rows = [(row, event) for row in law for event in (False, True)]
    moments = [seen for n in (1, 2) for seen in product(("easy", "hard"), repeat=n)]

    def claims(trials: int, count: int) -> bool:
        return count <= trials - 2

    best = 0.0
    for stops in product([False, True], repeat=len(moments)):
        rule, wrong = dict(zip(moments, stops, strict=True)), 0.0
        for sample in product(kinds_of_rows, repeat=3):
            seen = tuple(str(row.seen) for row, _ in sample)
            n = next((n for n in (1, 2) if rule[seen[:n]]), 3)
            chance = prod(row.chance * (row.event if e else 1 - row.event) for row, e in sample)
            wrong += chance * claims(n, sum(event for _, event in sample[:n]))
        best = max(best, wrong)
    assert false_at_best(law, {"all": claims}, 3) == pytest.approx(best)


def test_every_condition_has_a_pair_and_every_pair_a_condition() -> None:
    assert {name for pair in PAIRS for name in pair.conditions} == CONDITIONS.keys()
