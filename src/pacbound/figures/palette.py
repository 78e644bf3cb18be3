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

# Sky blue: how many rows.
ROWS: Final = "#56B4E9"

# Grey: where nothing was seen.
UNKNOWN: Final = "#8C8C8C"

# Black: the diagonal.
IDEAL: Final = "#000000"

GRID: Final = "#E6E6E6"

# Near black: a second thing that was seen in the same rows.
OTHER: Final = "#333333"

# Orange: what was seen, on a dark page.
OBSERVED_ON_DARK: Final = "#E69F00"
