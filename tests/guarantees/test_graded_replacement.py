"""Replacement with graded answers: exactly how often a model that loses xi is certified at some
look, whatever the grader does.

A law has a few kinds of rows, so every sample has a multinomial chance. The grader knows all
qualities, and publishes as soon as the claim is certified. Nothing is simulated.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import combinations_with_replacement
from math import factorial, prod
from typing import Any

import numpy as np
import pytest
from tests.products import standing_for

from pacbound import certify_replacement
from pacbound.procedures.graded_replacement import certifies
from pacbound.stats.derandomised import chance_of_region

# How likely a row is, and the quality of the old model's answer and of the new one's.
Kind = tuple[float, tuple[float, float]]

LAWS: dict[str, tuple[list[Kind], float]] = {
    "losses and gains": ([(0.5, (0.75, 0.5)), (0.25, (0.25, 0.75)), (0.25, (1.0, 0.0))], 0.25),
    "one level lower": ([(0.6, (0.5, 0.0)), (0.4, (0.75, 0.75))], 0.3),
    "nothing is lost": ([(0.5, (0.75, 0.25)), (0.5, (0.0, 0.5))], 0.0),
}
SCALES: dict[str, Any] = {"fine": (0, 1), "five": (0, 0.25, 0.5, 0.75, 1)}


def samples(law: Sequence[Kind], n: int) -> Iterator[tuple[float, list[Any]]]:
    """All samples of n rows, and the chance of each."""
    for drawn in combinations_with_replacement(law, n):
        times = Counter(drawn)
        ways = factorial(n) / prod(map(factorial, times.values()))
        yield ways * prod(kind[0] ** k for kind, k in times.items()), [pair for _, pair in drawn]


def looks(rows: list[Any]) -> Iterator[Any]:
    """What is known at some looks: nothing, the better half of the new model's grades, all of them,
    and then the old model's.
    """
    told = np.full((len(rows), 2), np.nan)
    yield told
    order = sorted(range(len(rows)), key=lambda place: -rows[place][1])
    for part in (order[: len(rows) // 2], order):
        told[part, 1] = [rows[place][1] for place in part]
        yield told
    told[:, 0] = [row[0] for row in rows]
    yield told


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("name", standing_for(LAWS, ["one level lower"], rest="long"))
def test_a_graded_loss_of_xi_is_certified_at_some_look_with_at_most_delta(
    name: str, scale: str
) -> None:
    law, xi = LAWS[name]
    assert sum(chance * (old - new) for chance, (old, new) in law) == pytest.approx(xi)
    n, delta = (16, 0.5) if len(law) == 2 else (9, 0.5)
    ever = at_once = 0.0
    for chance, rows in samples(law, n):
        asked: Any = {"xi": xi, "delta": delta, "quality_scale": SCALES[scale]}
        passed = [certify_replacement(quality=told, **asked).certified for told in looks(rows)]
        # The claim stands once it is made, and with all grades too.
        assert passed == sorted(passed)
        ever, at_once = ever + chance * any(passed), at_once + chance * passed[-1]
    assert ever == pytest.approx(at_once)
    assert ever <= delta


def compositions(total: int, parts: int) -> Iterator[tuple[int, ...]]:
    """All ways to write `total` as so many numbers."""
    if parts == 1:
        yield (total,)
        return
    for first in range(total + 1):
        yield from ((first, *rest) for rest in compositions(total - first, parts - 1))


@pytest.mark.parametrize("xi", [0.0, 0.2, 0.5])
@pytest.mark.parametrize("values", [(0, 2, 4), (0, 1, 3), (1, 2, 3), (1, 3, 4), (0, 2, 3)])
def test_no_law_on_a_grid_passes_wrongly_with_more_than_delta(
    values: tuple[int, ...], xi: float
) -> None:
    """Differences on half steps, three of which a law has; every such law on a grid of tenths."""
    n, delta = 14, 0.4
    laws = np.array(list(compositions(10, 3))) / 10
    means = laws @ np.array(values) / 2 - 1
    counts = np.array(list(compositions(n, 3)))
    ways = [factorial(n) / prod(map(factorial, one)) for one in counts.tolist()]
    levels = np.zeros((len(counts), 5), dtype=np.int64)
    levels[:, values] = counts
    passed = np.array([certifies(one, xi=xi, delta=delta) for one in levels])
    chances = np.prod(laws[:, None, :] ** counts, axis=2) * ways
    wrong = (chances @ passed)[means >= xi - 1e-12]
    assert wrong.max(initial=0.0) <= delta


def test_whole_differences_are_in_the_region_or_are_not() -> None:
    bmax = np.array([1, 2, 4])
    for losses, gains in ((1, 0), (2, 0), (2, 1), (5, 2), (4, 9)):
        counts = [gains, 0, 3, 0, losses]
        inside = losses <= bmax[min(gains, 2)]
        assert chance_of_region(counts, bmax) == pytest.approx(float(inside))


def test_the_chance_of_a_region_is_that_of_all_tosses() -> None:
    rng = np.random.default_rng(2)
    for _ in range(5):
        counts, bmax = rng.integers(0, 3, size=7), np.sort(rng.integers(-1, 4, size=5))
        differences = np.repeat(np.arange(-3, 4) / 3, counts)
        total = 0.0
        for bits in range(1 << len(differences)):
            heads = (bits >> np.arange(len(differences))) & 1 == 1
            share = np.abs(differences)
            chance = float(np.prod(np.where(heads, share, 1 - share)))
            tossed = np.sign(differences[heads])
            gains = int((tossed < 0).sum())
            total += chance * ((tossed > 0).sum() <= bmax[min(gains, 4)])
        assert chance_of_region(counts, bmax) == pytest.approx(total)
