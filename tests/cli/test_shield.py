"""`pacbound shield`, end to end."""

import subprocess
from collections.abc import Callable
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from pacbound import Monitor, certify_shield, load_certificate
from pacbound.errors import InvalidValueError

Run = Callable[..., subprocess.CompletedProcess[str]]

COLUMNS = ("--score", "s", "--unsafe", "u")
CLAIM = ("--xi", 0.1, "--delta", 0.01)


@pytest.fixture
def table(tmp_path: Path) -> Path:
    """A row for each of 600 rollouts; three are lost at the start, and safe ones have no last
    danger."""
    rng = np.random.default_rng(0)
    unsafe = rng.random(600) < 0.2
    score = np.where(unsafe, rng.beta(5, 2, size=600), rng.beta(1, 5, size=600))
    score[np.flatnonzero(unsafe)[:3]] = -np.inf
    lines = ["id,s,u,final_score"]
    for i, value in enumerate(score.tolist()):
        lines.append(
            f"{i},{value!r},{'yes' if unsafe[i] else 'no'},{value if value < 0 else 0.9 * value}"
            if unsafe[i]
            else f"{i},{value!r},no,"
        )
    path = tmp_path / "rollouts.csv"
    path.write_text("\n".join(lines) + "\n")
    return path


def arrays(table: Path) -> tuple[list[float], list[bool], list[float | None]]:
    rows = [line.split(",") for line in table.read_text().splitlines()[1:]]
    return (
        [float(row[1]) for row in rows],
        [row[2] == "yes" for row in rows],
        [float(row[3]) if row[3] else None for row in rows],
    )


def test_the_certificate_from_a_file_makes_the_claim_of_the_arrays(
    pacbound: Run, table: Path
) -> None:
    scores, unsafe, _ = arrays(table)
    done = pacbound("shield", table, *COLUMNS, *CLAIM, "-o", "shield.json")
    assert "Hand over to the backup" in done.stdout
    loaded = load_certificate(table.parent / "shield.json")
    assert loaded.claim_digest == certify_shield(scores, unsafe, xi=0.1, delta=0.01).claim_digest
    assert loaded.provenance.columns == {"score": "s", "unsafe": "u"}
    pacbound("verify", "shield.json")


def test_a_shield_is_not_applied_to_rows(pacbound: Run, table: Path) -> None:
    pacbound("shield", table, *COLUMNS, *CLAIM, "-o", "shield.json")
    assert (
        "not applied to the rows"
        in pacbound("apply", "shield.json", table, "-o", "out.csv", code=2).stderr
    )


@pytest.mark.filterwarnings("default")
def test_steps_are_no_rollouts(pacbound: Run, tmp_path: Path) -> None:
    """A run of ten steps ends where it collides."""
    for name, ends in (("steps.csv", 1), ("safe.csv", 0)):
        lines = [
            f"{run},{step / 10},{int(step == 9) * ends}" for run in range(60) for step in range(10)
        ]
        (tmp_path / name).write_text("\n".join(["run,danger,collision", *lines]))
    asked = ("--score", "danger", "--unsafe", "collision", "--xi", 0.2, "--delta", 0.05)
    for more in ((), ("--clusters", "run", "--seed", 53)):
        said = pacbound("shield", "steps.csv", *asked, *more, code=2).stderr
        assert "run looks like the name of a rollout" in said
    pacbound("shield", "safe.csv", *asked, "-o", "safe.json")
    watched = ("monitor", "safe.json", "steps.csv", "--delta", 0.001)
    assert "run looks like the name of a rollout" in pacbound(*watched, code=2).stderr
    frame = pl.read_csv(tmp_path / "steps.csv")
    with pytest.raises(InvalidValueError, match="run looks like the name of a rollout"):
        Monitor(load_certificate(tmp_path / "safe.json"), delta=0.001).update(
            frame, columns={"unsafe": "collision"}
        )
    said = pacbound("shield", "safe.csv", *asked).stderr
    assert said.startswith("note: No row is unsafe, and values of run repeat")
