"""What a package brings along: the files of it and of all that it needs, as installed here, without
bytecode."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

import pacbound
from benchmarks.peers import PACKAGES, adapter, named
from benchmarks.row import Row
from benchmarks.sizes import Sizes

Wanted = tuple[str, frozenset[str]]
_OURS = "pacbound"


def rows(_: Sizes) -> Iterator[Row]:
    ours = installed_bytes(_OURS)
    for name in PACKAGES:
        if adapter(name) is not None:
            theirs = installed_bytes(name)
            yield Row(
                "installed size of pacbound and all that it needs",
                ours,
                "bytes",
                named(name),
                theirs,
                label=f"size: {name}",
            )
    for extra in distribution(_OURS).metadata.get_all("Provides-Extra") or []:
        try:
            yield Row(
                f"installed size of pacbound[{extra}]", installed_bytes(_OURS, extra), "bytes"
            )
        except PackageNotFoundError:
            continue


def installed_bytes(package: str, *extras: str) -> int:
    """The bytes of `package` and of everything that it requires, each counted once."""
    return sum(_own_bytes(name) for name in _closure(package, frozenset(extras)))


def _closure(package: str, extras: frozenset[str]) -> set[str]:
    seen: set[Wanted] = set()
    waiting: list[Wanted] = [(canonicalize_name(package), extras)]
    while waiting:
        wanted = waiting.pop()
        if wanted not in seen:
            seen.add(wanted)
            waiting += _required(*wanted)
    return {name for name, _ in seen}


def _required(name: str, extras: frozenset[str]) -> Iterator[Wanted]:
    for line in distribution(name).requires or []:
        needed = Requirement(line)
        if needed.marker is None or any(
            needed.marker.evaluate({"extra": extra}) for extra in extras | {""}
        ):
            yield canonicalize_name(needed.name), frozenset(needed.extras)


def _own_bytes(name: str) -> int:
    if name == _OURS:
        # Installed for development, it is where its sources are.
        files = Path(pacbound.__file__).parent.rglob("*")
        return sum(
            file.stat().st_size for file in files if file.is_file() and file.suffix != ".pyc"
        )
    return sum(file.size or 0 for file in distribution(name).files or [])
