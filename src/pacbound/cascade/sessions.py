"""Sessions that several threads share: each call is taken as a whole, one after the other."""

from __future__ import annotations

import functools
from collections.abc import Callable
from threading import RLock
from typing import Concatenate, ParamSpec, Protocol, TypeVar


class SessionLock:
    """A lock that the thread that holds it may take again; a copy is a new lock, held by nobody."""

    def __init__(self) -> None:
        self._lock = RLock()

    def __enter__(self) -> None:
        self._lock.acquire()

    def __exit__(self, *_: object) -> None:
        self._lock.release()

    def __reduce__(self) -> tuple[type[SessionLock], tuple[()]]:
        return SessionLock, ()


class Locked(Protocol):
    """Something with a lock of its own."""

    @property
    def _lock(self) -> SessionLock: ...


Session = TypeVar("Session", bound=Locked)
Given = ParamSpec("Given")
Result = TypeVar("Result")


def one_at_a_time(
    method: Callable[Concatenate[Session, Given], Result],
) -> Callable[Concatenate[Session, Given], Result]:
    """The method, which waits while another thread is in one of the same session."""

    @functools.wraps(method)
    def alone(self: Session, /, *args: Given.args, **options: Given.kwargs) -> Result:
        with self._lock:
            return method(self, *args, **options)

    return alone
