"""The sentences of a claim about the rows that reach a threshold: a few words that its module
declares, in templates that all such claims share, filled with quantities.

What is declared may use what was asked for by its name, {threshold}, {each}, which is " of each
group" where there are groups, and {as_graded}, by whom. The claim is not monotone in the threshold,
so a threshold is shown with all its digits.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import isfinite
from typing import Any

from pacbound.claims.assumptions import as_graded, counted_once, drawn_over, in_plain_words
from pacbound.claims.remedies import WORST, hides_rare_answers, reversed_score
from pacbound.documents import printable
from pacbound.forms import REQUIRED, allowed_rate
from pacbound.procedures.abstention import NothingPassed
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

UNEXPLAINED = "The counts in this file do not lead to a refusal, or they would take long to follow."
NO_PROOF = "A refusal does not show that the model is bad."
SEEN = "{acted} are {act} ({coverage}), {shown} of them {as} ({rate})."
OF_GROUP = "{group}: from {threshold} on; {acted} of {n} rows are {act}, {shown} of them {as}."
ALWAYS = "Every row is {act}: no score is below 0, the threshold."
# A sentence for each code of a refusal; "base" says more where no threshold passes.
REFUSALS = {
    "zero": "No number of rows can certify that nothing goes wrong.",
    "too-few": "{n} rows cannot certify {asked}, even if none of them is {event}.",
    "no-pass": "No threshold passes. The closest call: from {nearest} on, {wrong} of {answered} "
    "rows are {event}.",
    "base": "{base} of all rows are {event}: at that rate at least {left} of them must be left "
    "out, whatever the scores.",
}


@dataclass(frozen=True)
class WalkWords:
    """The words of a claim.

    Attributes
    ----------
    heading : str
        The claim in a few words.
    plain : str
        What is certified, in plain words, with shares as people count.
    act : str
        What a row is that reaches the threshold: "answered".
    shown : str
        The outcome that is shown of these rows: "wrong", or "positive".
    rule, promise : str
        What to do, and what is certified.
    instead : str
        What to do where the claim is refused.
    title : str
        The title of the figure.
    coverage, rate : tuple of str
        For either axis of the figure: a short name, and the words of the axis.
    graded : str
        What is certified where answers are graded, if they may be; plain words of it, too.
    hides_rare : bool
        Whether rows that are acted on are answers, of which rare ones may be wrong more often.
    """

    heading: str
    plain: str
    act: str
    shown: str
    rule: str
    promise: str
    instead: str
    title: str
    coverage: tuple[str, str]
    rate: tuple[str, str]
    graded: str = ""
    hides_rare: bool = False

    @property
    def told(self) -> tuple[str, str]:
        """What is shown beside a threshold: the share of rows, and the rate among them."""
        return f"Rows {self.act}", f"{self.shown.capitalize()} among these"

    def require_names(self, asked: set[str]) -> None:
        """Raise if a template needs what nobody fills in, when the claim is made and not later."""
        texts = (self.heading, self.plain, self.rule, self.promise, self.graded)
        named = {name.removeprefix("often ") for text in texts for name in names_in(text)}
        unknown = named - asked - {"threshold", "each", "as_graded"}
        if unknown:
            raise KeyError(f"{sorted(unknown)}: nobody fills these in.")


def said(claim: Any, certificate: Any) -> Says:
    """What a certificate says."""
    words: WalkWords = claim.words
    values, tables = certificate.values, certificate.values["tables"]
    whole = quantities(claim, certificate, tables)
    grouped = values["scope"] != "top"
    asked = ", ".join(f"{ask.name} {{{ask.name}}}" for ask in claim.asks if ask.default is REQUIRED)
    in_groups = " in {groups} groups" if grouped else ""
    name = claim.kind.replace("-", " ").capitalize()
    title = Sentence(f"{name} certificate: {{n}} rows{in_groups}, {asked}", whole)
    lines = tuple(_line(claim, certificate, table) for table in tables) if grouped else ()
    outcomes, role = claim.question.outcomes, claim.question.columns[0].name
    notes = reversed_score([table["counts"] for table in tables], outcomes, role)
    graded = certificate.graded
    whole["as_graded"] = as_graded(graded)
    heading = Sentence(words.heading, whole)
    clause = words.plain if graded is None else words.graded
    plain = in_plain_words(certificate, clause, whole)
    if not certificate.certified:
        why = _refused(claim, certificate, whole)
        return Says(title, heading, plain, refused=why, groups=lines, notes=tuple(notes))
    if words.hides_rare and not grouped:
        reached, rows = claim.reached(tables[0])[0], claim.rows_of(tables[0])
        worst = certificate.provenance.notes.get(WORST)
        notes += hides_rare_answers(reached, rows, worst, float(allowed_rate(values)))
    filled = with_counts({**whole, "confidence": confidence(values["delta"])})
    always = not grouped and tables[0]["threshold"] == 0
    return Says(
        title,
        heading,
        plain,
        Sentence("On these rows, {often coverage} rows are {act}.", filled),
        Sentence(ALWAYS if always else words.rule, filled),
        Sentence(
            f"With probability at least {{confidence}} {drawn_over(graded)}, "
            f"{words.promise if graded is None else words.graded}"
            f"{counted_once(certificate.draw, words.act)}.",
            filled,
        ),
        seen=(Sentence(f"On these rows: {SEEN}", filled),),
        groups=lines,
        notes=tuple(notes),
    )


def quantities(
    claim: Any, certificate: Any, tables: Sequence[Mapping[str, Any]]
) -> dict[str, Value]:
    """The quantities of some tables together, and the words that go with them."""
    values, words = certificate.values, claim.words
    acted, events = (sum(claim.reached(table)[place] for table in tables) for place in (0, 1))
    rows = sum(claim.rows_of(table) for table in tables)
    shown = events if claim.shows_events else acted - events
    asked = {ask.name: ask.said(values[ask.name]) for ask in claim.asks if ask.name in values}
    several = len(tables) > 1 or values["scope"] != "top"
    return {
        **asked,
        "asked": asked[claim.asks[0].name],
        "n": count(rows),
        "groups": count(len(tables)),
        "each": " of each group" if values["scope"] != "top" else "",
        "threshold": "the threshold of its group" if several else _exact(tables[0]["threshold"]),
        "acted": count(acted),
        "coverage": share(acted / rows),
        "shown": count(shown),
        "rate": share(shown / acted) if acted else "none",
        "act": words.act,
        "as": words.shown,
        "event": claim.event,
    }


def _line(claim: Any, certificate: Any, table: Mapping[str, Any]) -> Sentence:
    filled = {
        **quantities(claim, certificate, [table]),
        "group": printable(str(table["group"])),
        "threshold": _exact(table["threshold"]),
    }
    if table["claimed"]:
        return Sentence(OF_GROUP, filled)
    refusal = certificate.refusals[table["group"]]
    why = f"{_why(refusal, certificate)} {_remedy(refusal)}".rstrip()
    numbers = _numbers(refusal, certificate)
    return Sentence(f"{{group}}: never {{act}}. {why}", {**filled, **numbers})


def _refused(claim: Any, certificate: Any, whole: Mapping[str, Value]) -> tuple[Sentence, ...]:
    words: WalkWords = claim.words
    if certificate.values["scope"] != "top":
        text = "None of {groups} groups can be certified; each says below why. " + words.instead
        return Sentence(text, whole), Sentence(NO_PROOF)
    refusal = certificate.refusals[None]
    filled = {**whole, **_numbers(refusal, certificate)}
    remedy = f"{_remedy(refusal)} {words.instead}".lstrip()
    why = Sentence(_why(refusal, certificate), filled)
    return why, Sentence(remedy, filled), Sentence(NO_PROOF)


def _why(refusal: NothingPassed, certificate: Any) -> str:
    if refusal.code not in REFUSALS:
        return UNEXPLAINED
    too_many = refusal.errors > allowed_rate(certificate.values) * refusal.rows
    more = ["base"] if refusal.code == "no-pass" and too_many else []
    return " ".join(REFUSALS[code] for code in (refusal.code, *more))


def _remedy(refusal: NothingPassed) -> str:
    if refusal.code == "unexplained":
        return ""
    if refusal.needed is None:
        return "More rows cannot help."
    if refusal.code == "too-few":
        return "{needed} rows would do if none of them is {event}; plan for more."
    return "About {needed} rows would do if they are like these; plan for more."


def _numbers(refusal: NothingPassed, certificate: Any) -> dict[str, Value]:
    base = refusal.errors / max(refusal.rows, 1)
    rate = allowed_rate(certificate.values)
    return {
        "needed": count(refusal.needed or 0),
        "nearest": _exact(refusal.nearest),
        "answered": count(refusal.answered),
        "wrong": count(refusal.wrong),
        "base": share(base),
        "left": share(max(0.0, (base - rate) / (1 - rate))),
    }


def _exact(threshold: float) -> Value:
    return Quantity(threshold, "threshold", "exact") if isfinite(threshold) else "+inf"
