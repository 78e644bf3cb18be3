"""`pacbound judge` and `certify_judge`: claims about a judge's verdicts, in one bundle.

Verdicts are derived from the shipped predictions: a network passes an image if it takes it for a
shirt.
"""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from pacbound import (
    calibrate,
    certify_abstention,
    certify_judge,
    certify_together,
    exact_verifier,
    load_certificate,
)
from pacbound.claims.judge import labels_needed
from pacbound.data import fashion_mnist
from pacbound.errors import InvalidTypeError, InvalidValueError
from pacbound.monitor import BundleMonitor
from pacbound.report import write_report

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


def test_the_claims_are_those_that_are_made_one_by_one(judged: dict[str, Any]) -> None:
    v, y, c, task = judged.values()
    found: Any = certify_judge(v, y, c, xi=0.05, delta=0.06, groups=task)
    one: Any = {"prediction": v, "label": y}
    same = certify_together(
        {
            "verdicts": partial(calibrate, np.ones(1500), n_bins=1, groups=v, **one),
            "slices": partial(calibrate, np.ones(1500), n_bins=1, groups=task, **one),
            "standing": partial(certify_abstention, c, xi=0.05, groups=task, **one),
        },
        delta=0.06,
    )
    assert found.claim() == same.claim()
    assert found.verify()
    assert sum(found[name].delta for name in found) <= 0.06
    right = {name: int(bins.successes[0]) for name, bins in found["verdicts"].tables.items()}
    assert right == {name: int(((v == y) & (v == name)).sum()) for name in ("fail", "pass")}


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


def test_numbers_and_more_than_two_verdicts_are_classes_like_others() -> None:
    rng = np.random.default_rng(0)
    label = rng.integers(1, 4, 900)
    verdict = np.where(rng.random(900) < 0.8, label, 1 + label % 3)
    bundle: Any = certify_judge(verdict, label, delta=0.05)
    assert list(bundle["verdicts"].tables) == ["1", "2", "3"]


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


def test_people_who_grade_verdicts_take_the_place_of_labels(
    pacbound: Any, judged: dict[str, Any], tmp_path: Path
) -> None:
    right = (np.array(judged["v"]) == np.array(judged["y"])).astype(float)
    # Grades of 0 and 1 say what labels say, whatever the coins.
    graded: Any = certify_judge(judged["v"], quality=right, delta=0.05, graded_by="people", seed=0)
    plain: Any = certify_judge(judged["v"], judged["y"], delta=0.05)
    for name, bins in plain["verdicts"].tables.items():
        assert graded["verdicts"].tables[name].lower == bins.lower
    assert "as graded by people" in str(graded)
    lines = [
        f"{v},{int(5 * q)},{c}" for v, q, c in zip(judged["v"], right, judged["c"], strict=True)
    ]
    (tmp_path / "graded.csv").write_text("\n".join(["v,q,c", *lines]) + "\n")
    named = ["--verdict", "v", "--quality", "q", "--confidence", "c", "--xi", "0.4"]
    scale = ["--quality-scale", "0,5", "--graded-by", "people"]
    said = ["--delta", "0.05", "-o", "judge.json"]
    pacbound("judge", "graded.csv", *named, *scale, *said)
    made = load_certificate(tmp_path / "judge.json")
    assert made.verify()
    assert exact_verifier.check_file(str(tmp_path / "judge.json"))[0] == 0


def test_more_labels_make_narrower_bounds(judged: dict[str, Any]) -> None:
    bundle: Any = certify_judge(judged["v"], judged["y"], delta=0.05)
    for width in (0.2, 0.1):
        for name, (had, needed) in labels_needed(bundle, width).items():
            bins = bundle["verdicts"].tables[name]
            assert had == bins.trials[0]
            assert (needed <= had) == (bins.upper[0] - bins.lower[0] <= width)


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


def test_the_monitor_of_all_claims_is_on_the_page_beside_each(
    pacbound: Any, tmp_path: Path, judged: dict[str, Any]
) -> None:
    pl.DataFrame(judged).write_csv(tmp_path / "j.csv")
    pl.DataFrame({**judged, "y": ["pass"] * 1500}).write_csv(tmp_path / "use.csv")
    columns = ("--verdict", "v", "--label", "y", "--confidence", "c", "--groups", "task")
    pacbound("judge", "j.csv", *columns, "--xi", 0.2, "--delta", 0.05, "-o", "judge.json")
    watched = ("monitor", "judge.json", "use.csv", "--delta", 0.01, "--state", "state.json")
    said = pacbound(*watched, code=1).stdout
    assert "Monitor of 3 claims\n" in said
    assert said.count("is at most 0.34 %.") == 3
    pacbound("report", "judge.json", "--monitor", "state.json", "-o", "page.html")
    page = (tmp_path / "page.html").read_text()
    assert page.count("Evidence over time") >= 3
    # Beside each claim, and beside all of them together.
    assert page.count("The monitor rang: ") == 2 * said.count("ALARM")
    assert "The monitor rang: judge.json: slices: ALARM" in page
    other = certify_judge(judged["v"], judged["y"], delta=0.05)
    with pytest.raises(InvalidValueError, match="not on this page"):
        write_report([other], tmp_path / "other.html", monitors=tmp_path / "state.json")


def test_a_calibration_without_a_confidence_needs_a_single_bin(
    pacbound: Any, tmp_path: Path, judged: dict[str, Any]
) -> None:
    asked: Any = {"prediction": judged["v"], "label": judged["y"], "delta": 0.05}
    for bins in ({}, {"n_bins": 2}, {"edges": [0, 0.5, 1]}):
        with pytest.raises(InvalidTypeError, match="n_bins=1"):
            calibrate(**asked, **bins)
    with pytest.raises((InvalidTypeError, InvalidValueError)):
        calibrate(**asked, edges="equal-mass")
    with pytest.raises(InvalidTypeError, match="confidence is missing"):
        certify_abstention(prediction=judged["v"], label=judged["y"], xi=0.1, delta=0.05)
    made = calibrate(**asked, n_bins=1)
    assert made.claim() == calibrate(np.zeros(1500), **asked, n_bins=1).claim()
    pl.DataFrame(judged).write_csv(tmp_path / "j.csv")
    columns = ("--prediction", "v", "--label", "y", "--delta", 0.05)
    pacbound("calibrate", "j.csv", *columns, "--n-bins", 1, "-o", "c.json")
    assert load_certificate(tmp_path / "c.json").claim() == made.claim()
    again = pacbound("verify", "c.json", "--data", "j.csv")
    assert "the data have the same counts, in the same files" in again.stdout
    assert "n_bins=1" in pacbound("calibrate", "j.csv", *columns, code=2).stderr
