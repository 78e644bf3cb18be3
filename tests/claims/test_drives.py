"""Drives: which rows are one claim, what is certified of them, and what is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pacbound import Shield, Tally, certify_drives, load_certificate
from pacbound.claims.drives import DrivesCertificate
from pacbound.errors import InvalidTypeError, InvalidValueError
from pacbound.stats.binomial import binomial_upper

ASKED: dict[str, Any] = {"xi": 0.1, "delta": 0.01}


def driven(*drives: tuple[float, int, int]) -> DrivesCertificate:
    """Drives of so many rollouts, so many of them unsafe."""
    threshold = np.repeat([g for g, _, _ in drives], [n for _, n, _ in drives])
    unsafe = np.concatenate([np.arange(n) < k for _, n, k in drives])
    return certify_drives(threshold, unsafe, **ASKED)


def test_the_last_threshold_that_passed_is_certified() -> None:
    made = driven((0.1, 300, 0), (0.4, 300, 18), (0.5, 300, 19), (0.9, 300, 0))
    assert made.certified
    assert made.threshold == 0.4
    assert [drive["verdict"] for drive in made.drives] == [
        "passed",
        "passed",
        "failed",
        "not tested",
    ]
    assert {drive["allowed"] for drive in made.drives} == {18}
    assert binomial_upper(18, 300, delta=0.01) <= 0.1 < binomial_upper(19, 300, delta=0.01)


def test_a_first_drive_that_fails_refuses_whatever_follows() -> None:
    made = driven((0.1, 300, 19), (0.4, 300, 0))
    assert not made.certified
    assert made.threshold == -np.inf
    assert "The first drive, at 0.1, failed: 19 of 300" in made.summary()
    assert "not certified either" in made.summary()


@pytest.mark.parametrize(
    ("threshold", "row"),
    [([0.3, 0.5, 0.3], 2), ([0.5, 0.3], 1), ([0.3] * 5 + [0.2], 5), ([np.inf, 1.0], 1)],
)
def test_a_threshold_that_falls_is_refused_with_its_row(threshold: list[float], row: int) -> None:
    with pytest.raises(InvalidValueError, match=rf"^threshold\[{row}\] is .* driven again"):
        certify_drives(threshold, [False] * len(threshold), **ASKED)


def test_rows_in_blocks_are_one_sequence(tmp_path: Path) -> None:
    """The order is followed over blocks of arrays, and from file to file."""
    many = 300_000
    threshold = np.repeat([0.2, 0.4], many)
    made = certify_drives(threshold, np.zeros(2 * many, dtype=bool), **ASKED)
    assert made.threshold == 0.4
    threshold[-1] = 0.3
    with pytest.raises(InvalidValueError, match=rf"threshold\[{2 * many - 1}\]"):
        certify_drives(threshold, np.zeros(2 * many, dtype=bool), **ASKED)
    np.savez(tmp_path / "1.npz", g=[0.2] * 100, u=[False] * 100)
    np.savez(tmp_path / "2.npz", g=[0.4] * 100, u=[False] * 100)
    paths = [tmp_path / "1.npz", tmp_path / "2.npz"]
    assert certify_drives("g", "u", data=paths, **ASKED).threshold == 0.4
    with pytest.raises(InvalidValueError, match=r"before it was driven at 0\.4"):
        certify_drives("g", "u", data=paths[::-1], **ASKED)


def test_a_rollout_without_an_outcome_is_unsafe() -> None:
    whole = certify_drives([0.2] * 44, [False] * 44, **ASKED)
    assert whole.certified
    for missing in (None, np.nan):
        lost = certify_drives([0.2] * 44, [False] * 43 + [missing], **ASKED)
        assert not lost.certified
        assert (lost.drives[0]["unsafe"], lost.drives[0]["lost"]) == (1, 1)
    masked = np.ma.masked_array(np.zeros(44, dtype=bool), mask=np.arange(44) == 3)
    assert certify_drives([0.2] * 44, masked, **ASKED).drives[0]["lost"] == 1


@pytest.mark.parametrize(
    ("threshold", "unsafe", "message"),
    [
        ([0.2, np.nan], [0, 0], r"threshold\[1\] is nan"),
        ([0.2, 1.5], [0, 0], r"threshold\[1\] is 1\.5"),
        ([-0.1], [0], r"threshold\[0\] is -0\.1"),
        ([0.2], [0.5], r"unsafe\[0\] is 0\.5"),
        ([0.2], ["yes"], r"unsafe\[0\] is 'yes'"),
        ([0.2, 0.3], [0], "Rows do not match"),
        ([], [], "not a tally of drives with rollouts"),
        (np.linspace(0, 1, 2000), np.zeros(2000), "2,000 thresholds"),
    ],
)
def test_what_cannot_be_a_drive_is_refused(threshold: Any, unsafe: Any, message: str) -> None:
    with pytest.raises(InvalidValueError, match=message):
        certify_drives(threshold, unsafe, **ASKED)


def test_rollouts_are_neither_drawn_nor_grouped_nor_added() -> None:
    rows = [0.2] * 50, [False] * 50
    with pytest.raises(InvalidTypeError, match="clusters draws rows"):
        certify_drives(*rows, clusters=np.arange(50), **ASKED)
    with pytest.raises(InvalidTypeError, match="groups"):
        certify_drives(*rows, groups=["a"] * 50, **ASKED)  # type: ignore[call-arg]
    one, other = Tally.count("drives", *rows), Tally.count("drives", [0.4] * 50, [False] * 50)
    with pytest.raises(InvalidValueError, match="Tallies of drives do not add"):
        _ = one + other
    assert certify_drives(data=one, **ASKED).threshold == 0.2


def test_minus_zero_is_zero_and_the_ends_are_thresholds() -> None:
    made = driven((-np.inf, 60, 0), (-0.0, 60, 0), (1.0, 60, 0), (np.inf, 60, 0))
    assert made.driven == (-np.inf, 0.0, 1.0, np.inf)
    assert made.threshold == np.inf
    assert "only where a reading of the danger fails." in made.summary()


def test_files_and_frames_give_the_same_drives(tmp_path: Path) -> None:
    polars = pytest.importorskip("polars")
    pandas = pytest.importorskip("pandas")
    duckdb = pytest.importorskip("duckdb")
    threshold = np.repeat([0.3, 0.5], 60).tolist()
    unsafe: list[bool | None] = [i % 60 < 2 for i in range(120)]
    unsafe[7] = None
    frame = polars.DataFrame({"g": threshold, "u": unsafe})
    frame.write_csv(tmp_path / "d.csv")
    frame.write_parquet(tmp_path / "d.parquet")
    frame.write_ndjson(tmp_path / "d.jsonl")
    wanted = certify_drives(threshold, unsafe, **ASKED).drives
    held = pandas.DataFrame({"g": threshold, "u": unsafe})
    files = [tmp_path / name for name in ("d.csv", "d.parquet", "d.jsonl")]
    for data in (frame, frame.lazy(), held, frame.to_arrow(), *files):
        assert certify_drives("g", "u", data=data, **ASKED).drives == wanted
    engine: Any
    for engine in ("duckdb", "polars"):
        made = certify_drives("g", "u", data=tmp_path / "d.parquet", engine=engine, **ASKED)
        assert made.drives == wanted
    with pytest.raises(InvalidValueError, match="have no order"):
        certify_drives("g", "u", data=duckdb.sql("from held"), **ASKED)
    numbers = pandas.DataFrame({"g": threshold, "u": [np.nan if u is None else u for u in unsafe]})
    numbers["u"] = numbers["u"].astype(float)
    assert certify_drives("g", "u", data=numbers, **ASKED).drives == wanted


def test_a_shield_takes_the_certificate_and_always_brakes_by_a_refusal(tmp_path: Path) -> None:
    path = tmp_path / "drives.json"
    driven((0.25, 100, 0)).save(path)
    shield = Shield(lambda x: "drive", lambda x: "brake", lambda x: x, path)
    assert [shield(danger) for danger in (0.24, 0.25)] == ["drive", "brake"]
    refused = driven((0.25, 10, 0))
    assert Shield(lambda x: "drive", lambda x: "brake", lambda x: x, refused)(0.0) == "brake"
    assert load_certificate(path).verify()


def test_the_words_say_that_nothing_but_the_threshold_is_claimed() -> None:
    summary = driven((0.123456789, 100, 0), (0.5, 100, 50)).summary()
    assert "once the danger reaches 0.123456789;" in summary
    assert "Only 0.123456789 is certified." in summary
    assert "Nothing more can be added" in summary
    assert "Every drive passed" in driven((0.2, 100, 0)).summary()
    zero = certify_drives([0.2] * 9, [False] * 9, xi=0.0, delta=0.01)
    assert "xi = 0" in zero.summary()


def test_a_drive_that_was_given_up_fails_by_the_rollouts_that_it_still_was_to_have() -> None:
    given_up = [True] + [False] * 99 + [None] * 200
    made = certify_drives([0.3] * 300, given_up, **ASKED)
    assert not made.certified
    assert made.drives[0]["lost"] == 200


def test_a_shield_that_always_brakes_is_certified_in_words_that_fit() -> None:
    said = driven((-np.inf, 300, 0)).summary()
    assert "Hand over to the backup at once, whatever the danger" in said
    assert "reaches -inf" not in said
    assert "lower threshold" not in said
