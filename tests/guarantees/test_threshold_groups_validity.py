"""Thresholds of groups, enumerated: with probability at most delta a common threshold is bad for
some group, and so is any of the groups' own thresholds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import product
from math import inf

import numpy as np
import pytest
from scipy.stats import binom

from pacbound.claims.sets import CLAIM
from pacbound.tally.tally import Tally

CELLS = np.array([10_000, 30_000, 60_000])


# So many rows certify xi = 0.1 at delta = 0.2 if none is an event, and one less does not.
ENOUGH = 16


def tally_of(groups: Sequence[tuple[int, ...]]) -> Tally:
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
            limit > 0 and rate[round(limit * 2**30)] > xi
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


@pytest.mark.parametrize("share", [0.5, 0.7])
def test_groups_left_out_by_their_number_of_trials_keep_delta(share: float) -> None:
    """Two groups whose sizes are random, each just bad at the highest cell: the claim is about
    those that are not left out."""
    xi, delta, rows = 0.1, 0.2, 34
    asked = {"xi": xi, "delta": delta, "small_groups": "leave-out"}
    wrong, seen = 0.0, 0.0
    for first in range(rows + 1):
        sizes = (first, rows - first)
        for events in product(*(range(min(size, 4) + 1) for size in sizes)):
            weight = binom.pmf(first, rows, share) * np.prod(binom.pmf(events, sizes, 0.101))
            if weight < 1e-5:
                continue
            seen += weight
            counts = [(0, k, size - k) for k, size in zip(events, sizes, strict=True)]
            certificate = CLAIM.certify(tally_of(counts), asked)
            assert certificate.left_out == tuple(
                f"group {place}" for place, size in enumerate(sizes) if size < ENOUGH
            )
            limits = certificate.thresholds.values()
            wrong += weight * (certificate.certified and CELLS[-1] / 2**30 in limits)
    # More than four events are never allowed here: what was not enumerated is not wrong.
    assert seen > 0.9
    assert 0.4 * delta < wrong + 1e-3 <= delta


def test_leaving_out_groups_whose_search_failed_would_break_it() -> None:
    passes = [binom.pmf(k, ENOUGH, 0.101) for k in range(5) if decide(ENOUGH, k)]
    assert sum(passes) <= 0.2
    assert 1 - (1 - sum(passes)) ** 2 > 1.6 * 0.2
    assert 1 - (1 - sum(passes)) ** 10 > 4 * 0.2


def decide(rows: int, events: int) -> bool:
    """Whether a group alone passes at the highest cell, where it is bad."""
    if not rows:
        return False
    found = CLAIM.certify(tally_of([(0, events, rows - events)]), {"xi": 0.1, "delta": 0.2})
    return bool(found.certified and found.thresholds["group 0"] == CELLS[-1] / 2**30)


def test_groups_that_overlap_share_delta_where_some_may_be_left_out() -> None:
    """All rows, and a part of them in which alone something goes wrong: whether the part is left
    out says how many of all rows are events, so the full delta for each is too much."""
    xi, delta, rows, part = 0.1, 0.2, 180, 0.104
    wrong = {"refuse": 0.0, "leave-out": 0.0, "at the full delta": 0.0}
    for inside in range(rows + 1):
        for events in range(min(inside, 8) + 1):
            weight = binom.pmf(inside, rows, part) * binom.pmf(events, inside, 0.101)
            if weight < 1e-7:
                continue
            counts = [(events, inside - events, rows - inside), (events, inside - events, 0)]
            tally = replace(tally_of(counts), scope="overlapping-groups", rows=rows)
            for small in ("refuse", "leave-out"):
                found = CLAIM.certify(tally, {"xi": xi, "delta": delta, "small_groups": small})
                wrong[small] += weight * is_wrong(found.thresholds, found.certified)
            alone = {
                name: CLAIM.certify(tally_of([one]), {"xi": xi, "delta": delta})
                for name, one in zip(("group 0", "group 1"), counts, strict=True)
                if sum(one) >= ENOUGH
            }
            limit = min(one.thresholds["group 0"] for one in alone.values())
            thresholds = {name: limit if name in alone else -inf for name in ("group 0", "group 1")}
            wrong["at the full delta"] += weight * is_wrong(thresholds, True)
    assert max(wrong["refuse"], wrong["leave-out"]) <= delta
    assert wrong["at the full delta"] > 1.2 * delta


def is_wrong(thresholds: dict[str, float], certified: bool) -> bool:
    """All rows are bad at the highest cell, the part above the lowest."""
    cells = {name: limit * 2**30 for name, limit in thresholds.items() if limit > -inf}
    too_high = cells.get("group 0", 0) > CELLS[1] or cells.get("group 1", 0) > CELLS[0]
    return bool(certified and too_high)
