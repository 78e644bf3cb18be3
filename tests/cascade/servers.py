"""A server on loopback that has bad days: it fails, limits how much it is asked, and is slow. It
counts what it was paid for."""

from __future__ import annotations

import asyncio
import json
import time
from collections import Counter, deque
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Any


class HttpError(Exception):
    """What a client raises for an answer that is none, with what httpx has in its own."""

    def __init__(self, status: int, headers: dict[str, str]) -> None:
        super().__init__(f"HTTP {status}")
        self.response = Response(status, headers)


@dataclass
class Response:
    status_code: int
    headers: dict[str, str]


@dataclass
class FlakyServer:
    """`fails` is the share of tries that fail, fixed for each question and try; at most `limit`
    are taken in `window` seconds."""

    fails: float = 0.0
    limit: int | None = None
    window: float = 0.1
    delay: Callable[[str], float] = lambda question: 0.0
    port: int = 0
    asked: Counter[str] = field(default_factory=Counter)
    paid: Counter[str] = field(default_factory=Counter)
    statuses: Counter[int] = field(default_factory=Counter)
    under_way: int = 0
    most: int = 0
    _taken: deque[float] = field(default_factory=deque)

    def status(self, question: str) -> int:
        """429 for what is too much, 500 for what fails; only what is answered is paid for."""
        now = time.monotonic()
        while self._taken and self._taken[0] <= now - self.window:
            self._taken.popleft()
        if self.limit is not None and len(self._taken) >= self.limit:
            return 429
        self._taken.append(now)
        self.asked[question] += 1
        if drawn(question, self.asked[question]) < self.fails:
            return 500
        self.paid[question] += 1
        return 200

    async def handle(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        size = int(head.lower().partition("content-length:")[2].split()[0])
        question = json.loads(await reader.readexactly(size))["question"]
        self.under_way += 1
        self.most = max(self.most, self.under_way)
        await asyncio.sleep(self.delay(question))
        self.under_way -= 1
        status = self.status(question)
        self.statuses[status] += 1
        body = json.dumps({"answer": f"answer to {question}"}).encode()
        after = f"Retry-After: {self.window}\r\n" if status == 429 else ""
        writer.write(
            f"HTTP/1.0 {status} X\r\n{after}Content-Length: {len(body)}\r\n\r\n".encode() + body
        )
        await writer.drain()
        writer.close()

    async def ask(self, question: Any) -> str:
        """A client of HTTP/1.0, in place of httpx or a vendor's package."""
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        try:
            data = json.dumps({"question": str(question)}).encode()
            writer.write(f"POST / HTTP/1.0\r\nContent-Length: {len(data)}\r\n\r\n".encode() + data)
            head, _, body = (await reader.read()).partition(b"\r\n\r\n")
        finally:
            writer.close()
        first, *lines = head.decode().split("\r\n")
        status = int(first.split()[1])
        if status != 200:
            raise HttpError(status, dict(line.split(": ", 1) for line in lines))
        return str(json.loads(body)["answer"])


@asynccontextmanager
async def serving(server: FlakyServer) -> AsyncIterator[FlakyServer]:
    """The server, on a port of its own."""
    listening = await asyncio.start_server(server.handle, "127.0.0.1", 0, backlog=2048)
    server.port = listening.sockets[0].getsockname()[1]
    try:
        yield server
    finally:
        listening.close()
        await listening.wait_closed()


def drawn(*names: Any) -> float:
    """A number from 0 to 1 that is the same in every run."""
    hashed = blake2b("/".join(map(str, names)).encode(), digest_size=8).digest()
    return int.from_bytes(hashed, "big") / 2**64
