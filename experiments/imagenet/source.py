"""The options that the exhibits on ImageNet share, and what they read."""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from experiments.imagenet.generated import zoo
from experiments.imagenet.outputs import Outputs, TopFive, digest, outputs, top_five
from experiments.record import RESULTS, RUNS
from pacbound.version import VERSION

QUICK_IMAGES = 8_000


@dataclass(frozen=True, eq=False)
class Source:
    """What the networks say, how often to draw, and where the results go.

    `n` is the paper's number of calibration images. A quick run has a smaller generated zoo, so
    every number of images is divided by `smaller`.
    """

    outputs: Outputs
    top_five: TopFive
    out: Path
    command: str
    quick: bool
    redraw: bool = False
    most_times: int | None = None

    @property
    def smaller(self) -> int:
        return 8 if self.quick else 1

    def rows(self, images: int) -> int:
        """A number of images of the full run, as many as this run has of them."""
        return images // self.smaller

    def times(self, full: int) -> int:
        """How often to repeat what a full run repeats so often."""
        return min(full, 5 if self.quick else self.most_times or full)

    def some(self, values: tuple[Any, ...]) -> tuple[Any, ...]:
        """The values of a setting: all, or the second and third of them."""
        return values[1:3] if self.quick else values

    def kept(self, name: str) -> Path:
        """Where parts of an exhibit are kept until all are done: a folder for each set of data."""
        data = digest(self.outputs.sha256.encode(), self.top_five.sha256.encode(), VERSION.encode())
        return (self.out if self.quick else RUNS) / name / data[:12]

    @property
    def inputs(self) -> dict[str, str]:
        return {"outputs": self.outputs.sha256, "top_five": self.top_five.sha256}


def read(module: str, described: str | None, arguments: list[str] | None = None) -> Source:
    """The source that the command line names."""
    parser = argparse.ArgumentParser(
        prog=f"python -m {module}",
        description=described,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "--outputs", type=Path, help="the compact .npz file of all networks, or a clone"
    )
    parser.add_argument(
        "--top-five", type=Path, help="the compact .npz file of top fives; a clone has both"
    )
    parser.add_argument("--quick", action="store_true", help="a small generated zoo, few splits")
    parser.add_argument("--most", type=int, help="splits or draws, if fewer than all are wanted")
    parser.add_argument(
        "--redraw", action="store_true", help="tables and figures again, from the JSON in OUT"
    )
    parser.add_argument("--out", type=Path, default=RESULTS, help="the folder to write to")
    options = parser.parse_args(arguments)
    if options.quick:
        drawn, command = zoo(QUICK_IMAGES), f"python -m {module} --quick"
        return Source(
            drawn.outputs, drawn.top_five, options.out, command, quick=True, redraw=options.redraw
        )
    if options.outputs is None:
        parser.error("pass --outputs PATH, the outputs of the networks, or --quick")
    listed = options.top_five or options.outputs
    if not listed.is_dir() and options.top_five is None:
        parser.error("pass --top-five PATH too: the compact file of all networks has no top fives")
    command = f"python -m {module} --outputs {options.outputs.name}"
    if options.top_five is not None:
        command += f" --top-five {options.top_five.name}"
    if options.most is not None:
        command += f" --most {options.most}"
    return Source(
        outputs(options.outputs),
        top_five(listed),
        options.out,
        command,
        quick=False,
        redraw=options.redraw,
        most_times=options.most,
    )
