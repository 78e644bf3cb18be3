"""The other packages, one adapter each, with the same few functions where a package can do the same thing."""

from __future__ import annotations

from importlib import import_module
from importlib.metadata import version
from typing import Any


def adapter(name: str) -> Any:
    """The adapter of the package `name`, or None if the package is not installed."""
    try:
        return import_module(f"benchmarks.peers.{name}")
    except ModuleNotFoundError:
        return None


def named(name: str) -> str:
    """The package with its version, if it is installed."""
    return name if adapter(name) is None else f"{name} {version(name)}"
