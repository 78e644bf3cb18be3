"""The tables of several models, joined by an id."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pacbound import certify_cascade, certify_replacement
from pacbound.errors import InvalidTypeError, InvalidValueError

SAMPLES = Path(__file__).parents[1] / "data" / "evaluations"
ASKED: dict[str, Any] = {"xi": 0.2, "delta": 0.1}


def lines(path: Path, rows: list[dict[str, Any]]) -> Path:
    path.write_text("\n".join(map(json.dumps, rows)))
    return path


def two(folder: Path, old: list[dict[str, Any]], new: list[dict[str, Any]]) -> tuple[Path, Path]:
    return lines(folder / "old.jsonl", old), lines(folder / "new.jsonl", new)


def rows_of(quality: list[float], **more: Any) -> list[dict[str, Any]]:
    return [{"doc_id": place, "acc": one, **more} for place, one in enumerate(quality)]


def test_rows_are_joined_by_their_id_in_whatever_order(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    old, new = (rng.integers(0, 2, 200).astype(float).tolist() for _ in range(2))
    arrays = certify_replacement(quality=np.column_stack([old, new]), **ASKED)
    shuffled = [rows_of(new)[place] for place in rng.permutation(200)]
    paths = two(tmp_path, rows_of(old), shuffled)
    made = certify_replacement(quality="acc", data=paths, id="doc_id", **ASKED)
    assert made.by.cells(made) == arrays.by.cells(arrays)
    lists = (rows_of(old), shuffled)
    same = certify_replacement(quality=["acc", "acc"], data=lists, id=["doc_id"], **ASKED)
    assert same.by.cells(same) == arrays.by.cells(arrays)


def test_fields_inside_others_are_named_with_a_point(tmp_path: Path) -> None:
    old, new = ([{"id": n, "metrics": {"acc": int(n % k > 0)}} for n in range(50)] for k in (2, 3))
    paths = two(tmp_path, old, new)
    made = certify_replacement(quality="metrics.acc", data=paths, id="id", **ASKED)
    assert made.n == 50
    with pytest.raises(InvalidValueError, match=r"no column 'metrics.f1': expected one of id, m"):
        certify_replacement(quality="metrics.f1", data=paths, id="id", **ASKED)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ([1, 1, 0], [1, 1], r"1 of 3 ids of .*old.jsonl are not in .*new.jsonl, such as 2"),
        ([1], [1, 0, 0], r"2 of 3 ids of .*new.jsonl are not in .*old.jsonl, such as 1, 2"),
    ],
)
def test_ids_that_one_table_lacks_are_named(
    tmp_path: Path, old: list[float], new: list[float], message: str
) -> None:
    paths = two(tmp_path, rows_of(old), rows_of(new))
    with pytest.raises(InvalidValueError, match=message):
        certify_replacement(quality="acc", data=paths, id="doc_id", **ASKED)


def test_repeated_ids_name_the_option_that_picks_one(tmp_path: Path) -> None:
    filters = ("strict-match", "flexible-extract")
    old, new = (
        [row for name in filters for row in rows_of([1.0, last, 1.0] * 20, filter=name)]
        for last in (0.0, 1.0)
    )
    paths = two(tmp_path, old, new)
    with pytest.raises(InvalidValueError, match=r"60 ids .*such as 0, 1, 2.*--where filter="):
        certify_replacement(quality="acc", data=paths, id="doc_id", **ASKED)
    for where in ("filter=strict-match", {"filter": "strict-match"}):
        made = certify_replacement(quality="acc", data=paths, id="doc_id", where=where, **ASKED)
        assert (made.n, made.provenance.columns["where"]) == (60, "filter=strict-match")
    with pytest.raises(InvalidValueError, match=r"is 'x': expected one of flexible-extract, st"):
        certify_replacement(quality="acc", data=paths, id="doc_id", where="filter=x", **ASKED)
    same = two(tmp_path, rows_of([1]) * 2, rows_of([1]))
    with pytest.raises(InvalidValueError, match="Name columns that tell rows apart"):
        certify_replacement(quality="acc", data=same, id="doc_id", **ASKED)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"quality": "acc"}, r"one column, and there are 2 tables.*--id doc_id"),
        ({"quality": ["acc"]}, "one column, and there are 2 tables"),
        ({"quality": ["a", "b", "c"], "id": "doc_id"}, "names 3 columns, and there are 2 tables"),
        ({"quality": "acc", "where": "filter=x"}, "2 tables"),
        ({"quality": "acc", "id": "doc_id", "where": "filter"}, "expected COLUMN=VALUE"),
        ({"quality": "acc", "id": ""}, "names no column"),
    ],
)
def test_what_does_not_say_how_to_join_is_refused(
    tmp_path: Path, given: dict[str, Any], message: str
) -> None:
    paths = two(tmp_path, rows_of([1.0]), rows_of([0.0]))
    with pytest.raises((InvalidTypeError, InvalidValueError), match=message):
        certify_replacement(**given, data=[*map(str, paths)], **ASKED)


def test_an_id_needs_two_tables_and_a_comparison(tmp_path: Path) -> None:
    from pacbound import certify_recall

    path = lines(tmp_path / "one.jsonl", rows_of([1.0]))
    with pytest.raises(InvalidTypeError, match="there is one table"):
        certify_replacement(quality=["acc", "acc"], data=path, id="doc_id", **ASKED)
    with pytest.raises(InvalidTypeError, match="joins the tables of several models"):
        certify_recall("acc", "acc", data=path, id="doc_id", target=0.9, delta=0.1)


def test_epochs_of_inspect_are_clusters_and_its_letters_are_grades() -> None:
    data = tuple(SAMPLES / f"inspect_{name}.json" for name in ("old", "new"))
    made = certify_replacement(quality="scores.match.value", data=data, id="id", **ASKED)
    assert made.draw is not None
    assert (made.n, made.draw.rows, made.draw.by) == (30, 60, "clusters")
    logs = [json.loads(path.read_text())["samples"] for path in data]
    right = [[one["scores"]["match"]["value"] == "C" for one in log] for log in logs]
    lost = sum(old and not new for old, new in zip(*right, strict=True))
    assert 0 < made.losses <= lost


def harness(folder: Path, task: str) -> tuple[Path, Path]:
    return folder / f"samples_{task}_old.jsonl", folder / f"samples_{task}_new.jsonl"


def compared(folder: Path) -> None:
    """Samples of both tools, made by their own models for tests, are read as they are."""
    sums = harness(folder, "sums")
    made = certify_replacement(quality="acc", data=sums, id="doc_id", xi=0.5, delta=0.1)
    right = [[json.loads(line)["acc"] for line in path.read_text().splitlines()] for path in sums]
    lost = sum(old > new for old, new in zip(*right, strict=True))
    assert (made.n, made.losses) == (30, lost)
    # The two models gave the same answers.
    words = [
        [json.loads(line) for line in path.read_text().splitlines()]
        for path in harness(folder, "words")
    ]
    with pytest.raises(InvalidValueError, match=r"--where filter=flexible-extract"):
        certify_replacement(quality="exact_match", data=words, id="doc_id", **ASKED)
    where = "filter=strict-match"
    same = certify_replacement(quality="exact_match", data=words, id="doc_id", where=where, **ASKED)
    assert (same.n, same.losses, same.gains, same.certified) == (30, 0, 0, True)
    other = [json.loads(line) for line in sums[1].read_text().splitlines()]
    other[3]["doc_hash"] = "another"
    with pytest.raises(InvalidValueError, match="doc_hash is not the same"):
        certify_replacement(quality="acc", data=(sums[0], other), id="doc_id", **ASKED)
    logs = [folder / f"inspect_{name}.json" for name in ("old", "new")]
    drawn = certify_replacement(quality="scores.match.value", data=logs, id="id", **ASKED)
    assert drawn.n == 30


def test_samples_of_evaluation_tools_are_read_as_they_are() -> None:
    compared(SAMPLES)


# ---- cascades


def models(count: int, rows: int = 400) -> tuple[list[list[dict[str, Any]]], dict[str, Any]]:
    """A table for each model, all but the first in another order, and the same as arrays."""
    rng = np.random.default_rng(count)
    label = rng.integers(0, 3, size=rows)
    score = rng.beta(5, 1, size=(rows, count - 1))
    skill = np.column_stack([score, np.full(rows, 0.95)])
    said = np.where(rng.random((rows, count)) < skill, label[:, None], (label[:, None] + 1) % 3)
    tables = [
        [
            {"id": f"q{row}", "said": int(said[row, m]), "truth": int(label[row])}
            | ({"sure": float(score[row, m])} if m < count - 1 else {})
            for row in (rng.permutation(rows) if m else range(rows))
        ]
        for m in range(count)
    ]
    return tables, {"confidence": score, "prediction": said, "label": label}


@pytest.mark.parametrize("count", [2, 3])
def test_a_cascade_of_joined_tables_is_that_of_their_columns(tmp_path: Path, count: int) -> None:
    tables, arrays = models(count)
    paths = [lines(tmp_path / f"{m}.jsonl", table) for m, table in enumerate(tables)]
    asked: dict[str, Any] = {"xi": 0.05, "delta": 0.1}
    whole = certify_cascade(**arrays, **asked)
    for data in (paths, tables):
        made = certify_cascade("sure", "said", "truth", data=data, id="id", **asked)
        assert made.thresholds.tolist() == whole.thresholds.tolist()
        assert made.by.cells(made) == whole.by.cells(whole)
        assert made.verify()
    named = [f"said{m}" for m in range(count)]
    other = [
        [{**row, name: row["said"]} for row in table]
        for table, name in zip(tables, named, strict=True)
    ]
    made = certify_cascade("sure", named, "truth", data=other, id="id", **asked)
    assert made.by.cells(made) == whole.by.cells(whole)
    # Of one name for all predictions no names of models are made.
    assert (
        "slow model"
        in certify_cascade("sure", "said", "truth", data=paths, id="id", **asked).summary()
    )


def test_a_cascade_of_joined_tables_is_applied_to_what_the_fast_model_says(tmp_path: Path) -> None:
    tables, _ = models(2)
    paths = [lines(tmp_path / f"{m}.jsonl", table) for m, table in enumerate(tables)]
    made = certify_cascade("sure", "said", "truth", data=paths, id="id", xi=0.1, delta=0.1)
    made.apply_to_file(paths[0], tmp_path / "out.jsonl")
    routed = [json.loads(line) for line in (tmp_path / "out.jsonl").read_text().splitlines()]
    assert [row["pac_exit"] for row in routed] == [
        0 if row["sure"] >= made.thresholds[0] else 1 for row in tables[0]
    ]
