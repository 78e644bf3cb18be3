"""How much is measured: all of it, or so little that a test can run it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Sizes:
    """Rows of every kind of table, and how often times are taken."""

    rows: int
    """Of a table with few classes, of a column of confidences, of a table whose thresholds are
    controlled."""
    wide: tuple[int, int]
    """Rows and classes of a table with many classes."""
    csv: tuple[int, int]
    growth: tuple[int, ...]
    """Rows of the Parquet files, each ten times the last."""
    engines: int
    """Rows of the Parquet file that each engine reads."""
    processes: int
    """Processes that measure what an import costs."""
    rounds: int
    """At most so many repetitions of anything else."""


FULL = Sizes(
    rows=1_000_000,
    wide=(50_000, 1_000),
    csv=(1_000_000, 10_000_000),
    growth=(100_000, 1_000_000, 10_000_000, 100_000_000),
    engines=10_000_000,
    processes=21,
    rounds=1_000,
)
SMALL = Sizes(
    rows=2_000,
    wide=(500, 40),
    csv=(2_000, 20_000),
    growth=(2_000, 20_000, 200_000),
    engines=20_000,
    processes=1,
    rounds=1,
)
