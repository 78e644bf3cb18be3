"""Rows drawn before they are counted: one of each cluster, or by their weights."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.special import bdtr

from pacbound import (
    Tally,
    calibrate,
)
from pacbound.errors import (
    CertificateError,
    InvalidTypeError,
    InvalidValueError,
    RepeatedSourceError,
)

RNG = np.random.default_rng(0)
ROWS = 600
CONFIDENCE = RNG.uniform(size=ROWS)
CORRECT = RNG.random(ROWS) < CONFIDENCE
PATIENT = RNG.integers(0, 90, size=ROWS)
WEIGHT = RNG.uniform(0, 3, size=ROWS)
COLUMNS: dict[str, Any] = {"confidence": CONFIDENCE, "correct": CORRECT}
BY_PATIENT: dict[str, Any] = {**COLUMNS, "clusters": PATIENT, "seed": 0}
BY_WEIGHT: dict[str, Any] = {**COLUMNS, "weights": WEIGHT, "weight_bound": 3.0, "seed": 0}


def test_one_row_of_each_cluster_is_counted() -> None:
    tally = Tally.count("abstention", **BY_PATIENT)
    clusters = len(set(PATIENT.tolist()))
    assert tally.rows == clusters == int(tally.counts.sum())
    assert tally.drawn is not None
    assert (tally.drawn.rows, tally.drawn.units, tally.drawn.seed) == (ROWS, clusters, 0)


def test_the_counted_row_of_a_cluster_is_one_of_its_own() -> None:
    own = Tally.count(
        "shield",
        score=np.where(PATIENT == 5, 0.75, 0.25),
        unsafe=PATIENT == 5,
        clusters=PATIENT,
        seed=0,
    )
    assert own.totals == {"safe": len(set(PATIENT.tolist())) - 1, "unsafe": 1}


def test_every_row_of_a_cluster_is_as_likely() -> None:
    clusters = np.repeat(np.arange(5000), 4)
    for place in range(4):
        here = np.tile(np.arange(4) == place, 5000)
        drawn = Tally.count("calibration", np.zeros(20_000), here, clusters=clusters, seed=0)
        seen = drawn.totals["right"]
        assert min(bdtr(seen, 5000, 0.25), 1 - bdtr(seen - 1, 5000, 0.25)) > 1e-4


def test_with_row_ids_the_order_of_rows_does_not_matter() -> None:
    order = np.random.default_rng(1).permutation(ROWS)
    ids = np.array([f"row {i}" for i in range(ROWS)])
    draws: tuple[dict[str, Any], ...] = (
        {"clusters": PATIENT},
        {"clusters": PATIENT, "cluster_bound": 30},
        {"weights": WEIGHT, "weight_bound": 3.0},
    )
    for draw in draws:
        given: dict[str, Any] = {**COLUMNS, **draw, "row_ids": ids, "seed": 0}
        moved: dict[str, Any] = {
            key: value[order] if isinstance(value, np.ndarray) else value
            for key, value in given.items()
        }
        assert Tally.count("calibration", **moved) == Tally.count("calibration", **given)


def test_a_row_of_the_largest_weight_is_always_kept_and_one_of_weight_zero_never() -> None:
    bound = 0.3
    weights = np.where(CORRECT, bound, 0.0)
    tally = Tally.count("calibration", **COLUMNS, weights=weights, weight_bound=bound, seed=0)
    assert tally.totals == {"wrong": 0, "right": int(CORRECT.sum())}


def test_rows_are_kept_in_proportion_to_their_weights() -> None:
    rows = 20_000
    for weight in (0.3, 1.5, 2.9):
        kept = Tally.count(
            "shield",
            score=np.zeros(rows),
            unsafe=np.ones(rows),
            weights=[weight] * rows,
            weight_bound=3,
            seed=0,
        ).rows
        share = weight / 3
        assert min(bdtr(kept, rows, share), 1 - bdtr(kept - 1, rows, share)) > 1e-4


def test_only_rows_that_are_drawn_need_a_score() -> None:
    drawn = Tally.count("abstention", **BY_PATIENT)

    def without(row: int) -> Tally:
        scores = CONFIDENCE.copy()
        scores[row] = np.nan
        return Tally.count(
            "abstention", confidence=scores, correct=CORRECT, clusters=PATIENT, seed=0
        )

    refused = []
    for row in range(60):
        try:
            assert without(row) == drawn
        except InvalidValueError:
            refused.append(row)
    assert 0 < len(refused) < 60
    with pytest.raises(InvalidValueError, match="numbered among the"):
        without(refused[0])


def _with(column: np.ndarray, row: int, value: Any) -> np.ndarray:
    changed = column.astype(object) if value is None or isinstance(value, str) else column.copy()
    changed[row] = value
    return changed if changed.dtype != object or value is None else changed.astype(str)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"clusters": _with(PATIENT.astype(float), 7, np.nan)}, r"clusters\[7\] is nan"),
        ({"clusters": _with(PATIENT, 7, None)}, "missing values, the first in row 7"),
        ({"clusters": _with(PATIENT, 7, "NA")}, r"clusters\[7\] is 'NA', usually a missing"),
        ({"clusters": _with(PATIENT, 7, " ")}, r"clusters\[7\] is ' '"),
        ({"clusters": PATIENT[:-1]}, "Rows do not match"),
        ({"clusters": PATIENT, "cluster_bound": 0}, "cluster_bound"),
        ({"clusters": PATIENT, "cluster_bound": 4}, "more than cluster_bound=4"),
        (
            {"clusters": PATIENT, "row_ids": CORRECT},
            "row_ids holds '[01]' [0-9]+ times in one cluster, first in rows [0-9]+ and [0-9]+",
        ),
        ({"row_ids": PATIENT}, r"row_ids holds '[0-9]+' [0-9]+ times, first in rows"),
        ({"row_ids": np.arange(ROWS) // 3}, r"holds '[0-9]+' 3 times, .*\(200 such ids\)"),
        ({"weights": WEIGHT, "weight_bound": 2.5}, "above weight_bound=2.5"),
        ({"weights": _with(WEIGHT, 3, -1.0), "weight_bound": 3}, r"weights\[3\] is -1"),
        ({"weights": _with(WEIGHT, 3, np.nan), "weight_bound": 3}, r"weights\[3\] is nan"),
        ({"weights": _with(WEIGHT, 3, np.inf), "weight_bound": 3}, r"weights\[3\] is inf"),
        ({"weights": WEIGHT, "weight_bound": np.inf}, "expected a positive number"),
        ({"weights": WEIGHT, "weight_bound": 0}, "expected a positive number"),
        ({"weights": WEIGHT * 0, "weight_bound": 3}, "None of 600 rows was kept.* every weight is"),
        ({"weights": WEIGHT, "weight_bound": 1e9}, "None of 600 rows was kept.* far above what"),
        ({"clusters": PATIENT, "seed": True}, "seed=True is not a seed: expected a whole number"),
        ({"clusters": PATIENT, "seed": 1.5}, r"seed=1\.5 is not a seed: .*leave it out"),
        ({"clusters": PATIENT, "seed": 10**1000}, "seed has more than 1000 digits"),
        (
            {"weights": WEIGHT, "weight_bound": 3, "row_ids": PATIENT},
            r"row_ids holds '[0-9]+' [0-9]+ times, first in rows",
        ),
        ({"clusters": PATIENT, "edges": "equal-mass"}, "do not go with clusters"),
    ],
)
def test_what_cannot_be_drawn_by_is_refused(given: dict[str, Any], message: str) -> None:
    with pytest.raises((InvalidValueError, InvalidTypeError), match=message):
        Tally.count("calibration", **COLUMNS, **given)


def test_an_unknown_argument_is_refused_with_the_one_that_was_meant() -> None:
    with pytest.raises(
        InvalidTypeError, match=r"cluster is not an option of this function\. Did you mean clusters"
    ):
        calibrate(CONFIDENCE, CORRECT, delta=0.1, cluster=PATIENT)  # type: ignore[call-arg]
    with pytest.raises(InvalidTypeError, match="Did you mean n_bins"):
        calibrate(CONFIDENCE, CORRECT, delta=0.1, n_bin=3)  # type: ignore[call-arg]


def _half(given: dict[str, Any], which: int) -> dict[str, Any]:
    chosen = which == PATIENT % 2
    return {
        key: value[chosen] if isinstance(value, np.ndarray) else value
        for key, value in given.items()
    }


def test_tallies_of_different_clusters_add_to_that_of_all() -> None:
    halves = [Tally.count("calibration", **_half(BY_PATIENT, which)) for which in (0, 1)]
    assert halves[0] + halves[1] == Tally.count("calibration", **BY_PATIENT)
    assert halves[0] + halves[1].zero() == halves[0]


def test_tallies_that_share_a_cluster_do_not_add() -> None:
    first, second = np.arange(ROWS) < 300, np.arange(ROWS) >= 300
    parts = [
        Tally.count(
            "calibration",
            confidence=CONFIDENCE[part],
            correct=CORRECT[part],
            clusters=PATIENT[part],
            seed=0,
        )
        for part in (first, second)
    ]
    with pytest.raises(RepeatedSourceError, match="clusters are in both tallies"):
        parts[0] + parts[1]


def test_rows_kept_by_weight_add_only_if_they_have_ids_that_differ() -> None:
    halves = [_half(BY_WEIGHT, which) for which in (0, 1)]
    places = [Tally.count("calibration", **half) for half in halves]
    with pytest.raises(InvalidValueError, match="the same random number"):
        places[0] + places[1]
    ids: dict[str, Any] = {"row_ids": np.arange(ROWS)}
    named = [Tally.count("calibration", **_half({**BY_WEIGHT, **ids}, which)) for which in (0, 1)]
    assert named[0] + named[1] == Tally.count("calibration", **BY_WEIGHT, **ids)
    again = [
        Tally.count("calibration", **half, row_ids=range(len(half["weights"]))) for half in halves
    ]
    with pytest.raises(RepeatedSourceError, match="row ids are in both tallies"):
        again[0] + again[1]


@pytest.mark.parametrize(
    "given",
    [
        BY_PATIENT,
        {**BY_PATIENT, "cluster_bound": 30, "seed": 9},
        BY_WEIGHT,
        {**BY_WEIGHT, "row_ids": np.arange(ROWS)},
    ],
)
def test_a_drawn_tally_survives_its_file(given: dict[str, Any], tmp_path: Path) -> None:
    tally = Tally.count("calibration", **given)
    tally.save(tmp_path / "t.json")
    again = Tally.load(tmp_path / "t.json")
    assert again == tally
    assert again.to_dict() == tally.to_dict()
    assert again.to_dict()["schema"] == 2


@pytest.mark.parametrize(
    "change",
    [
        {"by": "luck"},
        {"seed": None},
        {"seed": "-1"},
        {"seed": 2**53 + 1},
        {"seed": str(2**53)},
        {"seed": 1.5},
        {"rows": 10},
        {"units": 10},
        {"bound": 3},
        {"names": ""},
        {"names": "zz"},
        {"names": "ff" * 8 + "00" * 8 * (len(set(PATIENT.tolist())) - 1)},
    ],
)
def test_a_tally_that_no_draw_gives_is_refused(change: dict[str, Any]) -> None:
    from pacbound import documents

    document = json.loads(json.dumps(Tally.count("calibration", **BY_PATIENT).to_dict()))
    del document["digest"]
    document["drawn"] |= change
    with pytest.raises(CertificateError):
        Tally.from_dict({**document, "digest": documents.digest(document)})


def test_row_ids_alone_draw_nothing_and_are_recognised_in_another_tally(tmp_path: Path) -> None:
    ids = np.array([f"row {place}" for place in range(ROWS)])
    plain = Tally.count("calibration", **COLUMNS)
    named = Tally.count("calibration", **COLUMNS, row_ids=ids)
    assert named == plain
    assert named.drawn is None
    named.save(tmp_path / "named.json")
    read = Tally.load(tmp_path / "named.json")
    assert read.ids is not None
    assert len(read.ids) == ROWS
    other = {name: column[:50] + 0 for name, column in COLUMNS.items()}
    again = Tally.count(
        "calibration", **other, row_ids=ids[ROWS - 10 :].tolist() + [f"new {i}" for i in range(40)]
    )
    with pytest.raises(RepeatedSourceError, match="10 row ids are in both tallies"):
        _ = read + again
    fresh = Tally.count("calibration", **other, row_ids=[f"new {i}" for i in range(50)])
    assert (read.zero() + read + fresh).ids is not None
