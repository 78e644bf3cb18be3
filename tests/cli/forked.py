"""Commands as processes of their own that do not load everything anew: each is forked from one
process that has loaded all of them, and begins with the streams, the folder and the environment
that it is given.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import threading
from pathlib import Path
from types import TracebackType
from typing import Any

SERVER = "from tests.cli.forked import serve; serve()"
ROOT = Path(__file__).parents[2]
Stream = int | None
"""A descriptor, or None for a stream that is closed."""


class Forked:
    """A process that runs a command; what it needs of `subprocess.Popen`."""

    def __init__(self, server: socket.socket) -> None:
        self._server = server
        self.pid = int(server.recv(64))
        self.returncode: int | None = None

    def send_signal(self, number: signal.Signals) -> None:
        if self.returncode is None:
            os.kill(self.pid, number)

    def wait(self, timeout: float) -> int:
        if self.returncode is None:
            self._server.settimeout(timeout)
            try:
                self.returncode = int(self._server.recv(64))
            except TimeoutError:
                raise subprocess.TimeoutExpired("the command", timeout) from None
        return self.returncode


class Commands:
    """The process that has loaded all commands, and begins them one after the other."""

    def __init__(self) -> None:
        self._here, there = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._process = subprocess.Popen(
            [sys.executable, "-c", SERVER, str(there.fileno())], pass_fds=[there.fileno()], cwd=ROOT
        )
        there.close()

    def __enter__(self) -> Commands:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None
    ) -> None:
        self._here.close()
        self._process.wait(60)

    def begin(
        self, folder: Path, arguments: tuple[str, ...], streams: tuple[Stream, Stream, Stream]
    ) -> Forked:
        """Run a command in a folder, with these three streams."""
        asked = {
            "arguments": arguments,
            "folder": str(folder),
            "environment": {**os.environ, "TMPDIR": str(folder / "temporary")},
            "open": [place for place, stream in enumerate(streams) if stream is not None],
        }
        given = [stream for stream in streams if stream is not None]
        socket.send_fds(self._here, [json.dumps(asked).encode()], given)
        return Forked(self._here)


def serve() -> None:
    """Load all commands; then run each that is asked for in a fork of this process."""
    from pacbound.cli import main
    from pacbound.cli.app import every_command, function_of

    for typed in every_command():
        function_of(typed)
    _load_what_reads_tables()
    # A fork has no threads but the one that forks.
    assert threading.active_count() == 1
    server = socket.socket(fileno=int(sys.argv[1]))
    while True:
        message, given, _, _ = socket.recv_fds(server, 2**18, 3)
        if not message:
            return
        child = os.fork()
        if child == 0:
            server.close()
            _begin(json.loads(message), given)
            # What it ends with leaves this function and ends the process, as it does elsewhere.
            main()
        for descriptor in given:
            os.close(descriptor)
        server.send(str(child).encode())
        _, status = os.waitpid(child, 0)
        server.send(str(os.waitstatus_to_exitcode(status)).encode())


def _load_what_reads_tables() -> None:
    import duckdb  # noqa: F401
    import pyarrow.csv
    import pyarrow.feather
    import pyarrow.parquet  # noqa: F401


def _begin(asked: dict[str, Any], given: list[int]) -> None:
    """Make this process what one is that a shell begins."""
    for place in range(3):
        if place in asked["open"]:
            os.dup2(given[asked["open"].index(place)], place)
        else:
            os.close(place)
    for descriptor in given:
        os.close(descriptor)
    os.chdir(asked["folder"])
    os.environ.clear()
    os.environ.update(asked["environment"])
    sys.argv = ["pacbound", *asked["arguments"]]
    for place, name in enumerate(("stdin", "stdout", "stderr")):
        stream = _stream(place) if place in asked["open"] else None
        setattr(sys, name, stream)
        setattr(sys, f"__{name}__", stream)


def _stream(place: int) -> Any:
    """As Python opens its three streams when it begins."""
    return open(
        place,
        "w" if place else "r",
        encoding="utf-8",
        errors="backslashreplace" if place == 2 else "strict",
        closefd=False,
        buffering=1 if place == 2 else -1,
    )
