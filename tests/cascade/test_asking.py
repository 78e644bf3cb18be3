"""Models that fail now and then are asked again: not too soon, not too often, not too many at
once."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import pickle
import re
import threading
import time
import weakref
from collections.abc import Iterator
from email.message import Message
from email.utils import formatdate
from types import SimpleNamespace
from typing import Any
from urllib.error import HTTPError

import numpy as np
import pytest
from tests.cascade.servers import FlakyServer, HttpError, drawn, serving
from tests.cascade.test_async_routing import Kept

from pacbound.cascade import Answer, Asking, AsyncCascade, Failure
from pacbound.cascade.asking import retry_after, worth_retrying
from pacbound.errors import InvalidTypeError, InvalidValueError, ModelError


@pytest.fixture(autouse=True)
def _no_task_is_left_behind() -> Iterator[None]:
    with Kept.listening():
        yield


def _with(**attributes: Any) -> Exception:
    error = RuntimeError("busy")
    vars(error).update(attributes)
    return error


def _wrapped(cause: Exception) -> Exception:
    error = RuntimeError("my client failed")
    error.__cause__ = cause
    return error


def _message(**headers: str) -> Message:
    message = Message()
    for name, value in headers.items():
        message[name.replace("_", "-")] = value
    return message


NOW = 1_800_000_000
LATER = {"Retry-After": formatdate(NOW + 7, usegmt=True), "Date": formatdate(NOW, usegmt=True)}


@pytest.mark.parametrize(
    ("error", "seconds"),
    [
        (_with(retry_after=3), 3.0),
        (_with(retry_after="0.5"), 0.5),
        (HttpError(429, {"retry-after": "2"}), 2.0),
        (HttpError(429, {"Retry-After": "2"}), 2.0),
        (HttpError(429, {"retry-after-ms": "250", "retry-after": "1"}), 0.25),
        (HttpError(503, LATER), 7.0),
        (HttpError(503, {"Retry-After": formatdate(0, usegmt=True)}), 0.0),
        (HTTPError("http://x", 503, "busy", _message(Retry_After="4"), None), 4.0),
        (_with(headers={"Retry-After": "5"}), 5.0),
        (_with(litellm_response_headers={"retry-after": "6"}), 6.0),
        (_wrapped(HttpError(429, {"retry-after": "2"})), 2.0),
        (HttpError(429, {}), None),
        (HttpError(429, {"retry-after": "soon"}), None),
        (HttpError(429, {"retry-after": "nan"}), None),
        (HttpError(429, {"retry-after": "-1"}), None),
        (_with(retry_after=None, response=None), None),
        (_with(headers={"Retry-After": f"Fri, 31 Dec {10**20} 23:59:59 GMT"}), None),
        (_with(headers={"Retry-After": f"Wed, 18 Nov 2026 00:00:00 +{10**20}"}), None),
        (RuntimeError("busy"), None),
    ],
    ids=str,
)
def test_the_wait_that_a_server_asks_for_is_read_from_the_error(
    error: Exception, seconds: float | None
) -> None:
    assert retry_after(error) == seconds


def test_a_date_without_the_clock_of_the_server_goes_by_the_clock_here() -> None:
    error = HttpError(503, {"Retry-After": formatdate(time.time() + 1000, usegmt=True)})
    assert 900 < (retry_after(error) or 0) <= 1000


@pytest.mark.parametrize("module", ["openai", "httpx", "requests"])
def test_errors_of_real_clients_say_when_to_come_back(module: str) -> None:
    client = pytest.importorskip(module)
    if module == "requests":
        response = client.Response()
        response.status_code, response.headers["Retry-After"] = 429, "9"
        error = client.HTTPError("busy", response=response)
    elif module == "httpx":
        request = client.Request("POST", "http://x")
        response = client.Response(429, headers={"Retry-After": "9"}, request=request)
        error = client.HTTPStatusError("busy", request=request, response=response)
    else:
        headers = {"retry-after": "9"}
        response = SimpleNamespace(status_code=429, headers=headers, request=None)
        error = client.RateLimitError("busy", response=response, body=None)
    assert retry_after(error) == 9.0
    assert worth_retrying(error)


@pytest.mark.parametrize(
    ("error", "worth"),
    [
        *[(HttpError(status, {}), True) for status in (408, 409, 425, 429, 500, 502, 503, 529)],
        *[(HttpError(status, {}), False) for status in (400, 401, 403, 404, 422)],
        (_with(status=503), True),
        (_with(status=404), False),
        (_with(code="insufficient_quota", status_code=401), False),
        (HTTPError("http://x", 404, "gone", Message(), None), False),
        (_wrapped(HttpError(401, {})), False),
        (ConnectionError(), True),
        (TimeoutError(), True),
        (ValueError("cut off in the middle"), True),
        (asyncio.CancelledError(), True),
        (TypeError(), False),
        (AttributeError(), False),
    ],
    ids=str,
)
def test_what_may_pass_is_tried_again_and_what_is_wrong_is_not(
    error: BaseException, worth: bool
) -> None:
    assert worth_retrying(error) is worth


# ----------------------------------------------------------------------------------------------
# waits


def _waits(error: Exception, tries: int, **options: Any) -> list[float]:
    asking = Asking(retries=tries, rng=np.random.default_rng(0), **options)
    return [asking._wait(error, number, RuntimeError) for number in range(1, tries + 1)]


def test_waits_double_within_bounds_and_are_drawn_by_the_generator() -> None:
    waits = _waits(ConnectionError(), 7, pause=1.0, longest_wait=20.0)
    assert waits == _waits(ConnectionError(), 7, pause=1.0, longest_wait=20.0)
    for wait, most in zip(waits, [1, 2, 4, 8, 16, 20, 20], strict=True):
        assert most / 2 <= wait <= most
    assert _waits(ConnectionError(), 2000, pause=1.0, longest_wait=9.0)[-1] <= 9


def test_no_try_comes_before_the_server_asked_for_it() -> None:
    waits = _waits(HttpError(429, {"Retry-After": "30"}), 3, pause=1.0)
    assert all(30 <= wait <= 32 for wait in waits)
    assert len(set(waits)) == 3, "spread out, so that not all come back at once"


def test_a_server_that_asks_for_too_long_a_wait_is_not_asked_again() -> None:
    with pytest.raises(RuntimeError, match=r"HTTP 429; it asks to wait 3600 s$"):
        _waits(HttpError(429, {"Retry-After": "3600"}), 3)


class Counted:
    """Fails so often, then answers."""

    def __init__(self, failures: int, error: BaseException) -> None:
        self.failures, self.error, self.starts = failures, error, list[float]()

    def __call__(self) -> str:
        self.starts.append(time.monotonic())
        if len(self.starts) <= self.failures:
            raise self.error
        return "answer"

    async def ask(self) -> str:
        return self()


@pytest.mark.parametrize("awaited", [True, False])
@pytest.mark.parametrize(
    ("failures", "retries", "error", "tries", "message"),
    [
        (2, 2, ConnectionError("no route"), 3, None),
        (3, 2, ConnectionError("no route"), 3, r"ConnectionError: no route \(3 tries\)$"),
        (1, 0, ConnectionError("no route"), 1, r"ConnectionError: no route$"),
        (1, 5, HttpError(401, {}), 1, r"HttpError: HTTP 401$"),
        (1, 5, TypeError("no such argument"), 1, r"TypeError: no such argument$"),
    ],
)
def test_a_call_is_repeated_as_often_as_it_is_worth(  # noqa: PLR0917, RUF100
    awaited: bool, failures: int, retries: int, error: Any, tries: int, message: str | None
) -> None:
    call, asking = Counted(failures, error), Asking(retries=retries, pause=0)

    def run() -> str:
        if awaited:
            return asyncio.run(asking.awaited(call.ask, RuntimeError))
        return asking.called(call, RuntimeError)

    if message is None:
        assert run() == "answer"
    else:
        with pytest.raises(RuntimeError, match=message) as caught:
            run()
        assert caught.value.__cause__ is error
    assert len(call.starts) == tries


def test_which_errors_are_worth_another_try_can_be_said() -> None:
    call = Counted(1, HttpError(404, {}))
    asking = Asking(retry_if=lambda error: isinstance(error, HttpError), pause=0)
    assert asking.called(call, RuntimeError) == "answer"


def test_a_request_that_takes_too_long_is_sent_again() -> None:
    calls = []

    async def slow_at_first() -> str:
        calls.append(1)
        await asyncio.sleep(60 if len(calls) == 1 else 0)
        return "answer"

    asking = Asking(timeout=0.5, pause=0)
    assert asyncio.run(asking.awaited(slow_at_first, RuntimeError)) == "answer"
    assert len(calls) == 2


# ----------------------------------------------------------------------------------------------
# limits


def _started(asking: Asking) -> list[float]:
    """Takes down the time, by the clock of the pace itself, at which each request may start."""
    pace, times = asking._pace, list[float]()
    wait = pace.wait

    def noted() -> float:
        seconds = wait()
        if not seconds:
            times.append(pace._next - 1 / (pace.per_second or 1))
        return seconds

    pace.wait = noted  # type: ignore[method-assign]
    return times


def test_no_two_requests_start_closer_than_they_may_whatever_the_concurrency() -> None:
    call, asking = Counted(20, ConnectionError()), Asking(per_second=200, concurrency=30, pause=0)
    times = _started(asking)

    async def main() -> None:
        await asyncio.gather(*(asking.awaited(call.ask, RuntimeError) for _ in range(40)))

    asyncio.run(main())
    assert len(call.starts) == len(times) == 60, "and tries count, too"
    assert np.diff(times).min() > 1 / 200 - 1e-9
    assert max(call.starts) - times[0] >= 59 / 200 - 1e-6


def test_the_rate_holds_over_all_threads_and_event_loops() -> None:
    call, asking = Counted(0, ConnectionError()), Asking(per_second=200)

    async def several() -> None:
        await asyncio.gather(*(asking.awaited(call.ask, RuntimeError) for _ in range(10)))

    threads = [threading.Thread(target=asyncio.run, args=[several()]) for _ in range(2)]
    threads += [
        threading.Thread(target=lambda: [asking.called(call, RuntimeError) for _ in range(10)])
    ]
    started = time.monotonic()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(call.starts) == 30
    assert time.monotonic() - started >= 29 / 200


def test_all_requests_wait_while_the_server_asks_to() -> None:
    first = Counted(1, HttpError(429, {"Retry-After": "0.2"}))
    other, asking = Counted(0, ConnectionError()), Asking(pause=0)

    async def main() -> None:
        waiting = asyncio.create_task(asking.awaited(first.ask, RuntimeError))
        await asyncio.sleep(0.05)
        await asking.awaited(other.ask, RuntimeError)
        await waiting

    asyncio.run(main())
    assert other.starts[0] - first.starts[0] >= 0.2


def test_a_server_that_asks_for_too_long_a_wait_is_asked_by_no_other_request() -> None:
    async def small(item: int) -> Answer:
        asked.append(item)
        await asyncio.sleep(0)
        raise HttpError(429, {"Retry-After": "61"})

    async def large(item: int) -> Answer:
        return Answer("a")

    asked: list[int] = []
    router = AsyncCascade([small, large], [0.5], on_error="slow", concurrency=4)
    result = asyncio.run(router.run(range(200)))
    assert result.answered.tolist() == [0, 200]
    assert asked == [0, 1, 2, 3]
    reason = r"Model 0 \(small\) failed on item 7: the server was not asked; it asks to wait 6[01]"
    assert re.match(reason, next(f.reason for f in result.failures if f.index == 7))


@pytest.mark.slow
@pytest.mark.parametrize("awaited", [True, False])
def test_a_server_is_asked_again_when_its_time_is_nearly_over(awaited: bool) -> None:
    first = Counted(1, HttpError(429, {"Retry-After": "3.0"}))
    other, asking = Counted(0, ConnectionError()), Asking(pause=0, longest_wait=0.3)

    def ask(call: Counted) -> str:
        if awaited:
            return asyncio.run(asking.awaited(call.ask, RuntimeError))
        return asking.called(call, RuntimeError)

    with pytest.raises(RuntimeError, match=r"HTTP 429; it asks to wait 3 s$"):
        ask(first)
    for _ in range(3):
        with pytest.raises(RuntimeError, match=r"was not asked; it asks to wait [0-2](\.\d+)? s$"):
            ask(other)
    assert other.starts == []
    time.sleep(2.8)
    assert ask(other) == "answer"
    assert other.starts[0] - first.starts[0] >= 3.0


def test_a_slow_pace_is_no_wish_of_the_server() -> None:
    asking = Asking(per_second=10, longest_wait=0.01)
    assert [asking.called(lambda: "answer", RuntimeError) for _ in range(3)] == ["answer"] * 3


def test_an_asking_keeps_no_event_loop_alive() -> None:
    asking, loops = Asking(concurrency=2, per_second=5000), list[Any]()

    async def main() -> None:
        loops.append(weakref.ref(asyncio.get_running_loop()))
        calls = [Counted(0, ConnectionError()) for _ in range(6)]
        await asyncio.gather(*(asking.awaited(call.ask, RuntimeError) for call in calls))

    for _ in range(5):
        asyncio.run(main())
    gc.collect()
    assert [loop() for loop in loops] == [None] * 5


def test_models_that_share_their_asking_share_its_limits() -> None:
    under_way, most = 0, 0

    async def model(item: int) -> Answer:
        nonlocal under_way, most
        under_way += 1
        most = max(most, under_way)
        await asyncio.sleep(0.002)
        under_way -= 1
        return Answer(item, 0.5)

    shared = AsyncCascade([model, model], [0.9], asking=Asking(concurrency=3))

    async def requests() -> None:
        await asyncio.gather(*(shared.route(item) for item in range(30)))

    asyncio.run(requests())
    assert most == 3
    apart = AsyncCascade([model, model], [0.9], asking=[Asking(concurrency=3), Asking()])
    asyncio.run(apart.run(range(60)))
    assert 3 < most <= 11


def test_an_asking_can_be_copied_after_its_use() -> None:
    asking = Asking(per_second=1e-3, rng=np.random.default_rng(0))
    asyncio.run(asking.awaited(Counted(0, ConnectionError()).ask, RuntimeError))
    copy = pickle.loads(pickle.dumps(asking))
    started = time.monotonic()
    assert copy.called(lambda: "answer", RuntimeError) == "answer"
    assert time.monotonic() - started < 60, "another process has another clock"
    assert repr(copy) == "Asking(concurrency=8, per_second=0.001, timeout=None, retries=2)"


@pytest.mark.parametrize(
    "options",
    [
        {"concurrency": 0},
        {"concurrency": 2.5},
        {"per_second": 0},
        {"per_second": -1},
        {"per_second": "20"},
        {"per_second": float("nan")},
        {"timeout": 0},
        {"timeout": True},
        {"retries": -1},
        {"retries": 1.5},
        {"retries": None},
        {"pause": -0.1},
        {"longest_wait": float("inf")},
        {"retry_if": 500},
    ],
    ids=str,
)
def test_options_of_asking_that_make_no_sense_are_refused(options: Any) -> None:
    with pytest.raises(InvalidValueError, match=f"{next(iter(options))}="):
        Asking(**options)


def test_an_option_that_is_not_known_or_given_twice_is_refused() -> None:
    models: list[Any] = [Counted, Counted]
    with pytest.raises(InvalidTypeError, match=r"per_minute is not an option of Asking"):
        AsyncCascade(models, [0.5], per_minute=3)  # type: ignore[call-arg]
    with pytest.raises(InvalidTypeError, match=r"with timeout: expected an Asking"):
        AsyncCascade(models, [0.5], asking=Asking(), timeout=3)
    with pytest.raises(InvalidTypeError, match=r"2 of these, one for each model"):
        AsyncCascade(models, [0.5], asking=[Asking()])
    with pytest.raises(InvalidTypeError, match="default_rng"):
        Asking(rng=3)  # type: ignore[arg-type]


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
    slower = AsyncCascade(models, [0.5], on_error="slow", retries=1, pause=0)
    result = asyncio.run(slower.run(range(8)))
    assert result.predictions.tolist() == [0, 1, 2, -3, 4, -5, 6, 7]
    assert slower.statistics.failed.tolist() == [2, 0]
    assert "failed on item 3: CancelledError (2 tries)" in slower.statistics.failures[0].reason
    skipping = AsyncCascade(models, [0.5], on_error="skip", retries=0)
    assert asyncio.run(skipping.run(range(8))).left_out.tolist() == [3, 5]
    raising = AsyncCascade(models, [0.5], retries=0)
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
@pytest.mark.parametrize("per_second", [None, 180])
def test_a_server_that_fails_and_limits_answers_everything_once(per_second: Any) -> None:
    """200 requests, 5 % of tries fail, at most 20 in a tenth of a second."""

    async def main() -> tuple[FlakyServer, AsyncCascade, Any]:
        async with serving(FlakyServer(fails=0.05, limit=20)) as server:
            asking = Asking(per_second=per_second, retries=10, pause=0.02, concurrency=16)
            router = _router(server, on_error="slow", asking=asking)
            return server, router, await router.run(range(200))

    server, router, result = asyncio.run(main())
    assert len(result) == 200
    assert result.failures == ()
    exits = [int(drawn("sure", item) < 0.4) for item in range(200)]
    assert result.exits.tolist() == exits
    names = [("small", "large")[place] for place in exits]
    assert result.predictions.tolist() == [f"answer to {n} {i}" for i, n in enumerate(names)]
    assert set(server.paid.values()) == {1}, "nothing is paid for twice"
    assert server.paid.total() == 200 + sum(exits)
    assert server.statuses[500] > 0
    assert (router.statistics.rows, router.statistics.left_out) == (200, 0)


@pytest.mark.slow
@pytest.mark.parametrize("on_error", ["slow", "skip"])
def test_a_thousand_requests_at_once_are_answered_or_accounted_for(on_error: Any) -> None:
    async def main() -> tuple[FlakyServer, AsyncCascade, Any]:
        async with serving(FlakyServer(fails=0.6, delay=lambda question: 0.1)) as server:
            asking = Asking(retries=1, pause=0, concurrency=1000)
            router = _router(server, on_error=on_error, asking=asking)
            return server, router, await router.run(range(1000))

    server, router, result = asyncio.run(main())
    small, large = (
        np.array([max(drawn(f"{name} {item}", t) for t in (1, 2)) >= 0.6 for item in range(1000)])
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
    assert "HttpError: HTTP 500 (2 tries)" in first.reason


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
        options: Any = {"on_error": on_error, "retries": 0}
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

    cascade = AsyncCascade([fast, slow], [0.5], concurrency=400, on_error=on_error, retries=0)

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


def test_each_item_is_asked_about_and_what_failed_comes_with_its_reason() -> None:
    async def ask(item: int) -> int:
        if item % 3 == 0:
            raise ValueError(f"not {item}")
        await asyncio.sleep(0.001 * (5 - item))
        return -item

    async def main(*, ordered: bool) -> list[Any]:
        asking = Asking(pause=0, concurrency=4)
        return [asked async for asked in asking.each(ask, range(5), ordered=ordered)]

    found = asyncio.run(main(ordered=True))
    assert [asked.answer for asked in found] == [None, -1, -2, None, -4]
    assert found[3].reason == "ValueError: not 3 (3 tries)"
    assert sorted(asked.item for asked in asyncio.run(main(ordered=False))) == list(range(5))
    with pytest.raises(InvalidTypeError, match="cannot be awaited"):
        asyncio.run(_first(Asking().each(abs, [1])))


async def _first(results: Any) -> Any:
    async with contextlib.aclosing(results) as closing:
        return await anext(closing)
