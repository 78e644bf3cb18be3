"""`pacbound false-alarms`, end to end."""

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from pacbound import certify_false_alarms, load_certificate

Run = Callable[..., subprocess.CompletedProcess[str]]

ROWS = ("--score", "s", "--positive", "y")
CLAIM = ("--xi", 0.1, "--delta", 0.05)


@pytest.fixture
def columns() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    positive = rng.random(500) < 0.3
    return np.where(positive, rng.beta(6, 2, size=500), rng.beta(1, 6, size=500)), positive


@pytest.fixture
def table(tmp_path: Path, columns: tuple[np.ndarray, np.ndarray]) -> Path:
    score, positive = columns
    np.savez(tmp_path / "rows.npz", s=score, y=positive)
    return tmp_path / "rows.npz"


def test_the_certificate_from_a_file_makes_the_claim_of_the_arrays_and_is_applied(
    pacbound: Run, table: Path, columns: tuple[np.ndarray, np.ndarray]
) -> None:
    done = pacbound("false-alarms", table, *ROWS, *CLAIM, "-o", "f.json")
    assert "or any higher threshold" in done.stdout
    expected = certify_false_alarms(*columns, xi=0.1, delta=0.05)
    assert load_certificate(table.parent / "f.json").claim_digest == expected.claim_digest
    pacbound("verify", "f.json")
    said = json.loads(pacbound("apply", "f.json", table, "-o", "out.npz", "--json").stdout)
    assert said["flagged"] == expected.flags(columns[0]).sum()
