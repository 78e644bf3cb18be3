"""One group of a cascade certificate: its rows, its thresholds, and the walks they follow from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from pacbound.certificate.cascade import sealed_walk
from pacbound.certificate.cascade_labels import (
    BestPossible,
    PartialLabels,
    Unlabelled,
    counts_at,
    thresholds_of,
)
from pacbound.certificate.cascade_walks import claimed_walks, read_cells, read_walks
from pacbound.certificate.refusal import read_refusal
from pacbound.documents import Json, Reader, encode_float
from pacbound.errors import CertificateError
from pacbound.procedures import cascade_paths
from pacbound.procedures.cascade import Bound
from pacbound.procedures.joint_walk import JointWalk
from pacbound.procedures.refusal import Refusal

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Counted = Literal["exits", "only_slow", "only_fast", "unlabelled"]


@dataclass(frozen=True, eq=False)
class CascadeGroup:
    """The part of a `GroupedCascadeCertificate` that is about one group.

    What is certified is that the cascade loses at most `xi` accuracy among the rows of the group
    or, where `bounded` of the certificate is "differ", that at most `xi` of their answers differ.
    Exit rates, costs and the observed error increase are descriptive.

    A group that is not certified has the thresholds +inf: its rows never exit early. `refusal` says
    why, unless it is only because thresholds are common and another group is to blame.

    Attributes
    ----------
    n : int
        The number of rows of the group.
    costs : tuple of float or None
        What a row costs that is answered by each model, the models before it included.
    cells : tuple of int or None
        The thresholds on their grid; None if there are none.
    chosen : int
        Which of the walks has these thresholds.
    walks : tuple of JointWalk
        The counts of the group, wherever they change as the thresholds fall.
    refusal : Refusal or None
        Why the group is not certified, and about how many of its rows it would take.
    partial : PartialLabels or None
        How many rows in which predictions differ have a label, and what more labels could gain;
        None if all rows of all groups have one.

    Examples
    --------
    >>> from pacbound import certify_cascade
    >>> sites = ["north"] * 900 + ["south"] * 100
    >>> certificate = certify_cascade(
    ...     [0.9] * 1000, [[1, 1]] * 1000, xi=0.01, delta=0.05, groups=sites, group_thresholds="own"
    ... )
    >>> south = certificate.groups["south"]
    >>> south.n, south.thresholds, south.refusal.needed
    (100, array([inf]), 366)
    """

    n: int
    costs: tuple[float, ...] | None
    cells: tuple[int, ...] | None
    chosen: int
    walks: tuple[JointWalk, ...]
    refusal: Refusal | None
    partial: PartialLabels | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "walks", tuple(sealed_walk(walk) for walk in self.walks))

    @property
    def certified(self) -> bool:
        """Whether the rows support the claim about this group."""
        return self.cells is not None

    @property
    def thresholds(self) -> Floats:
        """A row of the group exits at the first model whose float64 score is at or above its
        threshold; +inf where it never does.
        """
        return thresholds_of(self.cells, len(self.walks[0].cells))

    @property
    def exit_rates(self) -> Floats:
        """The share of the group's rows that left at each exit; descriptive."""
        return self.seen("exits") / max(self.n, 1)

    @property
    def observed_error_increase(self) -> float:
        """The accuracy lost on these very rows; descriptive. Rows without a label count as lost."""
        return float(self.lost() / max(self.n, 1))

    @property
    def expected_cost(self) -> float | None:
        """What a row of the group cost on average; descriptive. None if no costs were given."""
        return self._cost(self.seen("exits").tolist())

    @property
    def unlabelled(self) -> Unlabelled:
        """How many rows counted as losses because they have no label and predictions differ."""
        in_all = 0 if self.partial is None else self.partial.unlabelled
        return Unlabelled(int(self.seen("unlabelled").sum()), in_all)

    @property
    def best_possible(self) -> BestPossible:
        """What more labels of the same rows could lead to at best; descriptive."""
        if self.partial is None:
            return BestPossible(self.thresholds, self.exit_rates, self.expected_cost)
        rates = np.array(self.partial.exits) / max(self.n, 1)
        return BestPossible(self.partial.thresholds, rates, self._cost(self.partial.exits))

    @property
    def settled(self) -> bool:
        """Whether more labels of the same rows cannot change the thresholds."""
        if self.partial is None or self.partial.cells is None:
            return True
        return (self.partial.cells, self.partial.chosen) == (self.cells, self.chosen)

    def seen(self, count: Counted) -> Integers:
        """The counts of each exit at the thresholds, none if there are no thresholds."""
        walk = self.walks[self.chosen]
        return counts_at(walk, self.cells, getattr(walk, count))

    def lost(self) -> int:
        """Rows lost less rows gained at the thresholds, those without a label counted as lost."""
        lost = self.seen("only_slow") + self.seen("unlabelled") - self.seen("only_fast")
        return int(lost.sum())

    def claimed(self, name: str, bound: Bound) -> dict[str, Json]:
        """The group as the claim holds it."""
        partial = self.partial
        labels: dict[str, Json] = {} if partial is None else {"labels": partial.claimed()}
        best: dict[str, Json] = (
            {}
            if partial is None
            else {"best_possible": partial.claimed_best(self._cost(partial.exits))}
        )
        return {
            "group": name,
            "n": self.n,
            "certified": self.certified,
            "thresholds": [encode_float(value) for value in self.thresholds.tolist()],
            "chosen": self.chosen,
            **labels,
            "walks": claimed_walks(self.walks, bound, partial=partial is not None),
            "descriptive": {
                "exit_rates": self.exit_rates.tolist(),
                "observed_error_increase": self.observed_error_increase,
                "expected_cost": self.expected_cost,
                **best,
            },
        }

    @classmethod
    def read(
        cls,
        part: Reader,
        bound: Bound,
        method: str,
        *,
        xi: float,
        partial: bool,
    ) -> CascadeGroup:
        """The group that a part of a claim describes, but for its costs, which are the claim's."""
        n, chosen = part.count("n"), part.count("chosen")
        walks = read_walks(part, n, bound, method, xi=xi, partial=partial)
        if chosen >= len(walks):
            raise CertificateError(
                f"{part.place('chosen')} is {chosen}: there are {len(walks)} walks."
            )
        return cls(
            n,
            None,
            read_cells(part, walks[chosen], method),
            chosen,
            walks,
            read_refusal(part),
            PartialLabels.read(part, n, walks) if partial else None,
        )

    def _cost(self, exits: Sequence[int]) -> float | None:
        if self.costs is None or not self.n:
            return None
        return cascade_paths.total_cost(np.array(exits), self.n, self.costs) / self.n
