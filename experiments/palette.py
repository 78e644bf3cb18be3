"""The colours of the figures of experiments: those of the package, of rooms and of drives."""

from __future__ import annotations

from typing import Any

from pacbound.figures.palette import CERTIFIED, GRID, IDEAL, OBSERVED, ROWS, UNKNOWN

# Green: a third thing that is certified; where a robot should go.
BAND = GOAL = "#009E73"

# Near black: where the policy drives; orange: where the backup has taken over.
POLICY, BACKUP = "#333333", "#E69F00"

# Vermilion: where something unsafe happened.
UNSAFE = OBSERVED

FURNITURE, WALL, FLOOR = "#BDB7AB", "#6B665C", "#F7F5F0"

__all__ = [
    "BACKUP",
    "BAND",
    "CERTIFIED",
    "FLOOR",
    "FURNITURE",
    "GOAL",
    "GRID",
    "IDEAL",
    "OBSERVED",
    "POLICY",
    "ROWS",
    "UNKNOWN",
    "UNSAFE",
    "WALL",
    "light_grid",
]


def light_grid(ax: Any) -> None:
    """Draw a grid behind everything else."""
    ax.grid(visible=True, color=GRID, linewidth=0.8)
    ax.set_axisbelow(True)
