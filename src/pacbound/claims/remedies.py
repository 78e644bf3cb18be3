"""After a result that is of little use: what to change, and what that costs.

Everything follows from the counts of the certificate itself, and none of it is certified.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from math import sqrt
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from pacbound.says import Sentence, count, share
from pacbound.stats.binomial import binomial_lower

Counts = Mapping[str, NDArray[np.int64]]

# A score seems reversed if fewer pairs than this are in order, and by more than chance explains.
FEW_IN_ORDER: Final = 0.4
NOT_BY_CHANCE: Final = 4.0
# Rows with the same score are too many if they are so large a share of all.
MANY_TIED: Final = 0.2
# Nearly all rows are answered.
NEARLY_ALL: Final = 0.95
# An answer is worse than others if its rate surely is, up to this chance of error.
SURELY: Final = 0.05
# The note of a provenance about the answer that is wrong most often, and the most of its name.
WORST: Final = "worst_answer"
LONGEST_ANSWER: Final = 200
# An interval that is wider is of little use.
WIDE: Final = 0.2


def reversed_score(tables: Iterable[Counts], outcomes: Sequence[str], role: str) -> list[Sentence]:
    """What to do about a score that is lower for the second of two outcomes, which should score
    high, than for the first.
    """
    low, high = outcomes
    ordered = _in_order(tables, low, high)
    text = (
        f"The {role} seems to be reversed: a {high} row scores above a {low} one in only "
        f"{{ordered}} of all pairs. If so, pass 1 - {role}; that takes fresh rows."
    )
    return [] if ordered is None else [Sentence(text, {"ordered": share(ordered)})]


def reversed_danger(tables: Iterable[Counts]) -> list[Sentence]:
    """What to do about a danger that safe rollouts reach sooner than unsafe ones."""
    # A lost rollout has no danger.
    read = [
        {name: column[counts["cells"] >= 0] for name, column in counts.items()} for counts in tables
    ]
    ordered = _in_order(read, "safe", "unsafe")
    text = (
        "The danger ranks rollouts the wrong way round: an unsafe one reaches a higher danger than "
        "a safe one in only {ordered} of all pairs, so that safe ones are stopped first. If it "
        "says how safe a state is, pass 1 - danger, with fresh rollouts; else train another."
    )
    return [] if ordered is None else [Sentence(text, {"ordered": share(ordered)})]


def _in_order(tables: Iterable[Counts], low: str, high: str) -> float | None:
    """The share of pairs in which the row that should score higher does, if it is low, by more than
    chance explains; else None.
    """
    ordered, pairs, variance = 0.0, 0.0, 0.0
    for counts in tables:
        up, down = (counts[name].astype(np.float64) for name in (high, low))
        ordered += float(up @ (np.cumsum(down) - down / 2))
        pairs += float(up.sum() * down.sum())
        # As if the scores of both had the same law (Mann and Whitney).
        variance += float(up.sum() * down.sum() * (up.sum() + down.sum() + 1) / 12)
    if ordered >= FEW_IN_ORDER * pairs or pairs / 2 - ordered <= NOT_BY_CHANCE * sqrt(variance):
        return None
    return round(ordered / pairs, 2)


def tied_scores(
    tables: Sequence[Counts], cells: Sequence[float], rows: str, total: int
) -> list[Sentence]:
    """What to do if many of `total` rows have the same score, in the cell that decides each
    table.
    """
    tied = sum(
        int(_rows(counts)[counts["cells"] == cell].sum())
        for counts, cell in zip(tables, cells, strict=True)
    )
    if not tied or tied < MANY_TIED * total:
        return []
    return [
        Sentence(
            f"{{tied}} of the {rows} share the score that decides, so that no threshold tells them "
            "apart: a finer score (logits in float64, not rounded) may do better, on fresh "
            f"{rows}.",
            {"tied": share(round(tied / total, 2))},
        )
    ]


def _rows(counts: Counts) -> NDArray[np.int64]:
    columns = [column for name, column in counts.items() if name != "cells"]
    return np.asarray(np.sum(columns, axis=0), dtype=np.int64)


def flags_most(certificate: Any, with_more: float) -> Iterator[Sentence]:
    """What to do about a recall that flags more than half of the rows, of the negatives too;
    `with_more` is what would be flagged if the misses seen were certified as they are.
    """
    flagged, negatives = certificate.share(), certificate.share("negative") or 0.0
    if min(flagged or 0.0, negatives) <= 0.5:
        return
    text = (
        "More than half of the rows are flagged: many more positives would bring that to about "
        "{with_more}"
    )
    values: dict[str, Any] = {"with_more": share(round(with_more, 2))}
    for target in (0.99, 0.98, 0.95, 0.9, 0.8, 0.7, 0.6, 0.5):
        if target >= certificate.values["target"] or certificate.values.get("looks"):
            continue
        decided = certificate.by.decided({**certificate.values, "target": target})
        other = replace(certificate, values=decided)
        if other.certified and other.share() <= 0.5:
            text += ", a target of {target} to {other}"
            values |= {"target": share(target), "other": share(round(other.share(), 2))}
            break
    yield Sentence(f"{text} (fresh rows); else use a score that separates better.", values)


def worst_answer(found: Mapping[str, tuple[int, int]]) -> str:
    """Of the wrong answers and all answers of each class, those of the class that is surely wrong
    most often: "31/80 effusion".
    """

    def surely(name: str) -> float:
        return float(binomial_lower(*found[name], delta=SURELY))

    name = max(found, key=surely)
    return f"{found[name][0]}/{found[name][1]} {name[:LONGEST_ANSWER]}"


def hides_rare_answers(acted: int, rows: int, worst: str | None, xi: float) -> list[Sentence]:
    """What to do where nearly all rows are answered: the rate is an average over all answers.
    `worst` is the answer that is wrong most often, if classes were counted.
    """
    if acted < NEARLY_ALL * rows:
        return []
    per_class = "pass the predictions as groups, at delta divided by their number."
    if worst is None:
        return [
            Sentence(
                "Nearly all rows are answered, and the rate is that of all answers together: a "
                "rare answer may be wrong far more often, which these counts do not show (pass "
                "prediction and label in place of correct to see it). To bound it for each answer "
                + per_class
            )
        ]
    counts, _, name = worst.partition(" ")
    wrong, answered = map(int, counts.split("/"))
    if binomial_lower(wrong, answered, delta=SURELY) <= xi:
        return []
    return [
        Sentence(
            "{rate} of the answers {name} are wrong ({wrong} of {answered}), though nearly all "
            f"rows are answered: certify per class. For that {per_class} Each class then needs "
            "enough rows of its own.",
            {
                "rate": share(round(wrong / answered, 2)),
                "name": repr(name),
                "wrong": count(wrong),
                "answered": count(answered),
            },
        )
    ]


def wide_intervals(width: float, rows: int, bins: int, unit: str) -> list[Sentence]:
    """What to do about intervals that are wide on average: widths fall with the square root of the
    rows in a bin; `unit` is what a row was drawn from each of, or "rows".
    """
    if width <= WIDE:
        return []
    fewer = int(bins * (WIDE / width) ** 2)
    merged = f", or {{fewer}} bins with these {unit}" if fewer else ""
    return [
        Sentence(
            f"Too wide to be of much use: for a mean width of {{wide}} take about {{needed}} {unit}"
            f"{merged}.",
            {
                "wide": str(WIDE),
                "needed": count(round(rows * (width / WIDE) ** 2)),
                "fewer": count(fewer),
            },
        )
    ]
