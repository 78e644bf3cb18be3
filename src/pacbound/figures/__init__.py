"""Figures from plain numbers, one function for each shape of picture.

Claims call them. They know no certificate: numbers and words in, a `pacbound.figure.Figure` out.
`with_matplotlib` draws it.

| file | draws |
|---|---|
| `thresholds` | shares and rates by the threshold on a score, or against the rows that reach it |
| `bins` | certified intervals of bins of confidence |
| `walk` | what a cascade loses as more rows exit early |
| `batch` | the disagreements in the sample of a batch |
"""

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
        The words of their axis: "Recall (share of positives)"; by default the name.
    """

    name: str
    values: Any
    label: str = ""

    def __post_init__(self) -> None:
        if not self.label:
            object.__setattr__(self, "label", self.name[:1].upper() + self.name[1:])

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
