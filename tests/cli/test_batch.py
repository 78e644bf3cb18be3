"""`pacbound batch`: rows go out to be answered, come back, and no slip on the way certifies."""

from __future__ import annotations

import csv
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from pacbound import answer_batch, load_certificate
from pacbound.file_locks import taken

Run = Callable[..., Any]
N = 400
RNG = np.random.default_rng(3)
SLOW = RNG.integers(0, 4, size=N)
CONFIDENCE = RNG.beta(4, 1, size=N).round(6)
FAST = np.where(RNG.random(N) < CONFIDENCE, SLOW, (SLOW + 1) % 4)
KEY = "5f82c2d9cfeb0fa321d7d982f8bd1045"
BEGIN = ("--confidence", "c", "--prediction", "answer", "--xi", 0.05, "--delta", 0.1)
DRAWN = (*BEGIN, "--key", KEY)


def read(path: Path) -> list[dict[str, str]]:
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def write(path: Path, rows: list[dict[str, Any]]) -> None:
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, rows[0], lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


def place(row: dict[str, str]) -> int:
    return int(row["pac_id"].partition("-")[0])


def fill(path: Path, rows: slice = slice(None), answers: Any = SLOW) -> None:
    """What the expert does with some of the rows."""
    found = read(path)
    for row in found[rows]:
        row["expert_answer"] = str(answers[place(row)])
    write(path, found)


@pytest.fixture
def table(tmp_path: Path) -> Path:
    """Rows with the column names of the README: the fast answers are called `answer`."""
    write(
        tmp_path / "rows.csv",
        [{"text": f"{row:03d}", "c": CONFIDENCE[row], "answer": FAST[row]} for row in range(N)],
    )
    return tmp_path / "rows.csv"


def whole() -> Any:
    return answer_batch(
        CONFIDENCE, FAST, SLOW.__getitem__, xi=0.05, delta=0.1, answers=None, key=KEY
    )


def ended(pacbound: Run, table: Path) -> None:
    """A batch from its beginning to its end."""
    pacbound("batch", table, *DRAWN, "--ask", "ask1.csv")
    fill(table.parent / "ask1.csv")
    pacbound("batch", table, "--take", "ask1.csv", "--ask", "ask2.csv")
    fill(table.parent / "ask2.csv")
    pacbound("batch", table, "--take", "ask2.csv", "-o", "all.csv")


def test_a_batch_through_files_is_that_of_the_function(pacbound: Run, table: Path) -> None:
    done = pacbound("batch", table, *DRAWN, "--ask", "ask1.csv")
    assert "sampled rows still need the expert's answer. 0 of 400 rows are answered" in done.stdout
    asked = read(table.parent / "ask1.csv")
    assert list(asked[0]) == ["text", "expert_answer", "pac_id"]
    assert [int(row["text"]) for row in asked] == [place(row) for row in asked]
    ended(pacbound, _fresh(table))
    rows = read(table.parent / "again" / "all.csv")
    found = whole()
    assert [int(row["pac_prediction"]) for row in rows] == found.predictions.tolist()
    assert [row["pac_source"] for row in rows] == found.answered_by.tolist()
    saved = load_certificate(table.parent / "again" / "all.certificate.json")
    assert saved.claim_digest == found.certificate.claim_digest
    lines = (table.parent / "again" / "rows.csv.answers.jsonl").read_text().splitlines()
    assert len(lines) == 1 + (found.answered_by == "expert").sum()
    assert json.loads(lines[0])["columns"] == {"confidence": "c", "prediction": "answer"}


def _fresh(table: Path) -> Path:
    """The same table in another folder, where nothing was asked."""
    folder = table.parent / "again"
    folder.mkdir()
    (folder / "rows.csv").write_text(table.read_text())
    os.chdir(folder)
    return folder / "rows.csv"


@pytest.fixture
def pacbound(pacbound: Run, monkeypatch: pytest.MonkeyPatch) -> Run:
    """The command in the folder of the table, which is its first file."""

    def run(*words: Any, code: int = 0) -> Any:
        folder = next((w.parent for w in words if isinstance(w, Path)), None)
        named = [
            folder / word
            if folder and isinstance(word, str) and word.endswith((".csv", ".json", ".jsonl"))
            else word
            for word in words
        ]
        return pacbound(*named, code=code)

    return run


def test_the_scale_is_kept_and_used(pacbound: Run, table: Path) -> None:
    write(table, [{**row, "c": 100 * float(row["c"])} for row in read(table)])
    pacbound("batch", table, *DRAWN, "--scale", 100, "--ask", "ask1.csv")
    fill(table.parent / "ask1.csv")
    given = ("batch", table, "--take", "ask1.csv", "--ask", "ask2.csv")
    assert "scores" in pacbound(*given, "--scale", 1000, code=2).stderr
    pacbound(*given)
    fill(table.parent / "ask2.csv")
    pacbound("batch", table, "--take", "ask2.csv", "-o", "all.csv")
    counted = ("verify", "all.certificate.json", "--data", table, "--answers")
    assert "the same counts" in pacbound(*counted, f"{table}.answers.jsonl").stdout


def test_a_batch_that_ended_is_counted_again(pacbound: Run, table: Path) -> None:
    ended(pacbound, table)
    state = table.parent / "rows.csv.answers.jsonl"
    again = ("verify", "all.certificate.json", "--data", table, "--answers", state)
    assert "the data have the same counts" in pacbound(*again).stdout
    lines = state.read_text().splitlines()
    asked = {place(row) for row in read(table.parent / "ask1.csv")}
    rows = [json.loads(line).get("row") for line in lines]
    at = next(i for i, row in enumerate(rows) if row in asked and SLOW[row] != FAST[row])
    lines[at] = json.dumps({"row": rows[at], "answer": int(FAST[rows[at]])})
    state.write_text("\n".join(lines) + "\n")
    said = pacbound(*again, code=1).stderr
    assert "the data have other counts" in said
    state.write_text("\n".join(lines[:9]) + "\n")
    assert "the batch has not ended" in pacbound(*again, code=2).stderr
    refused = pacbound("verify", "all.certificate.json", "--data", table, code=2)
    assert "add --answers FILE" in refused.stderr
    refused = pacbound("verify", "all.certificate.json", "--answers", state, code=2)
    assert "pass the file, too" in refused.stderr


# ---- slips


def test_a_file_that_was_not_touched_answers_nothing(pacbound: Run, table: Path) -> None:
    """With the README's own command, whose fast answers are called `answer`."""
    pacbound("batch", table, *DRAWN, "--ask", "ask1.csv")
    before = (table.parent / "ask1.csv").read_text()
    done = pacbound(
        "batch", table, "--take", "ask1.csv", "--ask", "ask2.csv", "-o", "all.csv", "--json"
    )
    said = json.loads(done.stdout)
    assert (said["done"], said["answered"]) == (False, 0)
    assert said["left_empty"] == said["to_ask"] == len(read(table.parent / "ask1.csv"))
    assert (table.parent / "ask2.csv").read_text() == before
    assert not (table.parent / "all.csv").exists()
    assert not (table.parent / "all.certificate.json").exists()


def test_the_same_file_twice_is_once_and_only_the_rest_is_asked(pacbound: Run, table: Path) -> None:
    pacbound("batch", table, *DRAWN, "--ask", "ask1.csv")
    fill(table.parent / "ask1.csv", slice(0, 15))
    first = {place(row) for row in read(table.parent / "ask1.csv")}
    answered = {place(row) for row in read(table.parent / "ask1.csv")[:15]}
    for name in ("ask2.csv", "ask3.csv"):
        pacbound("batch", table, "--take", "ask1.csv", "--take", "ask1.csv", "--ask", name)
        assert {place(row) for row in read(table.parent / name)} == first - answered
    assert len((table.parent / "rows.csv.answers.jsonl").read_text().splitlines()) == 16


def test_files_that_may_hold_answers_are_not_written_over(pacbound: Run, table: Path) -> None:
    pacbound("batch", table, *DRAWN, "--ask", "ask1.csv")
    refused = pacbound("batch", table, "--ask", "ask1.csv", code=2)
    assert "is there, and may hold answers: take them in with --take" in refused.stderr


@pytest.mark.parametrize("name", ["expert_answer", "pac_id", "expert_label", "pac_x"])
def test_a_table_with_a_column_that_people_fill_in_is_refused(
    pacbound: Run, table: Path, name: str
) -> None:
    write(table, [{**row, name: "1"} for row in read(table)])
    refused = pacbound("batch", table, *BEGIN, "--ask", "ask1.csv", code=2)
    assert f"has a column {name!r}" in refused.stderr
    assert not (table.parent / "ask1.csv").exists()


CHANGED: dict[str, Callable[[list[dict[str, str]]], list[dict[str, str]]]] = {
    "dropped": lambda rows: rows[:50] + rows[51:],
    "appended": lambda rows: [*rows, rows[0]],
    "sorted": lambda rows: sorted(rows, key=lambda row: row["c"]),
    "a score": lambda rows: [{**rows[0], "c": "0.123"}, *rows[1:]],
}


@pytest.mark.parametrize("case", CHANGED)
def test_another_table_is_another_batch(pacbound: Run, table: Path, case: str) -> None:
    pacbound("batch", table, *DRAWN, "--ask", "ask1.csv")
    fill(table.parent / "ask1.csv")
    write(table, CHANGED[case](read(table)))
    refused = pacbound("batch", table, "--take", "ask1.csv", "--ask", "b.csv", code=2)
    assert "is of another batch, as " in refused.stderr
    assert not (table.parent / "b.csv").exists()


def test_another_xi_is_another_batch(pacbound: Run, table: Path) -> None:
    pacbound("batch", table, *DRAWN, "--ask", "ask1.csv")
    fill(table.parent / "ask1.csv")
    asked = ("--take", "ask1.csv", "--ask", "b.csv", "--xi", 0.1)
    refused = pacbound("batch", table, *asked, code=2)
    assert "as xi changed: it was 0.05 and is 0.1" in refused.stderr


def test_an_answer_that_changed_is_refused(pacbound: Run, table: Path) -> None:
    pacbound("batch", table, *DRAWN, "--ask", "ask1.csv")
    fill(table.parent / "ask1.csv", slice(0, 4))
    pacbound("batch", table, "--take", "ask1.csv", "--ask", "b.csv")
    fill(table.parent / "ask1.csv", slice(0, 4), (SLOW + 1) % 4)
    refused = pacbound("batch", table, "--take", "ask1.csv", "--ask", "c.csv", code=2)
    row = place(read(table.parent / "ask1.csv")[0])
    assert f"row {row} was answered {SLOW[row]} before, and now" in refused.stderr


def test_a_line_that_was_cut_short_is_refused(pacbound: Run, table: Path) -> None:
    pacbound("batch", table, *DRAWN, "--ask", "ask1.csv")
    fill(table.parent / "ask1.csv")
    text = (table.parent / "ask1.csv").read_text().rstrip("\n")
    for cut in (1, 4, 8, len(text) - text.rindex(",") - 1, len(text) - text.rindex(",")):
        (table.parent / "ask1.csv").write_text(text[:-cut])
        refused = pacbound("batch", table, "--take", "ask1.csv", "-o", "all.csv", code=2)
        assert "ask1.csv" in refused.stderr


def test_without_the_file_of_answers_a_filled_file_is_worth_nothing(
    pacbound: Run, table: Path
) -> None:
    pacbound("batch", table, *BEGIN, "--ask", "ask1.csv")
    fill(table.parent / "ask1.csv")
    (table.parent / "rows.csv.answers.jsonl").unlink()
    refused = pacbound("batch", table, *BEGIN, "--take", "ask1.csv", "--ask", "b.csv", code=2)
    assert "so nothing was asked yet: begin with --ask" in refused.stderr
    # Another draw has another key, and these are not its rows.
    pacbound("batch", table, *BEGIN, "--ask", "b.csv")
    refused = pacbound("batch", table, "--take", "ask1.csv", "--ask", "c.csv", code=2)
    assert "was not asked for in this batch" in refused.stderr


def test_the_answers_are_mended_in_an_editor(pacbound: Run, table: Path) -> None:
    pacbound("batch", table, *DRAWN, "--ask", "ask1.csv")
    fill(table.parent / "ask1.csv", slice(0, 20))
    pacbound("batch", table, "--take", "ask1.csv", "--ask", "b.csv")
    state = table.parent / "rows.csv.answers.jsonl"
    head, *lines = state.read_text().splitlines()
    state.write_text("\n".join([head, *sorted(lines)[3:]]) + '\n{"row": 1, "ans')
    pacbound("batch", table, "--ask", "c.csv")
    gone = {json.loads(line)["row"] for line in sorted(lines)[:3]}
    b, c = ({place(row) for row in read(table.parent / name)} for name in ("b.csv", "c.csv"))
    assert c == b | gone
    for text, said in (
        ("\n".join([head, "junk", *lines]) + "\n", "line 2 is damaged: 'junk'"),
        (head[:-9], "its first line, with the key"),
    ):
        state.write_text(text)
        assert said in pacbound("batch", table, "--ask", "d.csv", code=2).stderr


def test_a_second_process_is_refused(pacbound: Run, table: Path) -> None:
    pacbound("batch", table, *DRAWN, "--ask", "ask1.csv")
    with (table.parent / "rows.csv.answers.jsonl").open("rb") as held:
        assert taken(held, wait=False)
        refused = pacbound("batch", table, "--ask", "b.csv", code=2)
    assert "in use by another process" in refused.stderr


# ---- formats and options


def test_rows_that_cannot_be_answered_are_counted(pacbound: Run, table: Path) -> None:
    pacbound("batch", table, *DRAWN, "--ask", "ask1.csv")
    fill(table.parent / "ask1.csv")
    rows = read(table.parent / "ask1.csv")
    rows[0]["expert_answer"] = " ? "
    write(table.parent / "ask1.csv", rows)
    given = ("--take", "ask1.csv", "--cannot-tell", "?", "--ask", "ask2.csv")
    pacbound("batch", table, *given)
    fill(table.parent / "ask2.csv")
    pacbound("batch", table, "--take", "ask2.csv", "-o", "all.csv")
    found = read(table.parent / "all.csv")
    assert [row["pac_source"] for row in found].count("none") == 1
    assert found[place(rows[0])]["pac_prediction"] == ""


@pytest.mark.parametrize("suffix", ["parquet", "jsonl"])
@pytest.mark.parametrize("is_view", [False, True])
def test_tables_with_types_keep_them(
    pacbound: Run, table: Path, suffix: str, is_view: bool
) -> None:
    """Arrow can neither filter nor search views of texts."""
    frame = pl.read_csv(table, schema_overrides={"text": pl.String})
    path = table.parent / f"rows.{suffix}"
    frame.write_parquet(path) if suffix == "parquet" else frame.write_ndjson(path)
    if is_view:
        path = table.parent / "rows.arrow"
        frame.write_ipc(path, compat_level=pl.CompatLevel.newest())
    loaded = pl.read_parquet if suffix == "parquet" else pl.read_ndjson
    given: tuple[Any, ...] = DRAWN
    for round_ in (1, 2):
        ask = table.parent / f"ask{round_}.{suffix}"
        pacbound("batch", path, *given, "--ask", ask)
        asked = loaded(ask)
        assert asked.columns == ["text", "expert_answer", "pac_id"]
        at = asked["pac_id"].str.split("-").list.first().cast(pl.Int64).to_numpy()
        filled = asked.with_columns(expert_answer=pl.Series(SLOW[at]))
        filled.write_parquet(ask) if suffix == "parquet" else filled.write_ndjson(ask)
        given = ("--take", ask)
    pacbound("batch", path, *given, "-o", table.parent / f"all.{suffix}")
    out = loaded(table.parent / f"all.{suffix}")
    assert out["pac_prediction"].to_list() == whole().predictions.tolist()
    assert out["text"].to_list() == frame["text"].to_list()


def test_what_a_batch_needs_is_said(pacbound: Run, table: Path) -> None:
    assert (
        "--xi is missing" in pacbound("batch", table, *BEGIN[:4], "--ask", "a.csv", code=2).stderr
    )
    assert "Pass --ask FILE" in pacbound("batch", table, *BEGIN, code=2).stderr
    pacbound("batch", table, *DRAWN, "--ask", "a.csv", "--show", "c")
    assert list(read(table.parent / "a.csv")[0]) == ["c", "expert_answer", "pac_id"]
    refused = pacbound("batch", table, "--ask", "b.csv", "--show", "image", code=2)
    assert "image" in refused.stderr
