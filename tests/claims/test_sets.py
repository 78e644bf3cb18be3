"""Prediction sets: what counts as missed, types, groups, tables, and what is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas
import polars
import pytest

from pacbound import Monitor, certify_sets, load_certificate
from pacbound.errors import CertificateError, InvalidTypeError, InvalidValueError, PacboundError

LABELS = ["cat", "dog", "eel"]


@pytest.fixture(scope="module")
def rows() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(3)
    probability = rng.dirichlet([0.4] * 3, size=600)
    return probability, (probability.cumsum(axis=1) > rng.random((600, 1))).argmax(axis=1)


@pytest.fixture
def table(tmp_path: Path, rows: tuple[np.ndarray, np.ndarray]) -> Path:
    probability, label = rows
    columns = dict(zip(LABELS, probability.T, strict=True))
    named = [LABELS[place] for place in label]
    path = tmp_path / "animals.parquet"
    polars.DataFrame({**columns, "animal": named, "site": ["a", "b"] * 300}).write_parquet(path)
    return path


def test_a_set_holds_every_label_from_the_threshold_on(
    rows: tuple[np.ndarray, np.ndarray],
) -> None:
    certificate = certify_sets(*rows, xi=0.1, delta=0.05)
    limit = certificate.threshold
    found = certificate.sets([[limit, np.nextafter(limit, 0), 1.0]])
    assert found.tolist() == [[True, False, True]]
    inside = certificate.sets(rows[0])[np.arange(600), rows[1]]
    assert (~inside).sum() == certificate.values["tables"][0]["allowed"]


@pytest.mark.parametrize("gap", [-1, np.nan])
def test_a_label_without_a_probability_is_missed_at_every_threshold(
    rows: tuple[np.ndarray, np.ndarray], gap: float
) -> None:
    probability, label = rows
    gaps = label.astype(float)
    gaps[:80] = gap
    refused = certify_sets(probability, gaps, xi=0.1, delta=0.05)
    assert not refused.certified
    assert refused.threshold == -np.inf
    assert "80 of 600 rows have no probability for their label" in refused.summary()
    assert refused.sets(probability).all()


def test_labels_that_count_from_1_are_not_taken_for_places(
    rows: tuple[np.ndarray, np.ndarray],
) -> None:
    probability, label = rows
    with pytest.raises(InvalidValueError, match=r"label holds 3, .*subtract 1 if labels count fr"):
        certify_sets(probability, label + 1, xi=0.1, delta=0.05)
    missing = certify_sets(probability, label + 1, xi=0.1, delta=0.05, missing=3)
    assert missing.values["tables"][0]["counts"]["cells"][0] == -1


def test_a_part_of_the_rows_may_have_labels_without_a_column_if_others_have_one(
    rows: tuple[np.ndarray, np.ndarray], tmp_path: Path
) -> None:
    """Files are read in parts: what one part has is no reason to refuse all of them."""
    probability, label = rows
    names = np.array(LABELS, dtype=object)[label]
    names[:300] = "unicorn"
    columns = {name: probability[:, place] for place, name in enumerate(LABELS)}
    frame = pandas.DataFrame({**columns, "animal": names})
    for place, part in enumerate((frame[:300], frame[300:])):
        part.to_csv(tmp_path / f"{place}.csv", index=False)
    both: Any = [tmp_path / "0.csv", tmp_path / "1.csv"]
    asked: dict[str, Any] = {"xi": 0.6, "delta": 0.05}
    found = certify_sets(LABELS, "animal", data=both, **asked)
    arrays = certify_sets(frame[LABELS], names, **asked)
    assert found.to_dict()["claim"]["tables"] == arrays.to_dict()["claim"]["tables"]
    with pytest.raises(InvalidValueError, match="'unicorn', and no column is for these"):
        certify_sets(LABELS, "animal", data=both[0], **asked)


def test_a_probability_that_is_nan_counts_as_missed_and_stays_in_the_set(
    rows: tuple[np.ndarray, np.ndarray],
) -> None:
    probability = rows[0].copy()
    probability[np.arange(5), rows[1][:5]] = np.nan
    certificate = certify_sets(probability, rows[1], xi=0.1, delta=0.05)
    assert certificate.values["tables"][0]["counts"]["cells"][0] == -1
    assert certificate.sets(probability)[np.arange(5), rows[1][:5]].all()


def test_probabilities_of_another_type_than_was_counted_are_refused(
    rows: tuple[np.ndarray, np.ndarray],
) -> None:
    certificate = certify_sets(rows[0].astype(np.float32), rows[1], xi=0.1, delta=0.05)
    assert certificate.values["dtype"] == "float32"
    with pytest.raises(InvalidTypeError, match="compute the probabilities in float32"):
        certificate.sets(rows[0])


def test_groups_share_a_threshold_or_have_their_own(
    rows: tuple[np.ndarray, np.ndarray], table: Path
) -> None:
    columns: dict[str, Any] = {
        "probability": LABELS,
        "label": "animal",
        "groups": "site",
        "data": table,
    }
    common = certify_sets(**columns, xi=0.2, delta=0.05)
    own = certify_sets(**columns, xi=0.2, delta=0.05, group_thresholds="own")
    assert common.threshold == min(
        certify_sets(rows[0][start::2], rows[1][start::2], xi=0.2, delta=0.05).threshold
        for start in (0, 1)
    )
    assert set(own.thresholds) == {"a", "b"}
    with pytest.raises(InvalidTypeError, match="own threshold"):
        _ = own.threshold
    assert (own.sets(rows[0], ["a", "b"] * 300) == own.sets(rows[0], ["b", "a"] * 300)).mean() < 1


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"probability": np.ones((4, 1))}, r"pass \[1 - p, p\]"),
        ({"probability": np.ones(4)}, r"expected \(rows, labels\)"),
        ({"probability": np.full((4, 3), 1.5)}, "expected scores from 0 to 1"),
        ({"label": ["x"] * 4}, "no column is for these"),
        ({"label": [0, 1]}, "label"),
        ({"xi": 1.0}, "To allow 2 %"),
        ({"delta": 0.9}, "for 95 % confidence pass delta=0.05"),
        ({"group_thresholds": "each"}, "expected 'common' or 'own'"),
        ({"probability": LABELS}, "names a column, and there is no table"),
        ({"data": "rows.csv"}, "name its column"),
        ({"cluster": [1] * 4}, "Did you mean clusters"),
    ],
)
def test_what_cannot_be_is_refused_with_the_remedy(change: dict[str, object], message: str) -> None:
    given = {"probability": np.full((4, 3), 1 / 3), "label": [0, 1, 2, 0], "xi": 0.1, "delta": 0.1}
    with pytest.raises(PacboundError, match=message):
        certify_sets(**{**given, **change})  # type: ignore[arg-type]


def test_a_certificate_is_saved_verified_and_found_out_if_it_is_changed(
    rows: tuple[np.ndarray, np.ndarray], tmp_path: Path
) -> None:
    certificate = certify_sets(*rows, xi=0.1, delta=0.05)
    certificate.save(tmp_path / "sets.json")
    loaded = load_certificate(tmp_path / "sets.json")
    assert loaded.verify().ok
    assert loaded.summary() == certificate.summary()
    document = certificate.to_dict()
    document["claim"]["tables"][0]["threshold"] = 0.5
    from pacbound.claims.certificate import certificate_from_dict

    forged = certificate_from_dict(document)
    assert not forged.verify().ok
    with pytest.raises(CertificateError, match="changed after it was written"):
        _ = forged.threshold  # type: ignore[attr-defined]


def test_a_monitor_takes_in_rows_and_rings_when_sets_miss_their_labels(
    rows: tuple[np.ndarray, np.ndarray],
) -> None:
    certificate = certify_sets(*rows, xi=0.1, delta=0.05)
    monitor = Monitor(certificate, delta=0.01)
    assert monitor.update({"probability": rows[0], "label": rows[1]}) is None
    wrong = (rows[1] + 1) % 3
    assert monitor.update({"probability": rows[0], "label": wrong}) is not None
    assert "the true label is missing from at most 10 % of all sets" in monitor.summary()


def test_a_threshold_far_below_the_cells_of_other_scores_is_not_zero() -> None:
    true = np.where(np.arange(1000) < 30, 1e-5, 1 - 1e-6)
    probability = np.column_stack([true, 1 - true])
    certificate = certify_sets(probability, np.zeros(1000, dtype=int), xi=0.02, delta=0.05)
    assert 0.9995e-5 < certificate.threshold <= 1e-5
    assert certificate.sets(probability).sum() == 1030
