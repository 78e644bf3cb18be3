"""`pacbound judge` and `certify_judge`: claims about a judge's verdicts, in one bundle.

Verdicts are derived from the shipped predictions: a network passes an image if it takes it for a
shirt.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from pacbound import (
    certify_judge,
    load_certificate,
)
from pacbound.data import fashion_mnist
from pacbound.errors import InvalidTypeError, InvalidValueError
from pacbound.monitor import BundleMonitor

SHIRT = 6
COLUMNS = ("--verdict", "v", "--label", "y")


@pytest.fixture(scope="module")
def judged() -> dict[str, Any]:
    table = fashion_mnist()
    return {
        "v": np.where(table.prediction_fast == SHIRT, "pass", "fail")[:1500],
        "y": np.where(table.label == SHIRT, "pass", "fail")[:1500],
        "c": table.confidence_fast[:1500].astype(np.float64),
        "task": np.where(np.isin(table.prediction_slow, [0, 2, 4, 6]), "tops", "other")[:1500],
    }


def test_without_a_confidence_there_are_only_rates(judged: dict[str, Any]) -> None:
    bundle: Any = certify_judge(judged["v"], judged["y"], delta=0.05)
    assert list(bundle) == ["verdicts"]
    assert bundle.certified
    for bins in bundle["verdicts"].tables.values():
        assert bins.lower[0] < bins.estimate[0] < bins.upper[0]


def test_every_source_gives_the_same_claims(tmp_path: Path, judged: dict[str, Any]) -> None:
    frame = pl.DataFrame(judged)
    frame.write_csv(tmp_path / "j.csv")
    frame.write_parquet(tmp_path / "j.parquet")
    np.savez(tmp_path / "j.npz", **judged)
    v, y, c, task = judged.values()
    plain = certify_judge(v, y, c, xi=0.05, delta=0.06, groups=task).claim()
    files = [tmp_path / f"j.{suffix}" for suffix in ("csv", "parquet", "npz")]
    for data in (frame, frame.to_pandas(), *files):
        found = certify_judge("v", "y", "c", xi=0.05, delta=0.06, groups="task", data=data)
        assert found.claim() == plain


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"xi": 0.1}, "both xi and confidence"),
        ({"confidence": [0.5] * 3}, "both xi and confidence"),
        ({"label": None}, "needs verdict and label"),
        ({"quality": [1, 0, 1]}, "or quality in the place of label"),
        ({"label": None, "quality": [1, 5, 2]}, "expected grades from 0 to 1"),
        ({"label": None, "quality": [1, None, 0.5]}, "every row needs a quality"),
        ({"graded_by": "people"}, "says how outcomes were graded, and none were"),
        ({"label": ["pass", "fail", None]}, "missing"),
        ({"label": ["PASS", "FAIL", "FAIL"]}, "no class in common"),
        ({"label": ["pass"] * 2}, "Rows do not match"),
        ({"confidence": [0.5, np.nan, 0.5], "xi": 0.1}, "nan"),
    ],
)
def test_what_cannot_be_is_refused(given: dict[str, Any], said: str) -> None:
    columns: Any = {"verdict": ["pass", "fail", "fail"], "label": ["pass", "fail", "pass"]}
    with pytest.raises((InvalidTypeError, InvalidValueError), match=said):
        certify_judge(**{**columns, **given}, delta=0.05)


def test_the_command_certifies_and_everything_reads_its_bundle(
    pacbound: Any, tmp_path: Path, judged: dict[str, Any]
) -> None:
    pl.DataFrame(judged).write_csv(tmp_path / "j.csv")
    options = ("--confidence", "c", "--xi", 0.05, "--groups", "task", "--delta", 0.06)
    done = pacbound("judge", "j.csv", *COLUMNS, *options, "-o", "judge.json")
    assert "Labels, estimated, for bounds at most 10% apart: fail about" in done.stdout
    assert "the share of right predictions" in done.stdout
    bundle: Any = load_certificate(tmp_path / "judge.json")
    assert bundle.provenance.columns["verdicts.groups"] == "v"
    assert "valid, certified" in pacbound("verify", "judge.json", "--exact").stdout
    pacbound("report", "judge.json", "-o", "judge.html")
    watched = pacbound("monitor", "judge.json", "j.csv", "--delta", 0.001)
    assert "Monitor of 3 claims" in watched.stdout
    shown = json.loads(pacbound("judge", "j.csv", *COLUMNS, "--delta", 0.06, "--json").stdout)
    assert list(shown["claim"]["claims"]) == ["verdicts"]
    refused = pacbound(
        "judge", "j.csv", *COLUMNS, "--confidence", "c", "--xi", 1e-4, "--delta", 0.06, code=3
    )
    assert "REFUSED" in refused.stdout
    assert (
        "both xi and confidence"
        in pacbound("judge", "j.csv", *COLUMNS, "--xi", 0.1, "--delta", 0.06, code=2).stderr
    )


def test_a_monitor_rings_when_the_passes_are_no_longer_right(judged: dict[str, Any]) -> None:
    bundle: Any = certify_judge(judged["v"], judged["y"], delta=0.05)
    monitor = BundleMonitor(bundle, delta=0.01)
    (one,) = monitor.monitors.values()
    verdict = ["pass"] * 400 + ["fail"] * 400
    assert one.update({"prediction": verdict, "label": ["fail"] * 800, "groups": verdict})
