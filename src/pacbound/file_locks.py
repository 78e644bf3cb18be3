"""One at a time: a lock on a file that is read, changed and written again, which keeps out other
processes and other threads of this one.

The lock belongs to the operating system, so that it ends with the process that holds it, however it
ends: a process that was killed leaves nothing to clear away. What is locked is a file beside the
one that is meant, FILE.lock, since that one is replaced when it is written. The lock file stays
there, empty: to remove it while another process waits for it would let two hold the lock.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import IO, Final

from pacbound.errors import InvalidValueError

# Windows says nothing when a lock is let go of: so many seconds until the next look.
_LOOK_AGAIN: Final = 0.1


class _Held(threading.local):
    """The locks that this thread holds."""

    def __init__(self) -> None:
        self.places: set[Path] = set()


_held = _Held()


@contextmanager
def locked(
    path: str | os.PathLike[str], *, wait: bool, waiting: Callable[[], None] | None = None
) -> Iterator[None]:
    """In a `with` block: no other process and no other thread holds the lock of the file `path`.

    A thread that holds it may take it again. A device or a pipe has no lock, because nothing in it
    is read and written again.

    Parameters
    ----------
    path
        The file, which need not be there yet. Other names of the same file have the same lock.
    wait
        Whether to wait for whoever holds it. If not, `InvalidValueError` is raised.
    waiting
        Called once before there is something to wait for, to say so.

    Yields
    ------
    None
        Once the lock is held. It is let go of at the end of the block.

    Raises
    ------
    InvalidValueError
        If the lock is held elsewhere and is not waited for, or the lock file cannot be made.

    Examples
    --------
    >>> with locked("state.json", wait=False):
    ...     print("nobody else reads or writes it")
    nobody else reads or writes it
    """
    target = Path(path).resolve()
    place = target.with_name(f"{target.name}.lock")
    if place in _held.places or (target.exists() and not (target.is_file() or target.is_dir())):
        yield
        return
    with ExitStack() as stack:
        try:
            file = stack.enter_context(place.open("a+b"))
        except FileNotFoundError:
            raise InvalidValueError(
                f"{path} cannot be locked: there is no folder {place.parent}."
            ) from None
        except OSError as error:
            raise InvalidValueError(f"{path} cannot be locked: {error.strerror}.") from None
        if not taken(file, wait=False) and not (wait and _waited(file, waiting)):
            raise InvalidValueError(
                f"{path} is in use by another process, which would write over what this one does, "
                "or be written over: wait for it, or end it. Nothing was changed."
            )
        _held.places.add(place)
        # Closing the file lets go of it.
        stack.callback(_held.places.discard, place)
        yield


def _waited(file: IO[bytes], waiting: Callable[[], None] | None) -> bool:
    """Whether the lock could be taken once whoever held it let go."""
    if waiting is not None:
        waiting()
    return taken(file, wait=True)


def taken(file: IO[bytes], *, wait: bool) -> bool:
    """Whether the lock of an open file could be taken; closing the file lets go of it."""
    try:
        if sys.platform == "win32":
            import msvcrt  # noqa: PLC0415 - only there

            # LK_LOCK gives up with another OSError after ten seconds, so wait here for as long as
            # it takes.
            while True:
                try:
                    msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)
                    break
                except PermissionError:
                    if not wait:
                        raise
                    time.sleep(_LOOK_AGAIN)
        else:
            import fcntl  # noqa: PLC0415 - only there

            fcntl.flock(file, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)
    except (BlockingIOError, PermissionError):
        return False
    return True
