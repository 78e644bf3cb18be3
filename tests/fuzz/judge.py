"""A process of its own that reads damaged files, with little memory and little time for each.

A reader that crashes, hangs, or asks for more memory than there is fails the one file it was given,
and not the test process. Run as a module, it is that process: each line in names a target and two
files, each line out says what became of them.
"""

from __future__ import annotations

import base64
import contextlib
import json
import os
import selectors
import signal
import subprocess
import sys
import traceback
from pathlib import Path
from random import Random

SPARE_MEMORY = 3 * 2**29
"""What a small damaged file may make the reader ask for: somewhat more than the largest tally."""

BUSY_SECONDS = 20.0
"""The time of the processor that one file may take; sound ones take a hundredth of it."""

IDLE_SECONDS = 300.0
"""How long to wait for what neither ends nor computes, on a busy machine too."""

ROOT = Path(__file__).parents[2]


class Judge:
    """Gives files to the reading process, and starts another one after a crash."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None

    def verdict(self, target: str, seed: bytes, data: bytes) -> str:
        """`taken` or `refused`; otherwise what went wrong."""
        process = self._running()
        assert process.stdin is not None
        assert process.stdout is not None
        case = [target, base64.b64encode(seed).decode(), base64.b64encode(data).decode()]
        try:
            process.stdin.write(json.dumps(case).encode() + b"\n")
            process.stdin.flush()
        except BrokenPipeError:
            return self._crashed()
        with selectors.DefaultSelector() as selector:
            selector.register(process.stdout, selectors.EVENT_READ)
            if not selector.select(IDLE_SECONDS):
                self.close()
                return f"no answer within {IDLE_SECONDS:.0f} seconds"
        line = process.stdout.readline()
        return str(json.loads(line)) if line else self._crashed()

    def close(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.communicate()
            self._process = None

    def _running(self) -> subprocess.Popen[bytes]:
        if self._process is None:
            paths = [str(ROOT / "src"), str(ROOT)]
            self._process = subprocess.Popen(
                [sys.executable, "-m", "tests.fuzz.judge"],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, cwd=ROOT,
                env={**os.environ, "PYTHONPATH": os.pathsep.join(paths), "OMP_NUM_THREADS": "1"},
            )  # fmt: skip
            assert self._process.stdout is not None
            assert json.loads(self._process.stdout.readline() or '""') == "ready"
        return self._process

    def _crashed(self) -> str:
        code = self._process.wait() if self._process else None
        self.close()
        return f"the process died with exit code {code}"


def _serve() -> None:
    from tests.fuzz.targets import TARGETS

    # Native libraries write where they like: what they print must not be taken for an answer.
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    for target in TARGETS.values():
        seed = target.seeds()[0]
        assert target.run(seed, seed), "a sound file was refused"
    _limit_memory()
    print(json.dumps("ready"), file=answers, flush=True)
    for line in sys.stdin:
        name, seed, data = json.loads(line)
        _limit_time()
        try:
            taken = TARGETS[name].run(base64.b64decode(seed), base64.b64decode(data))
            answer = "taken" if taken else "refused"
        except BaseException:
            answer = traceback.format_exc()
        print(json.dumps(answer), file=answers, flush=True)


def _limit_memory() -> None:
    with contextlib.suppress(ImportError, OSError):  # Windows and macOS have no such limit
        import resource

        pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0])
        limit = pages * resource.getpagesize() + SPARE_MEMORY
        resource.setrlimit(resource.RLIMIT_AS, (limit, limit))


def _limit_time() -> None:
    """End this process by a signal, unless the limit is set anew before it is used up."""
    if hasattr(signal, "setitimer"):  # Windows has none
        signal.setitimer(signal.ITIMER_PROF, BUSY_SECONDS)


def case(target: str, random: Random) -> tuple[bytes, bytes]:
    """A sound file for a target, and the same with some damage."""
    from tests.fuzz.targets import TARGETS

    return TARGETS[target].damaged(random)


if __name__ == "__main__":
    _serve()
