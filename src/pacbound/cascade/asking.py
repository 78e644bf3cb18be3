"""Asking models: several items at a time, never more than a given number at once, and again after a
failure.

An item is taken from the source when there is room for it, and holds its room until its result has
been handed out: a slow consumer, or a slow item that others wait behind, holds back the source
instead of filling the memory.
"""

from __future__ import annotations

import asyncio
from collections.abc import (
    AsyncGenerator,
    AsyncIterable,
    Callable,
    Coroutine,
    Iterable,
    Iterator,
    Mapping,
)
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar

from pacbound.errors import InvalidTypeError, ModelError
from pacbound.stats.arguments import real_number, whole_number

Items = Iterable[Any] | AsyncIterable[Any]


class Indexed(Protocol):
    """A result that knows the place of its item in the stream."""

    @property
    def index(self) -> int: ...


Result = TypeVar("Result", bound=Indexed)


@dataclass(frozen=True)
class Retry:
    """How often a call that failed is repeated, and the seconds before the first repetition, which
    double each time.
    """

    times: int
    pause: float

    @classmethod
    def of(cls, retries: Any, pause: Any) -> Retry:
        """The policy that was asked for, checked."""
        wait = real_number(pause, "pause", "a number of seconds")
        return cls(whole_number(retries, "retries"), max(0.0, wait))

    def waits(self) -> Iterator[float]:
        """The seconds to wait before each repetition."""
        for time_ in range(self.times):
            yield self.pause * 2.0**time_


class BoundedStream(Generic[Result]):
    """The items of one stream that are under way."""

    def __init__(
        self, ask: Callable[[int, Any], Coroutine[Any, Any, Result]], items: Items, *, limit: int
    ) -> None:
        _require_items(items)
        self._ask = ask
        self._items = items
        self._room = asyncio.Semaphore(limit)
        self._ended: asyncio.Queue[asyncio.Task[Any]] = asyncio.Queue()
        self._tasks: set[asyncio.Task[Result]] = set()
        self._started = 0

    async def results(self, *, ordered: bool) -> AsyncGenerator[Result, None]:
        """The results as they are finished, or in the order of the items.

        The first failure cancels what is under way and raises at once; what was finished and not
        handed out is its `partial`. Where the source itself fails, what is under way is finished
        first.
        """
        feeder = asyncio.create_task(self._feed())
        feeder.add_done_callback(self._ended.put_nowait)
        feeding, handed, ready = True, 0, dict[int, Result]()
        try:
            while feeding or handed < self._started:
                task = await self._ended.get()
                if task is feeder:
                    feeding = False
                    continue
                self._tasks.discard(task)
                routed = task.result()
                ready[routed.index] = routed
                while ready and (not ordered or handed in ready):
                    yield ready.pop(handed if ordered else next(iter(ready)))
                    handed += 1
                    self._room.release()
            feeder.result()
        except ModelError as error:
            error.partial = self._finished(ready)
            raise
        finally:
            for unfinished in (feeder, *self._tasks):
                unfinished.cancel()
            await asyncio.gather(feeder, *self._tasks, return_exceptions=True)

    async def _feed(self) -> None:
        async with aclosing(_each(self._items)) as source:
            while True:
                await self._room.acquire()
                try:
                    item = await anext(source)
                except StopAsyncIteration:
                    return
                task = asyncio.create_task(self._ask(self._started, item))
                self._started += 1
                self._tasks.add(task)
                task.add_done_callback(self._ended.put_nowait)

    def _finished(self, ready: dict[int, Result]) -> tuple[Result, ...]:
        good = [
            task.result()
            for task in self._tasks
            if task.done() and not task.cancelled() and task.exception() is None
        ]
        return tuple(sorted([*ready.values(), *good], key=lambda routed: routed.index))


async def _each(items: Items) -> AsyncGenerator[Any, None]:
    if isinstance(items, AsyncIterable):
        async for item in items:
            yield item
    else:
        for item in items:
            yield item


def _require_items(items: Any) -> None:
    if (
        isinstance(items, (str, bytes, Mapping))
        or hasattr(items, "iloc")
        or not isinstance(items, Iterable | AsyncIterable)
    ):
        raise InvalidTypeError(
            f"items is a {type(items).__name__}: expected a list or another iterable of items, "
            "each of which a model takes. Of a data frame pass to_dict('records')."
        )
