"""`pacbound calibrate`, `apply` and `verify`, end to end."""

import csv
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from pacbound import calibrate, load_certificate

Run = Callable[..., subprocess.CompletedProcess[str]]

CALIBRATE = ("--confidence", "c", "--correct", "ok", "--delta", "0.01")


def columns(path: Path) -> dict[str, list[str]]:
    with path.open(newline="") as file:
        rows = list(csv.DictReader(file))
    return {name: [row[name] for row in rows] for name in rows[0]}


def test_the_certificate_from_a_file_makes_the_claim_of_the_arrays(
    pacbound: Run, predictions: Path
) -> None:
    pacbound("calibrate", predictions, *CALIBRATE, "--n-bins", 10, "-o", "cal.json")
    table = columns(predictions)
    arrays = calibrate(
        np.array(table["c"], dtype=float), np.array(table["ok"], dtype=int), delta=0.01, n_bins=10
    )
    assert load_certificate(predictions.parent / "cal.json").claim_digest == arrays.claim_digest


def test_counting_one_file_twice_is_refused(pacbound: Run, predictions: Path) -> None:
    done = pacbound("calibrate", predictions, predictions, *CALIBRATE, code=2)
    assert "twice" in done.stderr


@pytest.mark.parametrize(
    ("content", "arguments", "message"),
    [
        ("", CALIBRATE, "is empty"),
        ("c,ok\n", CALIBRATE, "no rows"),
        ("c,ok\n0.5,1\n0.6\n", CALIBRATE, "Expected 2 columns, got 1"),
        ("c,ok\n0.5,1\nabc,0\n", CALIBRATE, r"c[1] is 'abc', which is not a number"),
        ("c,ok\n0.5,1\n,0\n", CALIBRATE, "c[1] is ''"),
        ("c,ok\n0.5,1\nnan,0\n", CALIBRATE, "c[1] is nan"),
        ("c,ok\n0.5,1\n1.5,0\n", CALIBRATE, "c[1] is 1.5"),
        ("c,ok\n0.5,maybe\n", CALIBRATE, "ok[0] is 'maybe'"),
        ("c,ok\n0.5,\n", CALIBRATE, "ok[0] is missing"),
        ("c,right\n0.5,1\n", CALIBRATE, "no column 'ok'"),
        ("c,ok,ok\n0.5,1,1\n", CALIBRATE, "2 columns named 'ok'"),
        ("c;ok\n0.5;1\n", CALIBRATE, "no column 'c'"),
        ("c,ok\n0.5,1\n", (*CALIBRATE[:-1], "1.2"), "delta=1.2 is not a failure probability"),
        ("c,ok\n0.5,1\n", (*CALIBRATE, "--n-bins", "0"), "--n-bins=0 is not a number of bins"),
        ("c,ok\n0.5,1\n", (*CALIBRATE, "--edges", "0,a,1"), "expected numbers from 0 to 1 such as"),
        (
            "c,ok\n0.5,1\n",
            (*CALIBRATE, "--edges", "0,1,0.5"),
            "run from 0.0 to 0.5|not increasing",
        ),
        ("c,ok\n0.5,1\n", ("--confidence", "c", "--delta", "0.1"), "either correct, or both"),
        (
            "c,ok\n0.5,1\n",
            ("--confidence", "c", "--prediction", "ok", "--delta", "0.1"),
            "either correct, or both",
        ),
    ],
)
def test_bad_input_is_explained_and_leaves_nothing_behind(
    pacbound: Run, tmp_path: Path, content: str, arguments: tuple[str, ...], message: str
) -> None:
    (tmp_path / "rows.csv").write_text(content)
    done = pacbound("calibrate", "rows.csv", *arguments, "-o", "cal.json", code=2)
    assert any(part in done.stderr for part in message.split("|")), done.stderr
    assert done.stdout == ""
    assert [path.name for path in tmp_path.iterdir()] == ["rows.csv"]


@pytest.mark.slow
def test_an_error_half_way_through_apply_leaves_no_file(pacbound: Run, predictions: Path) -> None:
    folder = predictions.parent
    pacbound("calibrate", predictions, *CALIBRATE, "-o", "cal.json")
    rows = "c\n" + "0.5\n" * 2_000_000 + "oops\n"
    (folder / "long.csv").write_text(rows)
    done = pacbound("apply", "cal.json", "long.csv", "-o", "out.csv", code=2)
    assert "c[2000000] is 'oops'" in done.stderr
    assert sorted(path.name for path in folder.iterdir()) == [
        "cal.json",
        "long.csv",
        "predictions.csv",
    ]


def test_an_interrupt_ends_with_130_and_no_output(predictions: Path) -> None:
    folder = predictions.parent
    code, errors = 0, ""
    # On a busy machine the command may be done before the interrupt arrives; then it is given more
    # to do.
    for rows in (3_000_000, 20_000_000):
        (folder / "long.csv").write_text("c,ok\n" + "0.5,1\n" * rows)
        code, errors = _interrupted(folder)
        if code != 0:
            break
        (folder / "cal.json").unlink()
    assert code == 130
    assert "interrupted" in errors
    assert not (folder / "cal.json").exists()


def _interrupted(folder: Path) -> tuple[int, str]:
    # Whoever runs the tests in the background may have them ignore interrupts, and children inherit
    # that.
    program = (
        "import signal; signal.signal(signal.SIGINT, signal.default_int_handler); from "
        "pacbound.cli import main; main()"
    )
    command = [
        sys.executable,
        "-c",
        program,
        "calibrate",
        "long.csv",
        *CALIBRATE,
        "-o",
        "cal.json",
    ]
    with subprocess.Popen(command, cwd=folder, stderr=subprocess.PIPE, text=True) as process:
        while process.poll() is None and "long.csv" not in _open_files(process.pid):
            time.sleep(0.01)
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=120)
    return process.returncode, errors


def _open_files(pid: int) -> str:
    links = []
    for entry in Path(f"/proc/{pid}/fd").iterdir():
        try:
            links.append(str(entry.readlink()))
        except FileNotFoundError:
            continue
    return " ".join(links)


def test_usage_errors_and_help_have_their_codes(pacbound: Run) -> None:
    pacbound("calibrate", code=2)
    pacbound("no-such-verb", code=2)
    assert "calibrate" in pacbound("--help").stdout
    assert pacbound("--version").stdout.startswith("pacbound ")
