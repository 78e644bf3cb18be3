"""The gates of `pacbound verify`: a pipeline lets through what it asked for, and nothing else."""

import json
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from tests.cli.conftest import Run

from pacbound import (
    calibrate,
    certify_cascade,
    certify_recall,
    certify_shield,
    certify_together,
)

SCORES = np.linspace(0.01, 0.99, 900)
NONE = np.zeros(900, dtype=bool)


@pytest.fixture(autouse=True)
def certificates(tmp_path: Path) -> None:
    shield = partial(certify_shield, SCORES, NONE, xi=0.05)
    calibration = partial(calibrate, SCORES, ~NONE)
    shield(delta=0.01).save(tmp_path / "shield.json")
    certify_shield(SCORES[:20], NONE[:20], xi=0.05, delta=0.01).save(tmp_path / "refused.json")
    calibration(delta=0.02).save(tmp_path / "calibration.json")
    certify_recall(SCORES, ~NONE, target=0.95, delta=0.01).save(tmp_path / "recall.json")
    small = partial(
        certify_recall,
        SCORES,
        ~NONE,
        target=0.9,
        groups=np.arange(900) // 440,
        small_groups="leave-out",
    )
    small(delta=0.01).save(tmp_path / "small.json")
    certify_together({"r": small}, delta=0.01).save(tmp_path / "together.json")
    certify_cascade(
        SCORES,
        np.ones((900, 2), dtype=int),
        ~NONE,
        xi=0.02,
        delta=0.01,
        groups=NONE.astype(int),
    ).save(tmp_path / "groups.json")
    certify_together({"s": shield}, delta=0.01).save(tmp_path / "bundle.json")
    certify_together({"s": shield, "c": calibration}, delta=0.01).save(tmp_path / "mixed.json")


@pytest.mark.parametrize(
    ("name", "gates"),
    [
        ("shield", ["--require-certified", "--kind", "shield", "--max-xi", 0.05]),
        ("shield", ["--max-delta", 0.01]),
        ("shield", ["--kind", "cascade", "--kind", "shield"]),
        ("calibration", ["--kind", "calibration", "--max-delta", 0.02, "--require-certified"]),
        ("recall", ["--max-xi", 0.05]),
        ("groups", ["--kind", "cascade", "--max-xi", 0.02]),
        ("groups", ["--require-all-groups"]),
        ("small", ["--require-certified"]),
        ("bundle", ["--require-all-groups"]),
        ("bundle", ["--kind", "bundle", "--max-xi", 0.05, "--max-delta", 0.01]),
    ],
)
def test_what_was_asked_for_passes(pacbound: Run, name: str, gates: list[object]) -> None:
    assert "verified" in pacbound("verify", f"{name}.json", *gates).stdout


@pytest.mark.parametrize(
    ("name", "gates", "said"),
    [
        ("refused", ["--require-certified"], "it is a refusal, and --require-certified"),
        ("shield", ["--kind", "cascade"], "its kind is shield, and --kind asks for cascade"),
        ("groups", ["--kind", "shield"], "its kind is cascade"),
        ("shield", ["--max-xi", 0.01], "xi = 0.05, and --max-xi asks for at most 0.01"),
        ("shield", ["--max-xi", 0.0499999], "xi = 0.05"),
        ("shield", ["--max-delta", 0.001], "delta = 0.01, and --max-delta asks for at most 0.001"),
        ("calibration", ["--max-xi", 0.5], "a calibration claims no xi"),
        ("recall", ["--max-xi", 0.04], "target = 0.95 lets 0.05 go wrong"),
        ("bundle", ["--max-xi", 0.01], "s: xi = 0.05"),
        ("small", ["--require-all-groups"], "groups without a certificate: 2, and --require-all"),
        ("together", ["--require-all-groups"], "r: groups without a certificate: 2"),
        ("mixed", ["--max-xi", 0.05], "c: a calibration claims no xi"),
    ],
)
def test_what_was_not_asked_for_is_stopped_with_the_reason(
    pacbound: Run, name: str, gates: list[object], said: str
) -> None:
    done = pacbound("verify", f"{name}.json", *gates, code=1)
    assert f"{name}.json: verified, but not let through: " in done.stderr
    assert said in done.stderr
    assert done.stdout == ""


def test_one_that_is_stopped_stops_all(pacbound: Run) -> None:
    pacbound("verify", "shield.json", "refused.json", "--require-certified", code=1)
    pacbound("verify", "shield.json", "calibration.json", "--max-delta", 0.01, code=1)


@pytest.mark.parametrize(
    ("gates", "said"),
    [
        (["--kind", "casade"], "--kind casade is not a kind of certificate: expected one of abst"),
        (["--max-xi", 1.5], "xi=1.5"),
        (["--max-delta", 0], "delta=0"),
    ],
)
def test_a_gate_that_cannot_be_is_bad_usage(pacbound: Run, gates: list[object], said: str) -> None:
    assert said in pacbound("verify", "shield.json", *gates, code=2).stderr


def test_no_gate_opens_for_what_does_not_verify(pacbound: Run, tmp_path: Path) -> None:
    document = json.loads((tmp_path / "shield.json").read_text())
    document["claim"]["xi"] = 0.001
    (tmp_path / "forged.json").write_text(json.dumps(document))
    done = pacbound("verify", "forged.json", "--max-xi", 0.01, code=1)
    assert "NOT VERIFIED" in done.stderr
