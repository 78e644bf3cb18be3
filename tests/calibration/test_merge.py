"""Merging calibrators is exact: as if one had seen all rows, or refused."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest

from pacbound import PACCalibrator
from pacbound.errors import (
    InvalidValueError,
    RepeatedSourceError,
)

SCOPES = ["top", "per-class", "all-labels"]


def _rows(count: int = 900, *, classes: int = 3, seed: int = 0) -> tuple[Any, Any]:
    """Some confidences lie on edges of bins, and some are 1."""
    rng = np.random.default_rng(seed)
    table = rng.dirichlet(np.linspace(1.0, 0.4, classes), size=count)
    table[: count // 9] = np.eye(classes)[rng.integers(0, classes, count // 9)]
    table[count // 9 : count // 4] = [0.75, 0.25, *[0.0] * (classes - 2)]
    return table, (rng.random((count, 1)) > table.cumsum(axis=1)).sum(axis=1).clip(0, classes - 1)


@pytest.mark.parametrize("scope", SCOPES)
@pytest.mark.parametrize("edges", [None, [0.0, 0.4, 0.75, 1.0]])
def test_merged_parts_make_the_claim_of_all_rows_in_any_order(scope: Any, edges: Any) -> None:
    table, labels = _rows()
    whole = PACCalibrator(10, scope=scope, edges=edges).fit(table, labels)
    # The last part holds one row; the first lacks a class.
    without = np.flatnonzero(labels[:400] != 2)
    parts = [without, np.setdiff1d(np.arange(899), without), np.array([899])]
    for order in ([0, 1, 2], [2, 0, 1], [1, 2, 0]):
        merged = PACCalibrator(10, scope=scope, edges=edges)
        for part in order:
            rows = parts[part]
            one = PACCalibrator(10, scope=scope, edges=edges).fit(table[rows], labels[rows])
            assert merged.merge(one) is merged
        assert merged.tally_ == whole.tally_
        assert merged.certificate_.claim_digest == whole.certificate_.claim_digest
        assert np.array_equal(merged.predict_interval(table), whole.predict_interval(table))
        assert merged.certificate_.verify()


def test_calibrators_from_another_process_merge() -> None:
    sent = pickle.loads(pickle.dumps(PACCalibrator().fit(*_rows(80, seed=2))))
    here = PACCalibrator().fit(*_rows(60, seed=1)).merge(sent)
    assert here.tally_.rows == 140
    with pytest.raises(RepeatedSourceError):
        here.merge(sent)


def test_rows_that_were_counted_already_are_refused_and_nothing_is_added() -> None:
    a, b = _rows(60, seed=1), _rows(80, seed=2)
    here = PACCalibrator().fit(*a)
    for twice in (here, PACCalibrator().fit(*a), PACCalibrator().fit(*b).partial_fit(*a)):
        with pytest.raises(RepeatedSourceError, match="twice"):
            here.merge(twice)
    assert here.tally_ == PACCalibrator().fit(*a).tally_
    with pytest.raises(RepeatedSourceError):
        here.merge(PACCalibrator().fit(*b)).partial_fit(*b)


OTHERS: dict[str, dict[str, Any]] = {
    "fewer bins": {"n_bins": 10},
    "other edges": {"edges": [0.0, 0.5, 1.0]},
    "per class": {"scope": "per-class"},
    "all labels": {"scope": "all-labels"},
}


@pytest.mark.parametrize("fitted", [True, False], ids=["fitted", "empty"])
@pytest.mark.parametrize("options", OTHERS.values(), ids=OTHERS.keys())
def test_other_bins_and_scopes_are_refused_and_nothing_is_added(
    options: dict[str, Any], fitted: bool
) -> None:
    there = PACCalibrator(**options).fit(*_rows(80, seed=2))
    here = PACCalibrator()
    if fitted:
        here.fit(*_rows(60, seed=1))
    with pytest.raises(InvalidValueError, match="add"):
        here.merge(there)
    assert (here.tally_.rows == 60) if fitted else not hasattr(here, "tally_")
    back = PACCalibrator(**options)
    if fitted:
        back.fit(*_rows(60, seed=1))
    with pytest.raises(InvalidValueError, match="add"):
        back.merge(PACCalibrator().fit(*_rows(80, seed=2)))


def test_edges_from_the_rows_themselves_are_refused_even_where_they_agree() -> None:
    table, labels = _rows()
    here = PACCalibrator(4, edges="equal-mass").fit(table, labels)
    there = PACCalibrator(4, edges="equal-mass").fit(table[::-1], labels[::-1])
    assert here.tally_.grid == there.tally_.grid
    for one, other in [
        (here, there),
        (PACCalibrator(4, edges="equal-mass"), there),
        (PACCalibrator(4), there),
        (here, PACCalibrator(4).fit(table[:50], labels[:50])),
    ]:
        with pytest.raises(InvalidValueError, match="edges='equal-mass' needs all rows at once"):
            one.merge(other)
