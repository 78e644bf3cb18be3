"""What labels the rows of a cascade certificate had, and what more of them could gain at best.

The numbers of rows with and without a label are counts, like the others that a certificate holds.
The best possible thresholds were computed from rows that the certificate does not keep, below the
first failure of its walks. They are descriptive, and can only be held against what bounds them.

Labels of other rows, and models named in the wrong order, make any threshold seem to lose nothing.
What speaks for either is said beside the claim.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
from numpy.typing import NDArray

from pacbound.certificate.cascade_walks import grid_top
from pacbound.documents import Json, Reader, encode_float
from pacbound.errors import CertificateError
from pacbound.procedures.cascade_paths import PathsDecision
from pacbound.procedures.joint_walk import JointWalk
from pacbound.stats.binomial import binomial_sf
from pacbound.tally.tally import Tally

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

LABELS: Final = "labels"
"""What a provenance calls its note about labels."""

SEEM_TO_BEAT: Final = 1e-3
"""Exits seem to beat the slow model if so many of the rows on which only one of the two is right
would be theirs with at most this chance, were either equally likely to be right (sign test)."""

_NOTED: Final = {
    "too few to tell": (
        "Note: too few rows have a label, or nearly all have the same, to see whether the labels "
        "are those of these rows. Labels of other rows make any threshold seem to lose nothing: "
        "check how they were joined."
    ),
    "unrelated": (
        "Note: the labels match the slow model no more often than labels of other rows would, and "
        "were counted all the same (unrelated_labels). If they are not those of these rows, the "
        "claim is worth nothing."
    ),
}


@dataclass(frozen=True)
class Unlabelled:
    """How many rows without a label counted as losses because their answer differs from the slow
    model's.

    Attributes
    ----------
    exiting : int
        Those that exit early at the thresholds with such an answer.
    in_all : int
        All rows without a label in which a fast model differs from the slow one.

    Examples
    --------
    >>> Unlabelled(exiting=3, in_all=40)
    Unlabelled(exiting=3, in_all=40)
    """

    exiting: int
    in_all: int


@dataclass(frozen=True, eq=False)
class BestPossible:
    """What more labels could gain at best, on the same rows: the outcome if every row without a
    label were one that exiting early gains. Descriptive.

    Attributes
    ----------
    thresholds : ndarray of shape (M-1,)
        The thresholds that would be certified; +inf if none would.
    exit_rates : ndarray of shape (M-1,)
        The share of the rows that would leave at each exit.
    expected_cost : float or None
        What a row would cost on average; None if no costs were given.

    Examples
    --------
    >>> BestPossible(np.array([0.5]), np.array([0.75]), None).exit_rates
    array([0.75])
    """

    thresholds: Floats
    exit_rates: Floats
    expected_cost: float | None


@dataclass(frozen=True)
class PartialLabels:
    """The rows in which predictions differ, with a label and without; and the best possible end:
    its thresholds on their grid (None: refused), its walk, and the rows that take each exit there.
    """

    labelled: int
    unlabelled: int
    cells: tuple[int, ...] | None
    chosen: int
    exits: tuple[int, ...]

    @classmethod
    def of(cls, counts: Integers, best: PathsDecision) -> PartialLabels:
        """From the counts of a tally's joint outcomes, and the decision with gains filled in."""
        exits = len(best.walks[0].cells)
        labelled, unlabelled = (
            int(part.sum()) for part in np.split(counts[:, 1:], [4**exits - 1], axis=1)
        )
        there = exits_at(best.walks[best.chosen], best.cells)
        return cls(labelled, unlabelled, best.cells, best.chosen, tuple(there.tolist()))

    def ending_at(self, decision: PathsDecision) -> PartialLabels:
        """The same rows where labels gain nothing: the best possible end is the decision's own."""
        there = exits_at(decision.walks[decision.chosen], decision.cells)
        return replace(
            self, cells=decision.cells, chosen=decision.chosen, exits=tuple(there.tolist())
        )

    @classmethod
    def read(cls, claim: Reader, n: int, walks: tuple[JointWalk, ...]) -> PartialLabels:
        """Those of a claim, if rows could have them and the walks do not contradict them."""
        labels = claim.mapping("labels")
        labelled, unlabelled = labels.count("labelled"), labels.count("unlabelled")
        if labelled + unlabelled > n:
            raise CertificateError(
                f"{labels.place('unlabelled')}: more rows differ than the {n} that there are."
            )
        for place, walk in enumerate(walks):
            known = (walk.differ - walk.unlabelled).sum(axis=0)
            if (walk.unlabelled.sum(axis=0) > unlabelled).any() or (known > labelled).any():
                raise CertificateError(
                    f"{claim.place('walks')}[{place}] has more rows with or without a label than "
                    "the claim."
                )
        best = claim.mapping("descriptive").mapping("best_possible")
        chosen, exits = best.count("chosen"), best.integers("exits")
        cells = _read_cells(best, len(walks[0].cells))
        if chosen >= len(walks) or len(exits) != len(walks[0].cells):
            raise CertificateError(f"{best.place('exits')} does not fit the walks.")
        if min(exits) < 0 or sum(exits) > n or (cells is None and any(exits)):
            raise CertificateError(f"{best.place('exits')} are not exits of {n} rows.")
        if cells is not None and 0 in cells and sum(exits) != n:
            raise CertificateError(
                f"{best.place('exits')}: at a threshold of 0 every row exits, and these do not."
            )
        return cls(labelled, unlabelled, cells, chosen, tuple(exits))

    def claimed(self) -> dict[str, Json]:
        """The counts as the claim holds them."""
        return {"labelled": self.labelled, "unlabelled": self.unlabelled}

    def claimed_best(self, cost: float | None) -> dict[str, Json]:
        """The best possible end as the claim holds it; `cost` is what a row would cost."""
        return {
            "thresholds": [encode_float(value) for value in self.thresholds.tolist()],
            "chosen": self.chosen,
            "exits": list(self.exits),
            "expected_cost": cost,
        }

    @property
    def thresholds(self) -> Floats:
        """The thresholds of the best possible end."""
        return thresholds_of(self.cells, len(self.exits))


def thresholds_of(cells: tuple[int, ...] | None, exits: int) -> Floats:
    """Cells of the grid as thresholds; +inf where there are none, or one is above every score."""
    if cells is None:
        return np.full(exits, np.inf)
    top = grid_top(exits)
    return np.array([cell / top if cell <= top else np.inf for cell in cells])


def exits_at(walk: JointWalk, cells: tuple[int, ...] | None) -> Integers:
    """How many rows take each exit at the thresholds, none if there are none."""
    return counts_at(walk, cells, walk.exits)


def counts_at(walk: JointWalk, cells: tuple[int, ...] | None, counts: Integers) -> Integers:
    """Counts of each exit along the walk, where its thresholds are `cells`; 0 if they are not."""
    if cells is not None:
        there = np.flatnonzero((walk.cells == np.array(cells)[:, None]).all(axis=0))
        if there.size:
            return np.asarray(counts[:, there[-1]])
    return np.zeros(len(walk.cells), dtype=np.int64)


def _read_cells(best: Reader, exits: int) -> tuple[int, ...] | None:
    thresholds, top = best.numbers("thresholds"), grid_top(exits)
    if len(thresholds) == exits and all(value == np.inf for value in thresholds):
        return None
    cells = [value * top for value in thresholds]
    if len(cells) != exits or any(not 0 <= cell <= top or cell != int(cell) for cell in cells):
        raise CertificateError(
            f"{best.place('thresholds')}: expected {exits} values on the grid of 1/{top}, or +inf."
        )
    return tuple(map(int, cells))


def judged_labels(tally: Tally) -> dict[str, str]:
    """What a provenance notes about the labels of a tally; labels that look like those of other
    rows raise, unless the user insists.
    """
    if tally.matches is None:
        return {}
    tally.matches.require_related(tally.rows)
    verdict = tally.matches.verdict(tally.rows)
    return {LABELS: verdict} if verdict in _NOTED else {}


def noted(notes: Mapping[str, str], *, gains: int, losses: int) -> list[str]:
    """The lines of a summary about labels that may be those of other rows, and about models that
    may be in the wrong order. `gains` and `losses` are the rows that exit early on which only the
    exit is right, and only the slow model.
    """
    lines = [_NOTED[notes[LABELS]]] if notes.get(LABELS) in _NOTED else []
    if binomial_sf(gains, gains + losses, 0.5) <= SEEM_TO_BEAT:
        lines.append(
            f"Note: the exits seem to beat the slow model: only the exit is right in {gains:,} "
            f"rows that exit early, and only the slow model in {losses:,}. If that surprises you, "
            "the models may be named in the wrong order (the slow one comes last), or the labels "
            "be those of other rows."
        )
    return lines
