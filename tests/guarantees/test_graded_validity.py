"""Graded answers: exactly how often claims are wrong, over rows.

A law has a few kinds of rows, each of which is judged by the library itself. The chance of every
sample of them is a multinomial one. Nothing is simulated.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations_with_replacement
from math import factorial, prod
from operator import itemgetter
from typing import Any

import numpy as np
import pytest
from tests.products import standing_for

from pacbound import Tally
from pacbound.claims import claim_of
from pacbound.procedures.cascade import first_failure
from pacbound.procedures.joint_walk import JointWalk
from pacbound.stats.graded_bets import losses_below
from pacbound.tally.questions.cascade import FINE

MISSING = float("nan")
Key = tuple[tuple[int, ...], tuple[int, ...]]


@dataclass(frozen=True)
class Kind:
    """Rows of one kind: how likely, their scores, their qualities, and which of these are known."""

    chance: float
    scores: tuple[float, ...]
    quality: tuple[float, ...]
    known: tuple[bool, ...] = ()

    @property
    def given(self) -> tuple[float, ...]:
        """The qualities as they are passed."""
        known = self.known or (True,) * len(self.quality)
        return tuple(
            one if seen else MISSING for one, seen in zip(self.quality, known, strict=True)
        )


def _outcomes(kind: str, law: Sequence[Kind]) -> dict[Key, float]:
    """The chance of each cell, with what is counted there, over the kinds of rows."""
    chances: dict[Key, float] = defaultdict(float)
    for row in law:
        chances[_judged(kind, row)] += row.chance
    return chances


def _judged(kind: str, row: Kind) -> Key:
    quality = np.array([row.given])
    scores = np.array([row.scores])
    if kind != "cascade":
        quality, scores = quality[:, 0], scores[:, 0]
    given: dict[str, Any] = {"confidence": scores, "quality": quality}
    if kind == "calibration":
        given["n_bins"] = 2
    tally = Tally.count(kind, **given)
    return tuple(tally.cells[0].tolist()), tuple(tally.counts[0].tolist())


def _samples(chances: dict[Key, float], n: int) -> Iterator[tuple[float, Counter[Key]]]:
    keys = sorted(chances)
    for drawn in combinations_with_replacement(keys, n):
        seen = Counter(drawn)
        ways = factorial(n) / prod(map(factorial, seen.values()))
        yield ways * prod(chances[key] ** times for key, times in seen.items()), seen


def _tally(layout: Tally, seen: Counter[Key]) -> Tally:
    cells = sorted({cell for cell, _ in seen})
    counts = np.zeros((len(cells), len(layout.outcomes)), dtype=np.int64)
    for (cell, counted), times in seen.items():
        counts[cells.index(cell)] += times * np.array(counted)
    rows, places = seen.total(), np.array(cells, dtype=np.int64)
    return replace(layout, rows=rows, cells=places, counts=counts, sources=frozenset())


def _wrong(
    kind: str, law: Sequence[Kind], n: int, asked: dict[str, Any], bad: Callable[[Any], bool]
) -> tuple[float, float]:
    """How likely a claim is wrong, and how likely one is made at all."""
    chances = _outcomes(kind, law)
    assert sum(chances.values()) == pytest.approx(1)
    first = law[0]
    quality = np.array([first.quality])
    scores = np.array([first.scores])
    given: dict[str, Any] = {"confidence": scores, "quality": quality}
    if kind != "cascade":
        given = {"confidence": scores[:, 0], "quality": quality[:, 0]}
    options = {"n_bins": 2} if kind == "calibration" else {}
    layout = Tally.count(kind, **given, **options)
    claim, wrong, made = claim_of(kind), 0.0, 0.0
    for chance, seen in _samples(chances, n):
        found = claim.certify(_tally(layout, seen), asked)
        wrong += chance * bad(found)
        made += chance * found.certified
    return wrong, made


def test_intervals_of_mean_quality_hold_together() -> None:
    law = [
        Kind(0.3, (0.2,), (0.25,)),
        Kind(0.2, (0.2,), (0.9,)),
        Kind(0.3, (0.8,), (1.0,)),
        Kind(0.2, (0.8,), (0.3,)),
    ]
    means = np.array([0.3 * 0.25 + 0.2 * 0.9, 0.3 + 0.2 * 0.3]) / 0.5

    def bad(found: Any) -> bool:
        bins = found.bins
        return not bool(((bins.lower <= means) & (means <= bins.upper)).all())

    for delta in (0.1, 0.4):
        wrong, _ = _wrong("calibration", law, 9, {"delta": delta}, bad)
        assert wrong <= delta


@pytest.mark.parametrize("top", [0.35, 0.5, 0.62])
def test_answers_fall_short_by_more_than_xi_with_at_most_delta(top: float) -> None:
    """The lower threshold falls short by more than xi; the higher one may, too."""
    law = [
        Kind(0.4, (0.9,), (top,)),
        Kind(0.2, (0.9,), (0.75,)),
        Kind(0.4, (0.3,), (0.3,)),
    ]
    xi = 0.5
    shortfall = {0.9: (0.4 * (1 - top) + 0.2 * 0.25) / 0.6}
    shortfall[0.3] = 0.4 * (1 - top) + 0.2 * 0.25 + 0.4 * 0.7

    def bad(found: Any) -> bool:
        limit = found.threshold
        reached = 0.3 if limit <= 0.3 else 0.9 if limit <= 0.9 else None
        return reached is not None and shortfall[reached] > xi

    wrong, made = _wrong("abstention", law, 30, {"xi": xi, "delta": 0.3}, bad)
    assert wrong <= 0.3
    assert made > 0.02


def test_a_mean_on_a_bound_by_the_normal_law_would_be_missed_far_more_often() -> None:
    """Seldom very bad answers: the level that a claim needs is there, that of a t-interval not."""
    law = [Kind(0.97, (0.9,), (1.0,)), Kind(0.03, (0.9,), (0.0,))]
    chances = _outcomes("calibration", law)
    likely, seen = max(_samples(chances, 30), key=itemgetter(0))
    assert likely > 0.4
    assert len(seen) == 1
    layout = Tally.count("calibration", [0.9], quality=[1.0], n_bins=2)
    bins = claim_of("calibration").certify(_tally(layout, seen), {"delta": 0.05}).bins
    assert bins.lower[1] < 0.97


TWO = [
    Kind(0.35, (0.9,), (0.7, 0.9)),
    Kind(0.15, (0.9,), (0.8, 0.3)),
    Kind(0.30, (0.4,), (0.1, 1.0)),
    Kind(0.20, (0.4,), (0.5, 0.75)),
]
# The labeller leaves out what it likes, after it has seen all qualities: here gains at the slow
# model, and losses at the exit.
LEFT_OUT = [
    replace(TWO[0], known=(False, True)),
    replace(TWO[1], known=(True, False)),
    replace(TWO[2], known=(True, False)),
    TWO[3],
]


def _loss(law: Sequence[Kind], limits: Sequence[float]) -> float:
    """The mean quality that is lost at these thresholds, whatever is known of it."""
    total = 0.0
    for row in law:
        taken = (m for m, (s, t) in enumerate(zip(row.scores, limits, strict=True)) if s >= t)
        exit_ = next(taken, None)
        if exit_ is not None:
            total += row.chance * (row.quality[-1] - row.quality[exit_])
    return total


@pytest.mark.parametrize("law", [TWO, LEFT_OUT])
def test_a_cascade_of_two_models_loses_more_than_xi_with_at_most_delta(law: list[Kind]) -> None:
    xi, delta = 0.3, 0.35
    assert _loss(law, [0.0]) > xi > _loss(law, [0.9])

    def bad(found: Any) -> bool:
        return _loss(law, found.thresholds) > xi

    wrong, made = _wrong("cascade", law, 6, {"xi": xi, "delta": delta}, bad)
    assert wrong <= delta
    assert made > 0.05


THREE = [
    Kind(0.3, (0.9, 0.9), (0.6, 0.9, 1.0)),
    Kind(0.3, (0.2, 0.9), (0.0, 0.2, 0.9)),
    Kind(0.2, (0.2, 0.2), (0.1, 0.0, 1.0)),
    Kind(0.2, (0.9, 0.2), (0.2, 0.5, 0.9)),
]


@pytest.mark.parametrize(
    "law",
    [THREE, [replace(THREE[0], known=(True, False, True)), THREE[1], THREE[2], THREE[3]]],
)
def test_a_cascade_of_three_models_loses_more_than_xi_with_at_most_delta(law: list[Kind]) -> None:
    xi, delta = 0.6, 0.5
    assert _loss(law, [0.0, 0.0]) > xi

    def bad(found: Any) -> bool:
        return _loss(law, found.thresholds) > xi

    wrong, made = _wrong("cascade", law, 4, {"xi": xi, "delta": delta}, bad)
    assert wrong <= delta
    assert made > 0.02


@pytest.mark.parametrize("models", [2, 3])
@pytest.mark.parametrize("seed", standing_for(range(6), [0, 1, 2], rest="long"))
def test_no_look_of_an_adaptive_grader_claims_what_all_grades_do_not(
    models: int, seed: int
) -> None:
    """Grades are asked for by what was seen so far; at each look every step that passes would pass
    with all grades, too, and nothing that is called settled changes.
    """
    rng = np.random.default_rng(seed)
    n = 300
    scores = rng.random((n, models - 1))
    slow = rng.choice([0.25, 0.5, 0.75, 1.0], size=n, p=[0.1, 0.1, 0.3, 0.5])
    fast = np.clip(slow[:, None] - rng.choice([-0.25, 0.0, 0.5], size=(n, models - 1)), 0, 1)
    whole = np.column_stack([fast, slow])
    claim = claim_of("cascade")
    asked = {"xi": 0.25, "delta": 0.1}
    full = _ends(claim, asked, Tally.count("cascade", scores, quality=whole))
    seen = np.full_like(whole, np.nan)
    settled: Any = None
    for _ in range(12):
        tally = Tally.count("cascade", scores, quality=seen)
        made = claim.certify(tally, asked)
        for here, there in zip(_ends(claim, asked, tally), full, strict=True):
            assert here <= there
        if settled is not None:
            assert made.thresholds.tolist() == settled
        if made.settled:
            settled = made.thresholds.tolist()
        # Rows that the slow model is known to lose are asked for last.
        worth = rng.random(whole.shape) - np.where(np.isnan(seen), 0, np.inf)
        worth -= 0.5 * (np.nan_to_num(seen, nan=1.0).min(axis=1, keepdims=True) < 0.5)
        places = np.unravel_index(np.argsort(-worth, axis=None)[: n * models // 10], whole.shape)
        seen[places] = whole[places]


def _ends(claim: Any, asked: dict[str, Any], tally: Tally) -> list[float]:
    """Minus the thresholds at which each path ends: it rises along a path."""
    walks = claim.counted(tally, claim.wishes(asked))["tables"][0]["walks"]
    if len(walks) == 1:
        return [-claim.certify(tally, asked).thresholds[0]]
    level = asked["delta"] / len(walks)

    def test(walk: JointWalk) -> Any:
        asks = {"rows": tally.rows, "xi": asked["xi"], "delta": level, "steps": FINE}
        assert walk.grades is not None
        return losses_below(walk.grades, **asks)

    ends = [first_failure(walk, test) - 1 for walk in walks]
    pairs = zip(walks, ends, strict=True)
    return [float(-walk.cells[:, end].max()) if end >= 0 else -np.inf for walk, end in pairs]
