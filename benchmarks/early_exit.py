"""How near early exits come to the ideal: `python -m benchmarks.early_exit`.

A ResNet-56 with exits and random weights, which take as long as trained ones, on random images; the
thresholds are the quantiles of their confidences that give the exit rates. The ideal runs, without
any check or decision, the stages and heads that `infer` needs for the same rows, on features that
were packed beforehand. The decision is `infer` with stages and heads that give back what they gave
before: softmax, comparison, packing and restoring the order. All are timed in turn, forwards in one
round and backwards in the next, in one thread, by the processor time of the process; a figure is
the median of all rounds, for each image of a batch of one by itself, and for `infer` the median of
its ratio to the ideal, times the ideal's.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import product

import numpy as np
import torch
from experiments.early_exit.resnets import resnet_cifar
from torch import Tensor, nn

from benchmarks.row import HEADINGS, Bar, Row
from benchmarks.sizes import FULL, Sizes
from pacbound.cascade.early_exit import EarlyExitNetwork, early_exit_resnet

# After which blocks the exits are, and which share of all images leaves at each.
CASES: tuple[tuple[tuple[int, ...], tuple[float, ...]], ...] = (
    ((9,), (0.5,)),
    ((9,), (0.8,)),
    ((7, 14, 20), (0.3, 0.25, 0.2)),
)
LARGE_BATCH, SINGLE_IMAGES = 256, 20
ROUNDS, ROUNDS_OF_SINGLES = 11, 31

_IDEAL = Bar(1.05, "ratio", "within 5 %: at most 1.05")
_DECISION = Bar(0.03, "ratio", "at most 0.03")


def rows(sizes: Sizes) -> Iterator[Row]:
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield from _cases(sizes)
    finally:
        torch.set_num_threads(threads)


def _cases(sizes: Sizes) -> Iterator[Row]:
    torch.manual_seed(0)
    # channels_last is faster on a CPU, for the slow network too.
    slow = resnet_cifar(56).to(memory_format=torch.channels_last).eval()  # type: ignore[call-overload]
    images = torch.randn(LARGE_BATCH, 3, 32, 32).contiguous(memory_format=torch.channels_last)
    for batches in ([images], list(torch.split(images[:SINGLE_IMAGES], 1))):
        for after, rates in CASES:
            network = unsaturated(early_exit_resnet(slow, after=after), images[:64])
            yield from _case(network, slow, batches, _words(after, len(batches[0])), rates, sizes)


def _words(after: Sequence[int], batch: int) -> str:
    return f"ResNet-56, exits after {', '.join(map(str, after))} of 27 blocks, batch {batch}"


def _case(
    network: EarlyExitNetwork,
    slow: nn.Module,
    batches: Sequence[Tensor],
    words: str,
    rates: Sequence[float],
    sizes: Sizes,
) -> Iterator[Row]:
    thresholds = thresholds_for(network.exit_table(batches).confidence, rates)
    exits = torch.cat([network.infer(batch, thresholds).exits for batch in batches])
    shares = " + ".join(
        f"{float((exits == place).double().mean()):.0%}" for place in range(len(rates))
    )
    took, each = measure(network, slow, batches, thresholds, sizes.rounds), len(batches)
    work = f"{words}, {shares} exit early, processor time"
    label = f"exits {shares}, batch {len(batches[0])}"
    yield Row(
        work,
        took.early / each,
        "s",
        "the slow network",
        took.slow / each,
        label=f"{label}: the slow network",
    )
    yield Row(
        "the same",
        took.early / each,
        "s",
        "ideal",
        took.ideal / each,
        _IDEAL,
        label=f"{label}: ideal",
    )
    yield Row(
        "the same: the decision alone",
        took.decision / each,
        "s",
        "the slow network",
        took.slow / each,
        _DECISION,
        label=f"{label}, decision: the slow network",
    )


def unsaturated(network: EarlyExitNetwork, images: Tensor) -> EarlyExitNetwork:
    """The network with logits of a usual size: those of random weights give equal confidences."""
    with torch.inference_mode():
        sizes = [logits.std() for logits in network(images)[:-1]]
    with torch.no_grad():
        for head, size in zip(network.heads[:-1], sizes, strict=True):
            for parameter in head.parameters():
                parameter.div_(size)
    return network


def thresholds_for(confidences: np.ndarray, rates: Sequence[float]) -> list[float]:
    """The thresholds at which the shares `rates` of all rows leave, at one exit after the other."""
    left, found = np.arange(len(confidences)), []
    for place, rate in enumerate(rates):
        leaving = min(max(round(rate * len(confidences)), 1), len(left))
        found.append(float(np.sort(confidences[left, place])[-leaving]))
        left = left[confidences[left, place] < found[-1]]
    return found


@dataclass(frozen=True)
class Times:
    """Seconds of processor time for all batches of a case, each the median of all rounds."""

    slow: float
    early: float
    ideal: float
    decision: float


def measure(
    network: EarlyExitNetwork,
    slow: nn.Module,
    batches: Sequence[Tensor],
    thresholds: Sequence[float],
    most: int,
) -> Times:
    """Time each way through the network in turn, at most `most` times."""
    needed = [parts_needed(network, batch, thresholds) for batch in batches]
    recorded = [recording(parts, len(network.stages)) for parts in needed]
    jobs: dict[str, Callable[[int], object]] = {
        "slow": lambda i: alone(slow, batches[i]),
        "early": lambda i: network.infer(batches[i], thresholds),
        "ideal": lambda i: by_hand(needed[i]),
        "decision": lambda i: recorded[i].infer(batches[i], thresholds),
    }
    rounds = min(most, ROUNDS if len(batches) == 1 else ROUNDS_OF_SINGLES)
    took = {name: np.zeros((rounds, len(batches))) for name in jobs}
    for n, i in product(range(rounds), range(len(batches))):
        # In both orders: what runs second finds weights and code of the first in the caches.
        for name in list(jobs)[:: -1 if n % 2 else 1]:
            took[name][n, i] = processor_time(partial(jobs[name], i))
    times = {name: np.median(each, axis=0) for name, each in took.items()}
    # By pairs that were timed one right after the other: whatever else the machine does hits both.
    times["early"] = times["ideal"] * np.median(took["early"] / took["ideal"], axis=0)
    return Times(**{name: float(each.sum()) for name, each in times.items()})


@torch.inference_mode()
def alone(slow: nn.Module, batch: Tensor) -> Tensor:
    """The logits of the slow network."""
    logits: Tensor = slow(batch)
    return logits


@torch.inference_mode()
def by_hand(needed: Sequence[Part]) -> list[Tensor]:
    """The logits of the stages and heads that are needed, and nothing else."""
    return [part.head(part.stage(part.inputs)) for part in needed]


def processor_time(work: Callable[[], object]) -> float:
    """The seconds of processor time that one call takes."""
    started = time.process_time()
    work()
    return time.process_time() - started


@dataclass(frozen=True)
class Part:
    """A stage that some rows of a batch need, with its head, what it gets for these rows, and what
    both give."""

    stage: nn.Module
    head: nn.Module
    inputs: Tensor
    features: Tensor
    logits: Tensor


def parts_needed(
    network: EarlyExitNetwork, batch: Tensor, thresholds: Sequence[float]
) -> list[Part]:
    """What `infer` needs for the rows of `batch`, the rows that are left packed before each
    stage."""
    exits, parts = network.infer(batch, thresholds).exits, []
    with torch.inference_mode():
        x = batch
        for place, (stage, head) in enumerate(zip(network.stages, network.heads, strict=True)):
            if not len(x):
                break
            features = stage(x)
            parts.append(Part(stage, head, x, features, head(features)))
            left = exits[exits >= place] > place
            x = features[left].contiguous(memory_format=torch.channels_last)
    return parts


class Replay(nn.Module):
    """Gives back what was recorded, at no cost."""

    def __init__(self, result: Tensor) -> None:
        super().__init__()
        self.result = result

    def forward(self, _: Tensor) -> Tensor:
        return self.result


def recording(parts: Sequence[Part], stages: int) -> EarlyExitNetwork:
    """A network that decides as the one of `parts` did, from recorded features and logits."""
    never_reached = [parts[-1]] * (stages - len(parts))
    every = [*parts, *never_reached]
    return EarlyExitNetwork(
        [Replay(part.features) for part in every], [Replay(part.logits) for part in every]
    ).eval()


def main() -> None:
    for cells in (HEADINGS, *(row.cells() for row in rows(FULL))):
        print(
            "  ".join(
                cell.ljust(width) for cell, width in zip(cells, (64, 9, 26, 6, 32, 3), strict=True)
            ).rstrip(),
            flush=True,
        )


if __name__ == "__main__":
    main()
