"""The cascade certificate: the thresholds at which fast models may answer for the slow one, for all
rows or for each group, with the walks that these follow from.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Final, Literal

import numpy as np
from numpy.typing import NDArray

from pacbound.claims.assumptions import seed_line
from pacbound.claims.certificate import EXPLAINED_WORK, Certificate, ReadOnly
from pacbound.claims.claim import sealed
from pacbound.errors import InvalidTypeError, PacboundError
from pacbound.procedures.cascade import CascadeRefusal, Declared, total_cost
from pacbound.procedures.joint_walk import JointWalk, top_of
from pacbound.tally.questions.cascade import ALL_ROWS, FINE

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Cells = tuple[int, ...]
Counted = Literal["exits", "only_slow", "only_fast", "unlabelled"]

# The refusal of a certificate that was read, where its reasons would take long to compute, or where
# its counts do not imply a refusal at all.
UNEXPLAINED: Final = CascadeRefusal("unexplained")


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
    label were one that exiting early gains. It is not certified.

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


@dataclass(frozen=True, eq=False)
class CascadeGroup:
    """The part of a `CascadeCertificate` that is about one group, or about all rows.

    What is certified is that the cascade loses at most `xi` accuracy among the rows of the group
    or, where `bounded` of the certificate is "differ", that at most `xi` of their answers differ.
    Exit rates, costs and the observed error increase were seen on these rows, and are not
    certified.

    A group that is not certified has the thresholds +inf: its rows never exit early. `refusal` says
    why, unless it is only because thresholds are common and another group is to blame.

    Attributes
    ----------
    name : str or None
        The group; None for all rows.
    n : int
        The number of rows of the group.
    cells : tuple of int or None
        The thresholds on their grid; None if there are none.
    chosen : int
        Which of the walks has these thresholds.
    walks : tuple of JointWalk
        The counts of the group, wherever they change as the thresholds fall.
    labels : mapping or None
        How many rows in which predictions differ are "labelled" and "unlabelled"; None if no label
        is missing in any group.
    best : mapping or None
        What more labels could lead to, as the document holds it; None if no label is missing.
    costs : tuple of float or None
        What a row costs that each model answers at these thresholds, the models before it included.
    refusal : CascadeRefusal or None
        Why the group is not certified, and about how many of its rows it would take.

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

    name: str | None
    n: int
    cells: Cells | None
    chosen: int
    walks: tuple[JointWalk, ...]
    labels: Mapping[str, int] | None
    best: Mapping[str, Any] | None
    costs: tuple[float, ...] | None
    refusal: CascadeRefusal | None

    @property
    def exits(self) -> int:
        """The number of models before the slow one."""
        return len(self.walks[0].cells)

    @property
    def certified(self) -> bool:
        """Whether there are thresholds for this group."""
        return self.cells is not None

    @property
    def thresholds(self) -> Floats:
        """A row of the group exits at the first model whose float64 score is at or above its
        threshold; +inf where it never does.
        """
        return thresholds_of(self.cells, self.exits)

    @property
    def exit_counts(self) -> Integers:
        """How many rows of the group left at each exit; not certified."""
        return self.seen("exits")

    @property
    def exit_rates(self) -> Floats:
        """The share of the group's rows that left at each exit; not certified."""
        return self.exit_counts / max(self.n, 1)

    @property
    def observed_error_increase(self) -> float:
        """The accuracy lost on these very rows; not certified. Rows without a label count as
        lost.
        """
        return self.lost() / max(self.n, 1)

    @property
    def expected_cost(self) -> float | None:
        """What a row of the group cost on average; not certified. None if no costs were given."""
        return self._cost(self.exit_counts.tolist())

    @property
    def unlabelled(self) -> Unlabelled:
        """How many rows counted as losses because they have no label and predictions differ."""
        in_all = 0 if self.labels is None else self.labels["unlabelled"]
        return Unlabelled(int(self.seen("unlabelled").sum()), in_all)

    @property
    def best_possible(self) -> BestPossible:
        """What more labels of the same rows could lead to at best; not certified. The group's own
        thresholds if no label is missing where it matters.
        """
        if self.best is None:
            return BestPossible(self.thresholds, self.exit_rates, self.expected_cost)
        exits = self.best["exits"]
        rates = np.array(exits) / max(self.n, 1)
        return BestPossible(np.array(self.best["thresholds"]), rates, self._cost(exits))

    @property
    def settled(self) -> bool:
        """Whether more labels of the same rows cannot change the thresholds."""
        if self.best is None or all(value == np.inf for value in self.best["thresholds"]):
            return True
        best = list(self.best["thresholds"]), self.best["chosen"]
        return best == (self.thresholds.tolist(), self.chosen)

    def seen(self, count: Counted) -> Integers:
        """The counts of each exit at the thresholds, none if there are no thresholds."""
        return self.walks[self.chosen].counts_at(self.cells, count)

    def lost(self) -> float:
        """Rows lost less rows gained at the thresholds, those without a label counted as lost; of
        graded rows the quality that they lose.
        """
        walk = self.walks[self.chosen]
        if walk.grades is not None:
            place = walk.place_of(self.cells)
            loss, gain = (0, 0) if place is None else walk.grades[place, :2].tolist()
            return float(loss - gain) / FINE
        lost = self.seen("only_slow") + self.seen("unlabelled") - self.seen("only_fast")
        return int(lost.sum())

    def _cost(self, exits: Sequence[int]) -> float | None:
        if self.costs is None or not self.n:
            return None
        return total_cost(np.array(exits), self.n, self.costs) / self.n


class CascadeCertificate(Certificate):
    """With probability at least 1 - `delta` a cascade at `thresholds` loses at most `xi` accuracy
    against its slow model; or, where `bounded` is "differ", at most `xi` of its answers differ from
    the slow model's. With groups this holds in *every* group.

    What is certified is `xi`. Exit rates, costs and the observed error increase were seen at
    thresholds that were chosen from the same rows, and are not certified. The probability is over
    the draw of the rows, which must be independent draws from the data the models will meet in use.
    `certify_cascade` makes such a certificate, and `load_certificate` reads one.

    Labels may be missing: rows without one in which predictions differ counted as losses, and
    `unlabelled` says how many. `best_possible` says what more labels could gain. The claim is about
    the loss also without a single label: more may come, and `delta` covers all that is claimed from
    then on. That few answers differ is a claim of its own, which is declared beforehand and takes
    no labels.

    A refusal has `certified` False and the thresholds +inf: never exit early. Common thresholds are
    refused if a single group cannot be certified, and `refusal` names it; with own thresholds such
    a group never exits early, and the claim is refused only if no group can be certified.

    Attributes
    ----------
    by : Claim
        What is claimed, and how it is decided and said.
    values : mapping
        Everything that the document holds of it, by name.
    provenance : Provenance
        Where the certificate comes from.
    draw : Drawn or None
        How the rows were drawn from others; None if all rows of the data were counted as they are.
    loaded : mapping or None
        The document that it was read from; None if it was made in this process.

    Examples
    --------
    Where the fast model is sure, it agrees with the slow one:

    >>> import numpy as np
    >>> from pacbound import certify_cascade
    >>> confidence = np.array([0.9, 0.9, 0.9, 0.4] * 250)
    >>> answers = np.array([[1, 1], [1, 1], [1, 1], [0, 1]] * 250)
    >>> label = np.ones(1000, dtype=int)
    >>> certificate = certify_cascade(confidence, answers, label, xi=0.02, delta=0.01)
    >>> certificate.certified, certificate.thresholds.round(2), certificate.exit_rates
    (True, array([0.4]), array([0.75]))

    At night the fast model is as sure, and wrong more often. It decides for both:

    >>> confidence = np.tile([0.9, 0.6], 1000)
    >>> times = np.repeat(["day", "night"], 1000)
    >>> answers = np.ones((2000, 2), dtype=int)
    >>> answers[(times == "night") & (confidence < 0.9), 0] = 0
    >>> asked = {"xi": 0.02, "delta": 0.01, "groups": times}
    >>> certificate = certify_cascade(confidence, answers, np.ones(2000), **asked)
    >>> certificate.thresholds.round(2), certificate.exit_rates
    (array([0.6]), array([0.5]))

    With its own threshold the day need not wait for the night:

    >>> own = certify_cascade(
    ...     confidence, answers, np.ones(2000), **asked, group_thresholds="own"
    ... )
    >>> {name: group.exit_rates.tolist() for name, group in own.groups.items()}
    {'day': [1.0], 'night': [0.5]}
    """

    @property
    def xi(self) -> float:
        """The accuracy that may be lost, or the share of answers that may differ."""
        return float(self.values["xi"])

    @property
    def bounded(self) -> str:
        """What `xi` bounds: "loss", or "differ"."""
        return str(self.values["claim"])

    @property
    def scope(self) -> str:
        """What the tables are: "top" for all rows in one, "groups", or "overlapping-groups", of
        which one is "all rows".
        """
        return str(self.values["scope"])

    @property
    def group_thresholds(self) -> str | None:
        """Whether groups have "common" thresholds or "own" ones; None without groups."""
        found: str | None = self.values["group_thresholds"]
        return found

    @property
    def costs(self) -> tuple[float, ...] | None:
        """What a row costs that is answered by each model, the models before it included."""
        found: tuple[float, ...] | None = self.values["costs"]
        return found

    @property
    def declared(self) -> Declared | None:
        """What a fold declared, with the models that it chose; None for other methods."""
        return self.values.get("declared")

    @property
    def exits(self) -> int:
        """The number of models before the slow one."""
        return len(self.values["tables"][0]["walks"][0].cells)

    @cached_property
    def tables(self) -> tuple[CascadeGroup, ...]:
        """What is claimed about each group; without groups, about all rows."""
        return tuple(
            group_of(table, self.costs, self.declared, refusal)
            for table, refusal in zip(self.values["tables"], self._refusals[1], strict=True)
        )

    @cached_property
    def groups(self) -> Mapping[str, CascadeGroup]:
        """What is claimed about each group, by its name; empty without groups."""
        return ReadOnly({group.name: group for group in self.tables if group.name is not None})

    @property
    def refusal(self) -> CascadeRefusal | None:
        """Why nothing is certified, and about how many rows (of the group that it names) it would
        take; None if it is.
        """
        return self._refusals[0]

    @cached_property
    def _refusals(self) -> tuple[CascadeRefusal | None, tuple[CascadeRefusal | None, ...]]:
        """The reasons, which a document does not hold: they follow from its counts."""
        values = self.values
        if "refusal" not in values:
            values = self._decided_again()
        if values is not None:
            return values["refusal"], tuple(table["refusal"] for table in values["tables"])
        told = [
            UNEXPLAINED if all(value == np.inf for value in table["thresholds"]) else None
            for table in self.values["tables"]
        ]
        return None if self.certified else UNEXPLAINED, tuple(told)

    def _decided_again(self) -> Any:
        if self.work() > EXPLAINED_WORK:
            return None
        try:
            again = self.by.decided(self.values)
        except PacboundError:
            return None
        ends = [
            [table["thresholds"] for table in values["tables"]] for values in (again, self.values)
        ]
        same = again["certified"] == self.certified and ends[0] == ends[1]
        return again if same else None

    @property
    def thresholds(self) -> Any:
        """A row exits at the first model whose float64 score is at or above its threshold, +inf
        where it never does: an array with one for each exit; own ones of groups, or common ones of
        which some groups were left out, as a dictionary of such arrays by the names of the groups.
        """
        self.require_intact()
        if self.group_thresholds == "own" or self.left_out:
            never = np.full(self.exits, np.inf)
            by_group = {str(group.name): group.thresholds for group in self.tables}
            return {**by_group, **dict.fromkeys(self.left_out, never)}
        return self.tables[0].thresholds

    def thresholds_for_use(self) -> Any:
        """The thresholds of a cascade that runs on this certificate, which is verified first. A
        refusal never exits early.
        """
        self.require_verified()
        return self.thresholds

    @property
    def exit_counts(self) -> NDArray[np.int64]:
        """How many of all rows left at each exit; not certified."""
        return self._seen("exits")

    @property
    def exit_rates(self) -> Floats:
        """The share of all rows that left at each exit; not certified."""
        return self.exit_counts / self.n

    @property
    def observed_error_increase(self) -> float:
        """The accuracy lost on these very rows; not certified, and not an unbiased estimate. Rows
        without a label count as lost, so with them it is the most that can have been lost. Where
        `bounded` is "differ" it is the share of answers that differ.
        """
        return float(sum(group.lost() for group in self._counted) / self.n)

    @property
    def expected_cost(self) -> float | None:
        """What a row cost on average, by the costs given; not certified. None if none were
        given.
        """
        costs = self.costs_in_use
        return None if costs is None else total_cost(self.exit_counts, self.n, costs) / self.n

    @property
    def costs_in_use(self) -> tuple[float, ...] | None:
        """What a row costs that each model answers at these thresholds, the models before it
        included; without those that are never asked, where their own costs are known.
        """
        return self.tables[0].costs

    @property
    def unlabelled(self) -> Unlabelled:
        """How many rows counted as losses because they have no label and predictions differ."""
        missing = [group.unlabelled for group in self._counted]
        return Unlabelled(
            sum(part.exiting for part in missing), sum(part.in_all for part in missing)
        )

    @property
    def best_possible(self) -> BestPossible:
        """What more labels of the same rows could lead to at best; not certified. The certificate's
        own thresholds if no label is missing where it matters. Of groups, each has its own.
        """
        if self.scope != "top":
            raise InvalidTypeError(
                "This certificate is about groups: look at certificate.groups, or certify without "
                "groups."
            )
        return self.tables[0].best_possible

    @property
    def settled(self) -> bool:
        """Whether more labels of the same rows cannot change any threshold."""
        return all(group.settled for group in self.tables)

    @property
    def refused_groups(self) -> tuple[str, ...]:
        """The groups that are not certified, so that their rows never exit early."""
        refused = (name for name, group in self.groups.items() if not group.certified)
        return (*refused, *self.left_out)

    @property
    def left_out(self) -> tuple[str, ...]:
        """The groups that `small_groups="leave-out"` left out, for too few rows."""
        return tuple(self.values.get("left_out") or ())

    def draw_lines(self) -> list[str]:
        """What was drawn by a seed, that of a fold included."""
        fold = [] if self.declared is None else [self.declared.seed]
        return [
            *super().draw_lines(),
            *(seed_line(seed, "draw the same fold", fresh=False) for seed in fold),
        ]

    @property
    def _counted(self) -> list[CascadeGroup]:
        """The groups that hold every row once."""
        return counted_groups(self.tables, self.scope)

    def _seen(self, count: Counted) -> Integers:
        counts = [group.seen(count) for group in self._counted]
        return np.asarray(np.sum(counts, axis=0, dtype=np.int64))

    def gains_and_losses(self) -> tuple[int, int]:
        """The rows that exit early on which only the exit is right, and only the slow model; those
        without a label count as the latter.
        """
        lost = self._seen("only_slow") + self._seen("unlabelled")
        return int(self._seen("only_fast").sum()), int(lost.sum())


def counted_groups(groups: Sequence[CascadeGroup], scope: str) -> list[CascadeGroup]:
    """The groups that hold every row once."""
    if scope == "overlapping-groups":
        return [group for group in groups if group.name == ALL_ROWS]
    return list(groups)


def group_of(
    table: Mapping[str, Any],
    costs: tuple[float, ...] | None,
    declared: Declared | None,
    refusal: CascadeRefusal | None,
) -> CascadeGroup:
    """The group that a table of a certificate's values is about."""
    exits = len(table["walks"][0].cells)
    cells = cells_of(table["thresholds"])
    if declared is not None:
        costs = declared.costs_at(cells or (top_of(exits) + 1,) * exits)
    return CascadeGroup(
        table["group"],
        table["n"],
        cells,
        table["chosen"],
        table["walks"],
        table["labels"],
        table["best_possible"],
        costs,
        refusal,
    )


def thresholds_of(cells: Cells | None, exits: int) -> Floats:
    """Cells of the grid as thresholds; +inf where there are none, or one is above every score."""
    if cells is None:
        return np.full(exits, np.inf)
    top = top_of(exits)
    return np.array([cell / top if cell <= top else np.inf for cell in cells])


def cells_of(thresholds: Sequence[float]) -> Cells | None:
    """Thresholds as cells of their grid; None where nothing ever exits."""
    if all(value == np.inf for value in thresholds):
        return None
    top = top_of(len(thresholds))
    return tuple(top + 1 if value == np.inf else int(value * top) for value in thresholds)


def sealed_walk(walk: JointWalk) -> JointWalk:
    """`walk` as a certificate may hand it out: nobody can write into its counts."""
    grades = None if walk.grades is None else sealed(walk.grades)
    return replace(JointWalk(*map(sealed, walk.columns)), grades=grades)


def unit_costs(exits: int) -> tuple[float, ...]:
    """What stands for the costs of more than two models where none are given: each model as much
    as the first.
    """
    return tuple(float(place) for place in range(1, exits + 2))
