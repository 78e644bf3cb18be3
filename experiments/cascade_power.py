"""What the guarantee costs: the share of the oracle's exits that is certified on simulated networks
of 71 % and 79 % accuracy.

A row has a latent ease. A model is right if the ease, blurred by noise of its own, is above its
limit. The score is calibrated: the chance that the fast model is right, given what a blurred view
of the ease tells. The oracle knows the law and takes the lowest threshold whose true loss is at
most xi. `python -m experiments.cascade_power` prints the shares, and what three networks save
beyond the paper's greedy method.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr, ndtri

from experiments.two_models import TOP, by_bound, walk_from_counts
from pacbound.claims.cascade import certify_cascade
from pacbound.paper import greedy_thresholds
from pacbound.tally.grids import DyadicGrid
from pacbound.tally.questions.cascade import outcomes_of, with_unlabelled
from pacbound.tally.tally import Tally

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

XI, DELTA = 0.02, 1e-3
BLUR, VIEW, SAME_MISTAKE = 0.6, 0.7, 0.65
GRID = DyadicGrid(16)


def limit(accuracy: float) -> float:
    """Where a model of this accuracy draws the line between rows that it gets right and others."""
    return float(ndtri(1 - accuracy) * np.sqrt(1 + BLUR**2))


@dataclass(frozen=True)
class TwoNetworks:
    """Probabilities of agree, only_fast, only_slow and neither, at each of many equally likely
    scores, highest first."""

    fast: float = 0.71
    slow: float = 0.79
    size: int = 2000

    @cached_property
    def view(self) -> Floats:
        spread = np.sqrt(1 + VIEW**2)
        return np.asarray(spread * ndtri(1 - (np.arange(self.size) + 0.5) / self.size))

    @cached_property
    def joint(self) -> tuple[Floats, Floats, Floats]:
        """Given each view: that both are right, that only the fast one is, and that only the slow
        one is."""
        nodes, weights = np.polynomial.hermite_e.hermegauss(80)
        ease = self.view[:, None] / (1 + VIEW**2) + nodes * VIEW / np.sqrt(1 + VIEW**2)
        fast, slow = (ndtr((ease - limit(accuracy)) / BLUR) for accuracy in (self.fast, self.slow))
        weights = weights / weights.sum()
        return fast * slow @ weights, fast * (1 - slow) @ weights, (1 - fast) * slow @ weights

    @cached_property
    def outcomes(self) -> Floats:
        both, only_fast, only_slow = self.joint
        neither = (1 - SAME_MISTAKE) * (1 - both - only_fast - only_slow)
        return (
            np.column_stack([1 - only_fast - only_slow - neither, only_fast, only_slow, neither])
            / self.size
        )

    @cached_property
    def scores(self) -> Floats:
        both, only_fast, _ = self.joint
        return both + only_fast

    def oracle(self, xi: float) -> float:
        """The largest share of rows that may exit early."""
        losses = np.cumsum(self.outcomes[:, 2] - self.outcomes[:, 1])
        return float((1 + np.flatnonzero(losses <= xi).max()) / self.size)

    def draw(self, rng: np.random.Generator, n: int) -> Tally:
        cells, place = np.unique(GRID.cells(self.scores), return_inverse=True)
        counts = np.zeros((len(cells), 4), dtype=np.int64)
        np.add.at(
            counts,
            place,
            rng.multinomial(n, self.outcomes.ravel() / self.outcomes.sum()).reshape(-1, 4),
        )
        seen = counts.any(axis=1)
        whole = with_unlabelled(counts[seen], 1)
        return Tally("cascade", GRID, outcomes_of(1), n, cells[seen, None], whole)

    def share(self, n: int, seeds: int, bound: str) -> float:
        """The true exit rate at certified thresholds, on average, as a share of the oracle's."""
        rates = []
        for seed in range(seeds):
            tally = self.draw(np.random.default_rng(seed), n)
            walk = walk_from_counts(tally.cells[:, 0], tally.counts)
            cell = by_bound(bound, walk, n, xi=XI, delta=DELTA)
            rates.append((self.scores * TOP >= cell).mean())
        return float(np.mean(rates)) / self.oracle(XI)


ACCURACIES = (0.65, 0.71, 0.79)
COSTS = (1, 3, 9)


def three_networks(rng: np.random.Generator, n: int) -> tuple[Floats, Integers, Integers]:
    """Scores of the first two, answers of all three and labels; mistakes are often the same."""
    ease = rng.normal(size=n)
    right = np.column_stack(
        [ease + BLUR * rng.normal(size=n) > limit(accuracy) for accuracy in ACCURACIES]
    )
    views = ease[:, None] + VIEW * rng.normal(size=(n, 2))
    blur = np.sqrt(BLUR**2 + VIEW**2 / (1 + VIEW**2))
    scores = ndtr((views / (1 + VIEW**2) - [limit(accuracy) for accuracy in ACCURACIES[:2]]) / blur)
    mistakes = rng.choice([1, 2, 3], size=(n, 3), p=[0.75, 0.2, 0.05])
    return scores, np.where(right, 0, mistakes), np.zeros(n, dtype=np.int64)


def savings(n: int, seeds: int) -> tuple[float, float]:
    """The cost per row that the seven paths save, and the paper's greedy product, on average over
    calibration sets of n rows."""
    test_scores, _, _ = three_networks(np.random.default_rng(1), 200_000)

    def saved(thresholds: Floats) -> float:
        reached = test_scores >= thresholds
        exits = np.where(reached.any(axis=1), reached.argmax(axis=1), 2)
        return float(COSTS[2] - np.array(COSTS)[exits].mean())

    paths, greedy = [], []
    for seed in range(seeds):
        rows = three_networks(np.random.default_rng(100 + seed), n)
        paths.append(saved(certify_cascade(*rows, xi=XI, delta=DELTA, costs=COSTS).thresholds))
        greedy.append(saved(greedy_thresholds(*rows, xi=XI, delta=DELTA)))
    return float(np.mean(paths)), float(np.mean(greedy))


def main() -> None:
    """Print both tables."""
    bounds = ("product", "pair", "exact")
    print(f"Share of the oracle's exit rate, networks of 71 and 79 %, xi = {XI}, delta = {DELTA}")
    for n, seeds in ((2_000, 100), (20_000, 40)):
        shares = ", ".join(
            f"{bound} {TwoNetworks().share(n, seeds, bound):.1%}" for bound in bounds
        )
        print(f"n = {n:6,}: {shares}")
    print(
        f"Cost saved by three networks of {ACCURACIES}, costs {COSTS}: seven paths against the "
        "paper's greedy product"
    )
    for n in (2_000, 5_000, 20_000):
        paths, greedy = savings(n, 20)
        print(f"n = {n:6,}: {paths:.3f} against {greedy:.3f}, {paths / greedy - 1:+.0%}")


if __name__ == "__main__":
    main()
