"""A certificate knows how its scores were written: every later table is read in the same way."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.cli.conftest import Run

from pacbound import (
    Cascade,
    Certificate,
    Monitor,
    Tally,
    calibrate,
    certify_abstention,
    certify_cascade,
    certify_false_alarms,
    certify_recall,
    certify_together,
    documents,
    exact_verifier,
    load_certificate,
)
from pacbound.errors import CertificateError, InvalidValueError
from pacbound.monitor import BundleMonitor, update_from_files

polars = pytest.importorskip("polars", reason="polars is not installed")


def frame(rows: int = 4000, seed: int = 5) -> Any:
    rng = np.random.default_rng(seed)
    score = rng.random(rows)
    wrong = rng.random(rows) < (1 - score) / 4
    return polars.DataFrame(
        {"pct": (score * 100).round(3), "ok": ~wrong, "ill": rng.random(rows) < score}
    )


def certified(**options: Any) -> Certificate:
    named: dict[str, Any] = {"confidence": "pct", "correct": "ok", "data": frame(), **options}
    return certify_abstention(**named, scale=100, xi=0.1, delta=0.05)


def test_a_table_is_read_as_the_one_that_was_counted(tmp_path: Path) -> None:
    made = certified()
    assert made.certified
    threshold = made.values["tables"][0]["threshold"] * 100
    # Percentages that are all below 1 are not taken for scores.
    low = polars.DataFrame({"pct": [0.2, 0.9, 0.99]})
    assert made.apply(low)["pac_answer"].to_list() == [0, 0, 0]
    around = polars.DataFrame({"pct": [threshold - 0.01, threshold + 0.01]})
    assert made.apply(around, scale=100)["pac_answer"].to_list() == [0, 1]
    for scale in (1, 1000):
        with pytest.raises(InvalidValueError, match="counted with scale=100"):
            made.apply(around, scale=scale)
    made.save(tmp_path / "c.json")
    around.write_csv(tmp_path / "new.csv")
    load_certificate(tmp_path / "c.json").apply_to_file(tmp_path / "new.csv", tmp_path / "out.csv")
    assert polars.read_csv(tmp_path / "out.csv")["pac_answer"].to_list() == [0, 1]


def test_scores_from_a_program_are_not_read_by_such_a_certificate() -> None:
    recall = certify_recall("pct", "ill", data=frame(), scale=100, target=0.9, delta=0.05)
    rows: Any = frame().with_columns(fast=polars.lit("a"), slow=polars.lit("a"))
    named: dict[str, Any] = {"confidence": "pct", "prediction": ["fast", "slow"], "label": "slow"}
    cascade = certify_cascade(**named, data=rows, scale=100, xi=0.1, delta=0.05)
    calls: list[Callable[[], Any]] = [
        lambda: certified().answers([0.5]),  # type: ignore[attr-defined]
        lambda: recall.flags([0.5]),
        lambda: Cascade([str, str], cascade),
        lambda: Monitor(recall, delta=1e-3).update({"score": [0.5], "positive": [True]}),
    ]
    for call in calls:
        with pytest.raises(InvalidValueError, match="divided by 100"):
            call()


def test_a_threshold_is_said_in_the_unit_of_the_column() -> None:
    made, plain = certified(), certified(data=frame().with_columns(pct=polars.col("pct") / 1))
    assert made.summary() == plain.summary()
    threshold = made.values["tables"][0]["threshold"]
    assert f"at least {threshold * 100:g}"[:14] in made.summary()
    assert "where 100 stands for 1" in made.summary()
    rows: Any = frame().with_columns(fast=polars.lit("a"), slow=polars.lit("a"))
    named: dict[str, Any] = {"confidence": "pct", "prediction": ["fast", "slow"], "label": "slow"}
    halves = [certify_cascade(**named, data=rows, scale=s, xi=0.1, delta=0.05) for s in (100, 400)]
    limits = [float(one.tables[0].thresholds[0]) for one in halves]
    for one, limit, scale in zip(halves, limits, (100, 400), strict=True):
        assert f"{limit * scale:g}" in one.summary()


def test_a_tally_keeps_the_scale(tmp_path: Path) -> None:
    named: dict[str, Any] = {"confidence": "pct", "correct": "ok"}
    counted = Tally.count("abstention", data=frame(), scale=100, **named)
    counted.save(tmp_path / "t.json")
    again = Tally.load(tmp_path / "t.json")
    assert again == counted
    assert again.scale == 100
    made = certify_abstention(data=again, xi=0.1, delta=0.05)
    assert made.provenance.scale == 100
    other = Tally.count("abstention", data=frame(seed=6), scale=1000, **named)
    with pytest.raises(InvalidValueError, match="written differently do not add"):
        counted + other
    assert (counted.zero() + other).scale == (other + counted.zero()).scale == 1000


def test_a_monitor_reads_as_the_certificate_does(tmp_path: Path) -> None:
    low = frame().with_columns(pct=polars.col("pct") / 200, ok=False)
    low.write_csv(tmp_path / "low.csv")
    columns = {"confidence": "pct", "correct": "ok"}
    made = certified()
    monitor = Monitor(made, delta=1e-3)
    assert monitor.update(low, columns=columns) is None
    assert (
        update_from_files(Monitor(made, delta=1e-3), tmp_path / "low.csv", columns=columns) is None
    )
    assert monitor.labels == 0
    bundle = certify_together(
        {
            "a": lambda delta: certified(),
            "b": lambda delta: calibrate([0.9] * 99, [1] * 99, delta=delta),
        },
        delta=0.1,
    )
    several = BundleMonitor(bundle, delta=1e-3)
    several.update({"a": low}, columns={"a": columns})
    assert several.monitors["a"].labels == 0


def test_a_bundle_reads_as_its_claims_do(tmp_path: Path) -> None:
    rows = tmp_path / "rows.parquet"
    frame().write_parquet(rows)

    def together(**scales: float) -> Any:
        named: dict[str, Any] = {"score": "pct", "positive": "ill", "data": rows}
        claims: dict[str, Any] = {
            "misses": partial(certify_recall, **named, target=0.6, scale=scales["misses"]),
            "alarms": partial(certify_false_alarms, **named, xi=0.5, scale=scales["alarms"]),
        }
        return certify_together(claims, delta=0.1)

    made = together(misses=100, alarms=100)
    lowest, highest = made.thresholds
    assert f"{highest * 100:.4f}"[:5] in made.summary()
    around = polars.DataFrame({"pct": [lowest * 99, lowest * 101]})
    added = made.apply(around)
    assert sorted(added[name].to_list() for name in added.columns[1:]) == [[0, 0], [0, 1]]
    with pytest.raises(InvalidValueError, match="counted with scale=100"):
        made.apply(around, scale=1)
    with pytest.raises(InvalidValueError, match="not applied to the rows of a table"):
        together(misses=100, alarms=200).apply(around)


def test_the_command_line_goes_by_it(tmp_path: Path, pacbound: Run) -> None:
    frame().write_csv(tmp_path / "rows.csv")
    named = "--confidence pct --correct ok --xi 0.1 --delta 0.05 -o c.json"
    pacbound("abstain", "rows.csv", "--scale", 100, *named.split())
    pacbound("verify", "c.json", "--data", "rows.csv")
    told = json.loads(pacbound("verify", "c.json", "--json").stdout)
    made = load_certificate(tmp_path / "c.json")
    assert told["scale"] == 100
    threshold = dict(made.by.numbers(made))["Threshold"]
    assert float(threshold) == pytest.approx(100 * made.values["tables"][0]["threshold"])
    other = ("--data", "rows.csv", "--scale", 1000)
    assert "counted with scale=100" in pacbound("verify", "c.json", *other, code=2).stderr
    polars.DataFrame({"pct": [0.2, 0.9]}).write_csv(tmp_path / "low.csv")
    apply = ("apply", "c.json", "low.csv", "-o", "out.csv")
    pacbound(*apply)
    assert polars.read_csv(tmp_path / "out.csv")["pac_answer"].to_list() == [0, 0]
    assert "counted with scale=100" in pacbound(*apply, "--scale", 1, code=2).stderr


def test_a_scale_that_is_none_is_refused_by_both_verifiers(tmp_path: Path) -> None:
    document = certified().to_dict()
    for text in ("abc", "0", "1e400", "-1.0", "nan", "100"):
        document["provenance"]["columns"]["scale"] = text
        document["provenance_digest"] = documents.digest(document["provenance"])
        documents.write(tmp_path / "c.json", document)
        with pytest.raises(CertificateError, match="expected a number such as"):
            load_certificate(tmp_path / "c.json")
        assert exact_verifier.check_file(str(tmp_path / "c.json"))[0] == 2
