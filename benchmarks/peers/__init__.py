"""The other packages, one adapter each, with the same few functions where a package can do the same
thing.

`fit(probabilities, labels)` learns to calibrate, as the package would have it.
`calibration_error(confidence, correct)` is the expected calibration error of one score per row, and
`top_label_error(probabilities, labels)` that of the predicted class, both in 20 bins.
`control(scores, unsafe, xi, delta)` finds a threshold.
"""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from importlib.metadata import version
from typing import Any

PACKAGES = (
    "netcal",
    "uncertainty_calibration",
    "mapie",
    "scikit_learn",
    "torchmetrics",
    "relplot",
)


def adapter(name: str) -> Any:
    """The adapter of the package `name`, or None if the package is not installed."""
    try:
        return import_module(f"benchmarks.peers.{name}")
    except ModuleNotFoundError:
        return None


def named(name: str) -> str:
    """The package with its version, if it is installed."""
    shown = name.replace("_", "-")
    return shown if adapter(name) is None else f"{shown} {version(name)}"


def offering(question: str) -> Iterator[tuple[str, Any]]:
    """The installed packages that answer `question`, and how."""
    for name in PACKAGES:
        answer = getattr(adapter(name), question, None)
        if answer is not None:
            yield name, answer
