"""How a command ends: what goes to stderr, and with which exit code."""

from __future__ import annotations

import functools
import sys
import traceback
from collections.abc import Callable
from typing import ParamSpec

import typer

from pacbound.errors import PacboundError

VERIFICATION_FAILED = 1
BAD_INPUT = 2
REFUSED = 3
BUG = 70
INTERRUPTED = 130

Parameters = ParamSpec("Parameters")


def ending_well(command: Callable[Parameters, int]) -> Callable[Parameters, None]:
    """Turn what a command returns or raises into the exit code of the process."""

    @functools.wraps(command)
    def run(*args: Parameters.args, **options: Parameters.kwargs) -> None:
        code = _code(lambda: command(*args, **options))
        if code:
            raise typer.Exit(code)

    return run


def complain(message: str) -> None:
    """Say what is wrong, on stderr."""
    sys.stderr.write(f"error: {message}\n")


def _code(command: Callable[[], int]) -> int:
    try:
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
    except Exception:  # whatever else arrives here is a bug, and says so
        traceback.print_exc()
        complain("this is a bug in pacbound; please report it with the lines above")
        return BUG
