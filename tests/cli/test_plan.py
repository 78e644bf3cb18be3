"""`pacbound plan`: for a rate, for looks, and from a pilot."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest
from tests.cli.commands import roles

from pacbound import Tally, certify_cascade, certify_shield, plan_from_pilot, planned_looks
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


def test_a_rate_is_planned_as_ever(pacbound: Run) -> None:
    asked = ("plan", "rate", "--target", 0.02, "--expected", 0.01, "--delta", "1e-3")
    done = pacbound(*asked)
    assert done.stdout.startswith("2,923 labels certify a rate of at most 0.02 (delta = 0.001)")
    assert "From 3,048 labels on" in done.stdout
    assert json.loads(pacbound(*asked, "--json").stdout)["first"] == 2923


def test_looks_are_those_of_the_library(pacbound: Run) -> None:
    looks = ("looks", "--looks", "500,1000,2000", "--xi", 0.02, "--delta", 0.01)
    planned = planned_looks(0.02, delta=0.01, looks=[500, 1000, 2000])
    written = json.loads(pacbound("plan", *looks, "--json").stdout)
    assert tuple(written["largest_errors"]) == planned.largest_errors
    assert written["spent"] == planned.spent <= 0.01
    assert written["expected_labels"] == planned.expected_labels(0.01)
    said = pacbound("plan", *looks, "--expected", 0.005).stdout
    assert f"{planned.expected_labels(0.005):,.0f} labels are looked at on average" in said
    assert "never added" in said


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


@pytest.mark.parametrize(
    ("kind", "rate", "subject"),
    [
        ("recall", ("--target", 0.6), "a recall, target = 0.6"),
        ("precision", ("--target", 0.6), "a precision, target = 0.6"),
        ("false-alarms", ("--xi", 0.2), "a claim about false alarms, xi = 0.2"),
    ],
)
def test_what_is_planned_for_is_the_kind_that_is_named(
    pacbound: Run, pilot: Path, kind: str, rate: tuple[object, ...], subject: str
) -> None:
    asked = ("--kind", kind, *RECALL, *rate, "--delta", 0.05, *QUICK)
    assert f"Plan for {subject}," in pacbound("plan", "pilot", pilot, *asked).stdout


def test_labels_have_their_cost(pacbound: Run, pilot: Path) -> None:
    done = pacbound("plan", "pilot", pilot, *SHIELD, *QUICK, "--label-cost", 0.25)
    assert "300.00" in done.stdout
    assert "at a cost of 75.00" in done.stdout


def test_a_goal_out_of_reach_ends_with_three(pacbound: Run, pilot: Path) -> None:
    done = pacbound("plan", "pilot", pilot, *SHIELD, *QUICK, "--goal", 0.001, code=3)
    assert "No size up to 1,200 rollouts is enough" in done.stdout


def test_the_curve_is_drawn(pacbound: Run, pilot: Path) -> None:
    done = pacbound("plan", "pilot", pilot, *SHIELD, *QUICK, "--figure", "plan.svg")
    assert "Drawn into plan.svg." in done.stdout
    assert "<svg" in (pilot.parent / "plan.svg").read_text()


def test_looks_are_drawn(pacbound: Run, tmp_path: Path) -> None:
    looks = ("looks", "--looks", "500,1000,2000", "--xi", 0.02, "--delta", 0.01)
    assert "Drawn into looks.svg." in pacbound("plan", *looks, "--figure", "looks.svg").stdout
    assert "<svg" in (tmp_path / "looks.svg").read_text()
    said = pacbound("plan", *looks, "--figure", "looks.txt", code=2).stderr
    assert "no format that can be drawn" in said
    assert not (tmp_path / "looks.txt").exists()


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


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (DANGER, "xi is missing"),
        (RECALL, "target is missing"),
        ((*RECALL, "--xi", 0.1), "says nothing about a recall"),
        ((*DANGER, "--xi", 0.1, "--target", 0.9), "about a shield"),
        (("--kind", "abstention", "--column", "confidence=c"), "Pass either correct"),
        ((*roles(score="s", unsafe="nothing"), "--xi", 0.1), "nothing"),
        ((*roles(confidence="c", prediction="fast,slow"), "--xi", 0.1), "have no label"),
        ((*DANGER, "--xi", 2.0), "xi=2.0"),
        ((*DANGER, "--xi", 0.1, "--expected", 0.1), "an option of pacbound plan rate"),
        ((*DANGER, "--xi", 0.1, "--figure", "a.txt"), "--figure a.txt"),
        ((*DANGER, "--xi", 0.1, "--seed", -1), "--seed"),
        (("--xi", 0.1), "; calibration: confidence, correct, prediction, label"),
        (roles(score="s"), "The columns of score are not enough to count by"),
        (roles(scores="s", unsafe="u"), "Did you mean score=s?"),
        ((*CASCADE, "--column", "unsafe=u"), "a cascade has no role 'unsafe'"),
        ((*DANGER, "--column", "score=c"), "--column names score twice, s and c"),
        (("--column", "score"), "expected ROLE=NAME, for example score=risk"),
        (("--column", "score="), "expected ROLE=NAME, for example score=risk"),
    ],
)
def test_a_pilot_that_cannot_be_planned_from_is_refused(
    pacbound: Run, pilot: Path, options: tuple[object, ...], message: str
) -> None:
    done = pacbound("plan", "pilot", pilot, "--delta", 0.05, *options, *QUICK, code=2)
    assert message in done.stderr
    assert done.stdout == ""


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("s,u\n", "no rows"),
        ("s,u\n0.1,0\n0.2,0\n", "every row of it is 'safe'"),
    ],
)
def test_an_empty_pilot_and_one_of_one_class_are_refused(
    pacbound: Run, tmp_path: Path, text: str, message: str
) -> None:
    (tmp_path / "bad.csv").write_text(text)
    assert message in pacbound("plan", "pilot", "bad.csv", *SHIELD, code=2).stderr


def test_a_pilot_without_labels_where_models_differ_is_refused(
    pacbound: Run, tmp_path: Path
) -> None:
    (tmp_path / "bad.csv").write_text("c,f,s,y\n0.9,1,1,\n0.8,1,2,\n0.7,1,1,1\n")
    columns = roles(confidence="c", prediction="f,s", label="y")
    done = pacbound("plan", "pilot", "bad.csv", *columns, "--xi", 0.1, "--delta", 0.1, code=2)
    assert "label" in done.stderr


@pytest.mark.slow
@pytest.mark.skipif(
    not hasattr(os, "openpty"), reason="there are no pseudo-terminals on this system"
)
def test_a_bar_is_drawn_on_a_terminal(pilot: Path) -> None:
    ours, theirs = os.openpty()
    program = "from pacbound.cli import main; main()"
    call = [sys.executable, "-c", program, "plan", "pilot", str(pilot), *map(str, SHIELD + QUICK)]
    subprocess.run(
        call, stdout=subprocess.PIPE, stderr=theirs, check=True, env={**os.environ, "TERM": "xterm"}
    )
    os.close(theirs)
    shown = b""
    # It comes in pieces, and its end is an error.
    with suppress(OSError):
        while piece := os.read(ours, 65536):
            shown += piece
    os.close(ours)
    assert b"drawing" in shown
