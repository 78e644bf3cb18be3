"""Thresholds of groups, enumerated: with probability at most delta a common threshold is bad for
some group, and so is any of the groups' own thresholds."""

from __future__ import annotations

from itertools import product
from math import inf

import numpy as np
import pytest
from scipy.stats import binom

from pacbound.claims.sets import CLAIM
from pacbound.tally.tally import Tally

CELLS = np.array([10_000, 30_000, 60_000])


def tally_of(groups: list[tuple[int, ...]]) -> Tally:
    """Rows of each group in each of the cells."""
    cells = [[place, cell] for place, _ in enumerate(groups) for cell in CELLS]
    counts = np.array([[count] for group in groups for count in group])
    return Tally(
        "sets",
        CLAIM.question.grid,
        CLAIM.question.outcomes,
        int(counts.sum()),
        np.array(cells)[counts[:, 0] > 0],
        counts[counts[:, 0] > 0],
        "groups",
        tuple(f"group {place}" for place, _ in enumerate(groups)),
    )


HARMLESS = (0.0, 0.0)
JUST_BAD = (0.0, 0.101)
"""Just above xi = 0.1 of the rows lie below the highest cell."""


@pytest.mark.parametrize(
    ("thresholds", "laws"),
    [
        # A common threshold is most often bad where one group alone can tell.
        ("common", (JUST_BAD, HARMLESS)),
        ("common", (JUST_BAD, (0.05, 0.04))),
        ("common", (JUST_BAD, JUST_BAD)),
        # Own thresholds are wrong if any is.
        ("own", (JUST_BAD, JUST_BAD)),
        ("own", ((0.101, 0.0), JUST_BAD)),
    ],
)
def test_a_threshold_that_is_bad_for_a_group_is_certified_with_probability_at_most_delta(
    thresholds: str, laws: tuple[tuple[float, float], ...]
) -> None:
    xi, delta, rows = 0.1, 0.2, 24
    weights = [_weights(law, rows) for law in laws]
    rates = [dict(zip(CELLS, np.cumsum([0.0, *law]), strict=True)) for law in laws]
    asked = {"xi": xi, "delta": delta, "group_thresholds": thresholds}
    wrong = 1.0 - np.prod([sum(each.values()) for each in weights])
    for pair in product(*weights):
        certificate = CLAIM.certify(tally_of(list(pair)), asked)
        found = certificate.thresholds.values() if certificate.certified else [-inf, -inf]
        bad = any(
            limit > 0 and rate[round(limit * 65_536)] > xi
            for limit, rate in zip(found, rates, strict=True)
        )
        wrong += bad * weights[0][pair[0]] * weights[1][pair[1]]
    assert wrong <= delta
    if HARMLESS in laws or thresholds == "own":
        assert wrong > 0.3 * delta, "this law should come near delta"


def _weights(law: tuple[float, float], rows: int) -> dict[tuple[int, ...], float]:
    """The chance of each way in which rows fall into the cells, but for the least likely ones."""
    first, second = law
    every = {
        (a, b, rows - a - b): binom.pmf(a, rows, first)
        * binom.pmf(b, rows - a, second / (1 - first))
        for a in range(rows + 1)
        for b in range(rows + 1 - a)
    }
    return {split: float(weight) for split, weight in every.items() if weight > 1e-5}
