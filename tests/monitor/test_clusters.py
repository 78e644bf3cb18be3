"""A monitor of a certificate by clusters draws one row of each, and no cluster twice."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pacbound import (
    Monitor,
    certify_abstention,
    certify_recall,
)
from pacbound.documents import digest
from pacbound.errors import CertificateError, InvalidTypeError, InvalidValueError
from pacbound.monitor import update_from_files
from pacbound.watch import Seen


def _rows(patients: int, *, seed: int, first: int = 0, missed: float = 0.05) -> dict[str, Any]:
    rng = np.random.default_rng(seed)
    patient = first + np.repeat(np.arange(patients), rng.integers(1, 6, size=patients))
    positive = rng.random(len(patient)) < 0.3
    low = (rng.random(patients) < missed)[patient - first]
    score = np.where(positive & ~low, 0.9, 0.1)
    return {"score": score, "positive": positive, "clusters": patient}


CERTIFIED = certify_recall(**_rows(1000, seed=0), target=0.85, delta=0.05)
USE = _rows(400, seed=1, first=10_000)


def _monitor() -> Monitor:
    return Monitor(CERTIFIED, delta=1e-3)


def test_each_cluster_with_a_positive_is_one_label_and_its_later_rows_none() -> None:
    monitor = _monitor()
    with_positive = len(set(USE["clusters"][USE["positive"]].tolist()))
    assert monitor.update(USE) is None
    assert monitor.labels == monitor.clusters == with_positive
    assert monitor.rows == len(USE["score"])
    before = monitor.evidence
    assert monitor.update(USE) is None
    assert (monitor.labels, monitor.evidence) == (with_positive, before)
    assert f"one row of each of {with_positive:,} clusters" in monitor.summary()


def test_clusters_may_come_in_any_parts_that_are_whole() -> None:
    whole, parts = _monitor(), _monitor()
    whole.update(USE)
    for low, high in ((10_000, 10_100), (10_100, 10_400)):
        inside = (USE["clusters"] >= low) & (USE["clusters"] < high)
        parts.update({name: column[inside] for name, column in USE.items()})
    assert parts.evidence == whole.evidence
    assert np.array_equal(parts.used, whole.used)


def test_the_state_keeps_the_clusters_that_were_used(tmp_path: Path) -> None:
    monitor, path = _monitor(), tmp_path / "state.json"
    monitor.update(USE)
    monitor.save(path)
    again = Monitor.load(path, CERTIFIED)
    assert np.array_equal(again.used, monitor.used)
    again.update(USE)
    assert again.labels == monitor.labels
    document = json.loads(path.read_text())
    assert len(document["clusters"]) == 16 * monitor.clusters
    for changed in (
        document["clusters"][16:] + document["clusters"][:16],
        document["clusters"] + document["clusters"][-16:],
        "no digits",
        7,
    ):
        other = {**document, "clusters": changed}
        other["digest"] = digest({k: v for k, v in other.items() if k != "digest"})
        path.write_text(json.dumps(other))
        with pytest.raises(CertificateError):
            Monitor.load(path, CERTIFIED)


def test_each_monitor_draws_by_a_seed_of_its_own_which_its_file_keeps(tmp_path: Path) -> None:
    monitor, path = _monitor(), tmp_path / "state.json"
    assert monitor.seed is not None
    assert CERTIFIED.draw is not None
    assert len({monitor.seed, _monitor().seed, CERTIFIED.draw.seed}) == 3
    monitor.save(path)
    again = Monitor.load(path, CERTIFIED)
    assert again.seed == monitor.seed
    mixed = {**USE, "score": np.where(np.arange(len(USE["score"])) % 2, 0.1, 0.9)}
    for one in (monitor, again):
        one.update(mixed)
    assert again.evidence == monitor.evidence
    assert again.seen == monitor.seen
    assert len({tuple(_after(mixed).seen.values()) for _ in range(8)}) > 1
    document = json.loads(path.read_text())
    for changed in ({}, {"seed": None}, {"seed": 1.5}, {"seed": "7"}):
        other = {k: v for k, v in document.items() if k not in ("digest", "seed")} | changed
        path.write_text(json.dumps({**other, "digest": digest(other)}))
        with pytest.raises(CertificateError):
            Monitor.load(path, CERTIFIED)
    rows = _rows(1000, seed=0)
    plain = Monitor(
        certify_recall(rows["score"], rows["positive"], target=0.85, delta=0.05), delta=1e-3
    )
    assert plain.seed is None
    assert "seed" not in plain.to_dict()


def _after(rows: dict[str, Any]) -> Monitor:
    monitor = _monitor()
    monitor.update(rows)
    return monitor


def test_files_and_frames_draw_what_arrays_do(tmp_path: Path) -> None:
    pytest.importorskip("duckdb")
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"s": USE["score"], "y": USE["positive"], "p": USE["clusters"]})
    columns = {"score": "s", "positive": "y", "clusters": "p"}
    expected, of_frame, of_files = _monitor(), _monitor(), _monitor()
    expected.update(USE)
    of_frame.update(frame, columns=columns)
    # The rows of a cluster may be in two files.
    frame[:500].to_csv(tmp_path / "a.csv", index=False)
    frame[500:].to_csv(tmp_path / "b.csv", index=False)
    update_from_files(of_files, tmp_path, columns=columns)
    for monitor in (of_frame, of_files):
        assert monitor.evidence == expected.evidence
        assert (monitor.rows, monitor.labels) == (expected.rows, expected.labels)
        assert np.array_equal(monitor.used, expected.used)


def test_clusters_are_refused_where_the_claim_is_about_rows() -> None:
    rows = _rows(1000, seed=0)
    plain = certify_recall(rows["score"], rows["positive"], target=0.85, delta=0.05)
    with pytest.raises(InvalidTypeError, match="certificate is not about clusters"):
        Monitor(plain, delta=1e-3).update(USE)


def test_all_rows_of_clusters_ring_falsely_and_the_drawn_ones_rarely() -> None:
    """Patients are missed or found with all their rows, at the very rate that is allowed."""
    false = {"drawn": 0, "all": 0}
    for run in range(60):
        rows = _rows(300, seed=100 + run, first=10**6 * (run + 1), missed=0.15)
        big = {name: np.repeat(column, 8) for name, column in rows.items()}
        drawn, every = (Monitor(CERTIFIED, delta=0.05) for _ in range(2))
        false["drawn"] += drawn.update(big) is not None
        del big["clusters"]
        false["all"] += every.update(big) is not None
    assert false["drawn"] <= 8
    assert false["all"] > 20


def _in_groups(patients: int, *, seed: int, first: int = 0) -> dict[str, Any]:
    rng = np.random.default_rng(seed)
    patient = first + np.repeat(np.arange(patients), 4)
    return {
        "score": rng.uniform(0.3, 1.0, size=4 * patients),
        "positive": rng.random(4 * patients) < 0.6,
        "groups": rng.choice(["A", "B"], size=4 * patients),
        "clusters": patient,
    }


GROUPED = certify_recall(**_in_groups(1500, seed=3), target=0.8, delta=0.05)
IN_GROUPS = _in_groups(200, seed=4, first=10_000)


def _labels(rows: dict[str, Any]) -> int:
    """A row of each cluster for each group in which it has a positive."""
    found = rows["positive"]
    return len({*zip(rows["clusters"][found], rows["groups"][found], strict=True)})


def test_each_group_of_a_cluster_brings_a_label_and_the_cluster_is_then_used_up() -> None:
    monitor = Monitor(GROUPED, delta=1e-3)
    monitor.update(IN_GROUPS)
    assert monitor.labels == _labels(IN_GROUPS) > monitor.clusters
    assert f"one row of each of {monitor.clusters} clusters for each group" in monitor.summary()
    # Rows in a group from which none was drawn come too late.
    late = {name: column.copy() for name, column in IN_GROUPS.items()}
    late["groups"][:] = "A"
    before = monitor.labels, monitor.evidence
    used = np.isin(late["clusters"], late["clusters"][late["positive"]])
    monitor.update({name: column[used] for name, column in late.items()})
    assert (monitor.labels, monitor.evidence) == before


def test_the_evidence_is_looked_at_after_whole_clusters(tmp_path: Path) -> None:
    pandas, columns = pytest.importorskip("pandas"), {name: name for name in IN_GROUPS}
    pytest.importorskip("duckdb")
    lost = {**IN_GROUPS, "score": np.full(800, 0.1)}
    monitor = Monitor(GROUPED, delta=1e-3)
    alarm = monitor.update(lost)
    assert alarm is not None
    of_files = Monitor(GROUPED, delta=1e-3)
    frame = pandas.DataFrame(lost)
    frame[:333].to_csv(tmp_path / "a.csv", index=False)
    frame[333:].to_csv(tmp_path / "b.csv", index=False)
    assert update_from_files(of_files, tmp_path, columns=columns) == alarm
    # It rings with the last label of a cluster.
    ends = []
    for patient in range(10_000, 10_050):
        inside = lost["clusters"] == patient
        ends.append(_labels({name: column[inside] for name, column in lost.items()}))
    assert alarm.label in np.cumsum(ends).tolist()


def _sure(patients: int, *, seed: int) -> dict[str, Any]:
    """Half of the patients have one sure row; the others one, and nine unsure ones."""
    rng = np.random.default_rng(seed)
    sizes = np.where(rng.random(patients) < 0.5, 1, 10)
    confidence = np.full(sizes.sum(), 0.3)
    confidence[np.cumsum(sizes) - sizes] = rng.uniform(0.9, 1.0, size=patients)
    right = np.repeat(sizes == 1, sizes)
    clusters = 10**6 * seed + np.repeat(np.arange(patients), sizes)
    return {"confidence": confidence, "correct": right, "clusters": clusters}


@pytest.mark.parametrize(("bound", "xi"), [(None, 0.2), (10, 0.75)])
def test_a_monitor_refuses_rows_from_which_those_that_are_not_answered_were_left_out(
    bound: int | None, xi: float
) -> None:
    options: dict[str, Any] = {} if bound is None else {"cluster_bound": bound}
    made = certify_abstention(**_sure(2000, seed=1), xi=xi, delta=0.05, **options, seed=5)
    monitor, rows = Monitor(made, delta=0.01), _sure(2000, seed=2)
    sure = rows["confidence"] >= 0.9
    with pytest.raises(InvalidValueError, match="Pass every row of a cluster, answered or not"):
        monitor.update({name: column[sure] for name, column in rows.items()})
    assert (monitor.rows, monitor.clusters) == (0, 0)
    assert "Pass every row of a cluster, answered or not" in monitor.promise
    assert monitor.update(rows) is None
    # A few patients may all be answered.
    fresh = _sure(100, seed=3)
    sure = fresh["confidence"] >= 0.9
    few = {name: column[sure][:20] for name, column in fresh.items()}
    assert monitor.update(few) is None


def test_drawn_rows_in_several_groups_are_looked_at_as_wholes() -> None:
    part = Seen(np.array([0, 1, 0]), np.array([0, 1, 1]), np.array([0, 0, 1]))
    closes = Seen.joined([part, part], [2, 2]).closes
    assert closes is not None
    assert closes.tolist() == [False, True, True] * 2
