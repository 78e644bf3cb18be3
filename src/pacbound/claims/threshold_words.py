"""The sentences of a threshold claim: templates that its module declares, filled with quantities.

All may use what was asked for by its name, {n}, {trials}, {events}, {allowed} and {threshold}; and,
by the name of an outcome, the share of its rows from the threshold on, such as {positive}. {all} is
that of all rows, {lost} how many rollouts were lost.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import inf
from typing import Any

from pacbound.claims.assumptions import in_plain_words
from pacbound.claims.remedies import flags_most, reversed_danger, reversed_score, tied_scores
from pacbound.claims.tables import LEAVE_OUT
from pacbound.claims.threshold_certificate import (
    common_threshold,
    is_left_out,
    is_refused,
    left_out,
    rows_of,
    search_of,
    stands_for,
    trials_of,
)
from pacbound.documents import printable
from pacbound.forms import REQUIRED, allowed_rate
from pacbound.procedures.threshold import LOST, SLOW, UNEXPLAINED, NoThreshold
from pacbound.says import (
    Quantity,
    Says,
    Sentence,
    Value,
    confidence,
    count,
    names_in,
    share,
    with_counts,
)

ALWAYS = frozenset(
    [
        "n",
        "trials",
        "events",
        "allowed",
        "threshold",
        "all",
        "lost",
        "look",
        "looks_planned",
    ]
)
_ALWAYS_SAID = {
    UNEXPLAINED: "The counts in this file do not lead to a refusal: it was changed.",
    SLOW: "The counts do not support the claim. To compute why would take long.",
}
IN_REFUSALS = frozenset(["unavoidable", "needed"])


@dataclass(frozen=True)
class ClaimWords:
    """The sentences of a procedure.

    Attributes
    ----------
    about : str
        What was counted.
    rows, unit : str
        What rows are, and what trials are, in the plural.
    heading : str
        The claim in a few words.
    plain, costs : str
        What is certified, and what acting on it takes, in plain words with shares as people count.
    rule, promise, seen : str
        What to do, what is certified, and what was seen.
    kept : str
        What the figure calls the trials that are not events, if not as the claim does.
    in_use : str
        What a monitor watches over, if not the promise as it stands.
    never : str
        What to do where the threshold is above every score, if that is not the rule.
    covers : str
        Which thresholds keep the promise, where not all that are more cautious do.
    instead : str
        What to do where the claim is refused.
    refusals : mapping
        A sentence for each code; all but "zero" may use {unavoidable}.
    warns_of_most : bool
        Whether to say what to do where more than half of the rows are acted on.
    no_use : mapping
        What to say of a threshold at an end: by 0.0, or by +inf.
    group : str
        The line of a group.
    """

    about: str = ""
    rows: str = "rows"
    unit: str = "rows"
    heading: str = ""
    plain: str = ""
    costs: str = ""
    rule: str = ""
    kept: str = ""
    in_use: str = ""
    never: str = ""
    covers: str = ""
    promise: str = ""
    seen: str = ""
    instead: str = ""
    warns_of_most: bool = False
    group: str = "{group}: from {threshold} on; {events} of {trials}, {allowed} allowed."
    refusals: Mapping[str, str] = field(default_factory=dict)
    no_use: Mapping[float, str] = field(default_factory=dict)

    def require_names(self, names: set[str]) -> None:
        """Raise if a template needs what nobody fills in, when the claim is made and not later."""
        known = names | ALWAYS
        known |= {f"often {name}" for name in known}
        plain = (self.heading, self.plain, self.costs)
        said = (*plain, self.about, self.rule, self.in_use, self.promise, self.seen, self.covers)
        texts = (*said, *self.no_use.values())
        unknown = {name for text in texts for name in names_in(text)} - known
        unknown |= (
            {name for text in self.refusals.values() for name in names_in(text)}
            - known
            - IN_REFUSALS
        )
        if unknown:
            raise KeyError(f"{sorted(unknown)} in the words of a claim: nobody fills these in.")


def said(claim: Any, certificate: Any) -> Says:
    """What a certificate of a threshold claim says."""
    words: ClaimWords = certificate.by.procedures[certificate.values["procedure"]].words
    values = certificate.values
    whole = quantities(claim, certificate)
    asked = ", ".join(
        f"{ask.name} {{{ask.name}}}"
        for ask in claim.asks
        if ask.name in whole and ask.default is REQUIRED
    )
    counted = words.about
    if values["scope"] == "overlapping-groups":
        # What the groups hold together says nothing about the rows: some are in several, or none.
        counted = f"{{n}} {words.rows}, {len(values['tables'])} groups that may overlap"
    about = f"{claim.kind.replace('-', ' ').capitalize()} certificate: {counted}"
    look = ", look {look} of {looks_planned}" if values.get("looks") else ""
    title = Sentence(f"{about}, {asked}{look}", whole)
    grouped = values["scope"] != "top"
    lines = tuple(_line(claim, certificate, table) for table in values["tables"]) if grouped else ()
    remedies = tuple(_remedies(claim, certificate, words))
    heading = Sentence(words.heading, whole)
    every = " in every group" if grouped else ""
    if not certificate.certified:
        plain = in_plain_words(certificate, f"{words.plain}{every}", whole, words.rows)
        why = _refused(claim, certificate, words, whole)
        return Says(title, heading, plain, refused=why, groups=lines, notes=remedies)
    filled = {**whole, "confidence": confidence(values["delta"])}
    own = grouped and values.get("group_thresholds") == "own"
    small = left_out(values)
    if any(is_refused(certificate, table) for table in values["tables"]):
        every += " that is not left out" if small and not own else " that is not refused"
    rule = "Each group has its own threshold." if own else words.rule
    if not own and words.never and filled["threshold"].value == inf:
        rule = words.never
    ruled = Sentence(rule, filled)
    return Says(
        title,
        heading,
        in_plain_words(certificate, f"{words.plain}{every}", filled, words.rows),
        _costs(words, filled, values["scope"]),
        ruled if str(ruled) else None,
        Sentence(
            f"With probability at least {{confidence}} over the draw of these {words.rows}, "
            f"{words.promise.rstrip('.')}{every}{_weighing(values)}.",
            filled,
        ),
        seen=() if grouped else (Sentence(f"On these {words.rows}: {words.seen}", filled),),
        groups=lines,
        notes=(
            *([Sentence(words.covers, filled)] if words.covers else []),
            *([_left_out(small, words)] if small else []),
            *(
                Sentence(text, filled)
                for end, text in words.no_use.items()
                if not own and filled["threshold"].value == end
            ),
            *remedies,
        ),
    )


def _costs(words: ClaimWords, filled: Mapping[str, Value], scope: str) -> Sentence | None:
    """What acting on the claim takes, on these rows; None where they do not tell."""
    counted = with_counts(filled)
    if not words.costs or scope == "overlapping-groups" or names_in(words.costs) - counted.keys():
        return None
    return Sentence(f"On these {words.rows}, {words.costs}.", counted)


def _remedies(claim: Any, certificate: Any, words: ClaimWords) -> Iterator[Sentence]:
    """What to change where the result is of little use."""
    if not claim.scored:
        return
    question, trials = claim.question_of(certificate), trials_of(certificate)
    kept = [table for table in certificate.values["tables"] if not is_refused(certificate, table)]
    limits = [table["threshold"] for table in kept]
    # From a threshold that alarms may begin at, the cell just below it breaks the budget.
    decisive = [limit * trials.top - (trials.side == "from") for limit in limits]
    deciding = "turns" if trials.turns else "counts"
    total = sum(int(rows_of(table["counts"], "all").sum()) for table in kept)
    yield from tied_scores([table[deciding] for table in kept], decisive, words.rows, total)
    turned: list[Sentence] = []
    if len(question.outcomes) > 1:
        tables = [table["counts"] for table in certificate.values["tables"]]
        rollouts = question.lowest_cell < 0
        turned = (
            reversed_danger(tables)
            if rollouts
            else reversed_score(tables, question.outcomes, "score")
        )
        yield from turned
    if words.warns_of_most and certificate.certified and not turned:
        yield from flags_most(certificate, _with_more(certificate))


def _with_more(certificate: Any) -> float:
    """The share of all rows that would be flagged if the rates seen were those of use."""
    acted = total = 0
    for table in certificate.values["tables"]:
        search = search_of(certificate, table)
        limit = search.threshold(int(allowed_rate(certificate.values) * search.trials))
        rows = rows_of(table["counts"], "all")
        acted += int(rows[table["counts"]["cells"] >= limit * search.top].sum())
        total += int(rows.sum())
    return acted / total


def _left_out(tables: Sequence[Mapping[str, Any]], words: ClaimWords) -> Sentence:
    """Which groups were left out, and what becomes of their rows."""
    named = ", ".join(printable(str(table["group"])) for table in tables)
    instead = words.instead[0].lower() + words.instead[1:]
    return Sentence(
        f"Left out, for too few {words.unit}: {{named}}. Nothing is certified there: {instead}",
        {"named": named},
    )


def _weighing(values: Mapping[str, Any]) -> str:
    """What a share weighs, where one trial of each cluster was drawn."""
    drawn = values["drawn"]
    once = drawn is not None and drawn.among and drawn.bound is None
    every = " in every group" if once and drawn.apart else ""
    return f", if each cluster that has any counts once{every}" if once else ""


def quantities(
    claim: Any, certificate: Any, table: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """The quantities of a table, or of all of them together."""
    values, trials = certificate.values, trials_of(certificate)
    tables = values["tables"] if table is None else [table]
    acted = dict.fromkeys((*claim.question_of(certificate).outcomes_of_a_row, "all"), 0)
    total, events, number, lost = dict(acted), 0, 0, 0
    weights = stands_for(values)
    for part in tables:
        counts, limit = part["counts"], part["threshold"]
        above = counts["cells"] >= limit * trials.top
        search = search_of(certificate, part)
        number += search.trials
        events += search.events_at(limit)
        for name in acted:
            rows = rows_of(counts, name, weights)
            acted[name] += rows[above].sum()
            total[name] += rows.sum()
        lost += int(rows_of(counts, "all")[counts["cells"] == LOST].sum())
    shares: dict[str, Value] = {
        name: share(acted[name] / total[name]) if total[name] else "none" for name in acted
    }
    limit = common_threshold(certificate) if table is None else table["threshold"]
    asked = {
        ask.name: "" if values.get(ask.name) is None else ask.said(values[ask.name])
        for ask in claim.asks
    }
    plan: dict[str, Value] = {}
    if values.get("looks"):
        plan = {"look": count(certificate.look), "looks_planned": count(len(values["looks"]))}
    return {
        **shares,
        **plan,
        "n": count(values["n"]),
        "trials": count(number),
        "events": count(events),
        "allowed": count(sum(max(0, part["allowed"]) for part in tables)),
        "threshold": Quantity(limit, "threshold", trials.rounding),
        "lost": count(lost),
        **asked,
    }


def _line(claim: Any, certificate: Any, table: Mapping[str, Any]) -> Sentence:
    words: ClaimWords = certificate.by.procedures[certificate.values["procedure"]].words
    filled = {**quantities(claim, certificate, table), "group": printable(str(table["group"]))}
    if not is_refused(certificate, table):
        alone = "{group}: can be certified by itself."
        return Sentence(words.group if certificate.certified else alone, filled)
    refusal = claim.refusal(certificate, table)
    why = _why(words, refusal)
    # Without a certificate the same is said of all groups.
    instead = f" {words.instead}" if certificate.certified else ""
    verdict = "left out" if is_left_out(certificate.values, table) else "REFUSED"
    return Sentence(f"{{group}}: {verdict}: {why}{instead}", {**filled, **_numbers(refusal)})


def _refused(
    claim: Any, certificate: Any, words: ClaimWords, filled: Mapping[str, Value]
) -> tuple[Sentence, ...]:
    values = certificate.values
    tables = values["tables"]
    if len(tables) > 1:
        refused = [table for table in tables if is_refused(certificate, table)]
        # Where some were left out, only the others can be to blame.
        blamed = [table for table in refused if not is_left_out(values, table)] or refused
        named = ", ".join(printable(str(table["group"])) for table in blamed)
        why = Sentence(
            "{refused} of {groups} groups cannot be certified: {named}.",
            {"refused": count(len(blamed)), "groups": count(len(tables)), "named": named},
        )
        small = all(table["allowed"] < 0 for table in refused) and len(refused) < len(tables)
        remedy = [Sentence(LEAVE_OUT.format(unit=words.unit, wrong="goes wrong"))] if small else []
        return why, *remedy, Sentence(words.instead)
    refusal: NoThreshold = claim.refusal(certificate, tables[0])
    planned = certificate.values.get("looks") is not None
    numbers = {**filled, **_numbers(refusal)}
    return (
        Sentence(_why(words, refusal), numbers),
        Sentence(f"{_remedy(refusal, words.unit, planned=planned)} {words.instead}", numbers),
        Sentence("A refusal does not show that the model is bad."),
    )


def _why(words: ClaimWords, refusal: NoThreshold) -> str:
    return _ALWAYS_SAID.get(refusal.code) or words.refusals[refusal.code]


def _numbers(refusal: NoThreshold) -> dict[str, Value]:
    return {"unavoidable": count(refusal.unavoidable), "needed": count(refusal.needed or 0)}


def _remedy(refusal: NoThreshold, unit: str, *, planned: bool) -> str:
    if refusal.code in _ALWAYS_SAID:
        return ""
    if planned:
        # A plan is fixed: what helps is one of its later looks.
        same = "if that share stays the same" if refusal.unavoidable else "if none goes wrong"
        if refusal.needed is None:
            return f"No later look passes {same}, and looks cannot be added."
        return f"The look at {{needed}} {unit} passes {same}."
    if refusal.needed is None:
        return f"More {unit} cannot help."
    if refusal.unavoidable:
        return f"About {{needed}} {unit} would do if that share stays the same; plan for more."
    return f"{{needed}} {unit} would do if none goes wrong; plan for more."
