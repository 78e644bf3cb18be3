r"""Every threshold whose evidence reaches 1/delta may be claimed: an exact search for laws of which
that is false.

    python -m experiments.grades.search       # writes results/graded_search.*
    python -m experiments.grades.search --quick --out FOLDER

A law has a few cells of scores, a few losses in each, and rows below all thresholds. Of `rows`
independent rows the counts are multinomial, and the chance that some threshold is claimed whose
mean loss is above xi is a sum over all counts: nothing is simulated. All laws on a grid are tried,
for single bets up to the largest stake and for mixtures, at deltas that a product of factors just
reaches (there Markov's inequality is tight); from the worst of each setting the search climbs on
through laws that are not on the grid. The same search is shown two rules that are false.
"""

from __future__ import annotations

import argparse
import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from math import lgamma, log
from pathlib import Path
from typing import Any, Final, Literal

import numpy as np
from numpy.typing import NDArray
from scipy.special import bdtr

from experiments.record import RESULTS, provenance, publish, table
from pacbound.stats.graded_bets import GradeBets, cascade_bets, log_evidence, threshold_bets
from pacbound.stats.paired import paired_region

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Flags = NDArray[np.bool_]
Form = Literal["answers", "cascade"]
Rule = Callable[[Integers], Flags]

LARGEST: Final = 0.99999


@dataclass(frozen=True)
class Family:
    """All laws with so many cells and these losses, and all counts that so many rows can show.

    A row below all thresholds is the last category. In a cascade a row that loses nothing changes
    no threshold more than such a row does, so that 0 is left out there.
    """

    form: Form
    rows: int
    cells: int
    losses: tuple[float, ...]

    @property
    def categories(self) -> int:
        """The kinds of rows: a cell and a loss each, and those below."""
        return self.cells * len(self.losses) + 1

    def counts(self) -> Integers:
        """All samples, as counts of the categories."""
        return np.array(list(compositions(self.rows, self.categories)), dtype=np.int64)

    def log_ways(self, counts: Integers) -> Floats:
        """The logarithms of the multinomial coefficients."""
        logs = np.array([lgamma(k + 1.0) for k in range(self.rows + 1)])
        return np.asarray(logs[self.rows] - logs[counts].sum(axis=1))

    def above(self, counts: Any) -> Any:
        """For each threshold, from the highest, the rows of each loss above it (or their share)."""
        inside = counts[..., :-1].reshape(*counts.shape[:-1], self.cells, len(self.losses))
        return inside.cumsum(axis=-2)

    def bad(self, laws: Floats, xi: float) -> Flags:
        """Which thresholds of each law have a mean loss above xi."""
        shares = self.above(laws)
        mean = shares @ np.array(self.losses)
        whole = shares.sum(axis=-1) if self.form == "answers" else 1.0
        return np.asarray(mean > xi * whole * (1 + 1e-12))

    def evidence(self, counts: Integers, bets: GradeBets, xi: float) -> Floats:
        """The logarithm of the evidence at each threshold."""
        above, values = self.above(counts), np.array(self.losses)
        if self.form == "cascade":
            rest = counts.sum(axis=1)[:, None, None] - above.sum(axis=-1, keepdims=True)
            above, values = np.concatenate([above, rest], axis=-1), np.append(values, 0.0)
        return log_evidence(above, values, bets, xi)


def compositions(total: int, parts: int) -> Iterator[tuple[int, ...]]:
    """All ways to write `total` as so many whole numbers of at least 0."""
    for bars in itertools.combinations(range(total + parts - 1), parts - 1):
        ends = (-1, *bars, total + parts - 1)
        yield tuple(b - a - 1 for a, b in itertools.pairwise(ends))


def worst_chances(
    family: Family, laws: Floats, settings: list[tuple[Flags, float]]
) -> tuple[Floats, Integers]:
    """For each setting (which thresholds each sample claims, and xi) the largest chance of a false
    claim under any of the laws, and which law it is.
    """
    counts = family.counts()
    some = np.flatnonzero(np.any([claims.any(axis=1) for claims, _ in settings], axis=0))
    ways, counts = family.log_ways(counts)[some], counts[some]
    patterns = np.array(list(itertools.product((False, True), repeat=family.cells)))
    events = [(claims[some] @ patterns.T).astype(np.float64) for claims, _ in settings]
    powers = 1 << np.arange(family.cells)[::-1]
    best, where = np.zeros(len(settings)), np.zeros(len(settings), dtype=np.int64)
    size = max(1, 4_000_000 // max(1, len(some)))
    for first in range(0, len(laws), size):
        block = laws[first : first + size]
        chances = np.exp(np.log(np.maximum(block, 1e-300)) @ counts.T + ways)
        for place, (_, xi) in enumerate(settings):
            pattern = family.bad(block, xi) @ powers
            false = (chances @ events[place])[np.arange(len(block)), pattern]
            top = int(false.argmax())
            if false[top] > best[place]:
                best[place], where[place] = false[top], first + top
    return best, where


def climbed(
    family: Family, law: Floats, claims: Flags, xi: float, rng: np.random.Generator, rounds: int
) -> float:
    """The largest chance of a false claim that small changes of the law lead to."""
    best, width = 0.0, 0.3
    for _ in range(rounds):
        near = law * np.exp(width * rng.normal(size=(200, law.size)))
        near += 1e-4 * width * rng.random(near.shape)
        near = np.vstack([law, near / near.sum(axis=1, keepdims=True)])
        (found,), (top,) = worst_chances(family, near, [(claims, xi)])
        width *= 1.0 if found > best * (1 + 1e-4) else 0.7
        best, law = max(best, float(found)), near[top]
    return best


def tight_deltas(evidence: Floats, most: int) -> list[float]:
    """Levels that some sample just reaches, spread over those between 0.01 and 0.5."""
    found = np.unique(np.round(evidence, 9))
    found = found[(found >= log(2.0)) & (found <= log(100.0))]
    picked = found[np.linspace(0, len(found) - 1, min(most, len(found))).astype(int)]
    return [float(np.exp(-x)) for x in picked]


def bets_of(form: Form, rows: int, xi: float) -> dict[str, GradeBets]:
    """Single bets from small to nearly the largest, and mixtures."""
    most = 1.0 / (1.0 - xi)
    ours = threshold_bets if form == "answers" else cascade_bets
    single = {
        f"{share:g}": GradeBets((share * most,), (1.0,)) for share in (0.1, 0.3, 0.6, 0.9, LARGEST)
    }
    two = GradeBets((0.2 * most, LARGEST * most), (0.5, 0.5))
    return {**single, "two": two, "ours": ours(rows, xi, 0.1)}


def region_rule(family: Family, counts: Integers, xi: float, delta: float) -> Flags:
    """What the exact paired test claims at each threshold on its own: not valid anywhere."""
    region = paired_region(family.rows, xi=xi, delta=delta)
    above = family.above(counts)
    values = np.array(family.losses)
    return np.asarray(region.accepts(above @ (values > 0), above @ (values < 0)))


def binomial_rule(family: Family, counts: Integers, xi: float, delta: float) -> Flags:
    """What the binomial test claims at each threshold on its own: not valid anywhere."""
    above = family.above(counts)
    size = above.sum(axis=-1)
    return np.asarray((size > 0) & (bdtr(above[..., -1], np.maximum(size, 1), xi) <= delta))


def search(family: Family, grid: int, *, deltas: int, climbs: int, seed: int = 0) -> dict[str, Any]:
    """The worst of all laws whose shares are multiples of 1/grid, in every setting."""
    rng = np.random.default_rng(seed)
    laws = np.array(list(compositions(grid, family.categories))) / grid
    counts = family.counts()
    settings, named = [], []
    for xi in (0.05, 0.2, 0.45):
        for name, bets in bets_of(family.form, family.rows, xi).items():
            evidence = family.evidence(counts, bets, xi)
            for delta in tight_deltas(evidence, deltas):
                settings.append((evidence >= -log(delta) - 1e-9, xi))
                named.append({"xi": xi, "bets": name, "delta": delta})
    best, where = worst_chances(family, laws, settings)
    ratio = best / np.array([one["delta"] for one in named])
    worst = {**named[int(ratio.argmax())], "ratio": float(ratio.max())}
    reached = float(ratio.max())
    for place in np.argsort(-ratio)[:climbs]:
        claims, xi = settings[place]
        found = climbed(family, laws[where[place]], claims, xi, rng, 40) / named[place]["delta"]
        if found > reached:
            reached, worst = found, {**named[place], "ratio": found, "climbed": True}
    return {
        **{key: getattr(family, key) for key in ("form", "rows", "cells", "losses")},
        "laws": len(laws),
        "settings": len(settings),
        "evaluations": len(laws) * len(settings),
        "worst": worst,
    }


def broken(family: Family, grid: int, rule: Any, *, seed: int = 0) -> dict[str, Any]:
    """How far the search drives a rule that is false."""
    rng = np.random.default_rng(seed)
    laws = np.array(list(compositions(grid, family.categories))) / grid
    counts = family.counts()
    asked = [(xi, delta) for xi in (0.1, 0.2, 0.3, 0.45, 0.6) for delta in (0.05, 0.1, 0.2, 0.4)]
    settings = [(rule(family, counts, xi, delta), xi) for xi, delta in asked]
    best, where = worst_chances(family, laws, settings)
    ratio = best / np.array([delta for _, delta in asked])
    found = []
    for place in np.argsort(-ratio)[:4]:
        (xi, delta), (claims, _) = asked[place], settings[place]
        highest = climbed(family, laws[where[place]], claims, xi, rng, 40) / delta
        found.append({"rule": rule.__name__, "xi": xi, "delta": delta, "ratio": highest})
    return max(found, key=lambda one: float(one["ratio"]))


BOTH: Final = (-1.0, 1.0)
HALVES: Final = (-1.0, -0.5, 0.5, 1.0)
THREE: Final = (0.0, 0.5, 1.0)
# A family, and the grid of its laws.
FAMILIES: Final = (
    (Family("cascade", 10, 2, BOTH), 34),
    (Family("cascade", 9, 3, BOTH), 13),
    (Family("cascade", 6, 4, BOTH), 9),
    (Family("cascade", 6, 2, HALVES), 9),
    (Family("cascade", 4, 3, HALVES), 6),
    (Family("answers", 8, 2, THREE), 12),
    (Family("answers", 5, 3, THREE), 8),
    (Family("answers", 10, 3, (0.0, 1.0)), 13),
)
QUICK: Final = ((Family("cascade", 5, 2, BOTH), 8), (Family("answers", 4, 2, THREE), 6))


def main() -> None:
    """Search, and write what was found."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=RESULTS)
    parser.add_argument("--quick", action="store_true")
    options = parser.parse_args()
    found = []
    for family, grid in QUICK if options.quick else FAMILIES:
        found.append(search(family, grid, deltas=5, climbs=4))
        print(found[-1], flush=True)
    rules = [
        broken(Family("cascade", 10, 3, BOTH), 9, region_rule),
        broken(Family("answers", 10, 3, (0.0, 1.0)), 9, binomial_rule),
    ]
    found_all = {
        **provenance("python -m experiments.grades.search", seeds=0),
        "evaluations": sum(one["evaluations"] for one in found),
        "families": found,
        "false rules": rules,
    }
    publish(options.out, "graded_search", found_all, report=report)


def report(found: dict[str, Any]) -> str:
    """What was searched and the worst of it, as a table."""
    lines = [
        (
            f"{one['form']}, {one['rows']} rows, {one['cells']} cells, {len(one['losses'])} losses",
            f"{one['evaluations']:,}",
            f"{one['worst']['ratio']:.5f}",
        )
        for one in found["families"]
    ]
    rules = [(f"*false:* {one['rule']}", "", f"{one['ratio']:.2f}") for one in found["false rules"]]
    head = "# Every threshold whose bets reach 1/delta: the worst laws\n\n"
    return head + table(("what", "laws times settings", "worst chance / delta"), lines + rules)


if __name__ == "__main__":
    main()
