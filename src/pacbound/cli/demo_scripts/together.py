"""Two claims about the same images that are right at once; a third overspends their budget."""

import csv
import sys
from functools import partial
from pathlib import Path

from pacbound import Budget, calibrate, certify_abstention, certify_together
from pacbound.errors import OverspentError

with Path("held.csv").open(newline="") as file:
    rows = list(csv.DictReader(file))
confidence = [float(row["confidence_slow"]) for row in rows]
correct = [row["prediction_slow"] == row["label"] for row in rows]

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
sys.stdout.write(f"{bundle.head()}\n")

Path("budget.json").unlink(missing_ok=True)
budget = Budget("budget.json", delta=0.02)
left = budget.spend(bundle)
sys.stdout.write(f"\nThe bundle leaves {left:g} of a budget of 0.02. One look more:\n")
try:
    budget.spend(calibrate(confidence, correct, delta=0.01, n_bins=5), sample="held-out images")
except OverspentError as error:
    sys.stdout.write(f"refused: {error}\n")
