"""Applying a certificate adds the same values in every engine, and in files."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import narwhals as nw
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from pyarrow import parquet

from pacbound import calibrate, certify_abstention, certify_cascade, certify_recall
from pacbound.errors import InvalidValueError

RNG = np.random.default_rng(0)
N = 3000
SCORE = RNG.random(N)
RIGHT = RNG.random(N) < SCORE
PLACE = RNG.choice(["a", "b"], N)
LABEL = RNG.integers(0, 3, N)
FAST = np.where(RNG.random(N) < 0.8, LABEL, (LABEL + 1) % 3)
SLOW = np.where(RNG.random(N) < 0.95, LABEL, (LABEL + 1) % 3)
TWO = np.column_stack([FAST, SLOW])
OWN: dict[str, Any] = {"groups": PLACE, "group_thresholds": "own"}

CASES: dict[str, tuple[Any, dict[str, Any]]] = {
    "bins": (calibrate(SCORE, RIGHT, delta=0.05), {"confidence": "c"}),
    "quantiles": (
        calibrate(SCORE, RIGHT, delta=0.05, edges="equal-mass", n_bins=5),
        {"confidence": "c"},
    ),
    "ties": (
        calibrate(np.round(SCORE * 3) / 3, RIGHT, delta=0.05, edges="equal-mass", n_bins=9),
        {"confidence": "c"},
    ),
    "given": (
        calibrate(SCORE, RIGHT, delta=0.05, edges=[0.0, 0.1, 0.3, 1.0]),
        {"confidence": "c"},
    ),
    "groups": (
        calibrate(SCORE, RIGHT, groups=PLACE, delta=0.05),
        {"confidence": "c", "group": "g"},
    ),
    "numbered": (
        calibrate(SCORE, RIGHT, groups=LABEL, delta=0.05),
        {"confidence": "c", "group": "k"},
    ),
    "abstention": (certify_abstention(SCORE, RIGHT, xi=0.3, delta=0.05), {"confidence": "c"}),
    "refused": (certify_abstention(SCORE[:9], RIGHT[:9], xi=0.01, delta=0.05), {"confidence": "c"}),
    "abstention of groups": (
        certify_abstention(SCORE, RIGHT, groups=PLACE, xi=0.3, delta=0.05),
        {"confidence": "c", "group": "g"},
    ),
    "recall": (certify_recall(SCORE, RIGHT, target=0.9, delta=0.05), {"score": "c"}),
    "cascade": (
        certify_cascade(SCORE, TWO, LABEL, xi=0.05, delta=0.05),
        {"confidence": "c", "prediction": ["p", "q"]},
    ),
    "names": (
        certify_cascade(SCORE, TWO, LABEL, xi=0.05, delta=0.05),
        {"confidence": "c", "prediction": ["g", "h"]},
    ),
    "three models": (
        certify_cascade(
            np.column_stack([SCORE, SCORE]),
            np.column_stack([TWO, SLOW]),
            LABEL,
            xi=0.05,
            delta=0.05,
        ),
        {"confidence": ["c", "d"], "prediction": ["p", "q", "k"]},
    ),
    "cascade of groups": (
        certify_cascade(SCORE, TWO, LABEL, xi=0.08, delta=0.05, **OWN),
        {"confidence": "c", "group": "g"},
    ),
}


def rows() -> Any:
    """Scores on all edges that there are, beside them, and a little above 1."""
    quantiles, exits = CASES["quantiles"][0].bins.edges, CASES["three models"][0].thresholds
    steps = np.concatenate([np.arange(21) / 20, np.arange(4) / 3, quantiles, exits, SCORE[:40]])
    beside = [np.nextafter(steps[steps < 1], 1.0), np.nextafter(steps[steps > 0], 0.0)]
    edgy = np.concatenate([steps, *beside, [1.0 + 5e-7, 0.0, 1.0]])
    rng, n = np.random.default_rng(1), len(edgy)
    return pa.table({
        "id": np.arange(n), "c": edgy, "d": edgy[::-1].copy(), "g": rng.choice(["a", "b", "z"], n),
        "h": rng.choice(["a", "b"], n), "k": rng.integers(0, 5, n), "p": rng.integers(0, 3, n),
        "q": rng.integers(0, 3, n),
    })  # fmt: skip


def added(frame: Any) -> dict[str, Any]:
    """What was added, by row: rows of some engines have no order."""
    lazy = nw.from_native(frame).lazy()
    found = lazy.collect("polars" if lazy.implementation.is_polars() else "pyarrow").sort("id")
    columns = [name for name in found.columns if name.startswith("pac_")]
    # An empty value of pandas is NaN, and null once it is Arrow's.
    return {
        name: [np.nan if value is None else value for value in found[name].to_list()]
        for name in columns
    }


def in_file(case: str, folder: Path) -> dict[str, Any]:
    certificate, named = CASES[case]
    parquet.write_table(rows(), folder / "rows.parquet")
    target = folder / "out.parquet"
    certificate.apply_to_file(folder / "rows.parquet", target, **named)
    return added(parquet.read_table(target))


@pytest.mark.parametrize("case", CASES)
def test_every_engine_adds_what_files_get(
    case: str, frame: Callable[[Any], Any], tmp_path: Path
) -> None:
    certificate, named = CASES[case]
    given = frame(rows())
    found = certificate.apply(given, **named)
    assert type(found) is type(given)
    wanted = in_file(case, tmp_path)
    got = added(found)
    assert list(got) == list(wanted)
    for name in wanted:
        np.testing.assert_array_equal(got[name], wanted[name])


def test_the_interval_that_is_added_is_the_one_that_is_looked_up() -> None:
    certificate, named = CASES["quantiles"]
    table = rows()
    found = certificate.apply(table, **named)
    intervals = certificate.interval(table["c"].to_numpy())
    assert np.array_equal(found["pac_lower"], intervals[:, 0])
    assert np.array_equal(found["pac_upper"], intervals[:, 1])
    assert np.array_equal(found["pac_estimate"], certificate.estimate(table["c"].to_numpy()))


def test_percentages_are_divided_once(frame: Callable[[Any], Any]) -> None:
    certificate = CASES["bins"][0]
    percent = pa.table({"id": np.arange(101), "c": np.arange(101)})
    found = added(certificate.apply(frame(percent), confidence="c", scale=100))
    lower = certificate.interval(np.arange(101) / 100)[:, 0]
    assert found["pac_lower"] == lower.tolist()


@pytest.mark.parametrize("bad", [np.nan, -0.1, 1.5, None])
def test_what_is_not_a_score_is_refused_in_every_engine(
    frame: Callable[[Any], Any], bad: float | None
) -> None:
    certificate = CASES["recall"][0]
    table = pa.table({"id": [0, 1], "c": pa.array([0.5, bad], pa.float64())})
    with pytest.raises(InvalidValueError, match=r"c(\[1\])? (is|holds|has)"):
        certificate.apply(frame(table), score="c")


def test_rows_of_pandas_keep_their_index_whatever_it_is() -> None:
    table = pd.DataFrame({"c": [0.9, 0.1, 0.5]}, index=[7, 7, 3])
    certificate = CASES["recall"][0]
    found = certificate.apply(table, score="c")
    assert found.index.tolist() == [7, 7, 3]
    assert found["pac_flag"].tolist() == certificate.flags(table["c"]).astype(int).tolist()


def test_a_lazy_frame_stays_lazy_and_has_null_for_a_score_that_is_lost_later(
    tmp_path: Path,
) -> None:
    path = tmp_path / "rows.parquet"
    pl.DataFrame({"c": [0.9, 0.1]}).write_parquet(path)
    found = CASES["abstention"][0].apply(pl.scan_parquet(path), confidence="c")
    assert isinstance(found, pl.LazyFrame)
    pl.DataFrame({"c": [0.9, float("nan")]}).write_parquet(path)
    assert found.collect()["pac_answer"].to_list() == [1, None]


@pytest.mark.parametrize("backend", ["pandas", "polars", "pyarrow"])
def test_bins_become_a_frame_of_any_backend(backend: Any) -> None:
    bins = calibrate([0.9, 0.8, 0.2], [True, False, False], delta=0.05, n_bins=4).bins
    found = nw.from_native(bins.to_frame(backend), eager_only=True)
    assert found.implementation.value == backend
    assert found.columns == [
        "begin", "end", "trials", "successes", "estimate", "lower", "upper",
    ]  # fmt: skip
    for name in found.columns:
        np.testing.assert_array_equal(found[name].to_numpy(), getattr(bins, name))
    with pytest.raises(InvalidValueError, match="backend='dask' is not known"):
        bins.to_frame("dask")  # type: ignore[arg-type]
