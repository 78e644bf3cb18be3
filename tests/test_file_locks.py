"""A lock keeps other processes out, and ends with the process that holds it, however it ends."""

from __future__ import annotations

import errno
import math
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path
from types import SimpleNamespace

import pytest

from pacbound import file_locks
from pacbound.errors import InvalidValueError
from pacbound.file_locks import locked

HOLDS = """
import sys
from pacbound.file_locks import locked
with locked(sys.argv[1], wait=True):
    print("held", flush=True)
    sys.stdin.read()
"""


def holder(path: Path) -> subprocess.Popen[str]:
    process = subprocess.Popen(
        [sys.executable, "-c", HOLDS, str(path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "held\n"
    return process


def test_a_second_process_is_kept_out_until_the_first_lets_go(tmp_path: Path) -> None:
    path = tmp_path / "state.json"
    first = holder(path)
    with (
        pytest.raises(InvalidValueError, match="in use by another process"),
        locked(path, wait=False),
    ):
        pass
    first.communicate()
    with locked(path, wait=False):
        pass


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="needs a signal that kills")
def test_a_process_that_is_killed_lets_go(tmp_path: Path) -> None:
    path = tmp_path / "state.json"
    first = holder(path)
    os.kill(first.pid, signal.SIGKILL)
    first.communicate()
    with locked(path, wait=False):
        pass


def test_other_names_of_a_file_have_the_same_lock(tmp_path: Path) -> None:
    path = tmp_path / "state.json"
    path.write_text("")
    (tmp_path / "link.json").symlink_to(path)
    first = holder(tmp_path / "link.json")
    with pytest.raises(InvalidValueError, match="in use"), locked(path, wait=False):
        pass
    first.communicate()


def test_a_place_that_cannot_be_locked_gives_a_clear_error(tmp_path: Path) -> None:
    with (
        pytest.raises(InvalidValueError, match="there is no folder"),
        locked(tmp_path / "gone" / "state.json", wait=True),
    ):
        pass


def test_the_thread_that_holds_a_lock_may_take_it_again(tmp_path: Path) -> None:
    path = tmp_path / "state.json"
    with locked(path, wait=False), locked(path, wait=True), locked(path, wait=False):
        pass
    with locked(path, wait=False):
        pass


def test_other_threads_wait_and_say_so(tmp_path: Path) -> None:
    path, done, waits = tmp_path / "state.json", list[str](), threading.Event()

    def second() -> None:
        with locked(path, wait=True, waiting=waits.set):
            done.append("second")

    thread = threading.Thread(target=second)
    with locked(path, wait=False):
        thread.start()
        assert waits.wait(60)
        done.append("first")
    thread.join(60)
    assert done == ["first", "second"]


@pytest.mark.skipif(not Path("/dev/null").exists(), reason="needs a device")
def test_a_device_needs_no_lock() -> None:
    with locked("/dev/null", wait=False):
        pass
    assert not Path("/dev/null.lock").exists()


class _Windows:
    """Stands in for `msvcrt`: somebody else lets go of the lock at the `free`-th try."""

    LK_LOCK, LK_NBLCK = 1, 2

    def __init__(self, free: float) -> None:
        self.free, self.tries = free, 0

    def locking(self, _: int, mode: int, __: int) -> None:
        self.tries += 1
        if self.tries < self.free:
            code = errno.EACCES if mode == self.LK_NBLCK else errno.EDEADLK
            raise OSError(code, "held elsewhere")


def test_on_windows_a_lock_is_waited_for_longer_than_ten_seconds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    held, path = _Windows(free=40), tmp_path / "state.json"
    monkeypatch.setitem(sys.modules, "msvcrt", held)
    monkeypatch.setattr(file_locks, "sys", SimpleNamespace(platform="win32"))
    monkeypatch.setattr(file_locks, "time", SimpleNamespace(sleep=lambda _: None))
    with locked(path, wait=True):
        pass
    assert held.tries == 40
    held.free = math.inf
    with pytest.raises(InvalidValueError, match="in use"), locked(path, wait=False):
        pass
