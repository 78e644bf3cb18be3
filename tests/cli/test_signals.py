"""A command that is told to end cleans up behind it, and says by its exit code what ended it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from pacbound import calibrate

pytestmark = pytest.mark.skipif(os.name != "posix", reason="signals of POSIX")

COMMANDS = {
    "calibrate": [
        "calibrate",
        "rows.csv",
        "--confidence",
        "c",
        "--correct",
        "ok",
        "--delta",
        "0.1",
    ],
    "apply": ["apply", "cal.json", "rows.csv", "--column", "confidence=c"],
}
PROGRAM = """
import signal, sys, time
from pathlib import Path
from pacbound.cli import main
from pacbound.sources import embedded_duckdb as embedded
from pacbound.tally import columns

def wait(*_):
    Path("at-work").touch()
    time.sleep({seconds})
    sys.exit(9)

def connect(config):
    # What a query that spills leaves in its folder.
    Path(config["temp_directory"], "spilled").write_bytes(b"rows")
    Path("spill").write_text(config["temp_directory"])
    wait()

signal.signal(signal.SIGHUP, {hangup})
signal.signal(signal.SIGINT, signal.default_int_handler)
columns.checked_scores = lambda *_, **__: wait()
embedded.duckdb.connect = connect
main()
"""
"""The command line, made to wait in the middle of its work: `apply` with its output begun,
`calibrate` with its folder for what does not fit into memory in use."""


def start(
    folder: Path, verb: str, *, seconds: int = 120, hangup: str = "signal.SIG_DFL"
) -> subprocess.Popen[bytes]:
    """The command as a process that has begun its work, and waits in it."""
    program = PROGRAM.format(seconds=seconds, hangup=hangup)
    process = subprocess.Popen(
        [sys.executable, "-c", program, *COMMANDS[verb], "-o", "out.csv"],
        cwd=folder,
        env=os.environ | {"TMPDIR": str(folder / "temporary")},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    )
    for _ in range(1200):
        if (folder / "at-work").exists() or process.poll() is not None:
            break
        time.sleep(0.1)
    assert process.poll() is None, process.communicate()
    return process


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    rng = np.random.default_rng(0)
    scores = zip(rng.random(500).tolist(), rng.random(500) < 0.5, strict=True)
    lines = [f"{c!r},{int(ok)}" for c, ok in scores]
    (tmp_path / "rows.csv").write_text("\n".join(["c,ok", *lines]) + "\n")
    (tmp_path / "out.csv").write_text("old")
    (tmp_path / "temporary").mkdir()
    calibrate([0.5] * 50, [1] * 50, delta=0.1).save(tmp_path / "cal.json")
    return tmp_path


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
@pytest.mark.parametrize("verb", COMMANDS)
def test_a_signal_that_ends_a_command_leaves_nothing_temporary(
    folder: Path, verb: str, number: signal.Signals
) -> None:
    process = start(folder, verb)
    before = {path.name for path in folder.iterdir()}
    process.send_signal(number)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 128 + number
    assert errors.decode() == f"ended by {number.name}; nothing was left half-written\n"
    assert (folder / "out.csv").read_text() == "old"
    if verb == "apply":
        assert any(name.endswith(".tmp") for name in before)
    else:
        assert not Path((folder / "spill").read_text()).exists()
    assert not [path for path in folder.iterdir() if path.name.endswith(".tmp")]
    assert list((folder / "temporary").iterdir()) == []


@pytest.mark.slow
@pytest.mark.parametrize("verb", COMMANDS)
def test_ctrl_c_leaves_nothing_half_written(folder: Path, verb: str) -> None:
    process = start(folder, verb)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 130
    assert errors.decode() == "interrupted; nothing was left half-written\n"
    assert (folder / "out.csv").read_text() == "old"
    assert not [path for path in folder.iterdir() if path.name.endswith(".tmp")]
    assert list((folder / "temporary").iterdir()) == []


@pytest.mark.long
def test_a_signal_that_is_ignored_stays_ignored(folder: Path) -> None:
    process = start(folder, "apply", seconds=3, hangup="signal.SIG_IGN")
    process.send_signal(signal.SIGHUP)
    process.communicate(timeout=60)
    assert process.returncode == 9


def test_ctrl_c_while_a_command_is_being_loaded_prints_no_traceback() -> None:
    """A module that is looked up as the first of the command line raises what Ctrl-C raises."""
    program = (
        "import sys\n"
        "class Interrupt:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if name == 'pacbound.cli.app': raise KeyboardInterrupt\n"
        "sys.meta_path.insert(0, Interrupt())\n"
        "from pacbound.cli import main; main()"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout) == (130, "")
    assert done.stderr == "interrupted; nothing was left half-written\n"
