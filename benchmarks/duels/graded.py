"""Graded answers: bets by pacbound against bounds on the mean of what was graded.

A cascade may lose at most xi of the quality of its slow model, with probability at least 1 - delta.
pacbound bets on sums of powers of the differences of two grades, whatever the order of the rows,
along one walk; wins and losses (`preferred`) it tests exactly. The others take the differences as
they are: *betting* (Waudby-Smith and Ramdas 2024) and *Bentkus* (with Hoeffding's inequality, where
that is better), both written from the papers. *any flaw* counts every answer that is graded lower
as a loss of all quality, for want of better. *coin* is what pacbound found before: each difference
became a loss, a gain or neither by a keyed coin, and these were tested exactly.

The laws are made up, so that what is lost at a threshold is known exactly: a score is uniform, the
two grades differ with probability `differ` times 1 - score, and the difference has a law of its
own. Thresholds of the others are found by bisection over 4,096, which is in their favour: a walk
would end at the first that fails.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.duels.duel import Duel, Measure, Row, markdown, shown, violated
from benchmarks.duels.mean_bounds import bentkus, betting
from pacbound import certify_cascade

DELTA = 0.01
SIZES = ((2_000, 0.05), (5_000, 0.02))
"""Rows, and the xi that they are to certify."""
GRID = 4_096
SHARE = 0.95
"""What pacbound must reach of the exits by betting, where grades have five levels."""
COIN = {2_000: (0.529, 0.598, 0.664, 0.584, 0.881), 5_000: (0.335, 0.379, 0.419, 0.372, 0.556)}
"""The exits by coins, for each law in turn: recorded of the same 500 draws before coins left."""


@dataclass(frozen=True)
class Law:
    """How much worse the fast model's answer is than the slow one's, where they differ. `values`
    has `chances`; without chances the difference is uniform between its two values.
    """

    name: str
    differ: float
    values: tuple[float, ...]
    chances: tuple[float, ...] = ()
    barred: bool = True

    @property
    def mean(self) -> float:
        """The mean difference, where the grades differ."""
        return float(np.dot(self.values, self.chances or (0.5, 0.5)))

    def lost(self, exits: float) -> float:
        """The quality that is lost if the `exits` of the rows with the highest scores exit."""
        return self.differ * self.mean * exits**2 / 2.0

    def possible(self, xi: float) -> float:
        """The largest share of exits that loses at most xi."""
        return min(1.0, float(np.sqrt(2.0 * xi / (self.differ * self.mean))))

    def draw(self, rows: int, rng: np.random.Generator) -> tuple[Any, Any]:
        """Scores, and differences of grades."""
        scores = rng.random(rows)
        differs = rng.random(rows) < self.differ * (1.0 - scores)
        if self.chances:
            drawn = rng.choice(self.values, size=rows, p=self.chances)
        else:
            drawn = rng.uniform(self.values[0], self.values[1], size=rows)
        return scores, np.where(differs, drawn, 0.0)


LEVELS = (0.25, 0.5, 0.75, 1.0)
LAWS = (
    Law("5 levels, the slow answer is the reference", 0.6, LEVELS, (0.5, 0.25, 0.15, 0.1)),
    Law("5 levels, mostly near misses", 0.6, LEVELS, (0.7, 0.2, 0.05, 0.05)),
    Law(
        "5 levels, both answers graded",
        0.9,
        (-0.5, -0.25, 0.25, 0.5, 1.0),
        (0.1, 0.25, 0.35, 0.2, 0.1),
    ),
    Law("right or wrong", 0.5, (-1.0, 1.0), (0.3, 0.7), barred=False),
    Law("continuous, at most 0.2", 1.0, (0.0, 0.2), barred=False),
)


def by_bets(scores: Any, differences: Any, *, xi: float) -> float:
    """The share of exits that `certify_cascade` finds from grades; from preferences, where there
    are but wins, ties and losses.
    """
    if np.isin(differences, (-1.0, 0.0, 1.0)).all():
        better = np.select([differences > 0, differences < 0], ["slow", "fast"], "tie")
        outcome: dict[str, Any] = {"preferred": better}
    else:
        fast, slow = 1.0 - np.maximum(differences, 0.0), 1.0 + np.minimum(differences, 0.0)
        outcome = {"quality": np.stack([fast, slow], axis=1)}
    return _exits(certify_cascade(scores[:, None], xi=xi, delta=DELTA, **outcome))


def by_flaws(scores: Any, differences: Any, *, xi: float) -> float:
    """The share of exits if every lower grade is a loss, and every higher one a gain."""
    answers = np.stack([differences > 0, differences < 0], axis=1)
    certificate = certify_cascade(
        scores[:, None], answers, np.zeros(len(scores), dtype=bool), xi=xi, delta=DELTA
    )
    return _exits(certificate)


def _exits(certificate: Any) -> float:
    return max(0.0, 1.0 - float(certificate.thresholds[0])) if certificate.certified else 0.0


def by_mean(
    scores: Any, differences: Any, bound: Callable[..., bool], *, xi: float, lowest: float
) -> float:
    """The share of exits by a bound on the mean of values in [0, 1]; `lowest` is the least that a
    difference can be.
    """
    span = 1.0 - lowest

    def passes(exits: int) -> bool:
        lost = np.where(scores >= 1.0 - exits / GRID, differences, 0.0)
        return bound((lost - lowest) / span, xi=(xi - lowest) / span, delta=DELTA)

    low, high = 0, GRID
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if passes(middle) else (low, middle - 1)
    return low / GRID


def measure(law: Law, draws: int, *, rows: int, xi: float) -> Row:
    """The share of exits that each way finds, and how often it loses more than xi."""
    lowest = min(0.0, float(np.floor(min(law.values))))
    found: dict[str, list[float]] = {name: [] for name in ("bets", "betting", "bentkus", "flaws")}
    for draw in range(draws):
        sample = law.draw(rows, np.random.default_rng([draw, rows]))
        found["bets"].append(by_bets(*sample, xi=xi))
        found["flaws"].append(by_flaws(*sample, xi=xi))
        for name, bound in (("betting", betting), ("bentkus", bentkus)):
            found[name].append(by_mean(*sample, bound, xi=xi, lowest=lowest))
    row: Row = {"name": law.name, "rows": rows, "xi": xi, "delta": DELTA, "draws": draws}
    row["possible"] = law.possible(xi)
    row["coin"] = COIN[rows][LAWS.index(law)]
    for name, exits in found.items():
        broken = sum(law.lost(share) > xi for share in exits)
        row[name] = {"exits": float(np.mean(exits)), **violated(broken, draws, DELTA)}
    share = row["bets"]["exits"] / row["betting"]["exits"]
    return row | {"share": share, "met": share >= SHARE if law.barred else None}


def table(rows: Sequence[Row]) -> str:
    """The shares of exits, and the violations."""
    headings = (
        "differences of grades",
        "n",
        "xi",
        "possible",
        "**bets**",
        "coin",
        "betting",
        "Bentkus",
        "any flaw",
        "bets / betting",
        "violations: bets",
        "betting",
    )
    return markdown(headings, [_line(row) for row in rows])


def _line(row: Row) -> list[str]:
    return [
        row["name"],
        f"{row['rows']:,}",
        f"{row['xi']:g}",
        f"{row['possible']:.1%}",
        f"**{row['bets']['exits']:.1%}**",
        f"{row['coin']:.1%}",
        *(f"{row[name]['exits']:.1%}" for name in ("betting", "bentkus", "flaws")),
        f"{row['share']:.2f}" + (" (behind)" if row["share"] < SHARE else ""),
        *(shown(row[name], row["draws"]) for name in ("bets", "betting")),
    ]


def cells(_: Path | None) -> Iterator[tuple[str, Measure]]:
    """Every law at every size; no data is needed."""
    for rows, xi in SIZES:
        for law in LAWS:
            yield law.name, partial(measure, law, rows=rows, xi=xi)


DUEL = Duel(cells, table, draws=500, simulated=True)
