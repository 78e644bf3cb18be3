"""A shield that is certified from rollouts says what they are of: its claim depends on it."""

import zipfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("gymnasium", reason="rollouts need the extra `shield`")
pytest.importorskip("joblib", reason="rollouts need the extra `shield`")

from tests.shield.cars import CarWithClearance, labelled

from pacbound import Tally, certify_shield, load_certificate
from pacbound.claims.task_record import common_task, read_task
from pacbound.errors import CertificateError, InvalidValueError
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
        identity={"danger": "model of 3 May"},
    )


def test_the_certificate_names_what_its_claim_depends_on(rollouts: Rollouts) -> None:
    certificate = rollouts.certify(xi=0.3, delta=0.05, about={"owner": "Ada"})
    about = certificate.provenance.about
    assert about["environment"].startswith("CarWithClearance ")
    assert about["policy"].startswith("drive ")
    assert about["backup"].startswith("brake ")
    assert about["danger"] == "danger known as 'model of 3 May'"
    assert (about["horizon"], about["backup-steps"], about["owner"]) == ("12", "20", "Ada")
    assert int(about["clearance-checks"].split()[0]) == rollouts.checked.sum() > 0
    assert certificate.horizon == 12
    assert "all rollouts of at most 12 steps" in certificate.summary()
    assert certificate.verify()


def test_its_threshold_is_that_of_the_arrays(rollouts: Rollouts) -> None:
    plain = certify_shield(rollouts.score, rollouts.unsafe, xi=0.3, delta=0.05)
    assert rollouts.certify(xi=0.3, delta=0.05).threshold == plain.threshold


def test_folders_and_archives_keep_what_rollouts_are_of_and_text_does_not(
    rollouts: Rollouts, folder: Path, tmp_path: Path
) -> None:
    rollouts.save(tmp_path / "r.npz")
    rollouts.save(tmp_path / "r.csv")
    for kept in (folder, tmp_path / "r.npz"):
        assert Rollouts.load(kept).about == rollouts.about
        assert Rollouts.load(kept).certify(xi=0.3, delta=0.05).horizon == 12
    text = Rollouts.load(tmp_path / "r.csv")
    assert text.about == {"clearance-checks": rollouts.about["clearance-checks"]}
    assert text.certify(xi=0.3, delta=0.05).horizon is None


def test_an_archive_with_its_task_is_still_a_table(rollouts: Rollouts, tmp_path: Path) -> None:
    rollouts.save(tmp_path / "r.npz")
    counted = Tally.count("shield", data=tmp_path / "r.npz", score="score", unsafe="unsafe")
    assert (counted.cells == rollouts.tally().cells).all()
    assert (counted.counts == rollouts.tally().counts).all()


def test_states_that_were_all_simulated_are_said_to_be(tmp_path: Path) -> None:
    found = labelled(
        CarWithClearance,
        drive,
        brake,
        danger,
        seeds=range(5),
        horizon=4,
        backup_steps=20,
        trust_clearance=False,
    )
    certificate = found.certify(xi=0.9, delta=0.5)
    certificate.save(tmp_path / "c.json")
    about = load_certificate(tmp_path / "c.json").provenance.about
    assert about["clearance-checks"] == "every state was simulated, none trusted"


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


def test_a_file_says_its_horizon_to_python_too(rollouts: Rollouts, tmp_path: Path) -> None:
    path = tmp_path / "r.npz"
    rollouts.save(path)
    asked: dict[str, Any] = {"data": path, "xi": 0.3, "delta": 0.05}
    found = certify_shield("score", "unsafe", **asked, about={"owner": "Ada"})
    expected = rollouts.certify(xi=0.3, delta=0.05, about={"owner": "Ada"})
    assert found.horizon == 12
    assert found.provenance.about == expected.provenance.about
    assert certify_shield("score", "unsafe", **asked, horizon=12).claim() == expected.claim()
    with pytest.raises(InvalidValueError, match="horizon is 1,000, and the files are of 12"):
        certify_shield("score", "unsafe", **asked, horizon=1000)


def test_files_of_several_tasks_are_refused(rollouts: Rollouts, tmp_path: Path) -> None:
    other = replace(rollouts, task={**rollouts.task, "horizon": 13})
    for name, each in (("a", rollouts), ("b", rollouts), ("c", other)):
        each.save(tmp_path / f"{name}.npz")
    rollouts.save(tmp_path / "d.csv")
    a, b, c, d = (str(tmp_path / name) for name in ("a.npz", "b.npz", "c.npz", "d.csv"))
    both = common_task([a, b])
    assert both["horizon"] == 12
    assert both["clearance_checks"] == 2 * int(rollouts.checked.sum())
    assert common_task([a, d]) == common_task([d]) == {}
    for paths in ([a, c], [a, d, c]):
        with pytest.raises(InvalidValueError, match=r"different tasks \(horizon\)"):
            common_task(paths)
    asked: dict[str, Any] = {"xi": 0.3, "delta": 0.05}
    (tmp_path / "b.npz").unlink()
    for data in ([a, c], str(tmp_path / "*.npz")):
        with pytest.raises(InvalidValueError, match=r"different tasks \(horizon\)"):
            certify_shield("score", "unsafe", data=data, **asked)
    trusting = replace(rollouts, task={**rollouts.task, "trust_clearance": False})
    trusting.save(c)
    assert certify_shield("score", "unsafe", data=[a, c], **asked).n == 2 * len(rollouts)


@pytest.mark.parametrize("text", ["{", "[]", '{"horizon": true, "policy": 3}', ""])
def test_a_task_that_is_none_is_refused_or_passed_over(tmp_path: Path, text: str) -> None:
    np.savez(tmp_path / "r.npz", score=np.zeros(3))
    with zipfile.ZipFile(tmp_path / "r.npz", "a") as archive:
        archive.writestr("task.json", text)
    if text.startswith('{"'):
        assert read_task(tmp_path / "r.npz") == {}
    else:
        with pytest.raises(CertificateError, match=r"task\.json"):
            read_task(tmp_path / "r.npz")


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
