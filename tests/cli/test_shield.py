"""`pacbound shield`, end to end."""

import json
import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from pacbound import Tally, certify_shield, load_certificate

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


def test_rollouts_in_several_files_are_counted_together(pacbound: Run, tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    score, unsafe = rng.random(400), rng.random(400) < 0.1
    for part, rows in enumerate((slice(0, 150), slice(150, None))):
        np.savez(
            tmp_path / f"{part}.npz",
            s=score[rows],
            u=unsafe[rows],
            f=np.where(unsafe, score / 2, np.nan)[rows],
        )
    done = pacbound("shield", "0.npz", "1.npz", *COLUMNS, *CLAIM, "--json")
    whole = certify_shield(
        data=Tally.count("shield", score=score, unsafe=unsafe), xi=0.1, delta=0.01
    )
    assert json.loads(done.stdout)["claim_digest"] == whole.claim_digest


def test_a_refusal_ends_with_code_3_and_says_what_it_would_take(pacbound: Run, table: Path) -> None:
    done = pacbound(
        "shield", table, *COLUMNS, "--xi", 0.006, "--delta", 0.01, "-o", "no.json", code=3
    )
    assert "REFUSED" in done.stdout
    assert re.search(r"About [\d,]+ rollouts would do if that share stays the same", done.stdout)
    assert "plan for more. Always brake." in done.stdout
    assert not load_certificate(table.parent / "no.json").certified


def test_a_shield_is_not_applied_to_rows(pacbound: Run, table: Path) -> None:
    pacbound("shield", table, *COLUMNS, *CLAIM, "-o", "shield.json")
    assert (
        "not applied to the rows"
        in pacbound("apply", "shield.json", table, "-o", "out.csv", code=2).stderr
    )


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((*COLUMNS, "--xi", 1.0, "--delta", 0.1), "xi=1.0"),
        ((*COLUMNS, "--xi", 0.1, "--delta", 2), "delta=2.0"),
        (("--score", "nothing", "--unsafe", "u", *CLAIM), "no column 'nothing'"),
        (("--score", "u", "--unsafe", "u", *CLAIM), "both name the column 'u'"),
        (("--score", "s", "--unsafe", "id", *CLAIM), "expected true or false"),
        (("--score", "id", "--unsafe", "u", *CLAIM), "id[2] is 2.0"),
        (("--score", "final_score", "--unsafe", "u", *CLAIM), "not a number"),
    ],
)
def test_bad_usage_is_explained(
    pacbound: Run, table: Path, arguments: tuple[object, ...], message: str
) -> None:
    assert message in pacbound("shield", table, *arguments, "-o", "shield.json", code=2).stderr
    assert not (table.parent / "shield.json").exists()


def test_a_look_is_certified_and_verified(pacbound: Run, table: Path) -> None:
    done = pacbound("shield", table, *COLUMNS, *CLAIM, "--looks", "300,600,1200", "-o", "look.json")
    assert "look 2 of 3" in done.stdout
    pacbound("verify", "look.json")
    certificate = load_certificate(table.parent / "look.json")
    scores, unsafe, _ = arrays(table)
    planned = certify_shield(scores, unsafe, xi=0.1, delta=0.01, looks=[300, 600, 1200])
    assert certificate.claim_digest == planned.claim_digest


@pytest.mark.parametrize(
    ("looks", "message"),
    [
        ("300,500", "There are 600 rollouts, and no look was planned there"),
        ("300,six", "not a list of whole numbers"),
        ("600,300", "numbers that rise"),
    ],
)
def test_a_number_of_rollouts_that_was_not_planned_is_refused(
    pacbound: Run, table: Path, looks: str, message: str
) -> None:
    done = pacbound("shield", table, *COLUMNS, *CLAIM, "--looks", looks, "-o", "a.json", code=2)
    assert message in done.stderr
    assert not (table.parent / "a.json").exists()


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
    said = pacbound("shield", "safe.csv", *asked).stderr
    assert said.startswith("note: No row is unsafe, and values of run repeat")


def test_an_option_that_takes_one_value_is_typed_once(pacbound: Run, table: Path) -> None:
    said = pacbound("shield", table, *COLUMNS, *CLAIM, "--unsafe", "id", code=2).stderr
    assert "--unsafe was typed 2 times: type it once" in said


def test_a_missing_outcome_is_called_missing(pacbound: Run, tmp_path: Path) -> None:
    (tmp_path / "gaps.csv").write_text("s,u\n0.1,0\n0.2,\n0.3,1\n")
    said = pacbound("shield", "gaps.csv", *COLUMNS, *CLAIM, code=2).stderr
    assert "u[1] is missing" in said
    assert "positive" not in said
