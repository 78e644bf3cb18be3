"""Asking models behind a network: several items at a time, never more than a given number at once
or in a second, and again after a failure that may pass.

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
from contextlib import aclosing, asynccontextmanager, suppress
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from inspect import isawaitable
from math import inf
from typing import Any, Final, Generic, Protocol, TypedDict, TypeVar

import numpy as np

from pacbound.cascade.sessions import SessionLock
from pacbound.cascade.stages import is_count
from pacbound.errors import InvalidTypeError, InvalidValueError, ModelError
from pacbound.stats.arguments import generator

Items = Iterable[Any] | AsyncIterable[Any]
T = TypeVar("T")

# Answers of a server that may be another one a moment later: too slow, in conflict, too early, too
# many requests; and all from 500 on.
PASSING: Final = (408, 409, 425, 429)

IN_A_THREAD: Final = (
    "Call a blocking one in a thread, `async def model(item): return await "
    "asyncio.to_thread(blocking, item)`."
)

# The program is wrong, and will be again.
PROGRAM_ERRORS: Final = (
    AttributeError,
    ImportError,
    NameError,
    NotImplementedError,
    TypeError,
)

# What is not a date of a clock: other types, other text, a year or a zone that is out of range.
_NO_DATE: Final = (TypeError, ValueError, AttributeError, OverflowError, OSError)


class Indexed(Protocol):
    """A result that knows the place of its item in the stream."""

    @property
    def index(self) -> int: ...


Result = TypeVar("Result", bound=Indexed)


class AskingOptions(TypedDict, total=False):
    """The options of `Asking`, where a function takes them itself."""

    concurrency: Any
    per_second: Any
    timeout: Any
    retries: Any
    pause: Any
    longest_wait: Any
    retry_if: Any


@dataclass(frozen=True)
class Reply:
    """What came of asking about an item.

    Attributes
    ----------
    index, item
        The place of the item among all, and the item itself.
    answer
        What was answered.
    reason : str or None
        Why there is no answer; None if there is one.

    Examples
    --------
    >>> Reply(0, "my money back", reason="TimeoutError (3 tries)").answer is None
    True
    """

    index: int
    item: Any
    answer: Any = None
    reason: str | None = None


class NotAwaitableError(InvalidTypeError):
    """What was called cannot be awaited."""


class Asking:
    """How a model behind a network is asked: how many requests at once and in a second, how long
    one may take, and which failures are tried again, when and how often.

    The limits hold for the object. Whatever is given the same one shares them: the models of a
    cascade that one server hosts, a cascade and a batch.

    After a failure that may pass, a request waits and is sent again. The wait is random, between
    half of a time and the whole of it, which doubles with each try. A server that asks for a longer
    one, by `Retry-After` in seconds or as a date, gets it, and all requests of the object wait as
    long. What the server asks is read from the exception: its `retry_after`, or the headers of its
    `response`, as httpx, requests, aiohttp, openai and LiteLLM have them. Clients that try again by
    themselves should be told not to (`max_retries=0`), or tries multiply.

    A request that timed out may have been answered, and be paid for, all the same.

    Parameters
    ----------
    concurrency : int, default=8
        The most requests under way at once, in one event loop.
    per_second : float, optional
        The most requests that are started in a second, tries after failures among them: any two
        starts are at least 1 / per_second seconds apart, in all threads of the process.
    timeout : float, optional
        Seconds after which a request has failed. Waiting for a turn does not count.
    retries : int, default=2
        How often a request that failed is sent again.
    pause : float, default=1.0
        Seconds before the first repetition at the most; the time doubles with each.
    longest_wait : float, default=60.0
        The most seconds that the wait grows to, and the most that a server may ask for. One that
        asks for more is not asked again: while more than that is left of its time, every request
        fails at once, unsent.
    retry_if : callable, optional
        Says of an exception whether another try is worth it. If left out: errors with an HTTP
        status are tried again if it is 408, 409, 425, 429 or from 500 on, and others unless they
        are mistakes in a program (TypeError, AttributeError, …).
    rng : numpy.random.Generator, optional
        Draws the random part of the waits.

    Raises
    ------
    InvalidValueError, InvalidTypeError
        If an option is not one; the message names it.

    Examples
    --------
    >>> import asyncio
    >>> from pacbound.cascade import Answer, AsyncCascade
    >>> answers = iter([ConnectionError("busy"), Answer("refund", 0.98)])
    >>> async def small(text):
    ...     answer = next(answers)
    ...     if isinstance(answer, Exception):
    ...         raise answer
    ...     return answer
    >>> async def large(text):
    ...     return Answer("refund")
    >>> asking = Asking(per_second=20, timeout=30, retries=4, pause=0.01)
    >>> router = AsyncCascade([small, large], [0.9], asking=asking)
    >>> asyncio.run(router.route("my money back")).prediction
    'refund'
    """

    def __init__(
        self,
        *,
        concurrency: int = 8,
        per_second: float | None = None,
        timeout: float | None = None,
        retries: int = 2,
        pause: float = 1.0,
        longest_wait: float = 60.0,
        retry_if: Callable[[BaseException], bool] | None = None,
        rng: np.random.Generator | None = None,
    ) -> None:
        _require(is_count(concurrency), "an integer from 1", concurrency=concurrency)
        _require(_is_positive(per_second), "a number above 0, or None", per_second=per_second)
        _require(_is_positive(timeout), "seconds above 0, or None", timeout=timeout)
        whole = _is_seconds(retries) and retries == int(retries)
        _require(whole, "an integer from 0", retries=retries)
        _require(_is_seconds(pause), "seconds from 0", pause=pause)
        _require(_is_seconds(longest_wait), "seconds from 0", longest_wait=longest_wait)
        _require(retry_if is None or callable(retry_if), "a function", retry_if=retry_if)
        self.concurrency, self.timeout, self.retries = int(concurrency), timeout, int(retries)
        self._pause, self._longest_wait = float(pause), float(longest_wait)
        self._worth = retry_if or worth_retrying
        self._rng = np.random.default_rng() if rng is None else generator(rng)
        self._pace = _Pace(per_second, self._longest_wait)
        self._rooms: dict[asyncio.AbstractEventLoop, _Room] = {}

    def called(self, ask: Callable[[], T], failure: Callable[[str], Exception]) -> T:
        """What `ask` gives; if its last try fails, `failure` makes the error from the reason."""
        tries = 0
        while True:
            try:
                while wait := self._pace.wait():
                    time.sleep(wait)
                return ask()
            except Exception as error:
                tries += not isinstance(error, _NotSentError)
                wait = self._wait(error, tries, failure)
            time.sleep(wait)

    async def each(
        self, ask: Callable[[Any], Awaitable[Any]], items: Items, *, ordered: bool = False
    ) -> AsyncGenerator[Reply, None]:
        """Ask about each of some items, within the limits, and again after failures.

        A request that is slow holds back no other. One that fails for good is handed out with its
        reason in place of an answer, and the others go on.

        Parameters
        ----------
        ask
            An async function of one item.
        items : iterable or async iterable
            What it is asked about. Another item is taken when there is room.
        ordered
            Whether answers come in the order of the items, or as they are finished.

        Yields
        ------
        Reply
            For each item the answer, or why there is none.

        Examples
        --------
        >>> import asyncio
        >>> async def inverse(number):
        ...     return 1 / number
        >>> async def main():
        ...     asking = Asking(retries=0)
        ...     return [asked async for asked in asking.each(inverse, [4, 0], ordered=True)]
        >>> for asked in asyncio.run(main()):
        ...     print(asked.item, asked.answer, asked.reason)
        4 0.25 None
        0 None ZeroDivisionError: division by zero
        """

        async def one(index: int, item: Any) -> Reply:
            async def call() -> Any:
                return await awaitable(ask(item), "ask", IN_A_THREAD)

            try:
                return Reply(index, item, await self.awaited(call, ModelError))
            except ModelError as error:
                return Reply(index, item, reason=str(error))

        stream = BoundedStream(one, items, limit=self.concurrency)
        async with aclosing(stream.results(ordered=ordered)) as results:
            async for asked in results:
                yield asked

    async def awaited(
        self, ask: Callable[[], Awaitable[T]], failure: Callable[[str], Exception]
    ) -> T:
        """The same for an `ask` that is awaited. Only a cancellation from outside cancels it: a
        CancelledError that `ask` raises itself is a failure like others.
        """
        task = asyncio.current_task()
        cancelled, tries = task.cancelling() if task else 0, 0
        while True:
            try:
                async with self._turn():
                    answer = await self._in_time(ask)
                if task and task.cancelling() > cancelled:
                    # It was swallowed.
                    raise asyncio.CancelledError
                return answer
            except NotAwaitableError:
                raise
            except (Exception, asyncio.CancelledError) as error:
                if task and task.cancelling() > cancelled:
                    raise
                tries += not isinstance(error, _NotSentError)
                wait = self._wait(error, tries, failure)
            await asyncio.sleep(wait)

    @asynccontextmanager
    async def _turn(self) -> AsyncGenerator[None, None]:
        """One of the places for requests under way, taken when it may start."""
        loop = asyncio.get_running_loop()
        room = self._rooms.setdefault(loop, _Room(self.concurrency))
        room.users += 1
        try:
            async with room.places:
                if self._pace.wait():
                    # One after the other: otherwise all that wait would wake at each start.
                    async with room.queue:
                        while wait := self._pace.wait():
                            await asyncio.sleep(wait)
                yield
        finally:
            room.users -= 1
            if not room.users:
                # What has waited keeps its loop alive.
                del self._rooms[loop]

    async def _in_time(self, ask: Callable[[], Awaitable[T]]) -> T:
        try:
            async with asyncio.timeout(self.timeout) as clock:
                # In a task of its own, so that what cancels itself does not cancel its caller.
                return await asyncio.ensure_future(ask())
        except TimeoutError as error:
            if clock.expired():
                raise _TooLateError(f"no answer within {self.timeout} s") from error
            raise

    def _wait(self, error: BaseException, tries: int, failure: Callable[[str], Exception]) -> float:
        """The seconds until the next try; raises if there is none."""
        after = retry_after(error) or 0.0
        sent = not isinstance(error, _NotSentError)
        if sent:
            self._pace.hold(after)
        if after > self._longest_wait or tries > self.retries or not self._worth(error):
            plain = isinstance(error, _TooLateError) or not sent
            said = str(error) if plain else _shown(error)
            wish = f"; it asks to wait {after:g} s" if after > self._longest_wait else ""
            raise failure(f"{said}{wish}{f' ({tries} tries)' if tries > 1 else ''}") from error
        most = min(self._pause * 2.0 ** min(tries - 1, 60), self._longest_wait)
        return max(after, most / 2) + most / 2 * float(self._rng.random())

    def __getstate__(self) -> dict[str, Any]:
        # Event loops, and what waits in them, stay where they are.
        return {**vars(self), "_rooms": {}}

    def __repr__(self) -> str:
        return (
            f"Asking(concurrency={self.concurrency}, per_second={self._pace.per_second}, "
            f"timeout={self.timeout}, retries={self.retries})"
        )


class _TooLateError(TimeoutError):
    """The clock of an `Asking` ran out."""


class _NotSentError(Exception):
    """The server asks for a wait that is too long."""

    def __init__(self, seconds: float) -> None:
        super().__init__("the server was not asked")
        self.retry_after = seconds


class _Pace:
    """When the next request may start: at least 1/rate after the last one began, and not while a
    server asks us to wait.
    """

    def __init__(self, per_second: float | None, longest_wait: float) -> None:
        self.per_second, self._longest_wait = per_second, longest_wait
        self._gap = 0.0 if per_second is None else 1.0 / per_second
        self._next, self._lock = -inf, SessionLock()
        # Until when the server asks to wait.
        self._held = -inf

    def wait(self) -> float:
        """0 if a request may start now, and then it has; or the seconds until one may. Raises if
        the server asks for more than the longest wait.
        """
        with self._lock:
            now = time.monotonic()
            if self._held - now > self._longest_wait:
                raise _NotSentError(self._held - now)
            if now < self._next:
                return self._next - now
            self._next = now + self._gap
            return 0.0

    def hold(self, seconds: float) -> None:
        """Let no request start for `seconds`."""
        with self._lock:
            if seconds:
                self._held = max(self._held, time.monotonic() + seconds)
                self._next = max(self._next, self._held)

    def __reduce__(self) -> tuple[type[_Pace], tuple[float | None, float]]:
        # Another process has another clock.
        return _Pace, (self.per_second, self._longest_wait)


class _Room:
    """The places for requests under way in one event loop, and how many want one."""

    def __init__(self, concurrency: int) -> None:
        self.places, self.queue = asyncio.Semaphore(concurrency), asyncio.Lock()
        self.users = 0


def asking_each(n_models: int, asking: Any, options: Mapping[str, Any]) -> list[Asking]:
    """How each model is asked: by one `Asking` for all, one for each, or one of its own for each
    from the options.
    """
    refuse_strange(options, AskingOptions, "an option of Asking")
    if asking is None:
        columns = {name: _per_model(name, value, n_models) for name, value in options.items()}
        return [
            Asking(**{name: values[place] for name, values in columns.items()})
            for place in range(n_models)
        ]
    given = list(asking) if isinstance(asking, Sequence) else [asking] * n_models
    if options or len(given) != n_models or not all(isinstance(one, Asking) for one in given):
        raise InvalidTypeError(
            f"asking={asking!r} with {', '.join(options) or 'no other option'}: expected an "
            f"Asking, or {n_models} of these, one for each model, and no other option."
        )
    return given


def most_at_once(each: Sequence[Asking]) -> int:
    """How many requests may be under way at all models together."""
    return sum({id(one): one.concurrency for one in each}.values())


def one_asking(asking: Any, options: Mapping[str, Any]) -> Asking:
    """How a single model is asked."""
    return asking_each(1, asking, options)[0]


def refuse_strange(options: Mapping[str, Any], known: Any, what: str) -> None:
    """Raise for an option that is not among those of a typed dictionary."""
    strange = next((name for name in options if name not in known.__annotations__), None)
    if strange is not None:
        raise InvalidTypeError(
            f"{strange} is not {what}: expected {', '.join(sorted(known.__annotations__))}."
        )


def awaitable(called: Any, who: str, remedy: str) -> Awaitable[Any]:
    """What was called, if it can be awaited."""
    if not isawaitable(called):
        raise NotAwaitableError(
            f"{who} gave a {type(called).__name__} that cannot be awaited: expected an async "
            f"function. {remedy}"
        )
    return called


def worth_retrying(error: BaseException) -> bool:
    """Whether a request that failed with `error` may succeed a moment later."""
    status = _status(error)
    if status is not None:
        return status in PASSING or status >= 500
    return not isinstance(error, PROGRAM_ERRORS)


def retry_after(error: BaseException) -> float | None:
    """The seconds that a server asks to wait, as the exception of its client tells it; None if it
    does not ask.
    """
    for one in _causes(error):
        headers = _headers(one)
        asked = (
            (getattr(one, "retry_after", None), 1.0),
            (headers.get("retry-after-ms"), 1e-3),
            (headers.get("retry-after"), 1.0),
        )
        for value, unit in asked:
            seconds = _seconds(value, headers.get("date"))
            if seconds is not None:
                return seconds * unit
    return None


def _causes(error: BaseException) -> Iterator[BaseException]:
    """An error, and what it was raised from: whoever wraps errors of a client keeps what they
    know.
    """
    seen: list[BaseException] = []
    found: BaseException | None = error
    while found is not None and found not in seen:
        seen.append(found)
        yield found
        found = found.__cause__


def _owners(error: BaseException) -> tuple[Any, Any]:
    return error, getattr(error, "response", None)


def _status(error: BaseException) -> int | None:
    """The HTTP status of an error, wherever its client keeps it."""
    for one in _causes(error):
        for owner in _owners(one):
            for name in ("status_code", "status", "code"):
                status: Any = getattr(owner, name, None)
                if is_count(status) and 400 <= int(status) < 600:
                    return int(status)
    return None


def _headers(error: BaseException) -> dict[str, Any]:
    for owner in _owners(error):
        for name in ("headers", "litellm_response_headers"):
            found: Any = getattr(owner, name, None)
            if hasattr(found, "items"):
                return {str(key).lower(): value for key, value in found.items()}
    return {}


def _seconds(value: Any, date: Any) -> float | None:
    """Seconds from a number, as text too, or from an HTTP date, by the server's clock where it
    tells its time.
    """
    with suppress(TypeError, ValueError, OverflowError):
        seconds = float(value)
        return seconds if 0 <= seconds < inf else None
    with suppress(*_NO_DATE):
        moment = parsedate_to_datetime(value).timestamp()
        now = time.time()
        with suppress(*_NO_DATE):
            now = parsedate_to_datetime(date).timestamp()
        return max(0.0, moment - now)
    return None


def _shown(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}" if str(error) else type(error).__name__


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


def _per_model(name: str, value: Any, n_models: int) -> list[Any]:
    """One value for each model, from one for all of them or one for each."""
    given = value.tolist() if isinstance(value, np.ndarray) else value
    if not isinstance(given, Sequence) or isinstance(given, str):
        return [given] * n_models
    if len(given) != n_models:
        raise InvalidValueError(
            f"{name}={value!r}: expected one value, or {n_models}, one for each model."
        )
    return list(given)


def _require(legal: bool, what: str, **given: Any) -> None:  # noqa: FBT001
    if not legal:
        ((name, value),) = given.items()
        raise InvalidValueError(f"{name}={value!r}: expected {what}.")


def _is_positive(value: Any) -> bool:
    return value is None or (_is_seconds(value) and bool(value > 0))


def _is_seconds(value: Any) -> bool:
    return (
        isinstance(value, (int, float, np.integer, np.floating))
        and not isinstance(value, bool)
        and bool(0 <= value < inf)
    )
