"""Hold the claims against images and rollouts that took no part in them."""

import csv
import sys
from pathlib import Path
from typing import Any

import numpy as np

from pacbound import expected_calibration_error, induced_calibration_error, load_certificate
from pacbound.baselines import NAIVE_THRESHOLD, POLICY_ALONE, HistogramBinning


def column(path: str, name: str, kind: type = float) -> Any:
    """A column of a table."""
    with Path(path).open(newline="") as file:
        return np.array([kind(row[name]) for row in csv.DictReader(file)])


def say(text: str) -> None:
    """Print a line."""
    sys.stdout.write(f"{text}\n")


def right(path: str, model: str) -> Any:
    """Where a model is right."""
    return column(path, f"prediction_{model}", int) == column(path, "label", int)


def check_calibration() -> None:
    """How many bins have their accuracy in the interval, and the calibration error."""
    certificate: Any = load_certificate("calibration.json")
    scores, correct = column("future.csv", "confidence_slow"), right("future.csv", "slow")
    cells = certificate.grid.cells(scores)
    trials = np.bincount(cells, minlength=10)
    rate = np.bincount(cells, weights=correct, minlength=10) / np.maximum(trials, 1)
    inside = (certificate.bins.lower <= rate) & (rate <= certificate.bins.upper)
    say(
        f"calibration: the accuracy of {int(inside[trials > 0].sum())} of "
        f"{int((trials > 0).sum())} bins lies in its interval (a small bin may miss by its own "
        "noise)."
    )
    binning = HistogramBinning(n_bins=10).fit_confidence(
        column("held.csv", "confidence_slow"), right("held.csv", "slow")
    )
    plain = expected_calibration_error(scores, correct, n_bins=10)
    binned = expected_calibration_error(
        np.nan_to_num(binning.recalibrate(scores)), correct, n_bins=10
    )
    low, high = induced_calibration_error(
        certificate.interval(scores), certificate.estimate(scores), correct, n_bins=10
    )
    say(
        f"  calibration error: softmax {plain:.2%}, histogram binning {binned:.2%}, induced by the "
        f"intervals [{low:.2%}, {high:.2%}]."
    )


def check_abstention() -> None:
    """How many images are answered, and how many of the answers are wrong."""
    certificate: Any = load_certificate("abstention.json")
    correct = right("future.csv", "slow")
    answered = certificate.answers(column("future.csv", "confidence_slow"))
    say(
        f"abstention: {answered.mean():.1%} are answered, {(~correct[answered]).mean():.2%} of "
        f"them wrongly (at most {certificate.xi:.0%} is claimed); {(~correct).mean():.2%} without "
        "abstaining."
    )


def check_cascade() -> None:
    """How many images exit early, and what that loses."""
    certificate: Any = load_certificate("cascade.json")
    exits = column("future.csv", "confidence_fast") >= certificate.thresholds[0]
    fast, slow = right("future.csv", "fast"), right("future.csv", "slow")
    lost = ((exits & slow & ~fast).sum() - (exits & fast & ~slow).sum()) / len(exits)
    say(
        f"cascade: {exits.mean():.1%} exit early, and {lost:+.2%} accuracy is lost (at most "
        f"{certificate.xi:.0%} is claimed)."
    )


def check_recall() -> None:
    """How many mistakes of the early exit are flagged."""
    certificate: Any = load_certificate("recall.json")
    flagged = certificate.flags(column("future.csv", "doubt"))
    wrong = ~right("future.csv", "fast")
    say(
        f"recall: {flagged[wrong].mean():.1%} of the early exit's mistakes are flagged (at least "
        f"{certificate.target:.0%} is claimed), and {flagged.mean():.1%} of all images."
    )


def check_batch() -> None:
    """How many answers of the batch differ from the slow model's."""
    fast, slow = (
        column("future.csv", "prediction_fast", str),
        column("future.csv", "prediction_slow", str),
    )
    answers = column("answered.csv", "pac_prediction", str)
    asked = column("answered.csv", "pac_source", str) == "slow"
    say(
        f"batch: {asked.mean():.1%} of the records were asked, and {(answers != slow).mean():.2%} "
        f"of the answers differ (at most 5% is claimed); {(fast != slow).mean():.2%} if none is."
    )


def check_shield() -> None:
    """What each threshold would have done."""
    certificate: Any = load_certificate("shield.json")
    product: Any = load_certificate("product.json")
    scores = column("future_rollouts.csv", "score")
    unsafe, success = (
        column("future_rollouts.csv", name, str) == "True" for name in ("unsafe", "success")
    )
    say(f"shield, on {len(scores):,} other rollouts (at most 10% unsafe is claimed):")
    for name, threshold in {
        "certified": certificate.threshold,
        "the paper's product": product.threshold,
        "threshold 0.5": NAIVE_THRESHOLD,
        "no shield": POLICY_ALONE,
    }.items():
        # Until it fires a rollout is the recorded one, and braking in time is safe.
        drives_on = scores < threshold
        missed, reached = (drives_on & unsafe).mean(), (drives_on & ~unsafe & success).mean()
        say(f"  {name:20} {missed:6.2%} unsafe, {reached:6.2%} reach the goal")


if __name__ == "__main__":
    check_calibration()
    check_abstention()
    check_cascade()
    check_recall()
    check_batch()
    check_shield()
