"""`pacbound tally` and `pacbound certify`: parts counted apart, certified together."""

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pacbound import Tally, load_certificate
from pacbound.claims import kind_of

Run = Callable[..., subprocess.CompletedProcess[str]]

ROWS = 900


@pytest.fixture
def columns() -> dict[str, np.ndarray]:
    """Columns for every kind of tally."""
    rng = np.random.default_rng(0)
    slow = rng.integers(0, 3, size=ROWS)
    label = np.where(rng.random(ROWS) < 0.8, slow, (slow + 1) % 3)
    unsafe = rng.random(ROWS) < 0.2
    return {
        "c": rng.beta(6, 1, size=ROWS),
        "ok": rng.random(ROWS) < 0.8,
        "fast": np.where(rng.random(ROWS) < 0.9, slow, (slow + 2) % 3),
        "slow": slow,
        "y": label,
        "s": np.where(unsafe, rng.beta(5, 2, size=ROWS), rng.beta(1, 5, size=ROWS)),
        "u": unsafe,
        "site": np.where(np.arange(ROWS) % 3, "north", "south"),
    }


@pytest.fixture
def parts(tmp_path: Path, columns: dict[str, np.ndarray]) -> list[Path]:
    """The columns in three files of unequal length."""
    paths = [tmp_path / f"part{i}.npz" for i in range(3)]
    for path, rows in zip(paths, np.split(np.arange(ROWS), [100, 500]), strict=True):
        part: dict[str, Any] = {name: values[rows] for name, values in columns.items()}
        np.savez(path, **part)
    return paths


KINDS = [
    (("--confidence", "c", "--correct", "ok"), "calibrate", ("--delta", 0.01)),
    (
        ("--confidence", "c", "--correct", "ok", "--n-bins", 7, "--groups", "site"),
        "calibrate",
        ("--delta", 0.01),
    ),
    (
        ("--confidence", "c", "--prediction", "slow", "--label", "y"),
        "calibrate",
        ("--delta", 0.01),
    ),
    (
        ("--confidence", "c", "--prediction", "fast,slow", "--label", "y"),
        "cascade",
        ("--delta", 0.01, "--xi", 0.2),
    ),
    (
        ("--confidence", "c", "--prediction", "fast,slow", "--label", "y", "--groups", "site"),
        "cascade",
        ("--delta", 0.01, "--xi", 0.2, "--group-thresholds", "own"),
    ),
    (
        ("--confidence", "c", "--prediction", "fast,slow"),
        "cascade",
        ("--delta", 0.01, "--xi", 0.2, "--claim", "differ"),
    ),
    (("--score", "s", "--unsafe", "u"), "shield", ("--delta", 0.01, "--xi", 0.15)),
    (
        ("--score", "s", "--unsafe", "u"),
        "shield",
        ("--delta", 0.01, "--xi", 0.15, "--looks", "450,900,1800"),
    ),
    (
        ("--score", "s", "--unsafe", "u"),
        "shield",
        ("--delta", 0.01, "--xi", 0.15, "--rate", "among-unsafe"),
    ),
    (("--score", "s", "--positive", "u"), "recall", ("--delta", 0.01, "--target", 0.9)),
]

ABSTENTIONS = [
    ("--confidence", "c", "--correct", "ok"),
    ("--confidence", "c", "--prediction", "slow", "--label", "y", "--groups", "site"),
]


@pytest.mark.parametrize("named", ABSTENTIONS)
def test_tallies_of_a_kind_that_is_named_certify_what_all_rows_certify(
    pacbound: Run, parts: list[Path], named: tuple[str, ...]
) -> None:
    claim = ("--xi", 0.28, "--delta", 0.05)
    pacbound("abstain", *parts, *named, *claim, "-o", "whole.json")
    for i, part in enumerate(parts):
        pacbound("tally", "abstention", part, *named, "-o", f"part{i}.json")
    parted = ("part2.json", "part0.json", "part1.json")
    pacbound("certify", "abstention", *parted, *claim, "-o", "sum.json")
    folder = parts[0].parent
    assert (
        load_certificate(folder / "sum.json").claim_digest
        == load_certificate(folder / "whole.json").claim_digest
    )


@pytest.mark.parametrize(("named", "verb", "claim"), KINDS)
def test_tallies_of_parts_certify_what_all_rows_certify(
    pacbound: Run,
    parts: list[Path],
    named: tuple[object, ...],
    verb: str,
    claim: tuple[object, ...],
) -> None:
    kind = kind_of(verb)
    pacbound(verb, *parts, *named, *claim, "-o", "whole.json")
    for i, part in enumerate(parts):
        pacbound("tally", kind, part, *named, "-o", f"part{i}.json")
    parted = ("part2.json", "part0.json", "part1.json")
    done = pacbound("certify", kind, *parted, *claim, "-o", "sum.json")
    assert "verify sum.json" in done.stdout
    folder = parts[0].parent
    assert (
        load_certificate(folder / "sum.json").claim_digest
        == load_certificate(folder / "whole.json").claim_digest
    )
    pacbound("verify", "sum.json")


def test_a_part_that_is_added_twice_is_refused(pacbound: Run, parts: list[Path]) -> None:
    pacbound(
        "tally", "calibration", parts[0], "--confidence", "c", "--correct", "ok", "-o", "a.json"
    )
    pacbound(
        "tally", "calibration", *parts[:2], "--confidence", "c", "--correct", "ok", "-o", "b.json"
    )
    done = pacbound(
        "certify", "calibration", "a.json", "b.json", "--delta", 0.01, "-o", "sum.json", code=2
    )
    assert "voids every guarantee" in done.stderr
    assert not (parts[0].parent / "sum.json").exists()


def test_tallies_for_different_uses_do_not_add(pacbound: Run, parts: list[Path]) -> None:
    pacbound(
        "tally", "calibration", parts[0], "--confidence", "c", "--correct", "ok", "-o", "a.json"
    )
    pacbound("tally", "shield", parts[1], "--score", "s", "--unsafe", "u", "-o", "b.json")
    assert (
        "do not add"
        in pacbound("certify", "calibration", "a.json", "b.json", "--delta", 0.01, code=2).stderr
    )


def test_a_changed_tally_is_refused_by_name(pacbound: Run, parts: list[Path]) -> None:
    pacbound(
        "tally", "calibration", parts[0], "--confidence", "c", "--correct", "ok", "-o", "a.json"
    )
    path = parts[0].parent / "a.json"
    document = json.loads(path.read_text())
    document["counts"][0][0] += 1
    path.write_text(json.dumps(document))
    done = pacbound("certify", "calibration", "a.json", "--delta", 0.01, code=2)
    assert done.stderr.startswith("error: a.json: This tally was changed")


def test_a_certificate_in_place_of_a_tally_is_refused(pacbound: Run, parts: list[Path]) -> None:
    pacbound(
        "calibrate",
        parts[0],
        "--confidence",
        "c",
        "--correct",
        "ok",
        "--delta",
        0.01,
        "-o",
        "certificate.json",
    )
    assert (
        "not a pacbound tally"
        in pacbound("certify", "calibration", "certificate.json", "--delta", 0.01, code=2).stderr
    )


@pytest.mark.parametrize(
    ("kind", "options", "message"),
    [
        ("calibration", ("--xi", 0.1), "an option of pacbound certify abstention"),
        ("shield", (), "Missing option '--xi'"),
        ("recall", (), "Missing option '--target'"),
        ("shield", ("--xi", 0.1, "--costs", "1,2"), "an option of pacbound certify cascade."),
        ("calibration", ("--looks", "300,600"), "pacbound certify recall, pacbound certify shield"),
        ("abstention", ("--xi", 0.1, "--costs", "1,2"), "an option of pacbound certify cascade."),
        (
            "shield",
            ("--xi", 0.1, "--first-threshold", 0.5),
            "an option of pacbound certify abstention.",
        ),
    ],
)
def test_options_of_another_kind_are_refused(
    pacbound: Run, kind: str, options: tuple[object, ...], message: str
) -> None:
    said = pacbound("certify", kind, "a.json", "--delta", 0.01, *options, code=2).stderr
    assert message in said


def test_tallies_of_another_question_are_refused_with_what_they_are_for(
    pacbound: Run, parts: list[Path]
) -> None:
    pacbound("tally", "shield", parts[0], "--score", "s", "--unsafe", "u", "-o", "a.json")
    done = pacbound("certify", "recall", "a.json", "--target", 0.9, "--delta", 0.01, code=2)
    assert "These are tallies for a shield, not for a recall" in done.stderr
    assert "pacbound certify shield or pacbound certify false-alarms" in done.stderr


@pytest.mark.parametrize(
    ("kind", "named", "message"),
    [
        ("calibration", (), "what says whether a prediction was right is missing"),
        ("calibration", ("--correct", "u"), "confidence"),
        ("calibration", ("--confidence", "c"), "Pass either correct, or both prediction and label"),
        ("shield", ("--score", "s"), "Missing option '--unsafe'"),
        ("false-alarms", ("--score", "s"), "enough to count by: pass positive, or unsafe, too"),
        (
            "shield",
            ("--score", "s", "--unsafe", "u", "--label", "y"),
            "No such option: --label. It is an option of pacbound tally abstention",
        ),
    ],
)
def test_columns_that_make_no_tally_are_refused(
    pacbound: Run, parts: list[Path], kind: str, named: tuple[str, ...], message: str
) -> None:
    done = pacbound("tally", kind, parts[0], *named, "-o", "a.json", code=2)
    assert message in done.stderr
    assert not (parts[0].parent / "a.json").exists()


def test_a_tally_for_programs_says_what_it_counted(pacbound: Run, parts: list[Path]) -> None:
    done = pacbound(
        "tally", "shield", *parts, "--score", "s", "--unsafe", "u", "-o", "a.json", "--json"
    )
    written = json.loads(done.stdout)
    tally = Tally.load(parts[0].parent / "a.json")
    assert written == {"tally": "a.json", "kind": "shield", "rows": ROWS, "outcomes": tally.totals}


def test_the_same_tally_is_not_certified_twice(pacbound: Run, tmp_path: Path) -> None:
    (tmp_path / "rows.csv").write_text("c,ok\n" + "1.0,1\n" * 50)
    pacbound(
        "tally", "calibration", "rows.csv", "--confidence", "c", "--correct", "ok", "-o", "q.json"
    )
    done = pacbound("certify", "calibration", "q.json", "q.json", "--delta", 0.05, code=2)
    assert "twice" in done.stderr
