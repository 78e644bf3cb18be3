"""`pacbound false-alarms`, end to end."""

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pacbound import certify_false_alarms, load_certificate

Run = Callable[..., subprocess.CompletedProcess[str]]

ROWS = ("--score", "s", "--positive", "y")
ROLLOUTS = ("--score", "s", "--unsafe", "y")
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


@pytest.mark.parametrize(
    ("rows", "options", "what"),
    [
        ("s,y\n0.5,1\n", ("false-alarms",), "None of 1 rows is one that could raise a false alarm"),
    ],
)
def test_a_share_of_no_rows_at_all_is_bad_data(
    pacbound: Run, tmp_path: Path, rows: str, options: tuple[object, ...], what: str
) -> None:
    (tmp_path / "none.csv").write_text(rows)
    command, *asked = options
    said = pacbound(command, "none.csv", *ROWS, *CLAIM, *asked, "-o", "f.json", code=2)
    assert what in said.stderr
    assert not (tmp_path / "f.json").exists()


@pytest.mark.parametrize(
    ("counted", "claim", "asked"),
    [
        (ROWS, "false-alarms", ()),
        (ROLLOUTS, "false-alarms", ()),
    ],
)
def test_tallies_of_parts_make_the_claim_of_all_rows(
    pacbound: Run,
    tmp_path: Path,
    table: Path,
    counted: tuple[str, ...],
    claim: str,
    asked: tuple[Any, ...],
) -> None:
    with np.load(table) as arrays:
        whole = dict(arrays)
    for place, part in enumerate((slice(0, 200), slice(200, None))):
        np.savez(tmp_path / f"part{place}.npz", s=whole["s"][part], y=whole["y"][part])
        pacbound("tally", claim, f"part{place}.npz", *counted, "-o", f"t{place}.json")
    parts = ("t0.json", "t1.json")
    pacbound("certify", claim, *parts, *CLAIM, *asked, "-o", "parts.json")
    pacbound(claim, table, *counted, *CLAIM, *asked, "-o", "whole.json")
    one, other = (load_certificate(tmp_path / name) for name in ("parts.json", "whole.json"))
    assert one.claim_digest == other.claim_digest


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("false-alarms",), "positive is missing: pass it, or unsafe where rows are rollouts"),
        (
            ("false-alarms", "--positive", "y", "--unsafe", "y"),
            "positive and unsafe were both passed",
        ),
    ],
)
def test_bad_usage_ends_with_2(
    pacbound: Run, table: Path, arguments: tuple[str, ...], message: str
) -> None:
    command, *options = arguments
    done = pacbound(command, table, "--score", "s", *options, *CLAIM, code=2)
    assert message in done.stderr


def test_a_claim_that_tallies_do_not_support_ends_with_2(pacbound: Run, table: Path) -> None:
    counted = ("--confidence", "s", "--correct", "y", "-o", "t.json")
    pacbound("tally", "calibration", table, *counted)
    done = pacbound("certify", "false-alarms", "t.json", *CLAIM, code=2)
    assert "tallies for a calibration, not for a claim about false alarms" in done.stderr
    pacbound("tally", "recall", table, *ROWS, "-o", "u.json")
    done = pacbound("certify", "false-alarms", "u.json", "--delta", 0.05, code=2)
    assert "Missing option '--xi'" in done.stderr
