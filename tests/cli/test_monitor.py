"""`pacbound monitor`: files and streams in order, a state that carries on, exit codes, and what
programs read."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.cli.commands import roles
from tests.cli.conftest import Run
from tests.products import standing_for

from pacbound import Monitor, certify_shield, load_certificate

Feed = Callable[[str | bytes], None]

RUN = "from pacbound.cli import main; main()"
SHIELD = ["monitor", "shield.json", *roles(unsafe="u"), "--delta", "1e-3"]


@pytest.fixture(autouse=True)
def _certificates(tmp_path: Path) -> None:
    certify_shield([0.1] * 500, [False] * 500, xi=0.02, delta=0.01).save(tmp_path / "shield.json")


def _write(path: Path, losses: Any) -> Path:
    path.write_text("u\n" + "\n".join(map(str, np.asarray(losses, dtype=int).tolist())) + "\n")
    return path


@pytest.fixture
def feed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Feed]:
    """Lets standard input hold what it is given."""
    with ExitStack() as opened:

        def hold(text: str | bytes) -> None:
            path = tmp_path / "stream"
            path.write_bytes(text if isinstance(text, bytes) else text.encode())
            monkeypatch.setattr(sys, "stdin", opened.enter_context(path.open()))

        yield hold


def test_silence_is_zero_and_an_alarm_is_one(pacbound: Run, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    _write(tmp_path / "monday.csv", rng.random(500) < 0.01)
    _write(tmp_path / "tuesday.csv", rng.random(500) < 0.3)
    quiet = pacbound(*SHIELD, "monday.csv", "--state", "s.json")
    assert "No alarm. Silence proves nothing." in quiet.stdout
    loud = pacbound(*SHIELD, "tuesday.csv", "--state", "s.json", code=1)
    assert "ALARM at label 5" in loud.stdout
    assert "however long you watch, is at most 0.1 %" in loud.stdout
    _write(tmp_path / "wednesday.csv", [0] * 300)
    # It stays rung.
    pacbound(*SHIELD, "wednesday.csv", "--state", "s.json", code=1)


@pytest.mark.parametrize("kind", ["csv", "jsonl", "npz", "parquet"])
def test_every_format_gives_the_same_evidence(pacbound: Run, tmp_path: Path, kind: str) -> None:
    losses = np.random.default_rng(2).random(400) < 0.03
    path = tmp_path / f"rows.{kind}"
    if kind == "csv":
        _write(path, losses)
    elif kind == "jsonl":
        path.write_text("".join(f'{{"u": {str(bool(one)).lower()}}}\n' for one in losses))
    elif kind == "npz":
        np.savez(path, u=losses)
    else:
        import pyarrow
        import pyarrow.parquet

        pyarrow.parquet.write_table(pyarrow.table({"u": losses}), path)
    found = json.loads(pacbound(*SHIELD, path.name, "--json").stdout)
    monitor = Monitor(load_certificate(tmp_path / "shield.json"), delta=1e-3)
    monitor.update(losses)
    assert found["evidence"] == monitor.evidence
    assert found["seen"] == monitor.seen


def test_the_same_file_is_not_taken_in_twice(pacbound: Run, tmp_path: Path) -> None:
    _write(tmp_path / "rows.csv", [0] * 50)
    _write(tmp_path / "copy.csv", [0] * 50)
    pacbound(*SHIELD, "rows.csv", "--state", "s.json")
    before = (tmp_path / "s.json").read_bytes()
    for again in ("rows.csv", "copy.csv"):
        said = pacbound(*SHIELD, again, "--state", "s.json", code=2).stderr
        assert "were taken in before" in said
    assert (tmp_path / "s.json").read_bytes() == before
    assert "were taken in before" in pacbound(*SHIELD, "rows.csv", "copy.csv", code=2).stderr


def test_a_bad_row_leaves_the_state_as_it_was(pacbound: Run, tmp_path: Path) -> None:
    _write(tmp_path / "good.csv", [0] * 50)
    pacbound(*SHIELD, "good.csv", "--state", "s.json")
    before = (tmp_path / "s.json").read_bytes()
    (tmp_path / "bad.csv").write_text("u\n" + "0\n" * 10 + "2\n")
    _write(tmp_path / "other.csv", [1] * 50)
    said = pacbound(*SHIELD, "other.csv", "bad.csv", "--state", "s.json", code=2).stderr
    assert "bad.csv" in said
    assert (tmp_path / "s.json").read_bytes() == before


@pytest.mark.parametrize(
    ("options", "match"),
    [
        (["--delta", "1e-2"], "a promise cannot be changed on the way"),
        (["--false-alarms", "1e6"], "a promise cannot be changed on the way"),
        (["--false-alarms", "never"], "is not a promise"),
        (["--delta", "2"], "not a failure probability"),
        (["--column", "loss=u"], "this shield certificate has no role 'loss'. Its roles are"),
        (["--column", "unsafe=u"], "--column names unsafe twice"),
        (["--state", "cut.json"], "not the state of a monitor"),
        (["--state", "shield.json"], "is read as CERT"),
        (["--state", "nowhere/s.json"], "no folder"),
        (["--state", "other.json"], "is of another certificate"),
        (["--claim", "brake"], "is about a bundle"),
    ],
)
def test_bad_usage_is_two_and_changes_nothing(
    pacbound: Run, tmp_path: Path, options: list[str], match: str
) -> None:
    _write(tmp_path / "first.csv", [0] * 50)
    _write(tmp_path / "rows.csv", [0] * 60)
    pacbound(*SHIELD, "first.csv", "--state", "s.json")
    before = (tmp_path / "s.json").read_bytes()
    (tmp_path / "cut.json").write_bytes(before[:300])
    cut = (tmp_path / "cut.json").read_bytes()
    stricter = certify_shield([0.1] * 500, [False] * 500, xi=0.05, delta=0.01)
    Monitor(stricter, delta=1e-3).save(tmp_path / "other.json")
    typed = [*map(str, SHIELD), "rows.csv", "--state", "s.json", *options]
    if options[0] in typed[: -len(options)] and options[0] != "--column":
        # In place of what it says above.
        at = typed.index(options[0])
        del typed[at : at + 2]
    said = pacbound(*typed, code=2).stderr
    assert match in said
    assert (tmp_path / "s.json").read_bytes() == before
    assert (tmp_path / "cut.json").read_bytes() == cut


def test_prometheus_reads_a_file_that_is_whole(pacbound: Run, tmp_path: Path) -> None:
    _write(tmp_path / "rows.csv", [0] * 49 + [1])
    pacbound(*SHIELD, "rows.csv", "--prometheus", "shield.prom")
    lines = (tmp_path / "shield.prom").read_text().splitlines()
    values = dict(line.rsplit(" ", 1) for line in lines if not line.startswith("#"))
    by_name = {name.partition("{")[0]: value for name, value in values.items()}
    assert float(by_name["pacbound_monitor_labels_total"]) == 50
    assert float(by_name["pacbound_monitor_alarms_total"]) == 0
    assert any('outcome="unsafe"' in name and value == "1" for name, value in values.items())
    assert next(line for line in lines if line.startswith("# TYPE")).endswith(" counter")


def test_columns_are_those_of_the_certificate_unless_they_are_named(
    pacbound: Run, tmp_path: Path
) -> None:
    rng = np.random.default_rng(4)
    confidence = rng.random(2000)
    right = rng.random(2000) < confidence
    np.savez(tmp_path / "rows.npz", c=confidence, ok=right, other=right)
    pacbound(
        "calibrate", "rows.npz", "--confidence", "c", "--correct", "ok", "--delta", "0.01",
        "--n-bins", "4", "-o", "calibration.json",
    )  # fmt: skip
    command = ["monitor", "calibration.json", "rows.npz", "--delta", "1e-3", "--json"]
    found = json.loads(pacbound(*command).stdout)
    assert found["labels"] == 2000
    assert json.loads(pacbound(*command, "--column", "correct=other").stdout) == found


def test_rows_before_a_bad_line_are_kept_and_counted(
    pacbound: Run, tmp_path: Path, feed: Feed
) -> None:
    feed("u\n" + "0\n" * 30 + "0,0\n" + "0\n" * 5)
    said = pacbound(*SHIELD, "-", "--state", "s.json", code=2).stderr
    assert "30 rows of the stream were taken in" in said
    assert Monitor.load(tmp_path / "s.json", load_certificate(tmp_path / "shield.json")).rows == 30


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="needs signals")
@pytest.mark.parametrize(
    ("how", "code"),
    standing_for(
        [("SIGTERM", 128 + 15), ("SIGINT", 130), ("SIGKILL", -9)], [("SIGKILL", -9)], rest="long"
    ),
)
def test_a_stream_that_pauses_and_is_ended_by_a_signal_leaves_what_it_took_in(
    tmp_path: Path, how: str, code: int
) -> None:
    running = subprocess.Popen(
        [sys.executable, "-c", RUN, *SHIELD, "-", "--state", "s.json"],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        cwd=tmp_path,
    )
    assert running.stdin is not None
    running.stdin.write(b"u\n" + b"0\n" * 100 + b"1\n")
    running.stdin.flush()
    for _ in range(600):
        if (tmp_path / "s.json").exists():
            break
        time.sleep(0.1)
    os.kill(running.pid, getattr(signal, how))
    assert running.wait(60) == code
    running.stdin.close()
    monitor = Monitor.load(tmp_path / "s.json", load_certificate(tmp_path / "shield.json"))
    whole = Monitor(monitor.certificate, delta=1e-3)
    whole.update([False] * 100 + [True])
    assert monitor.to_dict() == whole.to_dict()


@pytest.mark.slow
def test_a_state_that_another_process_uses_is_left_alone(pacbound: Run, tmp_path: Path) -> None:
    _write(tmp_path / "first.csv", [0] * 50)
    _write(tmp_path / "rows.csv", [0] * 60)
    pacbound(*SHIELD, "first.csv", "--state", "s.json")
    before = (tmp_path / "s.json").read_bytes()
    # A monitor of a stream holds its state as long as it runs.
    streaming = subprocess.Popen(
        [sys.executable, "-c", RUN, *SHIELD, "-", "--state", "s.json"],
        cwd=tmp_path,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert streaming.stdin is not None
    streaming.stdin.write("u\n0\n")
    streaming.stdin.flush()
    for _ in range(600):
        if (tmp_path / "s.json").read_bytes() != before:
            break
        time.sleep(0.1)
    held = (tmp_path / "s.json").read_bytes()
    said = pacbound(*SHIELD, "rows.csv", "--state", "s.json", code=2).stderr
    assert "in use by another process" in said
    assert (tmp_path / "s.json").read_bytes() == held
    streaming.communicate()
    pacbound(*SHIELD, "rows.csv", "--state", "s.json")
    certificate = load_certificate(tmp_path / "shield.json")
    assert Monitor.load(tmp_path / "s.json", certificate).labels == 111


def test_the_claims_of_a_bundle_are_watched_on_their_own_columns(
    pacbound: Run, tmp_path: Path
) -> None:
    rng = np.random.default_rng(0)
    wrong = rng.random(1000) < 0.1
    np.savez(tmp_path / "rows.npz", s=np.where(wrong, 0.8, 0.1), y=wrong, z=1 - wrong)
    declared = """
delta = 0.02
[found]
claim = "recall"
data = "rows.npz"
score = "s"
positive = "y"
target = 0.9
[quiet]
claim = "false-alarms"
data = "rows.npz"
score = "s"
positive = "y"
xi = 0.1
"""
    (tmp_path / "claims.toml").write_text(declared)
    pacbound("together", "claims.toml", "-o", "all.json")
    watching = ("monitor", "all.json", "--delta", 1e-3)
    done = pacbound(*watching, "rows.npz", "--state", "s.json")
    assert "Monitor of 2 claims\n" in done.stdout
    np.savez(tmp_path / "loud.npz", s=[0.8] * 50, y=[False] * 50)
    before = (tmp_path / "s.json").read_bytes()
    pacbound(*watching, "rows.npz", "--state", "s.json", code=2)
    assert (tmp_path / "s.json").read_bytes() == before
    said = json.loads(pacbound(*watching, "loud.npz", "--state", "s.json", "--json", code=1).stdout)
    assert said["alarms"].keys() == {"quiet"}
    assert said["claims"]["quiet"]["labels"] == (~wrong).sum() + 50
    pacbound(*watching, "loud.npz", "--prometheus", "all.prom", code=1)
    scraped = (tmp_path / "all.prom").read_text()
    assert scraped.count("# TYPE pacbound_monitor_alarms_total counter") == 1
    for name, rang in {"found": 0, "quiet": 1}.items():
        (line,) = [
            line
            for line in scraped.splitlines()
            if line.startswith(f'pacbound_monitor_alarms_total{{claim="{name}",')
        ]
        assert line.endswith(f" {rang}")
    alone = ("monitor", "all.json", "loud.npz", "--delta", 1e-3, "--claim")
    assert "Monitor of a false-alarms certificate" in pacbound(*alone, "quiet", code=1).stdout
    assert "There is no claim 'loud'" in pacbound(*alone, "loud", code=2).stderr
    for options in (("--column", "score=s"), ("--figure", "f.png")):
        done = pacbound(*watching, "loud.npz", *options, code=2)
        assert "goes with one claim" in done.stderr
    assert "goes with one claim" in pacbound(*watching, "-", code=2).stderr
