"""How a certificate is used: the type of probabilities, and how scores are compared."""

from __future__ import annotations

from typing import Any

import numpy as np
from tests.guarantees.conditions.kinds import ASKED
from tests.guarantees.conditions.pairs import DELTA, XI, pair

from pacbound import certify_recall, certify_sets


@pair("compared-in-float64")
def scores_compared_in_half_precision(kept: bool, rows: int) -> float:
    """In float16 a score of 0.7004 is 0.7002, which is below the threshold."""
    scores = np.full(rows, 0.7004)
    made = certify_recall(scores, np.ones(rows, bool), target=1 - XI, delta=DELTA)
    used: Any = scores if kept else scores.astype(np.float16).astype(float)
    return float(made.certified and (used < made.threshold).mean() > XI)


@pair("same-type-in-use")
def probabilities_of_another_type_in_use(kept: bool, rows: int) -> float:
    """Probabilities of 0.6997 were counted in float16, where they are 0.6997070."""
    exact = np.column_stack([np.full(rows, 0.6997), np.full(rows, 0.3003)])
    made = certify_sets(exact.astype(np.float16), np.zeros(rows, int), **ASKED)
    used = exact.astype(np.float16).astype(float) if kept else exact
    return float(made.certified and (used[:, 0] < made.threshold).mean() > XI)
