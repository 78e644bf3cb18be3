"""`pacbound verify`: its exit codes let `verify && deploy` deploy only what is certified."""

import json
from pathlib import Path

import numpy as np
import pytest
from tests.cli.conftest import Run

from pacbound import calibrate, certify_cascade, certify_shield, documents
from pacbound.claims.certificate import Certificate


def _cascade(rows: int) -> Certificate:
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 3, size=rows)
    confidence = rng.random(rows)
    fast = np.where(rng.random(rows) < 0.3 * (1 - confidence), labels + 1, labels)
    return certify_cascade(confidence, np.column_stack([fast, labels]), labels, xi=0.1, delta=0.05)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A certificate of each fate."""
    _cascade(2000).save(tmp_path / "certified.json")
    _cascade(10).save(tmp_path / "refused.json")
    document = json.loads((tmp_path / "certified.json").read_text())
    document["claim"]["tables"][0]["thresholds"] = [0.0]
    document["claim_digest"] = documents.digest(document["claim"])
    (tmp_path / "forged.json").write_text(json.dumps(document))
    (tmp_path / "broken.json").write_text("{")
    return tmp_path


@pytest.mark.parametrize(
    ("names", "code"),
    [
        (["certified"], 0),
        (["refused"], 3),
        (["broken"], 2),
        (["forged"], 1),
        (["certified", "refused"], 3),
        (["refused", "broken"], 2),
        (["certified", "broken", "refused", "forged"], 1),
        (["missing", "certified"], 2),
    ],
)
def test_the_worst_certificate_decides_the_exit_code(
    folder: Path, pacbound: Run, names: list[str], code: int
) -> None:
    assert folder.exists()
    pacbound("verify", *(f"{name}.json" for name in names), code=code)


def test_programs_read_what_they_may_act_on(folder: Path, pacbound: Run) -> None:
    certify_shield(np.linspace(0, 1, 500), np.arange(500) > 480, xi=0.05, delta=0.05).save(
        folder / "shield.json"
    )
    calibrate([0.9, 0.2], [True, False], delta=0.1).save(folder / "calibration.json")
    names = ["certified", "refused", "shield", "calibration"]
    done = pacbound("verify", "--json", *(f"{name}.json" for name in names), code=3)
    cascade, refused, shield, calibration = map(json.loads, done.stdout.splitlines())
    assert {"certificate", "ok", "kind", "certified", "differences", "digests"} <= set(calibration)
    assert (cascade["ok"], cascade["certified"], cascade["kind"]) == (True, True, "cascade")
    assert (cascade["xi"], cascade["delta"], cascade["differences"]) == (0.1, 0.05, [])
    assert 0 <= cascade["thresholds"][0] <= 1
    assert set(cascade["digests"]) == {"claim", "counts"}
    assert (refused["ok"], refused["certified"], refused["thresholds"]) == (True, False, ["+inf"])
    assert 0 <= shield["threshold"] <= 1
    assert calibration["delta"] == 0.1


def test_nothing_of_a_claim_that_is_not_verified_is_repeated_to_programs(
    folder: Path, pacbound: Run
) -> None:
    assert folder.exists()
    done = pacbound("verify", "--json", "forged.json", "broken.json", code=1)
    forged, broken = map(json.loads, done.stdout.splitlines())
    assert (forged["ok"], forged["certified"]) == (False, False)
    assert "claim.tables[0].thresholds[0]" in forged["differences"][0]
    assert not {"thresholds", "xi", "delta"} & set(forged)
    assert (broken["ok"], "error" in broken) == (False, True)


@pytest.mark.parametrize(
    ("name", "code"), [("certified", 0), ("refused", 3), ("forged", 1), ("broken", 2)]
)
def test_exact_arithmetic_comes_to_the_same_verdict(
    folder: Path, pacbound: Run, name: str, code: int
) -> None:
    assert folder.exists()
    done = pacbound("verify", "--exact", f"{name}.json", code=code)
    assert ("taken on trust: the counts along the walks" in done.stdout) == (code in (0, 3))
    lines = pacbound("verify", "--exact", "--json", f"{name}.json", code=code).stdout.splitlines()
    package, exact = map(json.loads, lines)
    assert package["ok"] == exact["ok"] == (code in (0, 3))
    assert exact["exact"] is True
    assert exact.get("certified", False) == (code == 0)
