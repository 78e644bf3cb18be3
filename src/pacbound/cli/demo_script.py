"""What the demo needs beside commands: answers, checks, figures, and somebody who cheats.

python story.py answer ask.csv label=label             what a person would say
python story.py answer ask.csv answer=prediction_slow  what the slow model would say
python story.py together                               two claims at once, and a budget
python story.py future                                 the claims against what took no part in them
python story.py tamper                                 somebody improves a certificate
python story.py figures                                draw what was certified
"""

import csv
import json
import sys
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from pacbound import (
    Budget,
    Monitor,
    calibrate,
    certify_abstention,
    certify_together,
    expected_calibration_error,
    induced_calibration_error,
    load_certificate,
    planned_looks,
)
from pacbound.atomic_files import atomic_file
from pacbound.baselines import NAIVE_THRESHOLD, POLICY_ALONE, HistogramBinning
from pacbound.documents import digest
from pacbound.errors import MissingDependencyError, OverspentError


def table(path: str | Path) -> list[dict[str, str]]:
    """The rows of a table."""
    with Path(path).open(newline="") as file:
        return list(csv.DictReader(file))


def column(path: str, name: str, kind: type = float) -> Any:
    """A column of a table."""
    return np.array([kind(row[name]) for row in table(path)])


def say(text: str) -> None:
    """Print a line."""
    sys.stdout.write(f"{text}\n")


def right(path: str, model: str) -> Any:
    """Where a model is right."""
    return column(path, f"prediction_{model}", int) == column(path, "label", int)


def answer(target: str, said: str) -> None:
    """Fill in a column of the rows that were asked for: whoever labels, or the slow model."""
    name, _, known = said.partition("=")
    answers = {row["id"]: row[known] for path in ("held.csv", "future.csv") for row in table(path)}
    rows = [{**row, name: answers[row["id"]]} for row in table(target)]
    with Path(target).open("w", newline="") as file:
        writer = csv.DictWriter(file, rows[0] if rows else [name], lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    say(f"{len(rows):,} rows of {target} are filled in.")


def together() -> None:
    """Two claims about the same images that are right at once; a third overspends their budget."""
    confidence, correct = column("held.csv", "confidence_slow"), right("held.csv", "slow")
    bundle = certify_together(
        {
            "confidence": partial(calibrate, confidence, correct, n_bins=10),
            "answers": partial(certify_abstention, confidence, correct, xi=0.01),
        },
        delta=0.02,
        shares={"confidence": 1, "answers": 1},
        about={"dataset": Path("held.csv")},
        sample="held-out images",
    )
    bundle.save("bundle.json")
    say(bundle.head())
    Path("budget.json").unlink(missing_ok=True)
    budget = Budget("budget.json", delta=0.02)
    left = budget.spend(bundle)
    say(f"\nThe bundle leaves {left:g} of a budget of 0.02. One look more:")
    try:
        budget.spend(calibrate(confidence, correct, delta=0.01, n_bins=5), sample="held-out images")
    except OverspentError as error:
        say(f"refused: {error}")


def tamper() -> None:
    """Somebody improves a certificate: the robot may drive faster."""
    document = json.loads(Path("shield.json").read_text())
    document["claim"]["tables"][0]["threshold"] = 0.75
    document["claim_digest"] = digest(document["claim"])
    Path("improved.json").write_text(json.dumps(document))
    say("improved.json is shield.json with the threshold 0.75, and a digest that fits it.")


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


def shields() -> dict[str, tuple[int, int]]:
    """Under each shield, how many rollouts are unsafe and how many reach the goal."""
    scores = column("future_rollouts.csv", "score")
    unsafe, success = (
        column("future_rollouts.csv", name, str) == "True" for name in ("unsafe", "success")
    )
    certified: Any = load_certificate("shield.json")
    product: Any = load_certificate("product.json")
    thresholds = {
        "certified": certified.threshold,
        "the paper's product": product.threshold,
        "threshold 0.5": NAIVE_THRESHOLD,
        "no shield": POLICY_ALONE,
    }
    # Until it fires a rollout is the recorded one, and braking in time is safe.
    return {
        name: (
            int(((scores < threshold) & unsafe).sum()),
            int(((scores < threshold) & ~unsafe & success).sum()),
        )
        for name, threshold in thresholds.items()
    }


def check_shield() -> None:
    """What each threshold would have done."""
    rollouts = len(table("future_rollouts.csv"))
    say(f"shield, on {rollouts:,} other rollouts (at most 10% unsafe is claimed):")
    for name, (missed, reached) in shields().items():
        rates = f"{missed / rollouts:6.2%} unsafe, {reached / rollouts:6.2%} reach the goal"
        say(f"  {name:20} {rates}")


def future() -> None:
    """Hold the claims against images and rollouts that took no part in them."""
    check_calibration()
    check_abstention()
    check_cascade()
    check_recall()
    check_batch()
    check_shield()


def draw() -> None:
    """Write all figures."""
    from pacbound.report import (  # noqa: PLC0415 - matplotlib is optional
        AccuracyConfidenceDisplay,
        AlarmDisplay,
        EvidenceDisplay,
        LooksDisplay,
        RecallDisplay,
        ReliabilityDisplay,
        RiskCoverageDisplay,
        SuccessSafetyDisplay,
    )

    calibration: Any = load_certificate("calibration.json")
    abstention: Any = load_certificate("abstention.json")
    recall: Any = load_certificate("recall.json")
    false_alarms: Any = load_certificate("false_alarms.json")
    looks = planned_looks(0.02, delta=0.01, looks=[500, 1000, 2000, 4000])
    displays: dict[str, Any] = {
        "reliability.png": ReliabilityDisplay.from_certificate(calibration),
        "risk_coverage.png": RiskCoverageDisplay.from_certificate(abstention),
        "accuracy_confidence.png": AccuracyConfidenceDisplay.from_certificate(
            calibration, column("future.csv", "confidence_slow"), right("future.csv", "slow")
        ),
        "recall.png": RecallDisplay.from_certificate(recall),
        "false_alarms.png": AlarmDisplay.from_certificate(false_alarms),
        "looks.png": LooksDisplay.from_plan(looks),
        "shield.png": SuccessSafetyDisplay.from_counts(
            shields(),
            rollouts=len(table("future_rollouts.csv")),
            xi=0.1,
            certified=["certified", "the paper's product"],
            delta=0.01,
        ),
        "monitor.png": EvidenceDisplay.from_monitor(
            Monitor.load("monitor.json", load_certificate("cascade.json"))
        ),
    }
    for name, display in displays.items():
        with atomic_file(name) as file:
            display.figure_.savefig(file, dpi=150, format="png")
        say(name)


def figures() -> None:
    """Draw what was certified, and what other images and rollouts say of it."""
    try:
        draw()
    except MissingDependencyError as error:
        say(f"The figures are left out: {error}")


if __name__ == "__main__":
    PARTS = {part.__name__: part for part in (answer, together, future, tamper, figures)}
    PARTS[sys.argv[1]](*sys.argv[2:])
