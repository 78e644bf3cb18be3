"""What `import pacbound` costs beyond the packages it is built on, and against its peers.

User and system time, in fresh processes, with warm bytecode.
"""

from __future__ import annotations

from collections.abc import Iterator
from statistics import median

from benchmarks.peers import PACKAGES, adapter, named
from benchmarks.processes import printed_by
from benchmarks.row import Bar, Row
from benchmarks.sizes import Sizes

_CODE = "import time; before = time.process_time(); import {}; print(time.process_time() - before)"
_OURS = "pacbound.stats.binomial"
"""A public name loads its module when it is first used, and `import pacbound` alone loads nothing:
what is timed is the import with its bounds, which all certifying needs."""
_MODULES = {
    "mapie": "mapie.risk_control",
    "scikit_learn": "sklearn.calibration",
    "uncertainty_calibration": "calibration",
}


def rows(sizes: Sizes) -> Iterator[Row]:
    ours, theirs = _race("numpy, scipy.special", sizes.processes)
    work = f"import pacbound, processor time, median of {sizes.processes} processes"
    yield Row(
        work, ours, "s", "import numpy, scipy.special", theirs, Bar(1.25, "ratio", "at most 1.25")
    )
    few = min(5, sizes.processes)
    for name in PACKAGES:
        if adapter(name) is not None:
            module = _MODULES.get(name, name)
            ours, theirs = _race(module, few)
            work = f"import pacbound, processor time, median of {few} processes"
            yield Row(
                work,
                ours,
                "s",
                f"import {module} ({named(name)})",
                theirs,
                label=f"import: {name}",
            )


def _race(modules: str, runs: int) -> tuple[float, float]:
    ours, theirs = [], []
    for _ in range(runs + 1):
        ours.append(float(printed_by(_CODE.format(_OURS)).split()[-1]))
        theirs.append(float(printed_by(_CODE.format(modules)).split()[-1]))
    # The first of each writes the bytecode.
    return median(ours[1:]), median(theirs[1:])
