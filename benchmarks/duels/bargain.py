"""BARGAIN (Zeighami, Shankar and Parameswaran 2025, arXiv 2509.02896): how many records of a batch
go to the slow model, if at most xi of the answers may differ from its own with probability at least
1 - delta.

The package itself, with its defaults: BARGAIN 0.1.3 goes into an environment of its own (`pip
install bargain==0.1.3 scipy`). Each draw takes a fresh subset of the rows (or all of them) and a
fresh seed.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.duels.duel import Duel, Measure, Row, arrays, markdown, shown, violated
from benchmarks.peers import adapter
from pacbound import answer_batch
from pacbound.data import fashion_mnist
from pacbound.procedures.batch import tolerated_answers

DELTAS = (0.1, 0.01)
LARGE = 4_000
"""From so many records on the share of calls must be lower by `FEWER`."""
FEWER = 0.15

Rows = tuple[Any, Any, Any]
"""Scores and answers of the fast model, and answers of the slow one."""


@dataclass(frozen=True)
class Setting:
    """A pair of models, how many of their rows make a batch, and how many answers may differ."""

    name: str
    rows: Callable[[Path], Rows]
    records: int
    xi: float


def _fashion(_: Path) -> Rows:
    table = fashion_mnist()
    return table.confidence_fast, table.prediction_fast, table.prediction_slow


def _imagenet(fast: str, slow: str, folder: Path) -> Rows:
    columns = arrays(folder / "imagenet_val_34nets.npz")
    models = columns["model"].tolist()
    f, s = models.index(fast), models.index(slow)
    return columns["confidence"][f], columns["prediction"][f], columns["prediction"][s]


def _api(table: str, fast: str, slow: str, folder: Path) -> Rows:
    columns = arrays(folder / "frugalml_apis.npz")
    return (
        columns[f"{table}_{fast}_confidence"],
        columns[f"{table}_{fast}_prediction"],
        columns[f"{table}_{slow}_prediction"],
    )


def _mmlu(folder: Path) -> Rows:
    columns = arrays(folder / "llm_mmlu_test_qwen3_gpt4_mixtral.npz")
    return columns["qwen3_32b_confidence"], columns["qwen3_32b_prediction"], columns["label"]


def _cifar(folder: Path) -> Rows:
    columns = arrays(folder / "cifar10_resnet_logits.npz")
    logits = columns["resnet20"].astype(np.float64)
    odds = np.exp(logits - logits.max(axis=1, keepdims=True))
    confidence = odds.max(axis=1) / odds.sum(axis=1)
    return confidence, logits.argmax(axis=1), columns["resnet56"].argmax(axis=1)


_RESNETS = partial(_imagenet, "resnet18_pytorch", "resnet101_pytorch")
SHIPPED = (
    Setting("Fashion-MNIST, two heads of one network", _fashion, 20_000, 0.05),
    Setting("Fashion-MNIST, two heads of one network", _fashion, 10_000, 0.02),
)
OTHERS = (
    Setting("ImageNet, ResNet-18 before ResNet-101", _RESNETS, 50_000, 0.05),
    Setting("ImageNet, ResNet-18 before ResNet-101", _RESNETS, 50_000, 0.02),
    Setting("ImageNet, ResNet-18 before ResNet-101", _RESNETS, 10_000, 0.05),
    Setting("ImageNet, ResNet-18 before ResNet-101", _RESNETS, 1_000, 0.05),
    Setting(
        "ImageNet, MobileNetV2 before NASNet-large",
        partial(_imagenet, "mobilenetV2_keras", "nasnetlarge_keras"),
        10_000,
        0.05,
    ),
    Setting(
        "COMMAND, DeepSpeech before Microsoft",
        partial(_api, "COMMAND", "deepspeech", "microsoft"),
        10_000,
        0.02,
    ),
    Setting(
        "SHOP, Bixin before Baidu (48 % of scores tied)",
        partial(_api, "SHOP", "bixin", "baidu"),
        10_000,
        0.05,
    ),
    Setting("YELP, Amazon before Google", partial(_api, "YELP", "amazon", "google"), 10_000, 0.05),
    Setting(
        "FERPLUS, Face++ before Microsoft",
        partial(_api, "FERPLUS", "facepp", "microsoft"),
        6_358,
        0.1,
    ),
    Setting("MMLU, Qwen3-32B before people", _mmlu, 10_000, 0.05),
    Setting("CIFAR-10, ResNet-20 before ResNet-56", _cifar, 10_000, 0.01),
)


def measure(setting: Setting, folder: Path, draws: int, *, delta: float, peer: Any) -> Row:
    """Answer `draws` batches both ways."""
    whole = setting.rows(folder)
    shares, wrong, seconds = np.zeros((2, draws)), np.zeros((2, draws), dtype=bool), np.zeros(2)
    needed = np.zeros(draws)
    tolerated = tolerated_answers(setting.records, setting.xi)
    for draw in range(draws):
        rng = np.random.default_rng([draw, setting.records])
        rows = rng.permutation(len(whole[0]))[: setting.records]
        confidence, fast, slow = (column[rows] for column in whole)
        confidence = np.clip(confidence.astype(np.float64), 0.0, 1.0)
        needed[draw] = _needed(confidence, fast, slow, tolerated)
        started = time.perf_counter()
        result = answer_batch(
            confidence,
            fast,
            slow.__getitem__,
            xi=setting.xi,
            delta=delta,
            answers=None,
            key=rng.bytes(16).hex(),
            chunk=10**6,
        )
        seconds[0] += time.perf_counter() - started
        started = time.perf_counter()
        answers, asked = peer.answer(confidence, fast, slow, xi=setting.xi, delta=delta, seed=draw)
        seconds[1] += time.perf_counter() - started
        for place, (said, sent) in enumerate(
            [(result.predictions, result.answered_by == "expert"), (answers, asked)]
        ):
            shares[place, draw] = sent.mean()
            wrong[place, draw] = (said != slow).sum() > tolerated
    ours, theirs = (
        {"sent": share, "seconds": spent / draws, **violated(count, draws, delta)}
        for share, spent, count in zip(
            shares.mean(axis=1).tolist(), seconds.tolist(), wrong.sum(axis=1).tolist(), strict=True
        )
    )
    fewer = 1.0 - ours["sent"] / theirs["sent"]
    return {
        "name": setting.name,
        "records": setting.records,
        "xi": setting.xi,
        "delta": delta,
        "draws": draws,
        "needed": float(needed.mean()),
        "ours": ours,
        "theirs": theirs,
        "fewer": fewer,
        "met": None if setting.records < LARGE else fewer >= FEWER,
    }


def _needed(confidence: Any, fast: Any, slow: Any, tolerated: int) -> float:
    """The share that whoever knows all answers sends, keeping a beginning of the order."""
    differ = (fast != slow)[np.argsort(-confidence, kind="stable")]
    return 1.0 - float(np.searchsorted(np.cumsum(differ), tolerated, side="right")) / len(differ)


def table(rows: Sequence[Row]) -> str:
    """The share of records that go to the slow model, and the violations."""
    headings = (
        "setting",
        "N",
        "xi",
        "delta",
        "needed",
        "**pacbound**",
        "BARGAIN",
        "fewer",
        "violations: pacbound",
        "BARGAIN",
    )
    return markdown(
        headings,
        [
            [
                row["name"],
                f"{row['records']:,}",
                f"{row['xi']:g}",
                f"{row['delta']:g}",
                f"{row['needed']:.1%}",
                f"**{row['ours']['sent']:.1%}**",
                f"{row['theirs']['sent']:.1%}",
                f"{row['fewer']:.0%}",
                shown(row["ours"], row["draws"]),
                shown(row["theirs"], row["draws"]),
            ]
            for row in rows
        ],
    )


def cells(folder: Path | None) -> Iterator[tuple[str, Measure]]:
    """Every setting at every delta."""
    peer = adapter("bargain")
    if peer is None:
        print(
            "BARGAIN is not installed: pip install bargain==0.1.3, in an environment apart.",
            file=sys.stderr,
        )
        return
    for setting in SHIPPED if folder is None else (*SHIPPED, *OTHERS):
        for delta in DELTAS:
            yield (
                setting.name,
                partial(measure, setting, folder or Path(), delta=delta, peer=peer),
            )


DUEL = Duel(cells, table, draws=100, packages=("bargain",))
