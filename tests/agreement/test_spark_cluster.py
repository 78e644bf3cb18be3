"""The recipe of docs/engines.md, as it is written there, on a master and two workers; one of the
workers dies half-way.

Master, workers, executors and driver are processes of their own on loopback. The job is slow
because it has many partitions.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import pytest

from pacbound import calibrate, load_certificate
from pacbound.claims.calibration_certificate import CalibrationCertificate

PAGE = (Path(__file__).parents[2] / "docs" / "engines.md").read_text(encoding="utf-8")
PARTITIONS, ROWS = 200, 1_000_000
BEFORE_THE_KILL = 10  # partitions that the worker has counted by then
PATIENCE = 120.0
QUICK_START = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"

T = TypeVar("T")


def _java() -> int:
    """The major version of the Java that Spark would take, or 0."""
    home = os.environ.get("JAVA_HOME")
    java = str(Path(home, "bin", "java")) if home else shutil.which("java")
    if java is None or not Path(java).exists():
        return 0
    said = subprocess.run([java, "-version"], capture_output=True, text=True, check=False).stderr
    found = re.search(r'version "(\d+)', said)
    return int(found[1]) if found else 0


pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(
        _java() < 17, reason="Spark needs Java 17 or later, and there is none here."
    ),
]


@dataclass(frozen=True)
class Program:
    """A process in a group of its own, and what it says."""

    process: subprocess.Popen[bytes]
    log: Path

    def said(self, pattern: str) -> str | None:
        found = re.search(pattern, self.log.read_text(encoding="utf-8", errors="replace"))
        return None if found is None else found[1]

    def once_it_says(self, pattern: str, patience: float = PATIENCE) -> str:
        """The first thing that matches, once it is said."""
        return self.until(lambda: self.said(pattern), f"{pattern!r}", patience)

    def until(self, look: Callable[[], T | None], what: str, patience: float = PATIENCE) -> T:
        """What `look` sees while the program runs, as soon as it sees something."""
        deadline = time.monotonic() + patience
        while self.process.poll() is None and time.monotonic() < deadline:
            seen = look()
            if seen is not None:
                return seen
            time.sleep(0.05)
        pytest.fail(
            f"{what} was not seen while {self.log.stem} ran, nor within {patience:.0f} "
            f"s:\n{self.end_of_log()}"
        )

    def end_of_log(self) -> str:
        return self.log.read_text(encoding="utf-8", errors="replace")[-4000:]

    def kill(self) -> None:
        """End the process and all that it started: a worker takes its executor with it."""
        with suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()


@contextmanager
def _running(command: list[str], name: str, folder: Path) -> Iterator[Program]:
    log = folder / f"{name}.log"
    with log.open("wb") as output:
        process = subprocess.Popen(
            command,
            stdout=output,
            stderr=subprocess.STDOUT,
            cwd=folder,
            env=_environment(folder),
            start_new_session=True,
        )
    program = Program(process, log)
    try:
        yield program
    finally:
        program.kill()


def _environment(folder: Path) -> dict[str, str]:
    here = Path(sys.executable).parent
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("SPARK_", "PYSPARK_"))
    }
    return {
        **kept,
        "PATH": f"{here}{os.pathsep}{kept.get('PATH', '')}",
        "PYSPARK_PYTHON": sys.executable,
        "SPARK_CONF_DIR": str(folder),
        "SPARK_DAEMON_JAVA_OPTS": QUICK_START,
        "SPARK_DAEMON_MEMORY": "256m",
        "SPARK_LOCAL_DIRS": str(folder / "spill"),
        "SPARK_LOCAL_IP": "127.0.0.1",
    }


def _settings(folder: Path) -> dict[str, object]:
    """Both executors are there when the job starts, each file is a partition, and what happened is
    written down."""
    return {
        "spark.cores.max": 2,
        "spark.driver.extraJavaOptions": QUICK_START,
        "spark.eventLog.compress": "false",
        "spark.eventLog.dir": folder / "events",
        "spark.eventLog.enabled": "true",
        "spark.eventLog.rolling.enabled": "false",
        "spark.executor.extraJavaOptions": QUICK_START,
        # Else every expression asks Java several times where in Python it was written.
        "spark.python.sql.dataFrameDebugging.enabled": "false",
        "spark.scheduler.maxRegisteredResourcesWaitingTime": f"{PATIENCE:.0f}s",
        "spark.scheduler.minRegisteredResourcesRatio": "1.0",
        "spark.sql.files.minPartitionNum": PARTITIONS,
        "spark.sql.shuffle.partitions": 2,
        "spark.ui.enabled": "false",
    }


def _commands() -> list[list[str]]:
    """The master's and the workers', from the page, with ports that are free."""
    lines = re.findall(r"^spark-class .*$", PAGE.replace("\\\n", " "), flags=re.MULTILINE)
    return [[*shlex.split(line)[:2], "--webui-port", "0", *shlex.split(line)[2:]] for line in lines]


def _program() -> str:
    found = re.search(r"^```py\n(.*?)^```$", PAGE, flags=re.MULTILINE | re.DOTALL)
    assert found is not None
    return found[1]


@contextmanager
def _cluster(folder: Path) -> Iterator[tuple[str, list[Program]]]:
    """The address of a master, and two workers that are registered with it."""
    master_command, *worker_commands = _commands()
    with ExitStack() as stack:
        command = [word.replace("7077", "0") for word in master_command]
        master = stack.enter_context(_running(command, "master", folder))
        address = master.once_it_says(r"Starting Spark master at (spark://127\.0\.0\.1:\d+)")
        workers = []
        for number, words in enumerate(worker_commands, 1):
            command = [word.replace("spark://127.0.0.1:7077", address) for word in words]
            workers.append(stack.enter_context(_running(command, f"worker-{number}", folder)))
        for worker in workers:
            worker.once_it_says("(Successfully registered) with master")
        yield address, workers


def _predictions() -> tuple[Any, Any]:
    """Confidences, a third of them exactly on the edge of a bin, and whether each was right."""
    rng = np.random.default_rng(7)
    confidence = rng.random(ROWS)
    confidence[::3] = rng.integers(0, 21, size=len(confidence[::3])) / 20
    return confidence, rng.random(ROWS) < confidence


def _write_table(folder: Path, confidence: Any, correct: Any) -> None:
    pa, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    folder.mkdir()
    table = pa.table({"c": confidence, "ok": correct})
    for part in range(PARTITIONS):
        first, last = part * ROWS // PARTITIONS, (part + 1) * ROWS // PARTITIONS
        parquet.write_table(table.slice(first, last - first), folder / f"part-{part:03}.parquet")


def _at_work(workers: list[Program]) -> Program | None:
    """A worker whose executor has counted some partitions, according to its own log."""
    return next((worker for worker in workers if _finished(worker) >= BEFORE_THE_KILL), None)


def _finished(worker: Program) -> int:
    logs = worker.log.with_suffix("").glob("*/*/stderr")
    return sum(
        log.read_text(encoding="utf-8", errors="replace").count("Executor: Finished task")
        for log in logs
    )


def _write_program(folder: Path) -> None:
    (folder / "certify.py").write_text(_program(), encoding="utf-8")
    (folder / "events").mkdir()
    settings = "".join(f"{name} {value}\n" for name, value in _settings(folder).items())
    (folder / "spark-defaults.conf").write_text(settings, encoding="utf-8")


def _events(folder: Path) -> list[dict[str, Any]]:
    (log,) = (path for path in (folder / "events").iterdir() if path.is_file())
    return [json.loads(line) for line in log.read_text(encoding="utf-8").splitlines()]


def test_a_worker_dies_half_way_and_the_integers_are_the_same(tmp_path: Path) -> None:
    pytest.importorskip("pyspark")
    confidence, correct = _predictions()
    _write_table(tmp_path / "predictions", confidence, correct)
    _write_program(tmp_path)
    with _cluster(tmp_path) as (address, workers):
        assert len(workers) == 2
        command = [sys.executable, "certify.py", address, "predictions", "calibration.json"]
        with _running(command, "driver", tmp_path) as driver:
            driver.until(lambda: _at_work(workers), "a worker at work").kill()
            assert driver.process.wait(timeout=PATIENCE) == 0, driver.end_of_log()
    _check_that_work_was_lost_and_done_again(tmp_path)
    from_arrays, from_cluster = (
        calibrate(confidence, correct, delta=0.01),
        load_certificate(tmp_path / "calibration.json"),
    )
    assert isinstance(from_cluster, CalibrationCertificate)
    assert from_cluster.bins.trials.tolist() == from_arrays.bins.trials.tolist()
    assert from_cluster.bins.successes.tolist() == from_arrays.bins.successes.tolist()
    assert from_cluster.claim_digest == from_arrays.claim_digest


def _check_that_work_was_lost_and_done_again(folder: Path) -> None:
    events = _events(folder)
    (killed,) = (
        place
        for place, event in enumerate(events)
        if event["Event"] == "SparkListenerExecutorRemoved"
    )
    before, after = _ends_of_tasks(events[:killed]), _ends_of_tasks(events[killed:])
    assert 0 < before["Success"] < PARTITIONS
    lost = (before + after)["Resubmitted"]
    assert lost > 0
    assert (before + after)["Success"] >= PARTITIONS + lost


def _ends_of_tasks(events: list[dict[str, Any]]) -> Counter[str]:
    return Counter(
        event["Task End Reason"]["Reason"]
        for event in events
        if event["Event"] == "SparkListenerTaskEnd"
    )
