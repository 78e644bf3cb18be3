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
