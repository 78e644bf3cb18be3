"""The colours of the figures, each with one meaning in all of them.

They are those of Okabe and Ito, which readers with any of the common colour deficiencies tell
apart; where two meet, line styles differ too.
"""

from __future__ import annotations

from typing import Final

# Blue: what holds with probability 1 - delta.
CERTIFIED: Final = "#0072B2"

# Vermilion: what was seen in the rows, with no guarantee.
OBSERVED: Final = "#D55E00"

# Green: between answering by the lower and by the upper ends of intervals.
BAND: Final = "#009E73"

# Sky blue: how many rows.
ROWS: Final = "#56B4E9"

# Grey: where nothing was seen.
UNKNOWN: Final = "#8C8C8C"

# Black: the diagonal.
IDEAL: Final = "#000000"

GRID: Final = "#E6E6E6"

# Near black: where the policy drives.
POLICY: Final = "#333333"

# Orange: where the backup has taken over.
BACKUP: Final = "#E69F00"

# Vermilion: where something unsafe happened.
UNSAFE: Final = "#D55E00"

# Green: where the robot should go.
GOAL: Final = "#009E73"

FURNITURE: Final = "#BDB7AB"
WALL: Final = "#6B665C"
FLOOR: Final = "#F7F5F0"
