"""What a Python process of its own costs: wall-clock time and peak memory.

A process inherits the high-water mark of the memory of whoever started it, so it is started by this
small module, run by itself, and not by the benchmark with all its arrays: `python -m
benchmarks.processes CODE`.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
_UNIT = 1 if sys.platform == "darwin" else 1024
_RISE = """
import resource, sys
import numpy as np
from benchmarks import inputs
{load}
unit = 1 if sys.platform == "darwin" else 1024
arrays = [np.load(path) for path in {arrays!r}]
{work}(*inputs.{warm_up})
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
{work}(*arrays)
print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * unit)
"""


@dataclass(frozen=True)
class Cost:
    """The standard output of a process, its wall-clock seconds and its peak resident memory in
    bytes."""

    printed: str
    seconds: float
    peak: int


def cost_of(code: str) -> Cost:
    """The cost of `python -c code`, start of the interpreter included."""
    done = _run("-m", "benchmarks.processes", code)
    return Cost(**json.loads(done))


def printed_by(code: str) -> str:
    """What `python -c code` prints."""
    return _run("-c", code)


def rise_of_peak(load: str, work: str, arrays: Sequence[str], *, warm_up: str) -> float:
    """By how many bytes the peak resident memory rises when `load` has defined `work` and it is
    called on `arrays` (.npy files).

    A first call on a few made-up rows, such as `warm_up="dangers(2_000)"`, loads what is loaded
    late.
    """
    return float(
        cost_of(
            _RISE.format(load=load, work=work, arrays=list(arrays), warm_up=warm_up)
        ).printed.split()[-1]
    )


def _run(*arguments: str) -> str:
    paths = os.pathsep.join(filter(None, [str(ROOT / "src"), os.environ.get("PYTHONPATH", "")]))
    environment = {**os.environ, "PYTHONPATH": paths}
    done = subprocess.run(
        [sys.executable, *arguments],
        cwd=ROOT,
        env=environment,
        check=False,
        capture_output=True,
        text=True,
    )
    if done.returncode != 0:
        raise RuntimeError(f"A benchmark failed with exit code {done.returncode}:\n{done.stderr}")
    return done.stdout


def _launch(code: str) -> None:
    started = time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-c", code], check=True, stdout=subprocess.PIPE, text=True
    )
    seconds = time.perf_counter() - started
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * _UNIT
    print(json.dumps({"printed": done.stdout, "seconds": seconds, "peak": peak}))


if __name__ == "__main__":
    _launch(sys.argv[1])
