"""The claim about a cascade: what it is counted from, which procedure decides, what is assumed.

`counted` turns a tally into walks, one table for each group, or one for all rows; `decided` walks
them. A certificate keeps each walk down to its first failure, and deciding those again comes to the
same end.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from pacbound.claims.assumptions import ON_LEVELS
from pacbound.claims.cascade import next_labels, words
from pacbound.claims.cascade.certificate import (
    CascadeCertificate,
    sealed_walk,
    thresholds_of,
    unit_costs,
)
from pacbound.claims.cascade.fields import Costs, cascade_fields, require_fitting
from pacbound.claims.cascade.watch import watch_of_cascade
from pacbound.claims.certificate import Certificate
from pacbound.claims.claim import (
    Cells,
    Claim,
    Procedure,
    ToLabel,
    Values,
    interval_work,
    require_tally,
    sealed,
)
from pacbound.claims.provenance import Provenance
from pacbound.claims.tables import (
    depend,
    recounted,
    small_groups_conflict,
    too_many_groups,
)
from pacbound.documents import Json, Reader, encode_float, printable
from pacbound.errors import InvalidTypeError, InvalidValueError
from pacbound.fields import Fields
from pacbound.figure import Figure
from pacbound.forms import DELTA, SMALL_GROUPS, Ask, Choice, xi_ask
from pacbound.measure import Measure, Sample
from pacbound.procedures import cascade
from pacbound.procedures.cascade import (
    COMMON,
    DECLARED,
    OWN,
    PATHS,
    SHARED,
    Asked,
    CascadeDecision,
    Declared,
    GroupCounts,
    checked_costs,
    walks_from_counts,
)
from pacbound.procedures.joint_walk import top_of
from pacbound.says import Says
from pacbound.stats.arguments import exact_sum
from pacbound.stats.paired import labels_needed_by_walk, paired_test_work
from pacbound.tally.draws import refuse_fresh_seed
from pacbound.tally.questions.cascade import (
    ALL_ROWS,
    CASCADE,
    are_graded,
    counts_at_best,
    exits_of,
    grid_of,
    labelled_rows,
    unlabelled_rows,
    with_unlabelled,
)
from pacbound.tally.row_ids import GRADE, LABEL, RowIds, returned
from pacbound.tally.row_rules import Exits, RowRule
from pacbound.tally.tally import Tally, require_is_tally

Integers = NDArray[np.int64]

# Steps of all walks of all groups, times exits: about 20 MB as JSON, and a certificate of more than
# 32 MB is not read.
MOST_STEPS = 2**20

# The largest exact test of a cascade that a plan waits for, about a third of a second.
EXACT_WORK: Final = 0.03

_NEVER_DIFFER: Final = "its models never differ; draw a larger one"

_ROWS: Final = (
    "independent-rows",
    "untouched-rows",
    "asked-beforehand",
    "rows-unseen",
    "every-row-counts",
)
_LABELS: Final = ("labels-may-be-missing", "labels-as-they-are")
_COMPLETE: Final = ("labels-where-models-differ",)
# When a row exits, by how groups have their thresholds.
_EXITS: Final[Mapping[str | None, tuple[str, ...]]] = {
    None: ("exits-at-threshold",),
    "common": ("other-groups-open", "exits-at-threshold"),
    "own": ("exits-at-own-threshold",),
}


def _assumes(
    shared: str | None, labels: tuple[str, ...] = _LABELS, about: str = "net-loss"
) -> tuple[str, ...]:
    where = about if shared is None else f"{about}-in-groups"
    return (*_ROWS, *labels, where, *_EXITS[shared])


def _differ(shared: str | None) -> tuple[str, ...]:
    """What is assumed where the claim is that few answers differ."""
    return _assumes(shared, ("differ-beforehand",), "answers-that-differ")


class CascadeClaim(Claim[CascadeCertificate]):
    """A cascade loses at most xi accuracy against its slow model, or few of its answers differ, in
    every group if there are groups.
    """

    kind = "cascade"
    command = "cascade"
    help = (
        "Certify the thresholds at which fast models may answer for the slow one, losing at most "
        "xi accuracy."
    )
    question = CASCADE
    certificate = CascadeCertificate
    asks_for_labels = True
    asks = (
        xi_ask("The accuracy that may be lost: 0.02"),
        DELTA,
        Ask(
            "claim",
            Choice(("loss", "differ")),
            "What xi bounds: the accuracy lost; or differ, the share of answers that differ from "
            "the slow model's, decided beforehand and without labels.",
            "loss",
        ),
        Ask(
            "costs",
            Costs(),
            "What a row costs in all that each model answers, those before it included: 1,10",
            None,
        ),
        Ask(
            "group_thresholds",
            Choice(("common", "own")),
            "With groups: common to all, if left out, or own ones of each.",
            None,
        ),
        SMALL_GROUPS,
    )
    procedures: Mapping[str, Procedure] = {
        PATHS: Procedure(PATHS, _assumes(None)),
        COMMON: Procedure(COMMON, _assumes("common")),
        OWN: Procedure(OWN, _assumes("own")),
        DECLARED: Procedure(DECLARED, (*_assumes(None, _COMPLETE), "declared-by-a-fold")),
    }
    may_assume = (ON_LEVELS, *_COMPLETE, *(one for shared in _EXITS for one in _differ(shared)))

    def require_fitting(self, columns: Values, asked: Values, rows: Values) -> None:
        """Raise if labels are passed for the claim that answers differ."""
        named = {name: columns.get(name) for name in ("label", "quality", "preferred")}
        named["answers"] = rows.get("answers")
        found = next((name for name, value in named.items() if value is not None), None)
        if asked["claim"] == "differ" and found is not None:
            raise InvalidValueError(
                f"claim='differ' takes no labels, and {found} was passed: with labels claim the "
                "loss (claim='loss'), which they say more about. Leave them out to claim that few "
                "answers differ, if that was decided before the answers were compared."
            )

    def fields(self, procedure: Procedure) -> Fields:
        """The fields of a document of the procedure."""
        return cascade_fields(self, procedure)

    # ---- counting

    def counted(
        self, evidence: Tally, wishes: Values, declared: Declared | None = None
    ) -> dict[str, Any]:
        """The walks of each group, whole, and what was asked for; along a sequence of thresholds,
        if other rows `declared` one.
        """
        exits = self._require_tally(evidence, wishes)
        names: Sequence[str | None] = evidence.groups or (None,)
        tables = _tables(evidence, exits)
        small = _small(names, tables, exits, wishes)
        if small:
            large = [place for place, name in enumerate(names) if name not in small]
            names = [names[place] for place in large]
            tables = [tables[place] for place in large]
        counts = [with_unlabelled(table.counts, exits) for table in tables]
        labels = [_label_counts(part, exits) for part in counts]
        differ = wishes["claim"] == "differ"
        if differ:
            _refuse_labels(labels, evidence.scope)
        missing = any(part["unlabelled"] for part in labels)
        if declared is not None:
            declared = _fitting(declared, evidence, exits, missing=missing)
        if evidence.seed is not None and missing and not differ:
            refuse_fresh_seed(evidence.drawn, evidence.graded)
        shared = None if evidence.scope == "top" else wishes["group_thresholds"] or "common"
        procedure = PATHS if shared is None else COMMON if shared == "common" else OWN
        leaves = "leave-out" if small else "refuse"
        asked = {**wishes, "group_thresholds": shared, "small_groups": leaves}
        rows = [
            GroupCounts(table.rows, walks_from_counts(table.cells, part, declared))
            for table, part in zip(tables, counts, strict=True)
        ]
        kept = {
            **self.counted_values(DECLARED if declared else procedure, evidence, asked),
            "left_out": small or None,
            **({"declared": declared} if declared else {}),
            "tables": [
                {
                    "group": name,
                    "n": group.n,
                    "labels": part if missing or differ else None,
                    "walks": group.walks,
                    "best_possible": None,
                }
                for name, part, group in zip(names, labels, rows, strict=True)
            ],
        }
        if not missing or differ:
            return kept
        best = [
            GroupCounts(group.n, tuple(walk.with_gains() for walk in group.walks))
            if not are_graded(part, exits)
            else GroupCounts(group.n, walks_from_counts(table.cells, counts_at_best(part, exits)))
            for group, table, part in zip(rows, tables, counts, strict=True)
        ]
        for table, end in zip(kept["tables"], self._ends(kept, best), strict=True):
            table["best_possible"] = _end(end)
        return kept

    def _require_tally(self, tally: Tally, wishes: Values) -> int:
        """The number of exits, if the tally is one of a cascade and all that was asked for goes
        with it.
        """
        require_is_tally(tally)
        exits = exits_of(tally.cells.shape[1], tally.scope)
        grid = grid_of(max(exits, 1))
        if tally.scope == "top":
            require_tally(tally, "cascade", grid, lowest=0, columns="confidence, prediction, label")
        elif tally.rows == 0:
            raise InvalidValueError("There are no rows to certify a cascade on: pass at least one.")
        if wishes["costs"] is not None:
            checked_costs(wishes["costs"], exits + 1)
        wrong = _conflict(tally, wishes)
        if wrong is not None:
            raise InvalidValueError(wrong)
        return exits

    # ---- deciding

    def decided(self, values: Values) -> dict[str, Any]:
        """The thresholds of each table, and the walks down to the first failure."""
        rows = [GroupCounts(table["n"], table["walks"]) for table in values["tables"]]
        found = self._ends(values, rows)
        differ = values["claim"] == "differ"
        if differ:
            found = tuple(
                cascade.about_answers(end, group.n, values["xi"])
                for end, group in zip(found, rows, strict=True)
            )
        steps = sum(walk.cells.size for end in found for walk in end.walks)
        if steps > MOST_STEPS:
            raise InvalidValueError(
                f"The walks of {len(rows)} groups have {steps:,} steps, more than a certificate "
                f"may have: expected at most {MOST_STEPS:,}. Use fewer groups or models."
            )
        exits = len(rows[0].walks[0].cells)
        tables = [
            {
                **table,
                "thresholds": tuple(thresholds_of(end.cells, exits).tolist()),
                "chosen": end.chosen,
                "walks": tuple(map(sealed_walk, end.walks)),
                "best_possible": _end(end) if differ else table["best_possible"],
                "refusal": end.refusal,
            }
            for table, end in zip(values["tables"], found, strict=True)
        ]
        refusal = found[0].refusal
        if values["procedure"] in SHARED:
            refusal = cascade.refused(_names(values), rows, found)
        whole = _whole(values)
        declared, small = values.get("declared"), values.get("left_out")
        total = sum(group.n for group in rows) if whole is None else rows[whole].n
        return {
            **values,
            "left_out": small,
            "costs": values["costs"] if declared is None else declared.running_costs,
            "n": total + sum((small or {}).values()),
            "assumes": self._assumed(values),
            "tables": tables,
            "refusal": refusal,
            "certified": refusal is None,
        }

    def _ends(self, values: Values, rows: Sequence[GroupCounts]) -> tuple[CascadeDecision, ...]:
        asked = _asked(values, len(rows[0].walks[0].cells))
        if values["procedure"] == OWN:
            return cascade.decide_apart(rows, asked, dependent=depend(values))
        return cascade.decide(rows, asked, whole=_whole(values))

    def _assumed(self, values: Values) -> tuple[str, ...]:
        """The names of what is assumed."""
        procedure = values["procedure"]
        # Where groups were left out, a row exits by the thresholds of its group, as by own ones.
        shared = "own" if values.get("left_out") else SHARED.get(procedure)
        ids = self.procedures[procedure].assumes
        if values["claim"] == "differ":
            ids = _differ(shared)
        elif values.get("left_out"):
            ids = _assumes(shared)
        elif procedure == PATHS and values["tables"][0]["labels"] is None:
            ids = _assumes(None, _COMPLETE)
        return self.assumed(ids, values["drawn"], values["scope"], values["graded"])

    def work(self, values: Values) -> float:
        """About how long deciding takes, as `Certificate.work` counts it."""
        walking: float = sum(
            walk.cells.size * interval_work(np.array([table["n"]]))
            for table in values["tables"]
            for walk in table["walks"]
        )
        if values["xi"] == 0:
            return walking
        # A region is computed once for each number of rows, at the level of each walk.
        exits = len(values["tables"][0]["walks"][0].cells)
        asked, groups = _asked(values, exits), len(values["tables"])
        if values["procedure"] == OWN:
            own = cascade.own_level(asked.delta, groups, dependent=depend(values))
            asked = replace(asked, delta=own)
        level = cascade.walk_level(asked, exits)
        sizes = {int(table["n"]) for table in values["tables"] if table["n"]}
        return walking + sum(paired_test_work(n, xi=asked.xi, delta=level) for n in sizes)

    # ---- certifying and reading

    def certify(
        self,
        evidence: Tally,
        asked: Mapping[str, Any],
        columns: Mapping[str, str] | None = None,
        *,
        declared: Declared | None = None,
    ) -> CascadeCertificate:
        """The certificate of what was counted, with what was noticed about its labels; along a
        sequence of thresholds, if other rows `declared` one.
        """
        require_is_tally(evidence)
        if evidence.matches is not None:
            evidence.matches.require_related(evidence.rows)
        values = self.decided(self.counted(evidence, self.wishes(asked), declared))
        provenance = Provenance.of(evidence, columns)
        return CascadeCertificate(by=self, values=values, provenance=provenance)

    def read(
        self, claim: Reader, provenance: Provenance, loaded: Mapping[str, Json]
    ) -> CascadeCertificate:
        """The certificate that a document holds, with what the name of its procedure says."""
        read = super().read(claim, provenance, loaded)
        require_fitting(claim, read.values)
        named = {
            "group_thresholds": SHARED.get(read.values["procedure"]),
            "small_groups": "leave-out" if read.values["left_out"] else "refuse",
        }
        return replace(read, values={**read.values, **named})

    # ---- labels that come bit by bit

    def rows_to_label(
        self,
        certificate: CascadeCertificate,
        columns: Mapping[str, Any],
        data: Any,
        rows: Mapping[str, Any],
    ) -> ToLabel:
        """The rows whose label could still change the thresholds."""
        if certificate.bounded == "differ" or columns.get("preferred") is not None:
            raise InvalidTypeError(
                "Rows are asked for to be labelled or graded: leave --claim differ and --preferred "
                "out."
            )
        asked = self.asked_text(certificate.values)
        drawn = certificate.draw
        given = {**columns, **rows, "seed": None if drawn is None else drawn.seed}
        if given.get("answers") is not None:
            given["answers"] = returned(given["answers"], asked)
        found = next_labels.counted(given, data)
        fill: tuple[str, ...] = (LABEL,)
        if certificate.graded is not None:
            fill = tuple(f"{GRADE}{m + 1}" for m in range(certificate.exits + 1))
        wanted = next_labels.open_rows(found, certificate.values)
        return ToLabel(wanted, RowIds(found[1].table, asked), fill)

    def require_later(self, before: Certificate, now: CascadeCertificate) -> None:
        """Raise unless `now` can be a later look: one at which labels are missing is compared."""
        if not isinstance(before, CascadeCertificate) or not before.unlabelled.in_all:
            return
        wrong = next_labels.changed_since(before.values, now.values)
        if wrong is not None:
            raise InvalidValueError(
                f"An earlier look at a cascade stands there, and {wrong}. What was looked at stays "
                "as it was: name another file if this is another claim, or if labels were only "
                "lost."
            )

    # ---- what engines read

    @property
    def measure(self) -> Measure:
        """The share of rows that exit early."""
        return measure_of(self, "loss")

    @property
    def measures(self) -> Mapping[str, Measure]:
        """The same, for each of what may be bounded."""
        return {self.kind: self.measure, "differ": measure_of(self, "differ")}

    def says(self, certificate: CascadeCertificate) -> Says:
        """The certificate in words."""
        return words.said(certificate)

    def row_rule(self, certificate: CascadeCertificate) -> RowRule:
        """The model that answers each row: the slow one, if the group has thresholds of its own and
        is not known.
        """
        thresholds = certificate.thresholds_for_use()
        if not isinstance(thresholds, dict):
            return RowRule(len(thresholds), Exits(tuple(thresholds.tolist())))
        own = {name: Exits(tuple(values.tolist())) for name, values in thresholds.items()}
        slow = Exits((np.inf,) * certificate.exits)
        return RowRule(certificate.exits, None, own, slow, others="go to the slow model")

    def figures(self, certificate: CascadeCertificate) -> Iterable[Figure]:
        """The walk of each table."""
        drawn = (words.figure(certificate, group) for group in certificate.tables)
        return (figure for figure in drawn if figure is not None)

    def watch(self, certificate: CascadeCertificate) -> Any:
        """What a row in use loses against the slow model."""
        return watch_of_cascade(certificate)

    def refused_groups(self, certificate: CascadeCertificate) -> Iterable[str]:
        """The groups that never exit early."""
        return certificate.refused_groups

    def numbers(self, certificate: CascadeCertificate) -> list[tuple[str, str]]:
        """What was asked for and decided."""
        return words.numbers(certificate)

    def thresholds(self, certificate: CascadeCertificate) -> dict[str, Json]:
        """The thresholds, by group where each has its own."""
        limits = certificate.thresholds
        if isinstance(limits, dict):
            own = {name: list(map(encode_float, part.tolist())) for name, part in limits.items()}
            return {"thresholds": own}
        return {"thresholds": list(map(encode_float, limits.tolist()))}

    def names_in_columns(self, certificate: CascadeCertificate) -> Mapping[str, int]:
        """Confidences and predictions have a name for each model."""
        several = {"confidence": certificate.exits, "prediction": certificate.exits + 1}
        quality = certificate.provenance.columns.get("quality")
        return several if quality is None else {**several, "quality": len(quality.split(","))}

    def recounting(self, certificate: CascadeCertificate) -> dict[str, Any]:
        """Labels that were counted although they look unrelated are counted again."""
        if certificate.declared is not None:
            raise InvalidTypeError(
                "The data of a cascade that a design chose cannot be counted again by --data: run "
                "`pacbound design` with the same options, and compare the files."
            )
        return recounted(certificate, "certify_cascade")

    def cells(self, certificate: CascadeCertificate) -> Cells:
        """The counts of each step of each walk."""
        found: Cells = {}
        names = ("exits", "only_slow", "only_fast", "unlabelled")
        top = top_of(certificate.exits)
        for group in certificate.tables:
            prefix = "" if group.name is None else f"group {printable(group.name)}, "
            if group.name is not None:
                found[f"{prefix}all"] = {"rows": group.n}
            for place, walk in enumerate(group.walks):
                path = f"path {place + 1}, " if len(group.walks) > 1 else ""
                for step, thresholds in enumerate((walk.cells / top).T.tolist()):
                    where = ", ".join(f"{value:g}" for value in thresholds)
                    counts = {name: int(getattr(walk, name)[:, step].sum()) for name in names}
                    found[f"{prefix}{path}from {where} on"] = counts
        for name, rows in (certificate.values["left_out"] or {}).items():
            found[f"group {printable(name)}, all"] = {"rows": rows}
        return found


def _small(
    names: Sequence[Any], tables: Sequence[Tally], exits: int, wishes: Values
) -> dict[str, int]:
    """The groups that are left out, with their rows, if that was asked for and others are left."""
    if wishes["small_groups"] == "refuse":
        return {}
    asked = {"xi": wishes["xi"], "delta": wishes["delta"]}
    found = {
        str(name): table.rows
        for name, table in zip(names, tables, strict=True)
        if cascade.too_small(table.rows, exits, **asked)
    }
    return found if len(found) < len(names) else {}


def _conflict(tally: Tally, wishes: Values) -> str | None:
    """Which option cannot be combined with the tally, in a sentence."""
    shared, overlap = wishes["group_thresholds"], tally.scope == "overlapping-groups"
    if tally.graded is not None and wishes["claim"] == "differ":
        return (
            "claim='differ' is about answers that differ, whatever their quality: leave quality "
            "out, or claim the loss (claim='loss')."
        )
    if wishes["small_groups"] == "leave-out" and overlap:
        return (
            "small_groups='leave-out' needs groups that do not overlap: how many rows one has says "
            "something about the rows of another. Pass one group per row."
        )
    apart = tally.scope == "groups" and tally.drawn is not None and tally.drawn.apart
    if wishes["small_groups"] == "leave-out" and apart:
        return (
            "small_groups='leave-out' cannot be combined with clusters that give a row to each of "
            "their groups: how many rows one group has says something about the rows of another. "
            "Declare cluster_bound, the most rows that a cluster can have."
        )
    small = small_groups_conflict(wishes, tally.scope, "group_thresholds")
    if small is None and tally.scope == "top" and shared is not None:
        return (
            f"group_thresholds={shared!r} is about groups, and there are none: pass groups, or "
            "leave it out."
        )
    if small is None and shared == "own" and overlap:
        return (
            "group_thresholds='own' needs groups that do not overlap, since a row could have "
            "several thresholds: pass one group per row, or use group_thresholds='common'."
        )
    return small or too_many_groups(tally)


def _tables(tally: Tally, exits: int) -> list[Tally]:
    """The tally of each group alone, if it can be one of a cascade and all add up."""
    if tally.scope == "top":
        return [tally]
    tables = []
    for place in range(len(tally.groups)):
        inside = tally.cells[:, 0] == place
        counts = tally.counts[inside]
        table = replace(
            tally,
            cells=tally.cells[inside, 1:],
            counts=counts,
            rows=exact_sum(counts[:, :1] if are_graded(counts, exits) else counts),
            scope="top",
            groups=(),
        )
        if table.rows:
            columns = "confidence, prediction, label and groups"
            require_tally(table, "cascade", grid_of(exits), lowest=0, columns=columns)
        tables.append(table)
    whole = tally.groups.index(ALL_ROWS) if tally.scope == "overlapping-groups" else None
    total = sum(table.rows for table in tables) if whole is None else tables[whole].rows
    if total != tally.rows or any(table.rows > tally.rows for table in tables):
        raise InvalidValueError(
            f"{tally!r} does not add up: its groups are of {total:,} rows. Count again."
        )
    return tables


def _label_counts(counts: Integers, exits: int) -> dict[str, int]:
    """How many rows in which predictions differ have a label, and have none."""
    with_label, without = labelled_rows(counts, exits), unlabelled_rows(counts, exits)
    return {"labelled": int(with_label.sum()), "unlabelled": int(without.sum())}


def _refuse_labels(labels: Sequence[Mapping[str, int]], scope: str) -> None:
    """Raise if there are labels, where the claim is about answers that differ."""
    each = [part["labelled"] for part in labels]
    labelled = max(each) if scope == "overlapping-groups" else sum(each)
    if labelled:
        raise InvalidValueError(
            f"claim='differ' takes no labels, and {labelled:,} rows on which models differ have "
            "one: with labels claim the loss (claim='loss'), which they say more about. Count "
            "without labels to claim that few answers differ, if that was decided before the "
            "answers were compared."
        )


def _fitting(declared: Declared, evidence: Tally, exits: int, *, missing: bool) -> Declared:
    """What was declared, with cells that nobody can write into, if it is for the tally."""
    if exits != len(declared.cells) or evidence.scope != "top":
        raise InvalidValueError(
            f"{evidence!r} has {exits} exits, and the declared sequence {len(declared.cells)}: "
            "count the models that it is for, without groups."
        )
    if missing:
        raise InvalidValueError(
            f"{evidence!r} has rows without a label where predictions differ, and a declared "
            "sequence takes none: label them."
        )
    checked_costs(declared.running_costs, exits + 1)
    return replace(declared, cells=sealed(np.array(declared.cells)))


def _asked(values: Values, exits: int) -> Asked:
    return Asked(
        values["xi"],
        values["delta"],
        values["costs"] or unit_costs(exits),
        values.get("bound", "exact"),
        values.get("declared"),
    )


def _end(decision: CascadeDecision) -> dict[str, Any]:
    """Where a decision ends, as `best_possible` holds it."""
    walk = decision.walks[decision.chosen]
    return {
        "thresholds": tuple(thresholds_of(decision.cells, len(walk.cells)).tolist()),
        "chosen": decision.chosen,
        "exits": tuple(walk.counts_at(decision.cells, "exits").tolist()),
    }


def _names(values: Values) -> tuple[Any, ...]:
    return tuple(table["group"] for table in values["tables"])


def _whole(values: Values) -> int | None:
    return _names(values).index(ALL_ROWS) if values["scope"] == "overlapping-groups" else None


def measure_of(claim: Any, about: str) -> Measure:
    """The exit rate of a cascade, `about` what xi bounds: "loss", or "differ"."""

    def certify(tally: Tally, xi: float, delta: float) -> Sample:
        quick = paired_test_work(tally.rows, xi=xi, delta=delta) <= EXACT_WORK
        bound = "exact" if quick else "pair"
        asked = claim.wishes({"xi": xi, "delta": delta, "claim": about})
        values = claim.decided({**claim.counted(tally, asked), "bound": bound})
        found = CascadeCertificate(by=claim, values=values, provenance=Provenance.of(tally, None))
        return Sample(
            certified=found.certified,
            value=float(found.exit_rates.sum()) if found.certified else 0.0,
            # A draw may lack a group, so thresholds of groups cannot be compared between draws.
            thresholds=() if found.groups else tuple(found.thresholds.tolist()),
            coarse=not quick,
        )

    return Measure(
        name="exit rate",
        unit="rows",
        larger=True,
        asked="xi",
        certify=certify,
        labels=_differing if about == "loss" else _no_labels,
        least=lambda _, xi, delta: labels_needed_by_walk(xi, delta=delta),
        silent=_silent_loss if about == "loss" else _silent_differ,
        subject="" if about == "loss" else "a claim that few answers of a cascade differ",
    )


def _no_labels(_: Tally) -> int:
    return 0


def _differing(tally: Tally) -> int:
    """Rows on which some exit differs from the slow model: only these need a label."""
    if are_graded(tally.counts, exits_of(tally.cells.shape[1], tally.scope)):
        return tally.rows
    agreeing = [set(outcome.split("|")) == {"agree"} for outcome in tally.outcomes]
    return tally.rows - int(tally.counts[:, agreeing].sum())


def _silent_loss(tally: Tally) -> str | None:
    without = _unlabelled(tally)
    if without:
        return f"{without:,} of its rows on which models differ have no label; label them"
    return None if _differing(tally) else _NEVER_DIFFER


def _silent_differ(tally: Tally) -> str | None:
    labelled = _differing(tally) - _unlabelled(tally)
    if labelled:
        return (
            f"{labelled:,} of its rows on which models differ have a label, and a claim that few "
            "answers differ takes none; count it without labels"
        )
    return None if _differing(tally) else _NEVER_DIFFER


def _unlabelled(tally: Tally) -> int:
    exits = exits_of(tally.cells.shape[1], tally.scope)
    return int(unlabelled_rows(with_unlabelled(tally.counts, exits), exits).sum())


CLAIM = CascadeClaim()
