"""Figures that a command draws into a file, whose name says in which format."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pacbound.atomic_files import atomic_file
from pacbound.errors import InvalidValueError

FORMATS = (".png", ".svg", ".pdf")


def require_drawable(figure: Path | None) -> None:
    """Refuse, before any work is done, a name that says no format."""
    if figure is not None and figure.suffix.lower() not in FORMATS:
        raise InvalidValueError(
            f"--figure {figure} has no format that can be drawn: expected a name that ends in "
            f"{', '.join(FORMATS)}."
        )


def draw(display: Any, figure: Path) -> None:
    """Draw what is displayed into a file."""
    with atomic_file(figure) as file:
        display.figure_.savefig(file, dpi=150, format=figure.suffix[1:].lower())
