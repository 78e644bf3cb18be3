"""Replacement: may a new model take the place of an old one?"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final, Literal, Unpack

import numpy as np

from pacbound.claims.assumptions import SAMPLE, as_graded, in_plain_words
from pacbound.claims.certificate import EXPLAINED_WORK, Certificate
from pacbound.claims.claim import (
    Cells,
    Claim,
    Procedure,
    ToLabel,
    Values,
    certify,
    rows_by_group,
)
from pacbound.claims.tables import (
    LEAVE_OUT,
    counted_by_table,
    group_prefix,
    groups_of,
    level_of_tables,
    no_such_look,
    noted_labels,
    recounted,
    small_groups_conflict,
    too_many_groups,
)
from pacbound.documents import printable
from pacbound.errors import InvalidTypeError, InvalidValueError
from pacbound.fields import Field, Fields, Histogram, LevelCounts
from pacbound.figure import Figure
from pacbound.figures.paired import losses_beside_gains
from pacbound.forms import DELTA, SMALL_GROUPS, Ask, Choice, Integers, TruthValue, looks_ask, xi_ask
from pacbound.measure import Measure, Sample
from pacbound.procedures.graded_replacement import NAME as GRADED_NAME
from pacbound.procedures.graded_replacement import certifies
from pacbound.procedures.graded_replacement import refusal as graded_refusal
from pacbound.procedures.replacement import NAME, Refusal, passes, power, refusal, too_small
from pacbound.says import Says, Sentence, Value, confidence, count, share, with_counts
from pacbound.stats.betting import difference_bets
from pacbound.stats.binomial import bonferroni_level
from pacbound.stats.graded_bets import mean_upper
from pacbound.stats.paired import (
    PairedBound,
    labels_needed_by_walk,
    paired_upper,
)
from pacbound.stats.seeded import seeded_work
from pacbound.tally.count import Kept, count_rows
from pacbound.tally.questions.cascade import ALL_ROWS
from pacbound.tally.questions.question import Judged
from pacbound.tally.questions.replacement import (
    EQUAL,
    LOST,
    MAY_LOSE,
    ONLY_NEW,
    ONLY_OLD,
    OPEN,
    OUTCOMES,
    REPLACEMENT,
    UNLABELLED,
    at_best,
    at_worst,
    differences,
    of_candidates,
    seen_of,
)
from pacbound.tally.row_ids import RowIds, returned
from pacbound.tally.row_options import RowOptions
from pacbound.tally.tally import Tally, require_is_tally
from pacbound.watch import LOST_OR_GAINED, Watch

# The largest exact test that a plan waits for, about a second.
EXACT_WORK: Final = 0.1
# Chances to pass are computed exactly up to so many rows.
MOST_EXACT: Final = 200_000
# Plans begin here, or where rows without a loss pass: a model that gains much passes on few.
_FEWEST: Final = 50

# The cells of a difference on one step.
_ONE_STEP: Final = 6

# By how much the label of a row with each outcome could lower the loss.
_TOLD_BY_LABEL: Final = np.array([{UNLABELLED: 2, MAY_LOSE: 1}.get(one, 0) for one in range(7)])
_SEEN: Final = "{New} loses {losses} of {n} rows and gains {gains}"
# A sentence for each code of a refusal.
REFUSALS: Final[Mapping[str, str]] = {
    "unlabelled": "{unlabelled} rows on which answers differ have no label, and each counts as "
    "lost. Label these first: with them {new} could still be shown to lose at most {xi}.",
    "too-few": f"{_SEEN}: for so few rows only more gains could show that it loses at most {{xi}}.",
    "near": f"{_SEEN}: too close to xi = {{xi}} for this many rows.",
    "loses": f"{_SEEN}: no less than xi = {{xi}}.",
    "no-better": f"{_SEEN}, which does not show that it is better than {{old}} (xi = 0). Allow a "
    "small loss, xi > 0.",
    "slow": "The counts do not support the claim. To compute why would take long.",
}


class ReplacementCertificate(Certificate):
    """With probability at least 1 - delta the new model loses at most xi accuracy against the old
    one.

    `certify_replacement` makes such a certificate, and `load_certificate` reads one. A refusal has
    `certified` False: keep the old model. Of several candidates `certified` says whether all pass,
    and `may_replace` names those that do, for which the claim holds whatever the others do. With
    groups and a common verdict the claim holds in every group; with own verdicts a candidate passes
    if it does in some group, and `refused_groups` names those in which none does.

    Attributes
    ----------
    by : Claim
        What is claimed, and how it is decided and said.
    values : mapping
        Everything that the document holds of it, by name: what was asked for, the counts and the
        candidates that pass.
    provenance : Provenance
        Where the certificate comes from.
    draw : Drawn or None
        How the rows were drawn from others; None if all rows of the data were counted as they are.
    loaded : mapping or None
        The document that it was read from; None if it was made in this process.

    Examples
    --------
    >>> prediction = [[1, 1]] * 400 + [[0, 1]] * 5 + [[1, 0]] * 2
    >>> certificate = certify_replacement(prediction, [1] * 407, xi=0.02, delta=0.05)
    >>> certificate.certified, certificate.losses, certificate.gains
    (True, 2, 5)
    """

    xi: float

    @property
    def models(self) -> tuple[str, ...]:
        """What the models are called, the old one first: as their columns, where these differ."""
        number = candidates_of(self.values) + 1
        columns = self.provenance.columns
        named = columns.get("prediction", columns.get("quality", "")).split(",")
        if len(set(named)) == number:
            return tuple(named)
        new = ["the new model"] if number == 2 else [f"new model {m}" for m in range(1, number)]
        return ("the old model", *new)

    @property
    def may_replace(self) -> tuple[str, ...]:
        """The candidates that may take the old model's place, in every group that is not left out
        if there are groups.
        """
        kept = kept_of(self.values["tables"])
        passed = set.intersection(*(set(table["passed"]) for table in kept))
        return tuple(self.models[1 + m] for m in sorted(passed))

    @property
    def refused(self) -> tuple[str, ...]:
        """The candidates that do not pass: in some group, or with own verdicts in any."""
        every = range(candidates_of(self.values))
        return tuple(self.models[1 + m] for m in every if m not in passing_of(self.values))

    @property
    def left_out(self) -> tuple[str, ...]:
        """The groups that `small_groups="leave-out"` left out, for too few rows."""
        return tuple(str(one["group"]) for one in self.values["tables"] if one["left_out"])

    @property
    def losses(self) -> int:
        """The rows on which only the old model is right, or may be, for the first candidate."""
        return lost_of(self.counts()[0])

    @property
    def gains(self) -> int:
        """The rows on which only the first candidate is right."""
        return int(self.counts()[0][ONLY_NEW])

    @property
    def unlabelled(self) -> int:
        """The rows in which a label or a quality is missing that could still decide, for the first
        candidate.
        """
        return int(self.counts()[0][OPEN].sum())

    @property
    def settled(self) -> bool:
        """Whether no further label can change the verdict on any candidate."""
        return all(
            CLAIM.passed(table["counts"], self.values, optimistic=True) == tuple(table["passed"])
            for table in kept_of(self.values["tables"])
        )

    @property
    def refusal(self) -> Refusal | None:
        """Why the first candidate is refused; None if it is certified."""
        return next((why for _, why in CLAIM.refusals(self, 0)), None)

    def counts(self) -> Any:
        """The rows of each outcome over all rows, (candidates, outcomes)."""
        tables = self.values["tables"]
        whole = [table for table in tables if table["group"] == ALL_ROWS]
        overlap = self.values["scope"] == "overlapping-groups"
        return sum(table_of(one["counts"], self.values) for one in (whole if overlap else tables))


def candidates_of(values: Values) -> int:
    """The number of candidates."""
    return max(len(table["counts"]["cells"]) for table in values["tables"])


def kept_of(tables: Iterable[Values]) -> list[Values]:
    """The tables of the groups that were not left out."""
    return [table for table in tables if not table["left_out"]]


def passing_of(values: Values) -> set[int]:
    """The candidates that pass in all groups that are not left out; with own verdicts in some."""
    passed = [set(table["passed"]) for table in kept_of(values["tables"])]
    own = values["group_verdicts"] == "own"
    return set.union(*passed) if own else set.intersection(*passed)


def table_of(counts: Mapping[str, Any], values: Values) -> Any:
    """The counts of a group as (candidates, outcomes); zeros for a group without rows."""
    if not len(counts["cells"]):
        return np.zeros((candidates_of(values), len(OUTCOMES)), dtype=np.int64)
    return np.column_stack([counts[name] for name in OUTCOMES])


def with_outcomes(counts: dict[str, Any]) -> dict[str, Any]:
    """Counts of graded differences, and which way rows point."""
    seen = [seen_of(cells) for cells in counts["grades"]]
    table = np.array(seen, dtype=np.int64).reshape(len(seen), len(OUTCOMES))
    return {**counts, **dict(zip(OUTCOMES, table.T.copy(), strict=True))}


def _counts_of(evidence: Tally) -> list[tuple[str | None, dict[str, Any]]]:
    """For each group, or for all rows, the rows of each outcome for every candidate; or of each
    difference, where answers are graded.
    """
    found = []
    for group, cells, rows in rows_by_group(evidence):
        graded = evidence.graded is not None
        whole = (
            _differences_in(evidence, cells, rows) if graded else of_candidates(rows.sum(axis=0))
        )
        table = whole if rows.any() else whole[:0]
        counts = {"grades": table} if graded else dict(zip(OUTCOMES, table.T.copy(), strict=True))
        counts = {"cells": np.arange(len(table)), **counts}
        found.append((group, with_outcomes(counts) if graded else counts))
    return found


def _differences_in(evidence: Tally, cells: Any, rows: Any) -> Any:
    """The rows of each difference, for every candidate."""
    steps, codes = getattr(evidence.grid, "steps", 1), cells[:, evidence.scope != "top" :]
    return np.array([differences(column, rows.sum(axis=1), steps) for column in codes.T])


def _rows_of(table: Values, values: Values) -> int:
    """The rows of a group."""
    return int(table_of(table["counts"], values)[0].sum())


def lost_of(seen: Any) -> int:
    """Rows that are lost, or may be, of the counts of a candidate."""
    return int(seen[LOST].sum())


def unknown_of(seen: Any) -> int:
    """Of the rows that are lost, those that may not be."""
    return lost_of(seen) - int(seen[ONLY_OLD])


def _told_by(certificate: Certificate) -> str:
    return "label" if certificate.graded is None else "grade"


class ReplacementClaim(Claim[ReplacementCertificate]):
    """A new model loses at most xi accuracy against the old one, in every group if there are
    groups.
    """

    kind = "replacement"
    command = "compare"
    help = "Certify that a new model loses at most xi accuracy against the old one."
    question = REPLACEMENT
    certificate = ReplacementCertificate
    asks_for_labels = True
    asks = (
        xi_ask("The accuracy that may be lost: 0.01. 0 asks that the new model is better."),
        DELTA,
        Ask(
            "group_verdicts",
            Choice(("common", "own")),
            "With groups: one common verdict, for which every group must pass, or their own ones.",
            default="common",
            shown="Verdicts of the groups",
        ),
        SMALL_GROUPS,
        looks_ask("rows"),
    )
    procedures: Mapping[str, Procedure] = {
        name: Procedure(
            name,
            (
                *SAMPLE,
                "unknown-counts-against-new",
                "labels-as-they-are",
                "net-loss-of-new",
            ),
        )
        for name in (NAME, GRADED_NAME)
    }

    def counting(
        self,
        wishes: Values,  # noqa: ARG002
        columns: Mapping[str, Any],
        data: Any,
        rows: Mapping[str, Any],
    ) -> dict[str, Any]:
        """Raise if a quality is named once for several tables that are not joined."""
        quality, tables = columns.get("quality"), data if isinstance(data, (list, tuple)) else ()
        once = isinstance(quality, str) or (isinstance(quality, list) and len(quality) == 1)
        if once and len(tables) > 1 and rows.get("id") is None:
            raise InvalidTypeError(
                f"quality={quality!r} is one column, and there are {len(tables)} tables: name the "
                "column that joins the old model's table with the new one's, id='doc_id' "
                "(--id doc_id); or name two qualities, the old model's first."
            )
        return {}

    def fields(self, procedure: Procedure) -> Fields:
        """The fields of a document."""
        graded = procedure.name == GRADED_NAME
        counts = LevelCounts(with_outcomes) if graded else Histogram(OUTCOMES)
        return counted_by_table(
            self,
            procedure,
            self.asks,
            Field("counts", counts, counted=True),
            Field("passed", Integers()),
            Field("left_out", TruthValue()),
        )

    def counted(self, evidence: Tally, wishes: Values) -> dict[str, Any]:
        """The counts of each candidate in each group, and what was asked for."""
        require_is_tally(evidence)
        if evidence.kind != REPLACEMENT.kind or not evidence.rows:
            raise InvalidValueError(
                f"{evidence!r} is not a tally of a replacement with rows: count with prediction "
                "and label, or with quality."
            )
        many = too_many_groups(evidence)
        if many is not None:
            raise InvalidValueError(many)
        tables = [{"group": group, "counts": counts} for group, counts in _counts_of(evidence)]
        name = NAME if evidence.graded is None else GRADED_NAME
        values = {**self.counted_values(name, evidence, wishes), "tables": tables}
        wrong = _conflict(values)
        if wrong is not None:
            raise InvalidValueError(wrong)
        return values

    def decided(self, values: Values) -> dict[str, Any]:
        """The candidates that pass in each group, and which groups are left out."""
        small = self._small(values)
        tables = [
            {**one, "passed": () if few else self.passed(one["counts"], values), "left_out": few}
            for one, few in zip(values["tables"], small, strict=True)
        ]
        procedure = self.procedures[values["procedure"]]
        decided = {
            **values,
            "assumes": self.assumed(
                procedure.assumes, values["drawn"], values["scope"], values.get("graded")
            ),
            "tables": tables,
        }
        return {**decided, "certified": len(passing_of(decided)) == candidates_of(values)}

    def _small(self, values: Values) -> list[bool]:
        """Which groups are left out: those that are too small, if others are not."""
        asked = {"xi": values["xi"], "delta": self.level(values)}
        small = [too_small(_rows_of(one, values), **asked) for one in values["tables"]]
        leaves = values["small_groups"] == "leave-out" and not all(small)
        return [leaves and few for few in small]

    def passed(
        self,
        counts: Mapping[str, Any],
        values: Values,
        *,
        optimistic: bool = False,
        bound: PairedBound = "exact",
    ) -> tuple[int, ...]:
        """The candidates that pass in a group; `optimistic`, if every missing label were a gain."""
        asked: Any = {"xi": values["xi"], "delta": self.level(values), "bound": bound}
        if "grades" in counts:
            found = (at_worst(cells, best=optimistic) for cells in counts["grades"])
            return tuple(m for m, levels in enumerate(found) if certifies(levels, **asked))
        return tuple(
            place
            for place, found in enumerate(table_of(counts, values))
            for seen in [at_best(found) if optimistic else found]
            if passes(lost_of(seen), int(seen[ONLY_NEW]), int(seen.sum()), **asked)
        )

    def level(self, values: Values) -> float:
        """The chance that each test may be wrong: candidates, looks and verdicts share delta."""
        looks = 1 if values["looks"] is None else len(values["looks"])
        level = bonferroni_level(values["delta"], candidates_of(values) * looks)
        return level_of_tables(level, values, own=values["group_verdicts"] == "own")

    def work(self, values: Values) -> float:
        """About how long deciding takes: a region for each size of a group."""
        if values["xi"] == 0:
            return 0.0
        sizes = {_rows_of(one, values) for one in values["tables"]}
        asked = {"xi": values["xi"], "delta": self.level(values)}
        return sum(seeded_work(n, **asked) for n in sizes if n)

    def refusals(self, certificate: Any, candidate: int) -> list[tuple[str | None, Refusal]]:
        """The groups in which a candidate is refused, and why."""
        values = certificate.values
        slow = self.work(values) > EXPLAINED_WORK
        asked = {"xi": values["xi"], "delta": self.level(values)}
        found = []
        for table in kept_of(values["tables"]):
            if candidate in table["passed"]:
                continue
            counts = table["counts"]
            if slow:
                why = Refusal("slow", {})
            elif "grades" in counts:
                why = graded_refusal(counts["grades"][candidate], **asked)
            else:
                why = refusal(table_of(counts, values)[candidate], **asked)
            found.append((table["group"], why))
        # What no number of rows would mend comes first, then what takes most of them.
        return sorted(found, key=lambda one: -(one[1].needed or np.inf))

    def rows_to_label(
        self,
        certificate: ReplacementCertificate,
        columns: Mapping[str, Any],
        data: Any,
        rows: Mapping[str, Any],
    ) -> ToLabel:
        """The rows whose label could still change the verdict, those first in which it could turn
        a loss into a gain, for most candidates.
        """
        if certificate.graded is not None:
            raise InvalidTypeError(
                "Rows are written to be labelled where answers are right or wrong, and these are "
                "graded: grade the rows whose quality is missing in the table itself."
            )
        kept, asked = Kept(), self.asked_text(certificate.values)
        drawn = certificate.draw
        passed = {**columns, **rows, "seed": None if drawn is None else drawn.seed}
        given = {name: value for name, value in passed.items() if value is not None}
        if "answers" in given:
            given["answers"] = returned(given["answers"], asked)
        count_rows(self.question, given, data, kept)
        undecided, names = self._undecided(certificate.values), groups_of(certificate.values)
        useful = np.concatenate([_useful(one, names, undecided) for one in kept.judged])
        places = np.arange(len(useful)) if kept.places is None else kept.places
        useful[np.isin(places, kept.declined)] = 0
        order = np.argsort(-useful, kind="stable")
        return ToLabel(places[order[useful[order] > 0]], RowIds(kept.table, asked))

    def _undecided(self, values: Values) -> Any:
        """Whether each candidate does not pass in each group, and could with more labels: in every
        group, where the verdict is a common one.
        """
        every = range(candidates_of(values))
        now, best = (
            np.array([[m in found for m in every] for found in each])
            for each in (
                [table["passed"] for table in values["tables"]],
                [
                    () if one["left_out"] else self.passed(one["counts"], values, optimistic=True)
                    for one in values["tables"]
                ],
            )
        )
        kept = [not one["left_out"] for one in values["tables"]]
        common = best[kept].all(axis=0) if values["group_verdicts"] == "common" else True
        return best & common & ~now

    # ---- what engines read

    def says(self, certificate: ReplacementCertificate) -> Says:
        """The certificate in words."""
        values, filled = certificate.values, self._filled(certificate)
        groups = groups_of(values)
        where = " in {groups} groups" if groups else ""
        title = Sentence(
            f"Replacement certificate: {{n}} rows{where}, xi {{xi}}, delta {{delta}}", filled
        )
        lines = [self._line(certificate, table) for table in values["tables"] if groups]
        seen = [self._seen(certificate, place) for place in range(candidates_of(values))]
        notes = tuple(self._notes(certificate, filled))
        own = values["group_verdicts"] == "own" and bool(groups)
        graded = values.get("graded")
        where = " in each of the groups" if groups else ""
        where += " that are not left out" * bool(certificate.left_out)
        where = " in every group in which it passes" if own and certificate.certified else where
        heading = Sentence(
            f"Replacement of {{old}}, losing at most {{xi}} {_lost_what(graded)}"
            if values["xi"]
            else "Replacement of {old} by a better model",
            filled,
        )
        plain = in_plain_words(certificate, f"{_plainly(values, filled)}{where}", filled)
        why = () if certificate.certified else self._refused(certificate)
        if not passing_of(values):
            return Says(title, heading, plain, refused=why, groups=tuple(lines), notes=notes)
        better = "is right more often than" if graded is None else "is better on average than"
        loses = (
            f"{{who}} {better} {{old}}"
            if values["xi"] == 0
            else f"{{who}} loses at most {{xi}} {_lost_what(graded)} against {{old}}"
        )
        rule = "Each group has its own verdict." if own else "{Who} may replace {old}."
        return Says(
            title,
            heading,
            plain,
            self._costs(certificate),
            Sentence(rule, filled),
            Sentence(
                f"With probability at least {{confidence}} over the draw of these rows, "
                f"{loses}{where}{'' if graded is None else ', {judged}'}.",
                filled,
            ),
            refused=why,
            seen=tuple(seen),
            groups=tuple(lines),
            notes=notes,
        )

    def _filled(self, certificate: ReplacementCertificate) -> dict[str, Value]:
        values, models = certificate.values, certificate.models
        own = values["group_verdicts"] == "own" and values["scope"] != "top"
        listed = _each_of(models[1:] if own else certificate.may_replace)
        return {
            "n": count(certificate.n),
            "groups": count(len(groups_of(values))),
            "xi": share(certificate.xi, "up"),
            "delta": share(certificate.delta, "up"),
            "level": share(self.level(values), "up"),
            "confidence": confidence(certificate.delta),
            "old": models[0],
            "new": models[1],
            "judged": as_graded(values.get("graded")),
            "who": listed,
            "refused": _each_of(certificate.refused),
            "Who": _capital(listed),
        }

    def _costs(self, certificate: ReplacementCertificate) -> Sentence | None:
        """What the new model changes on these rows; None where there are several. A question, where
        one changes nothing.
        """
        same = [
            name
            for name, seen in zip(certificate.models[1:], certificate.counts(), strict=True)
            if seen[EQUAL] == certificate.n
        ]
        if same:
            what = "gives the answer" if certificate.graded is None else "has the grade"
            return Sentence(
                f"{{new}} {what} of {{old}} on all {{n}} rows: is it another model?",
                {
                    "new": _capital(same[0]),
                    "old": certificate.models[0],
                    "n": count(certificate.n),
                },
            )
        if candidates_of(certificate.values) > 1 or certificate.graded is not None:
            return None
        (seen,) = certificate.counts()
        shares = {"lost": lost_of(seen), "gained": int(seen[ONLY_NEW])}
        unknown = ", or not known to be right" if unknown_of(seen) else ""
        return Sentence(
            f"On these rows, {{often lost}} answers become wrong{unknown}, and {{often gained}} "
            "become right.",
            with_counts({name: share(rows / certificate.n) for name, rows in shares.items()}),
        )

    def _seen(self, certificate: ReplacementCertificate, place: int) -> Sentence:
        seen, models = certificate.counts()[place], certificate.models
        missing = (
            f" ({{missing}} of them without a {_told_by(certificate)})" if unknown_of(seen) else ""
        )
        return Sentence(
            f"Seen on these rows, not certified: {{new}} loses {{losses}} of {{n}} rows{missing} "
            "against {old}, and gains {gains}.",
            {
                "old": models[0],
                "new": models[1 + place],
                "losses": count(lost_of(seen)),
                "gains": count(int(seen[ONLY_NEW])),
                "n": count(certificate.n),
                "missing": count(unknown_of(seen)),
            },
        )

    def _line(self, certificate: ReplacementCertificate, table: Values) -> Sentence:
        models = certificate.models
        rows = count(_rows_of(table, certificate.values))
        filled: dict[str, Value] = {"group": repr(table["group"]), "n": rows}
        if table["left_out"]:
            return Sentence("{group}: {n} rows, left out: too few to pass without gains", filled)
        parts = []
        for m, seen in enumerate(table_of(table["counts"], certificate.values)):
            filled |= {
                f"new {m}": models[1 + m],
                f"lost {m}": count(lost_of(seen)),
                f"gained {m}": count(int(seen[ONLY_NEW])),
            }
            verdict = "passes" if m in table["passed"] else "is refused"
            parts.append(f"{{new {m}}} {verdict}: {{lost {m}}} lost, {{gained {m}}} gained")
        return Sentence(f"{{group}}: {{n}} rows, {'; '.join(parts)}", filled)

    def _refused(self, certificate: ReplacementCertificate) -> tuple[Sentence, ...]:
        found = []
        passing = passing_of(certificate.values)
        for place in range(candidates_of(certificate.values)):
            if place in passing:
                continue
            (group, why), *others = self.refusals(certificate, place)
            found += self._why(certificate, place, group, why, [name for name, _ in others])
        return (
            *found,
            *self._leave_out(certificate.values),
            *([] if passing else [Sentence("Keep {old}.", {"old": certificate.models[0]})]),
            Sentence("A refusal does not show that the new model is worse."),
        )

    def _leave_out(self, values: Values) -> Iterable[Sentence]:
        """The remedy where only groups that are too small do not pass."""
        asked = {"xi": values["xi"], "delta": self.level(values)}
        refused = [table for table in values["tables"] if not table["passed"]]
        small = all(too_small(_rows_of(one, values), **asked) for one in refused)
        if values["xi"] > 0 and small and 0 < len(refused) < len(values["tables"]):
            yield Sentence(LEAVE_OUT.format(unit="rows", wrong="is lost, where none is gained"))

    def _why(
        self,
        certificate: ReplacementCertificate,
        place: int,
        group: str | None,
        why: Refusal,
        others: Sequence[str | None],
    ) -> list[Sentence]:
        filled = {
            **self._filled(certificate),
            "new": certificate.models[1 + place],
            "New": _capital(certificate.models[1 + place]),
            **{name: count(int(value)) for name, value in why.numbers.items()},
            "needed": count(why.needed or 0),
            "labels": count(why.labels or 0),
            "group": repr(group),
            "others": ", ".join(map(repr, others[:5])) + (", …" if len(others) > 5 else ""),
        }
        named = "" if group is None else "Group {group}: "
        more = " Nor do these groups pass: {others}." if others else ""
        sentences = [Sentence(f"{named}{REFUSALS[why.code]}{more}", filled)]
        labels = ", of which about {labels} need a label," if why.labels else ""
        takes = (
            f"About {{needed}} rows{labels} would do if the rates stay the same; plan for more."
            if why.needed is not None
            else "No number of rows will show it, if the rates stay the same."
        )
        return sentences + [Sentence(takes, filled)] * (why.code not in ("unlabelled", "slow"))

    def _notes(
        self, certificate: ReplacementCertificate, filled: Mapping[str, Value]
    ) -> Iterable[Sentence]:
        values = certificate.values
        shares = {"candidates": count(candidates_of(values)), **filled}
        if candidates_of(values) > 1:
            yield Sentence(
                "{candidates} candidates share delta: each is tested with a chance of error of at "
                "most {level}.",
                shares,
            )
        if values["looks"] is not None:
            looks = {**filled, "looks": count(len(values["looks"]))}
            yield Sentence("{looks} planned looks share delta equally.", looks)
        if certificate.left_out:
            yield Sentence(
                "Left out, for too few rows: {named}. Nothing is certified there: keep {old}.",
                {**filled, "named": ", ".join(map(printable, certificate.left_out))},
            )
        missing = max(unknown_of(seen) for seen in certificate.counts())
        if missing:
            yield Sentence(
                f"{{missing}} rows without a {_told_by(certificate)} count as losses. More may be "
                "asked for in any order, and the claim be made again after each; "
                + (
                    "more of them cannot change the verdict."
                    if certificate.settled
                    else "more of them could change the verdict."
                ),
                {"missing": count(missing)},
            )
        notes = certificate.provenance.notes
        yield from noted_labels(notes, "the old model", "hide what is lost")

    def figures(self, certificate: ReplacementCertificate) -> Iterable[Figure]:
        """The losses that each group allows beside its gains, and those that were seen; none of
        grades on several steps, where no two numbers decide.
        """
        counts = certificate.values["tables"][0]["counts"]
        if "grades" in counts and counts["grades"].shape[1] > _ONE_STEP:
            return ()
        return (self._figure(certificate, table) for table in certificate.values["tables"])

    def _figure(self, certificate: ReplacementCertificate, table: Values) -> Figure:
        seen = table_of(table["counts"], certificate.values)
        xi, delta = certificate.xi, self.level(certificate.values)
        n, group = int(seen[0].sum()), table["group"]
        return losses_beside_gains(
            dict(zip(certificate.models[1:], seen[:, ONLY_NEW].tolist(), strict=True)),
            [lost_of(one) for one in seen],
            n=n,
            passes=lambda losses, gains: passes(losses, gains, n, xi=xi, delta=delta),
            title="Losses beside gains" + ("" if group is None else f": {group}"),
        )

    def watch(self, certificate: ReplacementCertificate) -> Any:
        """What a row in use loses with the new model in place of the old one."""
        values = certificate.values
        if candidates_of(values) > 1:
            return "it is about several candidates; certify the one that is in use"
        every, graded = " in each group" if groups_of(values) else "", values.get("graded")
        text = f"at most {{xi}} {_lost_what(graded)} is lost against the old model{every}"
        return Watch.of_tables(
            certificate,
            difference_bets(certificate.xi),
            {table["group"]: bool(table["passed"]) for table in values["tables"]},
            outcomes=LOST_OR_GAINED,
            claimed=str(Sentence(text, {"xi": share(certificate.xi, "up")})),
            question=replace(REPLACEMENT, graded=graded),
            outcome=_lost_of if graded is None else _lost_as_graded,
        )

    def refused_groups(self, certificate: ReplacementCertificate) -> Iterable[str]:
        """The groups in which no candidate passes."""
        tables = certificate.values["tables"]
        return (str(one["group"]) for one in tables if one["group"] and not one["passed"])

    def names_in_columns(self, certificate: ReplacementCertificate) -> Mapping[str, int]:
        """Answers and qualities have a name for each model."""
        models = candidates_of(certificate.values) + 1
        one = "," not in certificate.provenance.columns.get("quality", "")
        return {"prediction": models, "quality": 1 if one else models}

    def recounting(self, certificate: ReplacementCertificate) -> dict[str, Any]:
        """Labels that were counted although they look unrelated are counted again."""
        return recounted(certificate, "certify_replacement")

    def cells(self, certificate: ReplacementCertificate) -> Cells:
        """The rows of each outcome, for each candidate."""
        return {
            f"{group_prefix(table)}candidate {place + 1}": dict(
                zip(OUTCOMES, seen.tolist(), strict=True)
            )
            for table in certificate.values["tables"]
            for place, seen in enumerate(table_of(table["counts"], certificate.values))
        }

    def numbers(self, certificate: ReplacementCertificate) -> list[tuple[str, str]]:
        """What was asked for and decided, and what was seen."""
        seen = certificate.counts()
        return [
            *super().numbers(certificate),
            ("May replace the old model", ", ".join(certificate.may_replace) or "none"),
            *(
                (f"{name}: rows lost, gained", f"{lost_of(one):,}, {int(one[ONLY_NEW]):,}")
                for name, one in zip(certificate.models[1:], seen, strict=True)
            ),
        ]

    @property
    def measure(self) -> Measure:
        """How often a sample certifies, and what loss it excludes."""
        return Measure(
            name="bound on the loss",
            unit="rows",
            larger=False,
            asked="xi",
            certify=self._sample,
            least=lambda _, xi, delta: min(_FEWEST, labels_needed_by_walk(xi, delta=delta)),
            labels=_differing,
            silent=_silent,
            chances=_chances,
        )

    def _sample(self, tally: Tally, xi: float, delta: float) -> Sample:
        values = self.counted(tally, self.wishes({"xi": xi, "delta": delta}))
        bound: PairedBound = "exact" if self.work(values) <= EXACT_WORK else "pair"
        passed = [set(self.passed(one["counts"], values, bound=bound)) for one in values["tables"]]
        if tally.graded is not None:
            levels = at_worst(_differences_in(tally, tally.cells, tally.counts)[0])
            most = 2.0 * mean_upper(levels, delta=delta) - 1.0
            return Sample(bool(set.intersection(*passed)), most, (), bound == "pair")
        seen = of_candidates(tally.counts.sum(axis=0))[0]
        most = paired_upper(lost_of(seen), int(seen[ONLY_NEW]), tally.rows, delta=delta)
        return Sample(bool(set.intersection(*passed)), most, (), bound == "pair")


def _chances(laws: Sequence[Tally], n: int, xi: float, delta: float) -> Any:
    """The chance that n rows pass, of one candidate, without groups."""
    if laws[0].graded is not None:
        return None
    seen = [of_candidates(law.counts.sum(axis=0)) for law in laws]
    if laws[0].groups or len(seen[0]) > 1 or n > MOST_EXACT:
        return None
    bound: PairedBound = "exact" if seeded_work(n, xi=xi, delta=delta) <= EXACT_WORK else "pair"
    lost = np.array([lost_of(one[0]) / one.sum() for one in seen])
    gained = np.array([one[0][ONLY_NEW] / one.sum() for one in seen])
    return power(lost, gained, n, xi=xi, delta=delta, bound=bound)


def _conflict(values: Values) -> str | None:
    """What was asked for and does not go with the rows that were counted, in a sentence."""
    wrong, looks = small_groups_conflict(values, values["scope"], "group_verdicts"), values["looks"]
    if wrong is not None or looks is None:
        return wrong
    if values["drawn"] is not None:
        return (
            f"looks cannot be combined with {values['drawn'].by}: more rows of a cluster "
            "change which one is drawn. Pass delta divided by the number of looks instead."
        )
    if values["n"] not in looks:
        return no_such_look(values["n"], "rows", looks)
    return None


def _useful(judged: Judged, names: Sequence[str], undecided: Any) -> Any:
    """By how much the label of each row could lower the losses of the candidates that are undecided
    in its group.
    """
    shape = (len(OUTCOMES),) * undecided.shape[1]
    outcomes = np.stack(np.unravel_index(judged.outcomes, shape), axis=1)
    groups = np.zeros(len(outcomes), dtype=np.int64)
    if judged.places is not None:
        groups = np.array([names.index(name) for name in judged.groups])[judged.places]
    return (_TOLD_BY_LABEL[outcomes] * undecided[groups]).sum(axis=1)


def _plainly(values: Values, filled: Mapping[str, Value]) -> str:
    """What is claimed, in plain words; of a refusal, what is not shown."""
    who = "{new}" if candidates_of(values) == 1 else "any candidate"
    who = "{who}" if not filled["refused"] else who if not passing_of(values) else "{refused}"
    if values["xi"] == 0:
        better = "is right more often than" if values.get("graded") is None else "is better than"
        return f"{who} {better} {{old}}"
    if values.get("graded") is not None:
        below = "is at most {xi} of the scale below that of {old}"
        return f"the mean quality of {who}, {{judged}}, {below}"
    return f"{who} is wrong on at most {{often xi}} rows more than {{old}}"


def _lost_what(graded: Any) -> str:
    return "accuracy" if graded is None else "quality"


def _lost_of(judged: Judged, rows: Any, _: Any) -> Any:
    """What each row loses, from 0 if it gains to 2; 3 where a label is missing."""
    return np.array([1, 0, 2, 1, 3, 3, 3])[judged.outcomes[rows]]


def _lost_as_graded(judged: Judged, rows: Any, _: Any) -> Any:
    """The difference of the qualities, 1 where they are equal; 3 where one is missing."""
    lost = np.zeros(0) if judged.told is None else judged.told[0][rows]
    return np.where(np.isnan(lost), 3.0, 1.0 + lost)


def _each_of(names: Sequence[str]) -> str:
    """Some of the candidates, in a sentence."""
    *others, last = names or ("",)
    return f"each of {', '.join(others)} and {last}" if others else last


def _capital(name: str) -> str:
    """A name of ours begins a sentence with a capital; a column's name stays as it is."""
    return f"{name[0].upper()}{name[1:]}" if name.startswith(("the ", "new ", "each ")) else name


def _differing(tally: Tally) -> int:
    """Rows on which some candidate's answer differs from the old model's: only these need a
    label.
    """
    if tally.graded is not None:
        found = _differences_in(tally, tally.cells, tally.counts)
        return tally.rows - min(int(seen_of(cells)[EQUAL]) for cells in found)
    return tally.rows - int(tally.counts[:, 0].sum())


def _silent(tally: Tally) -> str | None:
    if tally.graded is not None:
        steps = getattr(tally.grid, "steps", 1)
        lacking = (tally.cells[:, tally.scope != "top" :] > 2 * steps).any(axis=1)
        without = int(tally.counts[lacking].sum())
        lack = f"{without:,} of its rows lack a grade; grade them" if without else None
        return lack or (None if _differing(tally) else "its models never differ; draw a larger one")
    without = sum(rows for name, rows in tally.totals.items() if "unlabelled" in name.split("|"))
    if without:
        return f"{without:,} of its rows on which models differ have no label; label them"
    return None if _differing(tally) else "its models never differ; draw a larger one"


CLAIM = ReplacementClaim()


def certify_replacement(  # noqa: PLR0913
    prediction: Any = None,
    label: Any = None,
    *,
    quality: Any = None,
    preferred: Any = None,
    xi: float,
    delta: float,
    groups: Any = None,
    group_verdicts: Literal["common", "own"] = "common",
    small_groups: Literal["refuse", "leave-out"] = "refuse",
    looks: Any = None,
    data: Any = None,
    **rows: Unpack[RowOptions],
) -> ReplacementCertificate:
    """Whether a new model may replace the old one: it loses at most `xi` accuracy against it, with
    probability at least 1 - `delta`.

    The rows must be independent draws from the data the models will meet in use, untouched by
    training or model choice, and `xi`, `delta` and their number fixed without a look at them.
    What is certified is `xi`, over all data of use, gains offsetting losses. With `xi=0` it is
    that the new model is right more often than the old one.

    Labels matter only where answers differ, and may be missing (None, NaN) in any row, for any
    reason. Each that is missing there counts against the new model, so labels may be asked for in
    any order, and the claim be made again after each, as often as you like: stop at any time. A
    missing answer of the new model counts against it too, and one of the old model unless the new
    one is known to be right. Rows may not be dropped, nor labels changed once they were seen. To
    look again at *more rows* costs: plan these with `looks`.

    Parameters
    ----------
    prediction
        The answer of each model, the old model's first: (n, 2) classes, or (n, 1 + K) for K
        candidates, which share `delta`. With `data`, the names of the columns.
    label
        The true class; it may be missing in any row, and in all. More labels never turn a
        certificate into a refusal.
    quality
        In place of label: how good each model's answer is, 0 to 1, the old model's first: (n, 2)
        numbers, NaN where one is missing; `quality_scale=(1, 5)` for grades from 1 to 5, or better
        all that there are, `(1, 2, 3, 4, 5)`. The claim is about the mean quality, as graded
        (`graded_by=`). A single column is the new model's: 1 where it wins, 0.5 for a tie, 0 where
        it loses, or on a scale. Beside `prediction`, equal answers are equally good.
    preferred
        Which of two models answered better: the name of its prediction, old, new, or tie.
    xi
        The accuracy that may be lost: 0.01. 0 asks that the new model is better.
    delta
        The chance that the claim is wrong: 0.01
    groups
        The group of each row, or a mapping from names to truth values where groups overlap, of
        which "all rows" is always one; fixed beforehand.
    group_verdicts
        With groups: one common verdict, for which every group must pass, or their own ones. A
        common verdict costs no share of `delta`; own ones share it.
    small_groups
        With groups: leave-out leaves those with too few rows to pass without gains uncertified;
        refuse refuses the claim. Fixed beforehand; only the number of rows decides. Where groups
        overlap, or clusters give a row to each of theirs, they then share `delta`.
    looks
        Planned looks, numbers of rows, fixed beforehand: 100,200. They share `delta`.
    data
        A frame (pandas, Polars, PyArrow, DuckDB, PySpark), a path, several paths, or a Tally; or,
        with `id`, the tables of the old and of each new model, `data=(old, new)`: paths, frames, or
        lists of dicts, with the columns of the same names. `id` names the column that joins them.
    **rows
        How rows are read, joined and drawn, see `RowOptions`. Where one question has several
        samples, pass it as `clusters`.

    Returns
    -------
    ReplacementCertificate
        `certified`, and `may_replace`, the candidates that pass. A refusal has `certified` False,
        also where only some of several candidates pass;
        `refusal` and `summary()` say why: which labels come first, about how many rows and labels
        it would take, or that no number will.

    Raises
    ------
    InvalidValueError, InvalidTypeError
        If answers, labels or qualities cannot be what they should be; the message names the value,
        its row and the remedy. If labels look like those of other rows, see `unrelated_labels`. If
        no look was planned at so many rows.

    Examples
    --------
    >>> from pacbound.data import fashion_mnist
    >>> table = fashion_mnist()
    >>> prediction = np.column_stack([table.prediction_fast, table.prediction_slow])
    >>> certificate = certify_replacement(prediction, table.label, xi=0.01, delta=0.05)
    >>> certificate.certified, certificate.losses, certificate.gains
    (True, 493, 2181)

    The other way round it is refused, and no number of rows will help:

    >>> refused = certify_replacement(prediction[:, ::-1], table.label, xi=0.01, delta=0.05)
    >>> refused.certified, refused.refusal.code, refused.refusal.needed
    (False, 'loses', None)
    """
    if isinstance(rows.get("where"), Mapping):
        rows["where"] = ",".join(f"{column}={value}" for column, value in rows["where"].items())
    columns = {"prediction": prediction, "label": label, "quality": quality, "preferred": preferred}
    of_groups = {"group_verdicts": group_verdicts, "small_groups": small_groups}
    asked = {"xi": xi, "delta": delta, "looks": looks, **of_groups}
    return certify(CLAIM, {**columns, "groups": groups}, asked, data, rows)
