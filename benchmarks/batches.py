"""How many records of a batch go to the slow model, at the same guarantee: pacbound against
BARGAIN.

    python -m benchmarks.batches --data FOLDER [--draws 100] [--only NAME]

Both answer the same records in one run: at most xi of the answers may differ from the slow model's,
with probability at least 1 - delta. Each draw takes a fresh subset of the rows (or all of them) and
a fresh seed. A draw in which more differ is a violation, and their number is judged by an exact
binomial test. `FOLDER` has the outputs of public models that the page on benchmarks names; without
it only the table that ships with the package is used. BARGAIN 0.1.3 goes into an environment of its
own (`pip install bargain==0.1.3 scipy`). Everything is written to `benchmarks/batches.json` and, as
a table, to `docs/benchmarks.md`.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from functools import cache, partial
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from scipy.special import bdtrc

from benchmarks.peers import adapter
from pacbound import __version__, answer_batch
from pacbound.atomic_files import atomic_file
from pacbound.data import fashion_mnist
from pacbound.procedures.batch import tolerated_answers

RESULTS = Path("benchmarks/batches.json")
PAGE = Path("docs/benchmarks.md")
BEGIN, END = "<!-- batches: begin -->", "<!-- batches: end -->"
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


@dataclass(frozen=True)
class Measured:
    """A setting at one delta. `p` is the chance of as many violations or more if each had the
    chance delta.
    """

    name: str
    records: int
    xi: float
    delta: float
    draws: int
    oracle: float
    ours: float
    theirs: float
    our_violations: int
    their_violations: int
    our_p: float
    seconds: float
    their_seconds: float

    @property
    def fewer(self) -> float:
        """The share of the peer's calls that we do without."""
        return 1.0 - self.ours / self.theirs

    @property
    def met(self) -> bool | None:
        """Whether calls are fewer by as much as they must be; None for small batches."""
        return None if self.records < LARGE else self.fewer >= FEWER


@cache
def _arrays(path: Path) -> dict[str, Any]:
    with np.load(path, allow_pickle=False) as file:
        return dict(file)


def _fashion(_: Path) -> Rows:
    table = fashion_mnist()
    return table.confidence_fast, table.prediction_fast, table.prediction_slow


def _imagenet(fast: str, slow: str, folder: Path) -> Rows:
    arrays = _arrays(folder / "imagenet_val_34nets.npz")
    models = arrays["model"].tolist()
    f, s = models.index(fast), models.index(slow)
    return arrays["confidence"][f], arrays["prediction"][f], arrays["prediction"][s]


def _api(table: str, fast: str, slow: str, folder: Path) -> Rows:
    arrays = _arrays(folder / "frugalml_apis.npz")
    return (
        arrays[f"{table}_{fast}_confidence"],
        arrays[f"{table}_{fast}_prediction"],
        arrays[f"{table}_{slow}_prediction"],
    )


def _mmlu(folder: Path) -> Rows:
    arrays = _arrays(folder / "llm_mmlu_test_qwen3_gpt4_mixtral.npz")
    return arrays["qwen3_32b_confidence"], arrays["qwen3_32b_prediction"], arrays["label"]


def _cifar(folder: Path) -> Rows:
    arrays = _arrays(folder / "cifar10_resnet_logits.npz")
    logits = arrays["resnet20"].astype(np.float64)
    odds = np.exp(logits - logits.max(axis=1, keepdims=True))
    confidence = odds.max(axis=1) / odds.sum(axis=1)
    return confidence, logits.argmax(axis=1), arrays["resnet56"].argmax(axis=1)


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


def measure(setting: Setting, folder: Path, *, delta: float, draws: int, peer: Any) -> Measured:
    """Answer `draws` batches both ways."""
    whole = setting.rows(folder)
    shares, wrong, seconds = np.zeros((2, draws)), np.zeros((2, draws), dtype=bool), np.zeros(2)
    oracle = np.zeros(draws)
    tolerated = tolerated_answers(setting.records, setting.xi)
    for draw in range(draws):
        rng = np.random.default_rng([draw, setting.records])
        rows = rng.permutation(len(whole[0]))[: setting.records]
        confidence, fast, slow = (column[rows] for column in whole)
        confidence = np.clip(confidence.astype(np.float64), 0.0, 1.0)
        oracle[draw] = _needed(confidence, fast, slow, tolerated)
        started = time.perf_counter()
        result = answer_batch(
            confidence, fast, slow.__getitem__, xi=setting.xi, delta=delta, rng=rng, chunk=10**6
        )
        seconds[0] += time.perf_counter() - started
        started = time.perf_counter()
        answers, asked = peer.answer(confidence, fast, slow, xi=setting.xi, delta=delta, seed=draw)
        seconds[1] += time.perf_counter() - started
        for place, (said, sent) in enumerate(
            [(result.predictions, result.asked), (answers, asked)]
        ):
            shares[place, draw] = sent.mean()
            wrong[place, draw] = (said != slow).sum() > tolerated
    ours, theirs = shares.mean(axis=1).tolist()
    violations = wrong.sum(axis=1).tolist()
    return Measured(
        setting.name,
        setting.records,
        setting.xi,
        delta,
        draws,
        float(oracle.mean()),
        ours,
        theirs,
        violations[0],
        violations[1],
        at_least(violations[0], draws, delta),
        seconds[0] / draws,
        seconds[1] / draws,
    )


def at_least(violations: int, draws: int, delta: float) -> float:
    """P(Bin(draws, delta) >= violations)."""
    return 1.0 if not violations else float(bdtrc(violations - 1, draws, delta))


def _needed(confidence: Any, fast: Any, slow: Any, tolerated: int) -> float:
    """The share that whoever knows all answers sends, keeping a beginning of the order."""
    differ = (fast != slow)[np.argsort(-confidence, kind="stable")]
    return 1.0 - float(np.searchsorted(np.cumsum(differ), tolerated, side="right")) / len(differ)


def table(measured: list[Measured]) -> str:
    """The measurements in Markdown."""
    head = "setting | N | xi | delta | needed | ours | BARGAIN | fewer | violations, ours (p)"
    lines = [f"| {head} | BARGAIN's |", "| --- " * 10 + "|"]
    lines += [
        f"| {one.name} | {one.records:,} | {one.xi:g} | {one.delta:g} | {one.oracle:.3f} | "
        f"{one.ours:.3f} | {one.theirs:.3f} | {one.fewer:.0%} | {one.our_violations} of "
        f"{one.draws} ({one.our_p:.2f}) | {one.their_violations} of {one.draws} |"
        for one in measured
    ]
    return "\n".join(lines)


def record(measured: list[Measured], draws: int) -> None:
    """Write what was measured to its file, and as a table into the page."""
    document = {
        "command": f"python -m benchmarks.batches --data FOLDER --draws {draws}",
        "versions": {
            "pacbound": __version__,
            "bargain": version("bargain"),
            "numpy": np.__version__,
        },
        "rows": [{**asdict(one), "fewer": one.fewer, "met": one.met} for one in measured],
    }
    _write(RESULTS, json.dumps(document, indent=2) + "\n")
    before, rest = PAGE.read_text(encoding="utf-8").split(BEGIN)
    _write(PAGE, f"{before}{BEGIN}\n\n{table(measured)}\n\n{END}{rest.split(END)[1]}")


def _write(path: Path, text: str) -> None:
    with atomic_file(path) as file:
        file.write(text.encode("utf-8"))


def _measured(settings: tuple[Setting, ...], folder: Path, draws: int) -> Iterator[Measured]:
    peer = adapter("bargain")
    if peer is None:
        sys.exit("BARGAIN is not installed: pip install bargain==0.1.3, in an environment apart.")
    for setting in settings:
        for delta in DELTAS:
            one = measure(setting, folder, delta=delta, draws=draws, peer=peer)
            print(table([one]).splitlines()[-1], f"{one.seconds:.2f} s", flush=True)
            yield one


def main(arguments: list[str]) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.batches")
    parser.add_argument("--data", type=Path, help="the folder with the outputs of other models")
    parser.add_argument("--draws", type=int, default=100, help="batches of each setting")
    parser.add_argument("--only", default="", help="settings whose name begins so; none recorded")
    options = parser.parse_args(arguments)
    settings = SHIPPED if options.data is None else (*SHIPPED, *OTHERS)
    chosen = tuple(one for one in settings if one.name.startswith(options.only))
    measured = list(_measured(chosen, options.data or Path(), options.draws))
    missed = [f"{one.name} ({one.delta:g})" for one in measured if one.met is False]
    print("Every bar is met." if not missed else f"Missed: {'; '.join(missed)}.")
    if options.data is not None and not options.only:
        record(measured, options.draws)


if __name__ == "__main__":
    main(sys.argv[1:])
