"""A log with a row for each step is not taken for rollouts."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from pacbound import certify_false_alarms, certify_rate, certify_shield
from pacbound.errors import InvalidValueError

ASKED: dict[str, Any] = {"xi": 0.1, "delta": 0.05}
NAMED: dict[str, Any] = {"score": "danger", "unsafe": "collision"}


def by(column: str) -> list[dict[str, Any]]:
    """Every row, or one of each cluster."""
    return [{}, {"clusters": column, "seed": 53}]


def steps(runs: int = 400, crashing: float = 0.72) -> pd.DataFrame:
    """What a simulator writes: a run ends where it collides."""
    rng = np.random.default_rng(0)
    sizes = rng.integers(8, 16, size=runs)
    run = np.repeat(np.arange(runs), sizes)
    is_last = np.diff(run, append=runs) > 0
    collision = is_last & (rng.random(runs) < crashing)[run]
    return pd.DataFrame({"run": run, "danger": rng.random(len(run)), "collision": collision})


@pytest.mark.parametrize("hold", [pd.DataFrame, pl.DataFrame, pl.LazyFrame, pa.Table.from_pandas])
def test_a_row_for_each_step_is_refused(hold: Callable[[pd.DataFrame], Any]) -> None:
    with pytest.raises(InvalidValueError, match=r"run looks like.*28\d of its values.*one row for"):
        certify_shield(**NAMED, data=hold(steps()), **ASKED)


def test_a_row_for_each_step_is_refused_whatever_reads_it(tmp_path: Path) -> None:
    table = steps()
    with pytest.raises(InvalidValueError, match="run looks like"):
        certify_shield(**NAMED, data=duckdb.from_df(table), **ASKED)
    table.to_csv(tmp_path / "steps.csv", index=False)
    table.to_parquet(tmp_path / "steps.parquet")
    for path in tmp_path.iterdir():
        for options in by("run"):
            with pytest.raises(InvalidValueError, match="run looks like"):
                certify_shield(**NAMED, data=path, **ASKED, **options)
    with pytest.raises(InvalidValueError, match="run looks like"):
        certify_shield(**NAMED, data=tmp_path / "steps.parquet", engine="polars", **ASKED)
    with pytest.raises(InvalidValueError, match="run looks like"):
        certify_false_alarms("danger", unsafe="collision", data=table, **ASKED)


def test_steps_under_a_shield_are_no_rollouts_either(tmp_path: Path) -> None:
    table = steps().assign(safe=lambda rows: ~rows.collision)
    table.to_csv(tmp_path / "steps.csv", index=False)
    asked: dict[str, Any] = {"target": 0.9, "delta": 0.05}
    for data in (table, tmp_path / "steps.csv"):
        with pytest.raises(InvalidValueError, match="run looks like"):
            certify_rate("safe", data=data, threshold=0.5, **asked)
        # Without a shield a row may be anything.
        assert certify_rate("safe", data=data, **asked).n == len(table)
    with pytest.raises(InvalidValueError, match="clusters looks like"):
        certify_rate(table.safe, clusters=table.run, threshold=0.5, **asked)


def test_clusters_of_arrays_and_files_of_a_run_each_are_looked_at(tmp_path: Path) -> None:
    table = steps()
    arrays = table.danger.to_numpy(), table.collision.to_numpy()
    with pytest.raises(InvalidValueError, match="clusters looks like"):
        certify_shield(*arrays, clusters=table.run.to_numpy(), seed=53, **ASKED)
    # Nothing else is known of arrays.
    assert certify_shield(*arrays, **ASKED).n == len(table)
    for run, part in table[table.run < 12].groupby("run"):
        part[["danger", "collision"]].to_csv(tmp_path / f"{run}.csv", index=False)
    with pytest.raises(InvalidValueError, match="the name of a file looks like"):
        certify_shield(**NAMED, data=tmp_path, **ASKED)


def test_four_runs_or_a_likely_order_prove_nothing() -> None:
    four = steps(runs=4, crashing=1.0)
    assert certify_shield(**NAMED, data=four, **ASKED).n == len(four)
    # 2 ** -19 is above 1e-6, and 2 ** -20 below it.
    for runs in (19, 20):
        table = pd.DataFrame({"run": np.arange(2 * runs) // 2, "danger": 0.5})
        table["collision"] = np.arange(2 * runs) % 2 == 1
        if runs == 19:
            assert certify_shield(**NAMED, data=table, **ASKED).n == 38
        else:
            with pytest.raises(InvalidValueError, match="20 of its values"):
                certify_shield(**NAMED, data=table, **ASKED)
