"""Replacement with graded answers: exactly how often a model that loses xi is certified at some
look, over rows and coins, whatever the grader does.

As for sessions, the coin of a row is cut into intervals at the qualities and their differences, and
every sample of kinds of rows and intervals has a multinomial chance. The grader knows all qualities
and all coins, and publishes as soon as the claim is certified. Nothing is simulated.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import combinations_with_replacement, pairwise
from math import factorial, prod
from typing import Any

import numpy as np
import pytest
from tests.products import standing_for

from pacbound import certify_replacement

# How likely a row is, and the quality of the old model's answer and of the new one's.
Kind = tuple[float, tuple[float, float]]
Row = tuple[float, tuple[float, float]]

LAWS: dict[str, tuple[list[Kind], float]] = {
    "losses and gains": ([(0.5, (0.75, 0.5)), (0.25, (0.25, 0.75)), (0.25, (1.0, 0.0))], 0.25),
    "one level lower": ([(0.6, (0.5, 0.0)), (0.4, (0.75, 0.75))], 0.3),
    "nothing is lost": ([(0.5, (0.75, 0.25)), (0.5, (0.0, 0.5))], 0.0),
}


def samples(law: Sequence[Kind], n: int) -> Iterator[tuple[float, list[Row]]]:
    """All samples of n rows, each a coin and its qualities, and the chance of each."""
    chances: dict[Row, float] = {}
    for chance, (old, new) in law:
        cuts = np.unique([0.0, 1.0, old, new, 1 - old, 1 - new, abs(old - new)])
        for low, high in pairwise(cuts.tolist()):
            chances[(low + high) / 2, (old, new)] = chance * (high - low)
    assert sum(chances.values()) == pytest.approx(1)
    for drawn in combinations_with_replacement(chances, n):
        times = Counter(drawn)
        ways = factorial(n) / prod(map(factorial, times.values()))
        yield ways * prod(chances[row] ** k for row, k in times.items()), list(drawn)


def looks(rows: list[Row]) -> Iterator[Any]:
    """What is known at each look: first the new model's grades, the best first; then the old
    model's, those first that speak for the new one; last those that speak against it.
    """
    told = np.full((len(rows), 2), np.nan)
    yield told
    for place in sorted(range(len(rows)), key=lambda place: -rows[place][1][1]):
        told[place, 1] = rows[place][1][1]
        yield told
    for place in sorted(range(len(rows)), key=lambda place: toss(*rows[place])):
        told[place, 0] = rows[place][1][0]
        yield told


def toss(coin: float, quality: tuple[float, float]) -> int:
    lost = quality[0] - quality[1]
    return int(np.sign(lost)) * (coin < abs(lost))


@pytest.mark.parametrize("name", standing_for(LAWS, ["one level lower"], rest="long"))
def test_a_graded_loss_of_xi_is_certified_at_some_look_with_at_most_delta(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    law, xi = LAWS[name]
    assert sum(chance * (old - new) for chance, (old, new) in law) == pytest.approx(xi)
    n, delta = (5, 0.4) if len(law) == 2 else (4, 0.4)
    coins: list[float] = []
    monkeypatch.setattr("pacbound.tally.coins.coins", lambda *_: np.array(coins))
    ever = at_once = 0.0
    for chance, rows in samples(law, n):
        coins[:] = [coin for coin, _ in rows]
        made = [
            certify_replacement(quality=told, xi=xi, delta=delta, seed=0) for told in looks(rows)
        ]
        passed = [one.certified for one in made]
        # The claim stands once it is made, and with all grades too.
        assert passed == sorted(passed)
        if name == "losses and gains":
            tossed = [toss(*row) for row in rows]
            assert passed[-1] == (tossed.count(1) == 0 or _passes(tossed, xi, delta))
        ever, at_once = ever + chance * any(passed), at_once + chance * passed[-1]
    assert ever == pytest.approx(at_once)
    assert 0.1 * delta < ever <= delta


def _passes(tossed: list[int], xi: float, delta: float) -> bool:
    """Whether right and wrong answers with the same losses and gains are certified."""
    prediction = [[int(one >= 0), int(one <= 0)] for one in tossed]
    label = np.ones(len(tossed), dtype=int)
    asked: Any = {"xi": xi, "delta": delta, "classes": [0, 1], "unrelated_labels": True}
    return certify_replacement(prediction, label, **asked).certified
