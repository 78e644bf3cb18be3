"""The cascade certificate: the thresholds at which fast models may answer for the slow one."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from types import MappingProxyType
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from pacbound.claims.assumptions import one_of_many
from pacbound.claims.cascade.fields import counted_groups
from pacbound.claims.cascade.group import (
    BestPossible,
    CascadeGroup,
    Counted,
    Floats,
    Integers,
    Unlabelled,
    group_of,
)
from pacbound.claims.certificate import EXPLAINED_WORK, Certificate
from pacbound.errors import InvalidTypeError, InvalidValueError, PacboundError
from pacbound.procedures.cascade import CascadeRefusal
from pacbound.procedures.cascade_front import Declared
from pacbound.procedures.cascade_paths import total_cost
from pacbound.procedures.joint_walk import JointWalk

LABELS: Final = "labels"
"""What a provenance calls its note about labels."""

UNEXPLAINED: Final = CascadeRefusal("unexplained")
"""The refusal of a certificate that was read, where its reasons would take long to compute, or
where its counts do not imply a refusal at all."""


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
    a group never exits early, and the claim is refused only if no group can be certified. The
    method "greedy" carries no proof, so it is never certified even though it names thresholds.

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
    def bound(self) -> Any:
        """Which test was used: "exact", "pair" or "product"."""
        return self.values["bound"]

    @property
    def method(self) -> str:
        """How thresholds were found: "walk" for two models; "paths" or "greedy" for more; "front"
        for a sequence of thresholds that a fold declared (`design_cascade`).
        """
        return str(self.by.procedures[self.values["procedure"]].method)  # type: ignore[attr-defined]

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
            group_of(table, self.method, self.costs, self.declared, refusal)
            for table, refusal in zip(self.values["tables"], self._refusals[1], strict=True)
        )

    @cached_property
    def groups(self) -> Mapping[str, CascadeGroup]:
        """What is claimed about each group, by its name; empty without groups."""
        return MappingProxyType(
            {group.name: group for group in self.tables if group.name is not None}
        )

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
        where it never does: an array with one for each exit; own ones of groups as a dictionary of
        such arrays by the names of the groups.
        """
        self.require_intact()
        if self.group_thresholds == "own":
            return {str(group.name): group.thresholds for group in self.tables}
        return self.tables[0].thresholds

    def thresholds_for_use(self) -> Any:
        """The thresholds of a cascade that runs on this certificate, verified: never exit where it
        is refused, an error without a proof.
        """
        self.require_verified()
        if self.method == "greedy":
            raise InvalidValueError(
                "This certificate is not certified: a greedy choice, one exit after the other, "
                "carries no proof for more than two models. To run without a guarantee pass "
                "certificate.thresholds."
            )
        return self.thresholds

    @property
    def only(self) -> CascadeGroup:
        """What is claimed about all rows; for groups an error, since each has its own."""
        if self.scope != "top":
            raise InvalidTypeError(
                "This certificate is about groups: look at certificate.groups, or certify without "
                "groups."
            )
        return self.tables[0]

    @property
    def cells(self) -> tuple[int, ...] | None:
        """The thresholds on their grid; None if there are none. Not for groups."""
        return self.only.cells

    @property
    def chosen(self) -> int:
        """Which of the walks has these thresholds. Not for groups."""
        return self.only.chosen

    @property
    def walks(self) -> tuple[JointWalk, ...]:
        """The counts that the decision follows from, wherever they change as the thresholds fall.
        Not for groups.
        """
        return self.only.walks

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
        return self.only.best_possible

    @property
    def settled(self) -> bool:
        """Whether more labels of the same rows cannot change any threshold."""
        return all(group.settled for group in self.tables)

    @property
    def refused_groups(self) -> tuple[str, ...]:
        """The groups that are not certified, so that their rows never exit early."""
        return tuple(name for name, group in self.groups.items() if not group.certified)

    def draw_lines(self) -> list[str]:
        """What was drawn by a seed, that of a fold included."""
        fold = [] if self.declared is None else [self.declared.seed]
        return [
            *super().draw_lines(),
            *(one_of_many(f"Seed {seed} of the fold", "seed", "fold") for seed in fold),
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
