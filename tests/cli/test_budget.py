"""`--budget`: a claim that overspends is neither saved nor shown."""

import subprocess
from collections.abc import Callable
from pathlib import Path

from pacbound import Budget, CertificateBundle, load_certificate

Run = Callable[..., subprocess.CompletedProcess[str]]

NAMED = ("--confidence", "c", "--correct", "ok", "--budget", "budget.json")


def test_a_claim_that_overspends_is_neither_saved_nor_shown(
    pacbound: Run, predictions: Path
) -> None:
    folder = predictions.parent
    missing = pacbound("calibrate", predictions, *NAMED, "--delta", 0.03, code=2)
    assert "There is no budget" in missing.stderr
    Budget(folder / "budget.json", delta=0.05)
    pacbound("calibrate", predictions, *NAMED, "--delta", 0.03, "-o", "a.json")
    pacbound("calibrate", predictions, *NAMED, "--delta", 0.03, "-o", "again.json")
    done = pacbound(
        "calibrate", predictions, *NAMED, "--delta", 0.03, "--bins", 7, "-o", "b.json", code=2
    )
    assert "0.03 of 0.05 is spent" in done.stderr
    assert not done.stdout
    assert not (folder / "b.json").exists()


def test_a_bundle_is_verified_as_one_file(pacbound: Run, predictions: Path) -> None:
    folder = predictions.parent
    for bins in (5, 6):
        pacbound(
            "calibrate", predictions, *NAMED[:4], "--delta", 0.01, "--bins", bins,
            "-o", f"{bins}.json",
        )  # fmt: skip
    made = {name: load_certificate(folder / f"{name}.json") for name in ("5", "6")}
    CertificateBundle.of(made, delta=0.02).save(folder / "all.json")
    assert "verified (bundle, certified" in pacbound("verify", "all.json").stdout
    text = (folder / "all.json").read_text()
    (folder / "all.json").write_text(text.replace('"delta": 0.02', '"delta": 0.03'))
    pacbound("verify", "all.json", code=1)
