"""`pacbound cascade`, its rows to label, and `pacbound apply` with its certificate, end to end."""

import csv
import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from pacbound import certify_cascade, load_certificate
from pacbound.claims.cascade import CascadeCertificate

Run = Callable[..., subprocess.CompletedProcess[str]]

COLUMNS = ("--confidence", "c", "--prediction", "fast,slow", "--label", "y")
CLAIM = ("--xi", 0.05, "--delta", 0.05)


def rows_of(path: Path) -> list[dict[str, str]]:
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


@pytest.fixture
def table(tmp_path: Path) -> Path:
    """A fast and a slow model on 600 rows, with a label only where they differ."""
    rng = np.random.default_rng(0)
    confidence = rng.beta(5, 1, size=600)
    label = rng.choice(["cat", "dog", "ox"], size=600)
    fast = np.where(rng.random(600) < confidence, label, "cat")
    slow = np.where(rng.random(600) < 0.9, label, "dog")
    lines = ["id,c,fast,slow,y"]
    for i, score in enumerate(confidence.tolist()):
        lines.append(f"{i},{score!r},{fast[i]},{slow[i]},{label[i] if fast[i] != slow[i] else ''}")
    path = tmp_path / "rows.csv"
    path.write_text("\n".join(lines) + "\n")
    return path


def test_the_certificate_from_a_file_makes_the_claim_of_the_arrays(
    pacbound: Run, table: Path
) -> None:
    pacbound("cascade", table, *COLUMNS, *CLAIM, "--costs", "1,9", "-o", "cascade.json")
    rows = rows_of(table)
    confidence = [float(row["c"]) for row in rows]
    predictions = [[row["fast"], row["slow"]] for row in rows]
    labels = [row["y"] or None for row in rows]
    arrays = certify_cascade(confidence, predictions, labels, xi=0.05, delta=0.05, costs=[1, 9])
    loaded = load_certificate(table.parent / "cascade.json")
    assert loaded.claim_digest == arrays.claim_digest
    assert loaded.verify()


def test_without_a_label_column_the_claim_is_about_the_loss_unless_it_is_declared(
    pacbound: Run, table: Path
) -> None:
    named = [name for name in COLUMNS if name not in ("--label", "y")]
    done = pacbound("cascade", table, *named, *CLAIM, "-o", "none.json")
    assert "Rows without a label where predictions differ: " in done.stdout
    differ = pacbound("cascade", table, *named, *CLAIM, "--claim", "differ", "-o", "differ.json")
    assert "of its answers differ from those of slow" in " ".join(differ.stdout.split())
    none, declared = (
        load_certificate(table.parent / f"{name}.json") for name in ("none", "differ")
    )
    assert isinstance(none, CascadeCertificate)
    assert isinstance(declared, CascadeCertificate)
    assert (none.bounded, declared.bounded) == ("loss", "differ")
    assert none.thresholds == declared.thresholds
    lines = pacbound("verify", "none.json", "differ.json", "--exact", "--json").stdout.splitlines()
    found = [json.loads(line) for line in lines]
    claims = [said["claim"] for said in found if isinstance(said.get("claim"), str)]
    assert claims == ["loss", "differ"]
    # The same rows are counted again for the same claim.
    pacbound("verify", "differ.json", "--data", table)
    refused = pacbound("cascade", table, *COLUMNS, *CLAIM, "--claim", "differ", code=2)
    assert "takes no labels" in refused.stderr


def test_apply_says_which_model_answers_and_what(pacbound: Run, table: Path) -> None:
    pacbound("cascade", table, *COLUMNS, *CLAIM, "-o", "cascade.json")
    pacbound("apply", "cascade.json", table, "-o", "out.csv")
    certificate = load_certificate(table.parent / "cascade.json")
    assert isinstance(certificate, CascadeCertificate)
    for row in rows_of(table.parent / "out.csv"):
        early = float(row["c"]) >= certificate.thresholds[0]
        assert row["pac_exit"] == ("0" if early else "1")
        assert row["pac_prediction"] == (row["fast"] if early else row["slow"])
