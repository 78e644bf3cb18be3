"""Labels that are asked for by `--to-label`: what goes out and comes back, and that no slip makes a
certificate.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from pacbound import certify_cascade, load_certificate

Run = Callable[..., Any]
N = 600
RNG = np.random.default_rng(5)
SCORE = RNG.beta(4, 1, N).round(4)
TRUTH = RNG.integers(0, 3, N)
FAST = np.where(RNG.random(N) < SCORE, TRUTH, (TRUTH + 1) % 3)
SLOW = np.where(RNG.random(N) < 0.9, TRUTH, (TRUTH + 2) % 3)
ASKED = ("--confidence", "c", "--prediction", "answer,slow", "--xi", 0.05, "--delta", 0.1)
COUNT = ("--count", 20)


@pytest.fixture
def table(tmp_path: Path) -> Path:
    """Rows with the column names of the README."""
    write(
        tmp_path / "rows.csv",
        [
            {"text": f"{row:04d}, or so", "c": SCORE[row], "answer": FAST[row], "slow": SLOW[row]}
            for row in range(N)
        ],
    )
    return tmp_path / "rows.csv"


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


def fill(path: Path, rows: slice = slice(None), truth: Any = TRUTH) -> None:
    """What a labeller does with some of the rows."""
    found = read(path)
    for row in found[rows]:
        row["expert_label"] = str(truth[place(row)])
    write(path, found)


def test_labels_are_asked_for_until_none_can_change_the_thresholds(
    pacbound: Run, table: Path
) -> None:
    given: tuple[Any, ...] = ("cascade", table, *ASKED)
    came: tuple[Any, ...] = ()
    asked: list[int] = []
    for look in range(99):
        name = f"ask{look}.csv"
        done = pacbound(*given, *came, "--to-label", name, *COUNT, "-o", "cascade.json")
        if "is not written" in done.stderr:
            break
        rows = read(table.parent / name)
        assert list(rows[0]) == ["text", "expert_label", "pac_id"]
        assert [row["text"] for row in rows] == [f"{place(row):04d}, or so" for row in rows]
        asked += map(place, rows)
        fill(table.parent / name)
        came += ("--labels", name)
    assert len(asked) == len(set(asked)) < (FAST != SLOW).sum()
    assert not (table.parent / name).exists()
    whole = certify_cascade(SCORE, np.column_stack([FAST, SLOW]), TRUTH, xi=0.05, delta=0.1)
    found: Any = load_certificate(table.parent / "cascade.json")
    assert found.thresholds.tolist() == whole.thresholds.tolist()
    done = pacbound("verify", "cascade.json", "--data", table, *came)
    assert "the same counts" in done.stdout


def begun(pacbound: Run, table: Path, *more: Any) -> tuple[Any, ...]:
    """Twenty rows are asked for, and a first look is taken."""
    given = ("cascade", table, *ASKED, *more)
    pacbound(*given, "--to-label", "ask.csv", *COUNT, "-o", "cascade.json")
    return given


def changed(given: tuple[Any, ...], more: tuple[Any, ...]) -> tuple[Any, ...]:
    """The options with one of them changed, or one more."""
    if not more or more[0] not in given:
        return (*given, *more)
    at = given.index(more[0])
    return (*given[:at], *more, *given[at + 2 :])


def test_the_earlier_look_lends_its_seed_to_the_next(pacbound: Run, table: Path) -> None:
    rows = [{**row, "patient": f"p{at // 2}"} for at, row in enumerate(read(table))]
    write(table, rows)
    given = begun(pacbound, table, "--clusters", "patient", "--seed", 75261937)[:-2]
    fill(table.parent / "ask.csv")
    for came in (("--labels", "ask.csv"), ("--labels", "ask.csv", "--labels", "ask2.csv")):
        done = pacbound(*given, *came, "--to-label", f"ask{len(came)}.csv", "-o", "cascade.json")
        assert "its seed 75261937 draws them again" in done.stderr
        fill(table.parent / "ask2.csv")


def thresholds(path: Path) -> list[float]:
    found: Any = load_certificate(path)
    return [*found.thresholds.tolist()]


def test_a_file_that_was_not_touched_tells_nothing(pacbound: Run, table: Path) -> None:
    given = begun(pacbound, table)
    before = (table.parent / "ask.csv").read_text()
    pacbound(*given, "--labels", "ask.csv", "--to-label", "again.csv", *COUNT, "-o", "b.json")
    assert (table.parent / "again.csv").read_text() == before
    found: Any = load_certificate(table.parent / "b.json")
    assert found.tables[0].labels == {"labelled": 0, "unlabelled": int((FAST != SLOW).sum())}


def test_only_the_rest_is_asked_for_and_the_same_file_twice_is_once(
    pacbound: Run, table: Path
) -> None:
    given = begun(pacbound, table)
    fill(table.parent / "ask.csv", slice(0, 12))
    twice = ("--labels", "ask.csv", "--labels", "copy.csv")
    (table.parent / "copy.csv").write_text((table.parent / "ask.csv").read_text())
    pacbound(*given, *twice, "--to-label", "two.csv", *COUNT, "-o", "two.json")
    pacbound(*given, "--labels", "ask.csv", "--to-label", "one.csv", *COUNT, "-o", "one.json")
    one, two = (read(table.parent / name) for name in ("one.csv", "two.csv"))
    assert one == two
    assert not {place(row) for row in one} & {
        place(r) for r in read(table.parent / "copy.csv")[:12]
    }
    assert thresholds(table.parent / "one.json") == thresholds(table.parent / "two.json")


def test_rows_that_somebody_else_has_are_not_written_again(pacbound: Run, table: Path) -> None:
    given = begun(pacbound, table)
    out = ("--handed-out", "ask.csv")
    pacbound(*given, "--to-label", "other.csv", *COUNT, *out)
    mine, theirs = ({place(r) for r in read(table.parent / f"{n}.csv")} for n in ("ask", "other"))
    assert len(mine) == len(theirs) == 20
    assert not mine & theirs
    (table.parent / "other.csv").write_text("text,expert_label,pac_id\na,,3-r0000000\n")
    refused = pacbound(*given, "--to-label", "more.csv", "--handed-out", "other.csv", code=2)
    assert "other.csv holds 3-r0000000, which is no row of this table" in refused.stderr


def test_a_row_that_nobody_can_tell_is_not_asked_for_again_and_counts_as_lost(
    pacbound: Run, table: Path
) -> None:
    given = begun(pacbound, table)
    rows = read(table.parent / "ask.csv")
    for row in rows[:3]:
        row["expert_label"] = "?"
    write(table.parent / "ask.csv", rows)
    refused = pacbound(*given, "--labels", "ask.csv", "-o", "cascade.json", code=2)
    assert "'?'" in refused.stderr
    told = ("--labels", "ask.csv", "--cannot-tell", "?")
    pacbound(*given, *told, "--to-label", "rest.csv", "-o", "cascade.json")
    asked = {place(row) for row in read(table.parent / "rest.csv")}
    assert not asked & {place(row) for row in rows[:3]}
    assert {place(row) for row in rows[3:]} < asked
    found: Any = load_certificate(table.parent / "cascade.json")
    assert found.tables[0].labels["labelled"] == 0


@pytest.mark.parametrize("name", ["expert_label", "pac_id", "expert_answer", "pac_note"])
@pytest.mark.parametrize("verb", ["cascade", "compare"])
def test_a_table_with_a_column_that_people_fill_in_is_refused(
    pacbound: Run, table: Path, verb: str, name: str
) -> None:
    write(table, [{**row, name: "1"} for row in read(table)])
    asked = ASKED if verb == "cascade" else ASKED[2:]
    refused = pacbound(verb, table, *asked, "--to-label", "ask.csv", code=2)
    assert f"has a column {name!r}" in refused.stderr
    assert not (table.parent / "ask.csv").exists()


@pytest.mark.parametrize("verb", ["cascade", "compare"])
def test_of_several_tables_none_may_have_such_a_column(
    pacbound: Run, table: Path, verb: str
) -> None:
    for name, answer in (("old.csv", FAST), ("new.csv", SLOW)):
        rows = [{"id": row, "c": SCORE[row], "p": answer[row]} for row in range(N)]
        more = {"expert_label": 1} if name == "new.csv" else {}
        write(table.parent / name, [{**row, **more} for row in rows])
    asked: tuple[Any, ...] = ("--id", "id", "--prediction", "p", *ASKED[4:])
    asked += ("--confidence", "c") if verb == "cascade" else ()
    given = (verb, "old.csv", "new.csv", *asked, "--to-label", "ask.csv")
    refused = pacbound(*given, code=2)
    assert "new.csv has a column 'expert_label'" in refused.stderr
    assert not (table.parent / "ask.csv").exists()


def test_labels_that_were_joined_by_place_to_a_sorted_table_are_refused(
    pacbound: Run, table: Path
) -> None:
    """Without any `pac_id`, where there are labels of rows on which the models agree, too."""
    ordered = sorted(read(table), key=lambda row: row["c"])
    write(table, [{**row, "y": TRUTH[place]} for place, row in enumerate(ordered)])
    refused = pacbound("cascade", table, *ASKED, "--label", "y", "-o", "cascade.json", code=2)
    assert "unrelated" in refused.stderr
    assert not (table.parent / "cascade.json").exists()


def test_a_file_that_may_hold_labels_is_not_written_over(pacbound: Run, table: Path) -> None:
    given = begun(pacbound, table)
    refused = pacbound(*given, "--to-label", "ask.csv", code=2)
    assert "ask.csv is there, and may hold labels: take them in with --labels" in refused.stderr
    refused = pacbound(*given, "--count", 5, code=2)
    assert "--count is about the rows that --to-label writes" in refused.stderr


def _dropped(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return rows[:100] + rows[101:]


CHANGED_TABLE: dict[str, Callable[[list[dict[str, Any]]], list[dict[str, Any]]]] = {
    "a row is dropped": _dropped,
    "the last row is dropped": lambda rows: rows[:-1],
    "a row is appended": lambda rows: [*rows, rows[0]],
    "rows are sorted": lambda rows: sorted(rows, key=lambda row: row["c"]),
    "two rows are swapped": lambda rows: [rows[1], rows[0], *rows[2:]],
    "an answer is another": lambda rows: [
        {**rows[0], "answer": 1 if rows[0]["answer"] != "1" else 2},
        *rows[1:],
    ],
}


@pytest.mark.parametrize("case", CHANGED_TABLE)
def test_labels_do_not_come_home_to_another_table(pacbound: Run, table: Path, case: str) -> None:
    given = begun(pacbound, table)
    fill(table.parent / "ask.csv")
    write(table, CHANGED_TABLE[case](read(table)))
    refused = pacbound(*given, "--labels", "ask.csv", "-o", "other.json", code=2)
    said = ("no row of this table and question", "which is not in")
    assert any(one in refused.stderr for one in said), refused.stderr
    assert not (table.parent / "other.json").exists()


@pytest.mark.parametrize("more", [("--xi", 0.1), ("--delta", 0.05), ("--costs", "1,9")])
def test_labels_do_not_come_home_to_another_question(
    pacbound: Run, table: Path, more: tuple[Any, ...]
) -> None:
    given = begun(pacbound, table)
    fill(table.parent / "ask.csv")
    refused = pacbound(*changed(given, more), "--labels", "ask.csv", "-o", "other.json", code=2)
    assert "with another xi, delta, claim, costs or seed" in refused.stderr


def test_the_same_rows_in_another_format_are_the_same_rows(pacbound: Run, table: Path) -> None:
    begun(pacbound, table)
    fill(table.parent / "ask.csv")
    pl.read_csv(table).write_parquet(table.parent / "rows.parquet")
    found = pl.read_csv(table.parent / "ask.csv")
    found.sample(fraction=1.0, shuffle=True, seed=1).write_parquet(table.parent / "back.parquet")
    pacbound("cascade", "rows.parquet", *ASKED, "--labels", "back.parquet", "-o", "other.json")
    pacbound("cascade", table, *ASKED, "--labels", "ask.csv", "-o", "cascade.json")
    one, two = (thresholds(table.parent / f"{name}.json") for name in ("other", "cascade"))
    assert one == two


def test_a_line_that_was_cut_short_is_refused(pacbound: Run, table: Path) -> None:
    given = begun(pacbound, table)
    fill(table.parent / "ask.csv")
    text = (table.parent / "ask.csv").read_text().rstrip("\n")
    last = len(text) - text.rindex(",") - 1
    for cut in range(1, last + 1):
        (table.parent / "ask.csv").write_text(text[:-cut])
        refused = pacbound(*given, "--labels", "ask.csv", "-o", "other.json", code=2)
        assert "is not the id of a row" in refused.stderr or "ask.csv" in refused.stderr
    assert not (table.parent / "other.json").exists()


def test_two_files_that_say_different_labels_are_refused(pacbound: Run, table: Path) -> None:
    given = begun(pacbound, table)
    fill(table.parent / "ask.csv")
    (table.parent / "other.csv").write_text((table.parent / "ask.csv").read_text())
    fill(table.parent / "other.csv", slice(0, 1), (TRUTH + 1) % 3)
    both = ("--labels", "ask.csv", "--labels", "other.csv")
    refused = pacbound(*given, *both, "-o", "other.json", code=2)
    row = place(read(table.parent / "ask.csv")[0])
    assert f"answers row {row} twice, once" in refused.stderr


EARLIER: dict[str, tuple[Callable[[list[dict[str, Any]]], list[dict[str, Any]]], Any, str]] = {
    "xi": (lambda rows: rows, ("--xi", 0.1), "xi was 0.05 and is 0.1"),
    "a row": (_dropped, (), "n was 600 and is 599"),
    "a label": (
        lambda rows: [
            {**row, "y": row["slow"] if row["y"] == row["answer"] else row["y"]} for row in rows
        ],
        (),
        "a label was changed",
    ),
    "labels": (lambda rows: [{**row, "y": ""} for row in rows], (), "changed or taken away"),
}


@pytest.mark.parametrize("case", EARLIER)
def test_the_certificate_that_stands_there_is_the_earlier_look(
    pacbound: Run, table: Path, case: str
) -> None:
    """Labels in the table's own column, which no id checks."""
    change, more, said = EARLIER[case]
    known = np.flatnonzero(FAST != SLOW)[::2].tolist()
    rows = [{**row, "y": TRUTH[i] if i in known else ""} for i, row in enumerate(read(table))]
    write(table, rows)
    given = ("cascade", table, *ASKED, "--label", "y")
    pacbound(*given, "-o", "cascade.json")
    before = (table.parent / "cascade.json").read_bytes()
    write(table, change([{k: str(v) for k, v in row.items()} for row in rows]))
    refused = pacbound(*changed(given, more), "-o", "cascade.json", code=2)
    assert said in refused.stderr
    assert "name another file if this is another claim" in refused.stderr
    assert (table.parent / "cascade.json").read_bytes() == before
    pacbound(*changed(given, more), "-o", "another.json")


def test_grades_are_asked_for_and_come_back(pacbound: Run, table: Path) -> None:
    grades = np.column_stack([np.where(FAST == TRUTH, 5, 2), np.where(SLOW == TRUTH, 5, 2)])
    given = (*ASKED, "--quality", "g1,g2", "--quality-scale", "1,5")
    pacbound("cascade", table, *given, "--to-label", "ask.csv", *COUNT, "-o", "graded.json")
    rows: list[dict[str, Any]] = list(read(table.parent / "ask.csv"))
    assert [*rows[0]] == ["text", "answer", "slow", "expert_grade_1", "expert_grade_2", "pac_id"]
    for row in rows:
        row["expert_grade_1"], row["expert_grade_2"] = grades[place(row)].tolist()
    write(table.parent / "ask.csv", rows)
    came = ("--labels", "ask.csv")
    pacbound("cascade", table, *given, *came, "--to-label", "b.csv", *COUNT, "-o", "graded.json")
    assert not {place(row) for row in rows} & {place(row) for row in read(table.parent / "b.csv")}
    known = np.full(grades.shape, np.nan)
    at = [place(row) for row in rows]
    known[at] = grades[at]
    same = certify_cascade(
        SCORE, np.column_stack([FAST, SLOW]), quality=known, xi=0.05, delta=0.1,
        quality_scale=(1, 5),
    )  # fmt: skip
    assert thresholds(table.parent / "graded.json") == same.thresholds.tolist()


def test_what_is_shown_is_named_and_what_cannot_be_asked_for_is_refused(
    pacbound: Run, table: Path
) -> None:
    given = ("cascade", table, *ASKED)
    pacbound(*given, "--to-label", "ask.jsonl", "--show", "slow,text", "--count", 1)
    found = json.loads((table.parent / "ask.jsonl").read_text())
    assert list(found) == ["slow", "text", "expert_label", "pac_id"]
    refused = pacbound(*given, "--to-label", "b.csv", "--show", "image", code=2)
    assert "has no column 'image' to show" in refused.stderr
    differ = pacbound(*given, "--to-label", "b.csv", "--claim", "differ", code=2)
    assert "leave --claim differ" in differ.stderr
