"""`pacbound label --quality`: rows to grade out, grades in, or typed by a person."""

from __future__ import annotations

import csv
import json
import subprocess
from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from pacbound import LabelSession, certify_cascade, exact_verifier, load_certificate
from pacbound.cli.label_by_hand import label_by_hand
from pacbound.sources import open_table

Run = Callable[..., subprocess.CompletedProcess[str]]
COLUMNS = ["--confidence", "c", "--quality", "g_small,g_large", "--session", "s.json"]
CLAIM = ["--xi", "0.1", "--delta", "0.1"]
SCALE = ["--quality-scale", "1,5", "--graded-by", "two people"]
ASKED: Any = {"xi": 0.1, "delta": 0.1, "quality_scale": (1, 5), "graded_by": "two people"}


@pytest.fixture
def rows(tmp_path: Path) -> dict[str, NDArray[Any]]:
    """250 questions in rows.csv with both answers, and their grades, which are not in the file."""
    rng = np.random.default_rng(2)
    score = rng.choice(np.linspace(0, 1, 33), 250) ** 0.4
    slow = rng.integers(3, 6, 250)
    fast = np.where(rng.random(250) < 0.6 * (1 - score), 1, np.clip(slow + 1, 1, 5))
    with (tmp_path / "rows.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["question", "c", "small", "large"])
        for row in range(250):
            writer.writerow([f"q{row}", score[row], f"a {row}", f"b {row}"])
    return {"c": score, "grades": np.column_stack([fast, slow]).astype(float)}


def filled(path: Path, grades: Any, change: Callable[[int, dict[str, str]], None]) -> None:
    """Fill in the grades of the rows in a file, and change them one by one."""
    with path.open(newline="") as file:
        found = list(csv.DictReader(file))
    for place, row in enumerate(found):
        fast, slow = grades[int(row["pac_row"])]
        row |= {"g_small": f"{fast:g}", "g_large": f"{slow:g}"}
        change(place, row)
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, list(found[0]))
        writer.writeheader()
        writer.writerows(found)


def unchanged(place: int, row: dict[str, str]) -> None:
    """As it is."""


def test_asking_and_grading_ends_in_the_claim_of_all_grades(
    pacbound: Run, tmp_path: Path, rows: dict[str, Any]
) -> None:
    ask = tmp_path / "ask.csv"
    first = pacbound(
        *("label", "rows.csv", *COLUMNS, *CLAIM, *SCALE, "--ask", ask, "--count", 9),
    )
    assert "0 graded of 250 differing rows" in first.stdout
    assert "9 rows to grade are in" in first.stdout
    assert "fill in g_small and g_large, from 1 to 5" in first.stdout
    # The answers, but not how sure the models are.
    header, one = ask.read_text().splitlines()[:2]
    assert header == "question,small,large,pac_row,pac_check,g_small,g_large"
    assert one.endswith(",,")
    found: dict[str, Any] = {"done": False, "asked": 9, "labels": 0}
    for round_ in count():
        if found["done"]:
            break
        filled(ask, rows["grades"], unchanged)
        answered, ask = ask, tmp_path / f"ask{round_}.csv"
        both = ["--answers", answered, "--ask", ask, "--count", 40, "--json"]
        before = found
        run = pacbound("label", "rows.csv", *COLUMNS, *both)
        found = json.loads(run.stdout)
        assert found["labels"] == before["labels"] + before["asked"]
    pacbound("label", "rows.csv", *COLUMNS, "-o", "cascade.json")
    certificate = load_certificate(tmp_path / "cascade.json")
    full = certify_cascade(rows["c"], quality=rows["grades"], **ASKED, seed=0)
    assert certificate.verify()
    assert exact_verifier.check_file(str(tmp_path / "cascade.json"))[0] == 0
    assert certificate.values["graded"] == full.values["graded"]
    assert list(getattr(certificate, "thresholds", ())) == full.thresholds.tolist()
    assert "as graded by two people" in str(certificate)
    assert 0 < found["labels"] < 250


def test_grades_that_nobody_can_tell_or_that_are_off_the_scale(
    pacbound: Run, tmp_path: Path, rows: dict[str, Any]
) -> None:
    ask = tmp_path / "ask.csv"
    asking = ["--ask", ask, "--count", 6]
    pacbound("label", "rows.csv", *COLUMNS, *CLAIM, *SCALE, *asking)

    def change(place: int, row: dict[str, str]) -> None:
        row |= {0: {"g_small": "?"}, 1: {"g_small": "", "g_large": ""}, 2: {"g_large": ""}}.get(
            place, {}
        )

    filled(ask, rows["grades"], change)
    taking = ["--answers", ask]
    refused = pacbound("label", "rows.csv", *COLUMNS, *taking, code=2)
    assert "g_small" in refused.stderr
    assert "?" in refused.stderr
    again = pacbound("label", "rows.csv", *COLUMNS, *asking, code=2)
    assert "holds 5 grades that the session does not have" in again.stderr
    told = pacbound("label", "rows.csv", *COLUMNS, *taking, "--cannot-tell", "?", "--json")
    # Five rows with a grade, and one of them declined for the other.
    assert json.loads(told.stdout)["labels"] == 5
    assert json.loads(told.stdout)["declined"] == 1
    session = LabelSession.load(tmp_path / "s.json", "c", data=tmp_path / "rows.csv")
    halves = [row for row, told in session.qualities.items() if None in told]
    assert len(halves) == 2
    assert len(set(halves) & set(session.declined.tolist())) == 1
    pacbound("label", "rows.csv", *COLUMNS, *asking)
    for bad in ("6", "0", "inf", "1e9"):
        filled(ask, rows["grades"], lambda _, row, bad=bad: row.update(g_large=bad))  # type: ignore[misc]
        off = pacbound("label", "rows.csv", *COLUMNS, *taking, code=2)
        assert f"g_large[0] is {float(bad)}" in off.stderr
        assert "expected grades from 1 to 5" in off.stderr


def test_what_does_not_fit_a_graded_session_is_refused(
    pacbound: Run, tmp_path: Path, rows: dict[str, Any]
) -> None:
    call = ["label", "rows.csv", *COLUMNS]
    assert "--label and --quality" in pacbound(*call, *CLAIM, "--label", "y", code=2).stderr
    pacbound(*call, *CLAIM, *SCALE, "--seed", 3)
    for other, said in (
        (["--seed", 4], "was begun with seed = 3, not 4"),
        (["--quality-scale", "0,5"], "was begun with quality_scale = (1.0, 5.0), not (0.0, 5.0)"),
        (["--graded-by", "me"], "was begun with graded_by = two people, not me"),
        (["--row-ids", "question"], "know rows by their places: leave out row_ids"),
        (["--xi", "0.2"], "was begun with xi = 0.1, not 0.2"),
    ):
        assert said in pacbound(*call, *other, code=2).stderr
    pacbound(*call, "--seed", 3, *SCALE)
    plain = ["label", "rows.csv", "--confidence", "c", "--session", "s.json"]
    assert "name their columns with --quality" in pacbound(*plain, code=2).stderr
    other = [*plain[:-1], "labels.json", "--prediction", "small,large", *CLAIM]
    pacbound(*other)
    mixed = pacbound(*other, "--quality", "g_small,g_large", code=2)
    assert "labels.json is a session of labels: leave --quality out" in mixed.stderr
    assert "--quality" in pacbound(*plain[:-1], "new.json", *CLAIM, code=2).stderr
    assert rows["grades"].shape == (250, 2)


def test_grades_of_the_file_are_told_first_and_ids_name_the_rows(
    pacbound: Run, tmp_path: Path, rows: dict[str, Any]
) -> None:
    lines = (tmp_path / "rows.csv").read_text().splitlines()
    some = [
        f"{line},{fast:g},{slow:g}" if place % 2 else f"{line},,"
        for place, (line, (fast, slow)) in enumerate(zip(lines[1:], rows["grades"], strict=True))
    ]
    (tmp_path / "half.csv").write_text("\n".join([f"{lines[0]},g_small,g_large", *some]) + "\n")
    named = ["--row-ids", "question"]
    run = pacbound(
        *("label", "half.csv", *COLUMNS, *CLAIM, *SCALE, *named, "-o", "c.json", "--json"),
    )
    assert json.loads(run.stdout)["labels"] == 125
    seen = np.where(np.arange(250)[:, None] % 2, rows["grades"], np.nan)
    ids = [f"q{row}" for row in range(250)]
    full = certify_cascade(rows["c"], quality=seen, row_ids=ids, **ASKED, seed=0)
    made = load_certificate(tmp_path / "c.json")
    assert made.counts_digest == full.counts_digest
    # One of the two columns is a slip.
    slip = ["--confidence", "c", "--quality", "g_small,g_lagre", "--session", "new.json"]
    assert "g_lagre" in pacbound("label", "half.csv", *slip, *CLAIM, *SCALE, code=2).stderr


@pytest.mark.parametrize("one", [False, True])
def test_a_person_types_grades(
    tmp_path: Path,
    rows: dict[str, Any],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    *,
    one: bool,
) -> None:
    scale: Any = {} if one else {"quality_scale": (1, 5)}
    table = tmp_path / "rows.csv"
    going = LabelSession("c", data=table, xi=0.1, delta=0.1, outcome="quality", **scale)
    answers = {
        False: ["4 6", "4", "x 5", "nan 5", ":w", "4, 5", ":u", "2 5", ":s", "3 3", ":q"],
        True: ["2", "-0.1", "x", "inf", ":w", "1", ":u", "0.5", ":s", "0", ":q"],
    }[one]
    rest = iter([f"{line}\n" for line in answers])
    monkeypatch.setattr("pacbound.cli.label_by_hand._line", lambda: next(rest, ""))
    names = ["better"] if one else ["g_small", "g_large"]
    label_by_hand(going, tmp_path / "s.json", open_table(table), ["question", "small"], names)
    shown = capsys.readouterr().out
    if one:
        assert "Type better, from 0 to 1, and Enter." in shown
        assert "2 is not a grade from 0 to 1." in shown
        assert "inf is not a grade from 0 to 1." in shown
        assert "better of row" in shown
    else:
        assert "Type g_small g_large, each from 1 to 5, and Enter." in shown
        assert "4 6 is not 2 grades from 1 to 5." in shown
        assert "nan 5 is not 2 grades from 1 to 5." in shown
        assert "g_small g_large of row" in shown
        assert "g_small 4, g_large 5. Until the next grade" in shown
    assert ":w is not a command." in shown
    again = LabelSession.load(tmp_path / "s.json", "c", data=table)
    expected = [(0.5, 0.5), (1.0, 0.0)] if one else [(0.25, 1.0), (0.5, 0.5)]
    assert [*again.qualities.values()] == expected
    assert again.progress.declined == 1
    ((_, undone),) = again.undone
    assert undone == ((0.0, 1.0) if one else (0.75, 1.0))
    assert len(rows["grades"]) == 250
