"""A certificate knows how its scores were written: every later table is read in the same way."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.cli.conftest import Run

from pacbound import (
    Cascade,
    Certificate,
    Monitor,
    certify_abstention,
    certify_cascade,
    certify_recall,
    documents,
    exact_verifier,
    load_certificate,
)
from pacbound.errors import CertificateError, InvalidValueError

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
        with pytest.raises(CertificateError, match=r"provenance.columns is not"):
            load_certificate(tmp_path / "c.json")
        assert exact_verifier.check_file(str(tmp_path / "c.json"))[0] == 2
