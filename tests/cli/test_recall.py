"""`pacbound recall` and `pacbound apply` of its certificate, end to end."""

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from pacbound import certify_recall, load_certificate

Run = Callable[..., subprocess.CompletedProcess[str]]

COLUMNS = ("--score", "s", "--positive", "y")
CLAIM = ("--target", 0.9, "--delta", 0.05)


@pytest.fixture
def table(tmp_path: Path) -> Path:
    rng = np.random.default_rng(0)
    positive = rng.random(500) < 0.3
    score = np.where(positive, rng.beta(4, 1, size=500), rng.beta(1, 4, size=500))
    rows = [f"{s!r},{int(y)}" for s, y in zip(score.tolist(), positive.tolist(), strict=True)]
    (tmp_path / "rows.csv").write_text("s,y\n" + "\n".join(rows) + "\n")
    return tmp_path / "rows.csv"


def test_the_certificate_from_a_file_makes_the_claim_of_the_arrays_and_is_applied(
    pacbound: Run, table: Path
) -> None:
    done = pacbound("recall", table, *COLUMNS, *CLAIM, "-o", "r.json")
    assert "Flag a row where its score is at least" in done.stdout
    rows = [line.split(",") for line in table.read_text().splitlines()[1:]]
    score, positive = [float(row[0]) for row in rows], [row[1] == "1" for row in rows]
    expected = certify_recall(score, positive, target=0.9, delta=0.05)
    assert load_certificate(table.parent / "r.json").claim_digest == expected.claim_digest
    pacbound("verify", "r.json")
    said = json.loads(pacbound("apply", "r.json", table, "-o", "out.csv", "--json").stdout)
    lines = (table.parent / "out.csv").read_text().splitlines()
    assert lines[0] == "s,y,pac_flag"
    flags = [line.rsplit(",", 1)[1] == "1" for line in lines[1:]]
    assert flags == expected.flags(score).tolist()
    assert said["flagged"] == sum(flags)


def test_a_planned_look_is_certified_and_any_other_number_of_positives_is_not(
    pacbound: Run, table: Path
) -> None:
    positives = sum(line.endswith(",1") for line in table.read_text().splitlines())
    looks = f"60,{positives},400"
    pacbound("recall", table, *COLUMNS, *CLAIM, "--looks", looks, "-o", "r.json")
    certificate = load_certificate(table.parent / "r.json")
    assert certificate.claim()["looks"] == [60, positives, 400]
    pacbound("verify", "r.json")
    pacbound("tally", "recall", table, *COLUMNS, "-o", "t.json")
    pacbound("certify", "recall", "t.json", *CLAIM, "--looks", looks, "-o", "again.json")
    again = load_certificate(table.parent / "again.json")
    assert again.claim_digest == certificate.claim_digest
    said = pacbound("recall", table, *COLUMNS, *CLAIM, "--looks", "60,400", code=2).stderr
    assert f"There are {positives} positives, and no look was planned there" in said


def test_a_table_without_positives_ends_with_2_and_leaves_nothing_behind(
    pacbound: Run, tmp_path: Path
) -> None:
    (tmp_path / "none.csv").write_text("s,y\n0.5,0\n0.25,0\n")
    done = pacbound("recall", "none.csv", *COLUMNS, *CLAIM, "-o", "r.json", code=2)
    assert "None of 2 rows is positive" in done.stderr
    assert "Name the column" in done.stderr
    assert not (tmp_path / "r.json").exists()
    pacbound("tally", "recall", "none.csv", *COLUMNS, "-o", "t.json")
    assert "is positive" in pacbound("certify", "recall", "t.json", *CLAIM, code=2).stderr


def test_too_few_positives_are_refused_with_how_many_it_takes(
    pacbound: Run, tmp_path: Path
) -> None:
    (tmp_path / "few.csv").write_text("s,y\n0.5,1\n0.25,0\n")
    done = pacbound("recall", "few.csv", *COLUMNS, *CLAIM, "-o", "r.json", code=3)
    assert "1 positives cannot certify" in done.stdout
    assert "29 positives would do" in done.stdout
    pacbound("verify", "r.json", code=3)


def test_bad_usage_ends_with_2(pacbound: Run, table: Path) -> None:
    done = pacbound("recall", table, *COLUMNS, "--target", 1.5, "--delta", 0.05, code=2)
    assert "target=1.5 is not a share" in done.stderr
    done = pacbound("recall", table, "--score", "y2", "--positive", "y", *CLAIM, code=2)
    assert "y2" in done.stderr
