"""`pacbound design`, `pacbound apply` with its certificate, and `pacbound cost`, end to end."""

import csv
import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pacbound import certified_cost, design_cascade, load_certificate
from pacbound.claims.cascade import CascadeCertificate

Run = Callable[..., subprocess.CompletedProcess[str]]

COSTS = [1.0, 3.0, 20.0]
COLUMNS = ("--confidence", "c1,c2,c3", "--prediction", "small,medium,large", "--label", "y")
CLAIM = ("--costs", "1,3,20", "--xi", 0.05, "--delta", 0.05)


def rows_of(path: Path) -> list[dict[str, str]]:
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def write(path: Path, seed: int, n: int = 1500) -> dict[str, Any]:
    rng = np.random.default_rng(seed)
    ease = rng.normal(size=(n, 1))
    own = ease + 0.5 * rng.normal(size=(n, 3))
    label = rng.choice(["cat", "dog", "ox"], size=n)
    right = own > np.array([-0.7, -1.2, -2.0])
    predictions = np.where(right, label[:, None], np.where(label == "cat", "dog", "cat")[:, None])
    scores = 1 / (1 + np.exp(-(1.2 + 1.5 * own)))
    lines = ["id,c1,c2,c3,small,medium,large,y"]
    for i in range(n):
        agree = len(set(predictions[i])) == 1
        numbers = ",".join(repr(score) for score in scores[i].tolist())
        lines.append(f"{i},{numbers},{','.join(predictions[i])},{'' if agree else label[i]}")
    path.write_text("\n".join(lines) + "\n")
    return {"confidence": scores, "prediction": predictions, "label": label}


@pytest.fixture
def table(tmp_path: Path) -> Path:
    write(tmp_path / "rows.csv", 0)
    return tmp_path / "rows.csv"


def test_the_design_from_a_file_is_that_of_the_arrays(pacbound: Run, tmp_path: Path) -> None:
    arrays = write(tmp_path / "rows.csv", 0)
    done = pacbound("design", "rows.csv", *COLUMNS, *CLAIM, "--seed", 5, "-o", "cascade.json")
    expected = design_cascade(**arrays, costs=COSTS, xi=0.05, delta=0.05, seed=5)
    loaded = load_certificate(tmp_path / "cascade.json")
    assert loaded.claim_digest == expected.certificate.claim_digest
    names = np.array(["small", "medium", "large"])[list(expected.models)]
    assert loaded.provenance.columns["prediction"] == ",".join(names)
    assert f"Chosen: {' > '.join(names)}." in done.stdout
    assert "Estimates on the fold" in done.stdout
    pacbound("verify", "cascade.json")
    # Typed again, it draws the same fold, without its seed, too.
    again = pacbound("design", "rows.csv", *COLUMNS, *CLAIM, "-o", "cascade.json")
    assert "cascade.json is about the same rows: its seed 5 draws them again" in again.stderr
    assert load_certificate(tmp_path / "cascade.json").claim_digest == loaded.claim_digest


def test_apply_finds_the_chosen_columns_in_the_wide_table(
    pacbound: Run, table: Path, tmp_path: Path
) -> None:
    pacbound("design", table, *COLUMNS, *CLAIM, "-o", "cascade.json")
    write(tmp_path / "new.csv", 1)
    pacbound("apply", "cascade.json", "new.csv", "-o", "out.csv")
    certificate = load_certificate(tmp_path / "cascade.json")
    assert isinstance(certificate, CascadeCertificate)
    exits = certificate.provenance.columns["confidence"].split(",")
    models = certificate.provenance.columns["prediction"].split(",")
    for row in rows_of(tmp_path / "out.csv"):
        passing = [
            m
            for m, (name, threshold) in enumerate(
                zip(exits, certificate.thresholds.tolist(), strict=True)
            )
            if float(row[name]) >= threshold
        ]
        answering = passing[0] if passing else len(exits)
        assert int(row["pac_exit"]) == answering
        assert row["pac_prediction"] == row[models[answering]]


def test_the_cost_is_bounded_from_fresh_rows(pacbound: Run, table: Path, tmp_path: Path) -> None:
    pacbound("design", table, *COLUMNS, *CLAIM, "-o", "cascade.json")
    certificate = load_certificate(tmp_path / "cascade.json")
    assert isinstance(certificate, CascadeCertificate)
    fresh = write(tmp_path / "new.csv", 1)
    exits = [int(name[1]) - 1 for name in certificate.provenance.columns["confidence"].split(",")]
    arrays = certified_cost(certificate, fresh["confidence"][:, exits], delta=0.01)
    written = json.loads(
        pacbound("cost", "cascade.json", "new.csv", "--delta", 0.01, "--json").stdout
    )
    assert written == {"certificate": "cascade.json", **vars(arrays)}
    words = pacbound("cost", "cascade.json", "new.csv", "--delta", 0.01).stdout
    assert "1,500 fresh rows" in words
    assert "holds with probability at least 0.94" in words
