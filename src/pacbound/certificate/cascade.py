"""The cascade certificate: the thresholds at which fast models may answer for the slow one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Literal, Self, TypedDict, get_args

import numpy as np
from numpy.typing import NDArray

from pacbound.certificate.cascade_fronts import check_front, claimed_sequence, read_sequence
from pacbound.certificate.cascade_labels import (
    BestPossible,
    PartialLabels,
    Unlabelled,
    counts_at,
    judged_labels,
    noted,
    thresholds_of,
)
from pacbound.certificate.cascade_walks import claimed_walks, read_cells, read_walks
from pacbound.certificate.document import (
    Certificate,
    Provenance,
    amount,
    exact,
    interval_work,
    likelihood,
    sealed,
)
from pacbound.certificate.draws import one_of_many
from pacbound.certificate.refusal import described_refusal, read_refusal
from pacbound.certificate.tally_checks import require_is_tally, require_tally
from pacbound.documents import Json, Reader, encode_float
from pacbound.errors import CertificateError, InvalidValueError
from pacbound.procedures import (
    cascade,
    cascade_differ,
    cascade_front,
    cascade_greedy,
    cascade_partial,
    cascade_paths,
)
from pacbound.procedures.cascade import Bound, CascadeDecision, Walk
from pacbound.procedures.cascade_differ import Claim, checked_claim, refuse_labels
from pacbound.procedures.cascade_front import Declared
from pacbound.procedures.cascade_paths import PathsDecision
from pacbound.procedures.joint_walk import JointWalk
from pacbound.procedures.refusal import Refusal
from pacbound.procedures.registry import require
from pacbound.stats.arguments import claimed_delta, is_one_of, tolerated_rate
from pacbound.stats.sequences import bonferroni_level
from pacbound.stats.trinomial import paired_test_work
from pacbound.tally.questions.cascade import grid_of, with_unlabelled
from pacbound.tally.row_rules import Exits, RowRule
from pacbound.tally.tally import Tally

Floats = NDArray[np.float64]
Method = Literal["walk", "paths", "greedy", "front"]

NAMES: dict[Method, dict[Bound, str]] = {
    "walk": cascade.NAMES,
    "paths": cascade_paths.NAMES,
    "greedy": cascade_greedy.NAMES,
    "front": cascade_front.NAMES,
}
PARTIAL_NAMES: dict[Method, dict[Bound, str]] = {
    "walk": cascade_partial.NAMES,
    "paths": cascade_partial.PATHS_NAMES,
    "greedy": {},
    "front": {},
}
"""The procedures of samples in which a label is missing where predictions differ."""


class _Asked(TypedDict):
    xi: float
    delta: float
    bound: Bound


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class CascadeCertificate(Certificate):
    """With probability at least 1 - `delta` a cascade at `thresholds` loses at most `xi` accuracy
    against its slow model; or, where `bounded` is "differ", at most `xi` of its answers differ from
    the slow model's.

    What is certified is `xi`. Exit rates, costs and the observed error increase are descriptive:
    they were seen at thresholds that were chosen from the same rows. The probability is over the
    draw of the rows, which must be independent draws from the distribution of use.
    `certify_cascade` makes such a certificate, and `load_certificate` reads one.

    Labels may be missing: rows without one in which predictions differ counted as losses, and
    `unlabelled` says how many. `best_possible` says what more labels could gain. The claim is about
    the loss also without a single label: more may come, and `delta` covers all that is claimed from
    then on. That few answers differ is a claim of its own, which is declared beforehand and takes
    no labels.

    A refusal has `certified` False and the thresholds +inf: never exit early. The method "greedy"
    carries no proof, so it is never certified even though it names thresholds.

    Attributes
    ----------
    n : int
        The number of rows that were counted.
    xi : float
        The accuracy that may be lost, or the share of answers that may differ.
    delta : float
        The chance that more is lost, or that more differ.
    bounded : str
        What `xi` bounds: "loss", or "differ".
    bound : str
        "exact", "pair" or "product".
    method : str
        "walk" for two models; "paths" or "greedy" for more; "front" for a sequence of thresholds
        that a fold declared (`design_cascade`).
    costs : tuple of float or None
        What a row costs that is answered by each model, the models before it included.
    cells : tuple of int or None
        The thresholds on their grid; None if there are none.
    chosen : int
        Which of the walks has these thresholds.
    walks : tuple of JointWalk
        The counts that the decision follows from, wherever they change as the thresholds fall.
    refusal : Refusal or None
        Why nothing is certified, and about how many rows it would take; None if it is.
    partial : PartialLabels or None
        How many rows in which predictions differ have a label, and what more labels could gain;
        None if all have one. Where `bounded` is "differ" none has, and labels gain nothing.
    declared : Declared or None
        What a fold declared, with the models that it chose; None for other methods.
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
    >>> labels = np.ones(1000, dtype=int)
    >>> certificate = certify_cascade(confidence, answers, labels, xi=0.02, delta=0.01)
    >>> certificate.certified, certificate.thresholds.round(2), certificate.exit_rates
    (True, array([0.4]), array([0.75]))
    """

    kind: ClassVar[str] = "cascade"
    n: int
    xi: float
    delta: float
    bound: Bound
    method: Method
    costs: tuple[float, ...] | None
    cells: tuple[int, ...] | None
    chosen: int
    walks: tuple[JointWalk, ...]
    refusal: Refusal | None
    partial: PartialLabels | None = None
    declared: Declared | None = None
    bounded: Claim = "loss"

    def __post_init__(self) -> None:
        object.__setattr__(self, "walks", tuple(sealed_walk(walk) for walk in self.walks))
        if self.declared is not None:
            own = replace(self.declared, cells=sealed(self.declared.cells))
            object.__setattr__(self, "declared", own)

    @classmethod
    def from_tally(
        cls,
        tally: Tally,
        *,
        xi: float,
        delta: float,
        claim: Claim = "loss",
        bound: Bound = "exact",
        method: Literal["paths", "greedy"] = "paths",
        costs: tuple[float, ...] | None = None,
        columns: Mapping[str, str] | None = None,
    ) -> Self:
        """Certify a cascade tally; `certify_cascade` does this for rows and tallies alike.

        Parameters
        ----------
        tally
            A cascade tally of at least one row.
        xi, delta, claim, bound, method, costs
            As in `certify_cascade`. With two models there is one walk, whatever the method.
        columns
            The names of the columns that were counted, for the provenance.

        Returns
        -------
        CascadeCertificate
            The thresholds. A refusal has `certified` False and the thresholds +inf (never exit).

        Raises
        ------
        InvalidValueError
            If the tally is not one of a cascade, has no rows, or does not add up; if an option
            cannot be what it should be; if a greedy choice is asked for and labels are missing; if
            there are labels and the claim is that answers differ.

        Examples
        --------
        >>> from pacbound import Tally
        >>> rows = {"confidences": [0.9] * 500, "predictions": [[1, 1]] * 500, "labels": [1] * 500}
        >>> tally = Tally.from_arrays(**rows)
        >>> CascadeCertificate.from_tally(tally, xi=0.02, delta=0.01).certified
        True
        """
        claim = checked_claim(claim)
        _check(tally, bound, method, xi, claim)
        notes = judged_labels(tally)
        exits, n = tally.cells.shape[1], tally.rows
        rate, level = tolerated_rate(xi), claimed_delta(delta)
        costs = None if costs is None else cascade_paths.checked_costs(costs, exits + 1)
        asked: _Asked = {"xi": rate, "delta": level, "bound": bound}
        counts = with_unlabelled(tally.counts, exits)
        refuse_labels(claim, int(counts[:, 1 : 4**exits].sum()))
        # What labels could gain is asked only where they may come.
        unlabelled = claim == "loss" and bool(counts[:, 4**exits :].any())
        best: PathsDecision | None = None
        if exits == 1:
            walk = Walk.from_counts(tally.cells[:, 0], counts).judged_by(bound)
            decision = _of_one_walk(cascade.decide(walk, n, **asked))
            if unlabelled:
                best = _of_one_walk(cascade_partial.best_possible(walk, n, **asked))
        elif method == "greedy":
            decision = cascade_greedy.decide(tally.cells, counts, n, **asked)
        else:
            paid = costs or unit_costs(exits)
            walks = cascade_paths.walks_from_counts(tally.cells, counts, bound)
            decision = cascade_paths.decide(walks, n, **asked, costs=paid)
            if unlabelled:
                best = cascade_partial.best_possible_paths(walks, n, **asked, costs=paid)
        if claim == "differ":
            best = decision = cascade_differ.in_words(decision, n, rate)
        return cls(
            n=n,
            xi=rate,
            delta=level,
            bounded=claim,
            bound=bound,
            method="walk" if exits == 1 else method,
            costs=costs,
            partial=None if best is None else PartialLabels.of(counts, best),
            provenance=Provenance.of(tally, columns, notes),
            draw=tally.drawn,
            **vars(decision),
        )

    @classmethod
    def from_front(
        cls,
        tally: Tally,
        declared: Declared,
        *,
        xi: float,
        delta: float,
        bound: Bound = "exact",
        columns: Mapping[str, str] | None = None,
    ) -> Self:
        """Certify a cascade tally along a sequence of thresholds that other rows declared;
        `design_cascade` chooses one and does this.

        Parameters
        ----------
        tally
            A cascade tally of at least one row, none of which had a part in `declared`.
        declared
            The models, their own costs and the sequence of thresholds.
        xi, delta, bound
            As in `certify_cascade`.
        columns
            The names of the columns that were counted, for the provenance.

        Returns
        -------
        CascadeCertificate
            The last thresholds before the first failure. A refusal has `certified` False and the
            thresholds +inf (never exit).

        Raises
        ------
        InvalidValueError
            If the tally is not one of a cascade of so many exits, has no rows, does not add up, or
            has rows without a label in which predictions differ.

        Examples
        --------
        >>> import numpy as np
        >>> from pacbound import Tally
        >>> from pacbound.procedures.cascade_front import Declared
        >>> rows = {"confidences": [0.9] * 500, "predictions": [[1, 1]] * 500, "labels": [1] * 500}
        >>> declared = Declared((0, 1), (1.0, 9.0), 0.2, 0, 100, np.array([[60000, 50000]]))
        >>> certificate = CascadeCertificate.from_front(
        ...     Tally.from_arrays(**rows), declared, xi=0.02, delta=0.01
        ... )
        >>> certificate.certified, certificate.thresholds * 65536, certificate.expected_cost
        (True, array([50000.]), 1.0)
        """
        _check(tally, bound, "paths", xi, "loss")
        notes = judged_labels(tally)
        exits = tally.cells.shape[1]
        if exits != len(declared.cells):
            raise InvalidValueError(
                f"{tally!r} has {exits} exits, and the declared sequence {len(declared.cells)}: "
                "count the models that it is for."
            )
        if tally.counts[:, 4**exits :].any():
            raise InvalidValueError(
                f"{tally!r} has rows without a label where predictions differ, and a declared "
                "sequence takes none: label them."
            )
        asked: _Asked = {
            "xi": tolerated_rate(xi),
            "delta": claimed_delta(delta),
            "bound": bound,
        }
        counts = with_unlabelled(tally.counts, exits)
        walk = cascade_front.walk_along(declared.cells, tally.cells, counts, bound)
        decision = cascade_front.decide(walk, declared, tally.rows, **asked)
        return cls(
            n=tally.rows,
            method="front",
            costs=cascade_paths.checked_costs(declared.running_costs, len(declared.costs)),
            declared=declared,
            provenance=Provenance.of(tally, columns, notes),
            draw=tally.drawn,
            **asked,
            **vars(decision),
        )

    @property
    def exits(self) -> int:
        """The number of models before the slow one."""
        return len(self.walks[0].cells)

    @property
    def certified(self) -> bool:
        """Whether the rows support the claim; False is a refusal, and `refusal` says why."""
        return self.refusal is None

    @property
    def thresholds(self) -> Floats:
        """A row exits at the first model whose float64 score is at or above its threshold; +inf
        where it never does.
        """
        self.require_intact()
        return self._thresholds()

    def thresholds_for_use(self) -> Floats:
        """The thresholds of a cascade that runs on this certificate, verified: never exit where it
        is refused, an error without a proof.
        """
        self.require_verified()
        if self.refusal is not None and self.cells is not None:
            raise InvalidValueError(
                f"This certificate is not certified: {self.refusal.reason} "
                "To run without a guarantee pass certificate.thresholds."
            )
        return self.thresholds

    def row_rule(self) -> RowRule:
        """The model that answers each row."""
        thresholds = tuple(self.thresholds_for_use().tolist())
        return RowRule(len(thresholds), Exits(thresholds))

    @property
    def exit_counts(self) -> NDArray[np.int64]:
        """How many of the rows left at each exit; descriptive."""
        return self._seen("exits")

    @property
    def exit_rates(self) -> Floats:
        """The share of the rows that left at each exit; descriptive."""
        return self.exit_counts / self.n

    @property
    def observed_error_increase(self) -> float:
        """The accuracy lost on these very rows; descriptive, and not an unbiased estimate. Rows
        without a label count as lost, so with them it is the most that can have been lost. Where
        `bounded` is "differ" it is the share of answers that differ.
        """
        lost = self._seen("only_slow") + self._seen("unlabelled")
        return float((lost - self._seen("only_fast")).sum() / self.n)

    @property
    def expected_cost(self) -> float | None:
        """What a row cost on average, by the costs given; descriptive. None if none were given."""
        return self._cost(self.exit_counts.tolist())

    @property
    def costs_in_use(self) -> tuple[float, ...] | None:
        """What a row costs that each model answers at these thresholds, the models before it
        included; without those that are never asked, where their own costs are known.
        """
        if self.declared is None:
            return self.costs
        never = (cascade_front.never_cell(self.exits),) * self.exits
        return self.declared.costs_at(self.cells or never)

    @property
    def unlabelled(self) -> Unlabelled:
        """How many rows counted as losses because they have no label and predictions differ."""
        in_all = 0 if self.partial is None else self.partial.unlabelled
        return Unlabelled(int(self._seen("unlabelled").sum()), in_all)

    @property
    def best_possible(self) -> BestPossible:
        """What more labels of the same rows could lead to at best; descriptive. The certificate's
        own thresholds if no label is missing where it matters.
        """
        if self.partial is None:
            return BestPossible(self._thresholds(), self.exit_rates, self.expected_cost)
        rates = np.array(self.partial.exits) / self.n
        return BestPossible(self.partial.thresholds, rates, self._cost(self.partial.exits))

    @property
    def settled(self) -> bool:
        """Whether more labels of the same rows cannot change the thresholds."""
        if self.partial is None or self.partial.cells is None:
            return True
        best = self.partial.cells, self.partial.chosen
        return best == (self.cells, self.chosen)

    def draw_lines(self) -> list[str]:
        fold = [] if self.declared is None else [self.declared.seed]
        return [
            *super().draw_lines(),
            *(one_of_many(f"Seed {seed} of the fold", "seed", "fold") for seed in fold),
        ]

    def claimed(self) -> dict[str, Json]:
        partial = self.partial
        names = NAMES if partial is None else PARTIAL_NAMES
        assumptions = (cascade if partial is None else cascade_partial).ASSUMPTIONS
        if self.declared is not None:
            assumptions = cascade_front.ASSUMPTIONS
        if self.bounded == "differ":
            assumptions = cascade_differ.ASSUMPTIONS
        labels: dict[str, Json] = {} if partial is None else {"labels": partial.claimed()}
        best: dict[str, Json] = (
            {}
            if partial is None
            else {"best_possible": partial.claimed_best(self._cost(partial.exits))}
        )
        return {
            "kind": self.kind,
            "procedure": names[self.method][self.bound],
            "assumptions": list(assumptions),
            "certified": self.certified,
            "n": self.n,
            "xi": self.xi,
            "delta": self.delta,
            "bounded": self.bounded,
            "costs": None if self.costs is None else list(self.costs),
            "thresholds": [encode_float(value) for value in self._thresholds().tolist()],
            "chosen": self.chosen,
            **labels,
            "walks": claimed_walks(self.walks, self.bound, partial=partial is not None),
            "descriptive": {
                "exit_rates": self.exit_rates.tolist(),
                "observed_error_increase": self.observed_error_increase,
                "expected_cost": self.expected_cost,
                **best,
            },
            **claimed_sequence(self.declared),
        }

    def counted(self) -> dict[str, Json]:
        claim = self.claimed()
        asked = ("kind", "procedure", "n", "xi", "delta", "bounded", "costs")
        counts = ("labels", "walks", "declared")
        return {key: claim[key] for key in (*asked, *counts) if key in claim}

    def work(self) -> float:
        steps = sum(walk.cells.size for walk in self.walks)
        intervals = 3 if self.bound == "product" else 1
        walking = intervals * steps * interval_work(np.array([self.n]))
        if self.bound != "exact" or self.xi == 0:
            return walking
        # The region is computed once for all walks, at the level of each.
        tests = {"paths": len(cascade_paths.TILTS), "greedy": self.exits}
        level = bonferroni_level(self.delta, tests.get(self.method, 1))
        return walking + paired_test_work(self.n, xi=self.xi, delta=level)

    def recomputed(self) -> CascadeCertificate:
        asked: _Asked = {"xi": self.xi, "delta": self.delta, "bound": self.bound}
        if self.method == "walk":
            walk = self.walks[0].of_exit(0)
            decision = _of_one_walk(cascade.decide(walk, self.n, **asked))
        elif self.declared is not None:
            decision = cascade_front.decide(self.walks[0], self.declared, self.n, **asked)
        elif self.method == "greedy":
            decision = cascade_greedy.decide_again(self.walks, self.n, **asked)
        else:
            costs = self.costs or unit_costs(self.exits)
            decision = cascade_paths.decide(self.walks, self.n, **asked, costs=costs)
        partial = self.partial
        if self.bounded == "differ" and partial is not None:
            decision = cascade_differ.in_words(decision, self.n, self.xi)
            partial = partial.ending_at(decision)
        return replace(self, loaded=None, partial=partial, **vars(decision))

    @classmethod
    def from_claim(cls, claim: Reader, provenance: Provenance, loaded: Mapping[str, Json]) -> Self:
        known = {
            name: (method, bound, partial)
            for partial, table in ((False, NAMES), (True, PARTIAL_NAMES))
            for method, names in table.items()
            for bound, name in names.items()
        }
        method, bound, partial = known[require(claim.text("procedure"), *known)]
        n, xi = claim.positive("n"), claim.rate("xi")
        walks = read_walks(claim, n, bound, method, xi=xi, partial=partial)
        costs = read_costs(claim, len(walks[0].cells) + 1)
        declared = read_sequence(claim) if method == "front" else None
        if declared is not None:
            check_front(walks[0], declared, claim.place("walks"))
            costs = declared.running_costs
        chosen = claim.count("chosen")
        if chosen >= len(walks):
            raise CertificateError(
                f"{claim.place('chosen')} is {chosen}: there are {len(walks)} walks."
            )
        found = cls(
            n=n,
            xi=xi,
            delta=claim.probability("delta"),
            bounded=read_bounded(claim),
            bound=bound,
            method=method,
            costs=costs,
            cells=read_cells(claim, walks[chosen], method),
            chosen=chosen,
            walks=walks,
            refusal=read_refusal(claim),
            partial=PartialLabels.read(claim, n, walks) if partial else None,
            declared=declared,
            provenance=provenance,
            loaded=loaded,
        )
        require_no_labels(found.bounded, [found.partial], claim)
        if found.bounded == "loss" and found.partial is not None and not found.partial.unlabelled:
            raise CertificateError(
                f"{claim.place('labels')}: expected rows without a label, or no such part."
            )
        found._require_no_worse(claim)
        return found

    def words(self) -> str:
        """The claim in words."""
        head = (
            f"Cascade certificate: {self.exits + 1} models, {self.n:,} rows, xi = "
            f"{exact(self.xi)}, delta = {exact(self.delta)}, bound {self.bound!r}"
        )
        if self.cells is None:
            refused = described_refusal(self.refusal, "rows", "Never exit early.")
            return "\n".join([head, *refused, *self._labels_described(), *self._noted()])
        limits = ", ".join(repr(value) for value in self._thresholds().tolist())
        if self.refusal is not None:
            return "\n".join(
                [
                    head,
                    f"NOT CERTIFIED: {self.refusal.reason}",
                    f"Thresholds: {limits}.",
                    self._described(),
                    *self._noted(),
                ]
            )
        held = (
            f"at most {exact(self.xi)} of all answers then differ from the slow model's."
            if self.bounded == "differ"
            else f"that loses at most {exact(self.xi)} accuracy against the slow model alone."
        )
        claim = (
            f"Let a fast model answer where its score is at least {limits}.\nWith probability at "
            f"least {likelihood(self.delta)} over the draw of these rows, {held}"
        )
        described = [*self._described_fold(), self._described(), *self._labels_described()]
        return "\n".join([head, claim, *described, *self._noted()])

    def _described_fold(self) -> list[str]:
        """The line of a summary that says which models these are, where a fold chose them."""
        if self.declared is None:
            return []
        *fast, slow = self.declared.models
        return [
            f"A fold of {self.declared.rows:,} other rows chose the models {fast} before "
            f"{slow} (counted from 0), and the order in which thresholds were tried."
        ]

    def _described(self) -> str:
        rates = ", ".join(f"{rate:.1%}" for rate in self.exit_rates)
        cost, paid = "", self.expected_cost
        if self.costs is not None and paid is not None:
            alone = self.costs[-1] if self.declared is None else self.declared.costs[-1]
            cost = f", cost {amount(paid)} instead of {amount(alone)}"
        if self.bounded == "differ":
            seen = f"{self.observed_error_increase:.4f} of the answers differ"
        else:
            most = " at most" if self.unlabelled.exiting else ""
            seen = f"error increase{most} {self.observed_error_increase:+.4f}"
        return f"On these rows (descriptive): {rates} exit early{cost}, {seen}.{self._remark()}"

    def _labels_described(self) -> list[str]:
        """How many rows without a label counted as losses, and what labelling them could gain."""
        if self.partial is None or self.bounded == "differ":
            return []
        missing, best = self.unlabelled, self.best_possible
        said = (
            f"Rows without a label count as losses where predictions differ: {missing.exiting:,} "
            f"that exit early, of {missing.in_all:,} in all."
        )
        if self.settled:
            return [f"{said} More labels cannot change the thresholds."]
        limits = ", ".join(repr(value) for value in best.thresholds.tolist())
        rates = ", ".join(f"{rate:.1%}" for rate in best.exit_rates)
        cost = "" if best.expected_cost is None else f", cost {amount(best.expected_cost)}"
        return [
            said,
            f"With labels for them the thresholds could become {limits} at best (descriptive): "
            f"{rates} exit early{cost}.",
        ]

    def _noted(self) -> list[str]:
        """What speaks for labels of other rows, or for models in the wrong order."""
        lost = self._seen("only_slow") + self._seen("unlabelled")
        gained = int(self._seen("only_fast").sum())
        return noted(self.provenance.notes, gains=gained, losses=int(lost.sum()))

    def _remark(self) -> str:
        """What the thresholds mean where they are at an end of their range."""
        if not self.exit_rates.any():
            return " Nothing exits early there: certified, but of no use."
        if self.certified and (self._thresholds() == 0).any():
            return " Every score is at least 0: the slow model is never needed."
        return ""

    def _thresholds(self) -> Floats:
        return thresholds_of(self.cells, self.exits)

    def _seen(
        self, count: Literal["exits", "only_slow", "only_fast", "unlabelled"]
    ) -> NDArray[np.int64]:
        """The counts of each exit at the thresholds, none if the claim is refused."""
        walk = self.walks[self.chosen]
        return counts_at(walk, self.cells, getattr(walk, count))

    def _cost(self, exits: Sequence[int]) -> float | None:
        """What a row costs on average if `exits` rows take each exit; None without costs."""
        costs = self.costs_in_use
        if costs is None:
            return None
        return cascade_paths.total_cost(np.array(exits), self.n, costs) / self.n

    def _require_no_worse(self, claim: Reader) -> None:
        """Raise if the best that more labels could lead to is worse than the claim itself."""
        partial = self.partial
        if partial is None or self.cells is None:
            return
        here, there = self._seen("exits"), np.array(partial.exits)
        costs = self.costs or unit_costs(self.exits)
        best, now = (cascade_paths.total_cost(exits, self.n, costs) for exits in (there, here))
        moved = self.settled and not np.array_equal(here, there)
        if partial.cells is None or best > now or moved:
            raise CertificateError(
                f"{claim.place('descriptive')}.best_possible: worse than the claim itself, or not "
                "the same where it should be."
            )


def sealed_walk(walk: JointWalk) -> JointWalk:
    """`walk` as a certificate may hand it out: nobody can write into its counts."""
    return JointWalk(**{name: sealed(column) for name, column in vars(walk).items()})


def _of_one_walk(decision: CascadeDecision) -> PathsDecision:
    cells = None if decision.cell is None else (decision.cell,)
    return PathsDecision(cells, 0, (JointWalk.of_two_models(decision.walk),), decision.refusal)


def read_costs(claim: Reader, models: int) -> tuple[float, ...] | None:
    """The costs of a claim, if they rise, one for each model; None if it has none."""
    if claim.raw("costs") is None:
        return None
    try:
        return cascade_paths.checked_costs(claim.numbers("costs"), models)
    except InvalidValueError as error:
        raise CertificateError(f"{claim.place('costs')}: {error}") from None


def unit_costs(exits: int) -> tuple[float, ...]:
    """What stands for the costs of more than two models where none are given: each model as much
    as the first.
    """
    return tuple(float(place) for place in range(1, exits + 2))


def read_bounded(claim: Reader) -> Claim:
    """What the xi of a claim bounds."""
    found: Claim = claim.choice("bounded", get_args(Claim))
    return found


def require_no_labels(bounded: Claim, parts: Sequence[PartialLabels | None], claim: Reader) -> None:
    """Raise if a claim that answers differ has labels, or does not say how many rows differ."""
    if bounded == "differ" and any(part is None or part.labelled for part in parts):
        raise CertificateError(
            f"{claim.place('bounded')}: the claim is that answers differ, which takes no labels, "
            "and this certificate was made with some."
        )


def _check(tally: Tally, bound: str, method: str, xi: float, claim: Claim) -> None:
    require_is_tally(tally)
    if tally.scope != "top":
        raise InvalidValueError(
            f"{tally!r} was counted in {len(tally.groups)} groups: use certify_cascade, or "
            "GroupedCascadeCertificate.from_tally, which certify each of them."
        )
    grid = grid_of(tally.cells.shape[1])
    require_tally(tally, "cascade", grid, lowest=0, columns="confidences, predictions and labels")
    require_bound(bound)
    if not is_one_of(method, ("paths", "greedy")):
        raise InvalidValueError(
            f"method={method!r} is not known: expected 'paths' or 'greedy' (the paper's, without "
            "proof)."
        )
    exits = tally.cells.shape[1]
    if method == "greedy" and exits > 1 and claim == "differ":
        raise InvalidValueError(
            "method='greedy' needs labels, and claim='differ' takes none: use method='paths'."
        )
    if method == "greedy" and exits > 1 and tally.counts[:, 4**exits :].any():
        raise InvalidValueError(
            "method='greedy' takes no rows without a label where predictions differ: use "
            "method='paths', or label them."
        )
    if method == "greedy" and xi == 0 and tally.cells.shape[1] > 1:
        raise InvalidValueError(
            "method='greedy' cannot test xi=0: use method='paths', or allow a small loss."
        )


def require_bound(bound: str) -> None:
    """Raise unless there is such a bound."""
    if not is_one_of(bound, cascade.NAMES):
        raise InvalidValueError(
            f"bound={bound!r} is not known: expected 'exact', 'pair' or 'product'."
        )
