"""The one way in which files are written: each appears when it is complete, or not at all.

What stands at the path decides how. An existing file is replaced and keeps its permissions and, as
far as the system allows, its owner; a link is followed and stays a link; a device, a pipe or a
descriptor of this process (/dev/null, /dev/stdout) gets all of it in the end, because there is
nothing to replace. A folder, a file without write permission and an address are refused before
anything is written. A file with several hard links is replaced under the one name that was given.

No output may be an input, a state, or another output. Two names are one file if the system says so:
symbolic and hard links are followed, and a pattern or a folder stands for all files in it. What
cannot be found is left to whoever reads it.
"""

from __future__ import annotations

import errno
import glob
import hashlib
import os
import re
import stat
from collections.abc import Collection, Hashable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from io import BufferedWriter, FileIO
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any, BinaryIO, TypeAlias

from pacbound.errors import InvalidTypeError, InvalidValueError, UnwritableFileError

Name: TypeAlias = str | os.PathLike[str]
Names: TypeAlias = Name | Iterable[Name] | None

# What stands for standard input among the names of files.
STANDARD_INPUT = "-"

_INPUT = 0
ADDRESS = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):/+")
_CHUNK = 2**20
# There is no room, or a descriptor of this process is not for writing.
_UNWRITABLE = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EBADF)


@contextmanager
def atomic_file(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """A file to write to that takes the place of `path` in the end; until then, and after a
    failure, what was there stays.

    Parameters
    ----------
    path
        Where the file goes. Devices, pipes and descriptors are written to directly: what reached
        them before a failure cannot be taken back.

    Yields
    ------
    BinaryIO
        The file, open for writing. It tells its position; pipes cannot seek.

    Raises
    ------
    UnwritableFileError
        If `path` cannot be written: a folder, no write permission, no such folder, a full disk.

    Examples
    --------
    >>> with atomic_file("notes.txt") as file:
    ...     _ = file.write(b"all of it")
    >>> Path("notes.txt").read_text()
    'all of it'

    """
    as_path(path)
    with _stream(path) if is_stream(path) else _draft(path) as file:
        yield file


def as_path(path: Any) -> Path:
    """The path that was passed, if it is one."""
    if not isinstance(path, (str, os.PathLike)):
        raise InvalidTypeError(
            f"A {type(path).__name__} is not a path: expected the name of a file, as text or a "
            "pathlib.Path."
        )
    return Path(path)


def is_stream(path: str | os.PathLike[str]) -> bool:
    """Whether `path` is written to as it stands: a device, a pipe, a descriptor of this process."""
    if _descriptor(path) is not None:
        return True
    try:
        mode = os.stat(path).st_mode  # noqa: PTH116 - a Path would drop what the user wrote
    except OSError:
        return False
    return not (stat.S_ISREG(mode) or stat.S_ISDIR(mode))


def is_standard_output(path: str | os.PathLike[str]) -> bool:
    """Whether what is written to `path` comes out where this process prints."""
    return _descriptor(path) == 1


@contextmanager
def _stream(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """A file whose bytes go to `path` in the end: some formats ask for their position, or go back,
    which a pipe cannot.
    """
    own = _descriptor(path)
    # A descriptor is duplicated, not opened again: it keeps its place, and still appends. Windows
    # has no O_NOCTTY.
    flags = os.O_WRONLY | getattr(os, "O_NOCTTY", 0)
    try:
        opened = os.dup(own) if own is not None else os.open(path, flags)
    except OSError as error:
        raise _unwritable(path, error) from None
    with FileIO(opened, "wb") as stream, _explained(path), TemporaryFile() as file:
        yield file
        file.seek(0)
        while rest := memoryview(file.read(_CHUNK)):
            while rest:  # A pipe may take a part of it only.
                rest = rest[stream.write(rest) or 0 :]


@contextmanager
def _draft(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    target = Path(os.path.realpath(path))
    # Beside its place, so that it can be moved there in one step.
    draft = target.with_name(f".{target.name[:100]}.{os.getpid()}-{os.urandom(4).hex()}.tmp")
    with _explained(path, str(draft), str(target)):
        before = _replaceable(target, path)
        try:
            with draft.open("xb") as file:
                yield file
                file.flush()
                if before is not None:
                    _dress(file, before)
                os.fsync(file.fileno())
            draft.replace(target)
        except BaseException:
            draft.unlink(missing_ok=True)
            raise


def _replaceable(target: Path, path: str | os.PathLike[str]) -> os.stat_result | None:
    """What is at `target` and may be replaced; None if nothing is."""
    shown = as_written(path)
    if ADDRESS.match(os.fspath(path)) and not target.parent.is_dir():
        raise UnwritableFileError(f"{shown} is an address: only local files are written.")
    try:
        before = target.stat()
    except (FileNotFoundError, NotADirectoryError):
        _require_folder(target.parent, shown)
        if not target.name or os.fspath(path).endswith(os.sep):
            raise UnwritableFileError(f"{shown} names a folder: name a file in it.") from None
        return None
    if stat.S_ISDIR(before.st_mode):
        raise UnwritableFileError(f"{shown} is a folder: name a file in it.")
    # The superuser may write to any file. One that nobody may write to is protected on purpose.
    if not before.st_mode & 0o222 or not os.access(target, os.W_OK):
        raise UnwritableFileError(
            f"{shown} is there and has no write permission: name another file, or allow it with "
            "chmod u+w."
        )
    _require_folder(target.parent, shown)
    return before


def _require_folder(folder: Path, shown: str) -> None:
    if not folder.exists():
        raise UnwritableFileError(f"{shown} cannot be written: there is no folder {folder}.")
    if not folder.is_dir():
        raise UnwritableFileError(f"{shown} cannot be written: {folder} is not a folder.")
    if not os.access(folder, os.W_OK | os.X_OK):
        raise UnwritableFileError(
            f"{shown} cannot be written: its folder {folder} takes no new files from you."
        )


def _dress(file: BufferedWriter, before: os.stat_result) -> None:
    """Give the new file the owner, where that is allowed, and the permissions of the old one."""
    if not hasattr(os, "fchown"):
        return
    now = os.fstat(file.fileno())
    if (now.st_uid, now.st_gid) != (before.st_uid, before.st_gid):
        with suppress(PermissionError):
            os.fchown(file.fileno(), before.st_uid, before.st_gid)
    os.fchmod(file.fileno(), stat.S_IMODE(before.st_mode))


def _descriptor(path: str | os.PathLike[str]) -> int | None:
    """The descriptor of this process that `path` stands for, by its name or through links."""
    place = os.path.abspath(path)  # noqa: PTH100 - links are followed one by one
    for _ in range(40):
        folder, name = os.path.split(place)
        if name.isdigit() and os.path.realpath(folder) in (f"/proc/{os.getpid()}/fd", "/dev/fd"):
            return int(name)
        if not os.path.islink(place):  # noqa: PTH114
            return None
        place = os.path.join(folder, os.readlink(place))  # noqa: PTH115, PTH118
    return None


@contextmanager
def _explained(path: str | os.PathLike[str], *files: str) -> Iterator[None]:
    """Say what the system says of `files`, or of the room on the disk, in a sentence about `path`.

    All other errors are those of whoever writes.
    """
    try:
        yield
    except UnwritableFileError:
        raise
    except OSError as error:
        if error.errno in _UNWRITABLE or error.filename in files:
            raise _unwritable(path, error) from None
        raise


def _unwritable(path: str | os.PathLike[str], error: OSError) -> UnwritableFileError:
    return UnwritableFileError(f"{as_written(path)} cannot be written: {error.strerror}.")


def as_written(path: str | os.PathLike[str]) -> str:
    """The path as the user wrote it; a Path has dropped a slash of an address."""
    return ADDRESS.sub(r"\1://", os.fspath(path), count=1)


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
            if place == taken and os.path.realpath(name) != os.path.realpath(os.devnull):
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


def _files(names: Names) -> Iterator[Hashable]:
    """The places of all files that are named. Devices and pipes are left out: to read and to
    write one of these are different things.
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
