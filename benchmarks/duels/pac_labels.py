"""PAC Labels (Candes, Ilyas and Zrnic 2025, arXiv 2506.10908): how many labels of experts a model
saves, if at most xi of all labels may then be wrong with probability at least 1 - delta.

The method is written from the paper. K records are drawn with replacement and labelled by the
expert. From the surest record on, the bound on the mean loss of everything up to a threshold grows;
the first threshold at which it exceeds xi ends what the model labels, and the expert labels the
rest. It is found by bisection, as in the authors' notebooks. Ties are put into a random order, the
same one for both methods. Their xi is epsilon, their delta is alpha.

*betting* is the bound that holds in finite samples (Waudby-Smith and Ramdas 2024, one-sided, with
their default bets); *normal* is the asymptotic one of the paper, which promises nothing about a
finite sample. K is left to the user: all of `SHARES` are tried, and the best is picked afterwards,
which no user can do.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.duels.duel import Duel, Measure, Row, arrays, markdown, shown, violated
from benchmarks.duels.mean_bounds import betting, normal
from pacbound.cascade.records import SampledOrder
from pacbound.data import fashion_mnist
from pacbound.procedures.batch import BatchPlan, plan, tolerated_answers

XI = DELTA = 0.05
SHARES = (0.01, 0.02, 0.03, 0.05, 0.075, 0.1, 0.15, 0.2, 0.25, 0.3)
"""K as a share of the records."""
OWN_SHARE = 0.1
"""What the authors take for ImageNet."""

Table = tuple[Any, Any, Any]
"""Confidences and answers of the model, and the labels of experts."""


BOUNDS: dict[str, Callable[..., bool]] = {"betting": betting, "normal": normal}


def label(
    wrong: Any, drawn: Any, bound: Callable[..., bool], *, xi: float, delta: float
) -> tuple[int, int]:
    """How many records keep the model's label, and how many of these are wrong.

    `wrong` is about all records, the surest first; `drawn` are the places that were drawn.
    """
    errors = wrong[drawn]
    places = np.append(np.unique(drawn[errors]), len(wrong))

    def passes(stop: int) -> bool:
        return bound((errors & (drawn < stop)).astype(np.float64), xi=xi, delta=delta)

    if not passes(0):
        return 0, 0
    low, high = 0, len(places) - 1
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if passes(int(places[middle])) else (low, middle - 1)
    stop = int(places[low])
    asked = int((np.unique(drawn) < stop).sum())
    return stop - asked, int(wrong[:stop].sum()) - low


def answer(wrong: Any, plan: BatchPlan, rng: np.random.Generator) -> tuple[int, int]:
    """How many records keep the model's label, and how many of these are wrong, by `answer_batch`.

    These are its steps without its questions and certificates, which take most of its time. Records
    stand in order, the surest first.
    """
    falling = np.arange(len(wrong), 0, -1) / len(wrong)
    order = SampledOrder(falling, np.ones(len(wrong), dtype=bool), plan, rng.bytes(16).hex())
    order.draw(1)
    if order.worth_another_look(wrong):
        order.draw(2)
    kept = order.kept(order.beginning(order.disagreements(wrong), whole_ties=False))
    return int(kept.sum()), int((kept & wrong).sum())


def measure(table: Table, draws: int, *, name: str, shares: Sequence[float] = SHARES) -> Row:
    """Label a table `draws` times, with every bound and every K, and with pacbound."""
    confidence, model, expert = table
    total = len(confidence)
    allowed = tolerated_answers(total, XI)
    plans = [plan(total, total, xi=XI, delta=DELTA, looks=looks) for looks in (1, 2)]
    tries = [(bound, max(1, round(share * total))) for bound in BOUNDS for share in shares]
    found = np.zeros((2 + len(tries), draws, 2), dtype=np.int64)
    needed = np.zeros(draws)
    for draw in range(draws):
        rng = np.random.default_rng([draw, total])
        wrong = (model != expert)[np.lexsort((rng.random(total), -confidence))]
        needed[draw] = np.searchsorted(np.cumsum(wrong), allowed, side="right")
        found[0, draw], found[1, draw] = (answer(wrong, one, rng) for one in plans)
        for place, (bound, sample) in enumerate(tries, start=2):
            drawn = rng.integers(total, size=sample)
            found[place, draw] = label(wrong, drawn, BOUNDS[bound], xi=XI, delta=DELTA)
    forms = [
        {
            "saved": float(one[:, 0].mean()) / total,
            **violated(int((one[:, 1] > allowed).sum()), draws, DELTA),
        }
        for one in found
    ]
    theirs = [
        {"bound": bound, "K": sample, **form}
        for (bound, sample), form in zip(tries, forms[2:], strict=True)
    ]
    most = max(one["saved"] for one in theirs if one["bound"] == "betting")
    return {
        "name": name,
        "records": total,
        "draws": draws,
        "needed": float(needed.mean()) / total,
        "ours": forms[0],
        "two_looks": forms[1],
        "theirs": theirs,
        "met": forms[0]["saved"] > most and forms[0]["p"] >= 0.01,
    }


def best(row: Row, bound: str) -> Row:
    """The K that saved most, of those that kept delta."""
    kept = [one for one in row["theirs"] if one["bound"] == bound and one["p"] >= 0.01]
    return max(kept, key=lambda one: one["saved"])


def own(row: Row) -> Row:
    """The K that the authors take."""
    asked = OWN_SHARE * row["records"]
    return min(
        (one for one in row["theirs"] if one["bound"] == "betting"),
        key=lambda one: abs(one["K"] - asked),
    )


def table(rows: Sequence[Row]) -> str:
    """The share of saved labels, and the violations."""
    headings = (
        "table",
        "N",
        "possible",
        "**pacbound**",
        "two looks",
        "PAC Labels, K = N/10",
        "its best K",
        "violations: pacbound",
        "PAC Labels, best K",
        "normal bound, its best K (not valid in finite samples)",
        "its violations",
    )
    return markdown(headings, [_line(row) for row in rows])


def _line(row: Row) -> list[str]:
    betting_, normal_ = best(row, "betting"), best(row, "normal")
    return [
        row["name"],
        f"{row['records']:,}",
        f"{row['needed']:.1%}",
        f"**{row['ours']['saved']:.1%}**",
        f"{row['two_looks']['saved']:.1%}",
        f"{own(row)['saved']:.1%}",
        f"{betting_['saved']:.1%} (K = {betting_['K']:,})",
        shown(row["ours"], row["draws"]),
        shown(betting_, row["draws"]),
        f"{normal_['saved']:.1%} (K = {normal_['K']:,})",
        shown(normal_, row["draws"]),
    ]


def _tables(folder: Path | None) -> Iterator[tuple[str, Table]]:
    if folder is None:
        shipped = fashion_mnist()
        yield (
            "Fashion-MNIST, fast head (ships)",
            (shipped.confidence_fast, shipped.prediction_fast, shipped.label),
        )
        return
    columns = arrays(folder / "pac_labels.npz")
    for name in ("misinfo", "stance", "imagenetv2", "imagenet"):
        confidence, prediction, expert = (
            columns[f"{name}_{column}"] for column in ("confidence", "prediction", "label")
        )
        yield name, (confidence, prediction, expert)


def cells(folder: Path | None) -> Iterator[tuple[str, Measure]]:
    """One cell a table."""
    for name, rows in _tables(folder):
        yield name, partial(measure, rows, name=name)


DUEL = Duel(cells, table, draws=2_000)
