"""The two long examples run as they are, and leave certificates that verify behind."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest

from pacbound import load_certificate

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.mark.slow
def test_a_warning_on_a_hospital_table_is_certified_reported_and_watched(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("sklearn", reason="the example needs scikit-learn")
    example = runpy.run_path(str(EXAMPLES / "hospital_table.py"))
    assert example["main"](["--folder", str(tmp_path)]) == 0
    said = capsys.readouterr().out
    assert "Month 1: no alarm" in said
    assert "Month 2: ALARM" in said
    warning, chances = (load_certificate(tmp_path / f"{name}.json") for name in _HOSPITAL)
    assert warning.certified
    assert warning.verify()
    assert chances.verify()
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert "simulated" in page
    # Patients, not rows: each counts once, however many measurements there are of it.
    assert "one positive row from each cluster that has any" in said
    held_out = example["cohort"](4_000, seed=2)
    assert len(set(held_out["patient"])) == 4_000 < len(held_out["patient"])


_HOSPITAL = ("warning", "chances")


@pytest.mark.slow
def test_a_router_is_certified_as_a_judge_grades_whom_people_checked(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    example = runpy.run_path(str(EXAMPLES / "judged_router.py"))
    assert example["main"](["--folder", str(tmp_path)]) == 0
    said = capsys.readouterr().out
    assert "Of all answers that the judge calls pass, people agree on" in said
    assert "The small model answered" in said
    assert "Week 2: no alarm" in said
    assert "ALARM" in said
    judge, router = (load_certificate(tmp_path / name) for name in ("judge.json", "router.json"))
    assert judge.verify()
    assert router.verify()
    assert router.certified
    assert "judge-model, simulated" in (tmp_path / "report.html").read_text(encoding="utf-8")
