"""`--budget`: a claim that overspends is neither saved nor shown."""

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import numpy as np

from pacbound import Budget, CertificateBundle, documents, load_certificate

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
    (rows,) = found["rows"]
    assert (rows["spent"], rows["left"]) == (0.04, 0.01)
    assert [claim["what"] for claim in rows["claims"]] == ["calibration", "abstention"]
    done = pacbound("budget", "budget.json", "--delta", 0.06, code=2)
    assert "is of delta = 0.05, not 0.06" in done.stderr
    assert Budget(folder / "budget.json").delta == 0.05


def test_a_budget_of_an_older_version_without_kinds_is_shown(
    pacbound: Run, predictions: Path
) -> None:
    folder = predictions.parent
    Budget(folder / "budget.json", delta=0.05)
    pacbound("calibrate", predictions, *NAMED, "--delta", 0.03)
    document = json.loads((folder / "budget.json").read_text())
    body = {key: value for key, value in document.items() if key != "digest"}
    del body["looks"][0]["what"]
    documents.write(folder / "budget.json", {**body, "digest": documents.digest(body)})
    assert "0.03  a claim (sha256:" in pacbound("budget", "budget.json").stdout


def test_every_command_that_certifies_takes_a_budget() -> None:
    from importlib import import_module
    from inspect import signature

    from pacbound.cli.app import COMMANDS

    # A batch is about records that are all there: its chance is over which of them are asked.
    others = {"cost", "batch", "tally", "budget", "stratify", "apply", "verify", "monitor", "plan"}
    others |= {"demo", "show", "report"}
    names = [name.replace("-", "_") for group in COMMANDS.values() for name in group]
    verbs = [getattr(import_module(f"pacbound.cli.{name}"), name) for name in names]
    certifying = {verb.__name__: signature(verb).parameters for verb in verbs}
    without = {name for name, takes in certifying.items() if "budget" not in takes}
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
    assert "was begun, and spent then" in done.stderr
    pacbound("label", "t.npz", *columns)
    assert "0.03 spent" in pacbound("budget", "b.json").stdout
