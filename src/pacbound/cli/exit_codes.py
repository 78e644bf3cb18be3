"""How a command ends: what goes to stderr, and with which exit code."""

from __future__ import annotations

import functools
import signal
import sys
import threading
import traceback
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from types import FrameType
from typing import Any

import typer

from pacbound.cli.options import refuse_shared_files
from pacbound.cli.rows import gathered, shown_options, with_options
from pacbound.cli.streams import CLOSED_PIPE, delivered
from pacbound.documents import printable_lines
from pacbound.errors import PacboundError

VERIFICATION_FAILED = 1
ALARM = 1
BAD_INPUT = 2
REFUSED = 3
BUG = 70
# Added to the number of the signal that ended the command, as shells count.
BY_SIGNAL = 128

# Signals that would end the process with temporary files left behind.
_ENDING = ("SIGTERM", "SIGHUP", "SIGINT")

_verdict: ContextVar[int] = ContextVar("_verdict", default=0)


class _Ended(BaseException):
    """A signal asked the command to end. No handler of errors may take it for one."""

    def __init__(self, number: signal.Signals) -> None:
        super().__init__(number)
        self.number = number


def ending_well(command: Callable[..., int]) -> Callable[..., None]:
    """The command as typer is to see it, which turns what it returns or raises into the exit code
    of the process.

    Options that would overwrite what another one names are refused before it runs.
    """
    shown = shown_options(command)

    @functools.wraps(command)
    def run(**options: Any) -> None:
        def work() -> int:
            refuse_shared_files(shown, options)
            return command(**gathered(command, options))

        before = _verdict.set(0)
        try:
            code = delivered(_code(work))
        finally:
            _verdict.reset(before)
        if code:
            raise typer.Exit(code)

    return with_options(run, shown)


def decided(code: int) -> int:
    """Keep the verdict of this command, before anything is saved or printed.

    Where its output cannot be written, a verdict other than success is the exit code all the same.
    """
    _verdict.set(code)
    return code


def complain(message: str) -> None:
    """Say what is wrong, on stderr; what it quotes is shown as text."""
    sys.stderr.write(f"error: {printable_lines(message)}\n")


def _note(message: Warning | str, *_: Any, **__: Any) -> None:
    """Say on stderr what a user should look at, without the line of code that noticed it."""
    sys.stderr.write(f"note: {printable_lines(str(message))}\n")


def _code(command: Callable[[], int]) -> int:
    heard: list[signal.Signals] = []
    try:
        with _ending_in_order(heard), warnings.catch_warnings():
            warnings.showwarning = _note
            code = command()
    except SystemExit:
        raise
    except BaseException as error:
        # What a signal raised inside a library in C may arrive as an error of that library.
        return _of_signal(heard[0]) if heard else _of_error(error)
    return _of_signal(heard[0]) if heard else code


def _of_signal(number: signal.Signals) -> int:
    said = "interrupted" if number == signal.SIGINT else f"ended by {number.name}"
    sys.stderr.write(f"{said}; nothing was left half-written\n")
    return BY_SIGNAL + number


def _of_error(error: BaseException) -> int:
    if isinstance(error, typer.Exit):
        return error.exit_code
    if isinstance(error, BrokenPipeError):
        # Whoever read what goes out has seen enough.
        return _verdict.get() or CLOSED_PIPE
    if isinstance(error, PacboundError):
        complain(str(error))
        return _verdict.get() or BAD_INPUT
    if isinstance(error, OSError):
        complain(f"{error.filename or 'a file'}: {error.strerror or error}")
        return _verdict.get() or BAD_INPUT
    if isinstance(error, KeyboardInterrupt):
        return _of_signal(signal.SIGINT)
    if isinstance(error, _Ended):
        # Heard by the command that runs this one.
        return _of_signal(error.number)
    # Whatever else arrives here is a bug, and says so.
    traceback.print_exception(error)
    complain("this is a bug in pacbound; please report it with the lines above")
    return BUG


@contextmanager
def _ending_in_order(heard: list[signal.Signals]) -> Iterator[None]:
    """Let signals that end the process raise instead, so that what is temporary is removed; each is
    in `heard`.

    Only here: a library leaves the signals of its process alone. One that is ignored, as under
    nohup, stays ignored.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    known = [getattr(signal, name) for name in _ENDING if hasattr(signal, name)]
    usual = (signal.SIG_DFL, signal.default_int_handler)
    taken = {number: before for number in known if (before := signal.getsignal(number)) in usual}

    def end(number: int, _: FrameType | None) -> None:
        # A second one must not interrupt the cleaning up after the first.
        for each in taken:
            signal.signal(each, signal.SIG_IGN)
        heard.append(signal.Signals(number))
        raise KeyboardInterrupt if number == signal.SIGINT else _Ended(heard[0])

    for number in taken:
        signal.signal(number, end)
    try:
        yield
    finally:
        for number, before in taken.items():
            signal.signal(number, before)
