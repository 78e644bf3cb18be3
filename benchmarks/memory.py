"""How much memory many rows take: a batch from arrays and from a file, and the choice of a cascade.

The inputs are in the process, too: for a batch the answers of the slow model among them.
"""

from __future__ import annotations

from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks.processes import cost_of
from benchmarks.row import Bar, Row
from benchmarks.sizes import Sizes

_BATCH = """
import numpy as np
from pacbound import answer_batch
rng, n = np.random.default_rng(0), {rows}
score, fast = rng.random(n), rng.integers(0, 10, n)
slow = (fast + (rng.random(n) > score**0.2)) % 10
answer_batch(
    score, fast, lambda rows: slow[rows], xi=0.02, delta=0.05, answers=None, key="5f" * 16,
    chunk=100_000,
)
"""

_FILE = """
import numpy as np, pyarrow as pa, pyarrow.parquet as pq
rng, n = np.random.default_rng(0), {rows}
score, fast = rng.random(n), rng.integers(0, 10, n)
slow = (fast + (rng.random(n) > score**0.2)) % 10
pq.write_table(pa.table({{"score": score, "fast": fast, "slow": slow}}), "{folder}/rows.parquet")
"""

_FILL = """
import pyarrow.parquet as pq
asked = pq.read_table("{asked}")
at = asked.column_names.index("expert_answer")
pq.write_table(asked.set_column(at, "expert_answer", asked["slow"]), "{asked}")
"""

_COMMAND = """
import sys
from pacbound.cli import main
sys.argv = ["pacbound", "batch", "{folder}/rows.parquet", *{words!r}]
main()
"""

_DESIGN = """
import numpy as np
from pacbound import design_cascade
rng, n = np.random.default_rng(0), {rows}
label, confidence = rng.integers(0, 10, n), rng.random((n, 2))
prediction = np.empty((n, 2), dtype=np.int64)
for m, power in enumerate((0.2, 0.02)):
    prediction[:, m] = (label + (rng.random(n) > confidence[:, m]**power)) % 10
design_cascade(confidence, prediction, label, costs=[1, 5], xi=0.02, delta=0.01)
"""


def rows(sizes: Sizes) -> Iterator[Row]:
    n = sizes.engines
    small, large = (
        Bar(600e6, "ours", "under 600 MB"),
        Bar(1e9, "ours", "under 1 GB"),
    )
    yield Row(
        f"answer a batch of {n:,} rows, arrays: peak memory of the process",
        cost_of(_BATCH.format(rows=n)).peak,
        "bytes",
        bar=small,
    )
    if find_spec("pyarrow") and find_spec("typer"):
        with TemporaryDirectory() as folder:
            yield Row(
                f"pacbound batch, {n:,} rows of Parquet, the largest of three steps: peak memory",
                max(_steps(n, Path(folder))),
                "bytes",
                bar=small,
            )
    yield Row(
        f"design a cascade of two models, {n:,} rows, arrays: peak memory of the process",
        cost_of(_DESIGN.format(rows=n)).peak,
        "bytes",
        bar=large,
    )


def _steps(n: int, folder: Path) -> Iterator[int]:
    """The peak of each call of the command: what to ask, what else to ask, all answers."""
    cost_of(_FILE.format(rows=n, folder=folder))
    begin = ["--confidence", "score", "--prediction", "fast", "--xi", "0.02", "--delta", "0.05"]
    words = [*begin, "--key", "5f" * 16]
    for step in (1, 2, 3):
        asked = f"{folder}/ask{step}.parquet"
        words = [*words, "--ask", asked, "-o", f"{folder}/all.parquet"]
        yield cost_of(_COMMAND.format(folder=folder, words=words)).peak
        if Path(asked).exists():
            cost_of(_FILL.format(asked=asked))
        words = ["--take", asked]
