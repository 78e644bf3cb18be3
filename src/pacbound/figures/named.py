"""Numbers with the words that a legend, an axis and a table have for them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from pacbound.figure import Column, Floats


@dataclass(frozen=True)
class Named:
    """A number and its words in the legend, such as `Named(0.95, "target 0.95")`."""

    value: float
    name: str


@dataclass(frozen=True, eq=False)
class Curve:
    """Numbers that were seen, one for each place of an axis; NaN where there are none.

    Parameters
    ----------
    name
        What they are, in a few words: "positives flagged". Legends add "as seen".
    values
        The numbers.
    label
        The words of their axis: "Recall (share of positives)".
    """

    name: str
    values: Any
    label: str = "Share"

    @property
    def heights(self) -> Floats:
        """The values as an array."""
        return np.asarray(self.values, dtype=np.float64)

    @property
    def column(self) -> Column:
        """The values as a column of the table."""
        return Column(self.name[:1].upper() + self.name[1:], self.heights)


def finite(named: Named | None) -> Named | None:
    """`named`, or None where its number is infinite: a refusal has no place in a figure."""
    return named if named is not None and np.isfinite(named.value) else None
