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


def test_a_label_missing_where_the_models_differ_counts_as_a_loss(
    pacbound: Run, table: Path
) -> None:
    rows = table.read_text().splitlines()
    first = next(i for i, row in enumerate(rows[1:]) if not row.endswith(","))
    rows[first + 1] = rows[first + 1].rpartition(",")[0] + ","
    table.write_text("\n".join(rows) + "\n")
    pacbound("cascade", table, *COLUMNS, *CLAIM, "-o", "partial.json")
    partial = load_certificate(table.parent / "partial.json")
    assert isinstance(partial, CascadeCertificate)
    assert partial.unlabelled.in_all == 1


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


def test_apply_needs_no_predictions(pacbound: Run, table: Path) -> None:
    pacbound("cascade", table, *COLUMNS, *CLAIM, "-o", "cascade.json")
    (table.parent / "new.csv").write_text("c\n0.99\n0.1\n")
    pacbound("apply", "cascade.json", "new.csv", "-o", "out.csv")
    assert [row["pac_exit"] for row in rows_of(table.parent / "out.csv")] == ["0", "1"]


def test_three_models_go_through_npz(pacbound: Run, tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    label = rng.integers(0, 5, size=800)
    scores = rng.beta(6, 1, size=(800, 2))
    right = rng.random((800, 3)) < np.column_stack([scores, np.full(800, 0.95)])
    answers = np.where(right, label[:, None], label[:, None] + 1)
    names = dict(
        zip(("c1", "c2", "p1", "p2", "p3", "y"), [*scores.T, *answers.T, label], strict=True)
    )
    np.savez(tmp_path / "rows.npz", **names)
    options = (
        "--confidence",
        "c1,c2",
        "--prediction",
        "p1,p2,p3",
        "--label",
        "y",
        "--xi",
        0.1,
        "--delta",
        0.05,
    )
    pacbound("cascade", "rows.npz", *options, "--costs", "1,3,9", "-o", "cascade.json")
    pacbound("apply", "cascade.json", "rows.npz", "-o", "out.npz")
    certificate = load_certificate(tmp_path / "cascade.json")
    assert isinstance(certificate, CascadeCertificate)
    with np.load(tmp_path / "out.npz") as out:
        left = [(out["pac_exit"] == m).mean() for m in range(2)]
        assert (out["pac_prediction"] == answers[np.arange(800), out["pac_exit"]]).all()
    assert left == pytest.approx(certificate.exit_rates.tolist())


def test_a_refusal_ends_with_code_3_and_says_what_it_would_take(pacbound: Run, table: Path) -> None:
    done = pacbound(
        "cascade", table, *COLUMNS, "--xi", 0.001, "--delta", 0.05, "-o", "no.json", code=3
    )
    assert "REFUSED" in done.stdout
    assert "About 2,995 rows would do" in done.stdout
    assert not load_certificate(table.parent / "no.json").certified


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((*COLUMNS, "--xi", 1.0, "--delta", 0.1), "--xi=1.0"),
        ((*COLUMNS, "--xi", -0.1, "--delta", 0.1), "--xi=-0.1"),
        ((*COLUMNS, "--xi", 0.1, "--delta", 2), "--delta=2.0"),
        ((*COLUMNS, *CLAIM, "--costs", "9,1"), "do not rise"),
        ((*COLUMNS, *CLAIM, "--costs", "1,a"), "not a list of numbers"),
        ((*COLUMNS[:2], "--prediction", "fast", "--label", "y", *CLAIM), "not a cascade"),
        (
            (*COLUMNS[:2], "--prediction", "fast,slower", "--label", "y", *CLAIM),
            "no column 'slower'",
        ),
        (("--prediction", "fast,slow"), "Missing option '--confidence'"),
    ],
)
def test_bad_usage_is_explained(
    pacbound: Run, table: Path, arguments: tuple[object, ...], message: str
) -> None:
    assert message in pacbound("cascade", table, *arguments, "-o", "cascade.json", code=2).stderr
    assert not (table.parent / "cascade.json").exists()


def test_classes_that_never_match_are_refused_and_options_say_what_is_meant(
    pacbound: Run, tmp_path: Path
) -> None:
    lines = ["c,fast,slow,y"]
    lines += [f"0.9,{'A' if i % 2 else 'B'},B,{'NA' if i % 2 == 0 else 'C'}" for i in range(400)]
    (tmp_path / "rows.csv").write_text("\n".join(lines))
    run = ("cascade", "rows.csv", *COLUMNS, "--xi", 0.3, "--delta", 0.05, "-o", "out.json")
    assert "usually a code for a missing value" in pacbound(*run, code=2).stderr
    named = (*run, "--missing", "NA")
    assert "have no class in common" in pacbound(*named, code=2).stderr
    lines[2:6] = ["0.9,A,B,B"] * 2 + ["0.9,A,B,A"] * 2
    (tmp_path / "rows.csv").write_text("\n".join(lines))
    assert "no model predicts in any row: 'C'" in pacbound(*named, code=2).stderr
    assert not (tmp_path / "out.json").exists()
    pacbound(*named, "--unseen-labels", 0.5)
    pacbound(*named, "--classes", "A,B,C")
    assert "not one of the classes" in pacbound(*named, "--classes", "A,B", code=2).stderr
