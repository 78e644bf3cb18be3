"""Remote models are asked several at a time, never too many, and every answer comes back in its
place."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import pickle
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from copy import deepcopy
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.cascade.servers import FlakyServer, drawn, serving

from pacbound import certify_cascade
from pacbound.cascade import Answer, AsyncCascade, Cascade, Failure, Routed
from pacbound.errors import InvalidTypeError, InvalidValueError, ModelError

Model = Callable[[Any], Awaitable[Any]]


class Kept(logging.Handler):
    """Keeps what is logged."""

    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self.messages: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.messages.append(record.getMessage())

    @classmethod
    @contextlib.contextmanager
    def listening(cls) -> Iterator[None]:
        """asyncio logs what nobody waited for: exceptions never retrieved, tasks destroyed while
        pending."""
        kept = cls()
        logging.getLogger("asyncio").addHandler(kept)
        yield
        logging.getLogger("asyncio").removeHandler(kept)
        assert kept.messages == []


@pytest.fixture(autouse=True)
def _no_task_is_left_behind() -> Iterator[None]:
    with Kept.listening():
        yield


class Remote:
    """A model on the other side of a network: it takes a while, and knows how many are waiting for
    it."""

    def __init__(
        self, answer: Callable[[Any], Any], delay: Callable[[Any], float] = lambda item: 0.0
    ) -> None:
        self.answer = answer
        self.delay = delay
        self.waiting = self.most = 0
        self.asked: list[Any] = []
        self.cancelled: list[Any] = []

    async def __call__(self, item: Any) -> Any:
        self.asked.append(item)
        self.waiting += 1
        self.most = max(self.most, self.waiting)
        try:
            await asyncio.sleep(self.delay(item))
            return self.answer(item)
        except asyncio.CancelledError:
            self.cancelled.append(item)
            raise
        finally:
            self.waiting -= 1


def _fast(item: int) -> Answer:
    return Answer(item % 7, (item * 37 % 100) / 100)


def _slow(item: int) -> Answer:
    return Answer(item % 5)


def _expected(items: Any, threshold: float = 0.6) -> tuple[list[int], list[int]]:
    exits = [0 if _fast(item).confidence >= threshold else 1 for item in items]
    return [
        (_fast, _slow)[exit_](item).label for exit_, item in zip(exits, items, strict=True)
    ], exits


def _random_delays(seed: int, most: float = 0.01) -> Callable[[Any], float]:
    rng = np.random.default_rng(seed)
    return lambda item: float(rng.random() * most)


def _broken(item: Any) -> Any:
    raise ConnectionError("no route to host")


# ----------------------------------------------------------------------------------------------
# answers and order


@pytest.mark.parametrize("concurrency", [1, 3, 50])
def test_order_is_kept_whatever_the_delays(concurrency: Any) -> None:
    items = list(range(60))
    cascade = AsyncCascade(
        [Remote(_fast, _random_delays(1)), Remote(_slow, _random_delays(2))],
        [0.6],
        concurrency=concurrency,
    )
    result = asyncio.run(cascade.run(items))
    labels, exits = _expected(items)
    assert set(exits) == {0, 1}
    assert result.predictions.tolist() == labels
    assert result.exits.tolist() == exits
    assert np.isnan(result.confidences[result.exits == 1]).all()
    assert result.confidences[result.exits == 0].tolist() == [
        _fast(i).confidence for i in items if exits[i] == 0
    ]
    assert (
        cascade.statistics.answered.tolist()
        == result.answered.tolist()
        == [exits.count(0), exits.count(1)]
    )
    assert np.array_equal(cascade.statistics.seconds, result.seconds)


def test_predict_gives_what_run_gives() -> None:
    cascade = AsyncCascade([Remote(_fast), Remote(_slow)], [0.6])
    labels, _ = _expected(range(20))
    assert asyncio.run(cascade.predict(range(20))).tolist() == labels


SCORES = st.lists(st.tuples(st.floats(0, 1, width=16), st.floats(0, 1, width=16)), max_size=12)


@given(
    SCORES, st.lists(st.one_of(st.floats(0, 1, width=16), st.just(np.inf)), min_size=2, max_size=2)
)
def test_remote_routing_equals_local_routing(
    scores: list[tuple[float, float]], thresholds: list[float]
) -> None:
    """Three models that give probabilities, one at a time and all at once."""
    tables = [
        np.array([[s[m], 1 - s[m]] for s in scores], dtype=np.float16).reshape(-1, 2)
        for m in (0, 1)
    ]
    tables.append(np.tile(np.array([0.5, 0.25], dtype=np.float16), (len(scores), 1)))
    local = Cascade([table.__getitem__ for table in tables], thresholds).run(np.arange(len(scores)))
    remote = asyncio.run(
        AsyncCascade([Remote(table.__getitem__) for table in tables], thresholds).run(
            range(len(scores))
        )
    )
    assert np.array_equal(local.predictions, remote.predictions)
    assert np.array_equal(local.exits, remote.exits)
    assert np.array_equal(local.confidences, remote.confidences)


def test_probabilities_are_named_where_names_are_given() -> None:
    model = Remote(lambda item: [0.2, 0.8])
    assert asyncio.run(
        AsyncCascade([model, model], [0.5], classes=["no", "yes"]).predict([0])
    ).tolist() == ["yes"]


def test_tensors_are_probabilities_too() -> None:
    torch = pytest.importorskip("torch")
    model = Remote(lambda item: torch.tensor([0.25, 0.75], requires_grad=True))
    result = asyncio.run(AsyncCascade([model, model], [0.75]).run([0]))
    assert (result.predictions.tolist(), result.exits.tolist()) == ([1], [0])
    answer = Remote(lambda item: Answer("a", torch.tensor(0.75)))
    assert asyncio.run(AsyncCascade([answer, answer], [0.75]).run([0])).exits.tolist() == [0]


@pytest.mark.parametrize(
    ("labels", "dtype"),
    [
        (["a", "bcd"], np.dtype("U3")),
        ([3, 4], np.dtype(np.intp)),
        ([True, False], np.dtype(bool)),
        ([{"x": 1}, [2, 3]], np.dtype(object)),
    ],
)
def test_labels_may_be_anything(labels: list[Any], dtype: Any) -> None:
    model = Remote(lambda item: Answer(labels[item], 1.0))
    predictions = asyncio.run(AsyncCascade([model, model], [0.5]).predict([0, 1]))
    assert predictions.tolist() == labels
    assert predictions.dtype == dtype


def test_no_items_give_an_empty_result() -> None:
    result = asyncio.run(AsyncCascade([Remote(_fast), Remote(_slow)], [0.6]).run([]))
    assert (len(result), result.answered.tolist(), result.seconds.tolist()) == (
        0,
        [0, 0],
        [0.0, 0.0],
    )


def test_one_item_is_routed_by_itself() -> None:
    cascade = AsyncCascade([Remote(_fast), Remote(_slow)], [0.6])
    routed = asyncio.run(cascade.route(1))
    assert (routed.item, routed.prediction, routed.exit, routed.failed) == (1, 1, 1, ())
    assert cascade.statistics.answered.tolist() == [0, 1]


def test_a_model_whose_threshold_is_infinite_is_not_called() -> None:
    fast = Remote(_fast)
    result = asyncio.run(AsyncCascade([fast, Remote(_slow)], [np.inf]).run([1, 2]))
    assert result.exits.tolist() == [1, 1]
    assert fast.asked == []


def test_one_object_serves_one_event_loop_after_another() -> None:
    cascade = AsyncCascade([Remote(_fast, lambda item: 0.001), Remote(_slow)], [0.6], concurrency=2)
    for _ in range(3):
        assert asyncio.run(cascade.predict(range(10))).tolist() == _expected(range(10))[0]
    assert cascade.statistics.rows == 30


# ----------------------------------------------------------------------------------------------
# limits


@pytest.mark.parametrize("concurrency", [1, 4])
def test_no_more_calls_are_under_way_than_allowed(concurrency: int) -> None:
    fast, slow = Remote(_fast, _random_delays(1)), Remote(_slow, _random_delays(2))
    asyncio.run(AsyncCascade([fast, slow], [0.6], concurrency=concurrency).run(range(60)))
    assert fast.most == concurrency, "and no fewer"
    assert slow.most <= concurrency


@pytest.mark.parametrize("ordered", [True, False])
def test_a_stream_takes_no_more_items_than_it_may_hold(ordered: bool) -> None:
    taken, handed = 0, 0

    async def source() -> AsyncIterator[int]:
        nonlocal taken
        for item in range(50):
            taken += 1
            assert taken - handed <= 4
            yield item

    async def consume() -> None:
        nonlocal handed
        cascade = AsyncCascade(
            [Remote(_fast, _random_delays(1, 0.003)), Remote(_slow)], [0.6], concurrency=4
        )
        async for _ in cascade.stream(source(), ordered=ordered):
            await asyncio.sleep(0.001)  # a consumer slower than the models
            handed += 1

    asyncio.run(consume())
    assert (taken, handed) == (50, 50)


# ----------------------------------------------------------------------------------------------
# streams


def _streamed(cascade: AsyncCascade, items: Any, **options: Any) -> list[Routed]:
    async def collect() -> list[Routed]:
        return [routed async for routed in cascade.stream(items, **options)]

    return asyncio.run(collect())


async def _arriving(items: Any) -> AsyncIterator[Any]:
    for item in items:
        await asyncio.sleep(0)
        yield item


@pytest.mark.parametrize(
    "source", [list, iter, _arriving], ids=["list", "generator", "async generator"]
)
def test_a_stream_is_in_the_order_of_its_items(source: Callable[[Any], Any]) -> None:
    cascade = AsyncCascade(
        [Remote(_fast, _random_delays(1)), Remote(_slow, _random_delays(2))], [0.6]
    )
    routed = _streamed(cascade, source(range(40)))
    assert [r.index for r in routed] == [r.item for r in routed] == list(range(40))
    labels, exits = _expected(range(40))
    assert [r.prediction for r in routed] == labels
    assert [r.exit for r in routed] == exits
    assert cascade.statistics.rows == 40


def test_an_unordered_stream_does_not_wait_for_a_slow_item() -> None:
    cascade = AsyncCascade(
        [
            Remote(lambda item: Answer(item, 1.0), lambda item: 0.2 if item == 0 else 0.0),
            Remote(_slow),
        ],
        [0.5],
    )
    routed = _streamed(cascade, range(20), ordered=False)
    assert [r.index for r in routed][-1] == 0
    assert sorted(r.index for r in routed) == list(range(20))


def test_answers_come_while_the_source_is_still_waiting_for_more() -> None:
    async def main() -> None:
        more = asyncio.Event()

        async def source() -> AsyncIterator[int]:
            yield 0
            await more.wait()
            yield 1

        stream = AsyncCascade([Remote(_fast), Remote(_slow)], [0.6]).stream(source())
        assert (await anext(stream)).index == 0
        more.set()
        assert [routed.index async for routed in stream] == [1]

    asyncio.run(asyncio.wait_for(main(), 5))


def test_closing_a_stream_cancels_what_is_under_way() -> None:
    fast = Remote(lambda item: Answer(item, 1.0), lambda item: 0.0 if item == 0 else 60.0)

    async def first() -> int:
        async with contextlib.aclosing(
            AsyncCascade([fast, Remote(_slow)], [0.5], concurrency=3).stream(range(10))
        ) as stream:
            async for routed in stream:
                return routed.index
        raise AssertionError

    assert asyncio.run(first()) == 0
    assert fast.waiting == 0
    assert sorted(fast.cancelled) == [1, 2]


def test_cancelling_a_run_cancels_its_calls() -> None:
    fast = Remote(_fast, lambda item: 60.0)

    async def main() -> None:
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(
                AsyncCascade([fast, Remote(_slow)], [0.5], concurrency=3).run(range(10)), 0.05
            )

    asyncio.run(main())
    assert (fast.waiting, sorted(fast.cancelled)) == (0, [0, 1, 2])


def test_what_is_under_way_is_handed_out_before_the_failure_of_the_source() -> None:
    def source() -> Iterator[int]:
        yield from range(3)
        raise OSError("the file ended too soon")

    seen: list[int] = []

    async def consume() -> None:
        cascade = AsyncCascade([Remote(_fast, _random_delays(0)), Remote(_slow)], [0.6])
        async for routed in cascade.stream(source()):
            seen.append(routed.index)  # noqa: PERF401, RUF100

    with pytest.raises(OSError, match="the file ended too soon"):
        asyncio.run(consume())
    assert seen == [0, 1, 2]


# ----------------------------------------------------------------------------------------------
# failures


def _breaks_at(item: int, answer: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda given: _broken(given) if given == item else answer(given)


def test_the_first_failure_cancels_the_rest_and_carries_what_was_finished() -> None:
    fast = Remote(
        _breaks_at(5, lambda item: Answer(item, 1.0)),
        lambda item: {5: 0.1, 6: 60.0}.get(item, 0.0),
    )
    cascade = AsyncCascade([fast, Remote(_slow)], [0.5], concurrency=3)
    with pytest.raises(
        ModelError, match=r"Model 0 \(Remote\) failed on item 5: ConnectionError: no route to host"
    ) as caught:
        asyncio.run(cascade.run(range(8)))
    error = caught.value
    assert isinstance(error.__cause__, ConnectionError)
    assert (error.model, error.row) == (0, 5)
    assert [(r.index, r.prediction) for r in error.partial] == [
        (0, 0),
        (1, 1),
        (2, 2),
        (3, 3),
        (4, 4),
        (7, 7),
    ]
    assert fast.cancelled == [6]
    assert cascade.statistics.rows == 0


def test_a_stream_that_fails_carries_what_was_finished_and_not_handed_out() -> None:
    fast = Remote(
        _breaks_at(2, lambda item: Answer(item, 1.0)),
        lambda item: {1: 60.0, 2: 0.1}.get(item, 0.0),
    )
    cascade = AsyncCascade([fast, Remote(_slow)], [0.5], concurrency=4)
    seen: list[int] = []

    async def consume() -> None:
        async for routed in cascade.stream(range(4)):
            seen.append(routed.index)  # noqa: PERF401, RUF100

    with pytest.raises(ModelError, match="item 2") as caught:
        asyncio.run(consume())
    assert seen == [0]
    assert [r.index for r in caught.value.partial] == [3]
    assert fast.cancelled == [1]
    assert cascade.statistics.rows == 1


def test_several_failures_at_once_raise_one_of_them() -> None:
    with pytest.raises(ModelError, match="item"):
        asyncio.run(AsyncCascade([Remote(_broken), Remote(_slow)], [0.5]).run(range(20)))


def test_a_failing_fast_model_hands_its_items_to_the_slow_one_where_asked_to() -> None:
    cascade = AsyncCascade(
        [Remote(_breaks_at(4, lambda item: Answer(item, 1.0))), Remote(_slow)],
        [0.5],
        on_error="slow",
    )
    result = asyncio.run(cascade.run(range(8)))
    assert result.exits.tolist() == [0, 0, 0, 0, 1, 0, 0, 0]
    assert result.predictions.tolist() == [0, 1, 2, 3, 4, 5, 6, 7]
    assert result.failed.tolist() == cascade.statistics.failed.tolist() == [1, 0]


def test_a_failed_item_goes_to_the_last_model_and_not_to_the_one_between() -> None:
    middle = Remote(lambda item: Answer("middle", 1.0))
    cascade = AsyncCascade(
        [Remote(_broken), middle, Remote(lambda item: Answer("slow"))],
        [0.5, 0.5],
        on_error="slow",
    )
    routed = asyncio.run(cascade.route(0))
    assert (routed.prediction, routed.exit, routed.failed) == ("slow", 2, (0,))
    assert middle.asked == []


@pytest.mark.parametrize(
    "answer",
    [Answer("a", np.nan), Answer("a", 1.5), Answer("a"), Answer(None, 0.9), [[0.1, 0.9]], None],
)
def test_what_is_no_answer_is_a_failure_too(answer: Any) -> None:
    models: list[Model] = [Remote(lambda item: answer), Remote(lambda item: Answer("slow"))]
    with pytest.raises(ModelError, match=r"Model 0 \(Remote\) gave"):
        asyncio.run(AsyncCascade(models, [0.5]).run([0]))
    assert asyncio.run(AsyncCascade(models, [0.5], on_error="slow").predict([0])).tolist() == [
        "slow"
    ]


def test_a_failure_of_the_last_model_raises_or_leaves_the_item_out() -> None:
    models: list[Model] = [Remote(_broken), Remote(_breaks_at(7, _slow))]
    with pytest.raises(ModelError, match=r"Model 1 \(Remote\) failed on item 0") as caught:
        asyncio.run(AsyncCascade(models, [np.inf]).run([7]))
    assert caught.value.model == 1
    cascade = AsyncCascade(models, [np.inf], on_error="slow")
    result = asyncio.run(cascade.run([6, 7, 8]))
    assert result.predictions.tolist() == [1, None, 3]
    assert result.exits.tolist() == [1, -1, 1]
    assert result.left_out.tolist() == [1]
    assert [(f.index, f.item, f.model) for f in result.failures] == [(1, 7, 1)]
    routed = _streamed(cascade, [6, 7])
    assert [r.left_out for r in routed] == [False, True]
    assert routed[1].failures[0].reason == (
        "Model 1 (Remote) failed on item 1: ConnectionError: no route to host"
    )
    assert cascade.statistics.left_out == 2
    assert cascade.statistics.failed.tolist() == [0, 2]


def test_a_call_that_its_client_gives_up_has_failed() -> None:
    async def small(item: int) -> Answer:
        async with asyncio.timeout(0.01):
            await asyncio.sleep(60)
        return _fast(item)

    cascade = AsyncCascade([small, Remote(_slow)], [0.5], on_error="slow")
    result = asyncio.run(cascade.run([0, 1]))
    assert result.exits.tolist() == [1, 1]
    assert result.failures[0].reason == "Model 0 (small) failed on item 0: TimeoutError"
    assert cascade.statistics.failed.tolist() == [2, 0]


def test_plain_text_is_answered_with_what_to_return_in_its_place() -> None:
    cascade = AsyncCascade([Remote(lambda item: [0.6, 0.4]), Remote(lambda item: "cat")], [0.9])
    with pytest.raises(ModelError, match=r"plain text: return Answer\(label, confidence\)"):
        asyncio.run(cascade.route(0))


def test_answers_of_another_kind_than_those_before_are_refused() -> None:
    with pytest.raises(
        ModelError, match=r"Model 1 .* answers with text, but model 0 .* with numbers"
    ):
        asyncio.run(
            AsyncCascade(
                [Remote(lambda item: [0.5, 0.5]), Remote(lambda item: Answer("cat"))], [0.9]
            ).run([0])
        )
    with pytest.raises(ModelError, match=r"Model 1 .* knows 3 classes, but model 0 .* knows 2"):
        asyncio.run(
            AsyncCascade(
                [Remote(lambda item: [0.5, 0.5]), Remote(lambda item: [0.5, 0.3, 0.2])], [0.9]
            ).run([0])
        )


# ----------------------------------------------------------------------------------------------
# cancelling


def test_a_model_that_raises_cancelled_error_itself_fails_on_that_item_alone() -> None:
    async def raises(item: int) -> Answer:
        if item == 3:
            raise asyncio.CancelledError
        if item == 5:
            task = asyncio.current_task()
            assert task is not None
            task.cancel()
            await asyncio.sleep(0)
        return Answer(item, 1.0)

    async def slow(item: int) -> Answer:
        return Answer(-item)

    models: list[Any] = [raises, slow]
    slower = AsyncCascade(models, [0.5], on_error="slow")
    result = asyncio.run(slower.run(range(8)))
    assert result.predictions.tolist() == [0, 1, 2, -3, 4, -5, 6, 7]
    assert slower.statistics.failed.tolist() == [2, 0]
    assert "failed on item 3: CancelledError" in slower.statistics.failures[0].reason
    skipping = AsyncCascade(models, [0.5], on_error="skip")
    assert asyncio.run(skipping.run(range(8))).left_out.tolist() == [3, 5]
    raising = AsyncCascade(models, [0.5])
    with pytest.raises(ModelError, match=r"failed on item 3: CancelledError"):
        asyncio.run(raising.run(range(4)))


@pytest.mark.parametrize("on_error", ["slow", "skip", "raise"])
@pytest.mark.parametrize("stubborn", [False, True])
def test_a_cancelled_run_cancels_everything_and_leaves_no_task(
    on_error: Any, stubborn: bool
) -> None:
    begun: list[int] = []

    async def hanging(item: int) -> Answer:
        begun.append(item)
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            if not stubborn:
                raise
        return Answer(item, 0.0)

    async def main() -> None:
        options: Any = {"on_error": on_error, "concurrency": 4}
        before = asyncio.all_tasks()
        run = asyncio.create_task(AsyncCascade([hanging, hanging], [0.5], **options).run(range(20)))
        while len(begun) < 4:
            await asyncio.sleep(0)
        run.cancel()
        with pytest.raises(asyncio.CancelledError):
            await run
        assert asyncio.all_tasks() == before

    asyncio.run(asyncio.wait_for(main(), 30))
    assert begun == [0, 1, 2, 3], "nothing was asked after the end"


# ----------------------------------------------------------------------------------------------
# bad days


def _router(server: FlakyServer, **options: Any) -> AsyncCascade:
    async def small(item: int) -> Answer:
        return Answer(await server.ask(f"small {item}"), drawn("sure", item))

    async def large(item: int) -> Answer:
        return Answer(await server.ask(f"large {item}"))

    return AsyncCascade([small, large], [0.4], **options)


@pytest.mark.slow
@pytest.mark.parametrize("on_error", ["slow", "skip"])
def test_a_thousand_requests_at_once_are_answered_or_accounted_for(on_error: Any) -> None:
    async def main() -> tuple[FlakyServer, AsyncCascade, Any]:
        async with serving(FlakyServer(fails=0.6, delay=lambda question: 0.1)) as server:
            router = _router(server, on_error=on_error, concurrency=1000)
            return server, router, await router.run(range(1000))

    server, router, result = asyncio.run(main())
    small, large = (
        np.array([drawn(f"{name} {item}", 1) >= 0.6 for item in range(1000)])
        for name in ("small", "large")
    )
    sure = np.array([drawn("sure", item) >= 0.4 for item in range(1000)])
    left_out = ~(small & sure) & ~large if on_error == "slow" else ~small | (~sure & ~large)
    assert result.left_out.tolist() == np.flatnonzero(left_out).tolist()
    assert result.exits.tolist() == np.where(left_out, -1, np.where(small & sure, 0, 1)).tolist()
    assert [p is None for p in result.predictions] == left_out.tolist()
    assert server.most > 200, "they were under way at once"
    assert set(server.paid.values()) == {1}
    statistics = router.statistics
    assert statistics.rows == 1000 - left_out.sum()
    assert statistics.left_out == left_out.sum()
    assert statistics.failed.tolist() == result.failed.tolist()
    assert statistics.failed[0] == (~small).sum()
    asked_large = ~(small & sure) if on_error == "slow" else small & ~sure
    assert statistics.failed[1] == (asked_large & ~large).sum()
    assert len(statistics.failures) == 100
    named = {failure.index for failure in result.failures}
    assert named == set(np.flatnonzero(~small | (asked_large & ~large)).tolist())
    first: Failure = result.failures[0]
    assert first.item == first.index
    assert "HttpError: HTTP 500" in first.reason


def test_a_request_that_is_slow_holds_back_no_other() -> None:
    release = asyncio.Event()

    async def model(item: int) -> Answer:
        if item == 0:
            await release.wait()
        if item == 199:
            release.set()
        return Answer(item, 1.0)

    cascade = AsyncCascade([model, model], [0.5], concurrency=2)
    result = asyncio.run(asyncio.wait_for(cascade.run(range(200)), 30))
    assert result.predictions.tolist() == list(range(200))


def test_a_single_request_that_is_not_answered_raises_and_is_counted() -> None:
    async def broken(item: int) -> Answer:
        raise ConnectionError("no route")

    for on_error, failed in {"slow": [1, 1], "skip": [1, 0], "raise": [1, 0]}.items():
        options: Any = {"on_error": on_error}
        cascade = AsyncCascade([broken, broken], [0.5], **options)
        with pytest.raises(ModelError, match="no route") as caught:
            asyncio.run(cascade.route("a text"))
        assert isinstance(caught.value.__cause__, ConnectionError)
        assert cascade.statistics.failed.tolist() == failed
        assert cascade.statistics.failures[0].item == "a text"
        assert (cascade.statistics.left_out, cascade.statistics.given_up) == (1, 0)
        cascade.statistics.reset()
        assert (cascade.statistics.left_out, cascade.statistics.given_up) == (0, 0)
        assert cascade.statistics.failures == ()


@pytest.mark.parametrize("hangs", [0, 1])
def test_a_single_request_that_is_given_up_is_counted(hangs: int) -> None:
    def model(place: int) -> Any:
        async def asked(item: int) -> Answer:
            await asyncio.sleep(60 if place == hangs and item % 2 else 0)
            return Answer("a", 0.1)

        return asked

    cascade = AsyncCascade([model(0), model(1)], [0.5], concurrency=20)

    async def main() -> None:
        requests = [asyncio.wait_for(cascade.route(item), 0.2) for item in range(10)]
        await asyncio.gather(*requests, return_exceptions=True)

    asyncio.run(main())
    statistics = cascade.statistics
    assert (statistics.rows, statistics.left_out, statistics.given_up) == (5, 5, 5)
    assert statistics.failed.tolist() == [0, 0]
    assert "left_out=5, given_up=5" in repr(statistics)


# What the fast model, the slow one and the truth say: a loss and a gain in twenty each.
KINDS = [("a", "b", "b"), ("a", "b", "a"), *[("a", "a", "a")] * 18] * 20


@pytest.mark.parametrize("on_error", ["slow", "skip"])
@pytest.mark.parametrize("trouble", ["fails", "hangs"])
def test_what_is_lost_on_a_bad_day_is_within_its_bounds(trouble: str, on_error: Any) -> None:
    async def fast(item: int) -> Answer:
        answer, slow, label = KINDS[item]
        if slow != label and trouble == "fails":
            raise ConnectionError("the gains are gone")
        await asyncio.sleep(60 if slow != label else 0)
        return Answer(answer, 0.9)

    async def slow(item: int) -> Answer:
        return Answer(KINDS[item][1])

    cascade = AsyncCascade([fast, slow], [0.5], concurrency=400, on_error=on_error)

    async def main() -> list[Any]:
        requests = [asyncio.wait_for(cascade.route(item), 0.5) for item in range(len(KINDS))]
        return await asyncio.gather(*requests, return_exceptions=True)

    told = [getattr(routed, "prediction", None) for routed in asyncio.run(main())]
    statistics, xi = cascade.statistics, 0.0
    n = statistics.rows + statistics.left_out
    f, left = (statistics.failed[:-1].sum() + statistics.given_up) / n, statistics.left_out / n
    lost = [
        int(answer != label) - int(slower != label)
        for answer, (_, slower, label) in zip(told, KINDS, strict=True)
        if answer is not None
    ]
    wrong = sum(answer != row[2] for answer, row in zip(told, KINDS, strict=True))
    assert n == len(KINDS)
    assert 0 < sum(lost) / n <= xi + f
    assert (wrong - sum(row[1] != row[2] for row in KINDS)) / n <= xi + f + left
    assert sum(lost) / len(lost) <= (xi + f) / (1 - left)


# ----------------------------------------------------------------------------------------------
# arguments


@pytest.mark.parametrize("on_error", ["raise", "slow", "skip"])
def test_a_function_that_cannot_be_awaited_is_refused_with_the_remedy(on_error: Any) -> None:
    blocking: Any = _fast
    with pytest.raises(
        InvalidTypeError,
        match=r"Model 0 \(_fast\) gave a Answer that cannot be awaited.*asyncio\.to_thread",
    ):
        asyncio.run(AsyncCascade([blocking, Remote(_slow)], [0.5], on_error=on_error).run([0]))


@pytest.mark.parametrize("items", ["a text", b"bytes", {"a": 1}, 7])
def test_what_are_no_items_is_refused(items: Any) -> None:
    with pytest.raises(InvalidTypeError, match="expected a list or another iterable of items"):
        asyncio.run(AsyncCascade([Remote(_fast), Remote(_slow)], [0.5]).run(items))


def test_a_data_frame_is_refused_because_iterating_it_gives_its_column_names() -> None:
    pd = pytest.importorskip("pandas")
    with pytest.raises(InvalidTypeError, match=r"to_dict\('records'\)"):
        asyncio.run(
            AsyncCascade([Remote(_fast), Remote(_slow)], [0.5]).run(pd.DataFrame({"a": [1]}))
        )


@pytest.mark.parametrize(
    "options",
    [
        {"concurrency": 0},
        {"concurrency": True},
        {"concurrency": 2.5},
        {"concurrency": [4, 2]},
        {"concurrency": "8"},
        {"on_error": "fast"},
    ],
    ids=str,
)
def test_options_that_make_no_sense_are_refused(options: Any) -> None:
    with pytest.raises((InvalidTypeError, InvalidValueError), match=next(iter(options))):
        AsyncCascade([Remote(_fast), Remote(_slow)], [0.5], **options)


def test_an_async_cascade_shows_its_models_and_thresholds() -> None:
    async def small(item: Any) -> Any: ...

    cascade = AsyncCascade([small, Remote(_slow)], [0.5])
    assert repr(cascade) == "AsyncCascade(small >= 0.5, Remote)"
    assert cascade.thresholds.tolist() == [0.5]


async def quick(item: int) -> Answer:
    return Answer(item % 2, 0.9 if item < 3 else 0.1)


async def sure(item: int) -> Answer:
    return Answer(item % 3)


@pytest.mark.parametrize("copied", [deepcopy, lambda x: pickle.loads(pickle.dumps(x))])
def test_a_cascade_can_be_copied_and_sent_to_another_process_before_and_after_its_use(
    copied: Callable[[Any], Any],
) -> None:
    cascade = AsyncCascade([quick, sure], [0.5], concurrency=2)
    for _ in range(2):
        copy = copied(cascade)
        assert copy.statistics.rows == cascade.statistics.rows
        before = cascade.statistics.rows
        expected = asyncio.run(cascade.run(range(6)))
        given = asyncio.run(copy.run(range(6)))
        assert given.predictions.tolist() == expected.predictions.tolist() == [0, 1, 0, 0, 1, 2]
        assert cascade.statistics.rows == before + 6


async def copied_within(cascade: AsyncCascade) -> AsyncCascade:
    await cascade.run(range(6))
    return pickle.loads(pickle.dumps(cascade))  # type: ignore[no-any-return]


def test_a_cascade_can_be_copied_while_its_event_loop_runs() -> None:
    copy = asyncio.run(copied_within(AsyncCascade([quick, sure], [0.5])))
    assert asyncio.run(copy.predict(range(3))).tolist() == [0, 1, 0]


def test_a_certificate_may_be_the_path_of_its_file(tmp_path: Path) -> None:
    certificate = certify_cascade([0.9] * 500, [[1, 1]] * 500, [1] * 500, xi=0.02, delta=0.01)
    certificate.save(tmp_path / "router.json")

    async def model(item: Any) -> Answer:
        return Answer(item, 1.0)

    router = AsyncCascade([model, model], tmp_path / "router.json")
    assert router.thresholds.tolist() == certificate.thresholds.tolist()
