"""`pacbound abstain` and `pacbound apply` of its certificate, end to end."""

import subprocess
from collections.abc import Callable
from pathlib import Path

from pacbound import certify_abstention, load_certificate

Run = Callable[..., subprocess.CompletedProcess[str]]

COLUMNS = ("--confidence", "c", "--correct", "ok")
CLAIM = ("--xi", 0.15, "--delta", 0.05)
LOOSE = ("--xi", 0.25, "--delta", 0.05)


def _arrays(path: Path) -> tuple[list[float], list[bool], list[str]]:
    rows = [line.split(",") for line in path.read_text().splitlines()[1:]]
    return (
        [float(row[0]) for row in rows],
        [row[1] == "1" for row in rows],
        [row[4] for row in rows],
    )


def test_the_certificate_from_a_file_makes_the_claim_of_the_arrays(
    pacbound: Run, predictions: Path
) -> None:
    confidence, correct, places = _arrays(predictions)
    done = pacbound("abstain", predictions, *COLUMNS, *CLAIM, "-o", "a.json")
    assert "Answer where the confidence is at least" in done.stdout
    expected = certify_abstention(confidence, correct, xi=0.15, delta=0.05)
    folder = predictions.parent
    assert load_certificate(folder / "a.json").claim_digest == expected.claim_digest
    classes = ("--confidence", "c", "--prediction", "pred", "--label", "y", "--groups", "place")
    pacbound("abstain", predictions, *classes, *LOOSE, "-o", "g.json")
    grouped = certify_abstention(confidence, correct, groups=places, xi=0.25, delta=0.05)
    assert load_certificate(folder / "g.json").claim_digest == grouped.claim_digest
    pacbound("verify", "a.json", "g.json")
