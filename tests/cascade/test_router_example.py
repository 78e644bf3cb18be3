"""A router over two language models, over real HTTP: a server in a thread stands in for the models,
and no key is needed."""

from __future__ import annotations

import asyncio
import json
import threading
import time
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import numpy as np
import pytest

from pacbound import Tally
from pacbound.cascade import Answer, AsyncCascade
from pacbound.claims.cascade import certify_cascade

Post = Callable[[str, Any], Awaitable[Any]]


def router(post: Post, certificate_or_thresholds: Any) -> AsyncCascade:
    """The small model answers where it is sure enough, the large one everywhere else."""

    async def small(text: str) -> Answer:
        reply = await post("/small", {"text": text})
        return Answer(reply["label"], reply["confidence"])

    async def large(text: str) -> Answer:
        reply = await post("/large", {"text": text})
        return Answer(reply["label"])

    return AsyncCascade(
        [small, large],
        certificate_or_thresholds,
        on_error="slow",
    )


# ---------------------------------------------------------------------------------------------- the
# stand-in

TOPICS = {"refund": "money", "delivery": "parcel", "login": "password"}


def _text(number: int) -> tuple[str, str]:
    """A message and its true topic; every fifth one says a misleading word first, which only the
    large model sees through."""
    topics = list(TOPICS)
    true, other = topics[number % 3], topics[(number + 1) % 3]
    words = [TOPICS[other], TOPICS[true]] if number % 5 == 0 else [TOPICS[true]]
    return f"{number}: " + " and ".join(words), true


def _small(text: str) -> dict[str, Any]:
    found = sorted((text.find(word), topic) for topic, word in TOPICS.items() if word in text)
    return {"label": found[0][1], "confidence": 0.97 if len(found) == 1 else 0.55}


def _large(text: str) -> dict[str, Any]:
    found = sorted((text.find(word), topic) for topic, word in TOPICS.items() if word in text)
    return {"label": found[-1][1], "confidence": 0.99}


@dataclass
class Server:
    """What the handler of a request shares with the test."""

    port: int = 0
    failing: frozenset[str] = frozenset()
    lock: threading.Lock = field(default_factory=threading.Lock)
    under_way: dict[str, int] = field(default_factory=lambda: {"/small": 0, "/large": 0})
    most: dict[str, int] = field(default_factory=lambda: {"/small": 0, "/large": 0})
    calls: dict[str, int] = field(default_factory=lambda: {"/small": 0, "/large": 0})

    def answer(self, path: str, text: str) -> tuple[int, dict[str, Any]]:
        with self.lock:
            self.calls[path] += 1
            self.under_way[path] += 1
            self.most[path] = max(self.most[path], self.under_way[path])
        time.sleep(0.002 if path == "/small" else 0.01)
        with self.lock:
            self.under_way[path] -= 1
        if path in self.failing:
            return 503, {"error": "overloaded"}
        return 200, (_small if path == "/small" else _large)(text)


@pytest.fixture
def server() -> Iterator[Server]:
    state = Server()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            status, reply = state.answer(self.path, request["text"])
            body = json.dumps(reply).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        # The name is the standard library's.
        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002, RUF100
            pass

    class Listener(ThreadingHTTPServer):
        request_queue_size = (
            64  # the five of the standard library make the sixth client wait a second
        )

    with Listener(("127.0.0.1", 0), Handler) as httpd:
        state.port = httpd.server_address[1]
        thread = threading.Thread(target=httpd.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield state
        httpd.shutdown()
        thread.join()


def _client(port: int) -> Post:
    """A client of HTTP/1.0 in ten lines, in place of httpx or a vendor's package."""

    async def post(path: str, body: Any) -> Any:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        try:
            data = json.dumps(body).encode()
            writer.write(
                f"POST {path} HTTP/1.0\r\nContent-Length: {len(data)}\r\n\r\n".encode() + data
            )
            head, _, reply = (await reader.read()).partition(b"\r\n\r\n")
            status = int(head.split()[1])
            if status != 200:
                raise ConnectionError(f"{path} answered {status}: {reply.decode()}")
            return json.loads(reply)
        finally:
            writer.close()
            await writer.wait_closed()

    return post


# ----------------------------------------------------------------------------------------------
# what it does


def test_a_router_over_http_asks_the_large_model_only_where_the_small_one_is_unsure(
    server: Server,
) -> None:
    texts, truth = zip(*map(_text, range(60)), strict=True)
    cascade = router(_client(server.port), [0.9])
    result = asyncio.run(cascade.run(texts))
    assert result.predictions.tolist() == list(truth)
    assert result.exits.tolist() == [int(number % 5 == 0) for number in range(60)]
    assert server.calls == {"/small": 60, "/large": 12}
    assert cascade.statistics.answered.tolist() == [48, 12]


def test_a_router_never_has_more_requests_under_way_than_allowed(server: Server) -> None:
    texts, _ = zip(*map(_text, range(60)), strict=True)
    asyncio.run(router(_client(server.port), [0.99]).run(texts))
    assert server.calls == {"/small": 60, "/large": 60}
    assert server.most["/small"] <= 8
    assert server.most["/large"] <= 8


def test_a_router_runs_on_a_certificate_of_its_own_answers(server: Server) -> None:
    post = _client(server.port)
    texts, truth = zip(*map(_text, range(300)), strict=True)

    async def answers(path: str) -> list[dict[str, Any]]:
        gate = asyncio.Semaphore(8)

        async def one(text: str) -> dict[str, Any]:
            async with gate:
                reply: dict[str, Any] = await post(path, {"text": text})
                return reply

        return list(await asyncio.gather(*map(one, texts)))

    small, large = asyncio.run(answers("/small")), asyncio.run(answers("/large"))
    tally = Tally.count(
        "cascade",
        confidence=np.array([reply["confidence"] for reply in small]),
        prediction=np.array(
            [[fast["label"], slow["label"]] for fast, slow in zip(small, large, strict=True)]
        ),
        label=np.array(truth),
    )
    certificate = certify_cascade(data=tally, xi=0.05, delta=0.05)
    assert certificate.certified
    result = asyncio.run(router(post, certificate).run(texts))
    assert (result.exits == 0).mean() == certificate.exit_rates[0] == 0.8


def test_a_router_streams_answers_in_order(server: Server) -> None:
    texts, truth = zip(*map(_text, range(30)), strict=True)

    async def collect() -> list[str]:
        return [
            routed.prediction async for routed in router(_client(server.port), [0.9]).stream(texts)
        ]

    assert asyncio.run(collect()) == list(truth)


def test_a_router_whose_small_model_is_down_is_answered_by_the_large_one(server: Server) -> None:
    server.failing = frozenset({"/small"})
    texts, truth = zip(*map(_text, range(10)), strict=True)
    cascade = router(_client(server.port), [0.9])
    assert asyncio.run(cascade.predict(texts)).tolist() == list(truth)
    assert cascade.statistics.failed.tolist() == [10, 0]


def test_a_router_whose_large_model_is_down_says_so(server: Server) -> None:
    server.failing = frozenset({"/large"})
    result = asyncio.run(router(_client(server.port), [0.9]).run([_text(0)[0], _text(1)[0]]))
    assert result.predictions.tolist() == [None, _text(1)[1]]
    assert (
        "Model 1 (large) failed on item 0: ConnectionError: /large answered 503"
        in result.failures[0].reason
    )
