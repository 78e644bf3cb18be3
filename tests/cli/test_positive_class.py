"""`--positive-class`: truth values written as classes, from certifying to watching."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from pacbound import certify_recall, load_certificate


def test_the_command_line_certifies_counts_again_and_watches(tmp_path: Path, pacbound: Any) -> None:
    rng = np.random.default_rng(0)
    score = rng.random(600)
    flag = rng.random(600) < score
    frame = pl.DataFrame({"s": score, "y": np.where(flag, "ill", "healthy")})
    frame.write_csv(tmp_path / "rows.csv")
    frame.write_parquet(tmp_path / "rows.parquet")
    frame.write_ndjson(tmp_path / "rows.jsonl")
    columns = ("--score", "s", "--positive", "y")
    asked = ("--target", 0.8, "--delta", 0.1, "-o", "c.json")
    refused = pacbound("recall", "rows.csv", *columns, *asked, code=2)
    assert "--positive-class ill" in " ".join(refused.stderr.split())
    pacbound("recall", "rows.csv", *columns, "--positive-class", "ill", *asked)
    plain = certify_recall(score, flag, target=0.8, delta=0.1)
    assert load_certificate(tmp_path / "c.json").claim() == plain.claim()
    again = pacbound("verify", "c.json", "--data", "rows.parquet")
    assert "the data have the same counts" in again.stdout
    watched = pacbound("monitor", "c.json", "rows.jsonl", "--delta", 0.001)
    assert f"{flag.sum()} labels" in watched.stdout
    piloted = ("--kind", "recall", "--column", "score=s", "--column", "positive=y")
    sizes = ("--sizes", "100", "--draws", 10, "--positive-class", "ill", *asked[:-2])
    assert "About 100 rows" in pacbound("plan", "pilot", "rows.csv", *piloted, *sizes).stdout
