"""The sentences of a rate: templates that its module declares, filled with quantities.

All may use what was asked for by its name, {n}, {trials}, {events}, {allowed} and {threshold}; and,
by the name of an outcome, the share of its rows from the threshold on, such as {positive}. {all} is
that of all rows, {lost} how many rollouts were lost. Where the trials are the rows that reach the
threshold, {shown} of them are what the claim asks for, a share {rate}; {each} is " of each group"
where there are groups, {as_graded} says by whom, {asked} is the rate and {event} what goes wrong.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from math import inf, isinf
from typing import Any

from pacbound.claims.assumptions import as_graded, counted_once, in_plain_words
from pacbound.claims.rates import (
    Refusal,
    common_threshold,
    is_left_out,
    is_refused,
    left_out,
    rate_of,
    rows_of,
    search_of,
    stands_for,
)
from pacbound.claims.remedies import (
    WORST,
    flags_most,
    hides_rare_answers,
    reversed_danger,
    reversed_score,
    tied_scores,
)
from pacbound.claims.tables import LEAVE_OUT
from pacbound.documents import printable
from pacbound.forms import REQUIRED, allowed_rate
from pacbound.procedures.abstention import NothingPassed
from pacbound.procedures.threshold import LOST, SLOW, UNEXPLAINED
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

_COUNTED = {"n", "rows", "trials", "events", "allowed", "threshold", "all", "lost"}
_OF_SOME = {"look", "looks_planned", "shown", "rate", "each", "groups", "as_graded"}
ALWAYS = _COUNTED | _OF_SOME | {"asked", "event"}
_ALWAYS_SAID = {
    UNEXPLAINED: "The counts in this file do not lead to a refusal: it was changed.",
    SLOW: "The counts do not support the claim. To compute why would take long.",
}
# Codes that are said as others where a claim has no sentence of its own for them.
_SAID_AS = {"hopeless": "unavoidable"}
IN_REFUSALS = frozenset(
    ["unavoidable", "needed", "nearest", "answered", "wrong", "base", "left", "lacks"]
)
_NO_PROOF = Sentence("A refusal does not show that the model is bad.")


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
    graded : str
        What is certified where answers are graded, if they may be; plain words of it, too.
    act : str
        What a row is called that the claim picks by its score: "answered".
    kept : str
        What the figure calls the trials that are not events, if not as the claim does.
    in_use : str
        What a monitor watches over, if not the promise as it stands.
    never, always : str
        What to do where the threshold is above every score, or below, if that is not the rule.
    covers : str
        Which thresholds keep the promise, where not all that are more cautious do.
    instead : str
        What to do where the claim is refused.
    refusals : mapping
        A sentence for each code; all but "zero" may use {unavoidable}. Where no threshold passes,
        "base" says more of too high a rate of all rows.
    harmless : str
        What of so few trials that would do.
    warns_of_most, hides_rare : bool
        Whether to say what to do where more than half of the rows are acted on; or nearly all, of
        which rare answers may be wrong more often.
    no_use : mapping
        What to say of a threshold at an end: by 0.0, or by +inf.
    group : str
        The line of a group.
    numbers : tuple of pairs
        What a table of numbers shows of what was decided, by the names of quantities.
    """

    about: str = ""
    rows: str = "rows"
    unit: str = "rows"
    heading: str = ""
    plain: str = ""
    costs: str = ""
    rule: str = ""
    graded: str = ""
    act: str = ""
    kept: str = ""
    in_use: str = ""
    never: str = ""
    always: str = ""
    covers: str = ""
    promise: str = ""
    seen: str = ""
    instead: str = ""
    harmless: str = "none goes wrong"
    warns_of_most: bool = False
    hides_rare: bool = False
    group: str = "{group}: from {threshold} on; {events} of {trials}, {allowed} allowed."
    refusals: Mapping[str, str] = field(default_factory=dict)
    no_use: Mapping[float, str] = field(default_factory=dict)
    numbers: tuple[tuple[str, str], ...] = (
        ("Counted against the claim", "events"),
        ("Allowed against the claim", "allowed"),
    )

    def require_names(self, names: set[str]) -> None:
        """Raise if a template needs what nobody fills in, when the claim is made and not later."""
        known = names | ALWAYS
        known |= {f"often {name}" for name in known}
        plain = (self.heading, self.plain, self.costs, self.graded)
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


def words_of(certificate: Any) -> ClaimWords:
    """The sentences of the procedure that decided."""
    found: ClaimWords = certificate.by.procedures[certificate.values["procedure"]].words
    return found


def said(claim: Any, certificate: Any) -> Says:
    """What a certificate of a rate says."""
    words, values, rate = words_of(certificate), certificate.values, rate_of(certificate)
    whole, graded = quantities(claim, certificate), certificate.graded
    asked = ", ".join(
        f"{ask.name} {{{ask.name}}}"
        for ask in claim.asks
        if ask.name in whole and ask.default is REQUIRED
    )
    grouped = values["scope"] != "top"
    counted = words.about
    if values["scope"] == "overlapping-groups":
        # What the groups hold together says nothing about the rows: some are in several, or none.
        counted = f"{{n}} {words.rows}, {{groups}} groups that may overlap"
    elif rate.reached and grouped:
        counted += " in {groups} groups"
    about = f"{claim.kind.replace('-', ' ').capitalize()} certificate: {counted}"
    look = ", look {look} of {looks_planned}" if values.get("looks") else ""
    title = Sentence(f"{about}, {asked}{look}", whole)
    lines = tuple(_line(claim, certificate, table) for table in values["tables"]) if grouped else ()
    remedies = tuple(_remedies(claim, certificate, words))
    heading = Sentence(words.heading, whole)
    every = " in every group" if grouped and not rate.reached else ""
    clause = words.plain if graded is None else words.graded
    if not certificate.certified:
        plain = in_plain_words(certificate, f"{clause}{every}", whole, words.rows)
        why = _refused(certificate, words, whole)
        return Says(title, heading, plain, refused=why, groups=lines, notes=remedies)
    filled = {**whole, "confidence": confidence(values["delta"])}
    own, limit = grouped and rate.own(values), common_threshold(certificate)
    small = left_out(values)
    if every and any(is_refused(certificate, table) for table in values["tables"]):
        every += " that is not left out" if small and not own else " that is not refused"
    rule = words.rule
    if own and not rate.reached:
        rule = "Each group has its own threshold."
    elif not own:
        rule = {inf: words.never, 0.0: words.always}.get(limit) or rule
    ruled = Sentence(rule, filled)
    promise = (words.promise if graded is None else words.graded).rstrip(".")
    return Says(
        title,
        heading,
        in_plain_words(certificate, f"{clause}{every}", filled, words.rows),
        _costs(words, filled, values["scope"]),
        ruled if str(ruled) else None,
        Sentence(
            f"With probability at least {{confidence}} over the draw of these {words.rows}, "
            f"{promise}{every}{_weighing(certificate, words)}.",
            filled,
        ),
        seen=()
        if grouped and not rate.reached
        else (Sentence(f"On these {words.rows}: {words.seen}", filled),),
        groups=lines,
        notes=(
            *([Sentence(words.covers, filled)] if words.covers else []),
            *([_left_out(small, words)] if small else []),
            *(
                Sentence(text, filled)
                for end, text in words.no_use.items()
                if not own and limit == end
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
    question, rate = claim.question_of(certificate), rate_of(certificate)
    values, all_tables = certificate.values, certificate.values["tables"]
    tables = [table["counts"] for table in all_tables]
    if not rate.reached:
        kept = [table for table in all_tables if not is_refused(certificate, table)]
        limits = [table["threshold"] for table in kept]
        # From a threshold that alarms may begin at, the cell just below it breaks the budget.
        decisive = [limit * rate.top - (rate.side == "from") for limit in limits]
        deciding = [table["turns" if rate.turns else "counts"] for table in kept]
        total = sum(int(rows_of(table["counts"], "all").sum()) for table in kept)
        yield from tied_scores(deciding, decisive, words.rows, total)
    turned: list[Sentence] = []
    if len(question.outcomes) > 1 and certificate.graded is None:
        turned = (
            reversed_danger(tables)
            if question.lowest_cell < 0
            else reversed_score(tables, question.outcomes, question.columns[0].name)
        )
        yield from turned
    if words.warns_of_most and certificate.certified and not turned:
        yield from flags_most(certificate, _with_more(certificate))
    if words.hides_rare and certificate.certified and values["scope"] == "top":
        worst = certificate.provenance.notes.get(WORST)
        yield from hides_rare_answers(
            certificate.trials, certificate.number(), worst, allowed_rate(values)
        )


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


def _weighing(certificate: Any, words: ClaimWords) -> str:
    """What a share weighs, where one trial, or one row, of each cluster was drawn."""
    drawn = certificate.draw
    if words.act:
        return counted_once(drawn, words.act)
    once = drawn is not None and drawn.among and drawn.bound is None
    every = " in every group" if once and drawn.apart else ""
    return f", if each cluster that has any counts once{every}" if once else ""


def quantities(
    claim: Any, certificate: Any, table: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """The quantities of a table, or of all of them together."""
    values, rate = certificate.values, rate_of(certificate)
    tables = values["tables"] if table is None else [table]
    acted = dict.fromkeys((*claim.question_of(certificate).outcomes_of_a_row, "all"), 0)
    total, events, trials, lost, counted = dict(acted), 0, 0, 0, 0
    weights = stands_for(values)
    for part in tables:
        counts, limit = part["counts"], part["threshold"]
        above = counts["cells"] >= limit * rate.top
        search = search_of(certificate, part)
        trials += search.trials
        events += search.events_at(limit)
        for name in acted:
            rows = rows_of(counts, name, weights)
            acted[name] += rows[above].sum()
            total[name] += rows.sum()
        each = rows_of(counts, "all")
        counted += int(each.sum())
        lost += int(each[counts["cells"] == LOST].sum())
    shares: dict[str, Value] = {
        name: share(acted[name] / total[name]) if total[name] else "none" for name in acted
    }
    grouped, shown = values["scope"] != "top", trials - events if "target" in values else events
    limit = common_threshold(certificate) if table is None else table["threshold"]
    several = grouped and table is None and rate.reached
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
        "rows": count(counted),
        "groups": count(len(tables)),
        "each": " of each group" if grouped else "",
        "as_graded": as_graded(certificate.graded),
        "asked": asked[claim.asks[0].name],
        "event": rate.events,
        "trials": count(trials),
        "events": count(int(events)),
        "shown": count(int(shown)),
        "rate": share(shown / trials) if trials else "none",
        "allowed": count(sum(max(0, part.get("allowed", 0)) for part in tables)),
        "threshold": "the threshold of its group" if several else _limit(limit, rate),
        "lost": count(lost),
        **asked,
    }


def _limit(limit: float, rate: Any) -> Value:
    return "+inf" if rate.reached and isinf(limit) else Quantity(limit, "threshold", rate.rounding)


def _line(claim: Any, certificate: Any, table: Mapping[str, Any]) -> Sentence:
    words, values = words_of(certificate), certificate.values
    filled = {**quantities(claim, certificate, table), "group": printable(str(table["group"]))}
    if not is_refused(certificate, table):
        alone = "{group}: can be certified by itself."
        return Sentence(words.group if certificate.certified else alone, filled)
    refusal = certificate.refusals[table["group"]]
    why, filled = _why(words, refusal, values), {**filled, **_numbers(refusal, values)}
    if words.act:
        remedy = _remedy(refusal, words, planned=False)
        return Sentence(f"{{group}}: never {words.act}. {why} {remedy}".rstrip(), filled)
    # Without a certificate the same is said of all groups.
    instead = f" {words.instead}" if certificate.certified else ""
    verdict = "left out" if is_left_out(values, table) else "REFUSED"
    return Sentence(f"{{group}}: {verdict}: {why}{instead}", filled)


def _refused(
    certificate: Any, words: ClaimWords, filled: Mapping[str, Value]
) -> tuple[Sentence, ...]:
    values = certificate.values
    tables = values["tables"]
    if words.act and values["scope"] != "top":
        text = "None of {groups} groups can be certified; each says below why. " + words.instead
        return Sentence(text, filled), _NO_PROOF
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
    refusal = certificate.refusal
    planned = values.get("looks") is not None
    numbers = {**filled, **_numbers(refusal, values)}
    return (
        Sentence(_why(words, refusal, values), numbers),
        Sentence(f"{_remedy(refusal, words, planned=planned)} {words.instead}".lstrip(), numbers),
        _NO_PROOF,
    )


def _why(words: ClaimWords, refusal: Refusal, values: Mapping[str, Any]) -> str:
    codes = (refusal.code, _SAID_AS.get(refusal.code, ""))
    why = next(
        said[code] for said in (_ALWAYS_SAID, words.refusals) for code in codes if code in said
    )
    if not isinstance(refusal, NothingPassed) or refusal.code != "no-pass":
        return why
    too_many = refusal.errors > allowed_rate(values) * refusal.rows
    return f"{why} {words.refusals['base']}" if too_many else why


def _numbers(refusal: Refusal, values: Mapping[str, Any]) -> dict[str, Value]:
    found = {name: value for name, value in asdict(refusal).items() if name != "code"}
    nearest = found.pop("nearest", inf)
    numbers: dict[str, Value] = {name: count(int(value or 0)) for name, value in found.items()}
    if not isinstance(refusal, NothingPassed):
        return numbers
    base, rate = refusal.errors / max(refusal.rows, 1), allowed_rate(values)
    return {
        **numbers,
        "nearest": Quantity(nearest, "threshold", "exact"),
        "base": share(base),
        "lacks": share(refusal.wrong / max(refusal.answered, 1)),
        "left": share(max(0.0, (base - rate) / (1 - rate))),
    }


def _remedy(refusal: Refusal, words: ClaimWords, *, planned: bool) -> str:
    unit, stuck = words.unit, getattr(refusal, "unavoidable", 0)
    if refusal.code in _ALWAYS_SAID:
        return ""
    if planned:
        # A plan is fixed: what helps is one of its later looks.
        same = "if that share stays the same" if stuck else "if none goes wrong"
        if refusal.needed is None:
            return f"No later look passes {same}, and looks cannot be added."
        return f"The look at {{needed}} {unit} passes {same}."
    if refusal.needed is None:
        return f"More {unit} cannot help."
    if stuck:
        return f"About {{needed}} {unit} would do if that share stays the same; plan for more."
    if refusal.code == "no-pass":
        return f"About {{needed}} {unit} would do if they are like these; plan for more."
    return f"{{needed}} {unit} would do if {words.harmless}; plan for more."
