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
from tests.cli.commands import COMMANDS, roles, write_folder
from tests.cli.conftest import Run

from pacbound import Monitor, calibrate, certify_cascade, certify_shield, load_certificate

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


def test_days_in_turn_lead_to_the_state_of_all_days_at_once(pacbound: Run, tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    days = [rng.random(300) < 0.02 for _ in range(3)]
    for day, losses in enumerate(days):
        _write(tmp_path / f"day{day}.csv", losses)
        pacbound(*SHIELD, f"day{day}.csv", "--state", "each.json")
    pacbound(*SHIELD, "day*.csv", "--state", "all.json")
    assert (tmp_path / "each.json").read_bytes() == (tmp_path / "all.json").read_bytes()
    monitor = Monitor(load_certificate(tmp_path / "shield.json"), delta=1e-3)
    monitor.update(np.concatenate(days))
    resumed = Monitor.load(tmp_path / "all.json", monitor.certificate)
    assert resumed.evidence == monitor.evidence


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


def test_programs_read_all_that_is_known(pacbound: Run, tmp_path: Path) -> None:
    _write(tmp_path / "rows.csv", [0, 1] * 20)
    command = [*SHIELD, "rows.csv", "--json", "--false-alarms", "one per 1e5 labels"]
    found = json.loads(pacbound(*command, code=1).stdout)
    assert found["alarm"]["label"] == found["alarms"][0]
    assert found["false_alarms"] == "one per 100,000 labels"
    assert found["rows"] == found["labels"] == 40
    assert "mean time to a false alarm is at least 100,000 labels" in found["promise"]
    assert found["certificate"].startswith("sha256:")


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
    said = pacbound(*SHIELD, "rows.csv", "--state", "s.json", *options, code=2).stderr
    assert match in said
    assert (tmp_path / "s.json").read_bytes() == before
    assert (tmp_path / "cut.json").read_bytes() == cut


def test_a_changed_or_refused_certificate_is_not_monitored(pacbound: Run, tmp_path: Path) -> None:
    _write(tmp_path / "rows.csv", [0] * 50)
    document = json.loads((tmp_path / "shield.json").read_text())
    document["claim"]["xi"] = 0.5
    (tmp_path / "shield.json").write_text(json.dumps(document))
    assert "changed" in pacbound(*SHIELD, "rows.csv", "--state", "s.json", code=2).stderr
    certify_shield([0.1], [False], xi=0.02, delta=0.01).save(tmp_path / "shield.json")
    assert "is a refusal" in pacbound(*SHIELD, "rows.csv", "--state", "s.json", code=2).stderr
    assert not (tmp_path / "s.json").exists()


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


def test_a_figure_is_drawn(pacbound: Run, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    _write(tmp_path / "rows.csv", [0] * 50)
    pacbound(*SHIELD, "rows.csv", "--figure", "evidence.png")
    assert (tmp_path / "evidence.png").read_bytes().startswith(b"\x89PNG")


def _cascade_rows(tmp_path: Path) -> tuple[Any, ...]:
    rng, n = np.random.default_rng(3), 800
    confidence, label = rng.random(n), rng.integers(0, 3, n)
    slow = np.where(rng.random(n) < 0.9, label, (label + 1) % 3)
    fast = np.where(rng.random(n) < 0.97, slow, (label + 2) % 3)
    certificate = certify_cascade(
        [0.9] * 900 + [0.1] * 100, [[1, 1]] * 900 + [[0, 1]] * 100, [1] * 1000, xi=0.05, delta=0.05
    )
    certificate.save(tmp_path / "cascade.json")
    names = np.array(["cat", "dog", "cow"])
    lines = ["id,c,fast,slow,y"] + [
        f"{i},{float(confidence[i])!r},{names[fast[i]]},{names[slow[i]]},{names[label[i]]}"
        for i in range(n)
    ]
    (tmp_path / "rows.csv").write_text("\n".join(lines) + "\n")
    monitor = Monitor(certificate, delta=1e-3)
    predictions = np.column_stack([names[fast], names[slow]])
    monitor.update({"confidence": confidence, "prediction": predictions, "label": names[label]})
    return certificate, monitor, lines


CASCADE = [
    "monitor",
    "cascade.json",
    *roles(confidence="c", prediction="fast,slow", label="y"),
    "--delta",
    "1e-3",
]


def test_files_and_streams_of_a_cascade_follow_the_one_rule_of_classes(
    pacbound: Run, tmp_path: Path, feed: Feed
) -> None:
    _, monitor, lines = _cascade_rows(tmp_path)
    found = json.loads(pacbound(*CASCADE, "rows.csv", "--json").stdout)
    assert (found["evidence"], found["seen"]) == (monitor.evidence, monitor.seen)
    feed("\r\n".join(lines))
    streamed = json.loads(pacbound(*CASCADE, "-", "--json").stdout)
    assert streamed == found
    keys = lines[0].split(",")
    rows = [dict(zip(keys, line.split(","), strict=True)) for line in lines[1:]]
    text = "\n".join(json.dumps({**row, "c": float(row["c"])}) for row in rows)
    feed(b"\xef\xbb\xbf" + text.encode() + b"\n\n")
    assert json.loads(pacbound(*CASCADE, "-", "--json").stdout) == found


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


@pytest.mark.parametrize("kind", ["abstention", "recall"])
def test_abstention_and_recall_are_watched_from_files(
    pacbound: Run, tmp_path: Path, kind: str
) -> None:
    rng = np.random.default_rng(6)
    score = rng.random(4000)
    flag = rng.random(4000) < score
    np.savez(tmp_path / "rows.npz", s=score, ok=flag)
    if kind == "abstention":
        made = ["abstain", "--confidence", "s", "--correct", "ok", "--xi", "0.2"]
        named = roles(confidence="s", correct="ok")
    else:
        made = ["recall", "--score", "s", "--positive", "ok", "--target", "0.9"]
        named = roles(score="s", positive="ok")
    pacbound(made[0], "rows.npz", *made[1:], "--delta", "0.01", "-o", "certificate.json")
    np.savez(tmp_path / "later.npz", s=score[::-1], ok=flag[::-1])
    command = ["monitor", "certificate.json", "later.npz", "--delta", "1e-3", "--json"]
    found = json.loads(pacbound(*command).stdout)
    assert found["rows"] == 4000 > found["labels"] == sum(found["seen"].values()) > 0
    assert json.loads(pacbound(*command, *named).stdout) == found
    np.savez(tmp_path / "bad.npz", s=score, ok=~flag)
    command[2] = "bad.npz"
    assert json.loads(pacbound(*command, code=1).stdout)["alarm"]["label"] > 0
    said = pacbound(*command, "--column", "unsafe=ok", code=2).stderr
    assert f"this {kind} certificate has no role 'unsafe'" in said


def test_a_certificate_of_arrays_asks_for_the_columns(pacbound: Run, tmp_path: Path) -> None:
    calibrate([0.9] * 100, [True] * 100, delta=0.01).save(tmp_path / "calibration.json")
    np.savez(tmp_path / "rows.npz", c=[0.9], ok=[True])
    said = pacbound("monitor", "calibration.json", "rows.npz", "--delta", "1e-3", code=2).stderr
    assert "name those of the rows with --column ROLE=NAME. Its roles are confidence" in said


@pytest.mark.parametrize(
    ("text", "match"),
    [
        ("", "no rows"),
        ("u\n", "no rows"),
        ("v\n1\n", "no column 'u'"),
        ("u,u\n1,1\n", "has 2 columns named 'u'"),
        ("u\n0\n0,1\n", "line 3: 2 values where the heading has 1"),
        ('u\n0\n"1\n', "line 3"),
        ("u\n0\nmaybe\n", "'maybe'"),
        ('{"u": 0}\n{"u": [1]}\n', "line 2: u is a list"),
        ('{"u": 0}\n{"u": 0\n', "line 2"),
        ('{"u": 0}\n3\n', "line 2: expected one JSON object"),
        ('{"u": 0, "u": 1}\n', "twice"),
        ('{"v": 0}\n', "''"),
        (b"u\n0\n\xff\xfe\n", "u[1]"),
    ],
)
def test_a_stream_that_is_no_table_is_refused(
    pacbound: Run,
    tmp_path: Path,
    feed: Feed,
    text: str | bytes,
    match: str,
) -> None:
    feed(text)
    assert match in pacbound(*SHIELD, "-", "--state", "s.json", code=2).stderr


def test_rows_before_a_bad_line_are_kept_and_counted(
    pacbound: Run, tmp_path: Path, feed: Feed
) -> None:
    feed("u\n" + "0\n" * 30 + "0,0\n" + "0\n" * 5)
    said = pacbound(*SHIELD, "-", "--state", "s.json", code=2).stderr
    assert "30 rows of the stream were taken in" in said
    assert Monitor.load(tmp_path / "s.json", load_certificate(tmp_path / "shield.json")).rows == 30


def test_a_stream_beside_files_is_refused(pacbound: Run, tmp_path: Path) -> None:
    _write(tmp_path / "rows.csv", [0] * 50)
    assert "files were named too" in pacbound(*SHIELD, "-", "rows.csv", code=2).stderr


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="needs signals")
@pytest.mark.parametrize(("how", "code"), [("SIGTERM", 128 + 15), ("SIGINT", 130), ("SIGKILL", -9)])
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


def test_groups_of_a_cascade_are_watched_from_files(pacbound: Run, tmp_path: Path) -> None:
    where = ["north", "south"] * 500
    certify_cascade(
        [0.9] * 1000, [[1, 1]] * 1000, [1] * 1000, xi=0.05, delta=0.05, groups=where
    ).save(tmp_path / "groups.json")
    np.savez(tmp_path / "rows.npz", d=[0, 1] * 40, g=where[:80])
    columns = roles(loss="d", groups="g")
    done = pacbound("monitor", "groups.json", "rows.npz", *columns, "--delta", 1e-3, code=1)
    assert "in group 'south'" in done.stdout


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


def test_a_figure_of_no_format_is_refused_before_rows_are_taken_in(
    pacbound: Run, tmp_path: Path
) -> None:
    write_folder(tmp_path)
    line, _ = COMMANDS["monitor"]
    refused = pacbound(*line, "--state", "s.json", "--figure", "x.txt", code=2)
    assert refused.stderr == (
        "error: --figure x.txt has no format that can be drawn: expected a name that ends in "
        ".png, .svg, .pdf.\n"
    )
    assert not (tmp_path / "s.json").exists()


def test_a_row_of_each_cluster_that_the_certificate_names_is_drawn(
    pacbound: Run, tmp_path: Path, feed: Feed
) -> None:
    rng = np.random.default_rng(3)
    lines = ["s,ill,patient"]
    lines += [f"{rng.random():.3f},{int(rng.random() < 0.7)},p{i // 3}" for i in range(900)]
    (tmp_path / "rows.csv").write_text("\n".join(lines) + "\n")
    named = ["--score", "s", "--positive", "ill", "--clusters", "patient", "--seed", "7519371"]
    asked = ["--target", "0.5", "--delta", "0.1", "-o", "c.json"]
    pacbound("recall", "rows.csv", *named, *asked)
    drawn = load_certificate(tmp_path / "c.json").draw
    watch = ("monitor", "c.json", "--delta", "1e-3", "--json")
    found = json.loads(pacbound(*watch, "rows.csv").stdout)
    assert drawn is not None
    assert 200 < found["labels"] <= drawn.units == 300
    feed("\n".join(lines))
    assert "pass files with whole clusters" in pacbound(*watch, "-", code=2).stderr
