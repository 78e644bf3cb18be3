"""How much of the ideal speed-up an early-exit network really gives: `python -m
benchmarks.early_exit`, on a quiet machine.

A ResNet-56 with one exit after 9 of its 27 blocks and random weights, which take as long as trained
ones, on random images; the threshold is the quantile of their confidences that gives the exit rate.
The ideal time is t_exit + (1 - exit rate) (t_full - t_exit), from stages that are timed on their
own. The decision is `infer` with stages and heads that give back what they gave before: softmax,
comparison, packing and restoring the order. All are timed in turn, and the best time of each batch
counts. One thread is used, so that whatever keeps the other cores busy disturbs little.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import product

import numpy as np
import torch
from torch import Tensor, nn

from benchmarks.row import HEADINGS, Bar, Row
from benchmarks.sizes import FULL, Sizes
from benchmarks.timing import timed
from pacbound.cascade.early_exit import EarlyExitNetwork, early_exit_resnet, resnet_cifar

EXIT_RATES = (0.5, 0.8)
LARGE_BATCH, SINGLE_IMAGES = 256, 20
ROUNDS, ROUNDS_OF_SINGLES = 15, 60

_IDEAL = Bar(1 / 0.9, "ratio", "90 % of the ideal: at most 1.11")
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
    network = early_exit_resnet(slow, after=(9,))
    images = torch.randn(LARGE_BATCH, 3, 32, 32).contiguous(memory_format=torch.channels_last)
    for batches in ([images], list(torch.split(images[:SINGLE_IMAGES], 1))):
        for rate in EXIT_RATES:
            yield from _case(network, batches, rate, sizes.rounds)


@dataclass(frozen=True)
class Times:
    """Seconds for all batches of a case, each the best of all rounds."""

    slow: float
    early: float
    to_exit: float
    after_exit: float
    decision: float


def _case(
    network: EarlyExitNetwork, batches: Sequence[Tensor], rate: float, most: int
) -> Iterator[Row]:
    confidences = network.exit_table(batches).confidence[:, 0]
    threshold = float(np.quantile(confidences, 1 - rate, method="higher"))
    exits = torch.cat([network.infer(batch, [threshold]).exits for batch in batches])
    exited = float((exits == 0).double().mean())
    best, each = measure(network, batches, threshold, most), len(batches)
    ideal = best.to_exit + (1 - exited) * best.after_exit
    work = f"ResNet-56, exit after 9 of 27 blocks, {exited:.0%} exit, batch {len(batches[0])}"
    yield Row(work, best.early / each, "s", "the slow network", best.slow / each)
    yield Row("the same", best.early / each, "s", "ideal", ideal / each, _IDEAL)
    yield Row(
        "the same: the decision alone",
        best.decision / each,
        "s",
        "the slow network",
        best.slow / each,
        _DECISION,
    )


def measure(
    network: EarlyExitNetwork, batches: Sequence[Tensor], threshold: float, most: int
) -> Times:
    """Time each way through the network, and its parts, in turn, at most `most` times."""
    (first, rest), (head, last) = network.stages, network.heads
    recorded = [recording(network, batch, threshold) for batch in batches]
    with torch.inference_mode():
        features = [first(batch) for batch in batches]
        jobs: dict[str, Callable[[int], object]] = {
            "slow": lambda i: last(rest(first(batches[i]))),
            "early": lambda i: network.infer(batches[i], [threshold]),
            "to_exit": lambda i: head(first(batches[i])),
            "after_exit": lambda i: last(rest(features[i])),
            "decision": lambda i: recorded[i].infer(batches[i], [threshold]),
        }
        best = {name: np.full(len(batches), np.inf) for name in jobs}
        rounds = min(most, ROUNDS if len(batches) == 1 else ROUNDS_OF_SINGLES)
        for _, i, name in product(range(rounds), range(len(batches)), jobs):
            best[name][i] = min(best[name][i], timed(partial(jobs[name], i)))
    return Times(**{name: float(times.sum()) for name, times in best.items()})


class Replay(nn.Module):
    """Gives back what was recorded, at no cost."""

    def __init__(self, result: Tensor) -> None:
        super().__init__()
        self.result = result

    def forward(self, _: Tensor) -> Tensor:
        return self.result


def recording(network: EarlyExitNetwork, batch: Tensor, threshold: float) -> EarlyExitNetwork:
    """A network that decides as `network` does on `batch`, from recorded features and logits."""
    with torch.inference_mode():
        features = network.features(batch, 0)
        early, late = network(batch)
        late = late[network.infer(batch, [threshold]).exits == 1]
    return EarlyExitNetwork(
        [Replay(features), Replay(features)], [Replay(early), Replay(late)]
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
