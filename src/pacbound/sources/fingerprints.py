"""The names of files by what is in them: SHA-256 of their bytes, taken beside the work on them.

What is named must be what was worked on: a file that changes meanwhile is refused, and so is a
compressed one that does not hold what its own checksum says, because DuckDB does not look at that.
"""

from __future__ import annotations

import gzip
import hashlib
import os
import zlib
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from threading import Event
from typing import TypeAlias

from pacbound.errors import InvalidValueError
from pacbound.sources.formats.quotes import Quotes, require_same_rows
from pacbound.sources.notation import PLAIN, Notation
from pacbound.sources.paths import separator_of

_CHUNK = 2**20
_State: TypeAlias = tuple[int, int, int] | None


def file_fingerprint(path: str | os.PathLike[str], *, stop: Event | None = None) -> str:
    """SHA-256 of the bytes of a file: equal for equal files, whatever their names.

    Parameters
    ----------
    path
        The file.
    stop
        Ends the reading early once it is set. What is returned then names nothing.

    Returns
    -------
    str
        "sha256:" and 64 hexadecimal digits.

    Raises
    ------
    OSError
        If the file cannot be read.

    Examples
    --------
    >>> _ = Path("empty.csv").write_bytes(b"")
    >>> file_fingerprint("empty.csv")
    'sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855'
    """
    digest = hashlib.sha256()
    with Path(path).open("rb") as file:
        while (chunk := file.read(_CHUNK)) and not (stop is not None and stop.is_set()):
            digest.update(chunk)
    return f"sha256:{digest.hexdigest()}"


def require_sound(path: Path, *, separator: str | None = None, stop: Event | None = None) -> None:
    """Refuse damage that whoever reads the rows may not notice.

    That is a file compressed by gzip whose length or checksum is not that of what is in it, and
    delimited text that is not read as it stands: DuckDB leaves out rows and values without a word.
    Its values are separated by `separator`, or by what the file's name says.
    """
    is_packed, usual = path.suffix.lower() == ".gz", separator_of(path)
    separator = None if usual is None else separator or usual
    if not is_packed and separator is None:
        return
    quotes = Quotes(separator or ",")
    try:
        with gzip.open(path) if is_packed else path.open("rb") as file:
            while chunk := file.read(_CHUNK):
                if separator is not None:
                    quotes.take(chunk)
                if stop is not None and stop.is_set():
                    return
        if separator is None:
            return
        quotes.finish()
        if not quotes.plain:
            opened = gzip.open if is_packed else open
            with opened(path, "rt", encoding="utf-8-sig", newline="") as text:
                require_same_rows(text, separator, str(path))
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise InvalidValueError(
            f"{path} is damaged ({str(error).rstrip('.')}). Write or copy it again."
        ) from None


@contextmanager
def fingerprinting(
    paths: Sequence[Path], notation: Notation = PLAIN
) -> Iterator[list[Future[str]]]:
    """The fingerprints to be, in the order of the files; leaving by an error does not wait for
    them.

    A file that was another one at the end than at the beginning is refused.
    """
    stop, before = Event(), [_state(path) for path in paths]
    with ThreadPoolExecutor(1) as pool:
        try:
            yield [pool.submit(_sound_fingerprint, path, notation, stop) for path in paths]
        except Exception:
            stop.set()
            # What went wrong may be no more than that.
            _require_unchanged(paths, before)
            raise
        except BaseException:
            stop.set()
            raise
    _require_unchanged(paths, before)


def _sound_fingerprint(path: Path, notation: Notation, stop: Event) -> str:
    require_sound(path, separator=notation.delimiter, stop=stop)
    return file_fingerprint(path, stop=stop)


def _require_unchanged(paths: Sequence[Path], before: Sequence[_State]) -> None:
    for path, state in zip(paths, before, strict=True):
        if _state(path) != state:
            raise InvalidValueError(
                f"{path} changed while it was counted: which rows were counted is unknown. Count "
                "it again."
            ) from None


def _state(path: Path) -> _State:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_ino, found.st_size, found.st_mtime_ns
