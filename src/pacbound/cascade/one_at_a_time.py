"""Sessions that several threads share: each call is taken as a whole, one after the other."""

from __future__ import annotations

import functools
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any, Concatenate, ParamSpec, Protocol, TypeVar


class Locked(Protocol):
    """Something with a lock of its own, which a thread that holds it may take again."""

    @property
    def _lock(self) -> AbstractContextManager[Any]: ...


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
