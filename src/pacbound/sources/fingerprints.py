"""The names of files by what is in them: SHA-256 of their bytes, taken beside the work on them."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from threading import Event

_CHUNK = 2**20


def file_fingerprint(path: str | os.PathLike[str], *, stop: Event | None = None) -> str:
    """SHA-256 of the bytes of a file; whoever sets `stop` is not interested any more."""
    digest = hashlib.sha256()
    with Path(path).open("rb") as file:
        while (chunk := file.read(_CHUNK)) and not (stop is not None and stop.is_set()):
            digest.update(chunk)
    return f"sha256:{digest.hexdigest()}"


@contextmanager
def fingerprinting(paths: Sequence[Path]) -> Iterator[list[Future[str]]]:
    """The fingerprints to be, in the order of the files; leaving by an error does not wait for them."""
    stop = Event()
    with ThreadPoolExecutor(1) as pool:
        try:
            yield [pool.submit(file_fingerprint, path, stop=stop) for path in paths]
        except BaseException:
            stop.set()
            raise
