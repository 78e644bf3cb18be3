"""`pacbound plan`: for a rate, for looks, and from a pilot."""

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from tests.cli.commands import roles

from pacbound import Tally, certify_cascade, certify_shield, plan_from_pilot
from pacbound.claims.cascade import CascadeCertificate

Run = Callable[..., subprocess.CompletedProcess[str]]


CASCADE = roles(confidence="c", prediction="fast,slow", label="y")
RECALL = roles(score="s", positive="u")
DANGER = roles(score="s", unsafe="u")
SHIELD = (*DANGER, "--xi", 0.05, "--delta", 0.05)
QUICK = ("--sizes", "300,1200", "--draws", 10)


@pytest.fixture
def pilot(tmp_path: Path) -> Path:
    """A pilot with the columns of every question."""
    rng = np.random.default_rng(0)
    rows = 400
    unsafe = rng.random(rows) < 0.1
    label = rng.integers(0, 3, size=rows)
    confidence = rng.beta(4, 1, size=rows)
    columns = {
        "s": np.where(unsafe, rng.beta(6, 2, size=rows), rng.beta(1, 6, size=rows)),
        "u": unsafe.astype(int),
        "c": confidence,
        "fast": np.where(rng.random(rows) < confidence, label, (label + 1) % 3),
        "slow": np.where(rng.random(rows) < 0.95, label, (label + 2) % 3),
        "y": label,
    }
    lines = [
        ",".join(columns),
        *(",".join(map(str, row)) for row in zip(*columns.values(), strict=True)),
    ]
    path = tmp_path / "pilot.csv"
    path.write_text("\n".join(lines) + "\n")
    return path


@pytest.mark.parametrize(
    ("columns", "kind", "unit"),
    [
        ((*DANGER, "--xi", 0.05), "shield", "rollouts"),
        ((*CASCADE, "--xi", 0.1), "cascade", "rows"),
        (roles(confidence="c", prediction="fast", label="y"), "calibration", "rows"),
        (
            (
                *("--kind", "abstention", "--xi", 0.15),
                *roles(confidence="c", prediction="fast", label="y"),
            ),
            "abstention",
            "rows",
        ),
        ((*RECALL, "--target", 0.5), "recall", "rows"),
        ((*RECALL, "--claim", "false-alarms", "--xi", 0.1), "false-alarms", "rows"),
    ],
)
def test_a_pilot_of_every_kind_is_planned_from(
    pacbound: Run, pilot: Path, columns: tuple[object, ...], kind: str, unit: str
) -> None:
    done = pacbound("plan", "pilot", pilot, *columns, "--delta", 0.05, *QUICK)
    assert done.stdout.startswith(("Plan for a ", "Plan for an "))
    assert f"{kind.replace('-', ' ')}, " in done.stdout.partition("\n")[0]
    assert f"from a pilot of 400 {unit}" in done.stdout
    assert "nothing here is guaranteed" in done.stdout
    assert done.stderr == ""
    written = json.loads(
        pacbound("plan", "pilot", pilot, *columns, "--delta", 0.05, *QUICK, "--json").stdout
    )
    assert written["kind"] == kind
    assert written["status"] == "estimate"
    assert [point["rows"] for point in written["points"]] == [300, 1200]


def test_the_plan_is_that_of_the_library(pacbound: Run, pilot: Path) -> None:
    tally = Tally.count("shield", data=pilot, score="s", unsafe="u")
    plan = plan_from_pilot(
        tally, xi=0.05, delta=0.05, sizes=[300, 1200], draws=10, rng=np.random.default_rng(7)
    )
    done = pacbound("plan", "pilot", pilot, *SHIELD, *QUICK, "--seed", 7, "--json")
    assert json.loads(done.stdout) == {"figure": None, **json.loads(json.dumps(plan.to_dict()))}


def test_labels_have_their_cost(pacbound: Run, pilot: Path) -> None:
    done = pacbound("plan", "pilot", pilot, *SHIELD, *QUICK, "--label-cost", 0.25)
    assert "300.00" in done.stdout
    assert "at a cost of 75.00" in done.stdout


def test_a_goal_out_of_reach_ends_with_three(pacbound: Run, pilot: Path) -> None:
    done = pacbound("plan", "pilot", pilot, *SHIELD, *QUICK, "--goal", 0.001, code=3)
    assert "No size up to 1,200 rollouts is enough" in done.stdout


def cascade() -> CascadeCertificate:
    return certify_cascade([0.9] * 500, [[1, 1]] * 500, [1] * 500, xi=0.02, delta=0.01)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("rate", "--expected", 0.1), "Missing option '--target'"),
        (("rate", "--target", 0.1), "Missing option '--expected'"),
        (("rate", "--target", 0.02, "--expected", 0.03), "expected"),
        (("looks", "--looks", "100,200"), "Missing option '--xi'"),
        (("looks", "--looks", "100,a", "--xi", 0.1), "not a list of whole numbers"),
        (("looks", "--looks", "200,100", "--xi", 0.1), "rising numbers"),
        (("looks", "--looks", "5,9", "--xi", 0.1), "The last look needs 22 trials"),
        (("looks", "--looks", "100", "--target", 0.1), "an option of pacbound plan rate"),
        (("rate", "--target", 0.1, "--expected", 0.05, "--seed", 3), "plan pilot"),
        (("pilot", "a.csv", "--looks", "100"), "an option of pacbound plan looks"),
    ],
)
def test_options_that_make_no_plan_are_refused(
    pacbound: Run, tmp_path: Path, arguments: tuple[object, ...], message: str
) -> None:
    cascade().save(tmp_path / "c.json")
    certify_shield([0.1] * 500, [False] * 500, xi=0.02, delta=0.01).save(tmp_path / "s.json")
    assert message in pacbound("plan", *arguments, "--delta", 0.1, code=2).stderr
