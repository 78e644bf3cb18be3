"""How a command ends: what goes to stderr, and with which exit code."""

from __future__ import annotations

import functools
import signal
import sys
import threading
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import ParamSpec

import typer

from pacbound.documents import printable_lines
from pacbound.errors import PacboundError

VERIFICATION_FAILED = 1
ALARM = 1
BAD_INPUT = 2
REFUSED = 3
BUG = 70
INTERRUPTED = 130
BY_SIGNAL = 128
"""Added to the number of the signal that ended the command, as shells count."""

_ENDING = ("SIGTERM", "SIGHUP")
"""Signals that would end the process at once, with temporary files left behind."""

Parameters = ParamSpec("Parameters")


class _Ended(BaseException):
    """A signal asked the command to end. No handler of errors may take it for one."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


def ending_well(command: Callable[Parameters, int]) -> Callable[Parameters, None]:
    """Turn what a command returns or raises into the exit code of the process."""

    @functools.wraps(command)
    def run(*args: Parameters.args, **options: Parameters.kwargs) -> None:
        code = _code(lambda: command(*args, **options))
        if code:
            raise typer.Exit(code)

    return run


def complain(message: str) -> None:
    """Say what is wrong, on stderr; what it quotes is shown as text."""
    sys.stderr.write(f"error: {printable_lines(message)}\n")


def _code(command: Callable[[], int]) -> int:
    try:
        with _ending_in_order():
            return command()
    except typer.Exit as wanted:
        return wanted.exit_code
    except BrokenPipeError:
        # Whoever read the output has seen enough.
        sys.stderr.close()
        return 0
    except PacboundError as error:
        complain(str(error))
        return BAD_INPUT
    except OSError as error:
        complain(f"{error.filename or 'a file'}: {error.strerror or error}")
        return BAD_INPUT
    except KeyboardInterrupt:
        sys.stderr.write("interrupted; nothing was left half-written\n")
        return INTERRUPTED
    except _Ended as ended:
        sys.stderr.write(
            f"ended by {signal.Signals(ended.number).name}; nothing was left half-written\n"
        )
        return BY_SIGNAL + ended.number
    except Exception:  # whatever else arrives here is a bug, and says so
        traceback.print_exc()
        complain("this is a bug in pacbound; please report it with the lines above")
        return BUG


@contextmanager
def _ending_in_order() -> Iterator[None]:
    """Let signals that end the process raise instead, so that what is temporary is removed.

    Only here: a library leaves the signals of its process alone. One that is ignored, as under
    nohup, stays ignored.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    known = [getattr(signal, name) for name in _ENDING if hasattr(signal, name)]
    taken = [number for number in known if signal.getsignal(number) == signal.SIG_DFL]

    def end(number: int, _: FrameType | None) -> None:
        # A second one must not interrupt the cleaning up after the first.
        for each in taken:
            signal.signal(each, signal.SIG_IGN)
        raise _Ended(number)

    for number in taken:
        signal.signal(number, end)
    try:
        yield
    finally:
        for number in taken:
            signal.signal(number, signal.SIG_DFL)
