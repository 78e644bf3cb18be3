"""The two streams of a command, guarded: printing never raises, so that no reader who goes away, no
full disk and no closed descriptor can stand in the way of a verdict.

What goes wrong first is kept, and what is printed after it is dropped. The exit code then says that
the output is missing, unless it has worse to say. Nothing here needs more than Python itself.
"""

from __future__ import annotations

import errno
import json
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any

CLOSED_PIPE = 141
UNWRITABLE = 2
_CLOSED = OSError(errno.EBADF, "it is closed")


class GuardedStream:
    """A text or binary stream whose writing never raises; `failure` is what went wrong first.

    `stream` is None where the process was started with this stream closed.
    """

    def __init__(self, stream: Any) -> None:
        self._stream = stream
        self.failure: OSError | None = None
        self.is_reported = False

    def write(self, data: Any) -> int:
        """Write what can be written; what cannot is dropped."""
        self._attempt(lambda stream: stream.write(self._encodable(data)))
        return len(data)

    def writelines(self, lines: Iterable[Any]) -> None:
        """Write all lines."""
        for line in lines:
            self.write(line)

    def flush(self) -> None:
        """Hand over what was written."""
        if self._stream is not None:
            self._attempt(lambda stream: stream.flush())

    def isatty(self) -> bool:
        """Whether a person sees it at once."""
        with suppress(OSError, ValueError):
            return self._stream is not None and bool(self._stream.isatty())
        return False

    @property
    def encoding(self) -> str:
        """How text is written as bytes."""
        return getattr(self._stream, "encoding", None) or "utf-8"

    @property
    def buffer(self) -> Any:
        """The stream of the bytes, under the same guard."""
        return _Bytes(self, getattr(self._stream, "buffer", None))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def _encodable(self, data: Any) -> Any:
        """The text with escapes for what the encoding of the stream has no letter for."""
        if not isinstance(data, str):
            return data
        try:
            data.encode(self.encoding)
        except UnicodeEncodeError:
            return data.encode(self.encoding, "backslashreplace").decode(self.encoding)
        return data

    def _attempt(self, action: Callable[[Any], object]) -> None:
        if self.failure is not None:
            return
        if self._stream is None:
            self.failure = _CLOSED
            return
        try:
            action(self._stream)
        except OSError as error:
            self.failure = error
            self._let_go()
        except ValueError:
            # Python says so of a stream that was closed on the way.
            self.failure = _CLOSED

    def _let_go(self) -> None:
        """Discard what is still in buffers: Python would try to write it at its end."""
        with suppress(OSError, ValueError):
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, self._stream.fileno())
            os.close(nowhere)


class _Bytes(GuardedStream):
    """The bytes below a guarded stream of text."""

    def __init__(self, text: GuardedStream, stream: Any) -> None:
        super().__init__(stream)
        self._text = text

    def _attempt(self, action: Callable[[Any], object]) -> None:
        super()._attempt(action)
        self._text.failure = self._text.failure or self.failure


@contextmanager
def guarded_streams() -> Iterator[None]:
    """In a `with` block: standard output and standard error are guarded."""
    _occupy_closed_descriptors()
    before = sys.stdout, sys.stderr
    guards: Any = tuple(
        stream if isinstance(stream, GuardedStream) else GuardedStream(stream) for stream in before
    )
    sys.stdout, sys.stderr = guards
    try:
        yield
    finally:
        for guard in guards:
            guard.flush()
        sys.stdout, sys.stderr = before


def delivered(code: int) -> int:
    """The exit code of what ended with `code`, once its output was handed over.

    A verdict, an error or a signal stays what it is, whatever became of the output. A success
    whose output was lost becomes 141 if the reader went away, as for every command that a closed
    pipe ends, and 2 if the disk is full or the output is closed.
    """
    output = sys.stdout
    if not isinstance(output, GuardedStream):
        return code
    output.flush()
    if output.failure is None:
        return code
    if isinstance(output.failure, BrokenPipeError):
        return code or CLOSED_PIPE
    if not output.is_reported:
        output.is_reported = True
        said = output.failure.strerror or output.failure
        sys.stderr.write(f"error: the output cannot be written: {said}\n")
    return code or UNWRITABLE


def print_json(result: Mapping[str, Any]) -> None:
    """Print a result for programs, on one line."""
    sys.stdout.write(json_line(result) + "\n")


def json_line(result: Mapping[str, Any]) -> str:
    """A result for programs, as one line of JSON."""
    return json.dumps(result, allow_nan=False)


def _occupy_closed_descriptors() -> None:
    """Open an empty stream in the place of a closed standard stream. Otherwise the next file that
    is opened would get its number, and what a library prints would go into that file.
    """
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            # The lowest number that is free is taken. Writing to it fails, as it did before.
            os.open(os.devnull, os.O_WRONLY if number == 0 else os.O_RDONLY)
