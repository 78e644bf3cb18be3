"""`pacbound compare`: may the new model replace the old one?"""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

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


def _written(folder: Path, rows: int = 400) -> Any:
    """The same answers in one table, and in one for each model; no row has a label."""
    rng = np.random.default_rng(0)
    truth = rng.choice(["cat", "dog", "owl"], rows)
    old = np.where(rng.random(rows) < 0.1, "dog", truth)
    new = np.where(rng.random(rows) < 0.08, "owl", truth)
    lang = np.where(np.arange(rows) % 3, "en", "de")
    lines = [f'"row, {i}",{old[i]},{new[i]},{lang[i]},' for i in range(rows)]
    (folder / "both.csv").write_text("\n".join(["text,old,new,lang,y", *lines]))
    for name, answers in (("old", old), ("new", new)):
        (folder / f"{name}.jsonl").write_text(
            "\n".join(
                json.dumps(
                    {
                        "doc_id": int(i),
                        "doc": {"q": f"row {i}"},
                        "said": answers[i],
                        "lang": lang[i],
                    }
                )
                for i in rng.permutation(rows)
            )
        )
    return truth, old, new


def _filled(path: Path, truth: Any, rows: int) -> int:
    """Fill in the first rows, the others stay without a label."""
    with path.open(newline="") as file:
        found = list(csv.DictReader(file))
    for row in found[:rows]:
        row["expert_label"] = truth[int(row.get("doc_id") or row["pac_id"].partition("-")[0])]
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, found[0])
        writer.writeheader()
        writer.writerows(found)
    return len(found)


@pytest.mark.parametrize(
    ("given", "shown"),
    [
        (("both.csv", "--prediction", "old,new", "--label", "y"), "text,lang,expert_label,pac_id"),
        (
            ("old.jsonl", "new.jsonl", "--id", "doc_id", "--prediction", "said"),
            "doc_id,doc,lang,expert_label,pac_id",
        ),
    ],
)
def test_rows_go_out_to_be_labelled_without_answers_and_come_back(
    pacbound: Any, tmp_path: Path, given: tuple[str, ...], shown: str
) -> None:
    truth, old, new = _written(tmp_path)
    asked = (*given, "--xi", 0.05, "--delta", 0.05)
    refused = pacbound("compare", *asked, "--to-label", "ask.csv", code=3)
    assert "rows are missing and could still change the verdict" in refused.stderr
    text = (tmp_path / "ask.csv").read_text()
    assert text.splitlines()[0] == shown
    assert not {"cat", "dog", "owl"} & set(text.replace(",", " ").replace("\n", " ").split())
    rows = _filled(tmp_path / "ask.csv", truth, 30)
    assert rows == int((old != new).sum())
    again = ("compare", *asked, "--labels", "ask.csv")
    said = pacbound(*again, "--to-label", "more.csv", "-o", "made.json")
    assert f"({rows - 30} of them without a label)" in said.stdout
    assert "No further label can change the verdict: more.csv is not written." in said.stderr
    data = [word for file in given if file.endswith(("csv", "jsonl")) for word in ("--data", file)]
    assert "the same counts" in pacbound("verify", "made.json", *data, "--labels", "ask.csv").stdout


def test_a_file_that_comes_back_untouched_brings_no_label(pacbound: Any, tmp_path: Path) -> None:
    """Nor does a column that the user calls label: here the old model's answer."""
    _written(tmp_path)
    table = (tmp_path / "both.csv").read_text().splitlines()
    lines = [f"{line},{line.split(',')[-4]}" for line in table[1:]]
    (tmp_path / "both.csv").write_text("\n".join([f"{table[0]},label", *lines]))
    asked = ("--prediction", "old,new", "--xi", 0.05, "--delta", 0.05)
    said = pacbound("compare", "both.csv", *asked, "--to-label", "ask.csv", code=3).stderr
    assert "with --labels ask.csv" in said
    header, *rows = (tmp_path / "ask.csv").read_text().splitlines()
    assert header.split(",")[-2:] == ["expert_label", "pac_id"]
    assert all(row.split(",")[-2] == "" for row in rows)
    again = ("--labels", "ask.csv")
    refused = pacbound("compare", "both.csv", *asked, *again, "--json", code=3).stdout
    (seen,) = json.loads(refused)["claim"]["tables"]
    assert seen["counts"]["unlabelled"] == [len(rows)]


def test_graded_rows_are_not_written_to_be_labelled(pacbound: Any) -> None:
    files = [SAMPLES / f"inspect_{name}.json" for name in ("old", "new")]
    options = ("--id", "id", "--quality", "scores.match.value", *ASKED, "--to-label", "ask.csv")
    assert "graded: grade the rows whose" in pacbound("compare", *files, *options, code=2).stderr


def _graded(folder: Path, name: str, wrong: range) -> str:
    """What lm-evaluation-harness writes of a model on 600 questions."""
    lines = [json.dumps({"doc_id": i, "acc": float(i not in wrong)}) for i in range(600)]
    (folder / name).write_text("\n".join(lines))
    return name


def test_all_of_several_candidates_must_pass(pacbound: Any, tmp_path: Path) -> None:
    """A second run of the old model stands beside the first, and beside the new model."""
    old = _graded(tmp_path, "old.jsonl", range(10, 60))
    again = _graded(tmp_path, "old-again.jsonl", range(12, 61))
    new = _graded(tmp_path, "new.jsonl", range(10, 300))
    asked = ("--id", "doc_id", "--quality", "acc", "--xi", 0.05, "--delta", 0.05)
    said = pacbound("compare", old, again, new, *asked, "-o", "made.json", code=3).stdout
    assert "REFUSED: These rows do not show that the mean quality of new model 2" in said
    assert "New model 1 may replace the old model." in said
    assert "Keep" not in said
    for command in ("show", "verify"):
        pacbound(command, "made.json", *["--exact"] * (command == "verify"), code=3)
    passing = pacbound("compare", old, again, "--json", *asked).stdout
    assert json.loads(passing)["claim"]["certified"] is True
