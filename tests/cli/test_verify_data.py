"""`pacbound verify --data`: the data are counted again, and a difference is named by its cell."""

import json
from pathlib import Path

import numpy as np
import pytest
from tests.cli.commands import roles
from tests.cli.conftest import Run
from tests.products import standing_for

ROWS = 600

CERTIFY = {
    "calibration": "calibrate --confidence c --correct ok --n-bins 7 --side lower",
    "edges": "calibrate --confidence c --correct ok --edges 0,0.5,0.8,1",
    "classes": "calibrate --confidence c --prediction fast --label y",
    "groups": "calibrate --confidence c --correct ok --groups place",
    "clusters": "calibrate --confidence c --correct ok --clusters who --seed 3",
    "bounded": "shield --score c --unsafe bad --xi 0.5 --clusters who --cluster-bound 9",
    "weights": "recall --score c --positive ok --target 0.5 --weights w --weight-bound 4",
    "abstention": "abstain --confidence c --correct ok --xi 0.4",
    "cascade": "cascade --confidence c --prediction fast,slow --label y --xi 0.2",
    "cascade-three": "cascade --confidence c,d --prediction fast,middle,slow --label y --xi 0.3 "
    "--costs 1,2,9",
    "cascade-unlabelled": "cascade --confidence c --prediction fast,slow --xi 0.3",
    "cascade-groups": "cascade --confidence c --prediction fast,slow --label y --xi 0.3 "
    "--groups place",
    "cascade-own": "cascade --confidence c --prediction fast,slow --label y --xi 0.3 "
    "--groups place --group-thresholds own",
    "shield": "shield --score c --unsafe bad --xi 0.5 --horizon 40",
    "shield-among": "shield --score c --unsafe bad --xi 0.6 --rate among-unsafe",
    "shield-looks": "shield --score c --unsafe bad --xi 0.5 --looks 300,600",
    "recall": "recall --score c --positive ok --target 0.5",
    "false-alarms": "false-alarms --score c --positive ok --xi 0.9",
    "false-alarms-rollouts": "false-alarms --score c --unsafe bad --xi 0.9",
}
"""A command for each thing that is counted in a way of its own."""
DRAWN = ("clusters", "bounded", "weights")
"""Those that may leave out the row that is changed."""


@pytest.fixture
def rows(tmp_path: Path) -> Path:
    rng = np.random.default_rng(0)
    label = rng.integers(0, 3, size=ROWS)
    c, d = np.sort(rng.beta(4, 1, size=(2, ROWS)).round(3), axis=0)

    def answers(right: float) -> np.ndarray:
        return np.where(rng.random(ROWS) < right, label, (label + 1) % 3)

    fast, middle, slow = answers(0.8), answers(0.85), answers(0.9)
    lines = ["c,d,ok,bad,fast,middle,slow,y,place,who,w"]
    for i in range(ROWS):
        ok, bad = int(rng.random() < c[i]), int(rng.random() < 0.2 * c[i])
        lines.append(
            f"{c[i]},{d[i]},{ok},{bad},{fast[i]},{middle[i]},{slow[i]},{label[i]},"
            f"{'north' if i % 3 else 'south'},{i // 2},{1 + i % 3}"
        )
    path = tmp_path / "rows.csv"
    path.write_text("\n".join(lines) + "\n")
    return path


def change_a_row(rows: Path, change: int) -> Path:
    """The same rows but one, in which everything is answered otherwise."""
    lines = rows.read_text().splitlines()
    row = lines[change].split(",")
    row[2], row[3] = (str(1 - int(flag)) for flag in row[2:4])
    row[4] = str((int(row[4]) + 1) % 3)
    other = rows.with_name("changed.csv")
    other.write_text("\n".join([*lines[:change], ",".join(row), *lines[change + 1 :]]) + "\n")
    return other


FEW = ["calibration", "abstention", "cascade", "cascade-groups", "shield", "recall"]


@pytest.mark.parametrize("name", standing_for(CERTIFY, [*FEW, *DRAWN], rest="slow"))
def test_the_data_of_a_certificate_have_its_counts(pacbound: Run, rows: Path, name: str) -> None:
    verb, *options = CERTIFY[name].split()
    pacbound(verb, "rows.csv", *options, "--delta", 0.05, "-o", "c.json")
    done = pacbound("verify", "c.json", "--data", "rows.csv")
    assert done.stdout.endswith("the data have the same counts, in the same files\n")
    (rows.parent / "copy.csv").write_text(rows.read_text() + "\n")
    done = pacbound("verify", "c.json", "--data", "copy.csv")
    assert done.stdout.endswith("the data have the same counts, in other files\n")


@pytest.mark.parametrize(
    "name",
    standing_for([name for name in CERTIFY if name not in DRAWN], FEW, rest="slow"),
)
def test_the_cell_that_differs_is_named(pacbound: Run, rows: Path, name: str) -> None:
    verb, *options = CERTIFY[name].split()
    pacbound(verb, "rows.csv", *options, "--delta", 0.05, "-o", "c.json")
    top = 1 + int(np.argmax([float(line.split(",")[0]) for line in rows.read_text().split()[1:]]))
    other = change_a_row(rows, change=top)
    done = pacbound("verify", "c.json", "--data", other, code=1)
    assert "verified, but the data have other counts\n" in done.stderr
    assert "the certificate has " in done.stderr
    said = json.loads(pacbound("verify", "c.json", "--data", other, "--json", code=1).stdout)
    assert not said["ok"]
    assert not said["data"]["same_counts"]
    assert said["data"]["differences"]


def test_a_table_that_is_sorted_otherwise_is_thought_of(pacbound: Run, rows: Path) -> None:
    verb, *options = CERTIFY["clusters"].split()
    pacbound(verb, "rows.csv", *options, "--delta", 0.05, "-o", "c.json")
    head, *lines = rows.read_text().splitlines()
    rows.write_text("\n".join([head, *lines[::-1]]) + "\n")
    said = pacbound("verify", "c.json", "--data", rows, code=1).stderr
    assert "drawn by their place in the table, which may be sorted otherwise now" in said


def test_equal_counts_in_another_column_are_not_passed_off_as_the_certificates(
    pacbound: Run, tmp_path: Path
) -> None:
    rows = "".join(f"1,{row % 2},{(row + 1) % 2}\n" for row in range(40))
    (tmp_path / "t.csv").write_text("c,a,b\n" + rows)
    named = ("--confidence", "c", "--correct", "a", "--delta", 0.05)
    pacbound("calibrate", "t.csv", *named, "-o", "c.json")
    same = pacbound("verify", "c.json", "--data", "t.csv", "--column", "correct=a").stdout
    assert same.endswith("the same counts, in the same files\n")
    other = pacbound("verify", "c.json", "--data", "t.csv", "--column", "correct=b").stdout
    assert other.endswith("in the same files, in other columns than the certificate names\n")
    said = pacbound("verify", "c.json", "--data", "t.csv", "--column", "correct=b", "--json").stdout
    assert json.loads(said)["data"]["same_columns"] is False


def test_what_cannot_be_counted_again_says_what_to_do(pacbound: Run, rows: Path) -> None:
    pacbound(
        "calibrate", rows, *CERTIFY["calibration"].split()[1:], "--delta", 0.05, "-o", "c.json"
    )
    design = "--confidence c,d --prediction fast,slow --label y --costs 1,9 --last slow"
    pacbound("design", rows, *design.split(), "--xi", 0.3, "--delta", 0.05, "-o", "design.json")
    fails = {
        ("design.json",): "run `pacbound design` with the same options",
        ("c.json", "--column", "unsafe=bad"): "this calibration certificate has no role 'unsafe'. "
        "Its roles are confidence, correct, prediction, label, quality, groups, clusters, weights, "
        "row_ids, id, where, positive_class.",
        ("c.json", "--column", "group=g"): "Did you mean groups=g?",
        ("c.json", *roles(correct="a"), *roles(correct="b")): "--column names correct twice",
        ("c.json", "--column", "correct"): "expected ROLE=NAME, for example score=risk",
        ("c.json", "c.json"): "--data is for one certificate, and 2 were named",
    }
    for arguments, message in fails.items():
        assert message in pacbound("verify", *arguments, "--data", rows, code=2).stderr
    done = pacbound("verify", "c.json", "--column", "confidence=c", code=2)
    assert "--column names a column of --data: pass the file, too" in done.stderr


def test_labels_that_came_back_are_counted_again(pacbound: Run, rows: Path) -> None:
    lines = rows.read_text().splitlines()
    place = lines[0].split(",").index("y")
    labels = [line.split(",")[place] for line in lines[1:]]
    answers = "pac_id,y\n" + "".join(f"{i},{label}\n" for i, label in enumerate(labels))
    Path(rows.parent / "answers.csv").write_text(answers)
    bare = [
        ",".join(str(row) if i == place else cell for i, cell in enumerate(line.split(",")))
        for row, line in enumerate(lines, -1)
    ]
    bare[0] = lines[0].replace(",y", ",pac_id")
    Path(rows.parent / "bare.csv").write_text("\n".join(bare) + "\n")
    columns = ("--confidence", "c", "--prediction", "fast,slow", "--label", "y")
    came = ("--labels", "answers.csv")
    pacbound("cascade", "bare.csv", *columns, *came, "--xi", 0.2, "--delta", 0.1, "-o", "c.json")
    again = pacbound("verify", "c.json", "--data", "bare.csv", *came)
    assert "the data have the same counts" in again.stdout
