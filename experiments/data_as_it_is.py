"""Claims that count rows as independent draws of the law of use where they are not, and the same
claims on rows that were drawn first; rare positives; planned looks.

    python -m experiments.data_as_it_is            # writes results/data_as_it_is.*
    python -m experiments.data_as_it_is --quick --out FOLDER

Rows are simulated with fixed seeds from laws whose truth is known, and every law can break the
claim. `chance` is the probability of so many wrong claims, or more, if the claim were wrong with
probability delta.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from numpy.typing import NDArray
from scipy.special import bdtrc, betainc, betaincinv

from experiments import palette
from experiments.record import RESULTS, p_text, provenance, publish, show_progress, table
from pacbound import (
    calibrate,
    certify_abstention,
    certify_recall,
    certify_shield,
    planned_looks,
    trials_needed,
)

NAME = "data_as_it_is"
DELTA = 0.05
PATIENTS = 400
LARGEST = 19
SHIFTS = {3: (0.25, 0.75), 10: (0.08, 0.8)}
"""By the bound on the weights: how often an input is hard among the rows, and in use."""
SHIFTED_ROWS = 3000
CLAIMED = 0.995
"""The rate that is claimed, as a share of the true one: a little less, so that it is false."""
RARE = {"rows": 20_000, "positive": 0.02, "target": 0.95, "delta": 0.05}
LOOKS = {"xi": 0.02, "delta": 0.01, "expected": 0.01, "last": 2365, "count": 10}
PLANNED_FIXED = 2038

Flags = NDArray[np.bool_]
Rows = tuple[Flags, dict[str, Any]]


@dataclass(frozen=True)
class Law:
    """`rows` draws which rows are wrong, and what says how they are to be drawn; `rate` is how
    often a row is wrong in use."""

    name: str
    rate: float
    rows: Callable[[np.random.Generator], Rows]


def clustered(bound: int | None) -> Law:
    """Patients with 1 to 19 images each, who differ: beta-binomial."""

    def rows(rng: np.random.Generator) -> Rows:
        sizes = rng.integers(1, LARGEST + 1, size=PATIENTS)
        patient = np.repeat(np.arange(PATIENTS), sizes)
        wrong = rng.random(len(patient)) < rng.beta(0.5, 2, size=PATIENTS)[patient]
        return wrong, {"clusters": patient, "cluster_bound": bound}

    about = "a random image" if bound else "a random image of a random patient"
    return Law(f"{PATIENTS} patients of 1 to {LARGEST} images, about {about}", 0.2, rows)


def shifted(bound: int) -> Law:
    """Hard inputs are wrong in 0.3 of the cases, others in 0.05, and use has more hard ones."""
    before, after = SHIFTS[bound]

    def rows(rng: np.random.Generator) -> Rows:
        hard = rng.random(SHIFTED_ROWS) < before
        wrong = rng.random(SHIFTED_ROWS) < np.where(hard, 0.3, 0.05)
        weights = np.where(hard, after / before, (1 - after) / (1 - before))
        return wrong, {"weights": weights, "weight_bound": bound}

    rate = 0.3 * after + 0.05 * (1 - after)
    return Law(f"a known shift, weights up to {bound}", rate, rows)


def calibration_is_wrong(wrong: Flags, draw: dict[str, Any], law: Law, _: Any) -> bool:
    made = calibrate(np.full(len(wrong), 0.5), ~wrong, delta=DELTA, n_bins=1, **draw)
    low, high = made.interval(0.5)
    return not low <= 1 - law.rate <= high


def abstention_is_wrong(wrong: Flags, draw: dict[str, Any], law: Law, rng: Any) -> bool:
    """Scores say nothing, and more than xi are wrong: whatever is answered breaks xi."""
    made = certify_abstention(
        rng.random(len(wrong)), ~wrong, xi=CLAIMED * law.rate, delta=DELTA, **draw
    )
    return made.certified


def shield_is_wrong(wrong: Flags, draw: dict[str, Any], law: Law, _: Any) -> bool:
    """One danger for all, and more than xi are unsafe: a higher threshold breaks xi."""
    danger = np.full(len(wrong), 0.5)
    made = certify_shield(danger, wrong, xi=CLAIMED * law.rate, delta=DELTA, **draw)
    return made.threshold > 0.5


def recall_is_wrong(wrong: Flags, draw: dict[str, Any], law: Law, rng: Any) -> bool:
    """Every row is positive; those that the model has wrong have scores below one half."""
    score = np.where(wrong, 0.0, 0.5) + 0.5 * rng.random(len(wrong))
    missed = CLAIMED * law.rate
    made = certify_recall(score, np.ones(len(wrong), bool), target=1 - missed, delta=DELTA, **draw)
    low, high = min(made.threshold, 0.5), max(made.threshold - 0.5, 0)
    return 2 * (law.rate * low + (1 - law.rate) * high) > missed


CLAIMS: dict[str, Callable[[Flags, dict[str, Any], Law, Any], bool]] = {
    "calibration": calibration_is_wrong,
    "abstention": abstention_is_wrong,
    "shield": shield_is_wrong,
    "recall": recall_is_wrong,
}


def wrong_claims(runs: int) -> list[dict[str, Any]]:
    """Of each kind and each law, how many claims are wrong with the draw and without it."""
    laws = [clustered(None), clustered(LARGEST), *map(shifted, SHIFTS)]
    found = []
    for number, law in enumerate(laws):
        for kind, is_wrong in CLAIMS.items():
            counts = {"drawn": 0, "as they are": 0}
            for run in range(runs):
                seeds = [71, number, run]
                wrong, draw = law.rows(np.random.default_rng(seeds))
                for way in counts:
                    rng = np.random.default_rng([*seeds, 1])
                    given = {**draw, "seed": run} if way == "drawn" else {}
                    counts[way] += is_wrong(wrong, given, law, rng)
                show_progress(run + 1, runs, f"{law.name}, {kind}")
            found.append({"law": law.name, "kind": kind, "runs": runs, **judged(counts, runs)})
    return found


def judged(counts: dict[str, int], runs: int) -> dict[str, Any]:
    return {
        way: {"wrong": wrong, "chance": chance(wrong, runs, DELTA)} for way, wrong in counts.items()
    }


def chance(wrong: int, runs: int, delta: float) -> float:
    """P(at least `wrong` of `runs`) at the probability delta."""
    return 1.0 if wrong == 0 else float(bdtrc(wrong - 1, runs, delta))


def rare_positives(runs: int) -> dict[str, Any]:
    """Recall where 2 % of 20,000 rows are positive."""
    rows, target, delta = int(RARE["rows"]), RARE["target"], RARE["delta"]
    wrong, positives, flagged, refused = 0, [], [], 0
    for run in range(runs):
        rng = np.random.default_rng([72, run])
        positive = rng.random(rows) < RARE["positive"]
        score = np.where(positive, rng.beta(6, 2, rows), rng.beta(1, 6, rows))
        made = certify_recall(score, positive, target=target, delta=delta)
        positives.append(made.trials)
        refused += not made.certified
        wrong += made.certified and betainc(6, 2, made.threshold) > 1 - target
        flagged.append(_flagged(made.threshold))
        show_progress(run + 1, runs, "rare positives")
    best = float(betaincinv(6, 2, 1 - target))
    return {
        **RARE,
        "runs": runs,
        "refused": refused,
        "wrong": int(wrong),
        "chance": chance(int(wrong), runs, delta),
        "positives": [min(positives), max(positives)],
        "flagged": float(np.mean(flagged)),
        "flagged_by_the_oracle": _flagged(best),
    }


def _flagged(threshold: float) -> float:
    """The share of rows in use whose score reaches the threshold."""
    share = RARE["positive"]
    above = [1 - betainc(a, b, max(threshold, 0.0)) for a, b in ((6, 2), (1, 6))]
    return float(share * above[0] + (1 - share) * above[1])


def looks() -> dict[str, Any]:
    """Ten looks against a fixed sample; all of it is exact."""
    xi, delta, expected = LOOKS["xi"], LOOKS["delta"], LOOKS["expected"]
    count = int(LOOKS["count"])
    sizes = [round(LOOKS["last"] * look / count) for look in range(1, count + 1)]
    plan = planned_looks(xi, delta=delta, looks=sizes)
    power = sum(plan.passing(expected))
    fixed = planned_looks(xi, delta=delta, looks=[PLANNED_FIXED])
    return {
        **LOOKS,
        "looks": sizes,
        "largest_errors": list(plan.largest_errors),
        "expected_labels": plan.expected_labels(expected),
        "passes": power,
        "spent": plan.spent,
        "fixed": PLANNED_FIXED,
        "fixed_passes": sum(fixed.passing(expected)),
        "fixed_for_the_same_chance": trials_needed(xi, expected, delta=delta, power=power)[0],
    }


def markdown(record: dict[str, Any]) -> str:
    rare, plan = record["rare_positives"], record["looks"]
    drawn = table(
        ("rows", "claim", "wrong, as they are", "chance", "wrong, drawn first", "chance"),
        (
            (
                row["law"],
                row["kind"],
                f"{row['as they are']['wrong']} of {row['runs']}",
                p_text(row["as they are"]["chance"]),
                f"{row['drawn']['wrong']} of {row['runs']}",
                p_text(row["drawn"]["chance"]),
            )
            for row in record["wrong_claims"]
        ),
    )
    return f"""# Clusters, shift and rare positives

Written by `{record["command"]}`. Rows are simulated, delta = {DELTA}. Every claim was made on the same rows twice: as they are, as if they were independent draws of the law of use, and drawn first, by clusters or weights. `chance` is the probability of so many wrong claims, or more, if each were wrong with probability delta.

{drawn}
Rare positives: {rare["positive"]:.0%} of {rare["rows"]:,} rows, target {rare["target"]}, delta {rare["delta"]}. Of {rare["runs"]} claims {rare["wrong"]} are wrong (chance {p_text(rare["chance"])}) and {rare["refused"]} are refused, from {rare["positives"][0]} to {rare["positives"][1]} positives. They flag {rare["flagged"]:.2%} of the rows; an oracle that knows the law flags {rare["flagged_by_the_oracle"]:.2%}.

Planned looks: {plan["count"]} of them up to {plan["last"]:,} labels, xi = {plan["xi"]}, delta = {plan["delta"]}. At a true rate of {plan["expected"]} they take {plan["expected_labels"]:,.0f} labels on average, and some look passes with probability {plan["passes"]:.3f}. A fixed sample of {plan["fixed"]:,} passes with probability {plan["fixed_passes"]:.3f}; for the chance of the looks it takes {plan["fixed_for_the_same_chance"]:,}. At a rate of xi some look passes with probability {plan["spent"]:.5f}, by exact recursion.
"""  # noqa: E501 - a paragraph of Markdown is a line


def figure(record: dict[str, Any]) -> Figure:
    """The share of wrong claims: a panel for each law, a row for each kind of claim."""
    rows = record["wrong_claims"]
    laws = list(dict.fromkeys(row["law"] for row in rows))
    drawn = Figure(figsize=(10, 6), layout="constrained")
    FigureCanvasAgg(drawn)
    panels = drawn.subplots(2, 2, sharex=True, sharey=True).ravel()
    styles = {"as they are": (palette.OBSERVED, "s"), "drawn": (palette.CERTIFIED, "o")}
    texts = {"as they are": "rows as they are", "drawn": "drawn first"}
    for ax, law in zip(panels, laws, strict=True):
        of_law = [row for row in rows if row["law"] == law]
        places = [-place for place in range(len(of_law))]
        ax.grid(visible=True, axis="x", color=palette.GRID)
        ax.axvline(100 * DELTA, color=palette.IDEAL, linestyle=":", label="delta")
        for way, (color, marker) in styles.items():
            # Where none is wrong, the point stands at the left edge.
            shares = [max(0.5, 100 * row[way]["wrong"] / row["runs"]) for row in of_law]
            ax.plot(shares, places, marker, color=color, label=texts[way], markersize=7)
        ax.set_yticks(places, [row["kind"] for row in of_law])
        ax.set_title(law.replace(", about", ",\nabout"), loc="left")
        ax.set_ylim(-len(of_law) + 0.4, 0.6)
    panels[0].set(xscale="log", xlim=(0.5, 140))
    for ax in panels[2:]:
        ax.set_xticks([1, 5, 20, 100], ["1", "5", "20", "100"])
        ax.set_xlabel("Wrong claims (%)")
        ax.minorticks_off()
    handles, named = panels[0].get_legend_handles_labels()
    drawn.legend(handles, named, loc="outside upper center", ncols=3, frameon=False)
    return drawn


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="few runs, to show that it works")
    parser.add_argument("--out", type=Path, default=RESULTS, help="the folder to write to")
    options = parser.parse_args(arguments)
    runs = 10 if options.quick else 500
    record = {
        **provenance("python -m experiments.data_as_it_is", seeds=[71, 72]),
        "delta": DELTA,
        "wrong_claims": wrong_claims(runs),
        "rare_positives": rare_positives(runs),
        "looks": looks(),
    }
    publish(options.out, NAME, record, report=markdown, figures=lambda held: {"": figure(held)})


if __name__ == "__main__":
    main()
