"""The sentences of a claim about the rows that reach a threshold: templates that its module
declares, filled with quantities.

All may use what was asked for by its name, {n}, {groups}, {threshold}, {acted} (how many rows reach
it), {coverage} (their share), {events} of these and {rate} (their share), {kept} the rest of them
and {kept_rate}. Sentences about refusals may use {needed}, {nearest}, {answered} and {wrong} (the
closest call), {heavy} and {heavy_at}, {base} (the share of events among all rows) and {left}. The
claim is not monotone in the threshold, so a threshold is shown with all its digits.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import isfinite
from typing import Any

from pacbound.asks import REQUIRED
from pacbound.documents import printable
from pacbound.procedures.abstention_walk import NothingPassed
from pacbound.says import Quantity, Says, Sentence, Value, confidence, count, names_in, share

OF_TABLES = ("n", "groups", "group", "threshold", "acted", "coverage", "events", "rate")
KEPT = ("kept", "kept_rate")
OF_REFUSALS = ("needed", "nearest", "answered", "wrong", "heavy", "heavy_at", "base", "left")
FILLED = frozenset([*OF_TABLES, *KEPT, *OF_REFUSALS])
UNEXPLAINED = "The counts in this file do not lead to a refusal, or they would take long to follow."
NO_PROOF = "A refusal does not show that the model is bad."


@dataclass(frozen=True)
class WalkWords:
    """The sentences of a claim, and the words of its figure and of its explorer.

    Attributes
    ----------
    rule, rule_of_groups, always : str
        What to do; where each group has its own threshold; and where the threshold is 0.
    promise, promise_of_groups : str
        What is certified.
    seen : str
        What was seen on these rows.
    group, never : str
        The line of a group, and of one that was refused, before the reason.
    instead : str
        What to do where the claim is refused.
    refusals : mapping
        A sentence for each code of a refusal, "heavy" for scores that are tied at the top, and
        "base" for more events among all rows than are allowed.
    title : str
        The title of the figure.
    coverage, rate : tuple of str
        For either axis of the figure: a short name, and the words of the axis.
    told : tuple of str
        What the explorer shows beside the threshold: the share of rows, and the rate among them.
    """

    rule: str
    rule_of_groups: str
    always: str
    promise: str
    promise_of_groups: str
    seen: str
    group: str
    never: str
    instead: str
    refusals: Mapping[str, str]
    title: str
    coverage: tuple[str, str]
    rate: tuple[str, str]
    told: tuple[str, str] = field(default=("", ""))

    def require_names(self, asked: set[str]) -> None:
        """Raise if a template needs what nobody fills in, when the claim is made and not later."""
        texts = [text for text in vars(self).values() if isinstance(text, str)]
        unknown = {name for text in (*texts, *self.refusals.values()) for name in names_in(text)}
        if unknown - asked - FILLED:
            raise KeyError(f"{sorted(unknown - asked - FILLED)}: nobody fills these in.")


def said(claim: Any, certificate: Any) -> Says:
    """What a certificate says."""
    words: WalkWords = claim.words
    values, tables = certificate.values, certificate.values["tables"]
    whole = quantities(claim, certificate, tables)
    grouped = values["scope"] != "top"
    asked = ", ".join(f"{ask.name} {{{ask.name}}}" for ask in claim.asks if ask.default is REQUIRED)
    in_groups = " in {groups} groups" if grouped else ""
    pooled = ", starts from a pool" if "starts" in tables[0] else ""
    name = claim.kind.replace("-", " ").capitalize()
    title = Sentence(f"{name} certificate: {{n}} rows{in_groups}, {asked}{pooled}", whole)
    lines = tuple(_line(claim, certificate, table) for table in tables) if grouped else ()
    if not certificate.certified:
        return Says(title, refused=_refused(claim, certificate, whole), groups=lines)
    filled = {**whole, "confidence": confidence(values["delta"])}
    rule = words.rule_of_groups if grouped else words.rule
    promise = words.promise_of_groups if grouped else words.promise
    return Says(
        title,
        Sentence(words.always if not grouped and tables[0]["threshold"] == 0 else rule, filled),
        Sentence(
            f"With probability at least {{confidence}} over the draw of these rows, {promise}.",
            filled,
        ),
        seen=(Sentence(f"On these rows: {words.seen}", filled),),
        groups=lines,
    )


def quantities(
    claim: Any, certificate: Any, tables: Sequence[Mapping[str, Any]]
) -> dict[str, Value]:
    """The quantities of some tables together."""
    values = certificate.values
    acted, events = (sum(claim.reached(table)[place] for table in tables) for place in (0, 1))
    rows = sum(claim.rows_of(table) for table in tables)
    asked = {ask.name: ask.said(values[ask.name]) for ask in claim.asks if ask.name in values}
    return {
        **asked,
        "n": count(rows),
        "groups": count(len(tables)),
        "threshold": _exact(tables[0]["threshold"]),
        "acted": count(acted),
        "coverage": share(acted / rows),
        "events": count(events),
        "rate": share(events / acted) if acted else "none",
        "kept": count(acted - events),
        "kept_rate": share(1 - events / acted) if acted else "none",
    }


def _line(claim: Any, certificate: Any, table: Mapping[str, Any]) -> Sentence:
    words: WalkWords = claim.words
    filled = {**quantities(claim, certificate, [table]), "group": printable(str(table["group"]))}
    if table["claimed"]:
        return Sentence(words.group, filled)
    refusal = certificate.refusals[table["group"]]
    text = f"{words.never} {_why(claim, refusal, certificate)} {_remedy(refusal)}".rstrip()
    return Sentence(text, {**filled, **_numbers(claim, refusal, certificate)})


def _refused(claim: Any, certificate: Any, whole: Mapping[str, Value]) -> tuple[Sentence, ...]:
    words: WalkWords = claim.words
    tables = certificate.values["tables"]
    if tables[0]["group"] is not None:
        text = "None of {groups} groups can be certified; each says below why. " + words.instead
        return Sentence(text, whole), Sentence(NO_PROOF)
    refusal = certificate.refusals[None]
    filled = {**whole, **_numbers(claim, refusal, certificate)}
    remedy = f"{_remedy(refusal)} {words.instead}".lstrip()
    why = Sentence(_why(claim, refusal, certificate), filled)
    return why, Sentence(remedy, filled), Sentence(NO_PROOF)


def _why(claim: Any, refusal: NothingPassed, certificate: Any) -> str:
    refusals = claim.words.refusals
    if refusal.code not in refusals:
        return UNEXPLAINED
    beside = ["heavy"] * (refusal.heavy > 0) + ["base"] * _is_too_bad(claim, refusal, certificate)
    more = beside if refusal.code == "no-pass" else []
    return " ".join(refusals[code] for code in (refusal.code, *more))


def _is_too_bad(claim: Any, refusal: NothingPassed, certificate: Any) -> bool:
    """Whether more of all rows are events than may be, so that some must be left out."""
    return bool(refusal.errors > claim.rate(certificate.values) * refusal.rows)


def _remedy(refusal: NothingPassed) -> str:
    if refusal.code == "unexplained":
        return ""
    if refusal.needed is None:
        return "More rows cannot help."
    if refusal.code == "too-few":
        return "{needed} rows would do if none goes wrong; plan for more."
    return "About {needed} rows would do if they are like these; plan for more."


def _numbers(claim: Any, refusal: NothingPassed, certificate: Any) -> dict[str, Value]:
    base = refusal.errors / max(refusal.rows, 1)
    rate = claim.rate(certificate.values)
    return {
        "needed": count(refusal.needed or 0),
        "nearest": _exact(refusal.nearest),
        "answered": count(refusal.answered),
        "wrong": count(refusal.wrong),
        "heavy": count(refusal.heavy),
        "heavy_at": _exact(refusal.heavy_at),
        "base": share(base),
        "left": share(max(0.0, (base - rate) / (1 - rate))),
    }


def _exact(threshold: float) -> Value:
    return Quantity(threshold, "threshold", "exact") if isfinite(threshold) else "+inf"
