"""Tallies: how often each outcome was seen in each cell of a score, and the ways to count them."""

from pacbound.tally.grids import (
    AtomBins,
    Bins,
    DyadicGrid,
    EqualWidthBins,
    GivenBins,
    Grid,
    equal_mass_edges,
)
from pacbound.tally.probabilities import top_label
from pacbound.tally.questions import Scope
from pacbound.tally.tally import Tally

__all__ = [
    "AtomBins",
    "Bins",
    "DyadicGrid",
    "EqualWidthBins",
    "GivenBins",
    "Grid",
    "Scope",
    "Tally",
    "equal_mass_edges",
    "top_label",
]
