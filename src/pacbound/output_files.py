"""The one check before anything is written: no output is an input, a state, or another output.

Two names are one file if the system says so: symbolic and hard links are followed, and a pattern or
a folder stands for all files in it. What cannot be found is left to whoever reads it.
"""

from __future__ import annotations

import glob
import hashlib
import os
import stat
from collections.abc import Collection, Hashable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import TypeAlias

from pacbound.atomic_files import as_path
from pacbound.errors import InvalidValueError

Name: TypeAlias = str | os.PathLike[str]
Names: TypeAlias = Name | Iterable[Name] | None

STANDARD_INPUT = "-"
_INPUT = 0


def refuse_overwriting(written: Mapping[str, Name | None], read: Mapping[str, Names]) -> None:
    """Refuse to write where something is read, or where something else is written.

    Parameters
    ----------
    written
        What is written, states among it, by what each is for: an option, or a word or two. None
        where nothing is. Of two that may be the same file, only one may be a device.
    read
        What is read, in the same way: a file, a folder, a pattern, "-" for standard input, or
        several of these.

    Raises
    ------
    InvalidValueError
        If a file would be overwritten that is read, or written for something else.

    Examples
    --------
    >>> refuse_overwriting({"--output": "new.json"}, {"FILE": "rows.csv"})
    >>> refuse_overwriting({"--output": "rows.csv"}, {"FILE": ["rows.csv"]})
    Traceback (most recent call last):
    ...
    pacbound.errors.InvalidValueError: rows.csv is read as FILE, and writing --output would replace
    it: name another file for --output.
    """
    targets = [(role, name, _place(name)) for role, name in written.items() if name is not None]
    for done, (role, name, place) in enumerate(targets):
        for other, _, taken in targets[:done]:
            if place == taken and not _is_null(name):
                raise InvalidValueError(
                    f"{os.fspath(name)} is written as {other}, and writing {role} would replace "
                    f"it: name another file for {role}."
                )
    if not targets:
        return
    places = {place: (role, name) for role, name, place in targets}
    for other, names in read.items():
        for found in _files(names):
            if found in places:
                role, name = places[found]
                raise InvalidValueError(
                    f"{os.fspath(name)} is read as {other}, and writing {role} would replace it: "
                    f"name another file for {role}."
                )


def refuse_replacing_source(path: Name, sources: Collection[str], what: str) -> None:
    """Refuse to replace a file whose bytes `what` was made from, by the fingerprints of these.

    Parameters
    ----------
    path
        Where something is to be written.
    sources
        "sha256:" and the SHA-256 of each file that it was made from.
    what
        What is to be written, for the message.

    Raises
    ------
    InvalidValueError
        If the file that is there is one of these.

    Examples
    --------
    >>> refuse_replacing_source("not-there.json", ["sha256:…"], "the tally")
    """
    if not as_path(path).is_file() or not sources:
        return
    with Path(path).open("rb") as file:
        found = f"sha256:{hashlib.file_digest(file, 'sha256').hexdigest()}"
    if found in sources:
        raise InvalidValueError(
            f"{os.fspath(path)} holds rows that {what} was made from, and writing {what} would "
            "replace them: name another file."
        )


def _place(name: Name) -> Hashable:
    """What is the same for all names of one file, there or not."""
    try:
        return _identity(os.stat(name))  # noqa: PTH116 - a Path would drop what the user wrote
    except (OSError, ValueError):
        return os.path.realpath(name)


def _identity(found: os.stat_result) -> Hashable:
    return found.st_dev, found.st_ino


def _is_null(name: Name) -> bool:
    return os.path.realpath(name) == os.path.realpath(os.devnull)


def _files(names: Names) -> Iterator[Hashable]:
    """The places of all files that are meant. Devices and pipes are none: reading and writing one
    of these are different things.
    """
    if names is None:
        return
    if not isinstance(names, (str, os.PathLike)):
        for name in names:
            yield from _files(name)
        return
    if os.fspath(names) == STANDARD_INPUT:
        yield from _file(_INPUT)
    elif os.path.isdir(names):  # noqa: PTH112
        for folder, _, inside in os.walk(names):
            for name in inside:
                yield from _file(Path(folder, name))
    elif os.path.lexists(names):
        yield from _file(names)
    elif glob.has_magic(os.fspath(names)):
        yield from _files(glob.glob(os.fspath(names), recursive=True))  # noqa: PTH207
    else:
        # It may be written first, and then read.
        yield os.path.realpath(names)


def _file(name: Name | int) -> Iterator[Hashable]:
    try:
        found = os.stat(name)  # noqa: PTH116
    except (OSError, ValueError):
        return
    if stat.S_ISREG(found.st_mode):
        yield _identity(found)
