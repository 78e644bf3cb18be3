"""`--budget`: a claim that overspends is neither saved nor shown."""

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import numpy as np

from pacbound import Budget, load_certificate
from pacbound.claims.bundle import CertificateBundle

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
        "calibrate", predictions, *NAMED, "--delta", 0.03, "--n-bins", 7, "-o", "b.json", code=2
    )
    assert "0.03 of 0.05 is spent" in done.stderr
    assert not done.stdout
    assert not (folder / "b.json").exists()


def test_a_bundle_is_verified_as_one_file(pacbound: Run, predictions: Path) -> None:
    folder = predictions.parent
    for bins in (5, 6):
        pacbound(
            "calibrate", predictions, *NAMED[:4], "--delta", 0.01, "--n-bins", bins,
            "-o", f"{bins}.json",
        )  # fmt: skip
    made = {name: load_certificate(folder / f"{name}.json") for name in ("5", "6")}
    CertificateBundle.of(made, delta=0.02).save(folder / "all.json")
    assert "verified (bundle, certified" in pacbound("verify", "all.json").stdout
    text = (folder / "all.json").read_text()
    (folder / "all.json").write_text(text.replace('"delta": 0.02', '"delta": 0.03'))
    pacbound("verify", "all.json", code=1)


def test_a_budget_is_begun_and_says_what_is_spent_on_what_and_what_is_left(
    pacbound: Run, predictions: Path
) -> None:
    folder = predictions.parent
    assert "begin one with --delta" in pacbound("budget", "budget.json", code=2).stderr
    assert "Nothing is spent." in pacbound("budget", "budget.json", "--delta", 0.05).stdout
    pacbound("calibrate", predictions, *NAMED, "--delta", 0.03)
    pacbound("abstain", predictions, *NAMED, "--xi", 0.1, "--delta", 0.01, code=3)
    said = pacbound("budget", "budget.json").stdout
    assert "0.04 spent, 0.01 left" in said
    assert "0.03  calibration (sha256:" in said
    assert "0.01  abstention (sha256:" in said
    found = json.loads(pacbound("budget", "budget.json", "--json").stdout)
    assert found["delta"] == 0.05
    (rows,) = found["samples"]
    assert (rows["samples"], rows["spent"], rows["left"]) == ([], 0.04, 0.01)
    assert [claim["what"] for claim in rows["claims"]] == ["calibration", "abstention"]
    done = pacbound("budget", "budget.json", "--delta", 0.06, code=2)
    assert "is of delta = 0.05, not 0.06" in done.stderr
    assert Budget(folder / "budget.json").delta == 0.05


def test_another_column_with_equal_counts_is_another_look(pacbound: Run, tmp_path: Path) -> None:
    rows = "".join(f"1,{row % 2},{(row + 1) % 2}\n" for row in range(40))
    (tmp_path / "t.csv").write_text("c,a,b\n" + rows)
    pacbound("budget", "b.json", "--delta", 0.05)
    spending = ("--confidence", "c", "--delta", 0.03, "--budget", "b.json")
    for _ in range(2):
        pacbound("calibrate", "t.csv", "--correct", "a", *spending)
    pacbound("calibrate", "t.csv", "--correct", "b", *spending, code=2)


def test_samples_of_two_names_have_a_budget_each(pacbound: Run, predictions: Path) -> None:
    folder = predictions.parent
    pacbound("budget", "budget.json", "--delta", 0.05)
    again = folder / "again.csv"
    again.write_bytes(predictions.read_bytes() + b"\n")
    for table, sample in ((predictions, "March"), (again, "April")):
        spending = (*NAMED, "--delta", 0.03, "--sample", sample, "-o", f"{sample}.json")
        assert f"calls it): {sample}" in pacbound("calibrate", table, *spending).stdout
        assert load_certificate(folder / f"{sample}.json").provenance.sample == sample
    assert f"sample {sample}" in pacbound("show", f"{sample}.json").stdout
    for name in ("'March'", "'April'"):
        assert f"sample {name}: 0.03 spent, 0.02 left" in pacbound("budget", "budget.json").stdout
    only = pacbound("budget", "budget.json", "--sample", "april").stdout
    assert "'April': 0.03 spent" in only
    assert "March" not in only
    assert "'May': 0 spent" in pacbound("budget", "budget.json", "--sample", "May").stdout
    # The same bytes are the same rows, whatever they are called.
    done = pacbound("abstain", predictions, *NAMED, "--xi", 0.1, "--delta", 0.01, "--sample",
                    "April", code=2)  # fmt: skip
    assert "'March', 'April', which are the same rows" in done.stderr
    said = pacbound("budget", "budget.json", "--sample", "", code=2).stderr
    assert "is empty" in said


def test_every_command_that_certifies_takes_a_budget_and_a_sample() -> None:
    from inspect import signature

    from pacbound.cli.app import every_command, function_of

    # A batch is about records that are all there: its chance is over which of them are asked.
    others = {"cost", "batch", "tally", "budget", "stratify", "apply", "verify", "monitor"}
    others |= {"demo", "show", "report", "rate", "looks", "pilot", "shadow", "to_label"}
    verbs = [function_of(name) for name in every_command()]
    certifying = {verb.__name__: signature(verb).parameters for verb in verbs}
    for option in ("budget", "sample"):
        without = {name for name, takes in certifying.items() if option not in takes}
        assert without <= others


def test_a_session_spends_once_when_it_is_begun(pacbound: Run, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    slow = rng.integers(0, 3, 400)
    fast = np.where(rng.random(400) < 0.9, slow, (slow + 1) % 3)
    np.savez(tmp_path / "t.npz", c=rng.random(400), f=fast, s=slow)
    Budget(tmp_path / "b.json", delta=0.05)
    columns = ("--confidence", "c", "--prediction", "f,s", "--session", "s.json")
    claim = ("--xi", 0.1, "--delta", 0.03)
    pacbound("label", "t.npz", *columns, *claim, "--budget", "b.json", "--ask", "a.npz")
    assert "0.03 spent" in pacbound("budget", "b.json").stdout
    done = pacbound("label", "t.npz", *columns, "--budget", "b.json", code=2)
    assert "has spent its delta already" in done.stderr
    pacbound("label", "t.npz", *columns)
    assert "0.03 spent" in pacbound("budget", "b.json").stdout
