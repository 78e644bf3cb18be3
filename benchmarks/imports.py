"""What `import pacbound` costs beyond the packages it is built on: user and system time, in fresh processes, warm bytecode."""

from __future__ import annotations

from collections.abc import Iterator
from statistics import median

from benchmarks.processes import printed_by
from benchmarks.row import Bar, Row

_RUNS = 21
_CODE = "import time; before = time.process_time(); import {}; print(time.process_time() - before)"


def rows() -> Iterator[Row]:
    ours, theirs = [], []
    for _ in range(_RUNS + 1):
        ours.append(float(printed_by(_CODE.format("pacbound"))))
        theirs.append(float(printed_by(_CODE.format("numpy, scipy.special"))))
    # The first of each writes the bytecode.
    yield Row(
        f"import pacbound, processor time, median of {_RUNS} processes",
        median(ours[1:]),
        "s",
        "import numpy, scipy.special",
        median(theirs[1:]),
        Bar(1.25, "ratio", "at most 1.25"),
    )
