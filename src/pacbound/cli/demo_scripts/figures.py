"""Draw what was certified, and what other images and rollouts say of it."""

import csv
import sys
from pathlib import Path
from typing import Any

import numpy as np

from pacbound import Monitor, load_certificate, planned_looks
from pacbound.atomic_files import atomic_file
from pacbound.baselines import NAIVE_THRESHOLD, POLICY_ALONE
from pacbound.errors import MissingDependencyError


def column(path: str, name: str, kind: type = float) -> Any:
    """A column of a table."""
    with Path(path).open(newline="") as file:
        return np.array([kind(row[name]) for row in csv.DictReader(file)])


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
    return {
        name: (
            int(((scores < threshold) & unsafe).sum()),
            int(((scores < threshold) & ~unsafe & success).sum()),
        )
        for name, threshold in thresholds.items()
    }


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
    correct = column("future.csv", "prediction_slow", int) == column("future.csv", "label", int)
    rollouts = len(column("future_rollouts.csv", "score"))
    displays: dict[str, Any] = {
        "reliability.png": ReliabilityDisplay.from_certificate(calibration),
        "risk_coverage.png": RiskCoverageDisplay.from_certificate(abstention),
        "accuracy_confidence.png": AccuracyConfidenceDisplay.from_certificate(
            calibration, column("future.csv", "confidence_slow"), correct
        ),
        "recall.png": RecallDisplay.from_certificate(recall),
        "false_alarms.png": AlarmDisplay.from_certificate(false_alarms),
        "looks.png": LooksDisplay.from_plan(looks),
        "shield.png": SuccessSafetyDisplay.from_counts(
            shields(),
            rollouts=rollouts,
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
        sys.stdout.write(f"{name}\n")


if __name__ == "__main__":
    try:
        draw()
    except MissingDependencyError as error:
        sys.stdout.write(f"The figures are left out: {error}\n")
