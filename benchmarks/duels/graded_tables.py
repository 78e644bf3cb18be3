"""Graded answers: what pacbound gets out of grades, beside coins and beside betting.

Five claims on public tables, with delta = .1 in every one. A table is the whole truth, and rows are
drawn from it with replacement, so what comes of a decision is known exactly.

*replacement*: how often a new model is shown to lose less than xi of the quality of an old one.
*rate*: how often a mean quality is shown to be above a target, by the lower end of one bin.
*calibration*: how wide the interval of that bin is.
*abstention*: the share of rows answered, whose mean quality may be xi below the best.
*cascade*: the share of rows that leave early, where at most xi of the slow model's quality is lost.

*coins* toss each grade to right or wrong, and each difference of two to a loss, a gain or neither,
keeping the mean, and then certify what was tossed as right and wrong answers are. *betting* is that
of Waudby-Smith and Ramdas (2024), on the grades as they are, in the order of the file; where a
threshold is asked for, it is tried at .99, .98, ... until it fails for the first time.

Grades are of three kinds. *three levels*: 1 where the true class comes first, 1/2 where it is among
the first five, else 0. *five levels*: the first, the second, the third, the next two, none. *fine*:
the probability that a network gives to the truth, and how near a guessed number is.

Grades of a public table are mostly all or nothing, so a coin adds little to them. *near misses*,
*both graded* and *small losses* are made up, of 20,000 rows, as a judge grades: most differences
are small.

A test is tried where its promise is hardest to keep, too: at the true mean.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any, Literal

import numpy as np

from benchmarks.duels.duel import Duel, Measure, Row
from benchmarks.duels.mean_bounds import betting
from benchmarks.duels.small_samples import (
    CIFAR,
    DELTA,
    SIZES,
    Found,
    behind,
    opened,
    printed,
    recorded,
    softmax,
)
from pacbound import calibrate, certify_abstention, certify_cascade, certify_replacement
from pacbound.stats.binomial import binomial_lower, binomial_upper

Kind = Literal["replacement", "rate", "calibration", "abstention", "cascade"]
NAMES = ("pacbound", "coins", "betting")
KINDS: tuple[Kind, ...] = ("replacement", "rate", "calibration", "abstention", "cascade")
METHODS: dict[str, tuple[str, ...]] = dict.fromkeys(KINDS, NAMES)
TESTS = 4
STEP = 2.0**-12
"""How finely the ends of an interval by betting are looked for."""
THREE, FIVE, ENDS = (0.0, 0.5, 1.0), (0.0, 0.25, 0.5, 0.75, 1.0), (0.0, 1.0)


@dataclass(frozen=True, eq=False)
class Cell:
    """A table of grades and a claim about it.

    `quality` has a column for each model, the old or slow one's as the claim has it; `scale` are
    the grades that there are, or the two ends; `aim` is xi, or the target of a rate.
    """

    kind: Kind
    name: str
    aim: float
    quality: Any
    scale: tuple[float, ...] = (0.0, 1.0)
    scores: Any = None

    @property
    def title(self) -> str:
        """The claim, the table and xi."""
        asked = {"rate": f", target {self.aim:.3g}", "calibration": ""}
        return f"{self.kind}: {self.name}" + asked.get(self.kind, f", xi {self.aim:g}")

    @property
    def lost(self) -> Any:
        """What each row would lose: the old or slow quality less the other, or 1 less a grade."""
        if self.kind == "replacement":
            return self.quality[:, 0] - self.quality[:, 1]
        if self.kind == "cascade":
            return self.quality[:, 1] - self.quality[:, 0]
        return 1.0 - self.quality

    def generator(self, draw: int, n: int) -> np.random.Generator:
        """The random numbers of a draw."""
        return np.random.default_rng([draw, n, sum(map(ord, self.title))])


# ---- what each method decides


def tossed(grades: Any, rng: np.random.Generator) -> Any:
    """Whether each answer is right, by a coin that keeps the mean."""
    return rng.random(len(grades)) < grades


def answers_of(lost: Any, rng: np.random.Generator) -> tuple[Any, Any]:
    """Answers of the old (slow) and the new (fast) model, 0 or 1, and the true ones, so that the
    difference of who is right is that of the grades on average.
    """
    differs = rng.random(len(lost)) < np.abs(lost)
    wrong = np.stack([differs & (lost < 0), differs & (lost > 0)], axis=1)
    true = np.arange(len(lost)) % 2
    return np.where(wrong, 1 - true[:, None], true[:, None]), true


def shows_less(
    cell: Cell, rows: Any, method: str, aim: float, rng: np.random.Generator, sign: int = 1
) -> bool:
    """Whether a replacement is shown to lose less than `aim`; with -1 of the models exchanged."""
    quality = cell.quality[rows][:, ::sign]
    lost = quality[:, 0] - quality[:, 1]
    if method == "betting":
        return betting((1.0 + lost) / 2.0, xi=(1.0 + aim) / 2.0, delta=DELTA)
    if method == "coins":
        answers, true = answers_of(lost, rng)
        return certify_replacement(answers, true, xi=aim, delta=DELTA).certified
    return certify_replacement(
        quality=quality, quality_scale=cell.scale, xi=aim, delta=DELTA
    ).certified


def interval(cell: Cell, rows: Any, method: str, rng: np.random.Generator) -> tuple[float, float]:
    """The ends of the interval of the mean quality."""
    grades = cell.quality[rows]
    if method == "coins":
        right, level = int(tossed(grades, rng).sum()), DELTA / 2.0
        trials = len(rows)
        lowest = float(binomial_lower(right, trials, delta=level))
        return lowest, float(binomial_upper(right, trials, delta=level))
    if method == "betting":
        return 1.0 - _mean_below(1.0 - grades), _mean_below(grades)
    score = np.full(len(rows), 0.5)
    certificate = calibrate(score, quality=grades, quality_scale=cell.scale, delta=DELTA, n_bins=1)
    low, high = certificate.interval(0.5)
    return float(low), float(high)


def _mean_below(values: Any) -> float:
    """The upper end of the mean by betting, at half of delta."""
    low, high = 0, round(1.0 / STEP)
    while low < high - 1:
        middle = (low + high) // 2
        passes = betting(values, xi=middle * STEP, delta=DELTA / 2.0)
        low, high = (low, middle) if passes else (middle, high)
    return high * STEP


def threshold(cell: Cell, rows: Any, method: str, rng: np.random.Generator) -> float:
    """The score from which on rows are answered, or leave early."""
    scores, quality = cell.scores[rows], cell.quality[rows]
    lost = cell.lost[rows]
    asked: dict[str, Any] = {"xi": cell.aim, "delta": DELTA}
    if method == "betting":
        return _walked(scores, lost, cell)
    if cell.kind == "abstention":
        if method == "coins":
            return float(certify_abstention(scores, tossed(quality, rng), **asked).threshold)
        found = certify_abstention(scores, quality=quality, quality_scale=cell.scale, **asked)
        return float(found.threshold)
    if method == "coins":
        answers, true = answers_of(lost, rng)
        return float(certify_cascade(scores, answers[:, ::-1], true, **asked).thresholds[0])
    routed = certify_cascade(scores, quality=quality, quality_scale=cell.scale, **asked)
    return float(routed.thresholds[0])


def _walked(scores: Any, lost: Any, cell: Cell) -> float:
    found = np.inf
    for place in range(99, -1, -1):
        above = scores >= place / 100
        if cell.kind == "abstention":
            passes = above.any() and betting(lost[above], xi=cell.aim, delta=DELTA)
        else:
            early = (1.0 + np.where(above, lost, 0.0)) / 2.0
            passes = betting(early, xi=(1.0 + cell.aim) / 2.0, delta=DELTA)
        if not passes:
            break
        found = place / 100
    return found


# ---- what comes of it


def found_by(cell: Cell, method: str, n: int, draws: int) -> tuple[float, int, int]:
    """What a method gets at this size, and in how many draws it breaks its promise."""
    values, broken = [], 0
    mean = float(cell.lost.mean())
    sign = -1 if mean < 0 else 1
    for draw in range(draws):
        rng = cell.generator(draw, n)
        rows = rng.integers(len(cell.quality), size=n)
        if cell.kind == "replacement":
            values.append(float(shows_less(cell, rows, method, cell.aim, rng)))
            broken += shows_less(cell, rows, method, abs(mean), rng, sign)
        elif cell.kind in ("rate", "calibration"):
            low, high = interval(cell, rows, method, rng)
            values.append(float(low >= cell.aim) if cell.kind == "rate" else high - low)
            broken += not low <= 1.0 - mean <= high
        else:
            above = cell.scores >= threshold(cell, rows, method, rng)
            values.append(float(above.mean()))
            among = above.sum() if cell.kind == "abstention" else len(above)
            broken += bool(cell.lost[above].sum() > cell.aim * among)
    return float(np.mean(values)), int(broken), draws


def measure(cell: Cell, draws: int) -> Row:
    """All methods at all sizes. Tests are tried more often, as that is quick."""
    often = draws * (TESTS if cell.kind in ("replacement", "rate") else 1)
    results: list[Found] = [{name: found_by(cell, name, n, often) for name in NAMES} for n in SIZES]
    row: Row = {"name": cell.title, "kind": cell.kind, "draws": often}
    row["methods"] = {name: recorded([result[name] for result in results]) for name in NAMES}
    return row | {"behind": behind(row)}


# ---- the tables


def places(first: dict[str, Any], model: str) -> Any:
    """The place of the true class among the first five, 5 if it is not there."""
    hit = first[f"{model}_class"] == first["label"][:, None]
    return np.where(hit.any(axis=1), hit.argmax(axis=1), 5)


def tables(folder: Path) -> Iterator[Cell]:
    """Every claim about every table."""
    first = opened(folder, "imagenet_val_resnet_top5.npz")
    nets = ("resnet18", "resnet50", "resnet101")
    sure = {net: first[f"{net}_prob"][:, 0].astype(np.float64).clip(max=1.0) for net in nets}
    place = {net: places(first, net) for net in nets}
    five = {net: np.array([1.0, 0.75, 0.5, 0.25, 0.25, 0.0])[place[net]] for net in nets}
    three = {net: np.array([1.0, 0.5, 0.5, 0.5, 0.5, 0.0])[place[net]] for net in nets}
    truth = opened(folder, CIFAR)["y"].astype(np.int64)
    chances = softmax(folder)
    fine = {net: each[np.arange(len(truth)), truth] for net, each in chances.items()}
    top = {net: each.max(axis=1) for net, each in chances.items()}
    labels = opened(folder, "pac_labels.npz")
    near = 1.0 - np.abs(labels["sentiment_label"] - labels["sentiment_prediction"])

    levels = (("three", three, THREE), ("five", five, FIVE))
    for (name, grades, scale), (old, new, least) in product(
        levels, (("resnet50", "resnet101", 0.01), ("resnet101", "resnet50", 0.02))
    ):
        yield from replacements(
            f"{old} to {new}, {name} levels", (grades[old], grades[new]), scale, (least, 0.05)
        )
    for old, new, least in (("ResNet-20", "ResNet-56", 0.01), ("ResNet-56", "ResNet-20", 0.02)):
        yield from replacements(
            f"{old} to {new}, fine", (fine[old], fine[new]), ENDS, (least, 0.05)
        )
    one = (
        ("resnet101, three levels", three["resnet101"], THREE, sure["resnet101"], (0.05, 0.1)),
        ("resnet18, five levels", five["resnet18"], FIVE, sure["resnet18"], (0.05, 0.1)),
        ("ResNet-20, fine", fine["ResNet-20"], ENDS, top["ResNet-20"], (0.02, 0.05)),
        ("sentiment, fine", near, ENDS, labels["sentiment_confidence"], (0.08, 0.1)),
    )
    for name, grades, scale, scores, rates in one:
        yield from of_one(name, grades, scale, scores, rates)
    for name, grades, scale in levels:
        title = f"resnet18 before resnet101, {name} levels"
        both = grades["resnet18"], grades["resnet101"]
        yield from cascades(title, both, scale, sure["resnet18"], (0.01, 0.02, 0.05))
    title, both = "ResNet-20 before ResNet-56, fine", (fine["ResNet-20"], fine["ResNet-56"])
    yield from cascades(title, both, ENDS, top["ResNet-20"], (0.005, 0.01))


def replacements(name: str, both: Any, scale: Any, rates: Sequence[float]) -> Iterator[Cell]:
    """Replacements of the first of two by the second."""
    for xi in rates:
        yield Cell("replacement", name, xi, np.stack(both, axis=1), scale)


def cascades(
    name: str, both: Any, scale: Any, scores: Any, rates: Sequence[float]
) -> Iterator[Cell]:
    """Cascades of the first before the second."""
    for xi in rates:
        yield Cell("cascade", name, xi, np.stack(both, axis=1), scale, scores)


def of_one(
    name: str, grades: Any, scale: Any, scores: Any, rates: Sequence[float]
) -> Iterator[Cell]:
    """Claims about the grades of one model."""
    for less in (0.02, 0.05):
        yield Cell("rate", name, float(grades.mean()) - less, grades, scale)
    yield Cell("calibration", name, 0.0, grades, scale)
    for xi in rates:
        yield Cell("abstention", name, xi, grades, scale, scores)


MADE_UP = {
    "near misses": (0.6, (0.25, 0.5, 0.75, 1.0), (0.7, 0.2, 0.05, 0.05), FIVE),
    "both graded": (0.9, (-0.5, -0.25, 0.25, 0.5, 1.0), (0.1, 0.25, 0.35, 0.2, 0.1), FIVE),
    "small losses": (1.0, (0.0, 0.2), None, ENDS),
}
"""How often two grades differ where a model is least sure, by how much and with which chances
(evenly between two ends if there are none), and the scale.
"""


def made_up() -> Iterator[Cell]:
    """Tables with grades that differ by little."""
    for name, (differ, values, chances, scale) in MADE_UP.items():
        rng = np.random.default_rng(sum(map(ord, name)))
        scores, size = rng.random(20_000), 20_000
        differs = rng.random(size) < differ * (1.0 - scores)
        drawn = (
            rng.choice(values, size=size, p=chances)
            if chances
            else rng.uniform(values[0], values[1], size)
        )
        lost = np.where(differs, drawn, 0.0)
        fast, slow = 1.0 - np.maximum(lost, 0.0), 1.0 + np.minimum(lost, 0.0)
        aims = [round(float(lost.mean()) + less, 4) for less in (0.02, 0.05)]
        yield from replacements(name, (slow, fast), scale, aims)
        yield from of_one(name, fast, scale, scores, (0.02, 0.05))
        yield from cascades(name, (fast, slow), scale, scores, (0.02, 0.05))


def cells(folder: Path | None) -> Iterator[tuple[str, Measure]]:
    """Every cell, if there is a folder."""
    for cell in () if folder is None else (*tables(folder), *made_up()):
        yield cell.title, partial(measure, cell)


def table(rows: Sequence[Row]) -> str:
    """What each method gets at each size, and every cell in which another one is ahead."""
    return printed(rows, METHODS)


DUEL = Duel(cells, table, draws=100)
