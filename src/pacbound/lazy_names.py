"""Public names of a package that are loaded when they are first used.

So an import costs no more than what is used of it, and a package can be looked at without its
extras: a name whose extra is missing is there, and raises a `MissingDependencyError` with the pip
command when it is used.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

from pacbound.errors import MissingDependencyError, stand_in


def homes_in_stub(module: str) -> dict[str, str]:
    """The names that the stub beside the file `module` imports, with the module each comes from.

    So type checkers, readers and the package itself go by one list.
    """
    stub = ast.parse(Path(module).with_suffix(".pyi").read_bytes())
    imports = (line for line in stub.body if isinstance(line, ast.ImportFrom))
    return {one.name: str(line.module) for line in imports for one in line.names}


def lazy_names(
    package: str, homes: Mapping[str, str]
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """`__getattr__` and `__dir__` for a package; `homes` says in which module each name lives."""

    def get(name: str) -> Any:
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        try:
            value = getattr(import_module(homes[name]), name)
        except MissingDependencyError as error:
            # Not kept: once the extra is installed, the name is there without a new start of
            # Python.
            return stand_in(name, package, error)
        setattr(sys.modules[package], name, value)
        return value

    def names() -> list[str]:
        return sorted({*vars(sys.modules[package]), *homes})

    return get, names
