"""`pacbound batch`: rows to ask go out, answers come in, and all rows go out with their answers."""

import csv
import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pacbound import load_certificate
from pacbound.claims.batch import BatchCertificate

Run = Callable[..., subprocess.CompletedProcess[str]]

N = 300
RNG = np.random.default_rng(11)
NAMES = np.array(["cat", "dog, large", 'a "cow"'])
SLOW = RNG.integers(0, 3, size=N)
CONFIDENCE = RNG.beta(4, 1, size=N)
FAST = np.where(RNG.random(N) < CONFIDENCE, SLOW, (SLOW + 1) % 3)
LIMITS = ("--confidence", "c", "--prediction", "p", "--xi", 0.05, "--delta", 0.1)


@pytest.fixture
def table(tmp_path: Path) -> Path:
    path = tmp_path / "rows.csv"
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["id", "c", "p"])
        for row in range(N):
            writer.writerow([f"r{row}", repr(float(CONFIDENCE[row])), NAMES[FAST[row]]])
    return path


def _npz(path: Path) -> dict[str, Any]:
    with np.load(path, allow_pickle=False) as arrays:
        return dict(arrays)


def read(path: Path) -> list[dict[str, str]]:
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def fill(asked: Path, done: Path, answer: Callable[[int], str] | None = None) -> None:
    """Answer the rows that were asked, as the slow model would."""
    rows = read(asked)
    with done.open("w", newline="") as file:
        writer = csv.DictWriter(file, [*rows[0], "answer"])
        writer.writeheader()
        for row in rows:
            at = int(row["pac_id"])
            writer.writerow(row | {"answer": answer(at) if answer else NAMES[SLOW[at]]})


def test_two_rounds_answer_a_table_and_certify_it(pacbound: Run, table: Path) -> None:
    folder = table.parent
    said = pacbound("batch", table, *LIMITS, "--ask", "ask.csv", "--seed", 0)
    assert "sampled rows still need the slow model's answer" in said.stdout
    asked = read(folder / "ask.csv")
    assert [row["id"] for row in asked] == [f"r{row['pac_id']}" for row in asked]
    fill(folder / "ask.csv", folder / "done.csv")
    said = pacbound("batch", table, "--answers", "done.csv", "--ask", "ask2.csv", "-o", "all.csv")
    assert "then the batch is done" in said.stdout
    assert not (folder / "all.csv").exists()
    fill(folder / "ask2.csv", folder / "done2.csv")
    said = pacbound("batch", table, "--answers", "done2.csv", "-o", "all.csv")
    assert "at most 15 differ" in said.stdout
    rows = read(folder / "all.csv")
    assert [row["id"] for row in rows] == [f"r{row}" for row in range(N)]
    slow = np.array([row["pac_source"] == "slow" for row in rows])
    expected = NAMES[np.where(slow, SLOW, FAST)]
    assert [row["pac_prediction"] for row in rows] == expected.tolist()
    assert slow.sum() == len(asked) + len(read(folder / "ask2.csv"))
    certificate = load_certificate(folder / "all.certificate.json")
    assert isinstance(certificate, BatchCertificate)
    assert certificate.verify()
    assert certificate.asked == slow.sum()
    assert certificate.provenance.columns == {"confidence": "c", "prediction": "p"}
    assert len(certificate.provenance.sources) == 1
    pacbound("verify", "all.certificate.json")


def test_all_of_it_can_be_read_by_programs(pacbound: Run, table: Path) -> None:
    folder = table.parent
    first = json.loads(pacbound("batch", table, *LIMITS, "--ask", "ask.csv", "--json").stdout)
    assert first["done"] is False
    assert first["to_ask"] == len(read(folder / "ask.csv"))
    assert first["sampling"] is True
    fill(folder / "ask.csv", folder / "done.csv")
    second = json.loads(
        pacbound("batch", table, "--answers", "done.csv", "--ask", "more.csv", "--json").stdout
    )
    assert second["answered"] == first["to_ask"]
    fill(folder / "more.csv", folder / "done2.csv")
    last = json.loads(
        pacbound("batch", table, "--answers", "done2.csv", "-o", "all.csv", "--json").stdout
    )
    assert last["done"] is True
    assert last["claim"]["claim"]["kind"] == "batch"
    assert last["certificate"] == "all.certificate.json"


@pytest.mark.parametrize("ending", ["npz", "parquet", "jsonl"])
def test_a_table_of_any_format_is_answered(pacbound: Run, tmp_path: Path, ending: str) -> None:
    import polars

    frame = polars.DataFrame({"c": CONFIDENCE, "p": FAST})
    source = tmp_path / f"rows.{ending}"
    if ending == "npz":
        np.savez(source, c=CONFIDENCE, p=FAST)
    elif ending == "parquet":
        frame.write_parquet(source)
    else:
        frame.write_ndjson(source)

    def load(path: Path) -> dict[str, Any]:
        if ending == "npz":
            return _npz(path)
        read_ = polars.read_parquet if ending == "parquet" else polars.read_ndjson
        return {name: read_(path)[name].to_numpy() for name in read_(path).columns}

    pacbound("batch", source, *LIMITS, "--ask", f"ask.{ending}")
    for _ in range(2):
        asked = load(tmp_path / f"ask.{ending}")
        np.savez(tmp_path / "done.npz", pac_id=asked["pac_id"], answer=SLOW[asked["pac_id"]])
        pacbound(
            "batch",
            source,
            "--answers",
            "done.npz",
            "--ask",
            f"ask.{ending}",
            "-o",
            f"all.{ending}",
        )
    answers = load(tmp_path / f"all.{ending}")
    slow = answers["pac_source"] == "slow"
    assert (answers["pac_prediction"] == np.where(slow, SLOW, FAST)).all()


@pytest.mark.parametrize("ending", ["npz", "parquet"])
def test_long_answers_are_written_whole(pacbound: Run, tmp_path: Path, ending: str) -> None:
    import polars

    source, long = tmp_path / f"rows.{ending}", "word " * 100
    if ending == "npz":
        np.savez(source, c=[0.9, 0.2], p=[long, "short"])
    else:
        polars.DataFrame({"c": [0.9, 0.2], "p": [long, "short"]}).write_parquet(source)
    limits = ("--confidence", "c", "--prediction", "p", "--xi", 0.5, "--delta", 0.1)
    pacbound("batch", source, *limits, "--ask", f"ask.{ending}")
    np.savez(tmp_path / "done.npz", pac_id=[1], answer=["brief"])
    pacbound("batch", source, "--answers", "done.npz", "-o", f"all.{ending}")
    target = tmp_path / f"all.{ending}"
    found = _npz(target) if ending == "npz" else polars.read_parquet(target)
    assert list(found["pac_prediction"]) == [long, "brief"]


def test_several_files_are_one_batch_and_their_state_is_named(
    pacbound: Run, tmp_path: Path
) -> None:
    for name, part in (("a.npz", slice(0, 100)), ("b.npz", slice(100, N))):
        np.savez(tmp_path / name, c=CONFIDENCE[part], p=FAST[part])
    refused = pacbound("batch", "a.npz", "b.npz", *LIMITS, "--ask", "ask.npz", code=2)
    assert "--state" in refused.stderr
    named = ("a.npz", "b.npz", "--state", "both.batch")
    pacbound("batch", *named, *LIMITS, "--ask", "ask.npz")
    for _ in range(2):
        asked = _npz(tmp_path / "ask.npz")
        assert (CONFIDENCE[asked["pac_id"]] == asked["c"]).all()
        np.savez(tmp_path / "done.npz", pac_id=asked["pac_id"], answer=SLOW[asked["pac_id"]])
        pacbound("batch", *named, "--answers", "done.npz", "--ask", "ask.npz", "-o", "all.npz")
    answers = _npz(tmp_path / "all.npz")
    assert len(answers["pac_prediction"]) == N


def test_rows_that_come_back_empty_are_asked_again_or_given_up(pacbound: Run, table: Path) -> None:
    folder = table.parent
    pacbound("batch", table, *LIMITS, "--ask", "ask.csv", "--seed", 1)
    sample = [int(row["pac_id"]) for row in read(folder / "ask.csv")]
    skipped = set(sample[:2])

    def answer(row: int) -> str:
        return "" if row in skipped else str(NAMES[SLOW[row]])

    fill(folder / "ask.csv", folder / "done.csv", answer)
    said = pacbound("batch", table, "--answers", "done.csv", "--ask", "again.csv")
    assert "2 rows came back empty" in said.stdout
    assert {int(row["pac_id"]) for row in read(folder / "again.csv")} == skipped
    fill(folder / "again.csv", folder / "done2.csv", answer)
    pacbound("batch", table, "--answers", "done2.csv", "--give-up", "--ask", "rest.csv")
    fill(folder / "rest.csv", folder / "done3.csv")
    pacbound("batch", table, "--answers", "done3.csv", "-o", "all.csv")
    rows = read(folder / "all.csv")
    none = [place for place, row in enumerate(rows) if row["pac_source"] == "none"]
    assert set(none) == skipped
    assert all(rows[place]["pac_prediction"] == "" for place in none)


def test_what_stands_for_a_missing_answer_need_not_be_said_again(
    pacbound: Run, table: Path
) -> None:
    folder = table.parent
    table.write_text(table.read_text() + "r300,0.5,NA\n")
    said = pacbound("batch", table, *LIMITS, "--missing", "NA", "--ask", "ask.csv", "--seed", 0)
    assert said.returncode == 0
    fill(folder / "ask.csv", folder / "done.csv", lambda at: NAMES[SLOW[at % N]])
    said = pacbound("batch", table, "--answers", "done.csv", "--ask", "more.csv")
    assert said.returncode == 0, said.stderr
    fill(folder / "more.csv", folder / "done.csv", lambda at: NAMES[SLOW[at % N]])
    said = pacbound("batch", table, "--answers", "done.csv", "-o", "all.csv")
    assert said.returncode == 0, said.stderr
    assert read(folder / "all.csv")[N]["pac_source"] == "slow"


@pytest.mark.parametrize("option", ["--ask", "-o", "--certificate"])
@pytest.mark.parametrize("kept", ["rows.csv", "state.csv", "done.csv"])
def test_nothing_that_is_needed_is_written_over(
    pacbound: Run, table: Path, option: str, kept: str
) -> None:
    """A state that is lost would be drawn again, after answers were seen."""
    folder = table.parent
    state = ("--state", "state.csv")
    pacbound("batch", table, *LIMITS, "--ask", "ask.csv", *state)
    fill(folder / "ask.csv", folder / "done.csv")
    before = (folder / kept).read_bytes()
    goes_to = {"--ask": "more.csv", "-o": "all.csv"} | {option: kept}
    given = [str(part) for pair in goes_to.items() for part in pair]
    said = pacbound("batch", table, *state, "--answers", "done.csv", *given, code=2)
    assert "name another file" in said.stderr
    assert (folder / kept).read_bytes() == before


def test_a_state_that_is_not_there_yet_is_not_written_over_either(
    pacbound: Run, table: Path
) -> None:
    said = pacbound("batch", table, *LIMITS, "--ask", "s.csv", "--state", "s.csv", code=2)
    assert "is written as --ask, and writing --state would replace it" in said.stderr
    assert not (table.parent / "s.csv").exists()


def test_a_table_that_changed_is_another_batch(pacbound: Run, table: Path) -> None:
    pacbound("batch", table, *LIMITS, "--ask", "ask.csv")
    lines = table.read_text().splitlines(keepends=True)
    table.write_text("".join([lines[0], *lines[2:], lines[1]]))
    refused = pacbound("batch", table, "--ask", "ask2.csv", code=2)
    assert "belongs to another batch" in refused.stderr


def test_limits_stay_as_they_were_when_the_sample_was_drawn(pacbound: Run, table: Path) -> None:
    pacbound("batch", table, *LIMITS, "--ask", "ask.csv")
    refused = pacbound("batch", table, "--xi", 0.2, "--ask", "ask2.csv", code=2)
    assert "xi was 0.05" in refused.stderr
    first = (table.parent / "ask.csv").read_bytes()
    pacbound("batch", table, "--ask", "ask2.csv", "--seed", 99)
    assert (table.parent / "ask2.csv").read_bytes() == first


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--ask", "ask.csv"), "--confidence is missing"),
        (LIMITS, "Pass --ask FILE"),
        ((*LIMITS, "--answers", "done.csv", "-o", "all.csv"), "nothing was asked yet"),
        ((*LIMITS[:4], "--xi", 1.5, "--delta", 0.1, "--ask", "a.csv"), "xi=1.5"),
        (("--confidence", "conf", *LIMITS[2:], "--ask", "a.csv"), "no column 'conf'"),
        ((*LIMITS, "--looks", 3, "--ask", "a.csv"), "looks=3"),
        ((*LIMITS, "--ask", "rows.csv"), "is read as FILE"),
    ],
)
def test_bad_usage_is_named_and_ends_with_2(
    pacbound: Run, table: Path, options: tuple[object, ...], message: str
) -> None:
    before = table.read_bytes()
    assert message in pacbound("batch", "rows.csv", *options, code=2).stderr
    assert table.read_bytes() == before


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda rows: rows + rows[:1], "2 times"),
        (
            lambda rows: [{"pac_id": "299", "answer": rows[0]["answer"]}],
            "was not asked for",
        ),
        (lambda rows: [row | {"c": rows[0]["c"]} for row in rows], "has another 'c'"),
        (lambda rows: [row | {"p": "cat"} for row in rows], "has another 'p'"),
        (
            lambda rows: [
                row | {"pac_id": rows[place - 1]["pac_id"]} for place, row in enumerate(rows)
            ],
            "These are answers to other rows",
        ),
        (lambda rows: [row | {"pac_id": "0.5"} for row in rows[:1]], "not the number of a row"),
        (lambda rows: [row | {"answer": "1"} for row in rows], "never equal"),
        (lambda rows: [row | {"answer": row["answer"].upper()} for row in rows], "lower case"),
    ],
)
def test_answers_that_do_not_fit_are_refused_and_the_batch_goes_on(
    pacbound: Run, table: Path, change: Callable[[Any], Any], message: str
) -> None:
    folder = table.parent
    pacbound("batch", table, *LIMITS, "--ask", "ask.csv", "--seed", 0)
    assert "299" not in {row["pac_id"] for row in read(folder / "ask.csv")}
    fill(folder / "ask.csv", folder / "done.csv")
    rows = change(read(folder / "done.csv"))
    with (folder / "bad.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    refused = pacbound("batch", table, "--answers", "bad.csv", "--ask", "more.csv", code=2)
    assert message in refused.stderr
    assert "bad.csv" in refused.stderr
    pacbound("batch", table, "--answers", "done.csv", "--ask", "more.csv")
