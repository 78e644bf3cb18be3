"""Grades that come bit by bit: exactly how often some look claims a bad threshold, over rows,
whatever the grader does.

A law has a few kinds of rows, and every sample of kinds has a multinomial chance. In each sample
the grader knows all qualities and which thresholds are bad; it tells what it likes in the order
that it likes, a grade of a row without the others if that suits it, tells no losses, and looks
after every step. Nothing is simulated.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import combinations_with_replacement
from math import factorial, prod
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from tests.products import standing_for

from pacbound import certify_cascade, exact_verifier, load_certificate, rows_to_label

pytestmark = pytest.mark.usefixtures("any_delta")


@dataclass(frozen=True)
class Kind:
    """Rows of one kind: how likely they are, their scores, and the quality of each answer."""

    chance: float
    scores: tuple[float, ...]
    quality: tuple[float, ...]

    @property
    def lost(self) -> list[float]:
        """What each exit loses."""
        *fast, slow = self.quality
        return [slow - one for one in fast]


TWO = (
    Kind(0.35, (0.9,), (0.75, 0.75)),
    Kind(0.25, (0.9,), (0.75, 0.25)),
    Kind(0.40, (0.4,), (0.0, 0.75)),
)
THREE = (
    Kind(0.4, (0.9, 0.9), (0.75, 0.75, 0.75)),
    Kind(0.3, (0.2, 0.9), (0.0, 0.25, 1.0)),
    Kind(0.3, (0.9, 0.2), (0.0, 0.0, 1.0)),
)


def loss(law: Sequence[Kind], limits: Sequence[float]) -> float:
    """The mean quality that is lost at these thresholds."""
    total = 0.0
    for kind in law:
        reached = (m for m, (s, t) in enumerate(zip(kind.scores, limits, strict=True)) if s >= t)
        exit_ = next(reached, None)
        if exit_ is not None:
            total += kind.chance * (kind.quality[-1] - kind.quality[exit_])
    return total


def samples(law: Sequence[Kind], n: int) -> Iterator[tuple[float, list[Kind]]]:
    """All samples of n rows, and the chance of each."""
    for drawn in combinations_with_replacement(law, n):
        times = Counter(drawn)
        ways = factorial(n) / prod(map(factorial, times.values()))
        yield ways * prod(row.chance**k for row, k in times.items()), list(drawn)


Grades = NDArray[np.float64]
Wanted = Callable[[Grades], NDArray[np.int64]]
# Fills in grades, all of them missing at first, and stops wherever there is a look.
Grader = Callable[[Grades, list[Kind], Wanted], Iterator[None]]


def gains_first(grades: Grades, rows: list[Kind], _: Wanted) -> Iterator[None]:
    """Tells the gains, then what does nothing; of a loss the slow model's grade, and no more."""
    yield
    for place in sorted(range(len(rows)), key=lambda place: sum(rows[place].lost)):
        quality = np.array(rows[place].quality)
        if sum(rows[place].lost) > 0:
            quality[:-1] = np.nan
        grades[place] = quality
        yield


def half_by_half(grades: Grades, rows: list[Kind], _: Wanted) -> Iterator[None]:
    """Tells the exits' grades of all rows, the best first, and then the slow model's, the worst
    first; it stops before those that are lost.
    """
    yield
    for place in sorted(range(len(rows)), key=lambda place: -max(rows[place].quality[:-1])):
        grades[place] = [*rows[place].quality[:-1], np.nan]
        yield
    for place in sorted(range(len(rows)), key=lambda place: rows[place].quality[-1]):
        if max(rows[place].lost) <= 0:
            grades[place] = rows[place].quality
            yield


def as_asked(grades: Grades, rows: list[Kind], wanted: Wanted) -> Iterator[None]:
    """Answers what is asked for, the slow model's grade first, until nothing is."""
    yield
    while len(found := wanted(grades)):
        place = int(found[0])
        quality = np.array(rows[place].quality)
        if np.isnan(grades[place]).all():
            quality[:-1] = np.nan
        grades[place] = quality
        yield


def chances(
    law: Sequence[Kind], n: int, asked: dict[str, Any], grader: Grader
) -> tuple[float, float, float]:
    """How likely some look claims a bad threshold, how likely all grades at once do,
    and how likely some look claims anything.
    """
    wrong = at_once = made = 0.0
    for chance, rows in samples(law, n):
        scores = [row.scores for row in rows]
        wanted = partial(_wanted, scores, asked)
        grades = np.full((len(rows), len(law[0].quality)), np.nan)
        bad = certified = False
        for _ in grader(grades, rows, wanted):
            now = certify_cascade(scores, quality=grades, **asked)
            bad |= loss(law, now.thresholds.tolist()) > asked["xi"]
            certified |= now.certified
        whole = certify_cascade(scores, quality=[row.quality for row in rows], **asked)
        bad_at_once = loss(law, whole.thresholds.tolist()) > asked["xi"]
        # No look claims what all grades would not; with several exits ends differ by their cost.
        assert bad_at_once or not bad or len(law[0].scores) > 1
        wrong, at_once = wrong + chance * bad, at_once + chance * bad_at_once
        made += chance * certified
    return wrong, at_once, made


def _wanted(scores: Any, asked: dict[str, Any], grades: Grades) -> NDArray[np.int64]:
    return rows_to_label(scores, quality=grades, count=1, **asked)


@pytest.mark.parametrize(
    "grader", standing_for([gains_first, half_by_half, as_asked], [gains_first], rest="long")
)
def test_no_grader_of_two_models_gets_a_false_claim_with_more_than_delta(grader: Grader) -> None:
    asked: Any = {"xi": 0.15, "delta": 0.6}
    assert loss(TWO, [0.0]) > asked["xi"] > loss(TWO, [0.9])
    wrong, at_once, made = chances(TWO, 8, asked, grader)
    assert wrong <= at_once <= asked["delta"]
    assert made > 0.1
    assert wrong > 0.02


@pytest.mark.parametrize("grader", standing_for([gains_first, as_asked], [as_asked], rest="long"))
def test_no_grader_of_three_models_gets_a_false_claim_with_more_than_delta(grader: Grader) -> None:
    asked: Any = {"xi": 0.55, "delta": 0.9}
    assert loss(THREE, [0.0, 0.0]) > asked["xi"] > loss(THREE, [np.inf, 0.9])
    wrong, _, made = chances(THREE, 8, asked, grader)
    assert 0 < wrong <= asked["delta"]
    assert made > 0.02


@pytest.mark.parametrize("law", [TWO, THREE])
def test_what_some_grades_claim_verifies_in_both_verifiers(
    law: tuple[Kind, ...], tmp_path: Path
) -> None:
    rng = np.random.default_rng(3)
    rows = [law[k] for k in rng.choice(len(law), 200, p=[kind.chance for kind in law])]
    quality = np.array([row.quality for row in rows])
    asked: Any = {"xi": 0.3, "delta": 0.1, "graded_by": "a law"}
    scores, grades = [row.scores for row in rows], np.full_like(quality, np.nan)
    path = tmp_path / "cascade.json"
    for look in range(5):
        certificate = certify_cascade(scores, quality=grades, **asked)
        certificate.save(path)
        assert load_certificate(path).verify()
        assert exact_verifier.check_file(str(path))[0] == (0 if certificate.certified else 3)
        some = rows_to_label(scores, quality=grades, count=60, **asked)
        grades[some] = quality[some]
        grades[some[look::7], 0] = np.nan
    assert certify_cascade(scores, quality=grades, **asked).certified
