"""Trust or Escalate (Jung, Brahman and Choi, ICLR 2025, arXiv 2407.18370): from which confidence on
a judge's verdict may stand, so that at most xi of those that stand differ from a person's.

The method is written from the paper, with the sizes of the authors' program. The thresholds of a
fine grid that leave a judge at least 30 rows are tested from the highest down by the exact binomial
bound, until one fails; the last one that passed is taken. A cascade does so for the cheapest judge,
then for the next one on the rows that are left, and so on, each at the full delta. Their xi is
alpha.

Where not even the highest threshold passes, the authors' program keeps that threshold all the same.
*as released* does so too, and `kept` counts how often; *paper* abstains, as the formula would.

The 500 public judgements are taken as the true distribution: each draw is a calibration sample of
500 rows from it, with replacement, so that coverage and risk of what comes out are known exactly.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

import numpy as np
from scipy.special import bdtr

from benchmarks.duels.duel import Duel, Measure, Row, arrays, markdown, shown, violated
from pacbound import Tally, certify_abstention
from pacbound.data import fashion_mnist

XIS = (0.1, 0.15, 0.2, 0.25)
DELTA = 0.1
ROWS = 500
"""Calibration rows, as many as the authors take."""
GRID = np.linspace(0.0, 1.0, 5_000)
FEWEST = 30
SURE = 0.9
"""From here on a cheap judge of the chain answers; declared, not fitted."""


@dataclass(frozen=True, eq=False)
class Judges:
    """Confidence and errors of some judges on the same rows, the cheapest judge first."""

    names: tuple[str, ...]
    confidence: Any
    wrong: Any
    asks_last: float = 1.0
    """The share of the rows that the last judge has to see."""

    def rows(self, chosen: Any) -> Judges:
        """The same judges on some rows."""
        return Judges(self.names, self.confidence[:, chosen], self.wrong[:, chosen])

    def only(self, judge: int) -> Judges:
        """One of the judges."""
        one = slice(judge, judge + 1)
        return Judges(self.names[one], self.confidence[one], self.wrong[one])

    def surest(self) -> Judges:
        """All judges as one: the most confident one answers."""
        sure = self.confidence.argmax(axis=0)
        every = np.arange(len(sure))
        return Judges(("surest",), self.confidence.max(axis=0)[None], self.wrong[sure, every][None])

    def chain(self) -> Judges:
        """All judges as one: the first that is sure answers, or else the last."""
        sure = self.confidence >= SURE
        sure[-1] = True
        first, every = sure.argmax(axis=0), np.arange(sure.shape[1])
        return Judges(
            ("chain",),
            self.confidence[first, every][None],
            self.wrong[first, every][None],
            float((first == len(sure) - 1).mean()),
        )


def threshold(confidence: Any, wrong: Any, *, xi: float, delta: float) -> tuple[float, bool]:
    """The threshold of one judge, and whether it passed its test."""
    order = np.argsort(confidence)
    errors_above = np.append(np.cumsum(wrong[order][::-1])[::-1], 0)
    below = np.searchsorted(confidence[order], GRID)
    answered = len(confidence) - below
    tested = np.flatnonzero(answered >= FEWEST)
    if not len(tested):
        return float("inf"), False
    passed = bdtr(errors_above[below[tested]], answered[tested], xi) <= delta
    failed = np.flatnonzero(~passed)
    if not len(failed):
        return float(GRID[tested[0]]), True
    if failed[-1] == len(tested) - 1:
        return float(GRID[tested[-1]]), False
    return float(GRID[tested[failed[-1] + 1]]), True


def thresholds(
    judges: Judges, *, xi: float, delta: float, released: bool
) -> tuple[list[float], int]:
    """The threshold of every judge, and how many of them did not pass but are kept."""
    left = np.ones(judges.confidence.shape[1], dtype=bool)
    found: list[float] = []
    kept = 0
    for confidence, wrong in zip(judges.confidence, judges.wrong, strict=True):
        from_, passed = threshold(confidence[left], wrong[left], xi=xi, delta=delta)
        if not passed:
            if released and np.isinf(from_) and found:
                from_ = found[-1]
            from_ = from_ if released else float("inf")
            kept += from_ < float("inf")
        found.append(from_)
        left &= confidence < from_
    return found, kept


def outcome(judges: Judges, found: Sequence[float]) -> tuple[float, float, float]:
    """On these rows: the share that is answered, the share of the answers that is wrong, and the
    share that comes to the last judge.
    """
    left = np.ones(judges.confidence.shape[1], dtype=bool)
    last, answered, errors = 1.0, 0, 0
    for confidence, wrong, from_ in zip(judges.confidence, judges.wrong, found, strict=True):
        last = float(left.mean())
        answers = left & (confidence >= from_)
        answered += int(answers.sum())
        errors += int((answers & wrong).sum())
        left &= ~answers
    return answered / len(left), errors / max(1, answered), last


def sampled(draw: int, rows: int) -> Any:
    """Which rows of the law a draw takes."""
    return np.random.default_rng([draw, ROWS]).integers(rows, size=ROWS)


@lru_cache(maxsize=2_000)
def _tally(judge: Judges, draw: int) -> Tally:
    """The sample of one judge, counted once for every xi."""
    sample = judge.rows(sampled(draw, judge.wrong.shape[1]))
    return Tally.count("abstention", sample.confidence[0], correct=~sample.wrong[0])


def _ours(judge: Judges, draw: int, xi: float) -> tuple[float, float, float]:
    certificate = certify_abstention(data=_tally(judge, draw), xi=xi, delta=DELTA)
    return outcome(judge, [certificate.threshold])


def measure(law: Judges, draws: int, *, name: str, xi: float, ours: Judges | None = None) -> Row:
    """Certify `draws` samples of the judges both ways; `ours` are several judges made one."""
    judge = ours or law
    found: dict[str, list[tuple[float, float, float]]] = {"ours": [], "released": [], "paper": []}
    kept = 0
    for draw in range(draws):
        found["ours"].append(_ours(judge, draw, xi))
        sample = law.rows(sampled(draw, law.wrong.shape[1]))
        for form in ("released", "paper"):
            limits, unfounded = thresholds(sample, xi=xi, delta=DELTA, released=form == "released")
            kept += bool(unfounded)
            found[form].append(outcome(law, limits))
    row: Row = {"name": name, "judges": len(law.names), "rows": ROWS, "xi": xi, "delta": DELTA}
    row |= {"draws": draws, "kept": kept}
    for form, values in found.items():
        row[form] = _summary(np.array(values), xi=xi, draws=draws)
    row["ours"]["last_judge"] = judge.asks_last
    row["met"] = row["ours"]["p"] >= 0.01
    return row


def _summary(values: Any, *, xi: float, draws: int) -> Row:
    return {
        "coverage": float(values[:, 0].mean()),
        "last_judge": float(values[:, 2].mean()),
        **violated(int((values[:, 1] > xi).sum()), draws, DELTA),
    }


def table(rows: Sequence[Row]) -> str:
    """Coverage and violations; the higher coverage of two that keep delta is set in bold."""
    headings = (
        "judge",
        "xi",
        "**pacbound**",
        "as released",
        "as in the paper",
        "violations: pacbound",
        "as released",
        "as in the paper",
        "threshold kept without a pass",
        "rows seen by the last judge: pacbound, as released",
    )
    return markdown(headings, [_line(row) for row in rows])


def _line(row: Row) -> list[str]:
    forms = ("ours", "released", "paper")
    holds = {form: row[form]["p"] >= 0.01 for form in forms}
    most = max(row[form]["coverage"] for form in forms if holds[form])
    coverages = [
        f"**{row[form]['coverage']:.1%}**"
        if holds[form] and row[form]["coverage"] == most
        else f"{row[form]['coverage']:.1%}"
        for form in forms
    ]
    broken = [
        shown(row[form], row["draws"]) if holds[form] else f"**{shown(row[form], row['draws'])}**"
        for form in forms
    ]
    return [
        row["name"],
        f"{row['xi']:g}",
        *coverages,
        *broken,
        f"{row['kept'] / row['draws']:.0%}",
        ", ".join(f"{row[form]['last_judge']:.0%}" for form in forms[:2] if row["judges"] > 1),
    ]


def _law(folder: Path | None) -> Judges:
    if folder is None:
        shipped = fashion_mnist()
        return Judges(
            ("fast head", "slow head"),
            np.stack([shipped.confidence_fast, shipped.confidence_slow]).astype(np.float64),
            np.stack([shipped.prediction_fast, shipped.prediction_slow]) != shipped.label,
        )
    columns = arrays(folder / "trust_or_escalate.npz")
    names = ("mistral_7b_instruct", "gpt_3_5_turbo", "gpt_4_turbo")
    probabilities = np.stack([columns[f"{name}_probabilities"] for name in names])
    preferred = np.stack([columns[f"{name}_preferred"] for name in names])
    return Judges(
        ("Mistral-7B", "GPT-3.5", "GPT-4"),
        probabilities.max(axis=2),
        probabilities.argmax(axis=2) + 1 != preferred,
    )


def cells(folder: Path | None) -> Iterator[tuple[str, Measure]]:
    """Every judge alone, and all of them together in two ways, at every xi."""
    law = _law(folder)
    alone = [(name, law.only(place), None) for place, name in enumerate(law.names)]
    together = [
        ("all judges, the surest answers", law, law.surest()),
        (f"all judges, the first sure of {SURE:g} answers", law, law.chain()),
    ]
    for name, judges, ours in [*alone, *together]:
        for xi in XIS:
            yield name, partial(measure, judges, name=name, xi=xi, ours=ours)


DUEL = Duel(cells, table, draws=2_000)
