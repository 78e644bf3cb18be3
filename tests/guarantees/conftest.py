"""How sampled checks are judged: by an exact binomial test, with seeds that never change."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from scipy.stats import binom

from pacbound.forms import CHANCE
from pacbound.stats.arguments import failure_probability

Judge = Callable[[int, int, float], None]


@pytest.fixture(scope="session")
def judge() -> Judge:
    """Fails if so many violations in so many runs are all but impossible for a guarantee that holds
    with 1 - delta."""

    def judged(violations: int, runs: int, delta: float) -> None:
        chance = float(binom.sf(violations - 1, runs, delta))
        assert chance > 1e-6, (
            f"{violations} violations in {runs} runs at delta = {delta}: p = {chance:.1e}"
        )

    return judged


@pytest.fixture
def any_delta(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Lets batches and cascades take a delta above one half, which users may not ask
    for: the theorems hold for it, and small laws come near it.
    """
    monkeypatch.setattr("pacbound.cascade.batch.claimed_delta", failure_probability)
    most = CHANCE.high
    object.__setattr__(CHANCE, "high", 0.999)
    yield
    object.__setattr__(CHANCE, "high", most)
