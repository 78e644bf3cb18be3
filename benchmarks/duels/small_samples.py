"""Samples of 100 to 5,000 rows: what each method gets out of them, and what it breaks.

Four claims on public tables, with delta = .1 in every one. A table is the whole truth, and rows are
drawn from it with replacement, so what comes of a decision is known exactly.

*abstention*: the share of rows answered from a threshold on, of which at most xi may be wrong.
MAPIE's precision controller has its own 100 thresholds, in its fixed sequence, by Bonferroni-Holm,
and in a sequence with five starts; *dense* is its fixed sequence on thresholds dense near 1.
*replacement*: how often a new model is shown to lose less than xi. Others say so where the upper
end of their interval of level 1 - 2 delta is below xi: evalstats' `compare` (for two models Bonett
and Price's interval), ppi-python with differences of confidences as predictions and five unlabelled
rows for each labelled one, Wald, and the bootstrap by percentiles.
*rate*: how often a rate of errors is shown to be below xi. judgekeeper has Wilson's interval.
*sets*: how many labels a set has that misses the true one in at most xi of all rows. ssbc.

A test is tried where its promise is hardest to keep, too: outcomes are drawn such that exactly xi
is lost, in replacements once more without any gain.

The figures *before* are those of `before.json`, made with an earlier pacbound on the path:

    PYTHONPATH=OLD/src:. python -m benchmarks.duels.small_samples FOLDER
"""

from __future__ import annotations

import hashlib
import json
import sys
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property, partial
from importlib import import_module
from itertools import product
from pathlib import Path
from typing import Any, Literal

import numpy as np
from scipy.stats import norm

from benchmarks.duels.duel import Duel, Measure, Row, arrays, at_least, markdown
from pacbound import certify_abstention, certify_sets
from pacbound.procedures.replacement import passes
from pacbound.stats.binomial import binomial_upper

DELTA = 0.1
SIZES = (100, 200, 500, 1_000, 2_000, 5_000)
EQUAL = 0.005
TESTS = 10
UNLABELLED = 5
BEFORE = Path("benchmarks/duels/small_samples_before.json")
DENSE = np.sort(1.0 - np.geomspace(1e-5, 1.0, 100))
STARTS = 5
SHA256 = {
    "imagenet_val_34nets.npz": "f1557ac805bd7c5b",
    "imagenet_val_resnet_top5.npz": "b0b902eb1f362a40",
    "cifar10_resnet_logits.npz": "76ae1c65bfc7140f",
    "frugalml_apis.npz": "70254be9ee6f1ee3",
    "llm_mmlu_test_qwen3_gpt4_mixtral.npz": "c919ff50f1b1b89c",
    "pac_labels.npz": "f4571218a49bd06e",
    "trust_or_escalate.npz": "eb94b2e2aa2a55b8",
}
Kind = Literal["abstention", "replacement", "rate", "sets"]
KINDS: tuple[Kind, ...] = ("abstention", "replacement", "rate", "sets")
METHODS: dict[str, tuple[str, ...]] = {
    "abstention": ("pacbound", "fixed sequence", "Bonferroni-Holm", "five starts", "dense"),
    "replacement": ("pacbound", "evalstats", "ppi-python", "Wald", "bootstrap"),
    "rate": ("pacbound", "judgekeeper", "ppi-python", "Wald", "bootstrap"),
    "sets": ("pacbound", "ssbc"),
}


@dataclass(frozen=True, eq=False)
class Cell:
    """A table of rows and a claim about it.

    `scores` are confidences, or the probabilities of all labels; `outcome` is 1 for what the claim
    counts (an error, a loss), -1 for a gain, or the place of the true label, -1 if it has none.
    """

    kind: Kind
    name: str
    xi: float
    scores: Any
    outcome: Any

    @property
    def title(self) -> str:
        """The claim, the table and xi."""
        return f"{self.kind}: {self.name}, xi {self.xi:g}"

    @cached_property
    def pools(self) -> list[Any]:
        """The predictions for losses, gains and other rows."""
        return [self.scores[self.outcome == sign] for sign in (1, -1, 0)]

    def laws(self) -> list[tuple[float, float, float]]:
        """The shares of losses, gains and other rows: the true ones, and those with which exactly
        xi is lost, with as many that differ as there are and, in a replacement, without a gain.
        """
        lost, gained = (float(np.mean(self.outcome == sign)) for sign in (1, -1))
        among = {max(0.0, (lost + gained - self.xi) / 2.0) if gained else 0.0, 0.0}
        null = [(self.xi + gains, gains, 1.0 - self.xi - 2.0 * gains) for gains in sorted(among)]
        return [(lost, gained, 1.0 - lost - gained), *null]

    def generator(self, draw: int, n: int) -> np.random.Generator:
        """The random numbers of a draw."""
        return np.random.default_rng([draw, n, sum(map(ord, self.name))])


# ---- what each method decides


def answered_from(method: str, scores: Any, wrong: Any, xi: float) -> float:
    """The threshold from which on rows are answered."""
    if method == "pacbound":
        return float(certify_abstention(scores, ~wrong, xi=xi, delta=DELTA).threshold)
    starts = import_module("mapie.risk_control.fwer_control").FWERFixedSequenceTesting(STARTS)
    corrections = {"Bonferroni-Holm": "bonferroni_holm", "five starts": starts}
    limit: float = import_module("benchmarks.peers.mapie").control_precision(
        scores,
        ~wrong,
        xi,
        DELTA,
        corrections.get(method, "fixed_sequence"),
        DENSE if method == "dense" else None,
    )
    return limit


def set_from(method: str, probability: Any, label: Any, xi: float) -> float:
    """The probability from which on a label is in the set."""
    n = len(label)
    true = np.where(label < 0, -1.0, probability[np.arange(n), np.maximum(label, 0)])
    if method == "pacbound":
        places = np.where(label < 0, np.nan, label)
        return float(certify_sets(probability, places, xi=xi, delta=DELTA).threshold)
    corrected = import_module("ssbc").ssbc_correct(xi, n, DELTA).alpha_corrected
    rank = int(np.ceil((n + 1) * (1.0 - corrected) - 1e-9))
    return float(-np.inf if rank > n else np.sort(true)[n - rank])


@cache
def shown_below(method: str, kind: str, xi: float, n: int, lost: int, gained: int) -> bool:
    """Whether so many losses and gains show that less than xi is lost."""
    if method == "pacbound" and kind == "rate":
        return bool(binomial_upper(lost, n, delta=DELTA) <= xi)
    if method == "pacbound":
        return bool(passes(lost, gained, n, xi=xi, delta=DELTA))
    if method == "evalstats":
        old, new = np.zeros((2, n), dtype=np.int64)
        old[:lost] = new[n - gained :] = 1
        peer = import_module("evalstats.core.resampling")
        return bool(peer.bonett_price_paired_ci(old, new, alpha=2 * DELTA)[1] <= xi)
    if method == "judgekeeper":
        wilson = import_module("judgekeeper.metrics").wilson
        return bool(wilson(lost, n, z=float(norm.isf(DELTA)))["hi"] <= xi)
    mean = (lost - gained) / n
    if method == "Wald":
        return bool(mean + norm.isf(DELTA) * np.sqrt(((lost + gained) / n - mean**2) / n) <= xi)
    rng = np.random.default_rng([n, lost, gained])
    counts = rng.multinomial(n, [lost / n, gained / n, (n - lost - gained) / n], size=1_000)
    return bool(np.quantile((counts[:, 0] - counts[:, 1]) / n, 1.0 - DELTA) <= xi)


def shown_by_predictions(cell: Cell, law: Any, counts: Any, rng: np.random.Generator) -> bool:
    """The same by ppi-python, which sees what is predicted for each row and for others."""
    more = rng.multinomial(UNLABELLED * counts.sum(), law)
    known, others = (
        np.concatenate(
            [rng.choice(pool, size=size) for pool, size in zip(cell.pools, sizes, strict=True)]
        )
        for sizes in (counts, more)
    )
    outcome = np.repeat([1.0, -1.0, 0.0], counts)
    ends = import_module("ppi_py").ppi_mean_ci(outcome, known, others, alpha=2 * DELTA)
    return bool(np.ravel(ends[1])[0] <= cell.xi)


# ---- what comes of it


Found = dict[str, tuple[float, int, int]]
"""For each method what it gets (a share, or the labels of a set), in how many draws it breaks its
promise, and of how many."""


def verdicts(cell: Cell, methods: Sequence[str], n: int, draws: int) -> Found:
    """How often less than xi is shown to be lost: truly, and at worst where xi is."""
    laws = cell.laws()
    shown = {method: np.zeros(len(laws), dtype=np.int64) for method in methods}
    for (place, law), draw in product(enumerate(laws), range(draws)):
        rng = cell.generator(draw, n)
        counts = rng.multinomial(n, law)
        lost, gained, _ = counts.tolist()
        for method in methods:
            shown[method][place] += (
                shown_by_predictions(cell, law, counts, rng)
                if method == "ppi-python"
                else shown_below(method, cell.kind, cell.xi, n, lost, gained)
            )
    return {method: (each[0] / draws, int(each[1:].max()), draws) for method, each in shown.items()}


def applied(cell: Cell, methods: Sequence[str], n: int, draws: int) -> Found:
    """What comes of the thresholds in the whole table."""
    outcomes: dict[str, list[tuple[float, float]]] = {method: [] for method in methods}
    decide = answered_from if cell.kind == "abstention" else set_from
    for draw in range(draws):
        rows = cell.generator(draw, n).integers(len(cell.outcome), size=n)
        for method in methods:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                limit = decide(method, cell.scores[rows], cell.outcome[rows], cell.xi)
            outcomes[method].append(_came_of(cell, limit))
    found: Found = {}
    for method, each in outcomes.items():
        values, risks = np.array(each).T
        found[method] = float(values.mean()), int((risks > cell.xi).sum()), draws
    return found


def _came_of(cell: Cell, limit: float) -> tuple[float, float]:
    if cell.kind == "abstention":
        answered = cell.scores >= limit
        return float(answered.mean()), float(cell.outcome[answered].sum() / max(1, answered.sum()))
    true = cell.scores[np.arange(len(cell.outcome)), np.maximum(cell.outcome, 0)]
    missed = (cell.outcome < 0) | (true < limit)
    return float((cell.scores >= limit).sum(axis=1).mean()), float(missed.mean())


def measured(cell: Cell, methods: Sequence[str], draws: int) -> dict[str, Any]:
    """The methods at all sizes. Tests are tried more often, as that is quick."""
    tests = cell.kind in ("replacement", "rate")
    results = [
        verdicts(cell, methods, n, draws * TESTS) if tests else applied(cell, methods, n, draws)
        for n in SIZES
    ]
    return {method: recorded([result[method] for result in results]) for method in methods}


def recorded(found: Sequence[tuple[float, int, int]]) -> dict[str, list[float]]:
    """What a method gets at each size, as it stands in the JSON file."""
    return {
        "value": [round(value, 4) for value, _, _ in found],
        "broken": [broken for _, broken, _ in found],
        "p": [float(f"{at_least(broken, draws, DELTA):.2g}") for _, broken, draws in found],
    }


def measure(cell: Cell, draws: int) -> Row:
    """All methods, and what pacbound did before."""
    methods = [m for m in METHODS[cell.kind] if m != "ppi-python" or cell.scores is not None]
    row: Row = {"name": cell.title, "kind": cell.kind, "draws": draws}
    row["methods"] = measured(cell, methods, draws)
    if (earlier := before(BEFORE)) and cell.title in earlier:
        row["methods"]["before"] = earlier[cell.title]
    return row | {"behind": behind(row)}


@cache
def before(path: Path) -> dict[str, Any]:
    """What an earlier pacbound gets, by the title of the cell."""
    document: dict[str, Any] = json.loads(path.read_text("utf-8")) if path.exists() else {}
    return dict(document.get("cells", {}))


def behind(row: Row) -> list[str]:
    """Where another method that keeps its promise is ahead by more than `EQUAL`."""
    lost = []
    for place, n in enumerate(SIZES):
        values = {name: method["value"][place] for name, method in row["methods"].items()}
        others = [
            f"{name} {value:.3f}"
            for name, value in values.items()
            if name not in ("pacbound", "before") and ahead(row, name, place)
        ]
        if others:
            lost.append(f"n = {n:,} {values['pacbound']:.3f} against {', '.join(others)}")
    return lost


def ahead(row: Row, name: str, place: int) -> bool:
    """Whether this method keeps its promise and is ahead of pacbound by more than `EQUAL`."""
    ours, other = (row["methods"][method] for method in ("pacbound", name))
    here, there = ours["value"][place], other["value"][place]
    gap = 1.0 - there / here if row["kind"] in ("sets", "calibration") else there - here
    return bool(other["p"][place] >= 0.01 and gap > EQUAL)


# ---- the tables


def opened(folder: Path, name: str) -> dict[str, Any]:
    """The arrays of a public file, which must be the one that was measured."""
    digest = hashlib.sha256((folder / name).read_bytes()).hexdigest()
    if not digest.startswith(SHA256[name]):
        raise SystemExit(f"{name} has SHA-256 {digest}: expected {SHA256[name]}…")
    return arrays(folder / name)


@dataclass(frozen=True, eq=False)
class Models:
    """Confidence and right answers of each model, by name; some bring no confidence."""

    confidence: dict[str, Any]
    right: dict[str, Any]

    @classmethod
    def of(cls, folder: Path) -> Models:
        """All models that are used."""
        confidence: dict[str, Any] = {}
        right: dict[str, Any] = {}
        nets = opened(folder, "imagenet_val_34nets.npz")
        for name, model in (
            ("ResNet-50", "resnet50_pytorch"),
            ("ResNet-101", "resnet101_pytorch"),
            ("MobileNetV2", "mobilenetV2_keras"),
        ):
            place = nets["model"].tolist().index(model)
            confidence[name] = np.minimum(nets["confidence"][place].astype(np.float64), 1.0)
            right[name] = nets["prediction"][place] == nets["label"]
        for name, chances in softmax(folder).items():
            confidence[name] = chances.max(axis=1)
            right[name] = chances.argmax(axis=1) == opened(folder, CIFAR)["y"]
        questions = opened(folder, "llm_mmlu_test_qwen3_gpt4_mixtral.npz")
        confidence["Qwen3-32B"] = questions["qwen3_32b_confidence"].astype(np.float64)
        right["Qwen3-32B"] = questions["qwen3_32b_correct"]
        right["GPT-4"] = questions["gpt4_1106_correct"]
        services = opened(folder, "frugalml_apis.npz")
        for table, service in (
            ("COMMAND", "google"),
            ("COMMAND", "microsoft"),
            ("SHOP", "baidu"),
            ("YELP", "amazon"),
            ("IMDB", "amazon"),
            ("IMDB", "google"),
        ):
            name = f"{table} {service}"
            confidence[name] = services[f"{table}_{service}_confidence"].astype(np.float64)
            right[name] = services[f"{table}_{service}_correct"]
        labels = opened(folder, "pac_labels.npz")
        for name, table in (("CLIP on ImageNet-v2", "imagenetv2"), ("GPT on stance", "stance")):
            confidence[name] = labels[f"{table}_confidence"]
            right[name] = labels[f"{table}_label"] == labels[f"{table}_prediction"]
        judges = opened(folder, "trust_or_escalate.npz")
        chances, preferred = judges["gpt_4_turbo_probabilities"], judges["gpt_4_turbo_preferred"]
        confidence["GPT-4 as a judge"] = chances.max(axis=1)
        right["GPT-4 as a judge"] = chances.argmax(axis=1) + 1 == preferred
        return cls(confidence, right)


CIFAR = "cifar10_resnet_logits.npz"


def softmax(folder: Path) -> dict[str, Any]:
    """The probabilities of two networks on CIFAR-10."""
    found = {}
    for name, key in (("ResNet-20", "resnet20"), ("ResNet-56", "resnet56")):
        logits = opened(folder, CIFAR)[key].astype(np.float64)
        shares = np.exp(logits - logits.max(axis=1, keepdims=True))
        found[name] = shares / shares.sum(axis=1, keepdims=True)
    return found


ABSTENTIONS = (
    ("ResNet-101", 0.05),
    ("ResNet-101", 0.1),
    ("MobileNetV2", 0.1),
    ("ResNet-56", 0.02),
    ("Qwen3-32B", 0.05),
    ("Qwen3-32B", 0.1),
    ("COMMAND microsoft", 0.02),
    ("SHOP baidu", 0.05),
    ("YELP amazon", 0.05),
    ("IMDB amazon", 0.1),
    ("IMDB google", 0.1),
    ("CLIP on ImageNet-v2", 0.1),
)
REPLACEMENTS: tuple[tuple[str, str, tuple[float, ...]], ...] = (
    ("ResNet-50", "ResNet-101", (0.01, 0.05)),
    ("MobileNetV2", "ResNet-50", (0.01, 0.05)),
    ("ResNet-101", "ResNet-50", (0.02, 0.05)),
    ("ResNet-20", "ResNet-56", (0.01, 0.05)),
    ("Qwen3-32B", "GPT-4", (0.01, 0.05)),
    ("COMMAND google", "COMMAND microsoft", (0.01, 0.05)),
)
RATES = (
    ("GPT-4 as a judge", 0.25),
    ("GPT on stance", 0.28),
    ("Qwen3-32B", 0.24),
    ("SHOP baidu", 0.1),
)
SETS: tuple[tuple[str, tuple[float, ...]], ...] = (
    ("ResNet-20", (0.01, 0.05)),
    ("ResNet-56", (0.005, 0.01, 0.02)),
    ("GPT-4 as a judge", (0.05, 0.1)),
    ("ResNet-101, its first five", (0.08, 0.1)),
)


def tables(folder: Path) -> Iterator[Cell]:
    """Every claim about every table."""
    models = Models.of(folder)
    for name, xi in ABSTENTIONS:
        yield Cell("abstention", name, xi, models.confidence[name], ~models.right[name])
    for old, new, rates in REPLACEMENTS:
        lost = models.right[old].astype(np.int64) - models.right[new]
        sure = [models.confidence.get(name) for name in (old, new)]
        predicted = None if sure[0] is None or sure[1] is None else sure[0] - sure[1]
        for xi in rates:
            yield Cell("replacement", f"{old} to {new}", xi, predicted, lost)
    for name, xi in RATES:
        doubt = 1.0 - models.confidence[name]
        yield Cell("rate", name, xi, doubt, (~models.right[name]).astype(np.int64))
    probabilities = {
        name: (chances, opened(folder, CIFAR)["y"].astype(np.int64))
        for name, chances in softmax(folder).items()
    }
    judges = opened(folder, "trust_or_escalate.npz")
    preferred = judges["gpt_4_turbo_preferred"].astype(np.int64) - 1
    probabilities["GPT-4 as a judge"] = judges["gpt_4_turbo_probabilities"], preferred
    first = opened(folder, "imagenet_val_resnet_top5.npz")
    hit = first["resnet101_class"] == first["label"][:, None]
    place = np.where(hit.any(axis=1), hit.argmax(axis=1), -1)
    five = first["resnet101_prob"].astype(np.float64)
    probabilities["ResNet-101, its first five"] = five, place
    for name, rates in SETS:
        for xi in rates:
            yield Cell("sets", name, xi, *probabilities[name])


def cells(folder: Path | None) -> Iterator[tuple[str, Measure]]:
    """Every cell, if there is a folder."""
    for cell in () if folder is None else tables(folder):
        yield cell.title, partial(measure, cell)


# ---- what is printed


HEADINGS = ("claim", "method", *(f"{n:,}" for n in SIZES), "broken", "ahead or equal")


def table(rows: Sequence[Row]) -> str:
    """What each method gets at each size, on average over the cells of a claim; then every cell in
    which another one is ahead.
    """
    return printed(rows, METHODS)


def printed(rows: Sequence[Row], methods: Mapping[str, Sequence[str]]) -> str:
    """The same of these methods of each claim."""
    lines = [line for kind, names in methods.items() for line in _lines(kind, rows, names)]
    lost = [f"- {row['name']}: {'; '.join(row['behind'])}." for row in rows if row["behind"]]
    return "\n".join([markdown(HEADINGS, lines), *([""] * bool(lost)), *lost])


def short(rows: Sequence[Row]) -> str:
    """The same of the methods that promise what pacbound does, and of the nearest of the others."""
    lines = [line for kind in KINDS for line in _lines(kind, rows, METHODS[kind][:2])]
    return markdown(HEADINGS, lines)


def lost(rows: Sequence[Row]) -> Iterator[str]:
    """For each claim in how many cells nobody who keeps the promise is ahead, and all others."""
    for kind in METHODS:
        here = [row for row in rows if row["kind"] == kind]
        behind = {row["name"].partition(": ")[2]: row["behind"] for row in here}
        places = {
            name: ", ".join(each.split()[2] for each in cells)
            for name, cells in behind.items()
            if cells
        }
        total = len(here) * len(SIZES)
        won = total - sum(map(len, behind.values()))
        named = "; ".join(f"{name.replace(', xi', ',')} ({n})" for name, n in places.items())
        yield f"- *{kind}*: {won} of {total}; behind: {named}."


def _lines(kind: str, rows: Sequence[Row], methods: Sequence[str]) -> Iterator[list[str]]:
    here = [row for row in rows if row["kind"] == kind]
    for method in ("before", *methods):
        found = [row for row in here if method in row["methods"]]
        if not found:
            continue
        results = [row["methods"][method] for row in found]
        means = np.mean([each["value"] for each in results], axis=0)
        total = len(found) * len(SIZES)
        broken = sum(p < 0.01 for each in results for p in each["p"])
        lost = sum(ahead(row, method, place) for row in found for place in range(len(SIZES)))
        own = method == "pacbound"
        yield [
            kind,
            f"**{method}**" if own else method,
            *(f"{mean:.3f}" for mean in means),
            f"{broken} of {total}",
            "" if own else f"{total - lost} of {total}",
        ]


DUEL = Duel(
    cells,
    table,
    draws=200,
    packages=("mapie", "ssbc", "evalstats", "judgekeeper", "ppi-python"),
)


def main(folder: Path) -> None:
    """Record what the pacbound on the path gets, as the figures before."""
    chosen = [cell for cell in tables(folder) if cell.kind != "rate"]
    found = {cell.title: measured(cell, ["pacbound"], DUEL.draws)["pacbound"] for cell in chosen}
    document = {"command": __doc__.splitlines()[-1].strip(), "cells": found}
    BEFORE.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
