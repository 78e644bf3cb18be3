"""The cascade certificate of groups: thresholds at which no group loses more than xi."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import ClassVar, Literal, Self

import numpy as np
from numpy.typing import NDArray

from pacbound.certificate.cascade import (
    read_bounded,
    read_costs,
    require_bound,
    require_no_labels,
    unit_costs,
)
from pacbound.certificate.cascade_group import CascadeGroup, Counted
from pacbound.certificate.cascade_labels import (
    PartialLabels,
    Unlabelled,
    judged_labels,
    noted,
)
from pacbound.certificate.document import (
    Certificate,
    Provenance,
    amount,
    exact,
    interval_work,
    likelihood,
)
from pacbound.certificate.refusal import UNEXPLAINED, described_refusal, read_refusal
from pacbound.certificate.tally_checks import require_tally
from pacbound.documents import Json, Reader
from pacbound.errors import CertificateError, InvalidValueError
from pacbound.procedures import cascade_differ, cascade_paths
from pacbound.procedures import cascade_groups as procedure
from pacbound.procedures.cascade import Bound
from pacbound.procedures.cascade_differ import Claim, checked_claim, refuse_labels
from pacbound.procedures.cascade_groups import Asked, GroupRows, Method, Shared
from pacbound.procedures.cascade_paths import PathsDecision
from pacbound.procedures.refusal import Refusal
from pacbound.procedures.registry import require
from pacbound.stats.arguments import LARGEST_COUNT, claimed_delta, is_one_of, tolerated_rate
from pacbound.stats.sequences import bonferroni_level, sidak_level
from pacbound.stats.trinomial import paired_test_work
from pacbound.tally.questions.cascade import ALL_ROWS, exits_of, grid_of, with_unlabelled
from pacbound.tally.row_rules import Exits, RowRule
from pacbound.tally.table import in_order
from pacbound.tally.tally import Tally

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
GroupScope = Literal["groups", "overlapping-groups"]

MOST_GROUPS = 1000
"""More groups than this are mostly a column that names each row, and would not fit a certificate
that can be read."""

MOST_STEPS = 2**20
"""RowSteps of all walks of all groups, times exits: about 20 MB as JSON, and a certificate of more
than 32 MB is not read."""


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class GroupedCascadeCertificate(Certificate):
    """With probability at least 1 - `delta` a cascade at `thresholds` loses at most `xi` accuracy
    against its slow model in *every* group; or, where `bounded` is "differ", at most `xi` of the
    answers in every group differ from the slow model's.

    With "common" thresholds the same ones serve all groups. With "own" ones each group has its own,
    and whoever runs the cascade says which group a row belongs to; rows of other groups never exit
    early. What is certified is `xi`, for each group. Exit rates, costs and the observed error
    increase are descriptive. The probability is over the draw of the rows, which must be
    independent draws from the distribution of use. `certify_cascade` makes such a certificate, and
    `load_certificate` reads one.

    A refusal has `certified` False and all thresholds +inf: never exit early. Common thresholds are
    refused if a single group cannot be certified, and `refusal` names it; with own thresholds such
    a group never exits early, and the claim is refused only if no group can be certified.

    Attributes
    ----------
    n : int
        The number of rows that were counted.
    xi : float
        The accuracy that may be lost in each group, or the share of answers that may differ.
    delta : float
        The chance that more is lost in any of them, or that more differ.
    bounded : str
        What `xi` bounds: "loss", or "differ".
    bound : str
        "exact", "pair" or "product".
    method : str
        "walk" for two models, "paths" for more.
    group_thresholds : str
        "common" or "own".
    scope : str
        "groups", or "overlapping-groups", of which one is "all rows".
    costs : tuple of float or None
        What a row costs that is answered by each model, the models before it included.
    groups : mapping of str to CascadeGroup
        What is claimed about each group, by its name, with the counts it follows from.
    refusal : Refusal or None
        Why nothing is certified, and about how many rows of the group it names it would take; None
        if it is.
    provenance : Provenance
        Where the certificate comes from.
    draw : Drawn or None
        How the rows were drawn from others; None if all rows of the data were counted as they are.
    loaded : mapping or None
        The document that it was read from; None if it was made in this process.

    Examples
    --------
    At night the fast model is as sure, and wrong more often. It decides for both:

    >>> import numpy as np
    >>> from pacbound import certify_cascade
    >>> confidence = np.tile([0.9, 0.6], 1000)
    >>> times = np.repeat(["day", "night"], 1000)
    >>> answers = np.ones((2000, 2), dtype=int)
    >>> answers[(times == "night") & (confidence < 0.9), 0] = 0
    >>> certificate = certify_cascade(
    ...     confidence, answers, np.ones(2000), xi=0.02, delta=0.01, groups=times
    ... )
    >>> certificate.thresholds.round(2), certificate.exit_rates
    (array([0.6]), array([0.5]))

    With its own threshold the day need not wait for the night:

    >>> own = certify_cascade(
    ...     confidence,
    ...     answers,
    ...     np.ones(2000),
    ...     xi=0.02,
    ...     delta=0.01,
    ...     groups=times,
    ...     group_thresholds="own",
    ... )
    >>> {name: group.exit_rates.tolist() for name, group in own.groups.items()}
    {'day': [1.0], 'night': [0.5]}
    """

    kind: ClassVar[str] = "cascade-groups"
    n: int
    xi: float
    delta: float
    bound: Bound
    method: Method
    group_thresholds: Shared
    scope: GroupScope
    costs: tuple[float, ...] | None
    groups: Mapping[str, CascadeGroup]
    refusal: Refusal | None
    bounded: Claim = "loss"

    def __post_init__(self) -> None:
        object.__setattr__(self, "groups", MappingProxyType(dict(self.groups)))

    @classmethod
    def from_tally(
        cls,
        tally: Tally,
        *,
        xi: float,
        delta: float,
        claim: Claim = "loss",
        bound: Bound = "exact",
        group_thresholds: Shared = "common",
        costs: tuple[float, ...] | None = None,
        columns: Mapping[str, str] | None = None,
    ) -> Self:
        """Certify a cascade tally with groups; `certify_cascade` does this for rows and tallies
        alike.

        Parameters
        ----------
        tally
            A cascade tally of at least one row, counted in groups.
        xi, delta, claim, bound, group_thresholds, costs
            As in `certify_cascade`.
        columns
            The names of the columns that were counted, for the provenance.

        Returns
        -------
        GroupedCascadeCertificate
            The thresholds. A refusal has `certified` False and the thresholds +inf (never exit).

        Raises
        ------
        InvalidValueError
            If the tally is not one of a cascade in groups, has no rows, does not add up, or has
            more than 1,000 groups; if an option cannot be what it should be; if groups overlap and
            own thresholds are asked for; if there are labels and the claim is that answers differ.

        Examples
        --------
        >>> from pacbound import Tally
        >>> rows = {"confidences": [0.9] * 500, "predictions": [[1, 1]] * 500}
        >>> tally = Tally.from_arrays(**rows, groups=["a", "b"] * 250)
        >>> GroupedCascadeCertificate.from_tally(tally, xi=0.02, delta=0.01).certified
        True
        """
        claim = checked_claim(claim)
        scope = _checked_scope(tally, group_thresholds)
        notes = judged_labels(tally)
        require_bound(bound)
        rate, level = tolerated_rate(xi), claimed_delta(delta)
        exits = exits_of(tally.cells.shape[1], tally.scope)
        costs = None if costs is None else cascade_paths.checked_costs(costs, exits + 1)
        tables = _tables(tally, exits)
        counts = [with_unlabelled(table.counts, exits) for table in tables]
        rows = [
            GroupRows.from_counts(table.cells, seen, bound)
            for table, seen in zip(tables, counts, strict=True)
        ]
        labelled = [int(seen[:, 1 : 4**exits].sum()) for seen in counts]
        refuse_labels(claim, max(labelled) if scope == "overlapping-groups" else sum(labelled))
        asked: Asked = {"xi": rate, "delta": level, "bound": bound}
        whole = _whole(tally.groups, scope)
        paid = costs or unit_costs(exits)
        found = procedure.decide(rows, group_thresholds, asked=asked, costs=paid, whole=whole)
        if claim == "differ":
            found = _in_words(found, rows, rate)
        steps = sum(walk.cells.size for decision in found for walk in decision.walks)
        if steps > MOST_STEPS:
            raise InvalidValueError(
                f"The walks of {len(rows)} groups have {steps:,} steps, more than a certificate "
                f"may have: expected at most {MOST_STEPS:,}. Use fewer groups or models."
            )
        partial: list[PartialLabels | None] = [None] * len(rows)
        if claim == "differ":
            partial = list(map(PartialLabels.of, counts, found))
        elif any(seen[:, 4**exits :].any() for seen in counts):
            best = procedure.decide(
                [group.with_gains() for group in rows],
                group_thresholds,
                asked=asked,
                costs=paid,
                whole=whole,
            )
            partial = list(map(PartialLabels.of, counts, best))
        parts = [
            CascadeGroup(n=group.n, costs=costs, partial=labels, **vars(decision))
            for group, decision, labels in zip(rows, found, partial, strict=True)
        ]
        return cls(
            n=tally.rows,
            xi=rate,
            delta=level,
            bounded=claim,
            bound=bound,
            method="walk" if exits == 1 else "paths",
            group_thresholds=group_thresholds,
            scope=scope,
            costs=costs,
            groups=dict(zip(tally.groups, parts, strict=True)),
            refusal=procedure.refused(tally.groups, rows, found),
            provenance=Provenance.of(tally, columns, notes),
            draw=tally.drawn,
        )

    @property
    def exits(self) -> int:
        """The number of models before the slow one."""
        return len(self._parts[0].walks[0].cells)

    @property
    def certified(self) -> bool:
        """Whether the rows support the claim, with own thresholds about at least one group; False
        is a refusal, and `refusal` says why.
        """
        return self.refusal is None

    @property
    def thresholds(self) -> Floats | dict[str, Floats]:
        """Common thresholds as an array, one for each exit; own ones as a dictionary of such arrays
        by the names of the groups. +inf where a row never exits.
        """
        self.require_intact()
        if self.group_thresholds == "common":
            return self._parts[0].thresholds
        return {name: group.thresholds for name, group in self.groups.items()}

    def thresholds_for_use(self) -> Floats | dict[str, Floats]:
        """The thresholds of a cascade that runs on this certificate, verified: never exit where it
        is refused.
        """
        self.require_verified()
        return self.thresholds

    def row_rule(self) -> RowRule:
        """The model that answers each row: the slow one, if the group has thresholds of its own and
        is not known.
        """
        thresholds = self.thresholds_for_use()
        if not isinstance(thresholds, dict):
            return RowRule(len(thresholds), Exits(tuple(thresholds.tolist())))
        own = {name: Exits(tuple(values.tolist())) for name, values in thresholds.items()}
        exits = len(next(iter(own.values())).thresholds)
        slow = Exits((np.inf,) * exits)
        return RowRule(exits, None, own, slow, others="go to the slow model")

    @property
    def exit_rates(self) -> Floats:
        """The share of all rows that left at each exit; descriptive."""
        return self._seen("exits") / self.n

    @property
    def observed_error_increase(self) -> float:
        """The accuracy lost on these very rows, all groups together; descriptive. Rows without a
        label count as lost. Where `bounded` is "differ" it is the share of answers that differ.
        """
        return sum(group.lost() for group in self._counted()) / self.n

    @property
    def expected_cost(self) -> float | None:
        """What a row cost on average, by the costs given; descriptive. None if none were given."""
        if self.costs is None:
            return None
        return cascade_paths.total_cost(self._seen("exits"), self.n, self.costs) / self.n

    @property
    def unlabelled(self) -> Unlabelled:
        """How many rows counted as losses because they have no label and predictions differ."""
        missing = [group.unlabelled for group in self._counted()]
        return Unlabelled(
            sum(part.exiting for part in missing), sum(part.in_all for part in missing)
        )

    @property
    def settled(self) -> bool:
        """Whether more labels of the same rows cannot change any threshold."""
        return all(group.settled for group in self._parts)

    @property
    def refused_groups(self) -> tuple[str, ...]:
        """The groups that are not certified, so that their rows never exit early."""
        return tuple(name for name, group in self.groups.items() if not group.certified)

    def claimed(self) -> dict[str, Json]:
        return {
            "kind": self.kind,
            "procedure": procedure.NAMES[self.group_thresholds, self.method][self.bound],
            "assumptions": list(procedure.assumptions(self.bounded, self.group_thresholds)),
            "certified": self.certified,
            "n": self.n,
            "xi": self.xi,
            "delta": self.delta,
            "bounded": self.bounded,
            "scope": self.scope,
            "costs": None if self.costs is None else list(self.costs),
            "groups": [group.claimed(name, self.bound) for name, group in self.groups.items()],
            "descriptive": {
                "exit_rates": self.exit_rates.tolist(),
                "observed_error_increase": self.observed_error_increase,
                "expected_cost": self.expected_cost,
            },
        }

    def counted(self) -> dict[str, Json]:
        claim = self.claimed()
        asked = ("kind", "procedure", "n", "xi", "delta", "bounded", "scope", "costs")
        counts = ("group", "n", "labels", "walks")
        groups = [{key: part[key] for key in counts if key in part} for part in claim["groups"]]
        return {key: claim[key] for key in asked} | {"groups": groups}

    def work(self) -> float:
        intervals = 3 if self.bound == "product" else 1
        walking = sum(
            intervals * walk.cells.size * interval_work(np.array([group.n]))
            for group in self._parts
            for walk in group.walks
        )
        if self.bound != "exact" or self.xi == 0:
            return walking
        # A region is computed once for each number of rows, at the level of each walk.
        shared = self.group_thresholds == "own"
        level = sidak_level(self.delta, len(self.groups)) if shared else self.delta
        if self.method == "paths":
            level = bonferroni_level(level, len(cascade_paths.TILTS))
        sizes = {group.n for group in self._parts if group.n}
        return walking + sum(paired_test_work(n, xi=self.xi, delta=level) for n in sizes)

    def recomputed(self) -> GroupedCascadeCertificate:
        rows = [GroupRows(group.n, group.walks) for group in self._parts]
        asked: Asked = {"xi": self.xi, "delta": self.delta, "bound": self.bound}
        names = tuple(self.groups)
        found = procedure.decide(
            rows,
            self.group_thresholds,
            asked=asked,
            costs=self.costs or unit_costs(self.exits),
            whole=_whole(names, self.scope),
        )
        partial = [group.partial for group in self._parts]
        if self.bounded == "differ":
            found = _in_words(found, rows, self.xi)
            partial = [
                None if part is None else part.ending_at(decision)
                for part, decision in zip(partial, found, strict=True)
            ]
        parts = [
            replace(group, partial=labels, **vars(decision))
            for group, decision, labels in zip(self._parts, found, partial, strict=True)
        ]
        return replace(
            self,
            n=sum(group.n for group in self._counted()),
            groups=dict(zip(names, parts, strict=True)),
            refusal=procedure.refused(names, rows, found),
            loaded=None,
        )

    def is_explained(self) -> bool:
        refusals = (self.refusal, *(group.refusal for group in self._parts))
        return UNEXPLAINED not in refusals

    def _with_reasons(self, again: GroupedCascadeCertificate) -> GroupedCascadeCertificate:
        groups = {
            name: group
            if group.refusal is None
            else replace(group, refusal=again.groups[name].refusal)
            for name, group in self.groups.items()
        }
        return replace(self, groups=groups, refusal=again.refusal)

    @classmethod
    def from_claim(cls, claim: Reader, provenance: Provenance, loaded: Mapping[str, Json]) -> Self:
        known = {
            name: (shared, method, bound)
            for (shared, method), names in procedure.NAMES.items()
            for bound, name in names.items()
        }
        shared, method, bound = known[require(claim.text("procedure"), *known)]
        scope = claim.choice("scope", ("groups", "overlapping-groups"))
        xi, parts = claim.rate("xi"), claim.mappings("groups")
        names = _read_names(claim, parts, scope, shared)
        bounded = read_bounded(claim)
        partial = _has_labels(claim, bounded)
        groups = [CascadeGroup.read(part, bound, method, xi=xi, partial=partial) for part in parts]
        require_no_labels(bounded, [group.partial for group in groups], claim)
        costs = read_costs(claim, len(groups[0].walks[0].cells) + 1)
        found = cls(
            n=claim.positive("n"),
            xi=xi,
            delta=claim.probability("delta"),
            bounded=bounded,
            bound=bound,
            method=method,
            group_thresholds=shared,
            scope=scope,
            costs=costs,
            groups={
                name: replace(group, costs=costs) for name, group in zip(names, groups, strict=True)
            },
            refusal=read_refusal(claim),
            provenance=provenance,
            loaded=loaded,
        )
        found._require_consistent(claim)
        return found

    def words(self) -> str:
        """The claim in words, group by group."""
        head = (
            f"Cascade certificate: {self.exits + 1} models, {self.n:,} rows in {len(self.groups)} "
            f"groups, xi = {exact(self.xi)}, delta = {exact(self.delta)}, bound {self.bound!r}, "
            f"{self.group_thresholds} thresholds"
        )
        described = [
            f"  {name!r}: {self._group_described(group)}" for name, group in self.groups.items()
        ]
        if self.refusal is not None:
            said = described_refusal(self.refusal, "rows of that group", "Never exit early.")
            return "\n".join([head, *said, *described, *self._labels_described(), *self._noted()])
        where = (
            f"at least {_listed(self._parts[0].thresholds)}"
            if self.group_thresholds == "common"
            else "at least the threshold of the row's group"
        )
        rates = ", ".join(f"{rate:.1%}" for rate in self.exit_rates)
        cost, paid = "", self.expected_cost
        if self.costs is not None and paid is not None:
            cost = f", cost {amount(paid)} instead of {amount(self.costs[-1])}"
        held = (
            f"at most {exact(self.xi)} of the answers then differ from the slow model's in each of "
            "the groups."
            if self.bounded == "differ"
            else f"that loses at most {exact(self.xi)} accuracy against the slow model alone in "
            "each of the groups."
        )
        return "\n".join(
            [
                head,
                f"Let a fast model answer where its score is {where}.",
                f"With probability at least {likelihood(self.delta)} over the draw of these rows, "
                f"{held}",
                f"On these rows (descriptive): {rates} exit early{cost}, "
                f"{self._seen_described(self.observed_error_increase)}. By group:",
                *described,
                *self._labels_described(),
                *self._noted(),
            ]
        )

    def _seen_described(self, increase: float) -> str:
        """What was lost on these rows, or how many of their answers differ."""
        if self.bounded == "differ":
            return f"{increase:.4f} of the answers differ"
        most = " at most" if self.unlabelled.exiting else ""
        return f"error increase{most} {increase:+.4f}"

    def _group_described(self, group: CascadeGroup) -> str:
        if not group.certified:
            why = "" if group.refusal is None else f": {group.refusal.reason}"
            needed = None if group.refusal is None else group.refusal.needed
            takes = "" if needed is None else f" It would take about {needed:,}."
            return f"{group.n:,} rows, never exit early{why}{takes}"
        own = "" if self.group_thresholds == "common" else f", from {_listed(group.thresholds)} on"
        rates = ", ".join(f"{rate:.1%}" for rate in group.exit_rates)
        return (
            f"{group.n:,} rows{own}: {rates} exit early, "
            f"{self._seen_described(group.observed_error_increase)}"
        )

    def _labels_described(self) -> list[str]:
        missing = self.unlabelled
        if not missing.in_all or self.bounded == "differ":
            return []
        more = "cannot change the thresholds" if self.settled else "could lower the thresholds"
        return [
            f"Rows without a label count as losses where predictions differ: {missing.exiting:,} "
            f"that exit early, of {missing.in_all:,} in all. More labels {more}."
        ]

    def _noted(self) -> list[str]:
        """What speaks for labels of other rows, or for models in the wrong order."""
        lost = self._seen("only_slow") + self._seen("unlabelled")
        gained = int(self._seen("only_fast").sum())
        return noted(self.provenance.notes, gains=gained, losses=int(lost.sum()))

    @property
    def _parts(self) -> tuple[CascadeGroup, ...]:
        return tuple(self.groups.values())

    def _counted(self) -> tuple[CascadeGroup, ...]:
        """The groups that hold every row once."""
        if self.scope == "overlapping-groups":
            return (self.groups[ALL_ROWS],)
        return self._parts

    def _seen(self, count: Counted) -> Integers:
        counts = [group.seen(count) for group in self._counted()]
        return np.asarray(np.sum(counts, axis=0, dtype=np.int64))

    def _require_consistent(self, claim: Reader) -> None:
        """Raise if the groups cannot be groups of these rows at these thresholds."""
        parts, place = self._parts, claim.place("groups")
        if len({len(group.walks[0].cells) for group in parts}) != 1:
            raise CertificateError(f"{place}: the groups do not have the same number of exits.")
        if len({(group.cells, group.chosen) for group in parts}) != 1 and (
            self.group_thresholds == "common"
        ):
            raise CertificateError(f"{place}: thresholds that are common differ between groups.")
        if sum(group.n for group in self._counted()) > LARGEST_COUNT:
            raise CertificateError(f"{place} hold more than 2**53 rows.")
        if self.scope == "overlapping-groups":
            whole = self.groups[ALL_ROWS]
            for name, group in self.groups.items():
                if not _is_part(group, whole):
                    raise CertificateError(
                        f"{place}: {name!r} has rows that are not among {ALL_ROWS!r}."
                    )
        if self.group_thresholds == "own":
            for group in parts:
                self._require_no_worse(claim, [group])
        else:
            self._require_no_worse(claim, self._counted())

    def _require_no_worse(self, claim: Reader, groups: Sequence[CascadeGroup]) -> None:
        """Raise if the best that more labels could lead to is worse than the claim itself."""
        best = [group.partial for group in groups if group.partial is not None]
        if not best or groups[0].cells is None:
            return
        n, costs = sum(group.n for group in groups), self.costs or unit_costs(self.exits)
        here, there = (
            np.asarray(np.sum(exits, axis=0, dtype=np.int64))
            for exits in ([group.seen("exits") for group in groups], [part.exits for part in best])
        )
        now, then = (cascade_paths.total_cost(exits, n, costs) for exits in (here, there))
        moved = groups[0].settled and not np.array_equal(here, there)
        if best[0].cells is None or then > now or moved:
            raise CertificateError(
                f"{claim.place('groups')}: best_possible is worse than the claim itself, or not "
                "the same where it should be."
            )


def _is_part(group: CascadeGroup, whole: CascadeGroup) -> bool:
    """Whether rows of `group` can all be among those of `whole`, at the same thresholds."""
    names: tuple[Counted, ...] = ("exits", "only_slow", "only_fast", "unlabelled")
    return group.n <= whole.n and all(
        (group.seen(name) <= whole.seen(name)).all() for name in names
    )


def _listed(thresholds: Floats) -> str:
    return ", ".join(repr(value) for value in thresholds.tolist())


def _whole(names: Sequence[str], scope: str) -> int | None:
    return names.index(ALL_ROWS) if scope == "overlapping-groups" else None


def _checked_scope(tally: Tally, group_thresholds: str) -> GroupScope:
    if tally.kind != "cascade" or tally.scope not in ("groups", "overlapping-groups"):
        raise InvalidValueError(
            f"{tally!r} is not a tally of a cascade in groups: count with confidences, "
            "predictions, labels and groups."
        )
    if not is_one_of(group_thresholds, ("common", "own")):
        raise InvalidValueError(
            f"group_thresholds={group_thresholds!r} is not known: expected 'common' or 'own'."
        )
    if group_thresholds == "own" and tally.scope == "overlapping-groups":
        raise InvalidValueError(
            "group_thresholds='own' needs groups that do not overlap, since a row could have "
            "several thresholds: pass one group per row, or use group_thresholds='common'."
        )
    if len(tally.groups) > MOST_GROUPS:
        raise InvalidValueError(
            f"{len(tally.groups):,} groups of {tally.rows:,} rows are more than a certificate may "
            f"have: expected at most {MOST_GROUPS:,}. If the column names each row, name one of "
            "groups."
        )
    if tally.rows == 0:
        raise InvalidValueError("There are no rows to certify a cascade on: pass at least one.")
    return "groups" if tally.scope == "groups" else "overlapping-groups"


def _tables(tally: Tally, exits: int) -> list[Tally]:
    """The tally of each group alone, if it can be one of a cascade and all add up."""
    tables = []
    for place in range(len(tally.groups)):
        inside = tally.cells[:, 0] == place
        counts = tally.counts[inside]
        table = replace(
            tally,
            cells=tally.cells[inside, 1:],
            counts=counts,
            rows=int(counts.sum()),
            scope="top",
            groups=(),
        )
        if table.rows:
            require_tally(
                table,
                "cascade",
                grid_of(exits),
                lowest=0,
                columns="confidences, predictions, labels and groups",
            )
        tables.append(table)
    whole = _whole(tally.groups, tally.scope)
    total = sum(table.rows for table in tables) if whole is None else tables[whole].rows
    if total != tally.rows or any(table.rows > tally.rows for table in tables):
        raise InvalidValueError(
            f"{tally!r} does not add up: its groups are of {total:,} rows. Count again."
        )
    return tables


def _read_names(
    claim: Reader, parts: Sequence[Reader], scope: GroupScope, shared: Shared
) -> tuple[str, ...]:
    names = tuple(part.text("group") for part in parts)
    if not names or names != in_order(set(names)) or len(names) > MOST_GROUPS:
        raise CertificateError(
            f"{claim.place('groups')}: expected 1 to {MOST_GROUPS} groups, in order, each once."
        )
    if scope == "overlapping-groups" and (ALL_ROWS not in names or shared == "own"):
        raise CertificateError(
            f"{claim.place('groups')}: groups that overlap have common thresholds, and one of them "
            f"is {ALL_ROWS!r}."
        )
    return names


def _in_words(
    found: Sequence[PathsDecision], rows: Sequence[GroupRows], xi: float
) -> tuple[PathsDecision, ...]:
    """The decisions about groups, their refusals in words about answers that differ."""
    return tuple(
        cascade_differ.in_words(decision, group.n, xi)
        for decision, group in zip(found, rows, strict=True)
    )


def _has_labels(claim: Reader, bounded: Claim) -> bool:
    """Whether the claim says how many labels there are, which it does for all groups or none."""
    having = ["labels" in part for part in claim.raw("groups")]
    if not any(having):
        return False
    missing = bounded == "differ" or any(
        part.mapping("labels").count("unlabelled") for part in claim.mappings("groups")
    )
    if not (all(having) and missing):
        raise CertificateError(
            f"{claim.place('groups')}: expected labels for all groups, with a row that has none, "
            "or for no group."
        )
    return True
