"""Asking models: several items at a time, never more than a given number at once, and again after a
failure.

An item is taken from the source when there is room for it, and holds its room until its result has
been handed out: a slow consumer, or a slow item that others wait behind, holds back the source
instead of filling the memory.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import (
    AsyncGenerator,
    AsyncIterable,
    Awaitable,
    Callable,
    Coroutine,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
)
from contextlib import aclosing
from dataclasses import dataclass
from inspect import isawaitable
from time import perf_counter
from typing import Any, Generic, Protocol, TypeVar
from weakref import WeakKeyDictionary

import numpy as np

from pacbound.cascade.stages import Stage, is_count
from pacbound.errors import InvalidTypeError, InvalidValueError, ModelError
from pacbound.stats.arguments import real_number, whole_number

Items = Iterable[Any] | AsyncIterable[Any]
Gates = WeakKeyDictionary[asyncio.AbstractEventLoop, list[asyncio.Semaphore]]
T = TypeVar("T")


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

    def called(self, ask: Callable[[], T], failure: Callable[[Exception], Exception]) -> T:
        """What `ask` gives; if it fails to the last, `failure` says so."""
        waits = self._waits()
        while True:
            try:
                return ask()
            except Exception as error:
                wait = next(waits, None)
                if wait is None:
                    raise failure(error) from error
            time.sleep(wait)

    async def awaited(
        self, ask: Callable[[], Awaitable[T]], failure: Callable[[Exception], Exception]
    ) -> T:
        """The same of what must be awaited."""
        waits = self._waits()
        while True:
            try:
                return await ask()
            except Exception as error:
                wait = next(waits, None)
                if wait is None:
                    raise failure(error) from error
            await asyncio.sleep(wait)

    def _waits(self) -> Iterator[float]:
        """The seconds to wait before each repetition."""
        for time_ in range(self.times):
            yield self.pause * 2.0**time_


class Calls:
    """Calls of the models of a cascade: how many of each may be under way in an event loop, and
    after how many seconds one has failed.
    """

    def __init__(self, n_models: int, concurrency: Any, timeout: Any) -> None:
        self._limits = _per_model(
            concurrency, n_models, "concurrency", is_count, "an integer from 1"
        )
        self._timeouts = _per_model(
            timeout, n_models, "timeout", _is_timeout, "seconds above 0, or None"
        )
        self.window = self._limits[0] if is_count(concurrency) else sum(self._limits)
        self._gates: Gates = WeakKeyDictionary()

    async def output(self, stage: Stage, index: int, item: Any, seconds: list[float]) -> Any:
        """What a model gives for an item; `seconds` takes how long it took."""
        limit = self._timeouts[stage.place]
        async with self._gate(stage):
            started = perf_counter()
            try:
                async with asyncio.timeout(limit) as clock:
                    called = stage.model(item)
                    output = await called if isawaitable(called) else called
            except Exception as error:
                what = (
                    f"no answer within {limit} s"
                    if clock.expired()
                    else f"{type(error).__name__}: {error}"
                )
                raise stage.error(f"failed on item {index}: {what}", row=index) from error
            finally:
                seconds[stage.place] = perf_counter() - started
        if not isawaitable(called):
            raise InvalidTypeError(
                f"Model {stage} gave a {type(output).__name__} that cannot be awaited: expected an "
                "async function. Call a blocking one in a thread, `async def model(item): return "
                "await asyncio.to_thread(blocking, item)`."
            )
        return output

    def _gate(self, stage: Stage) -> asyncio.Semaphore:
        """What bounds the calls of a model. A semaphore belongs to one event loop, so each loop has
        its own.
        """
        gates = self._gates.setdefault(
            asyncio.get_running_loop(), [asyncio.Semaphore(limit) for limit in self._limits]
        )
        return gates[stage.place]

    def __getstate__(self) -> dict[str, Any]:
        # Event loops, and what waits in them, stay where they are.
        return {**vars(self), "_gates": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state, _gates=WeakKeyDictionary())


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


def _per_model(
    value: Any, n_models: int, name: str, legal: Callable[[Any], bool], what: str
) -> list[Any]:
    """One value for each model, from one for all of them or one for each."""
    given = value[()] if isinstance(value, np.ndarray) and not value.ndim else value
    values = (
        list(given)
        if isinstance(given, (Sequence, np.ndarray)) and not isinstance(given, str)
        else [given] * n_models
    )
    if len(values) != n_models or not all(map(legal, values)):
        raise InvalidValueError(
            f"{name}={value!r}: expected {what}, or {n_models} of these, one for each model."
        )
    return values


def _is_timeout(value: Any) -> bool:
    return value is None or (
        isinstance(value, (int, float, np.integer, np.floating))
        and not isinstance(value, bool)
        and bool(value > 0)
    )
