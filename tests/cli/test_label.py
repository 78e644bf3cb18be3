"""`pacbound label`: rows to label out, labels in, or one by one on a terminal."""

from __future__ import annotations

import csv
import json
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from pacbound import LabelSession, certify_cascade, load_certificate
from pacbound.cascade.labelling.kept import SessionDocument
from pacbound.claims.cascade import CascadeCertificate
from pacbound.cli.label_by_hand import _Menu, label_by_hand
from pacbound.sources import open_table

Run = Callable[..., subprocess.CompletedProcess[str]]
NAMES = np.array(["bag", "coat", "shirt"])
MODELS = ["--confidence", "c", "--prediction", "fast,slow", "--session", "s.json"]
CLAIM = ["--xi", "0.05", "--delta", "0.1"]
COLUMNS: Any = {"confidence": ["c"], "prediction": ["fast", "slow"]}
PROGRAM = """
import fcntl, termios
fcntl.ioctl(0, termios.TIOCSCTTY, 0)
from pacbound.cli import main
main()
"""
"""The command line, on the terminal that is its input, so that Ctrl-C reaches it."""


@pytest.fixture
def rows(tmp_path: Path) -> dict[str, Any]:
    """300 rows in rows.csv, and the same as arrays, with the labels that are not in the file."""
    rng = np.random.default_rng(5)
    label = rng.integers(0, 3, 300)
    score = rng.random(300) ** 0.3
    fast = np.where(rng.random(300) < 0.6 + 0.4 * score, label, (label + 1) % 3)
    slow = np.where(rng.random(300) < 0.95, label, (label + 2) % 3)
    table = {"c": score, "fast": NAMES[fast], "slow": NAMES[slow], "label": NAMES[label]}
    with (tmp_path / "rows.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["note", "c", "fast", "slow"])
        for row in range(300):
            said = (table[name][row] for name in ("c", "fast", "slow"))
            writer.writerow([f"a note, that of {row}", *said])
    return table


def fill(path: Path, labels: Any, *, declined: tuple[int, ...] = (), blank: int = 0) -> None:
    """Fill in the labels of the rows in a file, but for some."""
    with path.open(newline="") as file:
        found = list(csv.DictReader(file))
    for place, row in enumerate(found):
        label = "?" if place in declined else labels[int(row["pac_row"])]
        row["label"] = "" if place >= len(found) - blank else label
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, list(found[0]))
        writer.writeheader()
        writer.writerows(found)


def session(folder: Path) -> LabelSession:
    return LabelSession.load(folder / "s.json", data=folder / "rows.csv", **COLUMNS)


def in_file(folder: Path) -> SessionDocument:
    """All that is stored, also what may still be taken back and is not loaded until then."""
    return SessionDocument.read(folder / "s.json").used()


def test_asking_and_answering_ends_in_the_claim_of_all_labels(
    pacbound: Run, tmp_path: Path, rows: dict[str, Any]
) -> None:
    asked = pacbound("label", "rows.csv", *MODELS, *CLAIM, "--ask", "ask.csv", "--count", 5)
    assert "0 labels of" in asked.stdout
    ask = tmp_path / "ask.csv"
    with ask.open(newline="") as file:
        header, first, *others = list(csv.reader(file))
    # Neither what the models say nor how sure they are.
    assert header == ["note", "pac_row", "pac_check", "label"]
    assert first[0] == f"a note, that of {first[1]}"
    assert first[-1] == ""
    assert len(others) == 4
    found = {"done": False, "asked": 5, "labels": 0}
    for round_ in count():
        if found["done"]:
            break
        fill(ask, rows["label"])
        answered, ask = ask, tmp_path / f"ask{round_}.csv"
        both = ["--answers", answered, "--ask", ask, "--count", 9, "--json"]
        before = found
        found = json.loads(pacbound("label", "rows.csv", *MODELS, *both).stdout)
        assert found["taken"] == before["asked"]
        assert found["labels"] == before["labels"] + before["asked"]
    assert len(ask.read_text().splitlines()) == 1
    pacbound("label", "rows.csv", *MODELS, "-o", "cascade.json")
    predictions = np.column_stack([rows["fast"], rows["slow"]])
    full = certify_cascade(rows["c"], predictions, rows["label"], xi=0.05, delta=0.1)
    certificate = load_certificate(tmp_path / "cascade.json")
    assert certificate.verify()
    assert isinstance(certificate, CascadeCertificate)
    assert certificate.thresholds.tolist() == full.thresholds.tolist()
    assert 0 < found["labels"] < (rows["fast"] != rows["slow"]).sum()


def test_rows_without_an_answer_stay_open_and_those_that_nobody_can_tell_do_not(
    pacbound: Run, tmp_path: Path, rows: dict[str, Any]
) -> None:
    ask = tmp_path / "ask.csv"
    pacbound("label", "rows.csv", *MODELS, *CLAIM, "--ask", ask, "--count", 6)
    fill(ask, rows["label"], declined=(0,), blank=2)
    refused = pacbound("label", "rows.csv", *MODELS, "--answers", ask, code=2)
    assert "--cannot-tell '?'" in refused.stderr
    again = pacbound("label", "rows.csv", *MODELS, "--ask", ask, code=2)
    assert "holds 4 labels that the session does not have" in again.stderr
    answered = ["--answers", ask, "--cannot-tell", "?"]
    pacbound("label", "rows.csv", *MODELS, *answered)
    now = session(tmp_path)
    assert (now.progress.labels, now.progress.declined) == (3, 1)
    with ask.open(newline="") as file:
        blank = [int(row["pac_row"]) for row in csv.DictReader(file) if not row["label"]]
    assert set(blank) <= set(now.ask().tolist())
    # The same file again changes nothing.
    before = (tmp_path / "s.json").read_bytes()
    pacbound("label", "rows.csv", *MODELS, *answered)
    assert (tmp_path / "s.json").read_bytes() == before


def test_labels_that_the_file_has_are_told(
    pacbound: Run, tmp_path: Path, rows: dict[str, Any]
) -> None:
    some = np.where(np.arange(300) % 2, rows["label"], "")
    lines = (tmp_path / "rows.csv").read_text().splitlines()
    quoted = ["y", *(f'"{label}"' for label in some)]
    (tmp_path / "rows.csv").write_text(
        "".join(f"{line},{label}\n" for line, label in zip(lines, quoted, strict=True))
    )
    ask = tmp_path / "ask.csv"
    pacbound("label", "rows.csv", *MODELS, *CLAIM, "--label", "y", "--ask", ask)
    differ = rows["fast"] != rows["slow"]
    assert session(tmp_path).progress.labels == (differ & (some != "")).sum()
    with ask.open(newline="") as file:
        asked = list(csv.DictReader(file))
    assert list(asked[0]) == ["note", "y", "pac_row", "pac_check"]
    assert not any(row["y"] for row in asked)


def _write_npz(frame: pl.DataFrame, path: Path) -> None:
    columns: dict[str, Any] = {name: np.array(frame[name].to_list()) for name in frame.columns}
    np.savez(path, **columns)


def _read_npz(path: Path) -> pl.DataFrame:
    with np.load(path) as arrays:
        return pl.DataFrame({name: arrays[name] for name in arrays.files})


FORMATS: dict[str, tuple[Callable[..., Any], Callable[..., pl.DataFrame]]] = {
    "csv": (pl.DataFrame.write_csv, pl.read_csv),
    "parquet": (pl.DataFrame.write_parquet, pl.read_parquet),
    "jsonl": (pl.DataFrame.write_ndjson, pl.read_ndjson),
    "npz": (_write_npz, _read_npz),
}


@pytest.mark.parametrize("suffix", FORMATS)
@pytest.mark.parametrize("numbers", [True, False])
def test_every_format_can_be_asked_in_and_answered(
    pacbound: Run, tmp_path: Path, rows: dict[str, Any], suffix: str, numbers: bool
) -> None:
    write, read = FORMATS[suffix]
    code = {name: place for place, name in enumerate(NAMES.tolist())}
    table = {
        name: [code[found] for found in column] if numbers and name != "c" else column.tolist()
        for name, column in rows.items()
    }
    labels = table.pop("label")
    source, ask = tmp_path / f"rows.{suffix}", tmp_path / f"ask.{suffix}"
    write(pl.DataFrame(table), source)
    pacbound("label", source, *MODELS, *CLAIM, "--ask", ask, "--count", 7)
    asked = read(ask)
    assert asked.columns == ["pac_row", "pac_check", "label"]
    # Nothing is filled in yet, in whatever way a format says so.
    nothing = pacbound("label", source, *MODELS, "--answers", ask, "--json")
    assert json.loads(nothing.stdout)["taken"] == 0
    filled = pl.Series("label", [labels[row] for row in asked["pac_row"].to_list()])
    write(asked.with_columns(filled), ask)
    told = pacbound("label", source, *MODELS, "--answers", ask, "--json")
    assert json.loads(told.stdout)["taken"] == 7


def test_bad_input_is_refused_and_the_session_left_alone(
    pacbound: Run, tmp_path: Path, rows: dict[str, Any]
) -> None:
    call = ("label", "rows.csv", *MODELS)
    assert "needs --xi and --delta" in pacbound(*call, code=2).stderr
    assert "not for a session" in pacbound(*call, *CLAIM, "--claim", "differ", code=2).stderr
    assert not (tmp_path / "s.json").exists()
    ask, kept = tmp_path / "ask.csv", tmp_path / "s.json"
    assert "no column 'nothing'" in pacbound(*call, *CLAIM, "--show", "nothing", code=2).stderr
    pacbound(*call, *CLAIM, "--show", "fast,slow", "--ask", ask, "--count", 4)
    fill(ask, rows["label"])
    good, before = ask.read_text(), kept.read_bytes()
    header, line, *_ = good.splitlines()
    fast, slow, row, check, told = line.split(",")
    short = "pac_row,label\n"
    bad = {
        "no model predicts": f"{short}{row},zebra\n",
        "other predictions": f"{header}\n{','.join([slow, fast, row, check, told])}\n",
        "other checks": f"pac_check,{short}r1234567,{row},{told}\n",
        "other scores": f"c,{short}0.12345,{row},{told}\n",
        "no column 'label'": good.replace(",label", ",lable"),
        "no row 999": f"{short}999,bag\n",
        "numbers never equal text": f"{short}{row},1\n",
    }
    for said, text in bad.items():
        ask.write_text(text)
        result = pacbound(*call, "--answers", ask, code=2)
        assert said in result.stderr, said
        assert kept.read_bytes() == before
    assert "delta would have to cover two claims" in " ".join(
        pacbound(*call, "--claim", "differ", code=2).stderr.split()
    )
    for option in (["--xi", 0.06], ["--delta", 0.2], ["--costs", "1,2"], ["--classes", "a,b"]):
        assert "was begun with" in pacbound(*call, *option, code=2).stderr
    kept.write_bytes(before[:-30])
    assert "is not a pacbound label session" in pacbound(*call, code=2).stderr
    assert kept.read_bytes() == before[:-30]
    kept.write_bytes(before)
    lines = (tmp_path / "rows.csv").read_text().splitlines()
    (tmp_path / "rows.csv").write_text("\n".join(lines[:-1]) + "\n")
    assert "session of other rows" in pacbound(*call, code=2).stderr
    assert kept.read_bytes() == before


def test_what_is_not_certified_so_far_ends_with_code_3(pacbound: Run, tmp_path: Path) -> None:
    lines = ["c,fast,slow", *["1.0,a,b"] * 40, *["0.5,b,b"] * 60]
    (tmp_path / "rows.csv").write_text("\n".join(lines) + "\n")
    result = pacbound("label", "rows.csv", *MODELS, *CLAIM, "-o", "c.json", code=3)
    assert "not certified" in result.stdout
    assert not load_certificate(tmp_path / "c.json").certified


class Terminal:
    """`pacbound label` on a pseudo-terminal."""

    def __init__(self, folder: Path, *options: str) -> None:
        self._ours, theirs = os.openpty()
        self._seen = ""
        self.process = subprocess.Popen(
            [sys.executable, "-c", PROGRAM, "label", "rows.csv", *MODELS, *options],
            cwd=folder,
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            env={**os.environ, "TERM": "dumb"},
            start_new_session=True,
        )
        os.close(theirs)

    def until(self, text: str, seconds: float = 120) -> str:
        """What is printed up to and with `text`."""
        deadline = time.monotonic() + seconds
        while text not in self._seen:
            ready, _, _ = select.select([self._ours], [], [], deadline - time.monotonic())
            assert ready, self._seen
            try:
                more = os.read(self._ours, 65536)
            except OSError:  # the other side was closed
                more = b""
            assert more, self._seen
            self._seen += more.decode()
        before, self._seen = self._seen.split(text, 1)
        return before + text

    def type(self, text: str) -> None:
        os.write(self._ours, text.encode())

    def end(self) -> int:
        """The exit code, once it ends."""
        try:
            return self.process.wait(120)
        finally:
            os.close(self._ours)


on_terminals = pytest.mark.skipif(not hasattr(os, "openpty"), reason="no pseudo-terminals")


def row_shown(text: str) -> int:
    return int(text.rsplit("label of row ", 1)[1].removesuffix("> "))


@pytest.mark.slow
@on_terminals
def test_by_hand_a_row_is_shown_its_class_typed_and_stored_at_once(
    tmp_path: Path, rows: dict[str, Any]
) -> None:
    terminal = Terminal(tmp_path, *CLAIM, "--show", "note", "-o", "c.json")
    shown = terminal.until("> ")
    assert "1 = bag, 2 = coat, 3 = shirt" in shown
    first = row_shown(shown)
    assert f"a note, that of {first}" in shown
    # What the models say is not shown.
    assert "fast" not in shown
    wrong = {
        "9": "9 is not one of the classes. Type the class",
        "s": "s is not one of the classes",
        "shrit": "shrit is not one of the classes. Did you mean shirt?",
        ":x": ":x is not a command",
        ":u": "There is nothing to take back",
        "2:u": "Taken back",
    }
    for typed, said in wrong.items():
        terminal.type(f"{typed}\n")
        terminal.until(said)
        terminal.until("> ")
        assert not session(tmp_path).labels
    terminal.type("2\n")
    second = row_shown(terminal.until("> "))
    assert in_file(tmp_path).told == {first: "coat"}
    assert session(tmp_path).labels == {}
    terminal.type("shirt\n")
    third = row_shown(terminal.until("> "))
    assert in_file(tmp_path).told == {first: "coat", second: "shirt"}
    assert session(tmp_path).labels == {first: "coat"}
    terminal.type(":s\n")
    assert row_shown(terminal.until("> ")) != third
    assert in_file(tmp_path).declined == (third,)
    assert session(tmp_path).declined.tolist() == []
    # Nothing on the screen depends on the last answer, so it can be taken back; those before stay.
    terminal.type(":u\n")
    shown = terminal.until("> ")
    assert f"Taken back: the label of row {third}" in shown
    assert row_shown(shown) == third
    terminal.type(":u\n")
    terminal.until("There is nothing to take back")
    terminal.until("> ")
    assert session(tmp_path).undone == ((third, None),)
    terminal.type("bag\n")
    terminal.until("> ")
    assert in_file(tmp_path).told == {first: "coat", second: "shirt", third: "bag"}
    terminal.type(":q\n")
    terminal.until("Written to c.json")
    assert terminal.end() == 0
    certificate = load_certificate(tmp_path / "c.json")
    assert certificate.claim() == session(tmp_path).certificate().claim()


@pytest.mark.parametrize(
    ("classes", "answers"),
    [
        (["q", "s", "u"], {"q": "q", "s": "s", "u": "u", "2": "s", ":s": None, "t": None}),
        ([":q", ":s", "s"], {"::q": ":q", "::s": ":s", ":s": None, "s": "s", "1": ":q"}),
        # Names that are numbers of the menu mean themselves.
        (["0", "1", "2"], {"0": "0", "1": "1", "2": "2", "3": None}),
        (["1", "cat"], {"1": "1", "cat": "cat", "2": None}),
        ([1, 2], {"1": 1, "2": 2, "u": None}),
        (["a", "a:u"], {"a": "a", "a:u": "a:u", "b:u": None}),
    ],
)
def test_every_class_can_be_typed_and_is_meant(classes: list[Any], answers: dict[str, Any]) -> None:
    menu = _Menu(classes)
    assert {typed: menu.meant(typed) for typed in answers} == answers
    shown = menu.explained()
    for name in classes:
        assert str(name) in shown


@pytest.mark.slow
@on_terminals
@pytest.mark.parametrize("how", ["kill -9", "Ctrl-C", "Ctrl-D"])
def test_however_labelling_by_hand_ends_no_stored_label_is_lost(
    tmp_path: Path, rows: dict[str, Any], how: str
) -> None:
    terminal, stored = Terminal(tmp_path, *CLAIM), {}
    for _ in range(3):
        row = row_shown(terminal.until("> "))
        stored[row] = str(rows["label"][row])
        terminal.type(f"{np.flatnonzero(rows['label'][row] == NAMES)[0] + 1}\n")
    terminal.until("> ")
    if how == "kill -9":
        # An answer is being typed.
        terminal.type("1")
        os.kill(terminal.process.pid, signal.SIGKILL)
    else:
        terminal.type("\x03" if how == "Ctrl-C" else "\x04")
    assert terminal.end() == {"kill -9": -9, "Ctrl-C": 130, "Ctrl-D": 0}[how]
    assert session(tmp_path).labels == stored
    assert [path.name for path in tmp_path.iterdir() if path.name.endswith(".tmp")] == []
    # It goes on with the row that was not answered.
    again = Terminal(tmp_path)
    assert row_shown(again.until("> ")) == session(tmp_path).ask(1)[0]
    again.type(":q\n")
    assert again.end() == 0


@pytest.mark.slow
@pytest.mark.skipif(os.name != "posix", reason="signals of POSIX")
def test_killed_while_it_saves_a_session_keeps_its_labels(tmp_path: Path) -> None:
    program = """
import numpy as np
from pacbound import LabelSession
rows = np.linspace(0, 1, 3000), [[0, 1], [1, 0]] * 1500
session = LabelSession(*rows, xi=0.3, delta=0.1, bound="pair")
for row in range(3000):
    session.tell([row], [row % 2])
    session.save("s.json")
    print(row + 1, flush=True)
"""
    rows = np.linspace(0, 1, 3000), [[0, 1], [1, 0]] * 1500
    for moment in (5, 9, 14):
        process = subprocess.Popen(
            [sys.executable, "-c", program], cwd=tmp_path, stdout=subprocess.PIPE, text=True
        )
        assert process.stdout is not None
        saved = 0
        while saved < moment:
            saved = int(process.stdout.readline())
        process.kill()
        rest = process.communicate()[0].splitlines()
        saved = int(rest[-1]) if rest and rest[-1].isdigit() else saved
        labels = LabelSession.load(tmp_path / "s.json", *rows).labels
        # What was said to be saved is there, and at most the one that was being saved besides.
        assert saved <= len(labels) <= saved + 1
        assert labels == {row: row % 2 for row in range(len(labels))}
        (tmp_path / "s.json").unlink()


def test_a_column_of_labels_of_other_rows_is_refused(
    pacbound: Run, tmp_path: Path, rows: dict[str, Any]
) -> None:
    for name, labels in (("right", rows["label"]), ("rolled", np.roll(rows["label"], 1))):
        columns = {key: rows[key] for key in ("c", "fast", "slow")} | {"y": labels}
        pl.DataFrame(columns).write_csv(tmp_path / f"{name}.csv")
    call = (*MODELS, *CLAIM, "--label", "y")
    refused = pacbound("label", "rolled.csv", *call, code=2)
    assert "y and the slow model (slow) match in" in refused.stderr
    assert not (tmp_path / "s.json").exists()
    pacbound("label", "right.csv", *call)
    (tmp_path / "s.json").unlink()
    pacbound("label", "rolled.csv", *call, "--unrelated-labels")


def typed(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], *lines: str
) -> str:
    """What labelling by hand shows if these lines are typed, in a new session."""
    going = LabelSession(data=folder / "rows.csv", xi=0.05, delta=0.1, **COLUMNS)
    rest = iter([f"{line}\n" for line in lines])
    monkeypatch.setattr("pacbound.cli.label_by_hand._line", lambda: next(rest, ""))
    (folder / "s.json").unlink(missing_ok=True)
    label_by_hand(going, folder / "s.json", open_table(folder / "rows.csv"), ["note"])
    return capsys.readouterr().out


@pytest.mark.slow
def test_nothing_on_the_screen_depends_on_the_last_label(
    tmp_path: Path,
    rows: dict[str, Any],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    before = ["bag", "coat", "shirt", ":s", "bag", "coat", "bag", "shirt", "bag", "coat"]
    for known in range(len(before)):
        shown = [
            typed(tmp_path, monkeypatch, capsys, *before[:known], last)
            for last in ("bag", "coat", "shirt")
        ]
        # But for the label itself, which is repeated.
        same = {
            (text.rpartition("Row ")[0], text.rpartition(". Until the next label")[2])
            for text in shown
        }
        assert len(same) == 1
    assert "forecast: at this rate about" in typed(tmp_path, monkeypatch, capsys, *before, "bag")


def test_the_last_row_worth_asking_for_can_be_taken_back_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = [
        "note,c,fast,slow",
        "the one,0.99,bag,coat",
        *["many,0.9,coat,coat", "more,0.9,bag,bag"] * 23,
    ]
    (tmp_path / "rows.csv").write_text("\n".join(lines) + "\n")
    shown = typed(tmp_path, monkeypatch, capsys, "bag", ":u", "coat", "")
    assert "Enter to go on, :u to take it back> " in shown
    assert session(tmp_path).undone == ((0, "bag"),)
    assert session(tmp_path).labels == {0: "coat"}
    assert shown.rstrip().endswith("done")
