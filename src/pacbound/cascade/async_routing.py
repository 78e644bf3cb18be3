"""Routing items through remote models, fast to slow, several at a time: language models behind an
API, model servers.

The rule is that of `Cascade`: an item exits where its float64 score is at or above the threshold. A
model here takes one item and is awaited. How it is asked, how often and how fast, is its client's
business; the order, and what becomes of items on which a model failed, is handled here.
"""

from __future__ import annotations

import asyncio
from collections.abc import (
    AsyncGenerator,
    AsyncIterable,
    Awaitable,
    Callable,
    Coroutine,
    Iterable,
    Mapping,
    Sequence,
    Sized,
)
from contextlib import aclosing
from copy import deepcopy
from inspect import isawaitable
from time import perf_counter
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from pacbound.cascade.routing import (
    LEFT_OUT,
    CascadeResult,
    CascadeStatistics,
    Failure,
    Routed,
)
from pacbound.cascade.stages import (
    ExitThresholds,
    SaidByModel,
    Stage,
    Thresholds,
    read_item,
    require_same_classes,
    shown,
    stages_of,
)
from pacbound.errors import InvalidTypeError, InvalidValueError, ModelError
from pacbound.stats.arguments import one_of, whole_number
from pacbound.tally.columns import Array, Floats, as_column, as_names

Names = Sequence[Any] | NDArray[Any] | Callable[[Any], Any] | None
Items = Iterable[Any] | AsyncIterable[Any]
OnError = Literal["raise", "slow", "skip"]


class AsyncCascade:
    """Remote models in a row, fast to slow, each answering the items it is sure enough of and
    passing on the others.

    The guarantee is that of `Cascade`: with the thresholds of a certified `CascadeCertificate`, at
    most `xi` accuracy is lost against the last model, with probability at least 1 - `delta` over
    the draw of the rows that certified it, for the very models and the distribution they came from.
    A hosted model that its owner replaces is another model: certify it again.

    A model is an async function of one item that gives an `Answer`, or one probability per class. A
    model whose threshold is +inf is not called at all.

    An item that was left out was not answered, and the guarantee says nothing about an answer that
    is not there. Let f be the share of items on which a model but the last failed, or that were
    given up (cancelled, turned away), and l the share that was left out, given up or not. An item
    that the last model answers loses nothing against it, but `xi` is net, and the answers that are
    not there may have been gains that offset losses. So over all items, an item that was left out
    taken as if the last model had answered it, at most `xi` + f is lost; if an item that was left
    out counts as wrong, at most `xi` + f + l; and among the items that were answered at most
    (`xi` + f) / (1 - l). Where f = 0, or where failing and giving up have nothing to do with the
    request, its true answer included, f may be left out of all three.

    `statistics` counts both for `route`: of all items, `rows` + `left_out`, f is the share of
    `failed[:-1].sum()` + `given_up`, and l that of `left_out`. `run` and `stream` count items on
    which models failed; those of a run or stream that was broken off, and what is turned away
    before it gets here, add to f and l yourself.

    Parameters
    ----------
    models : sequence of async callables
        Two or more, the fast one first and the slow one last.
    certificate_or_thresholds : cascade certificate, its path, or numbers
        One threshold for every model but the last, or a mapping from groups to these. A
        certificate that was read from a file is
        verified first, once, which can take seconds; one that does not follow from its own counts
        raises `CertificateError`.
    on_error : {"raise", "slow", "skip"}, default="raise"
        What becomes of an item on which a model fails. "raise": the run ends;
        what is under way is cancelled, and what was finished by then is the `partial` of the
        `ModelError`. "slow": it goes straight to the last model; if that fails, too, the item is
        left out, with its reason. "skip": it is left out.
    classes : sequence, optional
        The names of the classes, for models that give probabilities.
    concurrency : int, default=8
        The most items that one `run` or `stream` has under way. It takes another item when there is
        room for it: a slow consumer, or a slow item that others wait behind, holds back the source
        instead of filling the memory.

    Notes
    -----
    What a model raises, a timeout among it, is its failure on that item. Timeouts, tries after
    failures and pacing are those of the client, or of tenacity and aiolimiter around the model.

    Raises
    ------
    InvalidTypeError, InvalidValueError
        If there are fewer than two models, one cannot be called, or an option is not one.
    CertificateError
        If the certificate was changed after it was written.
    ModelError
        From every prediction, if a model fails or gives what is not an answer; see `on_error`.

    Examples
    --------
    >>> import asyncio
    >>> from pacbound.cascade import Answer
    >>> async def small(text):
    ...     label = "refund" if "money" in text else "other"
    ...     return Answer(label, confidence=min(1.0, len(text) / 20))
    >>> async def large(text):
    ...     return Answer("refund" if "pay" in text or "money" in text else "other")
    >>> router = AsyncCascade([small, large], [0.9])
    >>> result = asyncio.run(router.run(["I want my money back", "You owe me pay"]))
    >>> result.predictions.tolist(), result.exits.tolist()
    (['refund', 'refund'], [0, 1])
    """

    def __init__(
        self,
        models: Sequence[Callable[[Any], Awaitable[Any]]],
        certificate_or_thresholds: Thresholds,
        *,
        on_error: OnError = "raise",
        classes: Any = None,
        concurrency: int = 8,
    ) -> None:
        self._stages = stages_of(models, unit="item")
        self._exits = ExitThresholds.of(certificate_or_thresholds, len(self._stages))
        self._on_error = one_of(on_error, ("raise", "slow", "skip"), "on_error")
        self._classes = None if classes is None else as_column(classes, "classes")
        self._window = whole_number(concurrency, "concurrency", least=1)
        self.statistics = CascadeStatistics(len(self._stages))

    @property
    def thresholds(self) -> Any:
        """The scores from which each model but the last answers, as an array; where each group has
        its own, a dictionary of such arrays by the names of the groups.
        """
        return deepcopy(self._exits.values)

    async def predict(self, items: Items, *, groups: Names = None) -> Array:
        """The answer for each item.

        Parameters
        ----------
        items : iterable or async iterable
            What the models are asked about, one by one.
        groups : sequence or callable, optional
            As in `run`.

        Returns
        -------
        ndarray of shape (n,)
            Class indices or names, in the order of the items; None for an item that was left out.

        Raises
        ------
        ModelError
            As from `run`.
        """
        return (await self.run(items, groups=groups)).predictions

    async def run(self, items: Items, *, groups: Names = None) -> CascadeResult:
        """Answers, exits, confidences and times, in the order of the items.

        Parameters
        ----------
        items : iterable or async iterable
            What the models are asked about, one by one.
        groups : sequence or callable, optional
            The group of each item, or a function that gives the group of an item; needed if and
            only if each group has its own thresholds. An item of a group that is not known never
            exits early.

        Returns
        -------
        CascadeResult
            All of it; `failures` names each item on which a model failed, `left_out` those that
            were not answered.

        Raises
        ------
        ModelError
            At the first failure, with `on_error="raise"`; what was finished by then is its
            `partial`.
        """
        done: list[Routed] = []
        try:
            async with aclosing(self._streamed(items, groups).results(ordered=False)) as results:
                async for routed in results:
                    # What was finished is needed where the stream fails.
                    done.append(routed)  # noqa: PERF401, RUF100
        except ModelError as error:
            error.partial = tuple(sorted([*done, *error.partial], key=lambda routed: routed.index))
            raise
        return self._counted(sorted(done, key=lambda routed: routed.index))

    async def stream(
        self, items: Items, *, ordered: bool = True, groups: Names = None
    ) -> AsyncGenerator[Routed, None]:
        """The answers one by one while the items come in.

        A loop that may stop early should close the stream, with `contextlib.aclosing`: that cancels
        what is under way.

        Parameters
        ----------
        items : iterable or async iterable
            What the models are asked about. It may be endless: it is asked for another item only
            when there is room.
        ordered : bool, default=True
            Whether answers come in the order of the items, or as they are finished.
        groups : sequence or callable, optional
            As in `run`.

        Yields
        ------
        Routed
            The answer for each item; one that was left out says so.
        """
        async with aclosing(self._streamed(items, groups).results(ordered=ordered)) as results:
            async for routed in results:
                self._counted([routed])
                yield routed

    async def route(self, item: Any, *, group: Any = None) -> Routed:
        """The answer for one item, for servers, which have one at a time and limit how many there
        are.

        Parameters
        ----------
        item : any
            What the models are asked about.
        group : int or str, optional
            The group of the item, needed if and only if each group has its own thresholds.

        Returns
        -------
        Routed
            The answer.

        Raises
        ------
        ModelError
            If there is no answer: a model failed, and `on_error` does not send the item to the last
            one, or that failed itself. Like a request that is cancelled, it is counted as left out.
        """
        try:
            routed = await self._route(0, item, self._exits.of_item(group), leave_out=False)
        except BaseException as error:
            given_up = int(not isinstance(error, ModelError))
            nothing = _joined([], len(self._stages))
            self.statistics.add(nothing.answered, nothing.seconds, left_out=1, given_up=given_up)
            raise
        self._counted([routed])
        return routed

    def _streamed(self, items: Items, groups: Names) -> _UnderWay:
        self._exits.required(groups, "the group of each item, or a function that gives it")
        groups = _names(groups, items)

        async def route(index: int, item: Any) -> Routed:
            limits = self._exits.of_item(_group(groups, index, item))
            return await self._route(index, item, limits, leave_out=self._on_error != "raise")

        return _UnderWay(route, items, limit=self._window)

    async def _route(self, index: int, item: Any, limits: Floats, *, leave_out: bool) -> Routed:
        """The answer for an item. If there is none, it is left out, or raises."""
        seconds, failures = [0.0] * len(self._stages), list[Failure]()
        earlier: list[tuple[Stage, SaidByModel]] = []
        for stage in self._stages:
            limit = -np.inf if stage.last else limits[stage.place]
            if limit == np.inf or (failures and not stage.last):
                continue
            try:
                reading = await self._said(stage, index, item, seconds)
                require_same_classes(earlier, stage, reading)
            except ModelError as error:
                failures.append(Failure(index, item, stage.place, str(error)))
                self.statistics.failed_on(failures[-1])
                if self._on_error == "slow" and not stage.last:
                    continue
                if leave_out:
                    spent = tuple(seconds)
                    return Routed(index, item, None, LEFT_OUT, np.nan, spent, tuple(failures))
                raise
            earlier.append((stage, reading))
            if stage.last or reading.confidence[0] >= limit:
                break
        told = _plain(reading), stage.place, float(reading.confidence[0])
        return Routed(index, item, *told, tuple(seconds), tuple(failures))

    async def _said(self, stage: Stage, index: int, item: Any, seconds: list[float]) -> SaidByModel:
        """What a model says about an item; `seconds` takes how long it took."""
        task, started = asyncio.current_task(), perf_counter()
        cancelled = task.cancelling() if task else 0
        try:
            called = stage.model(item)
            if isawaitable(called):
                # In a task of its own: a model that cancels itself fails on this item alone.
                output = await asyncio.ensure_future(called)
        except (Exception, asyncio.CancelledError) as error:
            if task and task.cancelling() > cancelled:
                raise
            reason = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
            raise stage.error(f"failed on item {index}: {reason}", row=index) from error
        finally:
            seconds[stage.place] += perf_counter() - started
        if task and task.cancelling() > cancelled:
            raise asyncio.CancelledError  # The model swallowed it.
        if not isawaitable(called):
            raise InvalidTypeError(
                f"Model {stage} gave a {type(called).__name__} that cannot be awaited: expected an "
                "async function. Call a blocking one in a thread, `async def model(item): return "
                "await asyncio.to_thread(blocking, item)`."
            )
        return read_item(stage, output, index, self._classes)

    def _counted(self, done: Sequence[Routed]) -> CascadeResult:
        """What was routed, after it was counted."""
        found = _joined(done, len(self._stages))
        self.statistics.add(found.answered, found.seconds, left_out=len(found.left_out))
        return found

    def __repr__(self) -> str:
        return f"AsyncCascade({shown(self._stages, self._exits)})"


class _UnderWay:
    """The items of one stream that are under way."""

    def __init__(
        self, ask: Callable[[int, Any], Coroutine[Any, Any, Routed]], items: Items, *, limit: int
    ) -> None:
        _require_items(items)
        self._ask = ask
        self._items = items
        self._room = asyncio.Semaphore(limit)
        self._ended: asyncio.Queue[asyncio.Task[Any]] = asyncio.Queue()
        self._tasks: set[asyncio.Task[Routed]] = set()
        self._started = 0

    async def results(self, *, ordered: bool) -> AsyncGenerator[Routed, None]:
        """The results as they are finished, or in the order of the items.

        The first failure cancels what is under way and raises at once; what was finished and not
        handed out is its `partial`. Where the source itself fails, what is under way is finished
        first.
        """
        feeder = asyncio.create_task(self._feed())
        feeder.add_done_callback(self._ended.put_nowait)
        feeding, handed, ready = True, 0, dict[int, Routed]()
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

    def _finished(self, ready: dict[int, Routed]) -> tuple[Routed, ...]:
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


def _names(given: Names, items: Items) -> Names:
    """Groups as they are looked up: nothing, a function of items, or a list."""
    if given is None or callable(given):
        return given
    names: list[Any] = as_names(given, "groups").tolist()
    if isinstance(items, Sized) and len(items) != len(names):
        raise InvalidValueError(
            f"groups has {len(names)} names for {len(items)} items: pass one for each."
        )
    return names


def _group(names: Names, index: int, item: Any) -> Any:
    """The group of an item."""
    if names is None or callable(names):
        return None if names is None else names(item)
    if index >= len(names):
        raise InvalidValueError(f"Item {index} has no group: groups has {len(names)}.")
    return names[index]


def _plain(reading: SaidByModel) -> Any:
    label = reading.labels[0]
    return label.item() if isinstance(label, np.generic) else label


def _joined(done: Sequence[Routed], n_models: int) -> CascadeResult:
    return CascadeResult(
        _column([routed.prediction for routed in done]),
        np.array([routed.exit for routed in done], dtype=np.intp),
        np.array([routed.confidence for routed in done], dtype=np.float64),
        sum((np.array(routed.seconds) for routed in done), np.zeros(n_models)),
        tuple(failure for routed in done for failure in routed.failures),
    )


def _column(labels: list[Any]) -> Array:
    """Labels of one plain type as an array of it; others, such as parsed JSON, as objects."""
    if not labels:
        return np.empty(0, dtype=np.intp)
    if len({type(label) for label in labels}) == 1 and isinstance(
        labels[0], (str, bool, int, float)
    ):
        return np.array(labels)
    return np.fromiter(labels, dtype=object, count=len(labels))
