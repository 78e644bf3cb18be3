"""`pacbound tally` and `pacbound certify`: parts counted apart, certified together."""

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pacbound import load_certificate

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
