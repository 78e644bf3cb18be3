"""What becomes of a verdict whose output nobody takes: every command with its output cut off, and
ended by a signal in the middle of its work.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from tests.cli.commands import COMMANDS, ROWS, write_folder
from tests.cli.forked import Commands, Forked
from tests.products import standing_for

from pacbound.claims import CLAIMS

pytestmark = pytest.mark.skipif(os.name != "posix", reason="descriptors and signals of POSIX")

PROGRAM = "from pacbound.cli import main; main()"
Ended = tuple[int, str]
"""The exit code, and what went to stderr."""


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("made")
    write_folder(folder)
    return folder


@pytest.fixture
def folder(made: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(made, tmp_path / "work"))


@pytest.fixture(scope="module")
def commands() -> Iterator[Commands]:
    with Commands() as running:
        yield running


def run(folder: Path, *arguments: str, **streams: object) -> Ended:
    """Run a command as a process of its own."""
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, *arguments],
        cwd=folder,
        check=False,
        timeout=240,
        **{"stdin": subprocess.DEVNULL, "stderr": subprocess.PIPE} | streams,  # type: ignore[call-overload]
    )
    return done.returncode, (done.stderr or b"").decode()


def into_closed_pipe(folder: Path, *arguments: str) -> Ended:
    read, write = os.pipe()
    os.close(read)
    try:
        return run(folder, *arguments, stdout=write)
    finally:
        os.close(write)


def into_full_disk(folder: Path, *arguments: str) -> Ended:
    with Path("/dev/full").open("wb") as full:
        return run(folder, *arguments, stdout=full)


def with_closed_output(folder: Path, *arguments: str) -> Ended:
    return run(folder, *arguments, preexec_fn=lambda: os.close(1))


def with_closed_errors(folder: Path, *arguments: str) -> Ended:
    return run(
        folder,
        *arguments,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        preexec_fn=lambda: os.close(2),
    )


def errors_into_closed_pipe(folder: Path, *arguments: str) -> Ended:
    read, write = os.pipe()
    os.close(read)
    try:
        return run(folder, *arguments, stdout=subprocess.DEVNULL, stderr=write)
    finally:
        os.close(write)


CUT_OFF: dict[str, tuple[Callable[..., Ended], int]] = {
    "closed pipe": (into_closed_pipe, 141),
    "full disk": (into_full_disk, 2),
    "closed output": (with_closed_output, 2),
    "closed errors": (with_closed_errors, 0),
    "closed pipe of errors": (errors_into_closed_pipe, 0),
}
"""Ways to take a command's output from it, and what becomes of success."""
WAYS = standing_for(["closed pipe", "closed output", "closed errors"], ["closed pipe"], "long")


FRESH = ("calibrate", "verify")
"""These run as whole processes; the others are forked from one that has loaded them."""

MADE = {line.command for line in CLAIMS.values()} - {"calibrate", "cascade", "recall"}
"""One function makes every command that certifies. The three that are left out of these stand for
them: a success, two models, and a refusal."""

READERS = [verb for verb in COMMANDS if verb not in ("plan rate", "plan looks")]
"""Commands that read rows, or a document."""


def some(verbs: Iterable[str]) -> list[Any]:
    """All of these, of which those that others stand for run in `make test-all`."""
    every = list(verbs)
    return standing_for(every, [verb for verb in every if verb not in MADE])


def cut_off(commands: Commands, folder: Path, arguments: tuple[str, ...], way: str) -> Ended:
    """A command, forked, whose output nobody takes in one of these ways."""
    nobody, closed = os.pipe()
    os.close(nobody)
    read, write = os.pipe()
    nowhere = os.open(os.devnull, os.O_RDWR)
    output = {"closed pipe": closed, "closed output": None, "closed errors": nowhere}[way]
    errors = None if way == "closed errors" else write
    process = commands.begin(folder, arguments, (nowhere, output, errors))
    for descriptor in (closed, write, nowhere):
        os.close(descriptor)
    with open(read, encoding="utf-8") as said:  # noqa: PTH123
        found = said.read()
    return process.wait(240), found


@pytest.mark.slow
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("verb", some(COMMANDS))
def test_a_verdict_does_not_depend_on_its_output(
    commands: Commands, folder: Path, verb: str, way: str
) -> None:
    (arguments, code), (cut, instead) = COMMANDS[verb], CUT_OFF[way]
    if verb in FRESH:
        ended, errors = cut(folder, *arguments)
    else:
        (folder / "temporary").mkdir()
        ended, errors = cut_off(commands, folder, arguments, way)
    assert ended == (code or instead), errors
    assert "Traceback" not in errors
    assert "Exception ignored" not in errors


EXACT = "import sys; from pacbound.exact_verifier import main; sys.exit(main(sys.argv[1:]))"


@pytest.mark.slow
@pytest.mark.parametrize("buffered", [True, False], ids=["buffered", "unbuffered"])
@pytest.mark.parametrize("way", CUT_OFF)
def test_the_standard_library_verifier_keeps_its_verdicts_too(
    folder: Path, way: str, *, buffered: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(globals(), "PROGRAM", EXACT)
    monkeypatch.setenv("PYTHONUNBUFFERED", "" if buffered else "1")
    cut, instead = CUT_OFF[way]
    for names, code in (
        (("calibration.json",), instead),
        (("forged.json", "calibration.json"), 1),
        (("nowhere.json",), 2),
    ):
        ended, errors = cut(folder, *names)
        assert ended == code
        assert "Traceback" not in errors
        assert "Exception ignored" not in errors


@pytest.mark.slow
def test_json_that_cannot_be_delivered_changes_no_verdict(folder: Path) -> None:
    assert into_closed_pipe(folder, "verify", "forged.json", "--json")[0] == 1
    assert into_closed_pipe(folder, "verify", "shield.json", "--json") == (3, "")
    assert into_closed_pipe(folder, "verify", "calibration.json", "--json") == (141, "")


FULL = "/dev/full"
STRICT_DESIGN = ["0.0001" if word == "0.2" else word for word in COMMANDS["design"][0]]
UNWRITTEN = {
    "a refusal": ((*COMMANDS["recall"][0], "-o", FULL), 3),
    "a refusal of certificates": ((*COMMANDS["together"][0], "-o", FULL), 3),
    "a refusal of a design": ((*STRICT_DESIGN, "-o", FULL, "--json"), 3),
    "a certificate": ((*COMMANDS["calibrate"][0], "-o", FULL), 2),
    "a page about a refusal": (("report", "shield.json", "-o", FULL), 3),
    "a page about a forgery": (("report", "forged.json", "-o", FULL), 1),
    "a page": (("report", "calibration.json", "-o", FULL), 2),
    "an alarm, and its metrics": ((*COMMANDS["monitor"][0], "--prometheus", FULL), 1),
    "rows": (("apply", "calibration.json", ROWS, "--column", "confidence=c", "-o", FULL), 2),
    "a tally": ((*COMMANDS["tally calibration"][0][:-1], FULL), 2),
}


@pytest.mark.slow
@pytest.mark.skipif(not Path(FULL).exists(), reason="needs a device that is always full")
@pytest.mark.parametrize(
    "what", standing_for(UNWRITTEN, ["a refusal", "a page", "rows", "a tally"], rest="long")
)
def test_a_verdict_does_not_depend_on_its_file(folder: Path, what: str) -> None:
    arguments, code = UNWRITTEN[what]
    ended, errors = run(folder, *arguments, stdout=subprocess.DEVNULL)
    assert ended == code
    assert f"error: {FULL} cannot be written: No space left on device." in errors
    assert "Traceback" not in errors


def more_than_a_pipe_holds(folder: Path) -> None:
    rows = (folder / ROWS).read_text().splitlines()
    lines = [f"{line},{place}" for place, line in enumerate(rows[1:] * 100)]
    (folder / "many.csv").write_text("\n".join([f"{rows[0]},id", *lines]) + "\n")


@pytest.mark.slow
@pytest.mark.parametrize(
    "suffix", standing_for([".csv", ".parquet", ".arrow", ".jsonl"], [".csv"], rest="long")
)
def test_rows_into_a_pipe_that_closes_end_as_a_closed_pipe(folder: Path, suffix: str) -> None:
    os.mkfifo(pipe := folder / f"out{suffix}")
    taken: list[bytes] = []

    def take_a_little() -> None:
        with pipe.open("rb", buffering=0) as reader:
            taken.append(reader.read(10))

    reader = threading.Thread(target=take_a_little)
    reader.start()
    more_than_a_pipe_holds(folder)
    ended, errors = run(
        folder, "apply", "calibration.json", "many.csv", "--column", "confidence=c", "-o", str(pipe)
    )
    reader.join(60)
    assert (ended, errors) == (141, "")
    assert len(taken[0]) > 0


class AtWork:
    """A command that is in the middle of its work, and waits there for more of its input."""

    def __init__(self, commands: Commands, folder: Path, verb: str) -> None:
        arguments, _ = COMMANDS[verb]
        document = next(
            (name for name in arguments if name.endswith(".json") and (folder / name).exists()),
            None,
        )
        self._document = folder / document if document else None
        if document:
            # A document that never ends: it is opened, and waited for.
            (folder / document).unlink()
            os.mkfifo(folder / document)
        arguments = tuple("-" if x == ROWS else x for x in arguments)
        read, self._input = os.pipe()
        self._errors, write = os.pipe()
        self.process: subprocess.Popen[bytes] | Forked
        if verb in FRESH:
            self.process = subprocess.Popen(
                [sys.executable, "-c", PROGRAM, *arguments],
                cwd=folder,
                stdin=read,
                stdout=subprocess.DEVNULL,
                stderr=write,
                env=os.environ | {"TMPDIR": str(folder / "temporary")},
            )
        else:
            nowhere = os.open(os.devnull, os.O_WRONLY)
            self.process = commands.begin(folder, arguments, (read, nowhere, write))
            os.close(nowhere)
        os.close(read)
        os.close(write)
        self._open = [self._input]

    def wait(self) -> None:
        """Until the command has begun to read."""
        if self._document is not None:
            # Opening it waits for whoever reads it.
            self._open.append(os.open(self._document, os.O_WRONLY))
            return
        # More than a pipe holds: what is written has been taken out of it.
        rows = b"c,ok\n" + b"0.5,1\n" * 2**16
        while rows:
            rows = rows[os.write(self._input, rows) :]

    def ended(self) -> Ended:
        with open(self._errors, encoding="utf-8") as said:  # noqa: PTH123
            errors = said.read()
        code = self.process.wait(60)
        for descriptor in self._open:
            os.close(descriptor)
        return code, errors


def files_in(folder: Path) -> set[str]:
    """All files but locks, which stay."""
    return {path.name for path in folder.iterdir() if path.suffix != ".lock"}


SIGNALS = {
    signal.SIGTERM: (143, "ended by SIGTERM; nothing was left half-written\n"),
    signal.SIGINT: (130, "interrupted; nothing was left half-written\n"),
}


@pytest.mark.slow
@pytest.mark.parametrize(
    "number",
    standing_for(SIGNALS, [signal.SIGTERM], rest="long"),
    ids=lambda number: number.name,
)
@pytest.mark.parametrize("verb", some(READERS))
def test_a_signal_in_the_middle_of_the_work_ends_it_in_order(
    commands: Commands, folder: Path, verb: str, number: signal.Signals
) -> None:
    (folder / "temporary").mkdir()
    before = files_in(folder)
    work = AtWork(commands, folder, verb)
    work.wait()
    for _ in range(10):
        work.process.send_signal(number)
        # One that comes just before a document is read is noticed only with the next.
        with suppress(subprocess.TimeoutExpired):
            work.process.wait(20)
            break
    assert work.ended() == SIGNALS[number]
    assert list((folder / "temporary").iterdir()) == []
    assert files_in(folder) == before


@pytest.mark.slow
@pytest.mark.parametrize(
    "number",
    standing_for(SIGNALS, [signal.SIGTERM], rest="long"),
    ids=lambda number: number.name,
)
@pytest.mark.parametrize("suffix", [".csv", ".parquet", ".arrow"])
def test_a_signal_in_the_middle_of_an_output_is_what_ended_it(
    folder: Path, suffix: str, number: signal.Signals
) -> None:
    """The writer of Parquet turns what is raised in it into an error of its own."""
    os.mkfifo(path := folder / f"out{suffix}")
    more_than_a_pipe_holds(folder)
    process = subprocess.Popen(
        [
            *(sys.executable, "-c", PROGRAM, "apply", "calibration.json", "many.csv"),
            *("--column", "confidence=c", "-o", path.name),
        ],
        cwd=folder,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    )
    reader = os.open(path, os.O_RDONLY)
    # It has begun to write, and the rest does not fit into the pipe.
    assert os.read(reader, 4)
    process.send_signal(number)
    _, errors = process.communicate(timeout=120)
    os.close(reader)
    assert (process.returncode, errors.decode()) == SIGNALS[number]
