from pacbound.tally.grids import AtomBins as AtomBins
from pacbound.tally.grids import Bins as Bins
from pacbound.tally.grids import DyadicGrid as DyadicGrid
from pacbound.tally.grids import EqualWidthBins as EqualWidthBins
from pacbound.tally.grids import GivenBins as GivenBins
from pacbound.tally.grids import Grid as Grid
from pacbound.tally.grids import equal_mass_edges as equal_mass_edges
from pacbound.tally.probabilities import top_label as top_label
from pacbound.tally.questions import Scope as Scope
from pacbound.tally.tally import Tally as Tally

__all__: list[str]
