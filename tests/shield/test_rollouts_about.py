"""A shield that is certified from rollouts says what they are of: its claim depends on it."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("gymnasium", reason="rollouts need the extra `shield`")
pytest.importorskip("joblib", reason="rollouts need the extra `shield`")

from tests.shield.cars import CarWithClearance, labelled

from pacbound import load_certificate
from pacbound.claims.task_record import common_task
from pacbound.shield import Rollouts


def drive(seen: np.ndarray) -> int:
    return 1 if seen[1] < 3 else 0


def brake(seen: np.ndarray) -> int:
    return -1


def danger(seen: np.ndarray) -> float:
    return float(min(1.0, (1 + seen[1]) ** 2 / (1 + seen[0])))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("rollouts") / "folder"


@pytest.fixture(scope="module")
def rollouts(folder: Path) -> Rollouts:
    return labelled(
        CarWithClearance,
        drive,
        brake,
        danger,
        seeds=range(200),
        horizon=12,
        backup_steps=20,
        check_clearance=0.5,
        folder=folder,
        identity="model of 3 May",
    )


def test_the_certificate_names_what_its_claim_depends_on(rollouts: Rollouts) -> None:
    certificate = rollouts.certify(xi=0.3, delta=0.05, about={"owner": "Ada"})
    about = certificate.provenance.about
    named = {
        part: about[part] for part in ("identity", "environment", "policy", "backup", "danger")
    }
    assert named == {
        "identity": "model of 3 May",
        "environment": "CarWithClearance",
        "policy": "drive",
        "backup": "brake",
        "danger": "danger",
    }
    assert (about["horizon"], about["backup-steps"], about["owner"]) == ("12", "20", "Ada")
    assert int(about["clearance-checks"].split()[0]) == rollouts.checked.sum() > 0
    assert certificate.horizon == 12
    assert "all rollouts of at most 12 steps" in certificate.summary()
    assert certificate.verify()


def test_folders_and_archives_keep_what_rollouts_are_of(
    rollouts: Rollouts, folder: Path, tmp_path: Path
) -> None:
    rollouts.save(tmp_path / "r.npz")
    for kept in (folder, tmp_path / "r.npz"):
        assert Rollouts.load(kept).about == rollouts.about
        assert Rollouts.load(kept).certify(xi=0.3, delta=0.05).horizon == 12


def test_the_command_line_takes_the_task_from_the_archive(
    rollouts: Rollouts, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("typer", reason="the command line needs the extra `cli`")
    from typer.testing import CliRunner

    from pacbound.cli.app import app

    monkeypatch.chdir(tmp_path)
    rollouts.save("r.npz")
    columns = "--score score --unsafe unsafe"
    command = f"shield r.npz {columns} --xi 0.3 --delta 0.05 --about owner=Ada -o c.json"
    assert CliRunner().invoke(app, command.split()).exit_code == 0
    certificate = load_certificate("c.json")
    expected = rollouts.certify(xi=0.3, delta=0.05, about={"owner": "Ada"})
    assert certificate.claim() == expected.claim()
    assert certificate.provenance.about == expected.provenance.about
    for horizon in ("7", "1000"):
        refused = CliRunner().invoke(app, [*command.split(), "--horizon", horizon])
        assert refused.exit_code == 2
        assert "the files are of 12" in refused.output
    assert load_certificate("c.json").claim() == expected.claim()


def test_readings_of_the_danger_that_failed_are_said_and_many_are_a_fault(
    rollouts: Rollouts, tmp_path: Path
) -> None:
    assert "danger-failures" not in rollouts.about
    steps = int(rollouts.steps.sum())
    few, many = np.zeros_like(rollouts.failures), np.ones_like(rollouts.failures)
    few[0] = 1
    told = replace(rollouts, failures=few)
    assert told.about["danger-failures"].startswith(f"1 of {steps:,} readings of the danger failed")
    assert "mend" not in told.about["danger-failures"]
    loud = replace(rollouts, failures=many)
    assert "mend the danger model" in loud.about["danger-failures"]
    assert "mend the danger model" in repr(loud)
    assert "readings of the danger failed" in loud.certify(xi=0.3, delta=0.05).summary()
    loud.save(tmp_path / "loud.npz")
    told.save(tmp_path / "told.npz")
    both = common_task([str(tmp_path / "loud.npz"), str(tmp_path / "told.npz")])
    assert both["danger_failures"] == len(many) + 1
