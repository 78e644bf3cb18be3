"""Which rows to label: as many in every bin, chosen by a key alone."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from pacbound import calibrate, stratify
from pacbound.errors import InvalidTypeError, InvalidValueError
from pacbound.report import ReliabilityDisplay

RNG = np.random.default_rng(0)
POOL = RNG.beta(8, 1, size=3000)


@pytest.mark.parametrize("labels", [1, 7, 100, 1999, 2999, 3000, 10_000])
def test_every_bin_gets_the_same_number_or_all_that_it_has(labels: int) -> None:
    rows = stratify(POOL, labels=labels, n_bins=10)
    assert len(rows) == len(set(rows.tolist())) == min(labels, len(POOL))
    assert (np.diff(rows) > 0).all()
    held, taken = (
        np.bincount(np.ceil(scores * 10).astype(int), minlength=11) for scores in (POOL, POOL[rows])
    )
    short = taken < held
    if short.any():
        assert int(taken[short].max() - taken[short].min()) <= 1
        assert taken[~short].max(initial=0) <= taken[short].max()


def test_which_rows_of_a_bin_are_chosen_depends_on_the_key_alone() -> None:
    other = np.where(POOL > 0.9, 0.91 + 0.5 * (1 - POOL), POOL)  # the top bin turned around
    assert (
        stratify(POOL, labels=500, n_bins=10).tolist()
        == stratify(other, labels=500, n_bins=10).tolist()
    )
    assert stratify(POOL, labels=500, seed=1).tolist() != stratify(POOL, labels=500).tolist()


def test_rows_with_ids_are_chosen_in_whatever_order_they_come() -> None:
    ids, order = np.arange(3000), RNG.permutation(3000)
    first = stratify(POOL, labels=300, row_ids=ids)
    again = stratify(POOL[order], labels=300, row_ids=ids[order])
    assert set(order[again].tolist()) == set(first.tolist())


def test_every_row_of_a_bin_is_as_likely() -> None:
    times = np.zeros(40)
    for seed in range(600):
        times[stratify(np.full(40, 0.5), labels=10, seed=seed)] += 1
    # 40 binomials of 600 trials at 1/4: sixteen standard deviations would be a pattern.
    assert abs(times - 150).max() < 5 * np.sqrt(600 * 0.25 * 0.75)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"labels": 0}, "labels"),
        ({"labels": 2.5}, "labels"),
        ({"labels": 5, "n_bins": 0}, "n_bins"),
        ({"labels": 5, "edges": [0, 0.5]}, "edges"),
        ({"labels": 5, "row_ids": [0] * 3000}, "2999 rows twice"),
        ({"labels": 5, "row_ids": [0]}, "Rows do not match"),
        ({"labels": 5, "seed": -3}, "seed"),
    ],
)
def test_what_cannot_be_chosen_by_is_refused(given: dict[str, Any], message: str) -> None:
    with pytest.raises((InvalidValueError, InvalidTypeError), match=message):
        stratify(POOL, **given)


def test_scores_must_be_scores() -> None:
    with pytest.raises(InvalidValueError, match=r"confidence\[1\]"):
        stratify([0.5, np.nan], labels=1)


def test_no_rows_give_no_rows() -> None:
    assert stratify(np.zeros(0), labels=5).tolist() == []


def test_no_average_over_rows_is_said_of_stratified_labels() -> None:
    rows = stratify(POOL, labels=500, n_bins=5)
    right = RNG.random(500) < POOL[rows]
    plain = calibrate(POOL[rows], right, delta=0.05, n_bins=5)
    made = calibrate(POOL[rows], right, delta=0.05, n_bins=5, strata=5)
    assert "Mean width" in plain.summary()
    assert "Mean width" not in made.summary()
    assert "strata" in made._repr_html_()
    assert made.bins.lower.tolist() == plain.bins.lower.tolist()
    drawn = [ReliabilityDisplay.from_certificate(one).figure_.axes for one in (plain, made)]
    assert len(drawn[0]) == len(drawn[1]) + 1
