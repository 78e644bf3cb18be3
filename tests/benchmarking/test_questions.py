"""Every benchmark runs, with whatever peers are installed; the figures are not looked at, for they
are those of a few rows."""

from __future__ import annotations

import warnings

import pytest
from benchmarks.__main__ import QUESTIONS
from benchmarks.row import Row
from benchmarks.sizes import SMALL
from tests.products import standing_for

# Networks, and engines that need Java, are timed by `make bench` and tested elsewhere.
QUICK = sorted(QUESTIONS.keys() - {"cascade", "early_exit", "parquet"})
SLOW = {"csv_files", "imports", "install_size", "memory", "probabilities"}


def _rows(name: str) -> list[Row]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # peers warn of what they will change
        return list(QUESTIONS[name](SMALL))


@pytest.mark.slow
@pytest.mark.parametrize("name", standing_for(QUICK, sorted({*QUICK} - SLOW), rest="long"))
def test_a_benchmark_measures_something(name: str) -> None:
    for row in _rows(name):
        assert len(row.cells()) == 6
        assert row.ours >= 0


def test_our_interval_misses_with_a_chance_of_at_most_delta_and_wilson_s_with_more() -> None:
    last = _rows("tightness")[-1]
    assert last.met is True
    assert last.theirs is not None
    assert last.theirs > 0.01
