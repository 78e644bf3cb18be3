"""`pacbound compare`: may the new model replace the old one?"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

SAMPLES = Path(__file__).parents[1] / "data" / "evaluations"
ASKED = ("--xi", 0.4, "--delta", 0.1)


def table(folder: Path, lost: int = 3, gained: int = 6, rows: int = 200) -> str:
    old, new = np.ones(rows, dtype=int), np.ones(rows, dtype=int)
    new[:lost], old[lost : lost + gained] = 0, 0
    lines = [f"{a},{b},1" for a, b in zip(old, new, strict=True)]
    (folder / "answers.csv").write_text("\n".join(["old,new,y", *lines]))
    return "answers.csv"


def test_one_table_with_both_models(pacbound: Any, tmp_path: Path) -> None:
    file, columns = table(tmp_path), ("--prediction", "old,new", "--label", "y")
    said = pacbound("compare", file, *columns, "--xi", 0.05, "--delta", 0.05, "-o", "made.json")
    assert "new may replace old." in said.stdout
    assert "verified" in pacbound("verify", "made.json", "--data", file).stdout
    assert "new may replace old." in pacbound("show", "made.json").stdout
    refused = pacbound(
        "compare", file, *columns, "--xi", 0.0, "--delta", 0.05, "--json", code=3
    ).stdout
    assert json.loads(refused)["claim"]["certified"] is False


def test_a_refusal_ends_with_3_and_says_what_it_would_take(pacbound: Any, tmp_path: Path) -> None:
    file, columns = table(tmp_path, lost=8, gained=0), ("--prediction", "old,new", "--label", "y")
    said = pacbound("compare", file, *columns, "--xi", 0.05, "--delta", 0.05, code=3).stdout
    assert "REFUSED" in said
    assert "rows, of which about" in said


def test_two_files_are_joined_by_an_id(pacbound: Any) -> None:
    files = [SAMPLES / f"inspect_{name}.json" for name in ("old", "new")]
    options = ("--id", "id", "--quality", "scores.match.value", *ASKED)
    said = pacbound("compare", *files, *options, "-o", "made.json").stdout
    assert "one row from each of 30 clusters" in said
    assert "The new model may replace the old model." in said
    data = [word for file in files for word in ("--data", file)]
    assert "the same counts, in the same files" in pacbound("verify", "made.json", *data).stdout
    missing = pacbound("compare", *files, "--quality", "scores.match.value", *ASKED, code=2)
    assert "--id doc_id" in missing.stderr


def test_a_pilot_says_how_many_labels_it_takes(pacbound: Any, tmp_path: Path) -> None:
    file = table(tmp_path, lost=6, gained=6, rows=400)
    roles = ("--column", "prediction=old,new", "--column", "label=y", "--kind", "replacement")
    asked = ("--xi", 0.03, "--delta", 0.05, "--draws", 20)
    said = pacbound("plan", "pilot", file, *roles, *asked).stdout
    assert "labels" in said
