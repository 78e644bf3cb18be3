"""Patients with several images: recall drawn among the positives of each patient, and drawn before
labels are looked at.

    python -m experiments.clusters            # writes results/clusters.*
    python -m experiments.clusters --quick --out FOLDER

Cohorts are simulated with fixed seeds from a law whose truth is known: 2,000 patients with 1 to 11
images, a quarter of them ill, whose images are positive in 0.4 of the cases. Patients with more
positives are easier to find, and all images of a patient are easier or harder together. Each
claim is about its own law. `chance` is the probability of so many wrong claims, or more, if each
were wrong with probability delta.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import bdtrc, ndtr
from scipy.stats import binom

from experiments.record import RESULTS, p_text, provenance, publish, show_progress, table
from pacbound import Tally, certify_recall

NAME = "clusters"
DELTA = 0.05
PATIENTS = 2000
LARGEST = 11
ILL, POSITIVE = 0.25, 0.4
TARGETS = (0.9, 0.95, 0.98, 0.99)
WAYS = {"among": "among the positives", "first": "before labels"}
# How much images of one patient have in common, beside their own noise of 1.
ALIKE = 0.7

Floats = NDArray[np.float64]


def cohort(rng: np.random.Generator) -> dict[str, Any]:
    """The scores and labels of all images, and whose they are."""
    sizes = rng.integers(1, LARGEST + 1, size=PATIENTS)
    patient = np.repeat(np.arange(PATIENTS), sizes)
    ill = rng.random(PATIENTS) < ILL
    positive = ill[patient] & (rng.random(len(patient)) < POSITIVE)
    many = np.bincount(patient[positive], minlength=PATIENTS)
    own = ALIKE * rng.normal(size=PATIENTS)
    centre = np.where(positive, found_at(many)[patient], -2.0) + own[patient]
    logit = centre + rng.normal(size=len(patient))
    return {"score": 1 / (1 + np.exp(-logit)), "positive": positive, "clusters": patient}


def found_at(positives: Any) -> Floats:
    """The mean logit of a positive image of a patient with so many."""
    return 0.8 + 0.25 * np.asarray(positives, dtype=np.float64)


def missed(threshold: float, way: str) -> float:
    """How often a positive is missed in truth, under the law that the claim is about."""
    if threshold <= 0:
        return 0.0
    limit = np.log(threshold) - np.log1p(-threshold) if threshold < 1 else np.inf
    weights, rates = [], []
    for size in range(1, LARGEST + 1):
        for many in range(1, size + 1):
            # A random positive of a random patient who has one; or a random image, if positive.
            share = 1.0 if way == "among" else many / size
            weights.append(binom.pmf(many, size, POSITIVE) * share)
            rates.append(ndtr((limit - found_at(many)) / np.hypot(1.0, ALIKE)))
    return float(np.average(rates, weights=weights))


def chance(wrong: int, runs: int) -> float:
    """The probability of at least so many wrong claims at delta each."""
    return float(bdtrc(wrong - 1, runs, DELTA)) if wrong else 1.0


def claims(runs: int) -> list[dict[str, Any]]:
    """What both ways come to on the same cohorts."""
    seen: dict[tuple[float, str], list[tuple[bool, bool, float, int]]] = {}
    for run in range(runs):
        rng = np.random.default_rng([91, run])
        rows = {**cohort(rng), "seed": int(rng.integers(2**53))}
        tallies = {
            "among": Tally.count("recall", **rows, among="positive"),
            "first": Tally.count("recall", **rows, among="all"),
        }
        for way, tally in tallies.items():
            for target in TARGETS:
                made = certify_recall(data=tally, target=target, delta=DELTA)
                wrong = made.certified and missed(made.threshold, way) > 1 - target
                flagged = float((rows["score"] >= made.threshold).mean())
                one = (made.certified, wrong, flagged, made.trials)
                seen.setdefault((target, way), []).append(one)
        show_progress(run + 1, runs, "cohorts")
    found = []
    for (target, way), outcomes in seen.items():
        certified, wrong_ones, flags, trials = map(np.array, zip(*outcomes, strict=True))
        found.append(
            {
                "target": target,
                "way": way,
                "runs": runs,
                "refused": int((~certified).sum()),
                "wrong": int(wrong_ones.sum()),
                "chance": chance(int(wrong_ones.sum()), runs),
                "median_flagged": float(np.median(flags)),
                "mean_flagged": float(flags.mean()),
                "median_trials": float(np.median(trials)),
            }
        )
    return sorted(found, key=lambda one: (one["target"], one["way"]))


def markdown(record: dict[str, Any]) -> str:
    lines = [
        (
            f"{one['target']:.0%}",
            WAYS[one["way"]],
            f"{one['median_trials']:,.0f}",
            f"{one['refused']} of {one['runs']}",
            f"{one['median_flagged']:.1%}",
            f"{one['wrong']} ({p_text(one['chance'])})",
        )
        for one in record["claims"]
    ]
    head = ("target", "drawn", "trials", "refused", "images flagged", "wrong (chance)")
    return f"""# Patients with several images

Written by `{record["command"]}`. {record["patients"]:,} simulated patients with 1 to {LARGEST} images each, delta = {DELTA}. On the same cohorts one image was drawn from each patient among the positive ones, and before labels were looked at. Trials are the positives that are left, by the median; flagged is the share of all images, by the median, and all of them where the claim is refused. Each claim is judged by the law that it is about; `chance` is the probability of so many wrong claims, or more, if each were wrong with probability delta.

{table(head, lines)}"""  # noqa: E501 - a paragraph of Markdown is a line


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="few runs, to show that it works")
    parser.add_argument("--out", type=Path, default=RESULTS, help="the folder to write to")
    options = parser.parse_args(arguments)
    record = {
        **provenance("python -m experiments.clusters", seeds=[91]),
        "delta": DELTA,
        "patients": PATIENTS,
        "claims": claims(5 if options.quick else 400),
    }
    publish(options.out, NAME, record, report=markdown)


if __name__ == "__main__":
    main()
