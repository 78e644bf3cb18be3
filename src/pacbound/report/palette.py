"""The colours of the figures, each with one meaning in all of them.

They are those of Okabe and Ito, which readers with any of the common colour deficiencies tell
apart; where two meet, line styles differ too.
"""

from __future__ import annotations

from typing import Final

CERTIFIED: Final = "#0072B2"
"""Blue: what holds with probability 1 - delta."""

OBSERVED: Final = "#D55E00"
"""Vermilion: what was seen in the rows, with no guarantee."""

BAND: Final = "#009E73"
"""Green: between answering by the lower and by the upper ends of intervals."""

ROWS: Final = "#56B4E9"
"""Sky blue: how many rows."""

UNKNOWN: Final = "#8C8C8C"
"""Grey: where nothing was seen."""

IDEAL: Final = "#000000"
"""Black: the diagonal."""

GRID: Final = "#E6E6E6"

POLICY: Final = "#333333"
"""Near black: where the policy drives."""

BACKUP: Final = "#E69F00"
"""Orange: where the backup has taken over."""

UNSAFE: Final = "#D55E00"
"""Vermilion: where something unsafe happened."""

GOAL: Final = "#009E73"
"""Green: where the robot should go."""

FURNITURE: Final = "#BDB7AB"
WALL: Final = "#6B665C"
FLOOR: Final = "#F7F5F0"
